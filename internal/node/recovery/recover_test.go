package recovery_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/objectstore/objectstoretest"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/spec"
)

// counter is a filesystem whose metadata is a number.
type counter struct{}

func (counter) Usable([]backend.CopiedFile) map[string]string { return nil }

func (counter) Changed(string, []byte) time.Time { return time.Time{} }

func (counter) Changes([]backend.CopiedFile) backend.ChangeLogs { return backend.ChangeLogs{} }

func (counter) Check(string, string) backend.BackupProgram {
	return backend.BackupProgram{Argv: []string{"cp", "number", "made"}, Makes: "made"}
}

func (counter) Made(head []byte) (backend.BackupVersion, error) {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(head)), 10, 64)
	return backend.BackupVersion{Version: n, ID: "counter"}, err
}

func (counter) Memory(int64) int64 { return 0 }

var scratch = spec.Owner{Namespace: "storage", Name: "scratch", UID: "1b4e28ba"}

// put writes an object.
func put(t *testing.T, store objectstoretest.Store, key, content string) {
	t.Helper()
	now := map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}
	_, err := store.PutObject(t.Context(), objectstoretest.Bucket, key, now, strings.NewReader(content), int64(len(content)))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

// inStore puts a backup with the number into an object store.
func inStore(t *testing.T, store objectstoretest.Store, name, number string, change func(*spec.BackupManifest)) {
	t.Helper()
	version, err := strconv.ParseInt(number, 10, 64)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256([]byte(number))
	m := spec.BackupManifest{
		Format: 1, Owner: scratch, Name: name, Copied: "2026-11-23T03:00:05Z", Verified: "2026-11-23T03:01:00Z", Version: version, ID: "counter",
		Files: []spec.BackupFile{{Name: "number", Size: int64(len(number)), SHA256: hex.EncodeToString(sum[:])}, {Name: spec.BackupRecordFile, Size: 2}},
	}
	if change != nil {
		change(&m)
	}
	content, err := json.Marshal(m)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	at := "pfs/storage.scratch-1b4e28ba/" + name + "/0a1b2c3d/"
	put(t, store, at+"number", number)
	put(t, store, at+spec.BackupRecordFile, "{}")
	put(t, store, at+spec.BackupManifestFile, string(content))
}

// options returns the options of a recovery from a store.
func options(t *testing.T, store objectstoretest.Store) recovery.Options {
	t.Helper()
	return recovery.Options{
		Config: spec.Recovery{Owner: scratch, Scratch: t.TempDir(), Source: spec.RecoverySource{
			Backups: "storage.scratch-1b4e28ba", ObjectStore: &spec.ObjectStore{
				Endpoint: store.URL, Bucket: objectstoretest.Bucket, Prefix: "pfs", Region: "eu", Credentials: objectstoretest.Credentials(t),
			},
		}},
		Method: counter{}, Work: t.TempDir(), Output: io.Discard, Memory: func() (int64, error) { return 1, nil },
		Prover: directory.Prover{Owner: scratch, Component: "master", Ledger: filepath.Join(t.TempDir(), "ledger.json"),
			Writer: durable.Writer{Chown: func(string, int, int) error { return nil }}, Now: time.Now},
	}
}

// restoring restores a backup to a new directory.
func restoring(t *testing.T, o recovery.Options, backup string, version int64) recovery.Options {
	t.Helper()
	o.Config.Restore = &spec.Restore{
		Plan: "0123abcd", Backup: backup, Version: version, ID: "counter", Path: filepath.Join(t.TempDir(), "metadata"), Data: "data", Component: "master",
		User: "root", Ledger: o.Prover.Ledger,
	}
	return o
}

// one is a filesystem whose metadata consists of all files of its daemon.
type one struct{ counter }

func (one) Usable(found []backend.CopiedFile) map[string]string {
	out := map[string]string{}
	for _, f := range found {
		out[f.Name] = f.Name
	}
	return out
}

func (one) Memory(int64) int64 { return 256 << 20 }

// full is one whose program writes to a disk that is full.
type full struct{ one }

func (full) Check(string, string) backend.BackupProgram {
	return backend.BackupProgram{Argv: []string{"cp", "number", "/dev/full"}, Makes: "made"}
}

