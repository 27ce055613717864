package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Schedule is the order in which the repetitions of a run's points are run. It is stateless and deterministic.
type Schedule struct {
	// Points is the number of points.
	Points int
	// Repetitions is the number for each point.
	Repetitions int
	// Order is the order of the repetitions.
	Order v1alpha1.RunOrder
	// Seed is the seed of the order Shuffled.
	Seed int64
	// WarmUp is nil without warm-ups.
	WarmUp *v1alpha1.WarmUpSpec
}

// NewSchedule returns the schedule of a run with this number of points. The seed is from the spec, or derived from the run's uid.
func NewSchedule(spec *v1alpha1.BenchmarkRunSpec, points int, uid types.UID) Schedule {
	s := Schedule{Points: points, Repetitions: max(int(spec.Repetitions), 1), Order: spec.Order, WarmUp: spec.WarmUp}
	if spec.Order == v1alpha1.OrderShuffled {
		s.Seed = Seed(uid)
		if spec.Seed != nil {
			s.Seed = *spec.Seed
		}
	}
	return s
}

// largestSeed is the largest number that every JSON reader represents exactly, 2^53-1.
const largestSeed = 1<<53 - 1

// Seed derives the seed of a run without one from its uid.
func Seed(uid types.UID) int64 {
	sum := sha256.Sum256([]byte(uid))
	return int64(binary.BigEndian.Uint64(sum[:8]) & largestSeed)
}

// Turn is one repetition of one point.
type Turn struct {
	// Point is the index of the point.
	Point int
	// Repetition counts from 1; warm-ups are counted separately, also from 1.
	Repetition int
	// WarmUp is true for a repetition that does not count.
	WarmUp bool
}

// Progress is the progress of a point.
type Progress struct {
	// WarmUps and Repetitions count the completed ones; retries of one count once.
	WarmUps, Repetitions int
	// Ended is true for a point that gets no more turns: one of its repetitions has failed permanently, or was disturbed too often.
	Ended bool
	// More is true for a point that needs another repetition beyond those in the spec (stats.Enough is false).
	More bool
}

// over is true for a point that gets no more turns.
func (s Schedule) over(p Progress) bool {
	return p.Ended || p.Repetitions >= s.Repetitions && !p.More
}

// Next returns the next turn; false if everything is done. progress has one entry for each point. A turn stays the next one until progress
// contains its completion, so a repetition that is retried is simply returned again.
//
// AsWritten continues with the first point that is not done. Shuffled proceeds in blocks: block r contains repetition r of every point that
// is not done, in an order of its own. A point's warm-ups come right before its first repetition.
func (s Schedule) Next(progress []Progress) (Turn, bool) {
	if s.Order != v1alpha1.OrderShuffled {
		for point, p := range progress {
			if !s.over(p) {
				return s.turn(point, p, 0), true
			}
		}
		return Turn{}, false
	}
	block := -1
	for _, p := range progress {
		if !s.over(p) && (block < 0 || p.Repetitions < block) {
			block = p.Repetitions
		}
	}
	if block < 0 {
		return Turn{}, false
	}
	order := Shuffle(s.Seed, block+1, len(progress))
	for _, point := range order {
		if p := progress[point]; !s.over(p) && p.Repetitions == block {
			return s.turn(point, p, Shuffle(s.Seed, 1, len(progress))[0]), true
		}
	}
	return Turn{}, false
}

// turn returns the next turn of a point; first is the point at which the run starts.
func (s Schedule) turn(point int, p Progress, first int) Turn {
	if s.WarmUp != nil && p.Repetitions == 0 && (point == first || s.WarmUp.Of == v1alpha1.WarmUpEach) &&
		p.WarmUps < max(int(s.WarmUp.Repetitions), 1) {
		return Turn{Point: point, Repetition: p.WarmUps + 1, WarmUp: true}
	}
	return Turn{Point: point, Repetition: p.Repetitions + 1}
}

// Shuffle returns the numbers below n in the order of one block; blocks count from 1. It never changes: the generator is PCG-DXSM, which
// math/rand/v2 guarantees. The conversion of its numbers is implemented here, because Go guarantees no function for it.
func Shuffle(seed int64, block, n int) []int {
	source := rand.NewPCG(uint64(seed), uint64(block)) //nolint:gosec // bits are taken as they are
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	for i := n - 1; i > 0; i-- {
		j := below(source, uint64(i)+1)
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// below returns a uniformly distributed number below n. Numbers of an incomplete last range are discarded.
func below(source *rand.PCG, n uint64) uint64 {
	rest := -n % n // 2^64 modulo n
	for {
		if v := source.Uint64(); v >= rest {
			return v % n
		}
	}
}
