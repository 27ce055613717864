package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/spec"
)

// chunkserver returns the spec of a daemon that keeps its data on targets.
func (c *container) chunkserver() spec.Run {
	return spec.Run{
		Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: "1"}, Component: "chunkserver", User: "mfs",
		Daemon: "chunkserver/ssd", Ledger: c.path("state", "ledger.json"), NodeFile: c.path("nodes", spec.NodeFileName),
		OnTargets: &spec.OnTargets{Directory: "chunkserver", Data: "data"},
		Files:     []spec.File{{Path: c.path("run", "mfshdd.cfg"), Content: "# $(NODE_IP)", Line: "$(TARGET)", RemoveLine: "*$(TARGET)", Mode: 0o640}},
		Command:   []string{"true", "-f", "start"},
	}
}

// target makes the mountpoint of a target.
func (c *container) target(t *testing.T, name string) spec.Target {
	t.Helper()
	target := spec.Target{Name: name, Path: c.path("targets", name), UUID: "uuid-" + name}
	NewWithT(t).Expect(os.MkdirAll(target.Path, 0o755)).To(Succeed())
	return target
}

// nodeFile returns the agent's node file for the chunkserver.
func (c *container) nodeFile(config spec.Member) spec.NodeFile {
	config.Name = "chunkserver-ssd"
	return spec.NodeFile{Version: spec.NodeFileVersion, FileSystem: c.chunkserver().Owner, Node: c.node(), Generation: 3, Members: []spec.Member{config}}
}

// tell writes the node file.
func (c *container) tell(t *testing.T, config spec.Member) {
	t.Helper()
	c.tellAll(t, c.nodeFile(config))
}

func (c *container) tellAll(t *testing.T, config spec.NodeFile) {
	t.Helper()
	content, err := json.Marshal(config)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c.write(t, string(content))
}

