package directory_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// node is a machine's disk in a temporary directory, where changes of owners are only recorded.
type node struct {
	root   string
	owners map[string][2]int
}

// unset is a container without variables.
func unset(string) (string, bool) { return "", false }

func newNode(t *testing.T) node {
	t.Helper()
	return node{root: t.TempDir(), owners: map[string][2]int{}}
}

func (n node) path(parts ...string) string {
	return filepath.Join(append([]string{n.root}, parts...)...)
}

func (n node) directory() spec.Directory {
	d := metadataDirectory(true)
	d.Path = n.path("disk", "meta")
	return d
}

func (n node) prover(before func(step string) error) directory.Prover {
	return directory.Prover{
		Owner: scratch, Component: "master", Ledger: n.path("state", "ledger.json"), UID: 9421, GID: 9421,
		Writer: durable.Writer{
			Chown:  func(path string, uid, gid int) error { n.owners[path] = [2]int{uid, gid}; return nil },
			Before: before,
		},
		Now:          func() time.Time { return time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC) },
		CommandLimit: time.Minute,
	}
}

// content returns all files below the root with their content and permissions.
func (n node) content(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(n.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == n.root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(n.root, path)
		if err != nil {
			return err
		}
		found[name] = info.Mode().String()
		if entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[name] += " " + string(content)
		}
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

func (n node) marker(t *testing.T) spec.Marker {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(n.directory().Path, spec.MarkerFile))
	g.Expect(err).NotTo(HaveOccurred())
	var m spec.Marker
	g.Expect(json.Unmarshal(content, &m)).To(Succeed())
	return m
}

func write(t *testing.T, path, content string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func TestAnEmptyDirectoryBecomesAnEmptyFilesystem(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	g.Expect(n.prover(nil).Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Initialize))

	content := n.content(t)
	g.Expect(content).To(HaveKeyWithValue("disk/meta", "drwxr-xr-x"))
	g.Expect(content).To(HaveKeyWithValue("disk/meta/data", "drwxr-x---"))
	g.Expect(content).To(HaveKeyWithValue("disk/meta/data/metadata.mfs", "-rw-r----- MFSM NEW"))
	g.Expect(content).To(HaveKeyWithValue("disk/meta/.parallelfs.json", HavePrefix("-rw------- ")))
	g.Expect(content).To(HaveKeyWithValue("state/ledger.json", ContainSubstring(n.directory().Path)))
	g.Expect(content).To(HaveLen(7), "nothing else is left: %v", content)
	g.Expect(n.marker(t)).To(Equal(spec.Marker{Version: 1, Owner: scratch, Component: "master", State: spec.MarkerInitialized, Time: "2026-11-21T07:00:00Z"}))
	g.Expect(n.owners).To(HaveKeyWithValue(n.path("disk/meta/data"), [2]int{9421, 9421}))
	g.Expect(n.owners).To(HaveKeyWithValue(n.path("disk/meta"), [2]int{0, 0}))

	g.Expect(n.prover(nil).Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Use), "and is used from then on")
	g.Expect(n.content(t)).To(Equal(content))
}

func TestAnInitializationThatIsKilledBeforeAnyStepEndsTheSame(t *testing.T) {
	g := NewWithT(t)
	killed := errors.New("killed")
	var steps []string
	whole := newNode(t)
	_, err := whole.prover(func(step string) error { steps = append(steps, step); return nil }).Prove(t.Context(), whole.directory(), unset)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(steps)).To(BeNumerically(">", 15))
	want := len(whole.content(t))

	for _, i := range places.Kills.Of(t, len(steps)) {
		step := steps[i]
		t.Run(fmt.Sprintf("killed before step %d, %s", i, filepath.Base(step)), func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			count := 0
			_, err := n.prover(func(string) error {
				if count++; count > i {
					return killed
				}
				return nil
			}).Prove(t.Context(), n.directory(), unset)
			g.Expect(err).To(MatchError(killed))
			// A kill within a step leaves half of a temporary file.
			if temporary, writes := strings.CutPrefix(step, "write "); writes {
				temporary = strings.Replace(temporary, whole.root, n.root, 1)
				g.Expect(os.WriteFile(temporary, []byte("MFS"), 0o600)).To(Succeed())
			}

			_, err = n.prover(nil).Prove(t.Context(), n.directory(), unset)
			g.Expect(err).NotTo(HaveOccurred())
			content := n.content(t)
			g.Expect(content).To(HaveLen(want), "%v", content)
			g.Expect(content).To(HaveKeyWithValue("disk/meta/data/metadata.mfs", "-rw-r----- MFSM NEW"))
			g.Expect(n.marker(t).State).To(Equal(spec.MarkerInitialized))
			g.Expect(n.prover(nil).Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Use))
		})
	}
}

