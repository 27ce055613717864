//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// lifeTurns is how often each disruption is made by the operator and by hand, in turn.
const lifeTurns = 3

// disruption is something that is done to a filesystem while programs use it.
type disruption struct {
	name string
	// patch asks the operator for it, a little differently each time.
	patch func(turn int) string
	// byHand are the components whose pods a person restarts for it, in the vendor's order. What MooseFS's documents say of an update holds for
	// every restart: the master first, then one chunkserver after the other, each when the one before is connected again and no chunk
	// is endangered (MooseFS 4 Documentation, "Upgrading MooseFS").
	byHand []string
}

var disruptions = []disruption{
	{
		name:   "an option of the chunkservers changes",
		patch:  func(turn int) string { return fmt.Sprintf(`{"config":{"storage":{"WORKERS_MAX":"%d"}}}`, 50+turn) },
		byHand: []string{"chunkserver"},
	},
	{
		name: "an option of the master changes",
		patch: func(turn int) string {
			return fmt.Sprintf(`{"config":{"metadata":{"SESSION_SUSTAIN_TIME":"%d"}}}`, 80000+turn)
		},
		byHand: []string{"master"},
	},
}

// lifeIsCompared measures what programs feel of each disruption, made by the operator and by hand: `make life`.
func (s *story) lifeIsCompared() {
	It("has a filesystem that programs use", func() { s.isReady(newest, twoCopies) })
	for _, d := range disruptions {
		It("goes on while "+d.name, func() {
			var rows []string
			worst := map[string]felt{}
			for turn := range 2 * lifeTurns {
				who, do := "operator", s.byOperator
				if (turn+turn/2)%2 == 1 { // each is first in half of the turns
					who, do = "by hand", s.byPerson
				}
				out := s.use("ssd", func() { do(d, turn) })
				rows = append(rows, fmt.Sprintf("%-8s  %s", who, out))
				all := worst[who]
				all.write, all.read = max(all.write, out.write), max(all.read, out.read)
				worst[who] = all
				if who == "operator" {
					Expect([]int64{out.errors, out.bytes, int64(out.missing)}).To(Equal([]int64{0, 0, 0}), out.String())
				}
			}
			slices.SortStableFunc(rows, func(a, b string) int { return strings.Compare(b[:8], a[:8]) })
			report(d.name, fmt.Sprintf("%s\nlongest of all: operator write %.2f s, read %.2f s; by hand write %.2f s, read %.2f s", strings.Join(rows, "\n"),
				worst["operator"].write.Seconds(), worst["operator"].read.Seconds(), worst["by hand"].write.Seconds(), worst["by hand"].read.Seconds()))
		})
	}
}

// byOperator lets the operator do it, and waits until it is over.
func (s *story) byOperator(d disruption, turn int) {
	GinkgoHelper()
	before := s.serving(d.byHand)
	s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"updates":{"paused":false},"moosefs":`+d.patch(turn)+`}}`)
	Eventually(func() bool { return s.ready() && disjoint(before, s.serving(d.byHand)) }, 2*long).Should(BeTrue(), s.whyNotReady)
}

// byPerson does what a person does by hand. The operator only hands out the configuration.
func (s *story) byPerson(d disruption, turn int) {
	GinkgoHelper()
	s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"updates":{"paused":true},"moosefs":`+d.patch(turn)+`}}`)
	for _, component := range d.byHand {
		Eventually(func() bool { return s.outdated(component) }).Should(BeTrue())
		for _, pod := range s.serving([]string{component}) {
			s.kubectl("delete", "pod", pod)
			Eventually(func() bool { return !slices.Contains(s.serving([]string{component}), pod) && s.everythingServes() }, long, time.Second).Should(BeTrue())
		}
	}
}

// serving are the names of the pods of components, without those that are being stopped.
func (s *story) serving(components []string) (names []string) {
	for _, p := range s.componentPods(components...) {
		if p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func (s *story) componentPods(components ...string) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	which, err := labels.NewRequirement(v1alpha1.LabelComponent, selection.In, components)
	Expect(err).NotTo(HaveOccurred())
	Expect(api.List(context.Background(), &list, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*which)})).To(Succeed())
	return list.Items
}

// outdated is true while a pod of a component runs with another template than its DaemonSet has.
func (s *story) outdated(component string) bool {
	GinkgoHelper()
	var sets appsv1.DaemonSetList
	Expect(api.List(context.Background(), &sets, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelComponent: component})).To(Succeed())
	wanted := map[string]bool{}
	for i := range sets.Items {
		wanted[sets.Items[i].Spec.Template.Annotations[backend.TemplateHashAnnotation]] = true
	}
	return slices.ContainsFunc(s.componentPods(component), func(p corev1.Pod) bool { return !wanted[p.Annotations[backend.TemplateHashAnnotation]] })
}

// everythingServes is what a person looks at before the next step: all pods are Ready, and MooseFS says that no chunk is endangered.
func (s *story) everythingServes() bool {
	GinkgoHelper()
	for _, p := range s.componentPods("master", "chunkserver") {
		if !isReady(&p) {
			return false
		}
	}
	out, err := try("", "kubectl", "-n", s.namespace, "exec", s.podOn("master", workers[0]), "-c", "master", "--",
		"mfscli", "-j", "-H", "127.0.0.1", "-P", fmt.Sprint(s.port+2), "-SIC")
	var f felt
	f.count(out)
	return err == nil && f.samples == 1 && f.endangered+f.missing == 0
}

func disjoint(a, b []string) bool {
	return !slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}
