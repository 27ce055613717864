package daemon_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// storage returns the spec of a daemon whose targets have ids.
func (c *container) storage() spec.Run {
	config := c.chunkserver()
	config.Component = "storage"
	config.OnTargets = &spec.OnTargets{Directory: "storage", Data: "data", Initialize: &spec.Initialize{
		DataGlobs: []string{"format.conf"}, Directories: []string{"chunks"},
		Files: []spec.InitialFile{
			{Name: "format.conf", Content: "version=3\n"},
			{Name: "nodeNumID", Content: "$(NODE_ID)\n", Identity: true},
			{Name: "targetNumID", Content: "$(TARGET_ID)\n", Identity: true},
		},
	}}
	config.Files = []spec.File{{Path: c.path("run", "storage.conf"), Content: "storeStorageDirectory = $(TARGETS)\nlimit = $(LIMIT)\n", Mode: 0o640}}
	config.Command = []string{"true", "cfgFile=" + c.path("run", "storage.conf"), "nodeID=$(NODE_ID)"}
	config.Recover = &spec.Recover{File: c.path("run", "no-such-file"), Arguments: []string{"limit=$(LIMIT)"}}
	return config
}

// granted returns a target with an id that may be initialized.
func (c *container) granted(t *testing.T, name, id string) spec.Target {
	t.Helper()
	of := c.target(t, name)
	of.Granted, of.Variables = true, map[string]string{"TARGET_ID": id}
	return of
}

func node2(targets ...spec.Target) spec.Member {
	return spec.Member{Targets: targets, Variables: map[string]string{"NODE_ID": "2", "LIMIT": "10G"}}
}

func TestTargetsArePreparedWithTheirIDsAndNamedToTheDaemon(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.granted(t, "a", "101"), c.granted(t, "b", "102")
	c.tell(t, node2(a, b))
	g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
	for of, id := range map[string]string{a.Path: "101\n", b.Path: "102\n"} {
		g.Expect(os.ReadFile(filepath.Join(of, "storage", "data", "targetNumID"))).To(BeEquivalentTo(id))
		g.Expect(os.ReadFile(filepath.Join(of, "storage", "data", "nodeNumID"))).To(BeEquivalentTo("2\n"))
		g.Expect(filepath.Join(of, "storage", "data", "chunks")).To(BeADirectory())
	}
	g.Expect(os.ReadFile(c.path("run", "storage.conf"))).To(BeEquivalentTo(
		"storeStorageDirectory = " + a.Path + "/storage/data," + b.Path + "/storage/data\nlimit = 10G\n"))
	g.Expect(c.started).To(Equal([]string{"true", "limit=10G", "cfgFile=" + c.path("run", "storage.conf"), "nodeID=2"}))
}

func TestAVariableOfTheNodePrecedesThatOfTheContainer(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	config := c.chunkserver()
	config.Files[0].Content = "# $(NODE_IP)"
	c.tell(t, spec.Member{Targets: []spec.Target{c.target(t, "a")}, Variables: map[string]string{"NODE_IP": "10.0.0.2"}})
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(HavePrefix("# 10.0.0.2\n"))
}

func TestOnlyATargetWithThePermissionIsInitialized(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.granted(t, "a", "101"), c.granted(t, "b", "102")
	b.Granted = false
	a.Files = map[string]string{"targetID": "1F-6553F100-2\n"}
	c.tell(t, node2(a, b))
	g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
	g.Expect(os.ReadFile(c.path("run", "storage.conf"))).To(ContainSubstring("= " + a.Path + "/storage/data\n"))
	g.Expect(os.ReadFile(filepath.Join(a.Path, "storage", "data", "targetID"))).To(BeEquivalentTo("1F-6553F100-2\n"), "a file of this target alone")
	g.Expect(os.ReadDir(b.Path)).To(BeEmpty())
	g.Expect(c.log.String()).To(ContainSubstring("was initialized before"))

	// The permission for all targets is enough too. The permission for one does not extend to the others.
	config := c.storage()
	config.OnTargets.Initialize.Granted = true
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(os.ReadFile(filepath.Join(b.Path, "storage", "data", "targetNumID"))).To(BeEquivalentTo("102\n"))
}