func TestAFailedInspectionDoesNotAffectTheCopy(t *testing.T) {
	for name, c := range map[string]struct {
		free    int64
		scratch bool
		number  string
		unread  bool
		why     string
		method  backend.RecoveryMethod
	}{
		"too little memory":   {100 << 20, true, "42", true, "this node has 100 MiB of memory free, and making metadata of 0 MiB takes about 256 MiB", one{}},
		"no place":            {1 << 30, false, "42", true, "can't make a directory to look in", one{}},
		"its disk is full":    {1 << 30, true, "42", true, "the disk for the work of cp is full: ", full{}},
		"it is no metadata":   {1 << 30, true, "what", false, "invalid syntax", one{}},
		"it can be read back": {1 << 30, true, "42", false, "", one{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			own := t.TempDir()
			g.Expect(os.Mkdir(filepath.Join(own, "data"), 0o700)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(own, "data", "number"), []byte(c.number), 0o600)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(own, spec.MarkerFile), []byte(`{"version": 1, "owner": {"namespace": "storage", "name": "scratch", "uid": "1b4e28ba"},
				"component": "follower", "state": "Initialized", "time": "2026-11-23T07:00:00Z"}`), 0o600)).To(Succeed())
			o := recovery.Options{
				Config: spec.Recovery{Owner: scratch, Scratch: t.TempDir(), Source: spec.RecoverySource{Directory: own, Component: "follower", Data: "data"}},
				Method: c.method, Work: t.TempDir(), Output: io.Discard, Memory: func() (int64, error) { return c.free, nil },
			}
			if !c.scratch {
				o.Config.Scratch = filepath.Join(o.Config.Scratch, "missing")
			}
			answer, err := recovery.Run(t.Context(), o)
			g.Expect(err != nil).To(Equal(c.why != ""), "%v", err)
			g.Expect(answer.Message).To(ContainSubstring(c.why))
			g.Expect(answer.Unread).To(Equal(c.unread))
		})
	}
}

func TestTheVerifiedBackupsOfAnObjectStoreAreFoundAndOneIsRestored(t *testing.T) {
	g := NewWithT(t)
	store := objectstoretest.Serve(t, nil)
	inStore(t, store, "20261121-030000", "41", nil)
	inStore(t, store, "20261122-030000", "42", nil)
	inStore(t, store, "20261123-030000", "43", func(m *spec.BackupManifest) { m.Refused = "it can't be read" })
	inStore(t, store, "20261124-030000", "44", func(m *spec.BackupManifest) { m.Verified = "" })
	inStore(t, store, "20261125-030000", "45", func(m *spec.BackupManifest) { m.Owner.UID = "1b4e28ba-another" })
	o := options(t, store)
	answer, err := recovery.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Found).To(HaveExactElements(
		spec.RecoveryFound{Backup: "20261122-030000", Version: 42, ID: "counter", Time: "2026-11-23T03:00:05Z"},
		HaveField("Backup", "20261121-030000")))

	r := restoring(t, o, "20261122-030000", 42)
	answer, err = recovery.Run(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer).To(Equal(spec.RecoveryAnswer{Restored: true, Found: []spec.RecoveryFound{{Backup: "20261122-030000", Version: 42, ID: "counter"}}}))
	entries, err := os.ReadDir(filepath.Join(r.Config.Restore.Path, "data"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(ConsistOf(HaveField("Name()", "made")), "what it was made from does not stay")
	g.Expect(os.ReadFile(filepath.Join(r.Config.Restore.Path, "data", "made"))).To(BeEquivalentTo("42"))
}

func TestARestoringFromAnObjectStoreIsRefusedAndLeavesNoMaster(t *testing.T) {
	const name = "20261122-030000"
	for why, c := range map[string]struct {
		change func(t *testing.T, store objectstoretest.Store)
		says   string
	}{
		"the object has changed since": {func(t *testing.T, store objectstoretest.Store) {
			t.Helper()
			put(t, store, "pfs/storage.scratch-1b4e28ba/"+name+"/0a1b2c3d/number", "24")
		}, "number of the backup has changed since it was verified"},
		"the object is gone": {func(t *testing.T, store objectstoretest.Store) {
			t.Helper()
			_, err := store.DeleteObject(t.Context(), objectstoretest.Bucket, "pfs/storage.scratch-1b4e28ba/"+name+"/0a1b2c3d/number")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		}, "the store has no number"},
		"the backup is gone": {func(t *testing.T, store objectstoretest.Store) {
			t.Helper()
			for _, key := range store.Keys(t) {
				_, err := store.DeleteObject(t.Context(), objectstoretest.Bucket, key)
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			}
		}, "the store has no backup " + name},
		"the backup is an older one than the plan says": {func(t *testing.T, store objectstoretest.Store) {
			t.Helper()
			inStore(t, store, name, "7", nil)
		}, "it has the version 7 of the metadata, and the plan says 42"},
		"its manifest names a file elsewhere": {func(t *testing.T, store objectstoretest.Store) {
			t.Helper()
			inStore(t, store, name, "42", func(m *spec.BackupManifest) {
				m.Files = append(m.Files, spec.BackupFile{Name: "../0a1b2c3d/number", Size: 2})
			})
		}, `names a file "../0a1b2c3d/number"`},
	} {
		t.Run(why, func(t *testing.T) {
			g := NewWithT(t)
			store := objectstoretest.Serve(t, nil)
			inStore(t, store, name, "42", nil)
			c.change(t, store)
			r := restoring(t, options(t, store), name, 42)
			answer, err := recovery.Run(t.Context(), r)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(answer.Restored).To(BeFalse())
			g.Expect(answer.Message).NotTo(ContainSubstring(objectstoretest.SecretKey))
			marker, err := os.ReadFile(filepath.Join(r.Config.Restore.Path, spec.MarkerFile))
			g.Expect(errors.Is(err, os.ErrNotExist) || !bytes.Contains(marker, []byte(spec.MarkerInitialized))).To(BeTrue(), "no master starts there")
		})
	}
}
