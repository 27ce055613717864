package backup

import (
	"bytes"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// shelf is a filesystem whose store is one file, "list", with the names of its targets.
type shelf struct{ backend.StoreBackuper }

func (shelf) StoreDatabase(string) *backend.StoreDatabase { return nil }

func (shelf) ReadStore(version string, content backend.StoreContent, said backend.State) (backend.StoreRead, error) {
	list, there := content.Files["list"]
	read := backend.StoreRead{ID: "shelf"}
	if !there || version != "1" {
		return read, errors.New("there is no list")
	}
	for _, t := range said.Targets {
		if !strings.Contains(string(list), t.Path) {
			read.Lacks = append(read.Lacks, "target "+t.Path)
		}
	}
	return read, nil
}

// shelfScene is a place for backups of a shelf. Its probe returns stores with these lists, one after the other.
func shelfScene(t *testing.T, lists ...string) *scene {
	stores := make([]map[string][]byte, len(lists))
	for i, list := range lists {
		stores[i] = map[string][]byte{"list": []byte(list)}
	}
	return storeScene(t, shelf{}, stores...)
}

// storeScene is a place for backups of a filesystem with the targets t1 and t2. Its probe returns these stores, one after the other.
func storeScene(t *testing.T, of backend.StoreBackuper, stores ...map[string][]byte) *scene {
	s := newScene(t)
	secret := []byte("correct-horse")
	s.o.Config.SecretFile = filepath.Join(t.TempDir(), "secret")
	s.write(s.o.Config.SecretFile, secret)
	asked := 0
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nonce := r.URL.Query().Get(exchange.NonceParameter)
		s.Expect(r.URL.Path).To(Equal(store.Path))
		s.Expect(store.Proven(secret, nonce, r.Header.Get(store.ProofHeader))).To(Succeed())
		packed, err := store.Pack(stores[min(asked, len(stores)-1)], backend.State{Targets: []backend.Target{{Path: "t1"}, {Path: "t2"}}})
		s.Expect(err).NotTo(HaveOccurred())
		asked++
		w.Header().Set(exchange.SignatureHeader, store.Signature(secret, nonce, packed))
		_, _ = w.Write(packed)
	}))
	t.Cleanup(probe.Close)
	s.o.Config.Copied, s.o.Store, s.o.FetchAgain = probe.Listener.Addr().String(), of, 10*time.Millisecond
	return s
}

func TestAStoreIsBackedUpWhenItContainsAllThatTheFilesystemReports(t *testing.T) {
	s := shelfScene(t, "t1", "t1", "t1 t2")
	answer, err := Run(t.Context(), s.o)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Name", "20261123-030000"), HaveField("Verified", true), HaveField("Time", "2026-11-23T03:00:05Z"), HaveField("ID", "shelf"))))
	s.Expect(s.said.String()).To(ContainSubstring("has not written yet what it knows, which some do every few minutes only: target t2"), "it was waited for")
	entries, err := os.ReadDir(filepath.Join(s.home(), "20261123-030000"))
	s.Expect(err).NotTo(HaveOccurred())
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	s.Expect(files).To(ConsistOf(StoreName, spec.BackupRecordFile, spec.BackupManifestFile))
}

func TestAStoreThatNeverHasAllIsNoBackup(t *testing.T) {
	s := shelfScene(t, "t1")
	s.o.Config.CopySeconds = 1
	answer, err := Run(t.Context(), s.o)
	s.Expect(err).To(MatchError(ContainSubstring("it was tried for 1 s: its server has not written yet what it knows")))
	s.Expect(answer.Backups).To(BeEmpty())
}

func TestAStoreThatTheDiskHasChangedIsNotVerified(t *testing.T) {
	s := shelfScene(t, "t1 t2")
	s.o.Before = func(step string) error {
		if step == "compare sums" {
			s.flip(filepath.Join(s.home(), "20261123-030000", StoreName))
		}
		return nil
	}
	_, err := Run(t.Context(), s.o)
	s.Expect(err).To(MatchError(ContainSubstring("it was changed at its place")))

	s = shelfScene(t, "t1 t2")
	s.o.Before = func(step string) error {
		if step == "read it back" {
			s.o.Config.Version = "2" // the reader does not understand this version
			s.write(filepath.Join(s.home(), "20261123-030000", StoreName), nil)
		}
		return nil
	}
	answer, err := Run(t.Context(), s.o)
	s.Expect(err).To(MatchError(ContainSubstring("the backup can't be used")))
	s.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", false)))
}

// cabinet is a filesystem whose store is a database with the names of its targets.
type cabinet struct{ backend.StoreBackuper }

func (cabinet) StoreDatabase(string) *backend.StoreDatabase {
	return &backend.StoreDatabase{File: "cabinet.sqlite", Queries: map[string]string{"targets": "SELECT path FROM targets"}}
}

func (cabinet) ReadStore(_ string, content backend.StoreContent, said backend.State) (backend.StoreRead, error) {
	read := backend.StoreRead{ID: "cabinet"}
	for _, t := range said.Targets {
		if !slices.ContainsFunc(content.Rows["targets"], func(row []string) bool { return row[0] == t.Path }) {
			read.Lacks = append(read.Lacks, "target "+t.Path)
		}
	}
	return read, nil
}

func TestAStoreThatIsADatabaseIsBackedUpWhenItIsWholeAndAlone(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "cabinet.sqlite")
	db, err := sql.Open("sqlite", file)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = db.Exec("CREATE TABLE targets (path TEXT); INSERT INTO targets VALUES ('t1'), ('t2')")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(db.Close()).To(Succeed())
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	const page = 4096
	for name, c := range map[string]struct {
		files map[string][]byte
		says  string
	}{
		"a copy":               {map[string][]byte{"cabinet.sqlite": content}, ""},
		"a copy without a row": {map[string][]byte{"cabinet.sqlite": bytes.ReplaceAll(content, []byte("t2"), []byte("t3"))}, "target t2"},
		"a copy by half":       {map[string][]byte{"cabinet.sqlite": content[:page]}, "the database"},
		"the files of one that was in use": {map[string][]byte{"cabinet.sqlite": content, "cabinet.sqlite-wal": nil},
			"the files of a database that was in use can't be trusted"},
		"nothing": {nil, "it is no copy of the database cabinet.sqlite alone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeScene(t, cabinet{}, c.files)
			s.o.Config.CopySeconds = 1
			answer, err := Run(t.Context(), s.o)
			if c.says != "" {
				s.Expect(err).To(MatchError(ContainSubstring(c.says)))
				s.Expect(answer.Backups).To(BeEmpty())
				return
			}
			s.Expect(err).NotTo(HaveOccurred())
			s.Expect(answer.Backups).To(ConsistOf(And(HaveField("Verified", true), HaveField("ID", "cabinet"))))
		})
	}
}
