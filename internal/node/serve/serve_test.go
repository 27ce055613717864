package serve_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/test/patience"
)

// node is a node in memory. The mounts are keyed by path.
type node struct {
	mutex  sync.Mutex
	mounts map[string][]serve.Mount
	// refused holds the reasons why targets are not proven, by name. broken holds targets whose mounts or unmounts do nothing.
	refused, broken map[string]string
	done            []string
	// mounted receives the name of each target after its mount if it is not nil. The mounts of the targets in hangs wait for their channel.
	mounted chan string
	hangs   map[string]chan struct{}
	// kept holds the files that stay open in the program of the last mount.
	kept []*os.File
}

func newNode() *node {
	return &node{mounts: map[string][]serve.Mount{}, refused: map[string]string{}, broken: map[string]string{}}
}

func (n *node) Mounts(path string) ([]serve.Mount, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.mounts[path], nil
}

func (n *node) Prove(_ context.Context, t serve.Target) (string, error) {
	if why := n.refused[t.Name]; why != "" {
		return "", errors.New(why)
	}
	return "/dev/" + t.Name, nil
}

func (n *node) Mount(_ context.Context, t serve.Target, device string, keep ...*os.File) error {
	n.mutex.Lock()
	n.kept = keep
	n.done = append(n.done, "mount "+t.Name)
	if n.broken[t.Name] == "" {
		n.mounts[t.Path] = []serve.Mount{mountOf(t, device)}
	}
	hangs := n.hangs[t.Name]
	n.mutex.Unlock()
	if hangs != nil {
		<-hangs
	}
	if n.mounted != nil {
		n.mounted <- t.Name
	}
	return nil
}

func (n *node) Unmount(_ context.Context, t serve.Target) error {
	n.mutex.Lock()
	hangs := n.hangs[t.Name]
	n.mutex.Unlock()
	if hangs != nil {
		<-hangs
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.done = append(n.done, "umount "+t.Name)
	if why := n.broken[t.Name]; why != "" {
		return errors.New(why)
	}
	delete(n.mounts, t.Path)
	return nil
}

// mountOf returns a target's mount as the kernel shows it.
func mountOf(t serve.Target, device string) serve.Mount {
	name := ldiskfs.ServiceOf(*t.Wanted.Given).Label(ldiskfs.Registered)
	return serve.Mount{Type: "lustre_tgt", Source: device, Options: "rw,svname=" + name + ",mgsnode=10.0.0.1@tcp,osd=osd-ldiskfs"}
}

// ost returns an OST with an index.
func ost(index int32) serve.Target {
	name := "ost" + string('0'+index)
	return serve.Target{
		Name: name, ID: "wwn-0x500" + v1alpha1.DeviceID('0'+index), Path: "/targets/" + name, Format: ldiskfs.Format{},
		Wanted: format.New{
			UUID: uuid, Mark: mark,
			Given: &v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: &index, ManagementNIDs: []string{"192.168.77.1@tcp"}},
		},
	}
}

func keeper(n serve.Node, targets ...serve.Target) *serve.Keeper {
	return &serve.Keeper{
		Node: n, Config: func() (serve.ServerConfig, string) { return serve.ServerConfig{Targets: targets}, "" },
		Before: func(context.Context, map[string]string) error { return nil },
		Period: time.Millisecond, Patience: time.Minute, Grace: 2 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
}

func TestAProvenTargetIsMountedOnceAndStays(t *testing.T) {
	g, n := NewWithT(t), newNode()
	k := keeper(n, ost(0), ost(1))
	for range 3 {
		g.Expect(k.Round(t.Context())).To(BeEmpty())
	}
	g.Expect(n.done).To(ConsistOf("mount ost0", "mount ost1"))
	delete(n.mounts, ost(1).Path) // a person unmounts it
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	g.Expect(n.done).To(ConsistOf("mount ost0", "mount ost1", "mount ost1"))
}

func TestATargetThatIsNotProvenIsNotMountedAndKeepsNoOther(t *testing.T) {
	g, n := NewWithT(t), newNode()
	n.refused["ost0"] = "its mark is another one"
	problems := keeper(n, ost(0), ost(1)).Round(t.Context())
	g.Expect(problems).To(HaveLen(1))
	g.Expect(problems["ost0"]).To(MatchError("target ost0 is not mounted: its mark is another one"))
	g.Expect(n.done).To(Equal([]string{"mount ost1"}))
}

func TestNothingIsMountedOverAnotherMount(t *testing.T) {
	for name, c := range map[string]struct {
		there []serve.Mount
		says  string
	}{
		"a plain filesystem": {[]serve.Mount{{Type: "ext4", Source: "/dev/sdx", Options: "rw"}}, "/dev/sdx (ext4), and not target ost0"},
		"another target":     {[]serve.Mount{mountOf(ost(1), "/dev/sdx")}, "/dev/sdx (lustre_tgt pfs-OST0001), and not target ost0"},
		"a client":           {[]serve.Mount{{Type: "lustre", Source: "10.0.0.1@tcp:/pfs", Options: "rw"}}, "10.0.0.1@tcp:/pfs (lustre), and not target ost0"},
		"it is twice there":  {[]serve.Mount{mountOf(ost(0), "/dev/a"), mountOf(ost(0), "/dev/a")}, "2 filesystems are mounted on each other"},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), newNode()
			n.mounts[ost(0).Path] = c.there
			k := keeper(n, ost(0))
			g.Expect(k.Round(t.Context())["ost0"]).To(MatchError(ContainSubstring(c.says)))
			g.Expect(k.Stop(t.Context())).To(MatchError(ContainSubstring(c.says)))
			g.Expect(n.done).To(BeEmpty(), "nor is it unmounted")
		})
	}
}

