package lustre_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// duo is everything, running, with OSTs that belong to the pair n1 and n2.
type duo struct {
	*WithT
	t    *testing.T
	in   backend.Input
	said map[string]*backend.State
}

// firstOST is the place of the first OST in the answer of a node: an MDT and an OST, and the same again.
const firstOST = 1

func pairOf(t *testing.T) *duo {
	t.Helper()
	d := &duo{WithT: NewWithT(t), t: t, said: saying()}
	d.in = running(t)
	d.in.FileSystem.Spec.StoragePools[0].Lustre = &v1alpha1.LustrePool{Pairs: []v1alpha1.LustrePair{{Nodes: []string{"n1", "n2"}}}}
	for i := range d.in.Targets {
		s := &d.in.Targets[i]
		if s.Spec.Role != v1alpha1.RoleStorage {
			continue
		}
		if s.Spec.SecondNode = "n2"; s.Spec.Node == "n2" {
			s.Spec.SecondNode = "n1"
		}
		s.Spec.Device.WWN, s.Spec.Device.Serial = "0x"+s.Name, "serial-"+s.Name
	}
	for _, node := range []string{"n1", "n2"} {
		inventory := d.in.Inventories[node]
		for i := range d.in.Targets {
			is := d.in.Targets[i].Spec.Device
			inventory.BlockDevices = append(inventory.BlockDevices, v1alpha1.BlockDevice{
				KernelName: "sda", IDs: []string{string(is.ID)}, WWN: is.WWN, Serial: is.Serial, SizeBytes: is.SizeBytes,
			})
		}
		d.in.Inventories[node] = inventory
	}
	backendtest.Remember(t, lustre.New(), &d.in)
	lustre.New().TellTargets(d.in, d.in.Targets)
	d.told()
	d.in = d.in.Indexed()
	return d
}

// told makes the agents of all nodes write the configuration of their servers.
func (d *duo) told() {
	d.in.FileSystemNodes = lustre.New().Nodes(d.in)
	for i := range d.in.FileSystemNodes {
		d.in.FileSystemNodes[i].Status.Agent = &v1alpha1.NodeAgentStatus{ObservedGeneration: d.in.FileSystemNodes[i].Generation}
	}
}

func (d *duo) target(name string) *v1alpha1.StorageTarget {
	d.t.Helper()
	i := slices.IndexFunc(d.in.Targets, func(s v1alpha1.StorageTarget) bool { return s.Name == name })
	d.Expect(i).To(BeNumerically(">=", 0))
	return &d.in.Targets[i]
}

func (d *duo) node(name string) *backend.Node {
	i := slices.IndexFunc(d.in.Nodes, func(n backend.Node) bool { return n.Name == name })
	return &d.in.Nodes[i]
}

// drained cordons a node as a person does, and releases it as the manager does.
func (d *duo) drained(name string) {
	d.node(name).Cordoned = true
	d.in.FileSystem.Status.Maintenance = append(d.in.FileSystem.Status.Maintenance, v1alpha1.NodeMaintenance{Node: name})
}

// uncordoned ends that.
func (d *duo) uncordoned(name string) {
	d.node(name).Cordoned = false
	d.in.FileSystem.Status.Maintenance = nil
}

// down takes the power of a node away.
func (d *duo) down(name string) {
	d.node(name).Ready = false
	delete(d.said, name)
	d.in.Unanswered = map[string]string{name: "nobody listens"}
	for i := range d.in.Pods {
		if d.in.Pods[i].Node == name {
			d.in.Pods[i].Ready = false
		}
	}
	d.asked()
}

func (d *duo) asked() {
	d.t.Helper()
	ask(d.t, &d.in, d.said)
	d.in = d.in.Indexed()
}

// held makes a node the holder of a target that it has taken up, as the agents write it.
func (d *duo) held(name, node string, number int64) {
	d.target(name).Status.Holder = &v1alpha1.TargetHolder{Node: node, Number: number, TakenUp: &metav1.Time{Time: time.Unix(1, 0)}}
}

