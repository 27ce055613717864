//go:build envtest

package filesystem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// bringers returns the DaemonSets that bring images to nodes.
func (w *world) bringers() []appsv1.DaemonSet {
	w.t.Helper()
	var list appsv1.DaemonSetList
	w.Expect(server.Client.List(w.ctx, &list, client.InNamespace(w.namespace), client.HasLabels{v1alpha1.LabelImages})).To(Succeed())
	return slices.DeleteFunc(list.Items, func(s appsv1.DaemonSet) bool { return !s.DeletionTimestamp.IsZero() })
}

// runPulls simulates the controller and the kubelets for DaemonSets that bring images to nodes, and reports whether anything changed.
func (w *world) runPulls() (changed bool) {
	w.t.Helper()
	sets := w.bringers()
	if w.pulls == nil {
		w.pulls = map[string]*corev1.Pod{}
	}
	wanted := map[string]bool{}
	for _, set := range sets {
		for _, node := range w.nodes {
			name := set.Name + "." + node
			wanted[name] = w.mayRun(set, node)
			if !wanted[name] {
				continue
			}
			pod, why := w.pulls[name], w.unpullable[node]
			full := strings.HasPrefix(why, "0/3 nodes are available")
			if pod != nil && pod.Spec.NodeName == "" && !full {
				w.Expect(server.Client.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
				pod = nil
			}
			if pod == nil {
				pod = &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Name: name, Namespace: w.namespace, Labels: set.Spec.Template.Labels,
						OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
					},
					Spec: *set.Spec.Template.Spec.DeepCopy(),
				}
				pod.Spec.NodeName, pod.Spec.Affinity = node, podspec.OnNodes(node) // as the controller of DaemonSets does
				if full {
					pod.Spec.NodeName = ""
				}
				w.Expect(server.Client.Create(w.ctx, pod)).To(Succeed())
				w.pulls[name], changed = pod, true
			}
			ready, state := corev1.ConditionTrue, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			if why != "" {
				ready, state = corev1.ConditionFalse, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: "ImagePullBackOff", Message: "Back-off pulling image: ErrImagePull: " + why}}
			}
			if len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Status == ready {
				continue
			}
			if full {
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: why}}
				w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
				continue
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "image", Ready: ready == corev1.ConditionTrue, State: state}}
			w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
			changed = true
		}
	}
	for name, pod := range w.pulls {
		if !wanted[name] {
			w.Expect(server.Client.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
			delete(w.pulls, name)
			changed = true
		}
	}
	return changed
}

// mayRun reports whether one term of the affinity of a DaemonSet allows a node.
func (w *world) mayRun(set appsv1.DaemonSet, name string) bool {
	w.t.Helper()
	var node corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
	terms := set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(term corev1.NodeSelectorTerm) bool {
		for _, f := range term.MatchFields {
			if !slices.Contains(f.Values, name) {
				return false
			}
		}
		for _, e := range term.MatchExpressions {
			if !labels.Set(node.Labels).Has(e.Key) || !slices.Contains(e.Values, node.Labels[e.Key]) {
				return false
			}
		}
		return true
	})
}

func TestAnUpgradeBeginsOnlyWhenEachServersNodeHasTheNewImage(t *testing.T) {
	w := olderMooseFS(t)
	before := w.uids()
	w.unpullable = map[string]string{w.nodes[1]: "moosefs:4.57.5: not found", w.nodes[2]: "0/3 nodes are available: 1 Too many pods"}
	w.change(goesTo(newVersion))
	w.settle()
	w.Expect(w.upgrading()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonImagesMissing),
		HaveField("Message", Equal(fmt.Sprintf("the upgrade from 3.0.117 to 4.57.5 begins when the nodes of all servers have their new images; 2 of 3 are missing: "+
			"%s can't pull moosefs:4.57.5: ErrImagePull: moosefs:4.57.5: not found, %s can't pull moosefs:4.57.5: 0/3 nodes are available: 1 Too many pods",
			w.nodes[1], w.nodes[2])))))
	w.isAsBefore(before)
	sets := w.bringers()
	w.Expect(sets).To(HaveLen(1), "all servers of MooseFS have one image")
	w.Expect(sets[0].Spec.Template.Spec.Containers).To(HaveExactElements(HaveField("Image", "moosefs:4.57.5")))

	delete(w.unpullable, w.nodes[1])
	w.settle()
	w.Expect(w.upgrading().Message).To(ContainSubstring("1 of 3 are missing: " + w.nodes[2]))
	w.isAsBefore(before)

	w.change(goesTo(oldVersion))
	w.settle()
	w.Expect(w.bringers()).To(BeEmpty(), "nobody asks for it any more")
	w.isAsBefore(before)

	w.change(goesTo(newVersion))
	w.unpullable = nil
	w.started = func() {
		w.t.Helper()
		if w.run("master")[newVersion] == 1 && w.run("chunkserver")[oldVersion] > 0 {
			w.Expect(w.bringers()).To(HaveLen(1), "what is to be used soon is not removed by a kubelet")
		}
	}
	w.settle()
	w.Expect(w.get().Status).To(And(HaveField("Version", newVersion), HaveField("Upgrade", BeNil())))
	w.Expect(w.run("chunkserver")).To(Equal(map[string]int{newVersion: 3}))
	w.Expect(w.bringers()).To(BeEmpty())
	w.Expect(w.pulls).To(BeEmpty())
}

func TestADeletedFileSystemBringsNoImagesToNodes(t *testing.T) {
	for name, options := range map[string][]client.DeleteOption{
		"with its daemons":    nil,
		"and leaves the rest": {client.PropagationPolicy(metav1.DeletePropagationOrphan)},
	} {
		t.Run(name, func(t *testing.T) {
			w := olderMooseFS(t)
			w.unpullable = map[string]string{w.nodes[1]: "not found"}
			w.change(goesTo(newVersion))
			w.settle()
			w.Expect(w.bringers()).To(HaveLen(1))
			w.Expect(server.Client.Delete(w.ctx, w.get(), options...)).To(Succeed())
			_ = w.reconcile(server.Client)
			w.Expect(w.bringers()).To(BeEmpty())
		})
	}
}
