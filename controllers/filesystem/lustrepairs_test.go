//go:build envtest

package filesystem_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// move simulates the agents of both nodes of a target, which hand it over and accept it. A kernel that has it mounted keeps it.
func (k *kernels) move() (changed bool) {
	k.t.Helper()
	for _, t := range k.targets() {
		d := k.diskOf(t.Name)
		if !plan.IsOfPair(&t) || d == nil {
			continue
		}
		for _, node := range []string{t.Spec.Node, t.Spec.SecondNode} {
			holder := plan.HolderOf(&t)
			switch {
			case k.mute[node] || k.dead[node]:
				continue
			case plan.IsToBeGiven(&t, node) && !d.mounted:
				holder = v1alpha1.TargetHolder{Node: plan.WantedOn(&t), Number: holder.Number + 1}
			case plan.IsToBeTakenUp(&t, node) && (!d.mounted || plan.IsTakenOver(&t)):
				holder.TakenUp = &metav1.Time{Time: time.Now().Truncate(time.Second)}
			default:
				continue
			}
			t.Status.Holder = &holder
			k.Expect(server.Client.Status().Update(k.ctx, &t)).To(Succeed())
			changed = true
			break
		}
	}
	return changed
}

// pairs is a Lustre whose MDTs are on the first two nodes, and whose two OSTs belong to the pair of the other two. Each node of the pair
// serves one.
type pairs struct {
	*kernels
	one, two string
	// first is the OST of node one, and second that of node two.
	first, second *fakeDisk
}

func pairedWorld(t *testing.T) *pairs {
	t.Helper()
	return anotherPair(newWorld(t))
}

func anotherPair(w *world) *pairs {
	w.t.Helper()
	k := w.lustreWorld()
	p := &pairs{kernels: k, one: w.nodes[2], two: w.nodes[1]}
	shared := func(node, also string) *fakeDisk {
		d := w.disk(node, "shared")
		d.also = also
		w.inventory(node)
		w.inventory(also)
		return d
	}
	p.first, p.second = shared(p.one, p.two), shared(p.two, p.one)
	for _, node := range w.nodes {
		w.boots(node, "first")
		w.wire(node)
	}
	k.lustre(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{
			Devices: []v1alpha1.DeviceReference{{Node: p.one, ID: v1alpha1.DeviceID(p.first.id)}, {Node: p.two, ID: v1alpha1.DeviceID(p.second.id)}},
			Format:  &v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs},
		}
		fs.Spec.StoragePools[0].Lustre = &v1alpha1.LustrePool{Pairs: []v1alpha1.LustrePair{{Nodes: []string{p.two, p.one}}}}
	})
	w.goesOn()
	w.runGuards()
	return p
}

// isOn returns where the OST of the first node is mounted, empty for nowhere.
func (p *pairs) isOn() string {
	if !p.first.mounted {
		return ""
	}
	return p.first.at()
}

// tainted sets or removes the taint with which a person marks the machine of a node as off.
func (p *pairs) tainted(node string, is bool) {
	p.t.Helper()
	p.changeNode(node, func(n *corev1.Node) {
		n.Spec.Taints = nil
		if is {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
		}
	})
}

func (p *pairs) approves(word string) {
	p.t.Helper()
	p.person(p.target(p.first), func(t *v1alpha1.StorageTarget) {
		t.Annotations[v1alpha1.AnnotationMachineIsOff] = word
	})
}

func TestTwoNodesOfALustreServeEachOthersTargets(t *testing.T) {
	p := pairedWorld(t)
	p.Expect(p.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy), p.ready().Message)
	target := p.target(p.first)
	p.Expect(target.Spec).To(And(HaveField("Node", p.one), HaveField("SecondNode", p.two), HaveField("ServeOn", "")))
	p.Expect(target.Spec.Lustre.ServiceNodes).To(Equal([]v1alpha1.LustreServiceNode{{NIDs: []string{"10.9.0.3@tcp"}}, {NIDs: []string{"10.9.0.2@tcp"}}}))
	p.Expect(p.given[p.first]).To(Equal(target.Spec.Lustre), "mkfs was given both")
	p.Expect(p.formats()).To(Equal(6))
	p.Expect(p.targets()).To(HaveLen(6), "the disk that both show is one target")
	p.Expect(p.isOn()).To(Equal(p.one))
	p.Expect(p.drains(p.one)).To(BeFalse(), "nobody has cordoned it")

	// It is drained: the guard opens after the other node serves, and not before.
	p.mute[p.two] = true
	p.cordons(p.one, true)
	p.goesOn()
	p.Expect(p.target(p.first).Status.Holder).To(HaveValue(And(HaveField("Node", p.two), HaveField("Number", int64(1)), HaveField("TakenUp", BeNil()))))
	p.Expect(p.isOn()).To(BeEmpty())
	p.Expect(p.maintenance(p.one)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Message", ContainSubstring("its guard opens when node "+p.two+" serves "+target.Name))))
	p.Expect(p.drains(p.one)).To(BeFalse())
	delete(p.mute, p.two)
	p.goesOn()
	p.Expect(p.isOn()).To(Equal(p.two))
	p.Expect(p.ready()).To(HaveField("Status", metav1.ConditionTrue), p.ready().Message)
	p.Expect(p.get().Status.Maintenance).To(HaveExactElements(And(HaveField("Node", p.one), HaveField("Allowed", false))))
	p.Expect(p.drains(p.one)).To(BeTrue())

	p.loses(p.one)
	p.goesOn()
	p.Expect(p.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonDegradedService)), "all is served")
	p.boots(p.one, "second")
	p.comesBack(p.one)
	p.goesOn()
	p.Expect(p.isOn()).To(Equal(p.two), "it is still cordoned")
	p.cordons(p.one, false)
	p.goesOn()
	p.Expect(p.isOn()).To(Equal(p.one))
	p.Expect(p.second.at()).To(Equal(p.two))
	p.Expect(p.get().Status.Maintenance).To(BeEmpty())
	p.Expect(p.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy), p.ready().Message)
	p.Expect(p.target(p.first)).To(And(HaveField("Spec.ServeOn", ""), HaveField("Status.Holder.Number", int64(2))))
	p.runGuards()
	p.Expect(p.drains(p.one)).To(BeFalse())
	p.Expect(p.formats()).To(Equal(6))
	c := server.Killable(t, -1)
	p.Expect(p.reconcile(c)).To(Succeed())
	p.Expect(c.Writes()).To(BeEmpty())
}