// mounts moves the first OST of n1 from the answer of one node to that of another.
func (d *duo) mounts(from, to string) {
	d.t.Helper()
	ost := slices.IndexFunc(d.said[from].Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && s.ID == 1 })
	d.Expect(ost).To(BeNumerically(">=", 0))
	d.said[to].Targets = append(d.said[to].Targets, d.said[from].Targets[ost])
	d.said[from].Targets = slices.Delete(d.said[from].Targets, ost, ost+1)
	d.asked()
}

func (d *duo) moves() map[string]backend.Move {
	out := map[string]backend.Move{}
	for _, m := range lustre.New().Moves(d.in) {
		out[m.Target] = m
	}
	return out
}

func TestATargetOfTwoNodesNamesBothOnItsDiskAndInBothNodeFiles(t *testing.T) {
	d := pairOf(t)
	d.Expect(d.target("ost0-n2").Spec.Lustre.ServiceNodes).To(Equal([]v1alpha1.LustreServiceNode{
		{NIDs: []string{"10.1.0.2@o2ib", "10.2.0.2@o2ib"}}, {NIDs: []string{"10.1.0.1@o2ib", "10.2.0.1@o2ib"}},
	}), "its own node first")
	for node, ids := range map[string]map[string]int32{
		"n1": {"ost0-n1": 1, "ost1-n1": 2, "ost0-n2": 0, "ost1-n2": 0}, "n2": {"ost0-n1": 0, "ost1-n1": 0, "ost0-n2": 3, "ost1-n2": 4},
	} {
		told := map[string]int32{}
		for _, of := range backendtest.Configured(lustre.New(), d.in, node)["ost-ssd"].Targets {
			told[of.Name] = of.ID
			d.Expect(of.UUID).To(Equal("uuid-" + of.Name))
			d.Expect(of.Turn).To(Equal(of.Name[len("ost0-"):] + " 0"))
		}
		d.Expect(told).To(Equal(ids), "the index is recorded on its own node alone")
	}
	backendtest.Remember(t, lustre.New(), &d.in)
	d.Expect(lustre.New().Observe(d.in).Problems).To(BeEmpty())
	d.Expect(d.moves()).To(BeEmpty())
}

func TestANodeThatHasNoDiskOfItsOwnHasAMemberForThoseOfTheOther(t *testing.T) {
	d := pairOf(t)
	d.in.Targets = slices.DeleteFunc(d.in.Targets, func(s v1alpha1.StorageTarget) bool { return s.Spec.Role == v1alpha1.RoleStorage && s.Spec.Node == "n2" })
	for i := range d.in.FileSystemNodes {
		n := &d.in.FileSystemNodes[i]
		n.Spec.Members = slices.DeleteFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return n.Spec.Node == "n2" && m.Role == v1alpha1.RoleStorage })
	}
	backendtest.Remember(t, lustre.New(), &d.in)
	d.told()
	d.Expect(backendtest.Configured(lustre.New(), d.in, "n2")).To(HaveKeyWithValue("ost-ssd", HaveField("Targets",
		ConsistOf(HaveField("Name", "ost0-n1"), HaveField("Name", "ost1-n1")))))
}

func TestTheDiskOfATargetOfTwoNodesIsNotMadeBeforeTheNIDsOfBothAreKnown(t *testing.T) {
	d := pairOf(t)
	d.target("ost0-n1").Spec.Lustre = nil
	inventory := d.in.Inventories["n2"]
	inventory.NetworkInterfaces = inventory.NetworkInterfaces[:1]
	d.in.Inventories["n2"] = inventory
	d.Expect(lustre.New().Unassigned(d.in)).To(BeFalse())
	lustre.New().TellTargets(d.in, d.in.Targets)
	d.Expect(d.target("ost0-n1").Spec.Lustre).To(BeNil())
	d.said["n1"].Targets = slices.Delete(d.said["n1"].Targets, firstOST, firstOST+1)
	d.asked()
	d.Expect(lustre.New().Observe(d.in).Problems).To(ContainElement(HaveField("Message",
		ContainSubstring("two nodes may serve it, and its disk is to name both: node n2 has none of the interfaces"))))
}

