package lustre_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/lustre"
)

// on is a target that a node reports as served.
func on(role v1alpha1.Role, id int32) backend.Target {
	return backend.Target{Role: role, ID: id, Online: true, Contacted: true, CapacityBytes: 1000, UsedBytes: 10}
}

// saying returns the answers of the nodes of everything.
func saying() map[string]*backend.State {
	said := map[string]*backend.State{"n3": {Version: "2.17.57", Targets: []backend.Target{on(v1alpha1.RoleManagement, 0)}}}
	for i, node := range []string{"n1", "n2"} {
		state := &backend.State{Version: "2.17.57"}
		for id := range int32(2) {
			state.Targets = append(state.Targets, on(v1alpha1.RoleMetadata, 2*id+int32(i)+1), on(v1alpha1.RoleStorage, int32(2*i)+id+1)) // #nosec G115 -- small
		}
		said[node] = state
	}
	return said
}

// running is everything in its healthy state.
func running(t *testing.T) backend.Input {
	t.Helper()
	in := everything("2.17.57")
	backendtest.Remember(t, lustre.New(), &in)
	pod := func(component, pool, slot, node string) {
		in.Pods = append(in.Pods, backend.Pod{
			Name: types.NamespacedName{Namespace: "storage", Name: "scratch-" + component + pool + slot + "." + node}, Component: component, StoragePool: pool,
			Slot: slot, Node: node, Ready: true, Started: noon, Seen: noon,
		})
	}
	pod("client", "", "", "n0")
	for _, node := range []string{"n1", "n2"} {
		pod("mdt", "", "0", node)
		pod("mdt", "", "1", node)
		pod("ost", "ssd", "", node)
	}
	pod("mgs", "", "", "n3")
	ask(t, &in, saying())
	backendtest.Remember(t, lustre.New(), &in) // the time since when they serve
	in.Jobs = []backend.Job{{Name: jobOf(t, in).Name, Component: "configure", Succeeded: true}}
	return in
}

// jobOf is the Job that makes pools.
func jobOf(t *testing.T, in backend.Input) *batchv1.Job {
	t.Helper()
	objects, err := lustre.New().Members(in)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		if job, is := o.(*batchv1.Job); is {
			return job
		}
	}
	t.Fatal("there is no Job")
	return nil
}

// ask puts the answers of nodes into an Input, as the controller does.
func ask(t *testing.T, in *backend.Input, said map[string]*backend.State) {
	t.Helper()
	state, err := lustre.New().Together(*in, said)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	state.Asked = noon.Add(time.Hour)
	in.State = &state
}

// away removes the answer of a node.
func away(t *testing.T, in *backend.Input, node string) {
	t.Helper()
	said := saying()
	delete(said, node)
	ask(t, in, said)
	in.Unanswered = map[string]string{node: "nobody listens"}
}

func TestAFilesystemIsHealthyWhenAllOfItsTargetsServe(t *testing.T) {
	g := NewWithT(t)
	seen := lustre.New().Observe(running(t))
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Serves).To(BeTrue())
	g.Expect(seen.MetadataInitialized).To(BeTrue())
	g.Expect(seen.Summary).To(Equal(v1alpha1.FileSystemSummary{
		Servers: "7/7", Targets: "4/4", Clients: "1/1", Capacity: v1alpha1.Bytes(4000), Used: v1alpha1.Bytes(40),
	}))
	g.Expect(seen.Management).To(HaveValue(Equal(v1alpha1.ManagementStatus{Address: "10.1.0.3@o2ib,10.2.0.3@o2ib:/pfs", Version: "2.17.57"})))
	g.Expect(seen.Servers).To(ContainElement(And(HaveField("Name", "mdt-1.n2"), HaveField("ID", int32(4)), HaveField("Slot", int32(1)),
		HaveField("Target", "mdt1-n2"), HaveField("Version", "2.17.57"))))
}

