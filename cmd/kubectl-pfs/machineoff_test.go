package main

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
)

// shared is a target of scratch on n1 that n2 may serve, too, with its holder.
func shared(name string, holder *v1alpha1.TargetHolder) *v1alpha1.StorageTarget {
	return &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage", Annotations: map[string]string{"of": "somebody"}},
		Spec:       v1alpha1.StorageTargetSpec{Node: "n1", SecondNode: "n2", FileSystem: v1alpha1.TargetOwner{Name: "scratch"}},
		Status:     v1alpha1.StorageTargetStatus{Holder: holder},
	}
}

// pairOf returns the targets of scratch on n1 and n2, with the Node n1. n1 holds its own two and one of n2.
func pairOf(ready corev1.ConditionStatus, taints ...corev1.Taint) []client.Object {
	given, lent := shared("given", &v1alpha1.TargetHolder{Node: "n2", Number: 1}), shared("lent", &v1alpha1.TargetHolder{Node: "n1", Number: 3})
	lent.Spec.Node, lent.Spec.SecondNode = "n2", "n1"
	alone, other := shared("alone", nil), shared("other", nil)
	alone.Spec.SecondNode, other.Spec.FileSystem.Name = "", "archive"
	return []client.Object{
		shared("first", nil), shared("second", &v1alpha1.TargetHolder{Node: "n1", Number: 2}), given, lent, alone, other,
		&v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}},
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Taints: taints},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		},
	}
}

var isOff = corev1.Taint{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// offWords returns the confirmations at all targets.
func offWords(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var all v1alpha1.StorageTargetList
	NewWithT(t).Expect(c.List(t.Context(), &all)).To(Succeed())
	out := map[string]string{}
	for _, target := range all.Items {
		if word := target.Annotations["parallelfs.dev/machine-is-off"]; word != "" {
			out[target.Name] = word
		}
		NewWithT(t).Expect(target.Annotations).To(HaveKeyWithValue("of", "somebody"))
	}
	return out
}

func TestTheConfirmationThatAMachineIsOffCoversEachTargetWithItsPresentHolder(t *testing.T) {
	g := NewWithT(t)
	c, pfs := cluster(t, pairOf(corev1.ConditionUnknown, isOff))
	shown := pfs("node", "machine-is-off", "scratch", "n1")
	g.Expect(shown.code).To(Equal(exitGood), shown.stderr)
	g.Expect(shown.stderr).To(And(ContainSubstring("Node n1 holds 3 targets of FileSystem scratch"), ContainSubstring("first would go to node n2 (n1/0)"),
		ContainSubstring("second would go to node n2 (n1/2)"), ContainSubstring("lent would go to node n2 (n1/3)"),
		ContainSubstring("Nothing fences the machine of node n1: it must BE off"), Not(ContainSubstring("alone")), Not(ContainSubstring("given"))))
	g.Expect(shown.stdout).To(Equal("Nothing was changed. When the machine IS off: kubectl pfs -n storage node machine-is-off scratch n1 --it-is-off\n"))
	g.Expect(offWords(t, c)).To(BeEmpty())

	dry := pfs("node", "machine-is-off", "scratch", "n1", "--it-is-off", "--dry-run")
	g.Expect(dry.code).To(Equal(exitGood), dry.stderr)
	g.Expect(dry.stdout).To(And(HavePrefix(`{"metadata":{"annotations":{"parallelfs.dev/machine-is-off":"n1/0"},"resourceVersion":`), HaveSuffix("\n")))
	g.Expect(dry.stderr).To(ContainSubstring("kubectl -n storage annotate --overwrite storagetarget second parallelfs.dev/machine-is-off=n1/2\n"))
	g.Expect(offWords(t, c)).To(BeEmpty())

	said := pfs("node", "machine-is-off", "scratch", "n1", "--it-is-off")
	g.Expect(said.code).To(Equal(exitGood), said.stderr)
	g.Expect(said.stdout).To(ContainSubstring("storagetarget/second annotated: parallelfs.dev/machine-is-off=n1/2\n"))
	g.Expect(offWords(t, c)).To(Equal(map[string]string{"first": "n1/0", "second": "n1/2", "lent": "n1/3"}))
	g.Expect(pfs("node", "machine-is-off", "scratch", "n1").stderr).To(ContainSubstring("first would go to node n2 (n1/0, as was said already)"))
}

func TestAMachineIsNotConfirmedOffWithoutTheTaintOfItsNode(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		line    string
		says    string
	}{
		"a node that is Ready": {pairOf(corev1.ConditionTrue, isOff), "scratch n1", "node n1 is Ready, so its machine is not off; switch it off"},
		"a node without the taint": {pairOf(corev1.ConditionUnknown, corev1.Taint{Key: "node.kubernetes.io/unreachable"}), "scratch n1",
			"when it IS off: kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. Nothing was changed"},
		"a node that has left the cluster": {pairOf(corev1.ConditionUnknown, isOff)[:7], "scratch n1", "node n1 is not in the cluster any more"},
		"a node that holds nothing":        {pairOf(corev1.ConditionUnknown, isOff), "scratch n3", `node "n3" holds no target of two nodes of the FileSystem scratch; such targets are held by n1, n2`},
		"a FileSystem without such targets": {[]client.Object{&v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}}},
			"scratch n1", "the FileSystem scratch has no target of two nodes"},
		"a FileSystem that is not there": {pairOf(corev1.ConditionUnknown, isOff), "nothing n1", "there is no FileSystem nothing in the namespace storage"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, pfs := cluster(t, test.objects)
			got := pfs(append(strings.Fields("node machine-is-off "+test.line), "--it-is-off")...)
			g.Expect(got.code).To(Equal(exitFailed))
			g.Expect(got.stderr).To(ContainSubstring(test.says))
			g.Expect(got.stdout).To(BeEmpty())
			g.Expect(offWords(t, c)).To(BeEmpty())
		})
	}
}

func TestATargetThatHasChangedSinceItWasReadIsNotReported(t *testing.T) {
	g := NewWithT(t)
	c, pfs := clusterThrough(t, pairOf(corev1.ConditionUnknown, isOff), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			now := &v1alpha1.StorageTarget{}
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(o), now)).To(Succeed())
			now.Status.Holder = &v1alpha1.TargetHolder{Node: "n2", Number: 9} // it is handed over meanwhile
			g.Expect(c.Update(ctx, now)).To(Succeed())
			return c.Patch(ctx, o, p, options...)
		},
	})
	got := pfs("node", "machine-is-off", "scratch", "n1", "--it-is-off")
	g.Expect(got.code).To(Equal(exitFailed))
	g.Expect(got.stderr).To(ContainSubstring("the StorageTarget first has changed since it was read, and nothing was said of it"))
	g.Expect(offWords(t, c)).To(BeEmpty())
}
