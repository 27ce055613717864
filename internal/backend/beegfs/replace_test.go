package beegfs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// spare is an empty disk of node oss2 that was added to the pool ssd.
const spare = "scratch-oss2-ssd-spare"

// lostSide is a mirrored BeeGFS that has lost the disk ssd2, the secondary side of a buddy group. A spare disk of its node is made and proven.
func lostSide(t *testing.T) backend.Input {
	t.Helper()
	in := mirrored(t, nil)
	unready(diskOf(&in, ssd2), v1alpha1.ReasonTargetMissing, "the disk is gone")
	diskOf(&in, ssd2).Status.Registration = "1F-6553F100-2"
	lost := toldOf(&in, ssd2)
	lost.Online, lost.Status, lost.Consistency = false, cli.Unreachable, cli.Behind
	in.Targets = append(in.Targets, disk("oss2", "ssd-spare", v1alpha1.RoleStorage, "ssd", 0, 1600e9))
	in.Inventories["oss2"] = withDisks(in.Inventories["oss2"], "ssd-s1", "ssd-spare", "hdd-0")
	for i := range in.Pods {
		in.Pods[i].MetadataMirrored = true
	}
	ask(&in, v1alpha1.ReplacePlan)
	return in
}

func withDisks(inventory v1alpha1.NodeInventoryStatus, ids ...string) v1alpha1.NodeInventoryStatus {
	for _, id := range ids {
		inventory.BlockDevices = append(inventory.BlockDevices, v1alpha1.BlockDevice{KernelName: "k-" + id, IDs: []string{id}, SizeBytes: 1600e9})
	}
	return inventory
}

// ask sets the annotation of the lost disk.
func ask(in *backend.Input, word string) {
	diskOf(in, ssd2).Annotations = map[string]string{v1alpha1.AnnotationReplaceDisk: word}
}

// messageOf returns the message about a disk in the status.
func messageOf(in backend.Input, name string) string {
	for _, t := range New().Observe(in).Targets {
		if t.StorageTarget == name {
			return t.Message
		}
	}
	return ""
}

var planHash = regexp.MustCompile(`parallelfs.dev/replace-disk=(sha256:[0-9a-f]{64})$`)

// planned is the hash of the plan for the lost disk, empty when there is none.
func planned(in backend.Input) string {
	found := planHash.FindStringSubmatch(messageOf(in, ssd2))
	if found == nil {
		return ""
	}
	return found[1]
}

