package directory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/places"
)

// numbered returns the directory of a daemon with an identity and with a database that a command makes. The database differs each time, and
// the command keeps a journal beside it while it works. The file runs contains the number of the command's runs.
func (n node) numbered() spec.Directory {
	d := numbered(true)
	d.Path = n.path("disk", "numbered")
	d.Initialize.Files[1].Content, d.Initialize.Files[2].Content = "$(NODE_ID)\n", "$(TARGET_ID)\n"
	d.Initialize.Command = []string{"sh", "-c", `echo run >> "$2" && echo journal > "$1-journal" && echo "database $(wc -l < "$2")" > "$1" && rm "$1-journal"`,
		"make", "$(NEW)", n.path("runs")}
	return d
}

func ids(name string) (string, bool) {
	value, set := map[string]string{"NODE_ID": "2", "TARGET_ID": "101"}[name]
	return value, set
}

func (n node) prepare(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(n.prover(nil).Prove(t.Context(), n.numbered(), ids)).To(Equal(directory.Initialize))
}

func TestADirectoryIsPreparedWithAllItsParts(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	n.prepare(t)
	content := n.content(t)
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/chunks", "drwxr-x---"))
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/mirror", "drwxr-x---"))
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/format.conf", "-rw-r----- version=3\n"))
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/nodeNumID", "-rw-r----- 2\n"))
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/targetNumID", "-rw-r----- 101\n"))
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/db", "-rw-r----- database 1\n"))
	g.Expect(content).To(HaveKeyWithValue("disk/numbered/.parallelfs.json", And(ContainSubstring("Initialized"), Not(ContainSubstring("made")))))
	g.Expect(content).To(HaveLen(13), "nothing else is left: %v", content)
	g.Expect(n.owners).To(HaveKeyWithValue(n.path("disk/numbered/data/chunks"), [2]int{9421, 9421}))

	g.Expect(n.prover(nil).Prove(t.Context(), n.numbered(), ids)).To(Equal(directory.Use), "and is used from then on")
	g.Expect(n.content(t)).To(Equal(content), "and the command never runs again")
}

func TestAPreparationThatIsKilledBeforeAnyStepEndsTheSame(t *testing.T) {
	g := NewWithT(t)
	killed := errors.New("killed")
	var steps []string
	whole := newNode(t)
	_, err := whole.prover(func(step string) error { steps = append(steps, step); return nil }).Prove(t.Context(), whole.numbered(), ids)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(steps)).To(BeNumerically(">", 35))
	want := len(whole.content(t))

	for _, i := range places.Kills.Of(t, len(steps)) {
		step := steps[i]
		// It is killed twice, so that the last start finds more than the leftovers of a first start.
		second := i * 7 % len(steps)
		t.Run(fmt.Sprintf("killed before step %d, %s, and again before step %d", i, filepath.Base(step), second), func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			killedBefore := func(step int) error {
				count := 0
				_, err := n.prover(func(string) error {
					if count++; count > step {
						return killed
					}
					return nil
				}).Prove(t.Context(), n.numbered(), ids)
				return err
			}
			g.Expect(killedBefore(i)).To(MatchError(killed))
			// A kill within a step leaves half of a temporary file.
			if temporary, writes := strings.CutPrefix(step, "write "); writes {
				g.Expect(os.WriteFile(strings.Replace(temporary, whole.root, n.root, 1), []byte("ver"), 0o600)).To(Succeed())
			}
			g.Expect(killedBefore(second)).To(Or(Succeed(), MatchError(killed)))
			database, _ := os.ReadFile(n.path("disk/numbered/data/db"))

			_, err := n.prover(nil).Prove(t.Context(), n.numbered(), ids)
			g.Expect(err).NotTo(HaveOccurred())
			content := n.content(t)
			g.Expect(content).To(HaveLen(want), "%v", content)
			g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/targetNumID", "-rw-r----- 101\n"))
			g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/db", HavePrefix("-rw-r----- database ")))
			if database != nil {
				g.Expect(content).To(HaveKeyWithValue("disk/numbered/data/db", HaveSuffix(string(database))), "what has its name is whole, and is not made again")
			}
			g.Expect(n.prover(nil).Prove(t.Context(), n.numbered(), ids)).To(Equal(directory.Use))
		})
	}
}

func TestACommandThatDoesNotMakeTheFileWholeMakesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		reason string
	}{
		"because it was killed inside":       {`echo half > "$1"; echo journal > "$1-journal"; kill -9 $$`, "exit code 137"},
		"because it failed, with the reason": {`echo "the disk is full" >&2; echo half > "$1"; exit 3`, "sh failed with exit code 3: the disk is full"},
		"because it writes nothing":          {`true`, "was not written"},
		"because it writes an empty file":    {`: > "$1"`, "is empty"},
		"because it writes another's file":   {`ln -s /etc/passwd "$1"`, "not a plain file"},
		"because a part lies beside it":      {`echo half > "$1"; echo rest > "$1-wal"`, "db-wal was written too"},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			d := n.numbered()
			d.Initialize.Command[2] = c.script
			for range 2 {
				_, err := n.prover(nil).Prove(t.Context(), d, ids)
				g.Expect(err).To(MatchError(And(ContainSubstring("can't make "+n.path("disk/numbered/data/db")), ContainSubstring(c.reason))))
				g.Expect(n.path("disk/numbered/data/db")).NotTo(BeAnExistingFile())
				g.Expect(n.content(t)["disk/numbered/.parallelfs.json"]).To(ContainSubstring("Preparing"))
			}
			g.Expect(n.prover(nil).Prove(t.Context(), n.numbered(), ids)).To(Equal(directory.Resume))
			g.Expect(n.content(t)).To(And(HaveLen(13), HaveKeyWithValue("disk/numbered/data/db", "-rw-r----- database 1\n")))
			g.Expect("/etc/passwd").To(BeARegularFile())
		})
	}
}

