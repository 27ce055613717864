package filesystem

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

func diskOf(name string, role v1alpha1.Role, node string, slot int32) v1alpha1.StorageTarget {
	return v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}, Spec: v1alpha1.StorageTargetSpec{Role: role, Node: node, Slot: slot},
	}
}

func TestATargetIsShownWithTheStateOfItsFilesOrOfItsOnlyServer(t *testing.T) {
	g := NewWithT(t)
	own := []v1alpha1.StorageTarget{
		diskOf("files", v1alpha1.RoleStorage, "oss1", 0), diskOf("unlisted", v1alpha1.RoleStorage, "oss1", 0),
		diskOf("meta-0", v1alpha1.RoleMetadata, "oss1", 0), diskOf("meta-1", v1alpha1.RoleMetadata, "oss1", 1),
		diskOf("meta-3", v1alpha1.RoleMetadata, "oss1", 3), diskOf("store", v1alpha1.RoleManagement, "oss2", 0),
	}
	observation := backend.Observation{
		Targets: []backend.TargetStatus{{StorageTarget: "files", Online: true, CapacityBytes: 4, UsedBytes: 1, Removing: true}},
		Servers: []backend.ServerStatus{
			{Name: "meta-0.oss1", Role: v1alpha1.RoleMetadata, Node: "oss1", Online: true},
			{Name: "meta-1.oss1", Role: v1alpha1.RoleMetadata, Node: "oss1", Slot: 1, Message: "slot 1 is down"},
			{Name: "meta-3.oss2", Role: v1alpha1.RoleMetadata, Node: "oss2", Slot: 3, Online: true},
			{Name: "management.oss2", Role: v1alpha1.RoleManagement, Node: "oss2", Online: true},
		},
	}
	targets := targetViews(backendtest.Example{}, &v1alpha1.FileSystem{}, own, observation, func(string) bool { return false })
	g.Expect(targets).To(HaveLen(len(own)))
	service := func(name string) *v1alpha1.TargetService { return targets[name].Service }
	g.Expect(service("files")).To(HaveValue(Equal(v1alpha1.TargetService{
		State: v1alpha1.StateOnline, CapacityBytes: 4, UsedBytes: 1, Removal: v1alpha1.RemovalMovingData,
	})))
	g.Expect(service("unlisted")).To(BeNil())
	g.Expect(service("meta-0")).To(HaveValue(Equal(v1alpha1.TargetService{State: v1alpha1.StateOnline})))
	g.Expect(service("meta-1")).To(HaveValue(Equal(v1alpha1.TargetService{State: v1alpha1.StateOffline, Message: "slot 1 is down"})))
	g.Expect(service("meta-3")).To(BeNil(), "the server of that slot on another node has a target of its own")
	g.Expect(service("store")).To(HaveValue(HaveField("State", v1alpha1.StateOnline)))
	for name, view := range targets {
		g.Expect(view.Generation).To(Equal(int64(3)), name)
		g.Expect(view.Removal).To(BeNil(), "nobody asks")
	}
}

