package recovery_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
	"parallelfs.dev/operator/test/places"
)

// shelf is a filesystem whose store has one file for each of its targets, and another one with its name.
type shelf struct{ backend.StoreBackuper }

func (shelf) StoreDatabase(string) *backend.StoreDatabase { return nil }

func (shelf) ReadStore(_ string, content backend.StoreContent, said backend.State) (backend.StoreRead, error) {
	name, there := content.Files["name"]
	if !there {
		return backend.StoreRead{}, errors.New("it has no name")
	}
	read := backend.StoreRead{ID: string(name)}
	for _, t := range said.Targets {
		if _, there := content.Files[fmt.Sprintf("targets/%d", t.ID)]; !there {
			read.Lacks = append(read.Lacks, fmt.Sprintf("target %d", t.ID))
		}
	}
	return read, nil
}

// shelved makes a verified backup of a store at a place.
func shelved(t *testing.T, place, name string, files map[string][]byte, changes ...func(*spec.BackupManifest)) {
	t.Helper()
	g := NewWithT(t)
	packed, err := store.Pack(files, backend.State{})
	g.Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256(packed)
	m := spec.BackupManifest{
		Format: 1, Owner: scratch, Name: name, SoftwareVersion: "1.2", ID: "whatever",
		Copied: "2026-11-23T03:00:05Z", Verified: "2026-11-23T03:01:00Z",
		Files: []spec.BackupFile{{Name: "store.tar", Size: int64(len(packed)), SHA256: hex.EncodeToString(sum[:])}},
	}
	for _, change := range changes {
		change(&m)
	}
	manifest, err := json.Marshal(m)
	g.Expect(err).NotTo(HaveOccurred())
	at := filepath.Join(place, name)
	g.Expect(os.MkdirAll(at, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(at, "store.tar"), packed, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(at, spec.BackupManifestFile), manifest, 0o600)).To(Succeed())
}

// ofShelf returns the options of a recovery from a place with backups of a store.
func ofShelf(t *testing.T, place string) recovery.Options {
	t.Helper()
	return recovery.Options{
		Config: spec.Recovery{
			Owner: scratch, Version: "1.2", Scratch: t.TempDir(), Source: spec.RecoverySource{Backups: place},
			Known: exchange.Known(nil, map[v1alpha1.Role][]int32{v1alpha1.RoleStorage: {1, 2}}),
		},
		Store: shelf{}, Work: t.TempDir(), Output: io.Discard,
		Prover: directory.Prover{Owner: scratch, Component: "service", Ledger: filepath.Join(t.TempDir(), "ledger.json"),
			Writer: durable.Writer{Chown: func(string, int, int) error { return nil }}, Now: time.Now},
	}
}

// toShelf restores a backup to a new directory.
func toShelf(t *testing.T, o recovery.Options, backup string) recovery.Options {
	t.Helper()
	o.Config.Restore = &spec.Restore{
		Plan: "0123abcd", Backup: backup, ID: "hive", Path: filepath.Join(t.TempDir(), "service"), Data: "data", Component: "service",
		User: "root", Ledger: o.Prover.Ledger,
	}
	return o
}

func files(names ...string) map[string][]byte {
	out := map[string][]byte{"name": []byte("hive")}
	for _, name := range names {
		out[name] = []byte(name)
	}
	return out
}

// lies returns the files below a directory by path.
func lies(t *testing.T, at string) map[string]string {
	t.Helper()
	out := map[string]string{}
	NewWithT(t).Expect(filepath.WalkDir(at, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(at, path)
		out[name] = string(content)
		return err
	})).To(Succeed())
	return out
}

