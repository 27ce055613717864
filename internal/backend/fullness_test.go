package backend_test

import (
	"testing"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestTheSpreadOfDataIsReportedInSteps(t *testing.T) {
	g := NewWithT(t)
	holds := func(used int64) backend.TargetStatus {
		return backend.TargetStatus{Online: true, UsedBytes: used, CapacityBytes: 1000}
	}
	g.Expect(backend.Fullness(nil)).To(BeNil())
	g.Expect(backend.Fullness([]backend.TargetStatus{holds(500)})).To(BeNil(), "one target has nothing to share with")
	away, leaving, unknown := holds(0), holds(0), holds(0)
	away.Online, leaving.Removing, unknown.CapacityBytes = false, true, 0
	targets := []backend.TargetStatus{holds(749), away, holds(128), leaving, holds(400), unknown}
	g.Expect(backend.Fullness(targets)).To(PointTo(Equal(v1alpha1.PoolFullness{EmptiestPercent: 10, FullestPercent: 75})))
	g.Expect(backend.Fullness([]backend.TargetStatus{holds(0), holds(2000)})).To(PointTo(Equal(v1alpha1.PoolFullness{FullestPercent: 100})))
}