func TestAGrowingFilesystemWritesNoViewsOfNewTargetsAndNodes(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	order := clocktesting.NewFakePassiveClock(now)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1-2-3"}}
	reconciler := &Reconciler{Order: order}
	var made []v1alpha1.StorageTarget
	grows := func(after time.Duration, online ...bool) bool {
		p := &pass{Reconciler: reconciler, fs: fs, disks: disks{own: made}}
		for _, is := range online {
			p.observation.Targets = append(p.observation.Targets, backend.TargetStatus{Online: is})
		}
		p.observation.Servers = []backend.ServerStatus{{Online: true}}
		if slices.Contains(online, false) {
			fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue}}
		} else {
			fs.Status.Conditions = nil
		}
		order.SetTime(now.Add(after))
		return p.grows(growthLimit)
	}
	g.Expect(grows(0, false, false)).To(BeTrue())
	g.Expect(grows(20*time.Second, true, false)).To(BeTrue())
	g.Expect(grows(45*time.Second, true, false)).To(BeTrue(), "the last of them came online 25 seconds ago")
	g.Expect(grows(50*time.Second, true, false)).To(BeFalse(), "nothing came online for 30 seconds")
	made = append(made, diskOf("new", v1alpha1.RoleStorage, "oss1", 0))
	g.Expect(grows(51*time.Second, true, false)).To(BeTrue(), "a disk is taken up")
	g.Expect(grows(82*time.Second, true, false)).To(BeFalse())
	made[0].Status.Provisioned = &v1alpha1.TargetProvisioned{Finished: &metav1.Time{Time: now}}
	g.Expect(grows(83*time.Second, true, false)).To(BeTrue(), "a disk was made")
	g.Expect(grows(84*time.Second, true, true)).To(BeFalse(), "nothing is left to be done")

	own := []v1alpha1.StorageTarget{
		diskOf("new", v1alpha1.RoleStorage, "oss1", 0), diskOf("known", v1alpha1.RoleStorage, "oss1", 0), diskOf("removed", v1alpha1.RoleStorage, "oss1", 0),
	}
	own[1].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOnline}}
	node := func(name, reason string) v1alpha1.FileSystemNode {
		return v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.FileSystemNodeStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}},
		}}
	}
	view := views.FileSystem{
		Targets: map[string]views.Target{"new": {}, "known": {}, "removed": {Removal: &backend.Removal{}}},
		Nodes:   map[string]views.Node{"starts": {}, "runs": {}, "fails": {Troubled: true}},
	}
	withoutNews(view, own, []v1alpha1.FileSystemNode{
		node("starts", v1alpha1.ReasonStarting), node("runs", v1alpha1.ReasonHealthy), node("fails", v1alpha1.ReasonStarting),
	})
	g.Expect(slices.Sorted(maps.Keys(view.Targets))).To(Equal([]string{"known", "removed"}))
	g.Expect(slices.Sorted(maps.Keys(view.Nodes))).To(Equal([]string{"fails", "runs"}))
}

func TestTheUsedSpaceOfATargetIsReportedInStepsUnlessItIsDrained(t *testing.T) {
	g := NewWithT(t)
	written := func(usedBytes int64, removing bool) int64 {
		return serviceOf(&backend.TargetStatus{CapacityBytes: 1000, UsedBytes: usedBytes, Removing: removing}).UsedBytes
	}
	g.Expect([]int64{written(0, false), written(49, false), written(50, false), written(999, false), written(1000, false)}).To(Equal([]int64{0, 0, 50, 950, 1000}))
	g.Expect(written(49, true)).To(Equal(int64(49)))
	g.Expect(serviceOf(&backend.TargetStatus{UsedBytes: 7}).UsedBytes).To(Equal(int64(7)), "of a size that nobody knows")
}

func TestATargetOfAFilesystemThatCanNotMoveDataCanNotBeRemoved(t *testing.T) {
	g := NewWithT(t)
	leaves := diskOf("files", v1alpha1.RoleStorage, "oss1", 0)
	leaves.Spec.Remove = true
	fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: "Example"}}
	without := struct{ backend.Backend }{backendtest.Example{}} // embedded, it has only the methods of every backend
	targets := targetViews(without, fs, []v1alpha1.StorageTarget{leaves}, backend.Observation{}, func(string) bool { return true })
	g.Expect(targets["files"].Removal).To(HaveValue(HaveField("Never", "a filesystem of type Example can't move what is on one target to others")))
	g.Expect(targets["files"].Silent).To(BeTrue())
}

func TestANodeIsShownWithTheStateOfItsServers(t *testing.T) {
	g := NewWithT(t)
	nodes := []v1alpha1.FileSystemNode{{ObjectMeta: metav1.ObjectMeta{Name: "scratch-oss1-1"}, Spec: v1alpha1.FileSystemNodeSpec{Node: "oss1"}}}
	observation := backend.Observation{
		Servers: []backend.ServerStatus{
			{Name: "server-ssd.oss1", Role: v1alpha1.RoleStorage, Node: "oss1", StoragePool: "ssd", Online: true, Address: "10.0.0.1:1", Version: "1.0",
				Placement: &v1alpha1.Placement{CPUs: "0-7"}},
			{Name: "first.oss1", Role: v1alpha1.RoleMetadata, Node: "oss1", Message: "starts", Placement: &v1alpha1.Placement{}},
			{Name: "server-ssd.oss2", Role: v1alpha1.RoleStorage, Node: "oss2", StoragePool: "ssd", Online: true},
		},
		Targets: []backend.TargetStatus{
			{Node: "oss1", StoragePool: "ssd", StorageTarget: "a", Directory: "/targets/a", Online: true},
			{Node: "oss1", StoragePool: "ssd", Directory: "/data/ssd", Message: "not served"},
			{Node: "oss2", StoragePool: "ssd", StorageTarget: "b"},
		},
	}
	in := backend.Input{FileSystemNodes: nodes, Nodes: []backend.Node{{Name: "oss1", IP: "10.0.0.1", Ready: true}}}
	g.Expect(nodeViews(in, observation, func(node string) bool { return node == "oss1" })["scratch-oss1-1"].Silent).To(BeTrue())
	seenNodes := nodeViews(in, observation, func(node string) bool { return node != "oss1" })
	g.Expect(seenNodes).To(HaveLen(1), "of oss2 there is no object yet")
	g.Expect(seenNodes["scratch-oss1-1"].Members).To(Equal([]v1alpha1.MemberStatus{
		{Name: "first", State: v1alpha1.StateOffline, Message: "starts"},
		{Name: "server-ssd", State: v1alpha1.StateOnline, Address: "10.0.0.1:1", Version: "1.0", Placement: &v1alpha1.Placement{CPUs: "0-7"},
			Directories: []v1alpha1.DirectoryStatus{{Name: "/data/ssd", TargetService: v1alpha1.TargetService{State: v1alpha1.StateOffline, Message: "not served"}}}},
	}))
	g.Expect([]int{seenNodes["scratch-oss1-1"].Online, seenNodes["scratch-oss1-1"].Wanted}).To(Equal([]int{1, 2}))
	g.Expect(seenNodes["scratch-oss1-1"].Troubled).To(BeFalse())
}