func TestNoDiskReplacesALostOneOfABuddyGroupWhen(t *testing.T) {
	group := func(in *backend.Input) *backend.Mirror { return in.MirrorWith(v1alpha1.RoleStorage, idOf(*in, ssd2)) }
	buddy := func(in *backend.Input) *backend.Target { return listed(*in, v1alpha1.RoleStorage, group(in).Primary) }
	for name, c := range map[string]struct {
		change func(in *backend.Input)
		says   string
	}{
		"its group has no other side": {func(in *backend.Input) {
			in.State.Mirrors = slices.DeleteFunc(in.State.Mirrors, func(m backend.Mirror) bool { return m.Secondary == idOf(*in, ssd2) && m.Role == v1alpha1.RoleStorage })
		}, "in no buddy group, so what was on its disk is nowhere else"},
		"it is still the primary side": {func(in *backend.Input) {
			for i := range in.State.Mirrors {
				if m := &in.State.Mirrors[i]; m.Role == v1alpha1.RoleStorage && m.Secondary == idOf(*in, ssd2) {
					m.Primary, m.Secondary = m.Secondary, m.Primary
				}
			}
		}, "as the primary side of buddy group"},
		"the other side is behind too": {func(in *backend.Input) { buddy(in).Consistency = cli.Behind },
			"is Needs-resync, so the lost disk may have files that no other disk has"},
		"the other side is bad": {func(in *backend.Input) { buddy(in).Consistency = cli.Bad }, "so the lost disk may have files"},
		"the other side is away": {func(in *backend.Input) { buddy(in).Online, buddy(in).Status = false, cli.Unreachable },
			"is Offline, so the lost disk may have files"},
		"the server of the other side is being stopped": {func(in *backend.Input) {
			for i := range in.Pods {
				if p := &in.Pods[i]; p.Component == componentStorage && p.StoragePool == "ssd" && p.Node == "oss1" {
					p.Terminating = true
				}
			}
		}, "is away (it is being stopped)"},
		"there is no answer": {func(in *backend.Input) { in.State, in.StateError = nil, "connection refused" }, "the management service does not answer: connection refused"},
		"its disk is mounted": {func(in *backend.Input) {
			diskOf(in, ssd2).Status.Conditions = diskOf(in, ssd1).Status.Conditions
		}, "the agent has the disk mounted and proven"},
		"its node has the disk": {func(in *backend.Input) { in.Inventories["oss2"] = withDisks(in.Inventories["oss2"], "ssd-s0") }, "node oss2 still has the disk"},
		"another node has the disk, by the UUID of its filesystem": {func(in *backend.Input) {
			inventory := withDisks(in.Inventories["c1"], "other")
			inventory.BlockDevices[0].Signatures = []v1alpha1.Signature{{Device: "k-other", Type: "xfs", UUID: "uuid-of-" + ssd2}}
			in.Inventories["c1"] = inventory
		}, "node c1 still has the disk"},
		"the disks of its node are not known": {func(in *backend.Input) { delete(in.Inventories, "oss2") }, "has not listed all of its disks"},
		"a disk of its node could not be looked at": {func(in *backend.Input) {
			in.Inventories["oss2"].BlockDevices[0].Unusable = []string{"k-ssd-s1 could not be looked at completely: EIO"}
		}, "has not listed all of its disks"},
		"the agent of its node is dead, and its inventory may be outdated": {func(in *backend.Input) {
			in.Unconfirmed = map[string]string{"oss2": "the agent of node oss2 is not Ready"}
		}, "nothing is replaced: the agent of node oss2 is not Ready"},
		"BeeGFS still reaches it":     {func(in *backend.Input) { toldOf(in, ssd2).Online = true }, "BeeGFS still reaches target"},
		"its registration is unknown": {func(in *backend.Input) { diskOf(in, ssd2).Status.Registration = "" }, "its registration was never read"},
		"there is no other disk": {func(in *backend.Input) {
			in.Targets = slices.DeleteFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Name == spare })
		}, "add an empty disk of node oss2 to pool ssd"},
		"the other disk is not formatted yet":   {func(in *backend.Input) { diskOf(in, spare).Status.Provisioned = nil }, "add an empty disk"},
		"the other disk holds data from before": {func(in *backend.Input) { diskOf(in, spare).Status.Record = &v1alpha1.TargetRecord{} }, "add an empty disk"},
		"the other disk is too small": {func(in *backend.Input) { diskOf(in, spare).Spec.Device.SizeBytes, buddy(in).UsedBytes = 1<<30, 2<<30 },
			"has 1GiB, and 2GiB are in use on target"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), lostSide(t)
			hash := planned(in)
			g.Expect(hash).NotTo(BeEmpty(), messageOf(in, ssd2))
			ask(&in, hash)
			c.change(&in)
			g.Expect(messageOf(in, ssd2)).To(ContainSubstring(c.says), "an approval from before is good for nothing")
			before := given(in)
			g.Expect(given(recorded(t, in))).To(Equal(before))
		})
	}
}

func TestAPlanIsGoodForExactlyTheDisksThatItNames(t *testing.T) {
	g, in := NewWithT(t), lostSide(t)
	hash := planned(in)
	g.Expect(messageOf(in, ssd2)).To(Equal(fmt.Sprintf("disk %s can replace the lost one as target 3, and BeeGFS copies all of target 1 to it. "+
		"Approve: kubectl -n storage annotate --overwrite storagetarget %s parallelfs.dev/replace-disk=%s", spare, ssd2, hash)))
	g.Expect(messageOf(in, spare)).To(ContainSubstring("it gets no number while a lost disk of its node and pool is to be replaced"))
	g.Expect(given(recorded(t, in))).To(Equal(given(in)), "a plan alone changes nothing")
	g.Expect(idOf(recorded(t, in), spare)).To(BeZero())

	ask(&in, hash)
	diskOf(&in, spare).Status.Provisioned.UUID = "another"
	g.Expect(messageOf(in, ssd2)).To(HavePrefix("the plan has changed; "))
	g.Expect(idOf(recorded(t, in), spare)).To(BeZero(), "the disk was made anew since")

	diskOf(&in, ssd2).Annotations = nil
	g.Expect(idOf(recorded(t, in), spare)).To(Equal(int32(7)), "a person who asks for nothing has one disk more, with a number of its own")
}

