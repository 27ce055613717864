package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// Sizes lists the numbers of storage nodes that Scale measures.
var Sizes = []int{125, 250, 500, 1000}

// passGoal is the goal for the total time of Allocate, Members and Observe at the largest size (docs/adr/0050-scale-is-measured.md). It is
// printed beside the measured time. A longer time is no failure, because the speed of a busy machine shows nothing about the operator.
const passGoal = 250 * time.Millisecond

// Scale measures each method of a backend by the number of storage nodes. There is one row for each size, and a column of milliseconds for
// each method. The column "pass" is the time of Allocate, Members and Observe together, as in each pass of the controller. The row of the
// largest size has the goal for "pass" as "goal". The last row has the exponents of growth. The input for a size is a healthy filesystem
// without an allocation; Scale adds the backend's own. The column "refused" is 1 if a filesystem of this size is refused.
func Scale(b *testing.B, of backend.Backend, input func(t testing.TB, nodes int) backend.Input) {
	b.Helper()
	grew := map[string][]time.Duration{}
	for _, nodes := range Sizes {
		in := input(b, nodes)
		Remember(b, of, &in)
		var err error
		questions := []struct {
			name   string
			ask    func()
			inPass bool
		}{
			{"Allocate", func() { _, err = of.Allocate(in) }, true},
			{"Members", func() { _, err = of.Members(in) }, true},
			{"Observe", func() { of.Observe(in) }, true},
			{"Nodes", func() { of.Nodes(in) }, false},
		}
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			took, pass, failed := make([]time.Duration, len(questions)), time.Duration(0), 0.0
			for b.Loop() {
				for i, question := range questions {
					started := time.Now()
					question.ask()
					took[i] += time.Since(started)
					failed = max(failed, refused(b, err))
				}
			}
			for i, question := range questions {
				took[i] /= time.Duration(b.N)
				b.ReportMetric(milliseconds(took[i]), question.name+"-ms")
				grew[question.name] = append(grew[question.name], took[i])
				if question.inPass {
					pass += took[i]
				}
			}
			b.ReportMetric(milliseconds(pass), "pass-ms")
			if nodes == slices.Max(Sizes) {
				b.ReportMetric(milliseconds(passGoal), "goal-ms")
			}
			b.ReportMetric(0, "ns/op") // the columns say it
			b.ReportMetric(failed, "refused")
		})
	}
	b.Run("exponents", func(b *testing.B) {
		for _, question := range backend.SortedKeys(grew) {
			if took := grew[question]; len(took) == len(Sizes) {
				b.ReportMetric(exponent(took), question+"-exponent")
			}
		}
		b.ReportMetric(0, "ns/op")
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// exponent returns the exponent of growth: the slope of the regression line through the logarithms of the times at Sizes.
func exponent(took []time.Duration) float64 {
	var x, y, xx, xy float64
	for i, t := range took {
		size, time := math.Log(float64(Sizes[i])), math.Log(float64(t))
		x, y, xx, xy = x+size, y+time, xx+size*size, xy+size*time
	}
	n := float64(len(took))
	return (n*xy - x*y) / (n*xx - x*x)
}

// refused returns 1 for an error that a person has to solve, 0 for none.
func refused(b *testing.B, err error) float64 {
	b.Helper()
	var invalid *backend.InvalidSpecError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &invalid):
		return 1
	default:
		b.Fatal(err)
		return 0
	}
}

// Bounded checks that no object of a filesystem of 1000 nodes is larger than 64 KiB, except for lists of devices. It checks the FileSystem,
// also during its creation, the FileSystemNodes with all disks in use, and the children. Each node is in a failure domain of its own, with
// a name of the maximum length.
func Bounded(t *testing.T, of backend.Backend, in backend.Input) {
	t.Helper()
	const rack = "topology.kubernetes.io/rack"
	in.FileSystem.Spec.FailureDomains.Label = rack
	for i := range in.Nodes {
		in.Nodes[i].Labels = maps.Clone(in.Nodes[i].Labels)
		in.Nodes[i].Labels[rack] = fmt.Sprintf("%s-%06d", strings.Repeat("r", 56), i)
	}
	const most = 64 << 10
	size := func(object any) int {
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		return len(raw)
	}
	largest, passes := 0, 0
	for more := true; more; passes++ {
		allocation, err := of.Allocate(in)
		if err != nil {
			t.Fatalf("Allocate: %v", err)
		}
		in.FileSystem.Status, in.FileSystemNodes = allocation.Status, assign.WithRecords(in.FileSystemNodes, allocation.Nodes)
		largest, more = max(largest, size(in.FileSystem)), allocation.More || len(allocation.Nodes) > 0
	}
	if largest > most {
		t.Errorf("the FileSystem has %d bytes", largest)
	}
	node := 0
	for _, n := range of.Nodes(in) {
		node = max(node, size(n))
	}
	if node > most {
		t.Errorf("a FileSystemNode has %d bytes", node)
	}
	objects, err := of.Members(in)
	if err != nil {
		t.Fatalf("Members: %v", err)
	}
	child := 0
	for _, o := range objects {
		child = max(child, size(o))
		if size(o) > most {
			t.Errorf("%T %s has %d bytes", o, o.GetName(), size(o))
		}
	}
	t.Logf("the FileSystem has at most %d bytes, a FileSystemNode %d, any of %d other objects %d; %d passes", largest, node, len(objects), child, passes)
}