func (c *container) write(t *testing.T, content string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(c.path("nodes"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(c.path("nodes", spec.NodeFileName), []byte(content), 0o600)).To(Succeed())
}

// afterSeconds calls do once, after the daemon has waited this long.
func (c *container) afterSeconds(seconds int, do func()) *int {
	waited := 0
	c.second = func() {
		if waited++; waited == seconds {
			do()
		}
	}
	return &waited
}

var errNotMounted = errors.New("it is not mounted")

// unmounted returns a proof that fails for the targets with these names.
func unmounted(names ...string) func(spec.Target) error {
	return func(t spec.Target) error {
		for _, name := range names {
			if t.Name == name {
				return errors.Join(errors.New(name), errNotMounted)
			}
		}
		return nil
	}
}

func TestADaemonStartsOnAllItsTargets(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.target(t, "a"), c.target(t, "b")
	b.Remove = true
	c.tell(t, spec.Member{Targets: []spec.Target{a, b}, Pinning: &spec.Pinning{CPUs: "0-7"}})
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	g.Expect(c.started).To(Equal([]string{"true", "-f", "start"}))
	g.Expect(c.environment).To(ContainElement("PARALLELFS_DAEMON=storage/scratch/chunkserver/ssd"))
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(BeEquivalentTo(
		"# 10.0.0.1\n"+a.Path+"/chunkserver/data\n*"+b.Path+"/chunkserver/data\n"), "a target that is to be emptied is used, and marked")
	for _, target := range []spec.Target{a, b} {
		g.Expect(filepath.Join(target.Path, "chunkserver", "data")).To(BeADirectory())
		g.Expect(filepath.Join(target.Path, "chunkserver", spec.MarkerFile)).To(BeARegularFile())
		g.Expect(os.ReadFile(c.path("state", "ledger.json"))).To(ContainSubstring(target.Path))
	}
	g.Expect(c.pinned).To(Equal([]string{"0-7"}))
}

func TestADaemonWaitsForItsFileThenForItsEntryThenForItsTargets(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a := c.target(t, "a")
	c.prove = unmounted("a")
	steps := map[int]func(){
		3: func() {
			file := c.nodeFile(spec.Member{})
			file.Members[0].Name = "master"
			c.tellAll(t, file)
		},
		5: func() { c.tell(t, spec.Member{Waits: "its CPUs are not known yet"}) },
		7: func() { c.tell(t, spec.Member{}) },
		8: func() { c.tell(t, spec.Member{Targets: []spec.Target{a}}) },
		9: func() { c.prove = nil },
	}
	waited := 0
	c.second = func() {
		g.Expect(c.started).To(BeNil())
		g.Expect(c.path("targets", "a", "chunkserver")).NotTo(BeAnExistingFile(), "nothing is written while it waits")
		if waited++; steps[waited] != nil {
			steps[waited]()
		}
	}
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	g.Expect(waited).To(Equal(9))
	for _, sentence := range []string{
		"kubectl label node n1 parallelfs.dev/agent=", `has no entry for \"chunkserver-ssd\" yet`, "its CPUs are not known yet", "has no target for the daemon yet",
		"it is not mounted",
	} {
		g.Expect(strings.Count(c.log.String(), sentence)).To(Equal(1), "%s is said once, however long it is waited for", sentence)
	}
}

func TestADaemonWaitsForAFileThatIsItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(config *spec.NodeFile)
		content string
		says    []string
	}{
		"not of a version that it does not know": {
			change: func(config *spec.NodeFile) { config.Version = 2 },
			says:   []string{"has version 2 of its form, and this pod's image reads versions up to 1", "the image is older than the agent", "is then made again"},
		},
		"not of an unknown version, whatever else it holds": {
			content: `{"version": 7, "color": "red", "members": 3}`, says: []string{"has version 7 of its form", "is then made again"},
		},
		"not without a version": {content: `{"members": []}`, says: []string{"has no version of its form", "remove it"}},
		"not with a field that it does not know": {
			content: `{"version": 1, "color": "red"}`, says: []string{`unknown field \"color\"`, "is then made again"},
		},
		"not one that is no JSON": {content: `{"version": 1,`, says: []string{"can't be understood", "remove it"}},
		"not that of another FileSystem of the same name": {
			change: func(config *spec.NodeFile) { config.FileSystem.UID = "0" },
			says:   []string{"with the uid 0, and this pod belongs to scratch in namespace storage with the uid 1", "look at the agent's log"},
		},
		"not that of another FileSystem": {
			change: func(config *spec.NodeFile) { config.FileSystem.Name = "home" },
			says:   []string{"is that of FileSystem home in namespace storage", "look at the agent's log"},
		},
		"not that of another node": {
			change: func(config *spec.NodeFile) { config.Node = "n2" },
			says:   []string{"is that of node n2, and this node is n1", "remove the file"},
		},
		"not one that says nothing of it": {
			change: func(config *spec.NodeFile) { config.Members = nil },
			says:   []string{`has no entry for \"chunkserver-ssd\" yet`, "kubectl describe filesystem scratch -n storage"},
		},
		"not one that says that something is not known": {
			change: func(config *spec.NodeFile) { config.Members[0].Waits = "its CPUs are not known yet" },
			says:   []string{"its CPUs are not known yet", "kubectl describe filesystem scratch -n storage"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), &container{root: t.TempDir()}
			right := spec.Member{Targets: []spec.Target{at.target(t, "a")}}
			if at.write(t, c.content); c.change != nil {
				wrong := at.nodeFile(right)
				c.change(&wrong)
				at.tellAll(t, wrong)
			}
			waited := at.afterSeconds(5, func() { at.tell(t, right) })
			g.Expect(at.run(t.Context(), at.chunkserver())).To(MatchError(errStarted))
			g.Expect(*waited).To(Equal(5), "it waits, and starts when the file is right")
			for _, sentence := range c.says {
				g.Expect(strings.Count(at.log.String(), sentence)).To(Equal(1), "%q in %s", sentence, at.log.String())
			}
		})
	}
}

func TestADaemonThatDoesNotKnowItsNodeIsNotStarted(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	c.tell(t, spec.Member{Targets: []spec.Target{c.target(t, "a")}})
	host := c.host()
	host.Environment = func(name string) (string, bool) { return "10.0.0.1", name == "NODE_IP" }
	g.Expect(c.runOn(t.Context(), c.chunkserver(), host)).To(MatchError(ContainSubstring("the environment variable NODE_NAME")))
	g.Expect(c.started).To(BeNil())
}

func TestAStopIsObeyedWhileADaemonWaits(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	c.prove = unmounted("a")
	c.tell(t, spec.Member{Targets: []spec.Target{c.target(t, "a")}})
	host := c.host()
	host.After = func(time.Duration) <-chan time.Time { cancel(); return nil }
	err := c.runOn(ctx, c.chunkserver(), host)
	g.Expect(err).To(MatchError(And(ContainSubstring("stopped before the daemon was started"), ContainSubstring("it is not mounted"))))
	g.Expect(c.started).To(BeNil())
}

