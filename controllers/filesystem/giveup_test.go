package filesystem

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestANodeIsDecommissionedOnRequestAndOnlyAcceptedDataIsLost(t *testing.T) {
	lost := []string{"12 chunks have no copy left"}
	type given struct {
		node *v1alpha1.FileSystemNode
		c    circumstance
	}
	for name, c := range map[string]struct {
		change  func(g *given)
		reason  string
		message string
	}{
		"all data has its copies elsewhere": {change: func(*given) {}},
		"a word for another node": {func(g *given) { g.node.Annotations[v1alpha1.AnnotationGiveUp] = "oss3" },
			v1alpha1.ReasonGiveUpRefused, "set it to the name of the node"},
		"a filesystem that can't":         {func(g *given) { g.c.can = false }, v1alpha1.ReasonGiveUpRefused, "of this type can't go on without"},
		"the metadata is on it":           {func(g *given) { g.c.without.Never = "it has the metadata" }, v1alpha1.ReasonGiveUpRefused, "it has the metadata"},
		"it is Ready; to take out a node": {func(g *given) { g.c.ready = true }, v1alpha1.ReasonGiveUpRefused, "it is Ready; to take out a node"},
		"its server is online":            {func(g *given) { g.c.without.Here = "its server is online" }, v1alpha1.ReasonGiveUpRefused, "its server is online"},
		"nobody knows":                    {func(g *given) { g.c.without.Waits = "it does not answer" }, v1alpha1.ReasonGiveUpWaits, "it does not answer"},
		"it went a moment ago":            {func(g *given) { g.c.away = 4 * time.Minute }, v1alpha1.ReasonGiveUpWaits, "away for 5m0s"},
		"nobody has seen that it is off":  {func(g *given) { g.c.away = -1 }, v1alpha1.ReasonGiveUpWaits, "away for 5m0s"},
		"data would be lost":              {func(g *given) { g.c.without.Lost = lost }, v1alpha1.ReasonLossNotAccepted, "12 chunks have no copy left"},
		"another loss was accepted": {func(g *given) {
			g.c.without.Lost = lost
			g.node.Annotations[v1alpha1.AnnotationAcceptLoss] = lossWord(g.node, []string{"11 chunks have no copy left"})
		}, v1alpha1.ReasonLossNotAccepted, "12 chunks have no copy left"},
		"the loss of another node was accepted": {func(g *given) {
			g.c.without.Lost = lost
			g.node.Annotations[v1alpha1.AnnotationAcceptLoss] = lossWord(&v1alpha1.FileSystemNode{}, lost)
		}, v1alpha1.ReasonLossNotAccepted, "12 chunks have no copy left"},
		"this loss was accepted": {change: func(g *given) {
			g.c.without.Lost = lost
			g.node.Annotations[v1alpha1.AnnotationAcceptLoss] = lossWord(g.node, lost)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			what := &given{
				node: &v1alpha1.FileSystemNode{
					ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch-oss2-1a", UID: "77",
						Annotations: map[string]string{v1alpha1.AnnotationGiveUp: "oss2"}},
					Spec: v1alpha1.FileSystemNodeSpec{Node: "oss2"},
				},
				c: circumstance{can: true, away: time.Hour, without: backend.Without{Settles: 5 * time.Minute}},
			}
			c.change(what)
			r := decideToGiveUp(what.node, what.c)
			g.Expect(r.may).To(Equal(c.reason == ""))
			g.Expect(r.Reason).To(Equal(c.reason))
			g.Expect(r.Message).To(ContainSubstring(c.message))
			if r.may {
				g.Expect(r.lost).To(Equal(strings.Join(what.c.without.Lost, ", ")))
			}
		})
	}
}

func TestTheLossFitsIntoTheRecord(t *testing.T) {
	var lost []string
	for range 100 {
		lost = append(lost, strings.Repeat("ö", 1000))
	}
	node := &v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: "oss2"}}
	node.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "oss2", v1alpha1.AnnotationAcceptLoss: lossWord(node, lost)}
	r := decideToGiveUp(node, circumstance{can: true, without: backend.Without{Lost: lost}})
	NewWithT(t).Expect(len(r.lost)).To(And(BeNumerically(">", 2000), BeNumerically("<=", 2048)))
}