func TestANodeThatDoesNotAnswerIsNotHealthyAndDoesNotAffectOthers(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	away(t, &in, "n2")
	seen := lustre.New().Observe(in)
	g.Expect(seen.Serves).To(BeFalse())
	g.Expect(seen.Unknown).To(BeTrue(), "its kernel may serve")
	for _, s := range seen.Servers {
		g.Expect(s.Online).To(Equal(s.Node != "n2"), s.Name)
		if s.Node == "n2" {
			g.Expect(s.Message).To(Equal("unknown: nobody listens"))
		}
	}
	for _, target := range seen.Targets {
		g.Expect(target.Online).To(Equal(target.Node != "n2"), target.Name)
	}
	g.Expect(seen.Problems[0].Reason).To(Equal(v1alpha1.ReasonTargetsMissing))
	backendtest.Readable(t, seen)
}

func TestAConditionIsFalseAndNotUnknownWhenSomethingHasFailed(t *testing.T) {
	for name, change := range map[string]func(in *backend.Input){
		"its kubelet does not answer either": func(in *backend.Input) {
			i := slices.IndexFunc(in.Nodes, func(n backend.Node) bool { return n.Name == "n2" })
			in.Nodes[i].Ready = false
		},
		"a disk of it is not proven": func(in *backend.Input) {
			i := slices.IndexFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Name == "mdt1-n2" })
			in.Targets[i].Status = v1alpha1.StorageTargetStatus{}
		},
		"a target of another node is not mounted": func(in *backend.Input) {
			in.State.Targets = slices.DeleteFunc(in.State.Targets, func(t backend.Target) bool { return t.Role == v1alpha1.RoleMetadata && t.ID == 1 })
		},
		"nobody has mounted it": func(in *backend.Input) {
			for i := range in.Pods {
				in.Pods[i].Ready = in.Pods[i].Ready && in.Pods[i].Component != "client"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := running(t)
			away(t, &in, "n2")
			change(&in)
			seen := lustre.New().Observe(in)
			g.Expect(seen.Serves).To(BeFalse())
			g.Expect(seen.Unknown).To(BeFalse())
		})
	}
}

func TestATargetServesWhenItsRecoveryIsOver(t *testing.T) {
	for says, change := range map[string]func(s *backend.State){
		"RECOVERING, 1 of 3 clients are back": func(s *backend.State) {
			s.Targets[1].Online, s.Targets[1].Status = false, "RECOVERING, 1 of 3 clients are back"
		},
		"it is not mounted": func(s *backend.State) { s.Targets = slices.Delete(s.Targets, 1, 2) },
	} {
		g := NewWithT(t)
		in, said := running(t), saying()
		change(said["n1"])
		ask(t, &in, said)
		seen := lustre.New().Observe(in)
		g.Expect(seen.Serves).To(BeFalse(), says)
		g.Expect(seen.Problems).To(ContainElement(And(HaveField("Reason", v1alpha1.ReasonTargetsMissing), HaveField("Message", ContainSubstring(says)))))
		g.Expect(seen.Summary.Targets).To(Equal("3/4"))
	}
}

func TestAnMDTThatIsMountedElsewhereIsNamedWithItsPlace(t *testing.T) {
	g := NewWithT(t)
	in, said := running(t), saying()
	said["n1"].Targets = slices.Delete(said["n1"].Targets, 2, 3)
	said["n3"].Targets = append(said["n3"].Targets, on(v1alpha1.RoleMetadata, 3))
	ask(t, &in, said)
	seen := lustre.New().Observe(in)
	g.Expect(seen.Servers).To(ContainElement(And(HaveField("Name", "mdt-1.n1"), HaveField("Online", false),
		HaveField("Message", ContainSubstring("it is mounted on another node, at 10.0.0.3")))))
}

func TestATargetThatTwoNodesServeIsAnAlarm(t *testing.T) {
	in, said := running(t), saying()
	said["n3"].Targets = append(said["n3"].Targets, on(v1alpha1.RoleStorage, 2))
	_, err := lustre.New().Together(in, said)
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("nodes n1 and n3 both have pfs-OST0001 mounted")))
}