func TestAMountThatEndsWellAndIsNotThereIsAnError(t *testing.T) {
	g, n := NewWithT(t), newNode()
	n.broken["ost0"] = "it does nothing"
	g.Expect(keeper(n, ost(0)).Round(t.Context())["ost0"]).To(MatchError(ContainSubstring("nothing is mounted at /targets/ost0")))
}

func TestAtTheEndTheTargetsAreUnmounted(t *testing.T) {
	g, n := NewWithT(t), newNode()
	ctx, cancel := context.WithCancel(t.Context())
	k := keeper(n, ost(0), ost(1))
	ended := make(chan error, 1)
	n.mounted = make(chan string, 1)
	n.mounts[ost(0).Path] = []serve.Mount{mountOf(ost(0), "/dev/ost0")} // by the earlier program that was killed
	go func() { ended <- k.Run(ctx) }()
	g.Expect(<-n.mounted).To(Equal("ost1"))
	cancel()
	g.Expect(<-ended).To(Succeed())
	g.Expect(n.done).To(ConsistOf("mount ost1", "umount ost1", "umount ost0"))
	g.Expect(n.mounts).To(BeEmpty())
}

func TestATargetThatCannotBeUnmountedIsNamedAndKeepsNoOther(t *testing.T) {
	g, n := NewWithT(t), newNode()
	k := keeper(n, ost(0), ost(1))
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	n.broken["ost1"] = "target is busy"
	g.Expect(k.Stop(t.Context())).To(MatchError(And(ContainSubstring("target is busy"), ContainSubstring("target ost1 is still mounted at /targets/ost1"))))
	g.Expect(n.mounts).To(HaveLen(1))
	g.Expect(slices.Contains(n.done, "umount ost0")).To(BeTrue())
}

func TestEachProblemIsReportedOnce(t *testing.T) {
	g, n := NewWithT(t), newNode()
	var log bytes.Buffer
	k := keeper(n, ost(0))
	k.Log = slog.New(slog.NewTextHandler(&log, nil))
	n.refused["ost0"] = "no disk"
	for range 3 {
		k.Round(t.Context())
	}
	g.Expect(bytes.Count(log.Bytes(), []byte("no disk"))).To(Equal(1))
	delete(n.refused, "ost0")
	k.Round(t.Context())
	g.Expect(log.String()).To(ContainSubstring("a target is served"))
}

// config is a keeper's configuration, which can change.
type config struct {
	serve.ServerConfig
	missing string
}

func (t *config) keeper(n serve.Node) *serve.Keeper {
	k := keeper(n)
	k.Config = func() (serve.ServerConfig, string) { return t.ServerConfig, t.missing }
	return k
}

func TestATargetThatComesIsMountedAndOneThatGoesIsUnmountedWithoutARestart(t *testing.T) {
	g, n := NewWithT(t), newNode()
	says := &config{ServerConfig: serve.ServerConfig{Targets: []serve.Target{ost(0)}}}
	k := says.keeper(n)
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	says.Targets = []serve.Target{ost(0), ost(1)}
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	g.Expect(n.mounts).To(HaveLen(2))
	says.Targets = []serve.Target{ost(1)}
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	g.Expect(n.mounts).To(And(HaveLen(1), HaveKey(ost(1).Path)))
	g.Expect(n.done).To(Equal([]string{"mount ost0", "mount ost1", "umount ost0"}))
}