func TestTwoLostDisksAreNotReplacedByOne(t *testing.T) {
	g, in := NewWithT(t), lostSide(t)
	const other = "scratch-oss2-ssd-s1"
	unready(diskOf(&in, other), v1alpha1.ReasonTargetMissing, "the disk is gone")
	diskOf(&in, other).Status.Registration = "1F-6553F100-3"
	lost := toldOf(&in, other)
	lost.Online, lost.Status = false, cli.Unreachable
	inventory := in.Inventories["oss2"]
	inventory.BlockDevices = inventory.BlockDevices[1:]
	in.Inventories["oss2"] = inventory
	diskOf(&in, other).Annotations = map[string]string{v1alpha1.AnnotationReplaceDisk: v1alpha1.ReplacePlan}
	ask(&in, planned(in))
	diskOf(&in, other).Annotations[v1alpha1.AnnotationReplaceDisk] = planHash.FindStringSubmatch(messageOf(in, other))[1]
	after := recorded(t, in)
	g.Expect([]int32{idOf(after, spare), idOf(after, ssd2), idOf(after, other)}).To(ConsistOf(int32(3), BeZero(), int32(4)))
}

// replacing simulates the cluster and a BeeGFS around an operator that may be killed: each write of the operator takes effect immediately.
type replacing struct {
	t  *testing.T
	in backend.Input
	// kill is the number of the effect after which the operator is killed; effects are counted from 1.
	kill, effects int
	// jobs has the existing Jobs, and ordered is true when the other side has the order to copy everything.
	jobs    []string
	ordered bool
	// told has the configured targets of the server on oss2, and made is true when the new disk was initialized.
	told []v1alpha1.MemberTarget
	made bool
	// copied is the part of the other side's data that the new disk has.
	copied string
}

// effect is one write of the operator. It is false when the operator was killed before it.
func (r *replacing) effect(do func()) bool {
	r.effects++
	if r.effects == r.kill {
		return false
	}
	do()
	r.world()
	return true
}

// pass is one pass of the operator, until it is killed.
func (r *replacing) pass() {
	allocation, err := New().Allocate(r.in)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, n := range allocation.Nodes {
		if !r.effect(func() { r.in.FileSystemNodes = assign.WithRecords(r.in.FileSystemNodes, []v1alpha1.FileSystemNode{n}) }) {
			return
		}
	}
	made, kept := jobsOf(r.t, r.in)
	for _, name := range slices.Clone(r.jobs) {
		if !slices.Contains(kept, name) && !r.effect(func() { r.jobs = slices.DeleteFunc(r.jobs, func(n string) bool { return n == name }) }) {
			return
		}
	}
	for _, job := range made {
		if !r.effect(func() {
			var told spec.Configure
			if err := json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.ToldAnnotation]), &told); err != nil {
				r.t.Fatal(err)
			}
			for _, line := range lines(r.in, told.Commands) {
				r.ordered = r.ordered || line == "--startresync --nodetype=storage --targetid=3 --timestamp=1"
			}
			r.jobs = append(r.jobs, job.Name)
			r.in.Jobs = append(r.in.Jobs, backend.Job{Name: job.Name, Component: componentConfigure, Succeeded: true, Ended: r.in.State.Asked})
		}) {
			return
		}
	}
	for _, n := range New().Nodes(r.in) {
		for _, m := range n.Spec.Members {
			if n.Spec.Node == "oss2" && m.Name == storageMemberName("ssd") && !r.effect(func() { r.told = m.Targets }) {
				return
			}
		}
	}
	for _, restart := range New().Observe(r.in).Restarts {
		if restart.Safe && !r.effect(func() { r.restart(restart.Pod.Name) }) {
			return
		}
	}
}

