package filesystem

import (
	"iter"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheAgeOfAnObservationCountsFromTheLastChangeOrAbsence(t *testing.T) {
	g := NewWithT(t)
	var s observations
	pods := observedGroup{types.NamespacedName{Namespace: "storage", Name: "scratch"}, "pods"}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	things := func(as map[types.UID]string) iter.Seq2[types.UID, how] {
		return func(yield func(types.UID, how) bool) {
			for uid, text := range as {
				if !yield(uid, how{text: text}) {
					return
				}
			}
		}
	}
	see := func(as map[types.UID]string, minutes int) map[types.UID]time.Time {
		return s.see(pods, things(as), noon.Add(time.Duration(minutes)*time.Minute))
	}
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	g.Expect(see(map[types.UID]string{"a": "start 1", "b": "start 1"}, 0)).To(Equal(map[types.UID]time.Time{"a": at(0), "b": at(0)}))
	g.Expect(see(map[types.UID]string{"a": "start 1", "b": "start 2"}, 1)).To(Equal(map[types.UID]time.Time{"a": at(0), "b": at(1)}), "b was started again")
	g.Expect(see(map[types.UID]string{"a": "start 1"}, 2)).To(Equal(map[types.UID]time.Time{"a": at(0)}))
	g.Expect(see(map[types.UID]string{"a": "start 1", "b": "start 2"}, 3)).To(Equal(map[types.UID]time.Time{"a": at(0), "b": at(3)}), "b was away")
	targets := observedGroup{pods.fileSystem, "targets"}
	g.Expect(s.see(targets, things(map[types.UID]string{"a": "start 1"}), at(4))).To(Equal(map[types.UID]time.Time{"a": at(4)}), "what has another kind is another thing")
	s.forget(pods.fileSystem)
	g.Expect(s.of).To(BeEmpty())
	g.Expect(see(map[types.UID]string{"a": "start 1"}, 5)).To(Equal(map[types.UID]time.Time{"a": at(5)}), "as by a manager that was just started")
}
