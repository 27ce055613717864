package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/durable"
)

func writer(before func(step string) error) durable.Writer {
	return durable.Writer{Chown: func(string, int, int) error { return nil }, Before: before}
}

func TestAFileThatIsKilledBeforeAnyStepIsWholeOrTheOldOne(t *testing.T) {
	for i := 0; ; i++ {
		g, path, count := NewWithT(t), filepath.Join(t.TempDir(), "file"), 0
		g.Expect(os.WriteFile(path, []byte("old"), 0o600)).To(Succeed())
		err := writer(func(string) error {
			if count++; count > i {
				return errors.New("killed")
			}
			return nil
		}).File(path, []byte("new"), durable.Ownership{Mode: 0o640})
		g.Expect(os.ReadFile(path)).To(Or(BeEquivalentTo("old"), BeEquivalentTo("new")))
		if err == nil {
			g.Expect(i).To(Equal(3))
			return
		}
		g.Expect(writer(nil).File(path, []byte("new"), durable.Ownership{Mode: 0o640})).To(Succeed())
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo("new"))
		g.Expect(os.ReadDir(filepath.Dir(path))).To(HaveLen(1), "nothing is left beside it")
	}
}

func TestAFileReplacesASymbolicLinkAndNotWhatItLeadsTo(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	other, path := filepath.Join(directory, "other"), filepath.Join(directory, "file")
	g.Expect(os.WriteFile(other, []byte("precious"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("other", path)).To(Succeed())
	g.Expect(writer(nil).File(path, []byte("new"), durable.Ownership{Mode: 0o600})).To(Succeed())
	g.Expect(os.ReadFile(other)).To(BeEquivalentTo("precious"))
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("new"))
}

func TestADirectoryIsMadeWithItsParents(t *testing.T) {
	g, root := NewWithT(t), t.TempDir()
	path := filepath.Join(root, "a", "b", "c")
	var steps []string
	w := writer(func(step string) error { steps = append(steps, step); return nil })
	g.Expect(w.Directory(path, durable.Ownership{Mode: 0o750})).To(Succeed())
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode()).To(Equal(os.ModeDir | 0o750))
	g.Expect(steps).To(Equal([]string{"make " + filepath.Join(root, "a"), "make " + filepath.Join(root, "a", "b"), "make " + path, "own " + path}))
}

func TestADirectoryIsNotMadeOverAFile(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(writer(nil).Directory(path, durable.Ownership{Mode: 0o750})).To(MatchError(ContainSubstring("not a directory")))
	g.Expect(writer(nil).Directory(filepath.Join(path, "below"), durable.Ownership{Mode: 0o750})).NotTo(Succeed())
}

func TestAFileInAMissingDirectoryIsAnErrorThatNamesIt(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "no", "file")
	g.Expect(writer(nil).File(path, nil, durable.Ownership{})).To(MatchError(And(HavePrefix("can't write "+path), HaveSuffix("no such file or directory"))))
}

func TestAFileThatIsMadeIsWholeOrNotThereWhereverItIsKilled(t *testing.T) {
	for i := 0; ; i++ {
		g, path, count := NewWithT(t), filepath.Join(t.TempDir(), "file"), 0
		var committed []string
		making := durable.Making{
			Make: func(path string) error { return os.WriteFile(path, []byte("made"), 0o600) },
			Commit: func(path string) error {
				content, err := os.ReadFile(path)
				committed = append(committed, string(content))
				return err
			},
		}
		err := writer(func(string) error {
			if count++; count > i {
				return errors.New("killed")
			}
			return nil
		}).Made(path, durable.Ownership{Mode: 0o640}, making)
		if _, missing := os.Stat(path); missing == nil {
			g.Expect(os.ReadFile(path)).To(BeEquivalentTo("made"))
			g.Expect(committed).To(Equal([]string{"made"}), "nothing has its name before that is written down")
		}
		if err == nil {
			g.Expect(i).To(Equal(8))
			return
		}
		entries, _ := os.ReadDir(filepath.Dir(path))
		for _, entry := range entries {
			g.Expect(entry.Name() == "file" || durable.IsTemporary(entry.Name())).To(BeTrue(), entry.Name())
		}
		g.Expect(writer(nil).Made(path, durable.Ownership{Mode: 0o640}, making)).To(Succeed())
		g.Expect(os.ReadFile(path)).To(BeEquivalentTo("made"))
		g.Expect(os.ReadDir(filepath.Dir(path))).To(HaveLen(1), "nothing is left beside it")
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode()).To(BeEquivalentTo(0o640))
	}
}