func TestASpecWithoutThePairOfATargetIsRefused(t *testing.T) {
	for name, own := range map[string]*v1alpha1.LustrePool{
		"none":    nil,
		"another": {Pairs: []v1alpha1.LustrePair{{Nodes: []string{"n1", "n3"}}}},
	} {
		d := pairOf(t)
		d.in.FileSystem.Spec.StoragePools[0].Lustre = own
		_, err := lustre.New().Allocate(d.in)
		d.Expect(err).To(MatchError(ContainSubstring("may be served by the nodes n1 and n2, and its disk names both")), name)
	}
}

func TestAPairHasNoMoreDisksThanItsNodeFilesCanHold(t *testing.T) {
	d := pairOf(t)
	for i := range 129 {
		d.in.FileSystem.Spec.StoragePools[0].Targets.Devices = append(d.in.FileSystem.Spec.StoragePools[0].Targets.Devices,
			v1alpha1.DeviceReference{Node: []string{"n1", "n2"}[i%2]})
		_, err := lustre.New().Allocate(d.in)
		if i < 128 {
			d.Expect(err).NotTo(HaveOccurred())
		} else {
			d.Expect(err).To(MatchError(ContainSubstring("pool ssd has 129 disks that node n1 may serve")))
		}
	}
}

func TestANodeMayBeAwayWhenTheOtherOneCanServeAllOfItsTargets(t *testing.T) {
	costs := func(d *duo) string {
		in := d.in
		// The MDTs are stored on one node; this test is about OSTs.
		in.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(p backend.Pod) bool { return p.Component == "mdt" })
		in = in.Indexed()
		return lustre.New().Absence(in, lustre.New().Observe(in), "n1").Costs
	}
	d := pairOf(t)
	d.Expect(costs(d)).To(BeEmpty())
	d.Expect(lustre.New().Absence(d.in, lustre.New().Observe(d.in), "n1").Costs).NotTo(BeEmpty(), "it has MDTs")
	for says, change := range map[string]func(d *duo){
		"node n2 is not Ready":                                   func(d *duo) { d.node("n2").Ready = false },
		"node n2 is cordoned":                                    func(d *duo) { d.node("n2").Cordoned = true },
		"node n2 has the taint that marks":                       func(d *duo) { d.node("n2").OutOfService = true },
		"node n2 does not report what it serves":                 func(d *duo) { d.in.Unanswered = map[string]string{"n2": "it is slow"} },
		"the server of pool ssd on node n2 is not ready":         func(d *duo) { d.pod("ost", "n2").Ready = false },
		"the agent of node n2 has not written the configuration": func(d *duo) { d.fsNode("n2").Status.Agent.ObservedGeneration-- },
		"node n2 was decommissioned":                             func(d *duo) { d.fsNode("n2").Spec.GivenUp = &v1alpha1.NodeGivenUp{} },
		"node n2 does not show the disk wwn-ost0-n1":             func(d *duo) { d.loses("n2", "wwn-ost0-n1") },
		"which that node has not any more":                       func(d *duo) { d.target("ost0-n1").Spec.Lustre.ServiceNodes[1].NIDs = []string{"10.9.0.9@o2ib"} },
		"its disk names no two nodes":                            func(d *duo) { d.target("ost0-n1").Spec.Lustre.ServiceNodes = nil },
		"Lustre stores nothing twice":                            func(d *duo) { d.target("ost1-n1").Spec.SecondNode = "" },
	} {
		d := pairOf(t)
		change(d)
		d.Expect(costs(d)).To(ContainSubstring(says))
	}
	d = pairOf(t)
	d.held("ost0-n1", "n2", 1)
	d.held("ost1-n1", "n2", 1)
	d.node("n2").Cordoned = true
	d.Expect(costs(d)).To(BeEmpty(), "nothing is on it")
}

func (d *duo) pod(component, node string) *backend.Pod {
	i := slices.IndexFunc(d.in.Pods, func(p backend.Pod) bool { return p.Component == component && p.Node == node })
	return &d.in.Pods[i]
}

func (d *duo) fsNode(node string) *v1alpha1.FileSystemNode {
	i := slices.IndexFunc(d.in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == node })
	return &d.in.FileSystemNodes[i]
}