func TestADirectoryOfTheNodeIsATarget(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a := c.granted(t, "a", "101")
	a.Path, a.UUID, a.Directory = c.path("srv", "scratch"), "", true
	c.tell(t, node2(a))
	config := c.storage()
	config.Files[0].Content = "storeMetaDirectory = $(TARGET)\n"
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(os.ReadFile(c.path("run", "storage.conf"))).To(BeEquivalentTo("storeMetaDirectory = " + a.Path + "/data\n"))
	g.Expect(os.ReadFile(c.path("srv/scratch/data/targetNumID"))).To(BeEquivalentTo("101\n"))
	g.Expect(c.path("srv/scratch", spec.MarkerFile)).To(BeARegularFile())

	// The directory existed before: an empty one in its place is refused, although the permission still exists.
	g.Expect(os.RemoveAll(a.Path)).To(Succeed())
	g.Expect(c.run(t.Context(), config)).To(MatchError(And(HavePrefix("target a: "), ContainSubstring("was initialized on this node before"))))
	g.Expect(a.Path).NotTo(BeAnExistingFile())
}

func TestTheTrapsOfContainers(t *testing.T) {
	t.Run("trap 1: a target directory that is not mounted is refused", func(t *testing.T) {
		g, c := NewWithT(t), &container{root: t.TempDir()}
		a := c.granted(t, "a", "101")
		c.tell(t, node2(a))
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
		// The machine boots without the disk. Its mountpoint is an empty directory, and the initialization is not recorded yet.
		g.Expect(os.Rename(a.Path, c.path("unplugged"))).To(Succeed())
		g.Expect(os.Mkdir(a.Path, 0o755)).To(Succeed())
		c.started = nil
		c.prove = unmounted("a")
		waited := c.afterSeconds(600, func() { c.prove = nil })
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(ContainSubstring("was initialized on this node before: its disk is not mounted")))
		g.Expect(*waited).To(Equal(600), "it waits for the disk, and what the proof does not see, the ledger does")
		g.Expect(c.started).To(BeNil())
		g.Expect(os.ReadDir(a.Path)).To(BeEmpty(), "no second, empty target under the old id")
	})
	t.Run("trap 2: no marker of a container's own decides, and a second start prepares nothing again", func(t *testing.T) {
		g, c := NewWithT(t), &container{root: t.TempDir()}
		a := c.granted(t, "a", "101")
		c.tell(t, node2(a))
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
		data := filepath.Join(a.Path, "storage", "data")
		g.Expect(os.WriteFile(filepath.Join(data, "chunks", "file"), []byte("a part of a file"), 0o600)).To(Succeed())
		prepared, err := os.Stat(filepath.Join(data, "format.conf"))
		g.Expect(err).NotTo(HaveOccurred())
		// A new container contains only what is mounted into it.
		g.Expect(os.RemoveAll(c.path("run"))).To(Succeed())
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
		again, err := os.Stat(filepath.Join(data, "format.conf"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.SameFile(prepared, again)).To(BeTrue(), "it was not written again")
		g.Expect(os.ReadFile(filepath.Join(data, "chunks", "file"))).To(BeEquivalentTo("a part of a file"))
		g.Expect(c.log.String()).To(ContainSubstring("action=Use"))

		// The marker of other entry points is ignored here: with it a directory is foreign, and without it the directory is still prepared.
		b := c.granted(t, "b", "102")
		g.Expect(os.MkdirAll(filepath.Join(b.Path, "storage", "data"), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(b.Path, "storage", "data", "alreadyInitByContainer"), nil, 0o600)).To(Succeed())
		c.tell(t, node2(b))
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(ContainSubstring("is not empty (data/alreadyInitByContainer)")))
	})
	t.Run("trap 4: a directory with another's numeric id is refused", func(t *testing.T) {
		g, c := NewWithT(t), &container{root: t.TempDir()}
		a := c.granted(t, "a", "7")
		c.tell(t, node2(a))
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
		a.Variables["TARGET_ID"] = "101"
		c.tell(t, node2(a))
		c.started = nil
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(And(HavePrefix("target a: "),
			ContainSubstring("holds nodeNumID 2, targetNumID 7, and this is to be nodeNumID 2, targetNumID 101"))))
		g.Expect(c.started).To(BeNil())
		g.Expect(os.ReadFile(filepath.Join(a.Path, "storage/data/targetNumID"))).To(BeEquivalentTo("7\n"))
	})
	t.Run("trap 4: two targets with one id are refused", func(t *testing.T) {
		g, c := NewWithT(t), &container{root: t.TempDir()}
		a, b := c.granted(t, "a", "101"), c.granted(t, "b", "101")
		c.tell(t, node2(a, b))
		// This also holds if only one of them is mounted, because the other may follow.
		c.prove = unmounted("b")
		g.Expect(c.run(t.Context(), c.storage())).To(MatchError(ContainSubstring(
			"the targets a and b would both be nodeNumID 2, targetNumID 101, so none is used")))
		g.Expect(os.ReadDir(a.Path)).To(BeEmpty())
		g.Expect(os.ReadDir(b.Path)).To(BeEmpty())
	})
}

