package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestPassesOverOneFileSystemTakeAFifthOfTheTime(t *testing.T) {
	g := NewWithT(t)
	var p pace
	scratch, other := types.NamespacedName{Name: "scratch"}, types.NamespacedName{Name: "other"}
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	g.Expect(p.rest(scratch, at(0))).To(BeNumerically("<=", 0), "the first one begins at once")
	p.ended(scratch, 10*time.Millisecond, at(10*time.Millisecond), time.Second)
	g.Expect(p.rest(scratch, at(10*time.Millisecond))).To(Equal(time.Second))
	g.Expect(p.rest(other, at(10*time.Millisecond))).To(BeNumerically("<=", 0), "others do not wait for it")
	g.Expect(p.rest(scratch, at(2*time.Second))).To(BeNumerically("<=", 0))
	p.ended(scratch, time.Second, at(5*time.Second), time.Second)
	g.Expect(p.rest(scratch, at(5*time.Second))).To(Equal(4 * time.Second))
	p.ended(scratch, 90*time.Second, at(100*time.Second), time.Second)
	g.Expect(p.rest(scratch, at(100*time.Second))).To(Equal(5*time.Second), "one that has made thousands of objects")
	p.ended(scratch, time.Second, at(200*time.Second), 0)
	g.Expect(p.rest(scratch, at(200*time.Second))).To(Equal(-95*time.Second), "where there is no pause, nothing rests")
	p.forget(scratch)
	g.Expect(p.rest(scratch, at(5*time.Second))).To(BeNumerically("<=", 0))
}
