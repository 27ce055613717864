//go:build scale

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAHundredNodesEndWithinTenMinutesAndTheUsualTwoSizesWithinHalfAnHour(t *testing.T) {
	g := NewWithT(t)
	g.Expect(limitOf([]int{100})).To(BeNumerically("<", 10*time.Minute))
	g.Expect(limitOf([]int{125, 250})).To(BeNumerically("<", 30*time.Minute))
	g.Expect(limitOf([]int{1000})).To(Equal(time.Hour))
}

func TestWaitsLeaveTimeForTheRest(t *testing.T) {
	// measured is the time for the idle minute and for all later measurements, with the waits until nothing is written.
	measured := func(p pace) time.Duration {
		const waits = 7
		return window + p.runsFor + p.restartFor + p.warmUp + p.writeFor + waits*quietFor
	}
	g := NewWithT(t)
	for _, nodes := range []int{quickNodes, usualNodes} {
		p := paceOf(nodes)
		g.Expect(measured(p)).To(BeNumerically("<", p.limit-ending-3*time.Minute), "%d nodes", nodes)
	}
}