func TestANodeIsTroubledWhenSomethingKeepsItsServersFromStarting(t *testing.T) {
	there := backend.Node{Name: "oss1", IP: "10.0.0.1", Ready: true}
	stalled := diskOf("files", v1alpha1.RoleStorage, "oss1", 0)
	stalled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
	for name, c := range map[string]struct {
		in       backend.Input
		troubled bool
	}{
		"by a pod that shows why it does not run": {backend.Input{Nodes: []backend.Node{there}, Pods: []backend.Pod{{Node: "oss1", Message: "refused"}}}, true},
		"by a disk that waits for a person":       {backend.Input{Nodes: []backend.Node{there}, Targets: []v1alpha1.StorageTarget{stalled}}, true},
		"when it is not Ready itself":             {backend.Input{Nodes: []backend.Node{{Name: "oss1", IP: "10.0.0.1"}}}, true},
		"when it is not there":                    {backend.Input{}, true},
		"and not while its pod starts on a disk that is made": {backend.Input{
			Nodes: []backend.Node{there}, Pods: []backend.Pod{{Node: "oss1"}}, Targets: []v1alpha1.StorageTarget{diskOf("files", v1alpha1.RoleStorage, "oss1", 0)},
		}, false},
		"and not by what is wrong elsewhere": {backend.Input{Nodes: []backend.Node{there}, Pods: []backend.Pod{{Node: "oss2", Message: "refused"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.FileSystemNodes = []v1alpha1.FileSystemNode{{ObjectMeta: metav1.ObjectMeta{Name: "scratch-oss1-1"}, Spec: v1alpha1.FileSystemNodeSpec{Node: "oss1"}}}
			observation := backend.Observation{Servers: []backend.ServerStatus{{Name: "server-ssd.oss1", Node: "oss1"}}}
			NewWithT(t).Expect(nodeViews(c.in, observation, func(string) bool { return false })["scratch-oss1-1"].Troubled).To(Equal(c.troubled))
		})
	}
}

// of24 returns the observation of a filesystem with the given number of nodes with 24 disks each, and five times as many clients, none of
// which is online.
func of24(nodes int) backend.Observation {
	var observation backend.Observation
	why := strings.Repeat("a sentence of the node that nobody expected to be as long as this one, ", 15)
	for n := range nodes {
		node := fmt.Sprintf("oss-%04d", n)
		observation.Servers = append(observation.Servers, backend.ServerStatus{Name: "server-ssd." + node, Node: node, Role: v1alpha1.RoleStorage, Message: why})
		for d := range 24 {
			observation.Targets = append(observation.Targets, backend.TargetStatus{StorageTarget: fmt.Sprintf("scratch-ssd-%04d-%02d", n, d), Node: node, Message: why})
		}
		for c := range 5 {
			observation.Clients = append(observation.Clients, backend.Client{Node: fmt.Sprintf("client-%04d-%d", n, c), Message: why})
		}
	}
	observation.Problems = []backend.Problem{{Reason: v1alpha1.ReasonServersMissing, Message: strings.Repeat(why, nodes)}}
	return observation
}

func TestTheStatusNamesTheWorstServersFirstAndStaysSmallAtAnySize(t *testing.T) {
	g := NewWithT(t)
	few := of24(1)
	few.Targets = few.Targets[:1]
	few.Targets = append(few.Targets, backend.TargetStatus{Directory: "/data/x", Node: "oss-0000"}, backend.TargetStatus{StorageTarget: "leaves", Removable: true})
	var names []string
	for _, m := range missing(few) {
		names = append(names, fmt.Sprintf("%s %s on %s", m.Kind, m.Name, m.Node))
	}
	g.Expect(names[:4]).To(Equal([]string{
		"Server server-ssd on oss-0000", "Target scratch-ssd-0000-00 on oss-0000", "Target /data/x on oss-0000", "Client  on client-0000-0",
	}))

	size := func(nodes int) int {
		fs := &v1alpha1.FileSystem{}
		describe(fs, of24(nodes), nil, nil, false, false, time.Now())
		raw, err := json.Marshal(fs)
		g.Expect(err).NotTo(HaveOccurred())
		return len(raw)
	}
	g.Expect(size(1000)).To(BeNumerically("<", 40<<10), "bytes")
	g.Expect(size(1000)).To(BeNumerically("<", size(100)+64), "it does not grow")
}

func TestTheStatusCountsServersByTheirVersions(t *testing.T) {
	g := NewWithT(t)
	observation := backend.Observation{Servers: []backend.ServerStatus{{Version: "1.1"}, {Version: "1.0"}, {Version: "1.1"}, {}}}
	g.Expect(versions(observation)).To(Equal([]v1alpha1.VersionCount{{Version: "1.0", Servers: 1}, {Version: "1.1", Servers: 2}}))
}

func TestAShortPauseOfAServerIsNotReportedForEachTarget(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	order := clocktesting.NewFakePassiveClock(now)
	own := []v1alpha1.StorageTarget{
		diskOf("ssd-1", v1alpha1.RoleStorage, "oss1", 0), diskOf("hdd-1", v1alpha1.RoleStorage, "oss1", 0),
		diskOf("ssd-2", v1alpha1.RoleStorage, "oss2", 0), diskOf("emptied", v1alpha1.RoleStorage, "oss1", 0),
		diskOf("meta-0", v1alpha1.RoleMetadata, "oss1", 0), diskOf("meta-1", v1alpha1.RoleMetadata, "oss1", 1),
	}
	for i, pool := range []string{"ssd", "hdd", "ssd", "ssd"} {
		own[i].Spec.StoragePool = pool
	}
	p := &pass{
		Reconciler: &Reconciler{Order: order}, disks: disks{own: own},
		fs: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1-2-3"}},
	}
	writtenAfter := func(after time.Duration, online bool) []string {
		p.observation.Servers = []backend.ServerStatus{
			{Name: "ssd.oss1", Role: v1alpha1.RoleStorage, Node: "oss1", StoragePool: "ssd", Online: online},
			{Name: "hdd.oss1", Role: v1alpha1.RoleStorage, Node: "oss1", StoragePool: "hdd", Online: true},
			{Name: "ssd.oss2", Role: v1alpha1.RoleStorage, Node: "oss2", StoragePool: "ssd", Online: true},
			{Name: "meta-0.oss1", Role: v1alpha1.RoleMetadata, Node: "oss1", Online: true},
			{Name: "meta-1.oss1", Role: v1alpha1.RoleMetadata, Node: "oss1", Slot: 1, Online: online},
		}
		order.SetTime(now.Add(after))
		view := views.FileSystem{Targets: map[string]views.Target{}}
		for i := range own {
			view.Targets[own[i].Name] = views.Target{}
		}
		view.Targets["emptied"] = views.Target{Removal: &backend.Removal{}}
		p.leavePauses(view)
		return slices.Sorted(maps.Keys(view.Targets))
	}
	all := []string{"emptied", "hdd-1", "meta-0", "meta-1", "ssd-1", "ssd-2"}
	others := []string{"emptied", "hdd-1", "meta-0", "ssd-2"}
	g.Expect(writtenAfter(0, true)).To(Equal(all))
	g.Expect(writtenAfter(10*time.Second, false)).To(Equal(others), "what a person waits for is told")
	g.Expect(writtenAfter(39*time.Second, false)).To(Equal(others))
	g.Expect(writtenAfter(40*time.Second, false)).To(Equal(all), "it is away for 30 seconds")
	g.Expect(writtenAfter(50*time.Second, true)).To(Equal(all))
	g.Expect(writtenAfter(60*time.Second, false)).To(Equal(others), "it is another pause")
}