// restart starts a server with its node file: the server initializes an empty disk if that is permitted, and registers its targets.
func (r *replacing) restart(pod string) {
	i := slices.IndexFunc(r.in.Pods, func(p backend.Pod) bool { return p.Name.Name == pod })
	r.in.Pods[i].Started, r.in.Pods[i].Seen = r.in.State.Asked, r.in.State.Asked
	for _, t := range r.told {
		switch {
		case pod != "storage-ssd--oss2":
			r.t.Fatalf("%s restarts", pod)
		case t.Name != spare || t.Path == "":
		case !r.made && !t.Granted:
			r.t.Fatal("an empty disk is told without the permission to initialize it")
		case t.Files[registrationFile] != "1F-6553F100-2\n":
			r.t.Fatalf("BeeGFS refuses the server: the disk registers with %q", t.Files)
		default:
			r.made = true
			target := listed(r.in, v1alpha1.RoleStorage, t.ID)
			target.Online, target.Status, target.Consistency = true, cli.Reachable, cli.Behind
		}
	}
}

// world runs BeeGFS: the other side copies everything if it has that order, and otherwise only the recent changes.
func (r *replacing) world() {
	used := map[int32]string{}
	for _, t := range r.told {
		if other := used[t.ID]; t.Path != "" && other != "" {
			r.t.Fatalf("the server is told of %s and %s with the number %d", other, t.Name, t.ID)
		}
		if t.Path != "" {
			used[t.ID] = t.Name
		}
	}
	r.in.State.Asked = r.in.State.Asked.Add(20 * time.Minute)
	if target := listed(r.in, v1alpha1.RoleStorage, 3); target.Online && r.copied == "" {
		r.copied = "what has changed"
		if r.ordered {
			r.copied = "everything"
		}
		target.Consistency = cli.Good
	}
}

func TestALostDiskIsReplacedWithEverythingCopiedWhateverWriteTheOperatorIsKilledAfter(t *testing.T) {
	last := 1
	for kill := 0; kill <= last; kill++ {
		r := &replacing{t: t, in: lostSide(t), kill: kill}
		for _, j := range r.in.Jobs {
			r.jobs = append(r.jobs, j.Name)
		}
		state := *r.in.State
		r.in.State = &state
		ask(&r.in, planned(r.in))
		for range 8 {
			r.pass()
		}
		if kill == 0 {
			last = r.effects
		}
		g := NewWithT(t)
		g.Expect(r.copied).To(Equal("everything"), "killed after %d", kill)
		record, ok := recordTarget(r.in, spare)
		g.Expect(ok).To(BeTrue())
		g.Expect(record).To(And(HaveField("ID", int32(3)), HaveField("Replaces", ssd2), HaveField("Initialized", Not(BeNil())), HaveField("FullResync", Not(BeNil()))))
		g.Expect(idOf(r.in, ssd2)).To(BeZero(), "the lost disk has no number any more, and gets none")
		seen := New().Observe(r.in)
		g.Expect(seen.Problems).To(BeEmpty())
		g.Expect(seen.Restarts).To(BeEmpty())
		g.Expect(r.jobs).NotTo(ContainElement(ContainSubstring(resyncPrefix)))
		g.Expect(r.told).To(ContainElement(And(HaveField("Name", spare), HaveField("Granted", false), HaveField("Path", Not(BeEmpty())))))
	}
	NewWithT(t).Expect(last).To(BeNumerically(">", 5))
}

func recordTarget(in backend.Input, name string) (v1alpha1.MemberTarget, bool) {
	for _, a := range in.Given() {
		if t, ok := a.Target(name); ok {
			return t, true
		}
	}
	return v1alpha1.MemberTarget{}, false
}

// approved is lostSide after the approval.
func approved(t *testing.T) backend.Input {
	t.Helper()
	in := lostSide(t)
	ask(&in, planned(in))
	return recorded(t, in)
}