func TestATargetWithoutItsIDIsNotPrepared(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.granted(t, "a", "101"), c.granted(t, "b", "102")
	b.Variables = nil
	c.tell(t, node2(a, b))
	g.Expect(c.run(t.Context(), c.storage())).To(MatchError(errStarted))
	g.Expect(os.ReadFile(c.path("run", "storage.conf"))).To(ContainSubstring("= " + a.Path + "/storage/data\n"))
	g.Expect(c.log.String()).To(ContainSubstring("TARGET_ID is not set"))
	g.Expect(os.ReadDir(b.Path)).To(BeEmpty())
}

func TestATargetThatChangesWhileItHangsIsQueriedAgain(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a := c.target(t, "a")
	c.tell(t, spec.Member{Targets: []spec.Target{a}})
	answer := make(chan error)
	c.prove = func(of spec.Target) error {
		if of.UUID == "uuid-a" {
			return <-answer // the disk that was recorded first, which would be the right one
		}
		return errors.New("has another filesystem mounted on it")
	}
	host := c.host()
	host.ProveLimit = 500 * time.Millisecond
	replaced := a
	replaced.UUID = "uuid-of-another"
	waited := 0
	c.second = func() {
		switch waited++; waited {
		case 3:
			c.tell(t, spec.Member{Targets: []spec.Target{replaced}})
		case 4:
			answer <- nil
		case 500:
			c.prove = nil
		}
	}
	g.Expect(c.runOn(t.Context(), c.chunkserver(), host)).To(MatchError(errStarted))
	g.Expect(waited).To(Equal(500), "what was said of the first disk proves nothing of the other")
}

func TestAListThatNamesATargetTwiceIsWaitedOut(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a := c.target(t, "a")
	other := a
	other.Path = c.path("elsewhere")
	c.tell(t, spec.Member{Targets: []spec.Target{a, other}})
	c.afterSeconds(5, func() { c.tell(t, spec.Member{Targets: []spec.Target{a}}) })
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	g.Expect(c.log.String()).To(ContainSubstring("names the target a twice"))
	g.Expect(other.Path).NotTo(BeAnExistingFile())
}

// TestANodeThatIsKilledInsideOfTheCommandOfAnInitializationResumesIt runs a real process: the command hangs at its first run.
func TestANodeThatIsKilledInsideOfTheCommandOfAnInitializationResumesIt(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	config := c.real(t)
	config.OnTargets, config.NodeFile, config.Files = nil, "", nil
	script := `echo half > "$1"; echo journal > "$1-journal"; [ -e "$2" ] || { echo $$ > "$2"; exec sleep 600; }; rm "$1-journal"; echo whole > "$1"`
	config.Directories = []spec.Directory{{Path: c.path("data"), Data: "data", Initialize: &spec.Initialize{
		Granted: true, DataGlobs: []string{"db"}, Command: []string{"sh", "-c", script, "make", "$(NEW)", c.path("pid")}, Makes: "db",
	}}}
	n := startNode(t, config)
	g.Eventually(c.path("pid")).WithTimeout(patience.Bound(time.Minute)).Should(BeARegularFile())
	g.Expect(n.Process.Kill()).To(Succeed())
	_ = n.Wait()
	// When a container ends, all its processes end.
	var pid int
	g.Eventually(func() error {
		content, err := os.ReadFile(c.path("pid"))
		return errors.Join(err, json.Unmarshal([]byte(strings.TrimSpace(string(content))), &pid))
	}).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	g.Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
	g.Expect(c.path("data", "data", "db")).NotTo(BeAnExistingFile())

	again := startNode(t, config)
	again.says(t, "msg=\"starting the daemon\"")
	g.Expect(os.ReadFile(c.path("data", "data", "db"))).To(BeEquivalentTo("whole\n"))
	entries, err := os.ReadDir(c.path("data", "data"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(entries).To(HaveLen(1), "and nothing is left beside it")
}