func TestTheLeftoversOfAKilledInitializationAreIgnored(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "file")
	killed := errors.New("killed")
	err := writer(nil).Made(path, durable.Ownership{Mode: 0o640}, durable.Making{Make: func(path string) error {
		return errors.Join(os.WriteFile(path+"-journal", []byte("half"), 0o600), killed)
	}})
	g.Expect(err).To(MatchError(killed))
	g.Expect(os.ReadDir(filepath.Dir(path))).To(HaveLen(1))
	g.Expect(writer(nil).Forget(path)).To(Succeed())
	g.Expect(os.ReadDir(filepath.Dir(path))).To(BeEmpty())
	g.Expect(writer(nil).Forget(path)).To(Succeed(), "also when there is nothing")
}

// full has no room for a second file. It is killed before step number killed of what follows, counted from 0; -1 means never.
func full(killed int) durable.Writer {
	n := 0
	return writer(func(step string) error {
		if strings.HasPrefix(step, "write ") {
			return unix.ENOSPC
		}
		if n++; n-1 == killed {
			return errors.New("killed")
		}
		return nil
	})
}

func TestOnAFullDiskATextThatIsThereIsReplacedInItsPlaceAndOneOfBothIsThereWhereverItIsKilled(t *testing.T) {
	for name, to := range map[string]string{"a longer one": `{"uid": "a longer one than that"}`, "a shorter one": `{}`, "one as long": `{"uid": "two"}`} {
		t.Run(name, func(t *testing.T) {
			for i := range 4 {
				g, path := NewWithT(t), filepath.Join(t.TempDir(), "marker")
				const old = `{"uid": "one"}`
				g.Expect(os.WriteFile(path, []byte(old), 0o600)).To(Succeed())
				before, err := os.Stat(path)
				g.Expect(err).NotTo(HaveOccurred())
				err = full(i).Text(path, []byte(to), durable.Ownership{Mode: 0o600})
				found, readErr := os.ReadFile(path)
				g.Expect(readErr).NotTo(HaveOccurred())
				g.Expect(strings.TrimSpace(string(found))).To(Or(Equal(old), Equal(to)))
				if i < 3 {
					g.Expect(err).To(MatchError(ContainSubstring("killed")))
					g.Expect(full(-1).Text(path, []byte(to), durable.Ownership{Mode: 0o600})).To(Succeed(), "the next one mends it")
				} else {
					g.Expect(err).NotTo(HaveOccurred())
				}
				g.Expect(os.ReadFile(path)).To(BeEquivalentTo(to))
				after, err := os.Stat(path)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(os.SameFile(before, after)).To(BeTrue())
				g.Expect(os.ReadDir(filepath.Dir(path))).To(HaveLen(1), "nothing is left beside it")
			}
		})
	}
}

func TestOnAFullDiskATextIsNotReplacedInItsPlaceWhen(t *testing.T) {
	long := strings.Repeat("x", 4097)
	for name, c := range map[string]struct{ there, content, says string }{
		"it is empty, and so has no block": {"", "new", "has 0 bytes"},
		"it needs a second block":          {"old", long, "is to have 4097"},
		"it has more than one":             {long, "new", "has 4097 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(t.TempDir(), "marker")
			g.Expect(os.WriteFile(path, []byte(c.there), 0o600)).To(Succeed())
			g.Expect(full(-1).Text(path, []byte(c.content), durable.Ownership{})).To(MatchError(And(ContainSubstring("no space left"), ContainSubstring(c.says))))
			g.Expect(os.ReadFile(path)).To(BeEquivalentTo(c.there))
		})
	}
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "marker")
	g.Expect(full(-1).Text(path, []byte("new"), durable.Ownership{})).To(MatchError(ContainSubstring("no space left")))
	g.Expect(path).NotTo(BeAnExistingFile())
}
