package backup

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// shelf is a filesystem whose store is one file, "list", with the names of its targets.
type shelf struct{ backend.StoreBackuper }

func (shelf) ReadStore(version string, files map[string][]byte, said backend.State) (string, error) {
	list, there := files["list"]
	if !there || version != "1" {
		return "", errors.New("there is no list")
	}
	for _, t := range said.Targets {
		if !strings.Contains(string(list), t.Path) {
			return "the list does not have " + t.Path + " yet", nil
		}
	}
	return "", nil
}

// shelfScene is a place for backups of a shelf, whose probe hands out, one after the other, stores with these lists.
func shelfScene(t *testing.T, lists ...string) *scene {
	s := newScene(t)
	secret := []byte("correct-horse")
	s.o.Told.SecretFile = filepath.Join(t.TempDir(), "secret")
	s.write(s.o.Told.SecretFile, secret)
	asked := 0
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nonce := r.URL.Query().Get(backend.NonceParameter)
		s.Expect(r.URL.Path).To(Equal(store.Path))
		s.Expect(store.Proven(secret, nonce, r.Header.Get(store.ProofHeader))).To(Succeed())
		packed, err := store.Pack(map[string][]byte{"list": []byte(lists[min(asked, len(lists)-1)])}, backend.State{Targets: []backend.Target{{Path: "t1"}, {Path: "t2"}}})
		s.Expect(err).NotTo(HaveOccurred())
		asked++
		w.Header().Set(backend.SignatureHeader, store.Signature(secret, nonce, packed))
		_, _ = w.Write(packed)
	}))
	t.Cleanup(probe.Close)
	s.o.Told.Copied, s.o.Store, s.o.FetchAgain = probe.Listener.Addr().String(), shelf{}, 10*time.Millisecond
	return s
}

func TestAStoreIsBackedUpWhenItHasAllThatTheFilesystemSays(t *testing.T) {
	s := shelfScene(t, "t1", "t1", "t1 t2")
	answer, err := Run(t.Context(), s.o)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Name", "20261123-030000"), HaveField("Verified", true), HaveField("Time", "2026-11-23T03:00:05Z"))))
	s.Expect(s.said.String()).To(ContainSubstring("the list does not have t2 yet"), "it was waited for")
	entries, err := os.ReadDir(filepath.Join(s.home(), "20261123-030000"))
	s.Expect(err).NotTo(HaveOccurred())
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	s.Expect(files).To(ConsistOf(storeName, spec.BackupRecordFile, spec.BackupManifestFile))
}

func TestAStoreThatNeverHasAllIsNoBackup(t *testing.T) {
	s := shelfScene(t, "t1")
	s.o.Told.CopySeconds = 1
	answer, err := Run(t.Context(), s.o)
	s.Expect(err).To(MatchError(ContainSubstring("it was tried for 1 s: the list does not have t2 yet")))
	s.Expect(answer.Backups).To(BeEmpty())
}

func TestAStoreThatTheDiskHasChangedIsNotVerified(t *testing.T) {
	s := shelfScene(t, "t1 t2")
	s.o.Before = func(step string) error {
		if step == "compare sums" {
			s.flip(filepath.Join(s.home(), "20261123-030000", storeName))
		}
		return nil
	}
	_, err := Run(t.Context(), s.o)
	s.Expect(err).To(MatchError(ContainSubstring("it was changed at its place")))

	s = shelfScene(t, "t1 t2")
	s.o.Before = func(step string) error {
		if step == "read it back" {
			s.o.Told.Version = "2" // who reads it does not understand it
			s.write(filepath.Join(s.home(), "20261123-030000", storeName), nil)
		}
		return nil
	}
	answer, err := Run(t.Context(), s.o)
	s.Expect(err).To(MatchError(ContainSubstring("the backup can't be used")))
	s.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", false)))
}