func TestAPodThatIsGoneLeavesTheMountsAndIsMissed(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	in.Pods = slices.DeleteFunc(in.Pods, func(p backend.Pod) bool { return p.Component == "ost" && p.Node == "n1" })
	seen := lustre.New().Observe(in)
	g.Expect(seen.Serves).To(BeTrue(), "the kernel serves")
	g.Expect(seen.Summary.Targets).To(Equal("4/4"))
	g.Expect(seen.Problems).To(HaveExactElements(And(HaveField("Reason", v1alpha1.ReasonServersMissing),
		HaveField("Message", ContainSubstring("ost-ssd.n1 (there is no pod of it on the node)")))))
}

func TestADiskThatIsNotProvenIsWaitedFor(t *testing.T) {
	g := NewWithT(t)
	in, said := running(t), saying()
	i := slices.IndexFunc(in.Targets, func(s v1alpha1.StorageTarget) bool { return s.Name == "mdt1-n1" })
	in.Targets[i].Status = v1alpha1.StorageTargetStatus{}
	said["n1"].Targets = slices.Delete(said["n1"].Targets, 2, 3)
	ask(t, &in, said)
	seen := lustre.New().Observe(in)
	g.Expect(seen.Serves).To(BeFalse())
	g.Expect(seen.Problems[0]).To(And(HaveField("Reason", v1alpha1.ReasonTargetsNotReady),
		HaveField("Message", ContainSubstring("mdt1-n1 on node n1 (its disk: no agent has looked at it yet"))))
}

func TestModulesOfAnotherLineAreNamed(t *testing.T) {
	g := NewWithT(t)
	in, said := running(t), saying()
	said["n2"].Version = "2.15.6"
	ask(t, &in, said)
	seen := lustre.New().Observe(in)
	g.Expect(in.State.Version).To(Equal("2.15.6"), "the oldest of all")
	g.Expect(seen.Problems).To(ContainElement(And(HaveField("Reason", v1alpha1.ReasonVersionSkew), HaveField("Message", ContainSubstring("mdt-0.n2 runs 2.15.6")))))
}

func TestAnMGSThatHasOtherAddressesThanTheDisksSayIsNamed(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	in.Inventories["n3"] = v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{{Name: "ib0", Addresses: []string{"10.1.9.9/16"}}}}
	seen := lustre.New().Observe(in)
	g.Expect(seen.Problems).To(HaveExactElements(And(HaveField("Reason", v1alpha1.ReasonServersMissing),
		HaveField("Message", ContainSubstring("its node n3 has now 10.1.9.9@o2ib")))))
}

func TestProgramsWaitForEachMDTAndOSTThatIsRestarted(t *testing.T) {
	g := NewWithT(t)
	seen := lustre.New().Observe(running(t))
	g.Expect(seen.Sole).To(And(HaveLen(6), HaveKeyWithValue("scratch-mdt1.n2", "Lustre stores nothing twice"), Not(HaveKey(ContainSubstring("mgs")))))
}

func TestTheAbsenceOfANodeCostsTheDataOnItsTargets(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	seen := lustre.New().Observe(in)
	g.Expect(lustre.New().Absence(in, seen, "n1")).To(Equal(backend.Absence{Costs: "Lustre stores nothing twice", Together: 1}))
	g.Expect(lustre.New().Absence(in, seen, "n3")).To(Equal(backend.Absence{Together: 1}), "the MGS serves no file")
	g.Expect(lustre.New().Absence(in, seen, "n0")).To(Equal(backend.Absence{Together: backend.Most}), "a client")
}

func TestANodeIsAskedAtAMemberWhosePodIsReady(t *testing.T) {
	g := NewWithT(t)
	in := running(t)
	g.Expect(lustre.New().ProbeURLs(in)).To(Equal(map[string]string{
		"n1": "http://10.0.0.1:9701/state", "n2": "http://10.0.0.2:9701/state", "n3": "http://10.0.0.3:9700/state",
	}))
	for i := range in.Pods {
		if in.Pods[i].Component == "mdt" && in.Pods[i].Node == "n1" {
			in.Pods[i].Ready = false
		}
	}
	g.Expect(lustre.New().ProbeURLs(in)).To(HaveKeyWithValue("n1", "http://10.0.0.1:9732/state"))
}
