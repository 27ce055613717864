//go:build envtest

package filesystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// racked returns a world whose nodes are in racks, three in each.
func racked(t *testing.T, racks ...string) *world {
	t.Helper()
	w := newWorld(t)
	for i := len(w.nodes); i < 3*len(racks); i++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-n%d", w.namespace, i+1), Labels: map[string]string{"storage-of": w.namespace}}}
		w.Expect(server.Client.Create(w.ctx, node)).To(Succeed())
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), node) })
		w.nodes = append(w.nodes, node.Name)
		w.nodeIs(node.Name, corev1.ConditionTrue)
	}
	for i, name := range w.nodes {
		w.rack(name, racks[i/3])
	}
	return w
}

// rack puts a node into a rack; "" removes its label.
func (w *world) rack(name, rack string) {
	w.t.Helper()
	var node corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
	node.Labels["rack"] = rack
	if rack == "" {
		delete(node.Labels, "rack")
	}
	w.Expect(server.Client.Update(w.ctx, &node)).To(Succeed())
}

// spread returns the condition Spread.
func (w *world) spread() *metav1.Condition {
	return meta.FindStatusCondition(w.get().Status.Conditions, v1alpha1.ConditionSpread)
}

func TestAChangedOptionRestartsServersOfOneFailureDomainAtATime(t *testing.T) {
	w := racked(t, "a", "b")
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Copies = 3
		fs.Spec.FailureDomains.Label, fs.Spec.Updates.MaxUnavailable = "rack", 64
	})
	w.alive = true
	w.settle()
	racks, before := map[string]string{}, map[string]string{}
	for _, p := range w.pods() {
		if component(&p) == "chunkserver" {
			racks[p.Name], before[p.Name] = string("ab"[slices.Index(w.nodes, p.Spec.NodeName)/3]), string(p.UID)
		}
	}
	w.Expect(before).To(HaveLen(6))
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS = &v1alpha1.MooseFSSpec{BasePort: 9419, Config: v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}}
	})
	var waves []string
	for range 12 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		there := map[string]bool{}
		for _, p := range w.pods() {
			there[p.Name] = p.DeletionTimestamp.IsZero()
		}
		var away []string
		for name := range before {
			if !there[name] {
				away = append(away, racks[name])
			}
		}
		if len(away) > 0 {
			slices.Sort(away)
			waves = append(waves, strings.Join(away, ""))
			what := fmt.Sprintf("in failure domain %s: its configuration has changed", away[0])
			if len(away) > 1 {
				what = fmt.Sprintf("now %d servers (", len(away))
			}
			w.Expect(w.ready().Message).To(ContainSubstring(what))
		}
		w.runPods()
	}
	w.Expect(waves).To(Equal([]string{"aa", "a", "bb", "b"}), "with three copies, two servers may be away, and never in two racks")
	for _, p := range w.pods() {
		if component(&p) == "chunkserver" {
			w.Expect(string(p.UID)).NotTo(Equal(before[p.Name]), p.Name)
		}
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
}

func TestANodeWithoutTheLabelOfTheFailureDomainsJoinsAndIsNamed(t *testing.T) {
	w := racked(t, "a")
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.Expect(w.spread()).To(BeNil())
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.FailureDomains.Label = "rack" })
	w.settle()
	w.Expect(w.spread()).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonCopiesTogether))))
	w.rack(w.nodes[1], "b")
	w.settle()
	w.Expect(w.spread()).To(HaveValue(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonAsAsked))))
	w.rack(w.nodes[2], "")
	w.settle()
	w.Expect(w.spread()).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonNodesUnlabeled),
		HaveField("Message", ContainSubstring(w.nodes[2])))))
	w.Expect(w.poolNodes("ssd")).To(HaveLen(3), "joining is not refused")
	var secret corev1.Secret
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scratch-moosefs"}, &secret)).To(Succeed())
	w.Expect(string(secret.Data["mfstopology.cfg"])).To(Equal(fmt.Sprintf("10.9.0.1 a\n10.9.0.2 b\n10.9.0.3 node/%s\n", w.nodes[2])))
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.FailureDomains = v1alpha1.FailureDomainsSpec{} })
	w.settle()
	w.Expect(w.spread()).To(BeNil())
}
