package measured_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/measured"
)

func at(name string, offset, within time.Duration) measured.Machine {
	c := measured.Clock{Offset: offset, Within: within}
	return measured.Machine{Name: name, Elapsed: 10 * time.Second, Before: &c, After: &c}
}

func TestClocksThatDifferByMoreThanAHundredthOfARepetitionAreNamed(t *testing.T) {
	moved := at("b", 0, time.Millisecond)
	moved.After = &measured.Clock{Offset: -2 * time.Second, Within: time.Millisecond}
	later := at("b", 0, time.Millisecond)
	later.After = &measured.Clock{Offset: 101 * time.Millisecond}
	for name, c := range map[string]struct {
		report measured.Report
		says   string
	}{
		"they agree":                          {measured.Report{at("a", 0, 0), at("b", 100*time.Millisecond, 0)}, ""},
		"they differ":                         {measured.Report{at("a", 0, time.Millisecond), at("c", time.Millisecond, 0), at("b", 110*time.Millisecond, time.Millisecond)}, "before it the clocks of b and a differ by at least 108ms, more than 1 % of the 10s that it ran"},
		"they differ as one is behind":        {measured.Report{at("a", 0, 0), at("b", -time.Hour, time.Millisecond)}, "the clocks of a and b differ by at least 1h0m0s"},
		"the answer took too long to be sure": {measured.Report{at("a", 0, 0), at("b", 110*time.Millisecond, 20*time.Millisecond)}, ""},
		"they differ at the end":              {measured.Report{at("a", 0, 0), later}, "after it the clocks of b and a differ by at least 101ms"},
		"the only one was set":                {measured.Report{moved}, "the clock of b was set by -2s while it ran"},
		"one is not known":                    {measured.Report{at("a", 0, 0), {Name: "b", Problem: "ssh: connection refused"}}, ""},
		"none is known":                       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if c.says == "" {
				g.Expect(c.report.ClockTrouble()).To(BeEmpty())
			} else {
				g.Expect(c.report.ClockTrouble()).To(ContainSubstring(c.says))
			}
		})
	}
}

func TestAReportShowsHowFarClocksAreApart(t *testing.T) {
	g := NewWithT(t)
	g.Expect(measured.Report{at("a", 0, time.Millisecond), at("b", 5*time.Millisecond, time.Millisecond)}.Clocks()).
		To(Equal("the clocks of 2 clients differ by at most 7ms"))
	g.Expect(measured.Report{at("a", 0, time.Millisecond), at("b", 0, time.Millisecond)}.Clocks()).
		To(Equal("the clocks of 2 clients differ by at most 2ms"))
	g.Expect(measured.Report{at("a", 0, 0), {Name: "b", Problem: "no answer"}}.Clocks()).
		To(Equal("of 1 clients the clock is not known, such as b (no answer)"))
	g.Expect(measured.Report{at("a", 0, 0)}.Clocks()).To(BeEmpty())
}

func TestThrottlingIsReadFromBothVersionsOfCgroups(t *testing.T) {
	g := NewWithT(t)
	g.Expect(measured.ParseStat("usage_usec 7\nnr_periods 90\nnr_throttled 30\nthrottled_usec 1500000\n")).
		To(HaveValue(Equal(measured.Throttling{Periods: 90, Throttled: 30, Time: 1500 * time.Millisecond})))
	g.Expect(measured.ParseStat("nr_periods 90\nnr_throttled 30\nthrottled_time 1500000000\n")).
		To(HaveValue(Equal(measured.Throttling{Periods: 90, Throttled: 30, Time: 1500 * time.Millisecond})))
	g.Expect(measured.ParseStat("usage_usec 7\n")).To(BeNil(), "the root of all cgroups has no quota")
}

func TestTheLinesOfMachinesAreReadFromAnOutput(t *testing.T) {
	g := NewWithT(t)
	m := at("worker-0", time.Millisecond, time.Microsecond)
	m.Throttled = &measured.Throttling{Periods: 90, Throttled: 30, Time: 1500 * time.Millisecond}
	report := measured.Read([]byte("write 7 kB/s\nparallelfs: machine {broken\nparallelfs: " + m.Line() + "\nparallelfs: ready\n"))
	g.Expect(report).To(Equal(measured.Report{m}))
	g.Expect(report.Throttled()).To(Equal("the CPU quota held the container on worker-0 back in 30 of 90 periods, for 1.5s"))
	g.Expect(measured.Report{at("a", 0, 0)}.Throttled()).To(BeEmpty())
	g.Expect(m.Throttled.Since(&measured.Throttling{Periods: 80, Throttled: 30, Time: 1500 * time.Millisecond})).
		To(HaveValue(Equal(measured.Throttling{Periods: 10})))
}
