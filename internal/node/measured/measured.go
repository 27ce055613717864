// Package measured is the node binary's report on the machines of a benchmark repetition: the differences of their clocks, and the kernel's
// throttling of their containers. The report is in lines of the output that the operator reads and no tool's parser sees.
package measured

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prefix begins each line of a report, after "parallelfs: ".
const Prefix = "machine "

// Machine is one machine during a repetition. Its JSON names are short, because there is one line for each of up to a thousand workers.
type Machine struct {
	Name string `json:"name"`
	// Elapsed is the run time of the tool by the monotonic clock of the machine that started it.
	Elapsed time.Duration `json:"elapsed,omitempty"`
	// Before and After are the clock before and after the tool ran, or nil if it could not be read.
	Before *Clock `json:"before,omitempty"`
	After  *Clock `json:"after,omitempty"`
	// Throttled is the throttling of the container in between, or nil if the kernel does not report it.
	Throttled *Throttling `json:"throttled,omitempty"`
	// Problem explains why the clock could not be read.
	Problem string `json:"problem,omitempty"`
}

// Clock is the offset of a machine's clock from that of the asking machine, which is monotonic from its first reading. The true offset is
// at most Within away, which is half of the round-trip time.
type Clock struct {
	Offset time.Duration `json:"offset"`
	Within time.Duration `json:"within,omitempty"`
}

// Throttling counts the periods of the kernel's CPU controller, and the periods in which a container had used up its quota (cpu.stat of
// cgroups).
type Throttling struct {
	Periods   int64         `json:"periods"`
	Throttled int64         `json:"throttled"`
	Time      time.Duration `json:"time"`
}

// Answer is a machine's response to one request.
type Answer struct {
	// Now is the clock in nanoseconds since 1970.
	Now int64 `json:"now"`
	// Stat is the container's throttling since its start, or nil if the kernel does not report it.
	Stat *Throttling `json:"stat,omitempty"`
}

// Since returns the increase of the counters. It is nil unless both readings exist.
func (t *Throttling) Since(before *Throttling) *Throttling {
	if t == nil || before == nil {
		return nil
	}
	return &Throttling{Periods: t.Periods - before.Periods, Throttled: t.Throttled - before.Throttled, Time: t.Time - before.Time}
}

// ParseStat reads a cpu.stat of cgroups, version 2 or 1. It returns nil if there is no throttling line.
func ParseStat(text string) *Throttling {
	values := map[string]int64{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), " "); found {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				values[name] = n
			}
		}
	}
	throttled, known := values["nr_throttled"]
	if !known {
		return nil
	}
	out := &Throttling{Periods: values["nr_periods"], Throttled: throttled, Time: time.Duration(values["throttled_time"])}
	if micro, is := values["throttled_usec"]; is {
		out.Time = time.Duration(micro) * time.Microsecond
	}
	return out
}

// Line returns the line of a machine, without "parallelfs: ".
func (m Machine) Line() string {
	raw, err := json.Marshal(m)
	if err != nil {
		panic(err) // it holds texts and numbers
	}
	return Prefix + string(raw)
}

// Report holds all machines in one output.
type Report []Machine

// Read finds the lines of machines in an output. A line that can't be parsed is left out, because a tool can print anything.
func Read(output []byte) (out Report) {
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, len(output)+1)
	for lines.Scan() {
		rest, is := strings.CutPrefix(lines.Text(), "parallelfs: "+Prefix)
		if !is {
			continue
		}
		var m Machine
		if err := json.Unmarshal([]byte(rest), &m); err == nil && m.Name != "" {
			out = append(out, m)
		}
	}
	return out
}

// Elapsed returns the longest run time of any tool.
func (r Report) Elapsed() time.Duration {
	var out time.Duration
	for _, m := range r {
		out = max(out, m.Elapsed)
	}
	return out
}

// tolerated is the tolerance of the clocks: 1/100 of a repetition.
const tolerated = 100

// farthest returns the names of the two clocks with the largest certain difference, and the lower bound of that difference.
func (r Report) farthest(of func(Machine) *Clock) (a, b string, least time.Duration) {
	var lowest, highest time.Duration
	for _, m := range r {
		c := of(m)
		if c == nil {
			continue
		}
		if b == "" || c.Offset+c.Within < lowest {
			b, lowest = m.Name, c.Offset+c.Within
		}
		if a == "" || c.Offset-c.Within > highest {
			a, highest = m.Name, c.Offset-c.Within
		}
	}
	return a, b, highest - lowest
}

// ClockTrouble names the clocks that certainly differ by more than 1 % of the repetition, or were set by more than that during it. It is
// empty if there are none. The text continues a sentence about the tool.
func (r Report) ClockTrouble() string {
	limit := r.Elapsed() / tolerated
	if limit <= 0 {
		return ""
	}
	for _, when := range []struct {
		word string
		of   func(Machine) *Clock
	}{
		{"before it", func(m Machine) *Clock { return m.Before }}, {"after it", func(m Machine) *Clock { return m.After }},
	} {
		if a, b, least := r.farthest(when.of); least > limit {
			return fmt.Sprintf("can't be trusted: %s the clocks of %s and %s differ by at least %s, more than 1 %% of the %s that it ran; "+
				"set the clocks of all nodes by one source (NTP)", when.word, a, b, short(least), short(r.Elapsed()))
		}
	}
	for _, m := range r {
		if m.Before == nil || m.After == nil {
			continue
		}
		moved := m.After.Offset - m.Before.Offset
		if moved.Abs()-m.Before.Within-m.After.Within > limit {
			return fmt.Sprintf("can't be trusted: the clock of %s was set by %s while it ran, more than 1 %% of the %s that it ran; "+
				"set the clocks of all nodes by one source (NTP)", m.Name, short(moved), short(r.Elapsed()))
		}
	}
	return ""
}

// Clocks describes the largest possible difference of the clocks, and the number of unknown ones. It is empty if there is nothing to
// compare.
func (r Report) Clocks() string {
	var unknown []string
	var earliest, latest time.Duration
	known := 0
	for _, m := range r {
		c := m.Before
		if c == nil {
			unknown = append(unknown, m.Name+" ("+m.Problem+")")
			continue
		}
		if known == 0 {
			earliest, latest = c.Offset-c.Within, c.Offset+c.Within
		}
		earliest, latest = min(earliest, c.Offset-c.Within), max(latest, c.Offset+c.Within)
		known++
	}
	var words []string
	if known > 1 {
		words = append(words, fmt.Sprintf("the clocks of %d clients differ by at most %s", known, short(latest-earliest)))
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		words = append(words, fmt.Sprintf("of %d clients the clock is not known, such as %s", len(unknown), unknown[0]))
	}
	return strings.Join(words, "; ")
}

// Throttled names the container that was throttled for the longest time. It is empty if none was throttled.
func (r Report) Throttled() string {
	var worst *Machine
	count := 0
	for i := range r {
		t := r[i].Throttled
		if t == nil || t.Throttled <= 0 {
			continue
		}
		count++
		if worst == nil || t.Time > worst.Throttled.Time {
			worst = &r[i]
		}
	}
	if worst == nil {
		return ""
	}
	out := fmt.Sprintf("the CPU quota held the container on %s back in %d of %d periods, for %s",
		worst.Name, worst.Throttled.Throttled, worst.Throttled.Periods, short(worst.Throttled.Time))
	if count > 1 {
		out += fmt.Sprintf("; and those of %d more", count-1)
	}
	return out
}

// short formats a duration with about three digits.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d.Abs() >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
