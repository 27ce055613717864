package provision

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestATargetIsEmptyWhenTwoLooksInARowFoundNoFile(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	later := noon.Add(betweenCounts)
	first := counted(nil, 3, 0, nil, noon)
	for name, c := range map[string]struct {
		before     *v1alpha1.TargetFiles
		generation int64
		left       int
		err        error
		now        time.Time
		empty      bool
	}{
		"one look is not enough":                    {nil, 3, 0, nil, noon, false},
		"nor are two at once":                       {first, 3, 0, nil, noon.Add(betweenCounts - 1), false},
		"two are":                                   {first, 3, 0, nil, later, true},
		"a file that comes back begins it anew":     {counted(first, 3, 1, nil, noon.Add(time.Second)), 3, 0, nil, later, false},
		"so does a look that failed":                {counted(first, 3, 0, errors.New("EIO"), noon.Add(time.Second)), 3, 0, nil, later, false},
		"so does a change of the spec":              {first, 4, 0, nil, later, false},
		"so does a clock that was set back":         {counted(nil, 3, 0, nil, later), 3, 0, nil, noon, false},
		"a failed scan proves nothing":              {first, 3, 0, errors.New("EIO"), later, false},
		"a file that is left is no proof of others": {first, 3, 2, nil, later, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := counted(c.before, c.generation, c.left, c.err, c.now)
			g.Expect(found.Empty).To(Equal(c.empty))
			g.Expect(found.ObservedGeneration).To(Equal(c.generation))
			if c.err != nil {
				g.Expect(found.Message).To(Equal("EIO"))
				g.Expect(found.NoneSince).To(BeNil())
			}
		})
	}
}
