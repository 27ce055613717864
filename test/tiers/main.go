// Command tiers reads the results of the test tiers and prints where the time went: for each tier its seconds, the number of tests, and the
// slowest of them. It also writes the results as JSON, and fails if a tier has failed.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// slowest is the number of slowest tests shown for a tier.
const slowest = 5

// Tier is one tier of a run.
type Tier struct {
	Name    string `json:"tier"`
	Seconds int    `json:"seconds"`
	// CPUSeconds is the CPU time of the tier's own processes. Pods and virtual machines of a container engine are not included.
	CPUSeconds int `json:"cpuSeconds"`
	// Code is the exit code of the tier; 0 means success.
	Code int `json:"code"`
	// Passed, Failed and Skipped count tests; a row of a table counts as a test. All are 0 for a tier without tests, such as lint.
	Passed  int    `json:"passed"`
	Failed  int    `json:"failed"`
	Skipped int    `json:"skipped"`
	Slowest []Test `json:"slowest,omitempty"`
}

// Test is one test with its duration.
type Test struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// Times is the JSON document of a run.
type Times struct {
	Seconds int `json:"seconds"`
	// CPUSeconds is the CPU time of the whole machine during the run, whatever used it.
	CPUSeconds int    `json:"cpuSeconds"`
	Tiers      []Tier `json:"tiers"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tiers:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("tiers", flag.ContinueOnError)
	seconds := flags.Int("seconds", 0, "`SECONDS` that the whole run took")
	cpuSeconds := flags.Int("cpu-seconds", 0, "CPU `SECONDS` of the whole machine during the run")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: tiers [--seconds N] [--cpu-seconds N] DIRECTORY    the directory that test/tiers/run.sh has filled")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return errors.New("name one directory")
	}
	times, err := Read(flags.Arg(0))
	if err != nil {
		return err
	}
	times.Seconds, times.CPUSeconds = *seconds, *cpuSeconds
	document, err := json.MarshalIndent(times, "", " ")
	if err != nil {
		return fmt.Errorf("encode the times: %w", err)
	}
	if err := os.WriteFile(filepath.Join(flags.Arg(0), "times.json"), append(document, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the times: %w", err)
	}
	if err := times.Print(out); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return times.Failure()
}

// Read reads a directory that test/tiers/run.sh has filled. TIER.tier contains the result of a tier, and TIER*.json its tests: the events
// of `go test -json` or a report of Ginkgo. The slowest tier comes first.
func Read(directory string) (Times, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.tier"))
	if err != nil {
		return Times{}, fmt.Errorf("look for tiers: %w", err)
	}
	var times Times
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return Times{}, fmt.Errorf("read a tier: %w", err)
		}
		var tier Tier
		if err := json.Unmarshal(text, &tier); err != nil {
			return Times{}, fmt.Errorf("%s is no tier: %w", file, err)
		}
		reports, err := filepath.Glob(filepath.Join(directory, tier.Name+"*.json"))
		if err != nil {
			return Times{}, fmt.Errorf("look for reports: %w", err)
		}
		for _, report := range reports {
			if err := tier.add(report); err != nil {
				return Times{}, err
			}
		}
		tier.shorten()
		times.Tiers = append(times.Tiers, tier)
	}
	slices.SortFunc(times.Tiers, func(a, b Tier) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), strings.Compare(a.Name, b.Name))
	})
	return times, nil
}

// add reads one report.
func (t *Tier) add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read a report: %w", err)
	}
	if strings.HasPrefix(strings.TrimSpace(string(text)), "[") {
		err = t.addGinkgo(text)
	} else {
		err = t.addGo(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func (t *Tier) count(state, name string, seconds float64) {
	switch state {
	case "pass", "passed":
		t.Passed++
	case "skip", "skipped", "pending":
		t.Skipped++
		return
	default:
		t.Failed++
	}
	t.Slowest = append(t.Slowest, Test{Name: name, Seconds: seconds})
}

// addGo reads the events of `go test -json` (go doc test2json). A test with subtests is counted only by its subtests, because its time is
// theirs.
func (t *Tier) addGo(text []byte) error {
	type event struct {
		Action, Package, Test string
		Elapsed               float64
	}
	var ended []event
	parents := map[string]bool{}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("an event of go test: %w", err)
		}
		if e.Test == "" || e.Action != "pass" && e.Action != "fail" && e.Action != "skip" {
			continue
		}
		ended = append(ended, e)
		if i := strings.LastIndex(e.Test, "/"); i > 0 {
			parents[e.Package+" "+e.Test[:i]] = true
		}
	}
	for _, e := range ended {
		if !parents[e.Package+" "+e.Test] {
			t.count(e.Action, strings.TrimPrefix(e.Package, "parallelfs.dev/operator/")+" "+e.Test, e.Elapsed)
		}
	}
	return nil
}

// addGinkgo reads a report of `ginkgo --json-report` (types.Report).
func (t *Tier) addGinkgo(text []byte) error {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts    []string
			LeafNodeType, LeafNodeText string
			State                      string
			RunTime                    time.Duration
		}
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		return fmt.Errorf("a report of ginkgo: %w", err)
	}
	for _, suite := range suites {
		for _, spec := range suite.SpecReports {
			if spec.LeafNodeType != "It" && spec.State == "passed" {
				continue // setup and reporting nodes count only if they fail
			}
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			t.count(spec.State, name, spec.RunTime.Seconds())
		}
	}
	return nil
}

// shorten keeps only the slowest tests.
func (t *Tier) shorten() {
	slices.SortStableFunc(t.Slowest, func(a, b Test) int { return cmp.Compare(b.Seconds, a.Seconds) })
	t.Slowest = t.Slowest[:min(len(t.Slowest), slowest)]
}

// Print prints the table.
func (t Times) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ntier\tseconds\tCPU s\tpassed\tfailed\tskipped\t")
	passed, failed, skipped := 0, 0, 0
	for _, tier := range t.Tiers {
		note := ""
		if tier.Code != 0 {
			note = "FAILED"
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", tier.Name, tier.Seconds, tier.CPUSeconds, tier.Passed, tier.Failed, tier.Skipped, note)
		passed, failed, skipped = passed+tier.Passed, failed+tier.Failed, skipped+tier.Skipped
	}
	fmt.Fprintf(w, "all, side by side\t%d\t%d\t%d\t%d\t%d\t\n", t.Seconds, t.CPUSeconds, passed, failed, skipped)
	if err := w.Flush(); err != nil {
		return err
	}
	for _, tier := range t.Tiers {
		if len(tier.Slowest) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nslowest of %s\n", tier.Name)
		for _, test := range tier.Slowest {
			fmt.Fprintf(out, "%8.1f s  %s\n", test.Seconds, test.Name)
		}
	}
	_, err := fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	return err
}

// Failure returns an error with the failed tiers, or nil.
func (t Times) Failure() error {
	var names []string
	for _, tier := range t.Tiers {
		if tier.Code != 0 {
			names = append(names, tier.Name)
		}
	}
	if len(t.Tiers) == 0 {
		return errors.New("no tier has run")
	}
	if len(names) > 0 {
		return fmt.Errorf("failed: %s; each has its log in dist/tests", strings.Join(names, ", "))
	}
	return nil
}