func TestATargetOfAMachineThatIsOffIsTakenOverByAPersonsConfirmation(t *testing.T) {
	p := pairedWorld(t)
	p.loses(p.one)
	p.goesOn()
	name := p.target(p.first).Name
	p.Expect(p.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("Switch the machine off"))))
	stays := func(why string) {
		t.Helper()
		p.goesOn()
		p.Expect(p.target(p.first).Status.Holder).To(BeNil(), why)
		p.Expect(p.first.at()).To(Equal(p.one), why)
	}
	p.tainted(p.one, true)
	stays("the taint alone is not enough")
	p.tainted(p.one, false)
	p.approves(p.one + "/0")
	stays("the word of the person alone is not enough")
	p.tainted(p.one, true)
	p.approves(p.one + "/1")
	stays("the word is for another time")
	p.approves(p.one + "/0")
	p.nodeIs(p.one, corev1.ConditionTrue)
	stays("its node is Ready")
	p.nodeIs(p.one, corev1.ConditionUnknown)
	p.goesOn()
	p.Expect(p.target(p.first).Status.Holder).To(HaveValue(And(HaveField("Node", p.two), HaveField("Number", int64(1)), HaveField("TakenOver", int64(1)),
		HaveField("TakenUp", Not(BeNil())))))
	p.Expect(p.isOn()).To(Equal(p.two))
	p.Expect(p.eventsOf(v1alpha1.ReasonTargetMoves)).To(ContainElement(ContainSubstring("takes " + name + " over")))
	p.Expect(p.ready()).To(HaveField("Status", metav1.ConditionTrue), p.ready().Message)

	// The machine is repaired. The confirmation was for an earlier start, and the node gets its target back.
	p.boots(p.one, "second")
	p.comesBack(p.one)
	p.tainted(p.one, false)
	p.goesOn()
	p.Expect(p.isOn()).To(Equal(p.one))
	p.Expect(p.target(p.first).Status.Holder.Number).To(Equal(int64(2)))
	p.Expect(p.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy), p.ready().Message)
}

func TestAnOperatorThatIsKilledAfterAnyWriteOfAMoveIsFollowedByOneThatGoesOn(t *testing.T) {
	p := pairedWorld(t)
	stories := []func(){
		func() { p.cordons(p.one, true) },
		func() { p.Expect(p.drains(p.one)).To(BeTrue()) },
		func() { p.cordons(p.one, false) },
	}
	for _, story := range stories {
		story()
		killed := 0
		for range 2 { // the next operators continue from the work of guards and Jobs
			killed += p.settleByDying(1, func() {
				p.runGuards()
				if *p.budget(p.one).Spec.MaxUnavailable != intstr.FromInt32(0) && p.get().Status.Maintenance != nil && p.target(p.first).Spec.ServeOn == p.two {
					p.Expect(p.isOn()).To(Equal(p.two), "the guard is open only while the other node serves")
				}
			})
		}
		t.Logf("%d operators were killed", killed)
		p.goesOn()
	}
	p.Expect(p.isOn()).To(Equal(p.one))
	p.Expect(p.get().Status.Maintenance).To(BeEmpty())
	p.Expect(p.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy), p.ready().Message)
}

func TestTheTargetsOfADeletedLustreAreHandedBackBeforeTheirNodeReleasesThem(t *testing.T) {
	p := pairedWorld(t)
	p.cordons(p.one, true)
	p.goesOn()
	p.Expect(p.isOn()).To(Equal(p.two))
	fs := p.get()
	p.Expect(server.Client.Delete(p.ctx, fs)).To(Succeed())
	for range 30 {
		if client.IgnoreNotFound(p.reconcile(server.Client)) == nil && len(p.targets()) == 0 {
			break
		}
		p.Expect(p.reconcileTargets(server.Client)).To(Succeed())
		p.runPods()
		p.move()
		p.agents()
	}
	p.Expect(p.targets()).To(BeEmpty())
	p.Expect(p.isOn()).To(BeEmpty())
}