func TestBackupsOfAStoreAreReadAndSayWhatJoinedSince(t *testing.T) {
	g, place := NewWithT(t), t.TempDir()
	shelved(t, place, "20261120-030000", files())
	shelved(t, place, "20261121-030000", files("targets/1"))
	shelved(t, place, "20261122-030000", files("targets/1", "targets/2"))
	shelved(t, place, "20261123-030000", map[string][]byte{"other": nil})
	shelved(t, place, "20261124-030000", files(), func(m *spec.BackupManifest) { m.Refused = "it can't be read" })
	shelved(t, place, "20261125-030000", files(), func(m *spec.BackupManifest) { m.SoftwareVersion = "1.10" })
	shelved(t, place, "20261126-030000", files(), func(m *spec.BackupManifest) { m.Files[0].SHA256 = "0" })
	shelved(t, place, "20261127-030000", files(), func(m *spec.BackupManifest) { m.Owner.UID = "1b4e28ba-another" })
	answer, err := recovery.Run(t.Context(), ofShelf(t, place))
	g.Expect(err).NotTo(HaveOccurred())
	const at = "2026-11-23T03:00:05Z"
	g.Expect(answer.Found).To(HaveExactElements(
		spec.RecoveryFound{Backup: "20261126-030000", ID: "whatever", Time: at, Message: "can't copy the store in the backup 20261126-030000: " +
			"store.tar of the backup has changed since it was verified; choose another candidate"},
		spec.RecoveryFound{Backup: "20261122-030000", ID: "hive", Time: at},
		spec.RecoveryFound{Backup: "20261121-030000", ID: "hive", Time: at, Lacks: "target 2"},
		spec.RecoveryFound{Backup: "20261120-030000", ID: "hive", Time: at, Lacks: "target 1, target 2"},
	))
}