func TestAnAdoptionThatIsKilledBeforeAnyStepEndsTheSame(t *testing.T) {
	old := func(t *testing.T) node {
		t.Helper()
		n := newNode(t)
		before := n.prover(nil)
		before.Owner.UID = "old"
		_, err := before.Prove(t.Context(), n.directory(), unset)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		write(t, n.path("disk/meta/data/metadata.mfs"), "MFSM 2.0 and all files of the old days")
		return n
	}
	for i := 0; ; i++ {
		g, n, count := NewWithT(t), old(t), 0
		_, err := n.prover(func(string) error {
			if count++; count > i {
				return errors.New("killed")
			}
			return nil
		}).Prove(t.Context(), n.directory(), unset)
		_, again := n.prover(nil).Prove(t.Context(), n.directory(), unset)
		g.Expect(again).NotTo(HaveOccurred())
		g.Expect(n.marker(t).Owner).To(Equal(scratch))
		content := n.content(t)
		g.Expect(content).To(HaveKeyWithValue("disk/meta/data/metadata.mfs", HaveSuffix("all files of the old days")))
		g.Expect(content).To(HaveKeyWithValue("state/ledger.json", ContainSubstring(`"new"`)))
		if err == nil {
			g.Expect(i).To(BeNumerically(">", 5))
			return
		}
	}
}

func TestARefusalChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, n node)
		reason  string
	}{
		"foreign files": {
			prepare: func(t *testing.T, n node) { t.Helper(); write(t, n.path("disk/meta/photos/cat.jpg"), "cat") },
			reason:  "not empty (photos)",
		},
		"metadata without a marker": {
			prepare: func(t *testing.T, n node) { t.Helper(); write(t, n.path("disk/meta/data/metadata.mfs"), "MFSM 2.0") },
			reason:  "data/metadata.mfs",
		},
		"data that is no directory": {
			prepare: func(t *testing.T, n node) { t.Helper(); write(t, n.path("disk/meta/data"), "") },
			reason:  "is not a directory",
		},
		"a directory that is a symbolic link": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				g.Expect(os.MkdirAll(n.path("disk", "other"), 0o755)).To(Succeed())
				g.Expect(os.Symlink("other", n.path("disk/meta"))).To(Succeed())
			},
			reason: "disk/meta is a symbolic link",
		},
		"data that is a symbolic link": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				g.Expect(os.MkdirAll(n.path("disk", "meta"), 0o755)).To(Succeed())
				g.Expect(os.Symlink("/var", n.path("disk/meta/data"))).To(Succeed())
			},
			reason: "disk/meta/data is a symbolic link",
		},
		"a marker that is a symbolic link to the marker of another directory": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				write(t, n.path("disk/meta/x"), "")
				g.Expect(os.Remove(n.path("disk/meta/x"))).To(Succeed())
				write(t, n.path("other.json"), `{"version":1,"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Initialized"}`)
				g.Expect(os.Symlink("../../other.json", n.path("disk/meta/.parallelfs.json"))).To(Succeed())
			},
			reason: ".parallelfs.json is not a plain file",
		},
		"a file where the directory should be": {
			prepare: func(t *testing.T, n node) { t.Helper(); write(t, n.path("disk/meta"), "") },
			reason:  "disk/meta is not a directory",
		},
		"a directory that was removed after it was initialized": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				_, err := n.prover(nil).Prove(t.Context(), n.directory(), unset)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.RemoveAll(n.path("disk"))).To(Succeed())
			},
			reason: "its disk is not mounted or was replaced",
		},
		"a data directory that was removed": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				_, err := n.prover(nil).Prove(t.Context(), n.directory(), unset)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.RemoveAll(n.path("disk/meta/data"))).To(Succeed())
			},
			reason: "disk/meta/data is gone",
		},
		"a damaged marker": {
			prepare: func(t *testing.T, n node) { t.Helper(); write(t, n.path("disk/meta/.parallelfs.json"), `{"owner":`) },
			reason:  "is damaged",
		},
		"a marker of a newer operator, beside nothing else": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				write(t, n.path("disk/meta/.parallelfs.json"), `{"version":2,"owners":["storage/scratch"]}`)
			},
			reason: "disk/meta/.parallelfs.json has version 2 of its form, and this program reads versions up to 1: the program is older than the file",
		},
		"a marker without a version": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				write(t, n.path("disk/meta/.parallelfs.json"), `{"owner":{"namespace":"storage","name":"scratch","uid":"new"},"component":"master","state":"Preparing"}`)
			},
			reason: `add "version": 1`,
		},
		"a ledger of a newer operator": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				write(t, n.path("state/ledger.json"), `{"version":2,"paths":[]}`)
				write(t, n.path("disk/meta/lost+found/x"), "")
			},
			reason: "state/ledger.json has version 2 of its form",
		},
		"a damaged ledger": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				write(t, n.path("state/ledger.json"), ``)
				write(t, n.path("disk/meta/lost+found/x"), "")
			},
			reason: "is damaged",
		},
		"lost metadata": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				_, err := n.prover(nil).Prove(t.Context(), n.directory(), unset)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.Remove(n.path("disk/meta/data/metadata.mfs"))).To(Succeed())
			},
			reason: "is lost",
		},
		"a disk that was swapped": {
			prepare: func(t *testing.T, n node) {
				t.Helper()
				g := NewWithT(t)
				_, err := n.prover(nil).Prove(t.Context(), n.directory(), unset)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.RemoveAll(n.path("disk/meta"))).To(Succeed())
				g.Expect(os.Mkdir(n.path("disk/meta"), 0o755)).To(Succeed())
			},
			reason: "its disk is not mounted or was replaced",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			c.prepare(t, n)
			before := n.content(t)
			action, err := n.prover(func(step string) error { return errors.New("changed the disk: " + step) }).Prove(t.Context(), n.directory(), unset)
			g.Expect(action).To(Equal(directory.Refuse))
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(n.content(t)).To(Equal(before))
		})
	}
}

