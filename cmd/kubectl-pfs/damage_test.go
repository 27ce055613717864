package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/guess"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/test/places"
)

// outputs returns all test data of the tools that parse can read without further flags.
func outputs(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, tool := range []string{"mdtest", "ior", "fio", "iozone", "postmark", "vdbench"} {
		for _, pattern := range []string{"*.txt", "published/*"} {
			files, err := filepath.Glob("../../benchmarks/" + tool + "/testdata/" + pattern)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			out = append(out, files...)
		}
	}
	return out
}

// measured identifies a number that was read from an output.
type measured struct{ point, name, unit string }

// numbers returns all numbers that are read from an output.
func numbers(output []byte) (map[measured]float64, error) {
	name, err := guess.Tool(output)
	if err != nil {
		return nil, err
	}
	all, err := readFile(registry.Tools()[name], v1alpha1.BenchmarkRunSpec{}, nil, output)
	if err != nil {
		return nil, err
	}
	out := map[measured]float64{}
	for _, one := range all {
		point := ""
		for _, v := range one.point.Parameters {
			if len(all) > 1 && strings.HasPrefix(string(v.Name), "iozone.") {
				point += " " + v.Value
			}
		}
		for _, s := range one.samples {
			// The user chooses the name of a job.
			job := strings.LastIndex(s.Name, ": ") + 1
			at := measured{point, s.Name[job:], s.Unit}
			for n := 2; ; n++ {
				if _, twice := out[at]; !twice {
					break
				}
				at.name = fmt.Sprintf("%s %d", s.Name[job:], n)
			}
			out[at] = s.Value
		}
	}
	return out, nil
}

// damage is a change of one place of an output.
type damage struct {
	kind string
	text []byte
	// line is the changed line.
	line string
}

var digits = regexp.MustCompile(`\d+`)

// damages returns so many changes of an output, always the same ones.
func damages(file string, text []byte, count int) []damage {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(filepath.Base(file)))
	chance := rand.New(rand.NewPCG(35, seed.Sum64()))
	lines := bytes.SplitAfter(text, []byte("\n"))
	runs := digits.FindAllIndex(text, -1)
	var out []damage
	line := func(at int) string {
		from := bytes.LastIndexByte(text[:at], '\n') + 1
		rest, _, _ := bytes.Cut(text[from:], []byte("\n"))
		return string(rest)
	}
	splice := func(kind string, from, to int, with string) {
		out = append(out, damage{kind, slices.Concat(text[:from], []byte(with), text[to:]), line(from)})
	}
	for len(out) < count {
		run := runs[chance.IntN(len(runs))]
		at := run[0] + chance.IntN(run[1]-run[0])
		switch chance.IntN(6) {
		case 0:
			splice("another digit", at, at+1, string('0'+(text[at]-'0'+byte(1+chance.IntN(9)))%10))
		case 1:
			splice("a digit less", at, at+1, "")
		case 2:
			splice("a digit more", at, at, string(rune('0'+chance.IntN(10))))
		case 3:
			if dot := bytes.IndexByte(text[run[0]:], '.'); run[1] < len(text) && text[run[1]] == '.' && dot >= 0 {
				splice("a dot less", run[1], run[1]+1, "")
			}
		case 4:
			i := chance.IntN(len(lines))
			kept := slices.Concat(lines[:i:i], lines[i+1:])
			out = append(out, damage{"a line less", bytes.Join(kept, nil), strings.TrimSpace(string(lines[i]))})
		case 5:
			words := [][2]string{{"SUMMARY rate", "SUMMARY time"}, {"kB/sec", "MB/sec"}, {"kilobytes", "megabytes"}, {"MiB", "GiB"}, {"usec", "nsec"}}
			w := words[chance.IntN(len(words))]
			if i := bytes.Index(text, []byte(w[0])); i >= 0 {
				splice("another word", i, i+len(w[0]), w[1])
			}
		}
	}
	return out
}

// perOutput is the total number of damages for each output, and few their number in one run of the tests.
const perOutput, few = 120, 3

// once lists the numbers that an output prints only once, so that nothing contradicts a wrong one, with the reason.
var once = []struct {
	why string
	of  func(file string, at measured, before, after float64) bool
}{
	{"the automatic mode of iozone prints each number once, unless -R repeats it", func(file string, _ measured, _, _ float64) bool {
		return slices.Contains([]string{"auto.txt", "psteinb+iozone2csv-03-iozone.txt", "Rovanion+iozone-results-comparator-01-xfs1.iozone.txt"}, file)
	}},
	{"rounding hides a change of the last digits", func(_ string, _ measured, before, after float64) bool {
		const hidden = 1e-2
		return math.Abs(before-after) <= hidden*before+0.011
	}},
	{"how many items there are follows from options, of which some are not known", func(_ string, at measured, _, _ float64) bool { return at.unit == "items" }},
	{"a percentile lies between its neighbors", func(_ string, at measured, _, _ float64) bool { return strings.Contains(at.name, "p99") }},
	{"of several processes or iterations, the mean and the deviation agree in a range", func(file string, at measured, _, _ float64) bool {
		return strings.HasPrefix(file, "3.3.0") && (at.unit == "ops/s" || at.unit == "s")
	}},
	{"a file is read or appended to, and only the sum of both is bounded", func(_ string, at measured, _, _ float64) bool {
		return at.unit == "per second" && (at.name == "read" || at.name == "appended")
	}},
}

func TestADamagedOutputIsRefusedOrReadAsBefore(t *testing.T) {
	tried, accepted := 0, 0
	for _, file := range outputs(t) {
		text, err := os.ReadFile(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		want, err := numbers(text)
		if err != nil {
			continue
		}
		t.Run(strings.TrimPrefix(file, "../../benchmarks/"), func(t *testing.T) {
			all := damages(file, text, perOutput)
			for _, i := range places.Contracts.Some(t, len(all), few) {
				d := all[i]
				tried++
				got, err := numbers(d.text)
				if err != nil {
					continue
				}
				if altered(want, got) > 0 && !strings.Contains(file, "auto.txt") && !strings.Contains(file, "+iozone") {
					accepted++
				}
				for at, after := range got {
					before, found := want[at]
					if found && before == after || explained(filepath.Base(file), at, before, after) {
						continue
					}
					t.Errorf("%s in %q: %v was %v, and is read as %v", d.kind, benchmarks.Short(d.line), at, before, after)
				}
			}
		})
	}
	const percent, most = 100, 0.5
	t.Logf("%d of %d damaged outputs are read with another number, besides the tables of iozone's automatic mode", accepted, tried)
	if many := 1000; tried > many {
		NewWithT(t).Expect(percent * float64(accepted) / float64(tried)).To(BeNumerically("<=", most))
	}
}

// altered counts the numbers that differ from those before.
func altered(want, got map[measured]float64) int {
	count := 0
	for at, value := range got {
		if before, found := want[at]; !found || before != value {
			count++
		}
	}
	return count
}

// explained is true for a change that nothing in the output contradicts.
func explained(file string, at measured, before, after float64) bool {
	for _, o := range once {
		if o.of(file, at, before, after) {
			return true
		}
	}
	return false
}
