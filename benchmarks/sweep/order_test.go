package sweep_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// text formats turns as "point.repetition", a warm-up as "point.w1".
func text(turns []sweep.Turn) string {
	var out []string
	for _, t := range turns {
		kind := ""
		if t.WarmUp {
			kind = "w"
		}
		out = append(out, fmt.Sprintf("%d.%s%d", t.Point, kind, t.Repetition))
	}
	return strings.Join(out, " ")
}

// turns returns all turns of a run without failures and without additional repetitions.
func turns(s sweep.Schedule) []sweep.Turn {
	var out []sweep.Turn
	progress := make([]sweep.Progress, s.Points)
	for {
		turn, more := s.Next(progress)
		if !more {
			return out
		}
		out = append(out, turn)
		if p := &progress[turn.Point]; turn.WarmUp {
			p.WarmUps++
		} else {
			p.Repetitions++
		}
	}
}

func TestTurns(t *testing.T) {
	warm := func(of v1alpha1.WarmUpPoints, n int32) *v1alpha1.WarmUpSpec {
		return &v1alpha1.WarmUpSpec{Of: of, Repetitions: n}
	}
	for name, test := range map[string]struct {
		schedule sweep.Schedule
		want     string
	}{
		"as written, a point has all its repetitions before the next": {
			sweep.Schedule{Points: 3, Repetitions: 2}, "0.1 0.2 1.1 1.2 2.1 2.2"},
		"the first point is warmed up": {
			sweep.Schedule{Points: 2, Repetitions: 2, WarmUp: warm(v1alpha1.WarmUpFirst, 2)}, "0.w1 0.w2 0.1 0.2 1.1 1.2"},
		"each point is warmed up, right before it is measured": {
			sweep.Schedule{Points: 2, Repetitions: 2, WarmUp: warm(v1alpha1.WarmUpEach, 1)}, "0.w1 0.1 0.2 1.w1 1.1 1.2"},
		// These orders are in the results of past runs: if they changed, the runs could not be repeated.
		"shuffled, each block holds one repetition of every point": {
			sweep.Schedule{Points: 5, Repetitions: 3, Order: v1alpha1.OrderShuffled, Seed: 1},
			"2.1 4.1 1.1 3.1 0.1 1.2 2.2 3.2 4.2 0.2 2.3 0.3 3.3 1.3 4.3"},
		"another seed is another order": {
			sweep.Schedule{Points: 5, Repetitions: 3, Order: v1alpha1.OrderShuffled, Seed: 2},
			"2.1 0.1 3.1 4.1 1.1 4.2 1.2 0.2 2.2 3.2 2.3 4.3 1.3 0.3 3.3"},
		"shuffled, the point that is run first is warmed up": {
			sweep.Schedule{Points: 5, Repetitions: 1, Order: v1alpha1.OrderShuffled, Seed: 1, WarmUp: warm(v1alpha1.WarmUpFirst, 2)},
			"2.w1 2.w2 2.1 4.1 1.1 3.1 0.1"},
		"shuffled, each point is warmed up right before its first repetition": {
			sweep.Schedule{Points: 3, Repetitions: 2, Order: v1alpha1.OrderShuffled, Seed: 9007199254740991, WarmUp: warm(v1alpha1.WarmUpEach, 1)},
			"2.w1 2.1 0.w1 0.1 1.w1 1.1 0.2 1.2 2.2"},
		"without points there is nothing": {sweep.Schedule{Repetitions: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(text(turns(test.schedule))).To(Equal(test.want))
		})
	}
}

func TestNext(t *testing.T) {
	written := sweep.Schedule{Points: 3, Repetitions: 2, WarmUp: &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpEach, Repetitions: 1}}
	shuffled := sweep.Schedule{Points: 5, Repetitions: 2, Order: v1alpha1.OrderShuffled, Seed: 1}
	first := sweep.Schedule{Points: 5, Repetitions: 2, Order: v1alpha1.OrderShuffled, Seed: 1, WarmUp: &v1alpha1.WarmUpSpec{}}
	done := sweep.Progress{WarmUps: 1, Repetitions: 2}
	one := sweep.Progress{Repetitions: 1}
	order := sweep.Shuffle(1, 1, 5)
	for name, test := range map[string]struct {
		schedule sweep.Schedule
		progress []sweep.Progress
		want     string
	}{
		"a point that has failed gets no more turns": {written, []sweep.Progress{{WarmUps: 1, Repetitions: 1, Ended: true}, {}, {}}, "1.w1"},
		"a repetition that is not over is asked for again": {
			written, []sweep.Progress{{WarmUps: 1}, {}, {}}, "0.1"},
		"a point that is not certain enough gets another repetition before the next point": {
			written, []sweep.Progress{{WarmUps: 1, Repetitions: 2, More: true}, {}, {}}, "0.3"},
		"a point that needs more but has failed gets none": {
			written, []sweep.Progress{{WarmUps: 1, Repetitions: 2, More: true, Ended: true}, {}, {}}, "1.w1"},
		"that a point is not certain yet means nothing before it has all of the spec": {
			written, []sweep.Progress{done, {WarmUps: 1, Repetitions: 1, More: true}, {}}, "1.2"},
		"when all is over there is no turn": {written, []sweep.Progress{done, {Ended: true}, done}, ""},
		"shuffled, a block is run to its end before the next begins": {
			shuffled, progress(5, order[:4], one), fmt.Sprintf("%d.1", order[4])},
		"shuffled, what needs more gets it in blocks of its own": {
			shuffled, []sweep.Progress{done, {Repetitions: 2, More: true}, done, done, {Repetitions: 3, More: true}}, "1.3"},
		"shuffled, the next point of a block follows one that has failed": {
			shuffled, progress(5, order[:2], sweep.Progress{Ended: true}), fmt.Sprintf("%d.1", order[2])},
		"shuffled, the second point is not warmed up when the first has failed in its warm-up": {
			first, progress(5, order[:1], sweep.Progress{Ended: true}), fmt.Sprintf("%d.1", order[1])},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			turn, more := test.schedule.Next(test.progress)
			g.Expect(more).To(Equal(test.want != ""))
			if more {
				g.Expect(text([]sweep.Turn{turn})).To(Equal(test.want))
			}
		})
	}
}

