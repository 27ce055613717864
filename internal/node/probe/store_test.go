package probe

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// withStore gives a probe a store with one file, and returns the store's directory.
func withStore(t *testing.T, p *Probe) (home string) {
	t.Helper()
	g := NewWithT(t)
	own, home := t.TempDir(), t.TempDir()
	p.config.Store = &spec.Store{
		NodeFile: filepath.Join(own, "node.json"), Member: "management", OnTargets: spec.OnTargets{Data: "data"}, SecretFile: filepath.Join(own, "secret"),
	}
	for path, content := range map[string]any{
		p.config.Store.NodeFile:              spec.NodeFile{Version: spec.NodeFileVersion, Members: []spec.Member{{Name: "management", Targets: []spec.Target{{Path: home, Directory: true}}}}},
		filepath.Join(home, spec.MarkerFile): spec.Marker{Version: spec.MarkerVersion, Owner: p.config.FileSystem, State: spec.MarkerInitialized},
	} {
		encoded, err := json.Marshal(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(path, encoded, 0o600)).To(Succeed())
	}
	g.Expect(os.WriteFile(p.config.Store.SecretFile, []byte("correct-horse"), 0o600)).To(Succeed())
	g.Expect(os.Mkdir(filepath.Join(home, "data"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(home, "data", "targets"), []byte("1=1\n"), 0o600)).To(Succeed())
	return home
}

func TestTheStoreIsHandedOutToClientsWithTheSecret(t *testing.T) {
	g := NewWithT(t)
	f := &filesystem{state: backend.State{Version: "7.4.6"}}
	p := f.probe(t)
	home := withStore(t, p)
	go p.loop(t.Context())
	server := httptest.NewServer(p.Handler())
	defer server.Close()
	fetch := func(secret string) ([]byte, error) {
		return store.Fetch(t.Context(), server.Client(), server.Listener.Addr().String(), []byte(secret))
	}
	_, err := fetch("correct-horse")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = fetch("wrong-horse")
	g.Expect(err).To(MatchError(ContainSubstring("403 Forbidden")))
	response, err := http.Get(server.URL + store.Path + "?nonce=1")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	g.Expect(response.StatusCode).To(Equal(http.StatusForbidden), "an address is no proof")

	p.handsOut.Lock()
	_, err = fetch("correct-horse")
	g.Expect(err).To(MatchError(ContainSubstring("somebody else")))
	p.handsOut.Unlock()
	g.Expect(os.Remove(filepath.Join(home, spec.MarkerFile))).To(Succeed())
	_, err = fetch("correct-horse")
	g.Expect(err).To(MatchError(ContainSubstring("read whose")))
}

// fetching serves a probe until the test ends, and returns a function that fetches its store.
func fetching(t *testing.T, p *Probe) func() ([]byte, error) {
	t.Helper()
	go p.loop(t.Context())
	server := httptest.NewServer(p.Handler())
	t.Cleanup(server.Close)
	return func() ([]byte, error) {
		return store.Fetch(t.Context(), server.Client(), server.Listener.Addr().String(), []byte("correct-horse"))
	}
}

// copied is a filesystem whose store the node's programs copy.
type copied struct{ *filesystem }

func (copied) CopyStore(run backend.RunOnNode, work string) (map[string][]byte, error) {
	said, err := run("print", work)
	return map[string][]byte{"log": said}, err
}

func TestAStoreThatShowsNoFilesIsCopiedByProgramsOfTheNode(t *testing.T) {
	g := NewWithT(t)
	f := &filesystem{}
	p := f.probe(t)
	withStore(t, p)
	p.prober = copied{f}
	fetch := fetching(t, p)
	packed, err := fetch()
	g.Expect(err).NotTo(HaveOccurred())
	files, _, err := store.Unpack(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(Equal(map[string][]byte{"log": []byte("/run/parallelfs-store-7")}), "in a directory of this filesystem alone")

	p.ask = func(_ context.Context, argv []string, _ time.Duration) ([]byte, error) {
		if argv[0] == "print" {
			return nil, &failure{program: "print", code: 1, stderr: "no such log"}
		}
		return []byte(argv[1]), nil
	}
	_, err = fetch()
	g.Expect(err).To(MatchError(ContainSubstring("print failed with exit code 1: no such log")))
}

func TestAProbeWithoutAStoreHandsOutNone(t *testing.T) {
	code, _ := get(t, (&filesystem{}).probe(t), store.Path+"?nonce=1")
	NewWithT(t).Expect(code).To(Equal(http.StatusNotFound))
}

func TestAStoreThatIsADatabaseIsHandedOutAsACopyOfItAlone(t *testing.T) {
	g := NewWithT(t)
	p := (&filesystem{}).probe(t)
	data := filepath.Join(withStore(t, p), "data")
	p.work, p.database = t.TempDir(), &backend.StoreDatabase{File: "service.sqlite"}
	service, err := sql.Open("sqlite", "file:"+filepath.Join(data, "service.sqlite")+"?_pragma=journal_mode(wal)")
	g.Expect(err).NotTo(HaveOccurred())
	defer service.Close()
	_, err = service.Exec("CREATE TABLE targets (id INTEGER); INSERT INTO targets VALUES (101)")
	g.Expect(err).NotTo(HaveOccurred())
	fetch := fetching(t, p)
	packed, err := fetch()
	g.Expect(err).NotTo(HaveOccurred())
	files, _, err := store.Unpack(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	content, err := store.Content(t.Context(), files, t.TempDir(), &backend.StoreDatabase{
		File: "service.sqlite", Queries: map[string]string{"targets": "SELECT id FROM targets"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(content.Rows).To(Equal(map[string][][]string{"targets": {{"101"}}}))

	p.database.File = "gone.sqlite"
	_, err = fetch()
	g.Expect(err).To(MatchError(ContainSubstring("gone.sqlite")))
}
