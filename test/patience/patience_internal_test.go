package patience

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestABoundGrowsWithTheLoadOfEachCore(t *testing.T) {
	for name, c := range map[string]struct {
		loadavg string
		cores   int
		want    float64
	}{
		"an idle machine":                             {"0.05 0.10 0.20 1/137 4711", 2, 1},
		"a process on each core":                      {"2.00 2.00 2.00 2/137 4711", 2, 1},
		"three processes on each core":                {"6.00 2.00 1.00 3/137 4711", 2, 3},
		"processes that have just started":            {"1.00 1.00 1.00 12/137 4711", 2, 6},
		"a hundred processes on two cores":            {"100.00 90.00 50.00 90/1370 4711", 2, 10},
		"a hundred processes on a hundred cores":      {"100.00 90.00 50.00 90/1370 4711", 100, 1},
		"a system without /proc/loadavg":              {"", 2, 1},
		"a /proc/loadavg of another form":             {"busy very busy", 2, 1},
		"a /proc/loadavg whose numbers are none":      {"a b c d/e f", 2, 1},
		"a /proc/loadavg whose second part is no one": {"8.00 b c d/e f", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ofLoad(c.loadavg, c.cores)).To(Equal(c.want))
		})
	}
}

func TestABoundGrowsWithTheTimeThatWorkTakes(t *testing.T) {
	for took, want := range map[time.Duration]float64{0: 1, workTime / 2: 1, workTime: 1, 4 * workTime: 4, 1000 * workTime: maxFactor} {
		NewWithT(t).Expect(ofWork(took)).To(Equal(want), took.String())
	}
}

func TestABoundIsAtLeastWhatWasAskedForAndAtMostTenTimesThat(t *testing.T) {
	NewWithT(t).Expect(Bound(time.Minute)).To(And(BeNumerically(">=", time.Minute), BeNumerically("<=", 10*time.Minute)))
	NewWithT(t).Expect(Flag(time.Minute)).To(MatchRegexp(`^--timeout=\d{2,3}s$`))
	NewWithT(t).Expect(scaled(20*time.Second, 2.5)).To(Equal(50 * time.Second))
}

func BenchmarkWork(b *testing.B) {
	for b.Loop() {
		work()
	}
}
