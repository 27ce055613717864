package benchmarks_test

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
)

// figures returns the figures of values, rounded to two digits.
func figures(values []float64, ofAll bool) (least, most, mean, deviation float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		least, most, mean = min(least, v), max(most, v), mean+v/float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean)
	}
	n := float64(len(values))
	if !ofAll {
		n--
	}
	if n > 0 {
		deviation = math.Sqrt(deviation / n)
	}
	round := func(v float64) float64 { return math.Round(v*100) / 100 }
	return round(least), round(most), round(mean), round(deviation)
}

func TestFiguresOfTheSameValuesNeverContradictEachOther(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		values := make([]float64, 1+chance.IntN(12))
		spread := math.Pow(10, float64(chance.IntN(6)))
		for i := range values {
			values[i] = 1000 + spread*chance.NormFloat64()
			if chance.IntN(4) == 0 {
				values[i] = values[0]
			}
		}
		least, most, mean, deviation := figures(values, chance.IntN(2) == 0)
		if benchmarks.Contradict(int64(len(values)), least, most, mean, deviation, 0.011) {
			t.Fatalf("%v: %v %v %v %v", values, least, most, mean, deviation)
		}
		if len(values) > 1 && benchmarks.Contradict(0, least, most, mean, deviation, 0.011) {
			t.Fatalf("of a count that is not known: %v: %v %v %v %v", values, least, most, mean, deviation)
		}
	}
}

func TestFiguresThatCanNotBeOfTheSameValuesAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		count                        int64
		least, most, mean, deviation float64
	}{
		"one value with two figures":                  {1, 0, 90, 0, 0},
		"one value with a deviation":                  {1, 5, 5, 5, 1},
		"a mean below the least":                      {3, 10, 20, 9, 4},
		"a mean above the most":                       {3, 10, 20, 21, 4},
		"two values whose mean is not in the middle":  {2, 10, 20, 12, 5},
		"three values of which one would be too high": {3, 10, 20, 19, 4},
		"no deviation of values that differ":          {5, 10, 20, 15, 0},
		"a deviation that lacks its first digit":      {3, 100, 200, 150, 1.25},
		"a deviation larger than can be":              {5, 10, 20, 15, 8},
		"no deviation of some values that differ":     {0, 10, 20, 15, 0},
	} {
		NewWithT(t).Expect(benchmarks.Contradict(c.count, c.least, c.most, c.mean, c.deviation, 0.011)).To(BeTrue(), name)
	}
}