func TestAStopIsObeyedWhileADiskHangs(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	c.prove = func(spec.Target) error { cancel(); select {} }
	c.tell(t, spec.Member{Targets: []spec.Target{c.target(t, "a")}})
	g.Expect(c.run(ctx, c.chunkserver())).To(MatchError(ContainSubstring("stopped before the daemon was started")))
	g.Expect(c.started).To(BeNil())
}

func TestADaemonStartsWithoutAMissingDiskAfterGivingItTime(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.target(t, "a"), c.target(t, "b")
	c.tell(t, spec.Member{Targets: []spec.Target{a, b}})
	c.prove = unmounted("a", "b")
	// One target is mounted late, and the wait for the other begins then.
	waited := c.afterSeconds(50, func() { c.prove = unmounted("a") })
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	g.Expect(*waited).To(Equal(80))
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(BeEquivalentTo("# 10.0.0.1\n" + b.Path + "/chunkserver/data\n"))
	g.Expect(filepath.Join(a.Path, "chunkserver")).NotTo(BeAnExistingFile())
	g.Expect(c.log.String()).To(ContainSubstring(`msg="starting without a target" target=a`))
}

func TestDisksThatAreMountedOneAfterTheOtherAreAllUsed(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.target(t, "a"), c.target(t, "b")
	c.tell(t, spec.Member{Targets: []spec.Target{a, b}})
	c.prove = unmounted("b")
	waited := c.afterSeconds(20, func() { c.prove = nil })
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	g.Expect(*waited).To(Equal(20), "and then at once")
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(BeEquivalentTo("# 10.0.0.1\n" + a.Path + "/chunkserver/data\n" + b.Path + "/chunkserver/data\n"))
}

func TestADaemonThatNeedsAllItsTargetsWaitsForAll(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	c.tell(t, spec.Member{Targets: []spec.Target{c.target(t, "a"), c.target(t, "b")}})
	c.prove = unmounted("b")
	waited := c.afterSeconds(1000, func() { c.prove = nil })
	config := c.chunkserver()
	config.OnTargets.All = true
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(*waited).To(Equal(1000))
}

func TestADiskThatHangsKeepsNoOtherFromBeingUsed(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.target(t, "a"), c.target(t, "b")
	c.tell(t, spec.Member{Targets: []spec.Target{a, b}})
	asked := make(chan struct{}, 1000)
	c.prove = func(of spec.Target) error {
		if of.Name == "a" {
			asked <- struct{}{}
			select {}
		}
		return nil
	}
	host := c.host()
	host.ProveLimit = 5 * time.Second
	g.Expect(c.runOn(t.Context(), c.chunkserver(), host)).To(MatchError(errStarted))
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(BeEquivalentTo("# 10.0.0.1\n" + b.Path + "/chunkserver/data\n"))
	g.Expect(c.log.String()).To(ContainSubstring("target a at " + a.Path + " does not answer"))
	g.Expect(asked).To(HaveLen(1), "it is not asked again while it hangs")
}

func TestATargetWithARefusedDirectoryIsLeftOutUnlessAllAreNeeded(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a, b := c.target(t, "a"), c.target(t, "b")
	c.tell(t, spec.Member{Targets: []spec.Target{a, b}})
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	// The ledger remembers the initialization: an exchanged disk is not initialized again.
	g.Expect(os.RemoveAll(filepath.Join(a.Path, "chunkserver"))).To(Succeed())

	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(errStarted))
	g.Expect(os.ReadFile(c.path("run", "mfshdd.cfg"))).To(BeEquivalentTo("# 10.0.0.1\n" + b.Path + "/chunkserver/data\n"))
	g.Expect(filepath.Join(a.Path, "chunkserver")).NotTo(BeAnExistingFile())

	config := c.chunkserver()
	config.OnTargets.All = true
	c.started = nil
	g.Expect(c.run(t.Context(), config)).To(MatchError(And(ContainSubstring("target a: "), ContainSubstring("its disk is not mounted or was replaced"))))
	g.Expect(os.RemoveAll(filepath.Join(b.Path, "chunkserver"))).To(Succeed())
	g.Expect(c.run(t.Context(), c.chunkserver())).To(MatchError(ContainSubstring("its disk is not mounted or was replaced")), "and with none left, it does not start")
	g.Expect(c.started).To(BeNil())
}