// progress returns the progress of n points, of which the listed ones have the given progress.
func progress(n int, of []int, far sweep.Progress) []sweep.Progress {
	out := make([]sweep.Progress, n)
	for _, point := range of {
		out[point] = far
	}
	return out
}

func TestEveryPointGetsWhatItNeedsWhateverHappens(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		g := NewWithT(t)
		s := sweep.Schedule{Points: chance.IntN(20), Repetitions: 1 + chance.IntN(4), Seed: chance.Int64N(1 << 53)}
		if chance.IntN(2) == 0 {
			s.Order = v1alpha1.OrderShuffled
		}
		if chance.IntN(2) == 0 {
			s.WarmUp = &v1alpha1.WarmUpSpec{Of: []v1alpha1.WarmUpPoints{v1alpha1.WarmUpFirst, v1alpha1.WarmUpEach}[chance.IntN(2)], Repetitions: int32(1 + chance.IntN(2))}
		}
		needs, fails := make([]int, s.Points), make([]bool, s.Points)
		for i := range needs {
			needs[i], fails[i] = s.Repetitions+chance.IntN(3), chance.IntN(5) == 0
		}
		progress := make([]sweep.Progress, s.Points)
		for turns := 0; ; turns++ {
			for i := range progress {
				progress[i].More = progress[i].Repetitions < needs[i]
			}
			turn, more := s.Next(progress)
			if !more {
				break
			}
			g.Expect(turns).To(BeNumerically("<", 1000))
			p := &progress[turn.Point]
			switch {
			case turn.WarmUp:
				g.Expect(turn.Repetition).To(Equal(p.WarmUps + 1))
				p.WarmUps++
			default:
				g.Expect(turn.Repetition).To(Equal(p.Repetitions + 1))
				if p.Repetitions++; fails[turn.Point] {
					p.Ended = true
				}
			}
		}
		for i, p := range progress {
			want := needs[i]
			if fails[i] {
				want = 1
			}
			g.Expect(p.Repetitions).To(Equal(want))
		}
	}
}

func TestAShuffleIsAPermutationAndEachPlaceIsAsLikelyAsTheOthers(t *testing.T) {
	g := NewWithT(t)
	places := [4][4]int{}
	for block := range 40000 {
		order := sweep.Shuffle(42, block+1, 4)
		g.Expect(slices.Sorted(slices.Values(order))).To(Equal([]int{0, 1, 2, 3}))
		for place, point := range order {
			places[point][place]++
		}
	}
	for _, of := range places {
		for _, count := range of {
			// 10000 are expected, with a standard deviation of 87. The seed is fixed, so that the counts are too.
			g.Expect(count).To(BeNumerically("~", 10000, 350))
		}
	}
	g.Expect(sweep.Shuffle(1, 1, 0)).To(BeEmpty())
}

func TestTheSeed(t *testing.T) {
	g := NewWithT(t)
	spec := &v1alpha1.BenchmarkRunSpec{Repetitions: 3, Order: v1alpha1.OrderShuffled}
	made := sweep.NewSchedule(spec, 5, "1b4e28ba-2fa1-11d2-883f-0016d3cca427")
	g.Expect(made).To(Equal(sweep.Schedule{Points: 5, Repetitions: 3, Order: v1alpha1.OrderShuffled, Seed: 594891010543000}), "it is made from the uid")
	g.Expect(sweep.Seed("another")).NotTo(Equal(made.Seed))
	given := int64(0)
	spec.Seed = &given
	g.Expect(sweep.NewSchedule(spec, 5, "1b4e28ba-2fa1-11d2-883f-0016d3cca427").Seed).To(BeZero(), "0 is a seed")
	for i := range 1000 {
		g.Expect(sweep.Seed(types.UID(fmt.Sprint("uid-", i)))).To(And(BeNumerically(">=", 0), BeNumerically("<=", 9007199254740991)))
	}
}