func TestACommandIsEndedWhen(t *testing.T) {
	sleeping := func(n node) spec.Directory {
		d := n.numbered()
		d.Initialize.Command = []string{"sleep", "600"}
		return d
	}
	t.Run("it takes too long", func(t *testing.T) {
		g, n := NewWithT(t), newNode(t)
		p := n.prover(nil)
		p.CommandLimit = time.Millisecond
		_, err := p.Prove(t.Context(), sleeping(n), ids)
		g.Expect(err).To(MatchError(ContainSubstring("sleep was ended after 1ms")))
	})
	t.Run("a stop comes", func(t *testing.T) {
		g, n := NewWithT(t), newNode(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := n.prover(nil).Prove(ctx, sleeping(n), ids)
		g.Expect(err).To(MatchError(ContainSubstring("stopped while sleep was running")))
	})
}

func TestADatabaseThatAppearedDuringAnInitializationIsNotOverwritten(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	_, err := n.prover(func(step string) error {
		if strings.HasPrefix(step, "rename to ") && strings.HasSuffix(step, "/db") {
			return errors.New("killed")
		}
		return nil
	}).Prove(t.Context(), n.numbered(), ids)
	g.Expect(err).To(MatchError(ContainSubstring("killed")))
	write(t, n.path("disk/numbered/data/db"), "a database that a person has restored")
	before := n.content(t)
	_, err = n.prover(nil).Prove(t.Context(), n.numbered(), ids)
	g.Expect(err).To(MatchError(ContainSubstring("did not write (db)")))
	g.Expect(n.content(t)).To(Equal(before))
}

func TestAPreparedDirectoryIsRefusedWhen(t *testing.T) {
	identity := func(n node) string { return n.path("disk/numbered/data/targetNumID") }
	for name, c := range map[string]struct {
		change func(g Gomega, n node)
		reason string
	}{
		"trap 4: it has another's numeric id": {func(g Gomega, n node) {
			g.Expect(os.WriteFile(identity(n), []byte("7"), 0o600)).To(Succeed())
		}, "holds nodeNumID 2, targetNumID 7, and this is to be nodeNumID 2, targetNumID 101"},
		"its identity is gone": {func(g Gomega, n node) { g.Expect(os.Remove(identity(n))).To(Succeed()) }, "targetNumID can't be read"},
		"its identity is a symbolic link": {func(g Gomega, n node) {
			g.Expect(os.Rename(identity(n), n.path("elsewhere"))).To(Succeed())
			g.Expect(os.Symlink(n.path("elsewhere"), identity(n))).To(Succeed())
		}, "targetNumID can't be read"},
		"its identity is no identity": {func(g Gomega, n node) {
			g.Expect(os.WriteFile(identity(n), []byte(strings.Repeat("7", 5000)), 0o600)).To(Succeed())
		}, "targetNumID can't be read"},
		"what it was initialized with is gone": {func(g Gomega, n node) {
			g.Expect(os.Remove(n.path("disk/numbered/data/format.conf"))).To(Succeed())
		}, "is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			n.prepare(t)
			c.change(g, n)
			before := n.content(t)
			for _, uid := range []string{"new", "made again with the same name"} {
				p := n.prover(func(step string) error { return errors.New("changed the disk: " + step) })
				p.Owner.UID = uid
				_, err := p.Prove(t.Context(), n.numbered(), ids)
				g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			}
			g.Expect(n.content(t)).To(Equal(before))
		})
	}
}

func TestADirectoryInWhichADirectoryOfTheInitializationIsNotEmptyIsNotResumed(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	_, err := n.prover(func(step string) error {
		if strings.HasSuffix(step, "format.conf") {
			return errors.New("killed")
		}
		return nil
	}).Prove(t.Context(), n.numbered(), ids)
	g.Expect(err).To(MatchError(ContainSubstring("killed")))
	write(t, n.path("disk/numbered/data/chunks/u0/file"), "a part of a file")
	_, err = n.prover(nil).Prove(t.Context(), n.numbered(), ids)
	g.Expect(err).To(MatchError(ContainSubstring("did not write (chunks)")))
	g.Expect(n.content(t)).To(HaveKey("disk/numbered/data/chunks/u0/file"))
}

func TestNothingIsChangedWhileAVariableIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.Initialize)
		reason string
	}{
		"in a file":        {func(i *spec.Initialize) { i.Files[1].Content = "$(SLOT)" }, "the file nodeNumID, with which "},
		"in the command":   {func(i *spec.Initialize) { i.Command = []string{"make", "$(SLOT)", "$(NEW)"} }, "the command that initializes "},
		"with a new value": {func(i *spec.Initialize) { i.Files[1].Content = "$(NEW)" }, "NEW is not set"},
		"and the identity would be empty": {func(i *spec.Initialize) { i.Files[1].Content = " \n" },
			"the file nodeNumID is to say who "},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode(t)
			d := n.numbered()
			c.change(d.Initialize)
			_, err := n.prover(nil).Prove(t.Context(), d, ids)
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(n.content(t)).To(BeEmpty())
		})
	}
}

func TestIdentity(t *testing.T) {
	g, n := NewWithT(t), newNode(t)
	g.Expect(directory.Identity(n.numbered().Initialize, ids)).To(Equal("nodeNumID 2, targetNumID 101"))
	g.Expect(directory.Identity(metadataDirectory(true).Initialize, unset)).To(BeEmpty())
	g.Expect(directory.Identity(nil, unset)).To(BeEmpty())
	_, err := directory.Identity(n.numbered().Initialize, unset)
	g.Expect(err).To(MatchError(ContainSubstring("NODE_ID is not set")))
}
