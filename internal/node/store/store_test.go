package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/spec"
)

// write makes a file below a directory.
func write(t *testing.T, directory, name, content string) {
	t.Helper()
	path := filepath.Join(directory, name)
	NewWithT(t).Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func TestFilesAreReadAsTheyLieTogether(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	write(t, directory, "targets", "1=1\n")
	write(t, directory, "quota/1/limits", "none")
	write(t, directory, "targets.tmp-a1b2c3", "1=1\n2=")
	g.Expect(os.Symlink("/etc/passwd", filepath.Join(directory, "link"))).To(Succeed())
	files, err := Read(t.Context(), directory, []string{"*.tmp-*"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(Equal(map[string][]byte{"targets": []byte("1=1\n"), "quota/1/limits": []byte("none")}))
}

func TestFilesThatChangeWhileTheyAreReadAreReadAgain(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	write(t, directory, "a", "1")
	before, err := list(directory, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(differ(before, before)).To(BeEmpty())
	for name, change := range map[string]func(){
		"a": func() { // like a daemon: another file of the same size takes the name
			write(t, directory, "new", "2")
			g.Expect(os.Rename(filepath.Join(directory, "new"), filepath.Join(directory, "a"))).To(Succeed())
		},
		"b": func() { write(t, directory, "b", "1") },
	} {
		change()
		after, err := list(directory, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(differ(before, after)).To(Equal(name))
		g.Expect(differ(after, before)).To(Equal(name))
		before = after
	}

	g.Expect(fresh(before, before["a"].changed.Add(settled/2))).To(Equal("a"), "two changes may have the same time")
	g.Expect(fresh(before, time.Now().Add(settled))).To(BeEmpty())

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// whileRead changes a file in each of the first attempts. It returns a time long after the last change.
	looks := 0
	whileRead := func(changes, stop int) func() time.Time {
		looks = 0
		return func() time.Time {
			if looks++; looks <= changes {
				write(t, directory, "a", fmt.Sprint(looks))
			}
			if looks == stop {
				cancel()
			}
			return time.Now().Add(time.Hour)
		}
	}
	files, err := read(ctx, directory, nil, whileRead(1, 0))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveKeyWithValue("a", []byte("1")))
	g.Expect(looks).To(Equal(2), "what was changed while it was read is read again")
	_, err = read(ctx, directory, nil, whileRead(100, 3))
	g.Expect(err).To(MatchError(context.Canceled), "nobody may rely on what is written all the time")
}

func TestAStoreIsPackedWithTheStateThatTheFilesystemReported(t *testing.T) {
	g := NewWithT(t)
	files := map[string][]byte{"targets": []byte("1=1\n"), "quota/1/limits": nil}
	said := backend.State{Version: "7.4.6", Targets: []backend.Target{{ID: 1}}}
	packed, err := Pack(files, said)
	g.Expect(err).NotTo(HaveOccurred())
	got, heard, err := Unpack(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(map[string][]byte{"targets": []byte("1=1\n"), "quota/1/limits": {}}))
	g.Expect(heard).To(Equal(said))
	for _, cut := range []int{0, 600, len(packed) / 2} {
		_, _, err := Unpack(bytes.NewReader(packed[:cut]))
		g.Expect(err).To(HaveOccurred(), "%d bytes of %d", cut, len(packed))
	}
}

func TestOnlyTheDirectoryOfThisFileSystemIsHandedOut(t *testing.T) {
	owner := spec.Owner{Namespace: "storage", Name: "scratch", UID: "7"}
	for name, c := range map[string]struct {
		marker spec.Marker
		member string
		says   string
	}{
		"it is":                   {spec.Marker{Owner: owner, State: spec.MarkerInitialized}, "management", ""},
		"one of a newer operator": {spec.Marker{Version: 2, Owner: owner, State: spec.MarkerInitialized}, "management", "the program is older than the file"},
		"another's":               {spec.Marker{Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "8"}, State: spec.MarkerInitialized}, "management", "with the uid 8"},
		"one that is not ready":   {spec.Marker{Owner: owner, State: spec.MarkerPreparing}, "management", "its state is Preparing"},
		"a server that is not it": {spec.Marker{Owner: owner, State: spec.MarkerInitialized}, "meta-0", "names no target of management"},
	} {
		for _, disk := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				g, target := NewWithT(t), t.TempDir()
				config := spec.Store{
					NodeFile: filepath.Join(t.TempDir(), "node.json"), Member: "management", OnTargets: spec.OnTargets{Directory: "mgmtd", Data: "data"},
				}
				file, err := json.Marshal(spec.NodeFile{Version: spec.NodeFileVersion, Members: []spec.Member{{Name: c.member, Targets: []spec.Target{{Path: target, Directory: !disk}}}}})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.WriteFile(config.NodeFile, file, 0o600)).To(Succeed())
				c.marker.Version = cmp.Or(c.marker.Version, spec.MarkerVersion)
				marker, err := json.Marshal(c.marker)
				g.Expect(err).NotTo(HaveOccurred())
				home := target
				if disk {
					home = filepath.Join(target, "mgmtd")
				}
				write(t, home, spec.MarkerFile, string(marker))
				directory, err := Directory(config, owner)
				if c.says == "" {
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(directory).To(Equal(filepath.Join(home, "data")))
				} else {
					g.Expect(err).To(MatchError(ContainSubstring(c.says)))
				}
			})
		}
	}
}

func TestAStoreIsAcceptedOnlyFromASenderWithTheSecret(t *testing.T) {
	secret, other := []byte("correct-horse"), []byte("wrong-horse")
	signs := func(sign func(nonce string) string) func(w http.ResponseWriter, nonce string) {
		return func(w http.ResponseWriter, nonce string) { w.Header().Set(exchange.SignatureHeader, sign(nonce)) }
	}
	fails := func(code int) func(w http.ResponseWriter, nonce string) {
		return func(w http.ResponseWriter, _ string) { w.WriteHeader(code) }
	}
	body := []byte("store")
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, nonce string)
		says   string
	}{
		"it is":                             {signs(func(nonce string) string { return Signature(secret, nonce, body) }), ""},
		"somebody else":                     {signs(func(nonce string) string { return Signature(other, nonce, body) }), "is not signed"},
		"one who repeats an earlier answer": {signs(func(string) string { return Signature(secret, "earlier", body) }), "is not signed"},
		"one who repeats the proof":         {signs(func(nonce string) string { return sum(secret, "question", nonce, nil) }), "is not signed"},
		"an older probe":                    {fails(http.StatusNotFound), "its pod is older than this operator"},
		"one who refuses":                   {fails(http.StatusServiceUnavailable), "503 Service Unavailable): store"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				nonce := r.URL.Query().Get(exchange.NonceParameter)
				g.Expect(Proven(secret, nonce, r.Header.Get(ProofHeader))).To(Succeed())
				g.Expect(Proven(other, nonce, r.Header.Get(ProofHeader))).To(MatchError(ErrNotProven))
				g.Expect(Proven(nil, nonce, sum(nil, "question", nonce, nil))).To(MatchError(ErrNotProven), "no secret proves nothing")
				c.answer(w, nonce)
				_, _ = w.Write(body)
			}))
			defer server.Close()
			got, err := Fetch(t.Context(), server.Client(), server.Listener.Addr().String(), secret)
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(got).To(Equal(body))
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
}