// loses removes a disk from the inventory of a node.
func (d *duo) loses(node, id string) {
	inventory := d.in.Inventories[node]
	inventory.BlockDevices = slices.DeleteFunc(slices.Clone(inventory.BlockDevices), func(b v1alpha1.BlockDevice) bool { return slices.Contains(b.IDs, id) })
	d.in.Inventories[node] = inventory
}

func TestASecondNodeThatShowsAnotherDiskIsReportedAsNoProtection(t *testing.T) {
	d := pairOf(t)
	d.Expect(lustre.New().Observe(d.in).Partners).To(BeNil())
	inventory := d.in.Inventories["n2"]
	inventory.BlockDevices = slices.Clone(inventory.BlockDevices)
	i := slices.IndexFunc(inventory.BlockDevices, func(b v1alpha1.BlockDevice) bool { return b.Serial == "serial-ost0-n1" })
	inventory.BlockDevices[i].Serial = "another"
	d.in.Inventories["n2"] = inventory
	seen := lustre.New().Observe(d.in)
	d.Expect(seen.Partners).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonPartnersUnproven),
		HaveField("Message", ContainSubstring("1 target has no second node that is proven to reach the disk")),
		HaveField("Message", ContainSubstring("ost0-n1 (node n2 shows another disk: wrong serial: wwn-ost0-n1")))))
	d.Expect(seen.Problems).To(BeEmpty(), "the node whose path is mended may have to be restarted for it")
	d.drained("n1")
	d.Expect(d.moves()).To(And(HaveKeyWithValue("ost0-n1", HaveField("Waits", ContainSubstring("wrong serial"))),
		HaveKeyWithValue("ost1-n1", HaveField("Waits", BeEmpty()))))
	d.Expect(lustre.New().Absence(d.in, seen, "n1").Waits).To(ContainSubstring("wrong serial"))

	d = pairOf(t)
	delete(d.in.Inventories, "n2")
	d.Expect(lustre.New().Observe(d.in).Partners).To(HaveValue(HaveField("Message", ContainSubstring("node n2"))))
}

func TestTheLastInventoryOfADeadAgentProvesNoPartner(t *testing.T) {
	d := pairOf(t)
	d.in.Unconfirmed = map[string]string{"n2": "the agent of node n2 is not Ready"}
	seen := lustre.New().Observe(d.in)
	d.Expect(seen.Partners).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonPartnersUnproven),
		HaveField("Message", ContainSubstring("ost0-n1 (the agent of node n2 is not Ready)")))))
	d.Expect(seen.Partners.Message).NotTo(ContainSubstring("ost0-n2"), "their second node is n1, whose agent confirms its inventory")
	d.drained("n1")
	d.Expect(d.moves()).To(HaveKeyWithValue("ost0-n1", HaveField("Waits", "the agent of node n2 is not Ready")))
	d.Expect(lustre.New().Absence(d.in, seen, "n1").Waits).To(ContainSubstring("the agent of node n2 is not Ready"))
	d.in.Unconfirmed = nil
	d.Expect(lustre.New().Observe(d.in).Partners).To(BeNil())
}

