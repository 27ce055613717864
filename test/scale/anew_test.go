//go:build scale

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAManagerIsIdleWhenItHasUsedLittleForLongEnough(t *testing.T) {
	g := NewWithT(t)
	begun := time.Now()
	c := idleness{enough: 3 * time.Second, share: 0.1}
	used := func(second int, cpu time.Duration) bool {
		c.add(begun.Add(time.Duration(second)*time.Second), cpu)
		return c.is()
	}
	g.Expect(used(0, 0)).To(BeFalse())
	g.Expect(used(2, 10*time.Millisecond)).To(BeFalse(), "not for long enough")
	g.Expect(used(4, 2*time.Second)).To(BeFalse(), "it has begun")
	g.Expect(used(6, 2100*time.Millisecond)).To(BeFalse(), "what it used before is within the time")
	g.Expect(used(7, 2200*time.Millisecond)).To(BeTrue())
	since, cpu := c.since()
	g.Expect(since).To(Equal(begun.Add(4 * time.Second)))
	g.Expect(cpu).To(Equal(2 * time.Second))
}
