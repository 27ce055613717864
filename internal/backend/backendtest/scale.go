package backendtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"parallelfs.dev/operator/internal/backend"
)

// Scale measures each question to a backend alone, by the number of storage nodes. The input of a size has all that was seen of a
// filesystem that is well, and no allocation: Scale adds the backend's own. refused is 1 where a filesystem of this size is refused.
func Scale(b *testing.B, of backend.Backend, sizes []int, input func(t testing.TB, nodes int) backend.Input) {
	b.Helper()
	for _, nodes := range sizes {
		in := input(b, nodes)
		Remember(b, of, &in)
		questions := []struct {
			name string
			ask  func() error
		}{
			{"Allocate", func() error { _, err := of.Allocate(in); return err }},
			{"Nodes", func() error { of.Nodes(in); return nil }},
			{"Members", func() error { _, err := of.Members(in); return err }},
			{"Observe", func() error { of.Observe(in); return nil }},
		}
		for _, question := range questions {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, question.name), func(b *testing.B) {
				var err error
				for b.Loop() {
					err = question.ask()
				}
				b.ReportMetric(refused(b, err), "refused")
			})
		}
	}
}

// refused is 1 for an error that a person has to mend, 0 for none.
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

// Bounded checks that no object of a filesystem of 1000 nodes is larger than 64 KiB, besides lists of devices: neither its FileSystem, also
// while it is being made, nor any of its FileSystemNodes, when all of their disks are used.
func Bounded(t *testing.T, of backend.Backend, in backend.Input) {
	t.Helper()
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
		in.FileSystem.Status, in.FileSystemNodes = allocation.Status, backend.WithRecords(in.FileSystemNodes, allocation.Nodes)
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
	t.Logf("the FileSystem has at most %d bytes, a FileSystemNode %d; %d passes", largest, node, passes)
}