func TestTheTargetsOfANodeInMaintenanceGoToTheOtherOneAndComeBack(t *testing.T) {
	d := pairOf(t)
	waits := func() string { return lustre.New().Absence(d.in, lustre.New().Observe(d.in), "n1").Waits }
	d.node("n1").Cordoned = true
	d.Expect(d.moves()).To(BeEmpty(), "it may not be away yet")
	d.Expect(waits()).To(BeEmpty())

	d.drained("n1")
	d.Expect(d.moves()).To(And(HaveLen(2), HaveKeyWithValue("ost0-n1", Equal(backend.Move{Target: "ost0-n1", To: "n2", Why: "node n1 is in maintenance"}))))
	d.Expect(waits()).To(ContainSubstring("node n2 serves ost0-n1"))
	for _, name := range []string{"ost0-n1", "ost1-n1"} {
		d.target(name).Spec.ServeOn = "n2"
	}
	d.Expect(d.moves()).To(BeEmpty())
	d.target("ost0-n1").Status.Holder = &v1alpha1.TargetHolder{Node: "n1", Message: "sda is mounted at /mnt"}
	d.Expect(waits()).To(ContainSubstring("node n2 serves ost0-n1 (now: sda is mounted at /mnt)"))

	d.held("ost1-n1", "n2", 1)
	d.held("ost0-n1", "n2", 1)
	d.Expect(waits()).To(ContainSubstring("node n2 serves ost0-n1"), "it has it, and does not serve it yet")
	d.mounts("n1", "n2")
	ost1 := slices.IndexFunc(d.said["n1"].Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && s.ID == 2 })
	d.said["n2"].Targets = append(d.said["n2"].Targets, d.said["n1"].Targets[ost1])
	d.said["n1"].Targets = slices.Delete(d.said["n1"].Targets, ost1, ost1+1)
	d.said["n2"].Targets[len(d.said["n2"].Targets)-1].Online = false
	d.said["n2"].Targets[len(d.said["n2"].Targets)-1].Status = "RECOVERING, 1 of 3 clients are back"
	d.asked()
	d.Expect(waits()).To(And(ContainSubstring("node n2 serves ost1-n1"), Not(ContainSubstring("ost0-n1"))), "its recovery is not over")
	last := &d.said["n2"].Targets[len(d.said["n2"].Targets)-1]
	last.Online, last.Status = true, ""
	d.asked()
	d.Expect(waits()).To(BeEmpty())
	seen := lustre.New().Observe(d.in)
	d.Expect(seen.Problems).To(BeEmpty(), "what is mounted is expected where the holder is")
	d.Expect(seen.Serves).To(BeTrue())
	d.Expect(seen.Targets).To(ContainElement(And(HaveField("StorageTarget", "ost0-n1"), HaveField("Node", "n2"), HaveField("Online", true),
		HaveField("Message", "node n2 serves it for node n1"))))

	d.down("n1")
	d.Expect(d.moves()).To(BeEmpty(), "it starts anew")
	d.uncordoned("n1")
	d.Expect(d.moves()).To(HaveKeyWithValue("ost0-n1", And(HaveField("To", "n1"), HaveField("Waits", "node n1 is not Ready"))))
	d.in.Unanswered, d.node("n1").Ready = nil, true
	d.said["n1"] = &backend.State{Version: "2.17.57", Targets: []backend.Target{on(v1alpha1.RoleMetadata, 1), on(v1alpha1.RoleMetadata, 3)}}
	d.asked()
	d.Expect(d.moves()).To(HaveKeyWithValue("ost0-n1", HaveField("Waits", "the server of pool ssd on node n1 is not ready")))
	for i := range d.in.Pods {
		d.in.Pods[i].Ready = true
	}
	d.Expect(d.moves()).To(And(HaveLen(2), HaveKeyWithValue("ost0-n1",
		Equal(backend.Move{Target: "ost0-n1", To: "n1", Why: "node n1 is back", Back: true}))))
	d.drained("n2")
	d.Expect(d.moves()).To(HaveKeyWithValue("ost0-n1", And(HaveField("To", "n1"), HaveField("Back", false))), "now it must go")
}

func TestNothingMovesWhileBothNodesAreToBeAway(t *testing.T) {
	d := pairOf(t)
	d.drained("n1")
	d.drained("n2")
	for _, m := range d.moves() {
		d.Expect(m.Waits).To(ContainSubstring("is cordoned"))
	}
}

