package tool

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
)

// survey is a run of one of the two scripts of lustre-iokit, which get all their parameters from the environment.
type survey struct {
	*Call
	script string
	// targets holds the given targets, or all of its kind.
	targets []string
	// summary is the file that also gets the output.
	summary string
}

// strange lists features of the scripts that the doubles lack.
var strange = []string{
	"layer", "start_number", "lustre_root", "LUSTRE", "LCTL", "DSH", "NETTYPE", "verify", "restart_rsz", "rszmax",
}

// survey handles the common part. goes is false if the script has ended.
func (c *Call) survey(ctx context.Context, script, kind string, tests []string) (s survey, chosen []string, code int, goes bool) {
	s = survey{Call: c, script: script}
	if len(c.Arguments) > 0 {
		c.complain("%s: the double takes no arguments: the script is told by its environment\n", script)
		return s, nil, int(syscall.EINVAL), false
	}
	for _, name := range strange {
		if os.Getenv(name) != "" {
			c.complain("%s: the double does not play %s\n", script, name)
			return s, nil, int(syscall.EINVAL), false
		}
	}
	chosen = strings.Fields(os.Getenv("tests_str"))
	if len(chosen) == 0 {
		chosen = tests
	}
	for _, test := range chosen {
		if !slices.Contains(tests, test) {
			c.complain("%s: the double does not play the test %s\n", script, test)
			return s, nil, int(syscall.EINVAL), false
		}
	}
	var list string
	_ = ask(ctx, "devices", kernel.Nothing{}, &list) // without modules there is no device
	var up []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 3 && f[1] == "UP" && f[2] == kind {
			up = append(up, f[3])
		}
	}
	if s.targets = strings.Fields(os.Getenv("targets")); len(s.targets) == 0 {
		s.targets = up
	}
	result := os.Getenv("rslt")
	if result == "" {
		location := os.Getenv("rslt_loc")
		if location == "" {
			location = "/tmp"
		}
		result = filepath.Join(location, strings.ReplaceAll(script, "-", "_")+time.Now().Format("_2006-01-02@15:04_")+hostname())
	}
	for _, end := range []string{".summary", ".detail", ".vmstat_localhost"} {
		if err := os.WriteFile(result+end, nil, 0o600); err != nil {
			// The scripts continue without their files, but a missing directory is certainly a mistake.
			c.complain("%s: %v\n", script, err)
			return s, nil, 1, false
		}
	}
	s.summary = result + ".summary"
	for _, target := range s.targets {
		if !slices.Contains(up, target) {
			c.complain("OST %s not setup\n", target) // also for an MDT
			return s, chosen, 0, false
		}
	}
	return s, chosen, 0, true
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// print implements print_summary.
func (s *survey) print(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	s.say("%s", text)
	if file, err := os.OpenFile(s.summary, os.O_APPEND|os.O_WRONLY, 0); err == nil {
		_, _ = file.WriteString(text)
		_ = file.Close()
	}
}

// now returns the output of date(1) in the locale C.
func now() string { return time.Now().UTC().Format("Mon Jan _2 15:04:05 MST 2006") }