func TestADiskThatReplacesALostOneIsNotUsedBeforeEverythingIsOrdered(t *testing.T) {
	g, in := NewWithT(t), approved(t)
	told := func() (out v1alpha1.MemberTarget) {
		for _, n := range New().Nodes(in) {
			for _, m := range n.Spec.Members {
				for _, t := range m.Targets {
					if t.Name == spare {
						out = t
					}
				}
			}
		}
		return out
	}
	g.Expect(told()).To(And(HaveField("ID", int32(3)), HaveField("Path", ""), HaveField("Granted", false)))
	g.Expect(New().Observe(in).Restarts).To(BeEmpty())
	g.Expect(messageOf(in, spare)).To(Equal("it replaces " + ssd2 + " as target 3, and is used when a full resync is ordered"))

	// BeeGFS may still list the old disk as online for a while; the new one is not online then.
	toldOf(&in, spare).Online = true
	record, _ := recordTarget(recorded(t, in), spare)
	g.Expect(record.Initialized).To(BeNil())
	toldOf(&in, spare).Online = false

	made, _ := jobsOf(t, in)
	name := resyncJobName(in.FileSystem, &record)
	g.Expect(made).To(ContainElement(HaveField("Name", name)))
	in.Jobs = append(in.Jobs, backend.Job{Name: name, Component: componentConfigure, Failed: true, Message: "Could not check for running jobs."})
	g.Expect(told().Path).To(BeEmpty())
	g.Expect(New().Observe(in).Repeat).To(ContainElement(name))
	g.Expect(messageOf(in, spare)).To(HaveSuffix("is ordered: Could not check for running jobs."))
	in.Jobs[len(in.Jobs)-1] = backend.Job{Name: name, Component: componentConfigure, Succeeded: true}
	in = recorded(t, in)
	g.Expect(told()).To(And(HaveField("Path", Not(BeEmpty())), HaveField("Granted", true), HaveField("Expected", false),
		HaveField("Files", HaveKeyWithValue("targetID", v1alpha1.VariableValue("1F-6553F100-2\n")))))
}

func TestAFullResyncIsRequestedOnlyWhileTheOtherSideIsWhole(t *testing.T) {
	g, in := NewWithT(t), approved(t)
	listed(in, v1alpha1.RoleStorage, 1).Consistency = cli.Bad
	made, _ := jobsOf(t, in)
	g.Expect(made).NotTo(ContainElement(HaveField("Name", ContainSubstring(resyncPrefix))))
	g.Expect(messageOf(in, spare)).To(ContainSubstring("target 1, the other side of buddy group 1, is Bad"))
}

func TestAServerRestartsForADiskThatReplacesALostOneOnlyWhereNoGoodSideIsOnIt(t *testing.T) {
	ordered := func() backend.Input {
		in := approved(t)
		for i := range in.FileSystemNodes {
			for j := range in.FileSystemNodes[i].Spec.Members {
				for k := range in.FileSystemNodes[i].Spec.Members[j].Targets {
					if target := &in.FileSystemNodes[i].Spec.Members[j].Targets[k]; target.Name == spare {
						target.FullResync = new(metav1.NewTime(in.State.Asked.Add(-10 * time.Minute)))
					}
				}
			}
		}
		in.State.Asked = in.State.Asked.Add(time.Hour)
		return in
	}
	restarts := func(in backend.Input) []bool {
		var out []bool
		for _, r := range New().Observe(in).Restarts {
			out = append(out, r.Safe)
		}
		return out
	}
	g, in := NewWithT(t), ordered()
	g.Expect(restarts(in)).To(Equal([]bool{true}), "the lost target needs a resync, and only this restart brings it")
	g.Expect(messageOf(in, spare)).To(HaveSuffix("a full resync is ordered, and its server restarts with it"))

	in = ordered()
	listed(in, v1alpha1.RoleStorage, 2).Consistency = cli.Behind
	g.Expect(restarts(in)).To(Equal([]bool{false}), "target 2 is copied from target 4, which is on this server")

	in = ordered()
	listed(in, v1alpha1.RoleStorage, 4).Consistency = cli.Behind
	g.Expect(restarts(in)).To(Equal([]bool{false}), "target 4 is being copied to on this server")
}