func TestANodeTakesATargetOverOnlyAfterTwoConfirmationsThatTheMachineIsOff(t *testing.T) {
	d := pairOf(t)
	d.node("n1").Ready = false
	d.Expect(d.moves()["ost0-n1"].Waits).To(Equal("node n1 answers, so its machine is not off"))
	d.down("n1")
	asks := d.moves()["ost0-n1"]
	d.Expect(asks.Waits).To(And(ContainSubstring("Switch the machine off. When it IS off: kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"),
		ContainSubstring("kubectl -n storage annotate --overwrite storagetarget ost0-n1 parallelfs.dev/machine-is-off=n1/0")))
	d.Expect(lustre.New().Observe(d.in).Problems).To(ContainElement(HaveField("Message", ContainSubstring("Switch the machine off"))))

	d.node("n1").OutOfService = true
	d.Expect(d.moves()["ost0-n1"].Waits).To(And(ContainSubstring("Switch the machine off"), Not(ContainSubstring("kubectl taint"))))
	say := func(word string) {
		d.target("ost0-n1").Annotations = map[string]string{v1alpha1.AnnotationMachineIsOff: word}
	}
	for _, word := range []string{"", "n1", "n1/1", "n2/0", "true"} {
		say(word)
		d.Expect(d.moves()["ost0-n1"].Waits).To(ContainSubstring("Switch the machine off"), word)
	}
	say("n1/0")
	d.Expect(d.moves()["ost0-n1"]).To(Equal(backend.Move{
		Target: "ost0-n1", To: "n2", Why: "the machine of node n1 is off, as a person has confirmed", Off: &v1alpha1.TargetHolder{Node: "n1"},
	}))
	d.Expect(d.moves()["ost1-n1"].Waits).To(ContainSubstring("Switch the machine off"), "each target needs its own word")
	d.node("n1").OutOfService = false
	d.Expect(d.moves()["ost0-n1"].Waits).To(ContainSubstring("does not have the taint"))
	d.node("n1").OutOfService = true
	d.node("n2").Cordoned = true
	d.Expect(d.moves()["ost0-n1"].Waits).To(Equal("node n2 is cordoned"))
	d.node("n2").Cordoned = false

	d.held("ost0-n1", "n2", 1)
	d.target("ost0-n1").Spec.ServeOn = "n2"
	d.Expect(d.moves()).NotTo(HaveKeyWithValue("ost0-n1", HaveField("Off", Not(BeNil()))))
	d.held("ost0-n1", "n1", 2)
	d.Expect(d.moves()["ost0-n1"].Waits).To(ContainSubstring("parallelfs.dev/machine-is-off=n1/2"), "the word was for another time")
}

func TestTwoNodesThatAnswerOneAfterTheOtherWhileATargetMovesAreNoAlarm(t *testing.T) {
	d := pairOf(t)
	d.said["n2"].Targets = append(d.said["n2"].Targets, on(v1alpha1.RoleStorage, 1))
	_, err := lustre.New().Together(d.in, d.said)
	d.Expect(err).To(MatchError(ContainSubstring("both have pfs-OST0000 mounted, which destroys it")))

	d.target("ost0-n1").Spec.ServeOn = "n2"
	d.asked()
	seen := lustre.New().Observe(d.in)
	d.Expect(seen.Targets).To(ContainElement(And(HaveField("StorageTarget", "ost0-n1"), HaveField("Online", false),
		HaveField("Message", ContainSubstring("it is being moved, and nodes n1 and n2 have both answered that they have it mounted")))))

	d.held("ost0-n1", "n2", 1)
	_, err = lustre.New().Together(d.in, saidBoth(d.said))
	d.Expect(err).To(MatchError(ContainSubstring("which destroys it")), "n1 was asked after it had given it away")
}

// saidBoth returns a copy of the same answers.
func saidBoth(said map[string]*backend.State) map[string]*backend.State {
	out := map[string]*backend.State{}
	for node, state := range said {
		copied := *state
		copied.Targets = slices.Clone(state.Targets)
		out[node] = &copied
	}
	return out
}

func TestANodeOfAPairIsNotDecommissionedWhileTheOtherCanServeItsTargets(t *testing.T) {
	d := pairOf(t)
	d.down("n1")
	d.Expect(lustre.New().Without(d.in, d.fsNode("n1")).Never).To(ContainSubstring("node n2 reaches that, too"))
	d.held("ost0-n1", "n2", 1)
	for i := range d.in.Targets {
		if s := &d.in.Targets[i]; s.Spec.Node == "n2" {
			s.Spec.SecondNode = ""
		}
	}
	d.Expect(lustre.New().Without(d.in, d.fsNode("n2")).Never).To(ContainSubstring("it has ost0-n1, whose own node is n1"))
}

func TestASurveyMeasuresATargetWhereItIsServed(t *testing.T) {
	d := pairOf(t)
	d.held("ost0-n1", "n2", 1)
	measured := lustre.New().MeasuredTargets(d.in, v1alpha1.RoleStorage)
	d.Expect(measured["n1"]).To(HaveExactElements("pfs-OST0001"))
	d.Expect(strings.Join(measured["n2"], " ")).To(ContainSubstring("pfs-OST0000"))
}
