package backendtest

import (
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