func TestADiskThatReplacesALostOneProtectsNothingBeforeItIsGood(t *testing.T) {
	g, in := NewWithT(t), approved(t)
	for i := range in.FileSystemNodes {
		for j := range in.FileSystemNodes[i].Spec.Members {
			for k := range in.FileSystemNodes[i].Spec.Members[j].Targets {
				if target := &in.FileSystemNodes[i].Spec.Members[j].Targets[k]; target.Name == spare {
					target.FullResync, target.Initialized = new(metav1.NewTime(noon)), new(metav1.NewTime(noon))
				}
			}
		}
	}
	copying := toldOf(&in, spare)
	copying.Online, copying.Status, copying.UsedBytes = true, cli.Reachable, 3<<30
	listed(in, v1alpha1.RoleStorage, 1).UsedBytes = 12 << 30
	g.Expect(messageOf(in, spare)).To(Equal("it replaces " + ssd2 + ", and is no copy yet: everything is copied from target 1, and 3GiB of about 12GiB are there"))
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(ContainElement(HaveField("Reason", v1alpha1.ReasonDataInconsistent)))
	g.Expect(seen.Sole).To(HaveKey("storage-ssd--oss1"))
	copying.Consistency = cli.Good
	g.Expect(New().Observe(in).Problems).To(BeEmpty())
	g.Expect(New().Observe(in).Sole).NotTo(HaveKey("storage-ssd--oss1"))
}

func TestTheSelectorDoesNotCountALostDiskThatIsToBeReplaced(t *testing.T) {
	for name, in := range map[string]backend.Input{"when the plan is asked for": lostSide(t), "after the approval": approved(t)} {
		t.Run(name, func(t *testing.T) {
			allocation, err := New().Allocate(in)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(allocation.TargetNodes.Replaced).To(Equal([]string{ssd2}))
		})
	}
}

func TestAFullResyncIsProvenByTheOutputOfTheTool(t *testing.T) {
	for said, proven := range map[string]bool{
		"Resync request sent. ": true,
		"Resync request not successful; secondary target ID: 102; nodeID: 1; Error: Unknown storage target":                     true,
		"Resync request not successful; secondary target ID: 1023; nodeID: 1; Error: Communication error":                       false,
		"Could not override last buddy communication timestamp.Resync request not successful; primary target ID: 101; nodeID: ": false,
		"Resync already running. targetID: 101; Use option --restart to abort running resync and start over.":                   false,
		"Could not check for running jobs. targetID: 101; error: Communication error":                                           false,
	} {
		argv, proof := cli.Bare("7.4.6").FullResync(102, 1)
		NewWithT(t).Expect(strings.Join(argv, " ")).To(Equal("--startresync --nodetype=storage --targetid=102 --timestamp=1"))
		NewWithT(t).Expect(regexp.MustCompile(proof).MatchString(said)).To(Equal(proven), said)
	}
	argv, proof := cli.Bare("8.3.1").FullResync(102, 1)
	NewWithT(t).Expect(strings.Join(argv, " ")).To(Equal("mirror resync start s:1 --timestamp=1"))
	NewWithT(t).Expect(regexp.MustCompile(proof).MatchString("Successfully sent resync request. Progress can be monitored with 'beegfs mirror resync stats'.\n")).To(BeTrue())
}

func TestTheDiskOfAMetadataServerIsNotReplacedAndItsStorageTargetReportsIt(t *testing.T) {
	g, in := NewWithT(t), lostSide(t)
	server := metadataServers(in)[0]
	name := server.Targets[0].Name
	says := func() string {
		for _, s := range New().Observe(in).Servers {
			if s.Target == name {
				return s.Message
			}
		}
		return ""
	}
	diskOf(&in, name).Annotations = map[string]string{v1alpha1.AnnotationReplaceDisk: v1alpha1.ReplacePlan}
	g.Expect(says()).NotTo(ContainSubstring("can't be replaced"), "it serves, so that there is nothing to replace")
	serverOf(in, v1alpha1.RoleMetadata, server.ID).Online = false
	g.Expect(says()).To(HavePrefix("the disk of a metadata server can't be replaced with its number yet: bring it back, and remove the annotation"))
}