func TestAMasterOnADiskOfItsOwnFindsItByItsName(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	a := c.target(t, "a")
	c.tell(t, spec.Member{Targets: []spec.Target{a}})
	config := c.chunkserver()
	config.OnTargets = &spec.OnTargets{Directory: "master", Data: "data", All: true, Initialize: &spec.Initialize{
		Granted: true, DataGlobs: []string{"metadata*"}, Files: []spec.InitialFile{{Name: "metadata.mfs", Content: "MFSM NEW"}},
	}}
	config.Files = []spec.File{{Path: c.path("run", "mfsmaster.cfg"), Content: "DATA_PATH = $(TARGET)\n", Mode: 0o640}}
	config.Recover = &spec.Recover{File: "$(TARGET)/metadata.mfs", Arguments: []string{"-a"}}
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(c.started).To(Equal([]string{"true", "-f", "start"}))
	g.Expect(os.ReadFile(c.path("run", "mfsmaster.cfg"))).To(BeEquivalentTo("DATA_PATH = " + a.Path + "/master/data\n"))
	g.Expect(os.ReadFile(filepath.Join(a.Path, "master", "data", "metadata.mfs"))).To(BeEquivalentTo("MFSM NEW"))

	g.Expect(os.Rename(filepath.Join(a.Path, "master/data/metadata.mfs"), filepath.Join(a.Path, "master/data/metadata.mfs.back"))).To(Succeed())
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(c.started).To(Equal([]string{"true", "-a", "-f", "start"}))

	// With two targets, the variable for one is ambiguous.
	c.tell(t, spec.Member{Targets: []spec.Target{a, c.target(t, "b")}})
	g.Expect(c.run(t.Context(), config)).To(MatchError(ContainSubstring("TARGET is not set")))
}

func TestADaemonOnDirectoriesIsPinnedAsItsNodeFileRequests(t *testing.T) {
	g, c := NewWithT(t), &container{root: t.TempDir()}
	c.tell(t, spec.Member{Pinning: &spec.Pinning{CPUs: "1"}})
	config := c.master()
	config.Daemon, config.NodeFile = "chunkserver/ssd", c.chunkserver().NodeFile
	g.Expect(c.run(t.Context(), config)).To(MatchError(errStarted))
	g.Expect(c.pinned).To(Equal([]string{"1"}))

	c.started, c.pinFault = nil, errors.New("CPU 1 is not there")
	g.Expect(c.run(t.Context(), config)).To(MatchError(ContainSubstring("CPU 1 is not there")))
	g.Expect(c.started).To(BeNil(), "a daemon that can't be bound is not started")
}

func TestASpecOfTargetsIsRefusedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(config *spec.Run)
		reason string
	}{
		"it does not say where the list of targets is": {func(config *spec.Run) { config.NodeFile = "" }, "not where their list is"},
		"the directory would be outside of the target": {func(config *spec.Run) { config.OnTargets.Directory = "../b" }, "can't be the name of the directory on a target"},
		"one of its directories is on one of its disks": {func(config *spec.Run) {
			config.Directories = []spec.Directory{{Path: filepath.Dir(filepath.Dir(config.Ledger)) + "/targets/a/chunkserver/data", Data: "data"}}
		}, "lie in each other"},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), &container{root: t.TempDir()}
			at.tell(t, spec.Member{Targets: []spec.Target{at.target(t, "a")}})
			config := at.chunkserver()
			c.change(&config)
			g.Expect(at.run(t.Context(), config)).To(MatchError(ContainSubstring(c.reason)))
			g.Expect(at.started).To(BeNil())
			g.Expect(at.path("targets", "a", "chunkserver")).NotTo(BeAnExistingFile())
		})
	}
}

func TestTheNameOfADaemon(t *testing.T) {
	g := NewWithT(t)
	owner := spec.Owner{Namespace: "storage", Name: "scratch"}
	g.Expect(daemon.Name(spec.Run{Owner: owner, Component: "chunkserver", Daemon: "chunkserver/ssd"})).To(Equal("storage/scratch/chunkserver/ssd"))
	g.Expect(daemon.Name(spec.Run{Owner: owner, Component: "master"})).To(Equal("storage/scratch/master"))
}