func TestAStoreIsPutBackAsItWasWhateverStepItIsKilledBefore(t *testing.T) {
	g, place := NewWithT(t), t.TempDir()
	const name = "20261122-030000"
	shelved(t, place, name, files("targets/1", "quota/1/limits"))
	killed := errors.New("killed")
	// through restores with a kill before the nth step, then once more, and returns the number of steps.
	through := func(n int) (steps int) {
		o := toShelf(t, ofShelf(t, place), name)
		before := func(string) error {
			if steps++; steps == n {
				return killed
			}
			return nil
		}
		o.Before, o.Prover.Writer.Before = before, before
		answer, err := recovery.Run(t.Context(), o)
		if n > 0 {
			g.Expect(err).To(MatchError(killed))
			g.Expect(answer.Restored).To(BeFalse())
			marker, _ := os.ReadFile(filepath.Join(o.Config.Restore.Path, spec.MarkerFile))
			if bytes.Contains(marker, []byte(spec.MarkerInitialized)) {
				g.Expect(lies(t, filepath.Join(o.Config.Restore.Path, "data"))).To(HaveLen(3), "no service starts with a part of it")
			}
			o.Before, o.Prover.Writer.Before = nil, nil
			answer, err = recovery.Run(t.Context(), o)
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(answer).To(Equal(spec.RecoveryAnswer{Restored: true, Found: []spec.RecoveryFound{{Backup: name, ID: "hive"}}}))
		g.Expect(lies(t, filepath.Join(o.Config.Restore.Path, "data"))).To(Equal(map[string]string{
			"name": "hive", "targets/1": "targets/1", "quota/1/limits": "quota/1/limits",
		}))
		answer, err = recovery.Run(t.Context(), o)
		g.Expect(err).NotTo(HaveOccurred(), "doing it again does no harm")
		g.Expect(answer.Restored).To(BeTrue())
		return steps
	}
	steps := through(0)
	g.Expect(steps).To(BeNumerically(">", 10))
	for _, n := range places.Kills.Of(t, steps) {
		through(n + 1)
	}
}

func TestAStoreIsNotPutBackWhen(t *testing.T) {
	const name = "20261122-030000"
	for why, c := range map[string]struct {
		files  map[string][]byte
		change func(m *spec.BackupManifest)
		before func(t *testing.T, o *recovery.Options)
		says   string
	}{
		"it is another filesystem's": {
			files: map[string][]byte{"name": []byte("other")}, says: "it is the store of the filesystem other, and the plan says hive",
		},
		"it can't be read": {files: map[string][]byte{"none": nil}, says: "it has no name"},
		"it has changed since": {
			change: func(m *spec.BackupManifest) { m.Files[0].SHA256 = "0" }, says: "store.tar of the backup has changed since it was verified",
		},
		"it is not verified": {change: func(m *spec.BackupManifest) { m.Verified = "" }, says: "is not verified"},
		"it is of a later version": {
			change: func(m *spec.BackupManifest) { m.SoftwareVersion = "2.0" }, says: "which the version 1.2 of now may not be able to read",
		},
		"it has no store": {change: func(m *spec.BackupManifest) { m.Files = nil }, says: "has no store.tar"},
		"a file is elsewhere": {
			files: map[string][]byte{"name": []byte("hive"), "../../name": nil}, says: `"../../name", which is no path in its directory`,
		},
		"there is something": {before: func(t *testing.T, o *recovery.Options) {
			t.Helper()
			NewWithT(t).Expect(os.MkdirAll(filepath.Join(o.Config.Restore.Path, "data", "name"), 0o700)).To(Succeed())
		}, says: "nothing is restored over what is there"},
		"another plan was carried out there": {before: func(t *testing.T, o *recovery.Options) {
			t.Helper()
			_, err := recovery.Run(t.Context(), *o)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			o.Config.Restore.Plan = "89abcdef"
		}, says: "has the metadata of this FileSystem already, or had"},
	} {
		t.Run(why, func(t *testing.T) {
			g, place := NewWithT(t), t.TempDir()
			if c.files == nil {
				c.files = files("targets/1")
			}
			if c.change == nil {
				c.change = func(*spec.BackupManifest) {}
			}
			shelved(t, place, name, c.files, c.change)
			o := toShelf(t, ofShelf(t, place), name)
			if c.before != nil {
				c.before(t, &o)
			}
			answer, err := recovery.Run(t.Context(), o)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(answer.Restored).To(BeFalse())
		})
	}
}

// cabinet is a filesystem whose store is a database.
type cabinet struct{ backend.StoreBackuper }

func (cabinet) StoreDatabase(string) *backend.StoreDatabase {
	return &backend.StoreDatabase{File: "cabinet.sqlite", Queries: map[string]string{"name": "SELECT name FROM config"}}
}

func (cabinet) ReadStore(_ string, content backend.StoreContent, _ backend.State) (backend.StoreRead, error) {
	if !slices.ContainsFunc(content.Rows["name"], func(row []string) bool { return row[0] == "hive" }) {
		return backend.StoreRead{}, errors.New("it has no name")
	}
	return backend.StoreRead{ID: "hive"}, nil
}

func TestAStoreThatIsADatabaseIsPutBackAloneWhenItIsWhole(t *testing.T) {
	g, place := NewWithT(t), t.TempDir()
	file := filepath.Join(t.TempDir(), "cabinet.sqlite")
	db, err := sql.Open("sqlite", file)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = db.Exec("CREATE TABLE config (name TEXT); INSERT INTO config VALUES ('hive')")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(db.Close()).To(Succeed())
	content, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	shelved(t, place, "20261122-030000", map[string][]byte{"cabinet.sqlite": content})
	shelved(t, place, "20261123-030000", map[string][]byte{"cabinet.sqlite": content[:4096]})
	o := ofShelf(t, place)
	o.Store = cabinet{}
	answer, err := recovery.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Found).To(HaveExactElements(
		And(HaveField("Backup", "20261123-030000"), HaveField("Message", ContainSubstring("the database"))),
		And(HaveField("Backup", "20261122-030000"), HaveField("Message", ""))))
	o = toShelf(t, o, "20261122-030000")
	_, err = recovery.Run(t.Context(), o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lies(t, filepath.Join(o.Config.Restore.Path, "data"))).To(Equal(map[string]string{"cabinet.sqlite": string(content)}))
	damaged := toShelf(t, o, "20261123-030000")
	_, err = recovery.Run(t.Context(), damaged)
	g.Expect(err).To(MatchError(ContainSubstring("the database")))
}