func TestMountsStayWhileTheListOfTargetsIsUnknown(t *testing.T) {
	g, n := NewWithT(t), newNode()
	says := &config{ServerConfig: serve.ServerConfig{Targets: []serve.Target{ost(0)}}}
	k := says.keeper(n)
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	says.ServerConfig, says.missing = serve.ServerConfig{}, "the file of this node can't be read"
	g.Expect(k.Round(t.Context())).To(HaveKeyWithValue("", MatchError("the file of this node can't be read")))
	says.ServerConfig, says.missing = serve.ServerConfig{Targets: []serve.Target{{Name: "ost0", Path: ost(0).Path, Waits: "its disk is not proven yet"}}}, ""
	g.Expect(k.Round(t.Context())["ost0"]).To(MatchError(ContainSubstring("its disk is not proven yet")))
	g.Expect(n.done).To(Equal([]string{"mount ost0"}))
	g.Expect(k.Stop(t.Context())).To(Succeed())
	g.Expect(n.mounts).To(BeEmpty(), "at the end it is unmounted")
}

func TestNothingIsMountedBeforeTheNodeIsReadyAndWhatIsMountedStays(t *testing.T) {
	g, n := NewWithT(t), newNode()
	k, asked := keeper(n, ost(0), ost(1)), 0
	k.Before = func(context.Context, map[string]string) error {
		asked++
		return errors.New("the network tcp does not come up")
	}
	n.mounts[ost(0).Path] = []serve.Mount{mountOf(ost(0), "/dev/ost0")}
	problems := k.Round(t.Context())
	g.Expect(problems).To(HaveLen(1))
	g.Expect(problems["ost1"]).To(MatchError("target ost1 is not mounted: the network tcp does not come up"))
	g.Expect(n.done).To(BeEmpty())
	n.mounts[ost(1).Path] = []serve.Mount{mountOf(ost(1), "/dev/ost1")}
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	g.Expect(asked).To(Equal(1), "nobody is asked while all is mounted")
}

func TestAHangingMountDelaysNoOtherAndIsNotStartedAgain(t *testing.T) {
	g, n := NewWithT(t), newNode()
	n.hangs = map[string]chan struct{}{"ost0": make(chan struct{})}
	k := keeper(n, ost(0), ost(1))
	k.Patience = 10 * time.Millisecond
	for range 3 {
		g.Expect(k.Round(t.Context())["ost0"]).To(MatchError(ContainSubstring("has not ended yet")))
	}
	g.Expect(k.Mounted()).To(Succeed())
	close(n.hangs["ost0"])
	g.Eventually(func() map[string]error { return k.Round(t.Context()) }).WithTimeout(patience.Bound(time.Minute)).Should(BeEmpty())
	g.Expect(n.done).To(ConsistOf("mount ost0", "mount ost1"))
}

func TestAServerIsReadyWhenAllOfItsTargetsAreMounted(t *testing.T) {
	g, n := NewWithT(t), newNode()
	says := &config{}
	k := says.keeper(n)
	g.Expect(k.Mounted()).To(MatchError(ContainSubstring("no target for the server yet")))
	says.Targets = []serve.Target{ost(0), {Name: "ost1", Waits: "its disk is not proven yet"}}
	g.Expect(k.Mounted()).To(MatchError(And(ContainSubstring("target ost0 is not mounted at"), ContainSubstring("its disk is not proven yet"))))
	k.Round(t.Context())
	says.Targets = []serve.Target{ost(0)}
	g.Expect(k.Mounted()).To(Succeed())
	says.missing = "no file"
	g.Expect(k.Mounted()).To(MatchError("no file"))
}

func TestTheNextServerUnmountsWhatAKilledOneHasMounted(t *testing.T) {
	g, n := NewWithT(t), newNode()
	n.mounts[ost(0).Path] = []serve.Mount{mountOf(ost(0), "/dev/ost0")}
	g.Expect(keeper(n, ost(0)).Stop(t.Context())).To(Succeed())
	g.Expect(n.mounts).To(BeEmpty())
}

func TestAHangingUnmountDelaysNoOtherAndIsNamed(t *testing.T) {
	g, n := NewWithT(t), newNode()
	k := keeper(n, ost(0), ost(1))
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	n.hangs = map[string]chan struct{}{"ost1": make(chan struct{})}
	k.Grace = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), k.Grace)
	defer cancel()
	g.Expect(k.Stop(ctx)).To(MatchError(And(HavePrefix("target ost1: "), ContainSubstring("has not ended yet"), Not(ContainSubstring("ost0")))))
	g.Expect(n.Mounts(ost(0).Path)).To(BeEmpty())
	close(n.hangs["ost1"])
}