// number returns the number in an environment variable.
func number(name string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// MDSSurvey is mds-survey. Its rates are made up: they grow with the square root of the number of threads. Even if it ends early, the
// script prints that it is done and exits with 0.
func MDSSurvey(ctx context.Context, c Call) int {
	s, tests, code, goes := c.survey(ctx, "mds-survey", "mdt", []string{"create", "lookup", "md_getattr", "setxattr", "destroy"})
	switch {
	case code != 0:
		return code
	case goes && len(s.targets) == 0:
		c.say("Can't find any MDT to test.  Please set targets=...\n")
		goes = false
	case goes && (tests[0] != "create" || tests[len(tests)-1] != "destroy"):
		c.say("tests: %s\n", strings.Join(tests, " "))
		c.complain("First test must be 'create', and last test must be 'destroy'\n")
		goes = false
	}
	if !goes {
		c.say("done!\n")
		return 0
	}
	low := number("thrlo", 4)
	files, directories := number("file_count", 100000), number("dir_count", low)
	s.print("%s /usr/bin/mds-survey from %s\n", now(), hostname())
	base := map[string]float64{"create": 1600, "lookup": 36000, "md_getattr": 8600, "setxattr": 9700, "destroy": 2700}
	for threads := low; threads <= number("thrhi", 32); threads *= 2 {
		if threads < directories {
			continue
		}
		s.print("mdt %1d file %7d dir %4d thr %4d ", len(s.targets), files, directories, threads)
		for _, test := range tests {
			// Several targets are measured one after the other, and this is their mean.
			rate := base[test] * math.Sqrt(float64(threads))
			s.print("%s %7.2f [ %7.2f, %7.2f] ", test, rate, rate*0.9, rate*1.1)
		}
		s.print("\n")
	}
	c.say("done!\n")
	return 0
}

const (
	// diskMiB is the throughput of a double's target in MiB/s.
	diskMiB = 100
	// largestRecord is rszmax.
	largestRecord = 4096
)

// OBDFilterSurvey is obdfilter-survey, with case=disk. Its rates are made up: all threads of a target share a disk with 100 MiB/s.
func OBDFilterSurvey(ctx context.Context, c Call) int {
	c.say("using LCTL='lctl' lustre_root='' LUSTRE=''\n")
	if which := os.Getenv("case"); which != "" && which != "disk" {
		c.complain("obdfilter-survey: the double does not play case=%s\n", which)
		return int(syscall.EINVAL)
	}
	failed := func(code int) int {
		c.say("program exited with error \n")
		return code
	}
	s, tests, code, goes := c.survey(ctx, "obdfilter-survey", "obdfilter", []string{"write", "rewrite", "read"})
	switch {
	case code != 0:
		return code
	case !goes:
		return failed(2)
	case len(s.targets) == 0:
		c.say("Can't find any OSTs to test.  Please set targets=...\ndone!\n")
		return 0
	case tests[0] != "write":
		c.say("tests: %s\n", strings.Join(tests, " "))
		c.complain("First test must be 'write'\n")
		c.say("done!\n")
		return 0
	}
	low, high := number("rszlo", 1024), number("rszhi", 1024)
	if high > largestRecord {
		c.say("Test disk case support maximum %dKB IO data  (rszhi=%d is too big), please use a smaller value.\n", largestRecord, high)
		return failed(1)
	}
	// PAGE_SIZE is in bytes since 2.12.56; a value in KiB would make the pages 0 KiB.
	page := number("PAGE_SIZE_KB", number("PAGE_SIZE", 4096)/1024)
	if page == 0 {
		c.complain("/usr/bin/obdfilter-survey: line 412: (rsz + PAGE_SIZE_KB - 1) / PAGE_SIZE_KB: division by 0 (error token is \"PAGE_SIZE_KB\")\n")
		return 1
	}
	s.print("%s Obdfilter-survey for case=disk from %s\n", now(), hostname())
	for record := low; record <= high; record *= 2 {
		for objects := number("nobjlo", 1); objects <= number("nobjhi", 16); objects *= 2 {
			for threads := number("thrlo", 1); threads <= number("thrhi", 16); threads *= 2 {
				if threads%objects == 0 {
					s.combination(tests, (record+page-1)/page*page, objects, threads)
				}
			}
		}
	}
	c.say("done!\n")
	return 0
}

// combination prints one line. A test that ends within two seconds is too short, because the threads are sampled once per second.
func (s *survey) combination(tests []string, record, objects, threads int) {
	targets, size := len(s.targets), number("size", 16384)
	each := size * 1024 / (record * threads) * record * threads
	s.print("ost %2d sz %8dK rsz %4dK obj %4d thr %4d ", targets, each*targets, record, objects*targets, threads*targets)
	for _, test := range tests {
		s.print("%s %7.2f ", test, float64(diskMiB*targets))
		if each/1024 < 2*diskMiB {
			s.print("%17s ", "SHORT")
		} else {
			s.print("[%7.2f, %7.2f] ", diskMiB*0.9, diskMiB*1.1)
		}
	}
	s.print("\n")
}