func TestLostAndFoundOfAFreshDiskIsNotForeign(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	g.Expect(os.MkdirAll(n.path("disk/meta/lost+found"), 0o700)).To(Succeed())
	g.Expect(n.prover(nil).Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Initialize))
}

func TestADiskThatWasMovedIsRecordedOnItsNewNode(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	_, err := n.prover(nil).Prove(t.Context(), n.directory(), unset)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.RemoveAll(n.path("state"))).To(Succeed())
	g.Expect(n.prover(nil).Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Use))
	g.Expect(n.content(t)).To(HaveKeyWithValue("state/ledger.json", ContainSubstring(n.directory().Path)))
}

func TestASecondTargetIsRecordedBesideTheFirst(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	for _, name := range []string{"one", "two"} {
		d := target()
		d.Path = n.path("disk", name)
		g.Expect(n.prover(nil).Prove(t.Context(), d, unset)).To(Equal(directory.Initialize))
	}
	ledger := n.content(t)["state/ledger.json"]
	g.Expect(ledger).To(And(ContainSubstring(n.path("disk", "one")), ContainSubstring(n.path("disk", "two"))))
	g.Expect(n.content(t)).To(HaveKeyWithValue("disk/two/data", "drwxr-x---"))
}

func TestAnEmptyDirectoryIsNotInitializedWhenTheMetadataWasAlready(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	d := n.directory()
	d.Initialize.Granted = false
	_, err := n.prover(nil).Prove(t.Context(), d, unset)
	g.Expect(err).To(MatchError(ContainSubstring("not initialized again")))
	g.Expect(n.content(t)).To(BeEmpty(), "nothing is made for a refusal")
}

func TestASpecThatCannotBeMeantSoIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *spec.Directory, p *directory.Prover)
		reason string
	}{
		"a relative directory":          {func(d *spec.Directory, _ *directory.Prover) { d.Path = "meta" }, `"meta" is not an absolute path`},
		"the root directory":            {func(d *spec.Directory, _ *directory.Prover) { d.Path = "/" }, `"/" is not an absolute path`},
		"a directory that goes up":      {func(d *spec.Directory, _ *directory.Prover) { d.Path = "/data/../etc" }, "not an absolute path"},
		"a ledger inside the directory": {func(d *spec.Directory, p *directory.Prover) { p.Ledger = d.Path + "/ledger.json" }, "lost together with it"},
		"no ledger":                     {func(_ *spec.Directory, p *directory.Prover) { p.Ledger = "" }, "must be an absolute path"},
		"data in the directory itself":  {func(d *spec.Directory, _ *directory.Prover) { d.Data = "." }, `"." can't be the name`},
		"data outside of the directory": {func(d *spec.Directory, _ *directory.Prover) { d.Data = "../x" }, `"../x" can't be the name`},
		"data of the marker's name":     {func(d *spec.Directory, _ *directory.Prover) { d.Data = spec.MarkerFile }, "can't be the name"},
		"two initial files of one name": {func(d *spec.Directory, _ *directory.Prover) {
			d.Initialize.Directories = []string{"metadata.mfs"}
		}, `"metadata.mfs" can't be the name`},
		"an initial directory in another": {func(d *spec.Directory, _ *directory.Prover) { d.Initialize.Directories = []string{"a/b"} }, `"a/b" can't be the name`},
		"a command that makes nothing":    {func(d *spec.Directory, _ *directory.Prover) { d.Initialize.Command = []string{"true"} }, "belong together"},
		"a file that nothing makes":       {func(d *spec.Directory, _ *directory.Prover) { d.Initialize.Makes = "db" }, "belong together"},
		"a file that would be taken for a left-over": {func(d *spec.Directory, _ *directory.Prover) {
			d.Initialize.Command, d.Initialize.Makes = []string{"true"}, ".parallelfs-db.tmp"
		}, "can't be the name"},
		"an initial file elsewhere":       {func(d *spec.Directory, _ *directory.Prover) { d.Initialize.Files[0].Name = "/etc/passwd" }, `"/etc/passwd" can't be the name`},
		"patterns that match no metadata": {func(d *spec.Directory, _ *directory.Prover) { d.Initialize.DataGlobs = []string{"[", "*.db"} }, `matches any of ["metadata.mfs"]`},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			d, p := n.directory(), n.prover(func(step string) error { return errors.New("changed the disk: " + step) })
			c.change(&d, &p)
			_, err := p.Prove(t.Context(), d, unset)
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(n.content(t)).To(BeEmpty())
		})
	}
}

// TestOnAFullDiskTheDataOfAnEarlierFileSystemIsAdopted has a FileSystem that was deleted and recreated over a disk without a free block.
func TestOnAFullDiskTheDataOfAnEarlierFileSystemIsAdopted(t *testing.T) {
	marker := "disk/meta/.parallelfs.json"
	full := func(killed string) func(step string) error {
		return func(step string) error {
			switch {
			case strings.HasPrefix(step, "write ") && strings.Contains(step, "disk/meta/"):
				return unix.ENOSPC
			case killed != "" && strings.HasPrefix(step, killed):
				return errors.New("killed")
			}
			return nil
		}
	}
	for _, killed := range []string{"", "lengthen ", "overwrite ", "shorten "} {
		t.Run(cmp.Or(killed, "never")+" killed", func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			earlier := n.prover(nil)
			earlier.Owner.UID = "old"
			g.Expect(earlier.Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Initialize))
			before := n.content(t)
			action, err := n.prover(full(killed)).Prove(t.Context(), n.directory(), unset)
			g.Expect(action).To(Equal(directory.Adopt))
			if killed != "" {
				g.Expect(err).To(MatchError(ContainSubstring("killed")))
				g.Expect(n.prover(full("")).Prove(t.Context(), n.directory(), unset)).To(Or(Equal(directory.Adopt), Equal(directory.Use)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			after := n.content(t)
			g.Expect(after[marker]).To(And(ContainSubstring(`"uid": "new"`), ContainSubstring("Initialized")))
			g.Expect(n.prover(full("")).Prove(t.Context(), n.directory(), unset)).To(Equal(directory.Use))
			delete(before, marker)
			delete(after, marker)
			delete(before, "state/ledger.json")
			delete(after, "state/ledger.json")
			g.Expect(after).To(Equal(before), "nothing else has changed")
		})
	}
}
