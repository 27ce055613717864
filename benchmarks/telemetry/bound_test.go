package telemetry_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/telemetry"
)

// storage returns the figures of nodes with 24 disks and a daemon each; later nodes are busier.
func storage(nodes int) []telemetry.Summary {
	var out []telemetry.Summary
	for n := range nodes {
		node := fmt.Sprintf("oss%04d", n)
		for d := range 24 {
			out = append(out, telemetry.Summary{
				Node: node, Target: fmt.Sprintf("scratch-ssd-%05d", 24*n+d), Seconds: 60, Samples: 60,
				Utilization: float64(24*n+d) / float64(24*nodes), ReadIOPS: 10, WriteBytesPerSecond: 1 << 20,
			})
		}
		out = append(out, telemetry.Summary{Node: node, Daemon: "storage/scratch/storage/0", Seconds: 60, Samples: 60, CPUs: float64(n) / float64(nodes)})
	}
	return out
}

func TestStoredTelemetryDoesNotGrowWithTheFilesystem(t *testing.T) {
	g := NewWithT(t)
	all := storage(1000)
	kept := telemetry.Bound(all, 32)
	g.Expect(kept).To(HaveLen(24))
	g.Expect(telemetry.Short(kept, 8)).To(Equal(telemetry.Short(all, 8)), "the busiest, and what all did together, are the same")
	g.Expect(telemetry.Short(kept, 8)[2]).To(Equal("24000 targets together: 0B/s and 240000 IOPS read, 23.4GiB/s and 0 IOPS written, 50 % on average"))

	t.Run("of a filesystem that is small, everything", func(t *testing.T) {
		NewWithT(t).Expect(telemetry.Bound(storage(1)[:5], 32)).To(Equal(storage(1)[:5]))
	})
	t.Run("of several repetitions, their mean", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(telemetry.Short(append(telemetry.Bound(all, 32), telemetry.Bound(all, 32)...), 8)).To(Equal(telemetry.Short(all, 8)))
	})
	t.Run("and nodes without figures are counted", func(t *testing.T) {
		g := NewWithT(t)
		var silent []telemetry.Summary
		for i := range 300 {
			silent = append(silent, telemetry.Summary{Node: fmt.Sprintf("oss%04d", i), Problem: "its agent does not answer"})
		}
		kept := telemetry.Bound(silent, 32)
		g.Expect(kept).To(HaveLen(8))
		g.Expect(kept[7].Node).To(Equal("293 more nodes"))
	})
}
