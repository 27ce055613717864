package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/tools/go/packages"
)

//go:embed switch.go.txt
var switches string

// binary is the test binary of a package with all of its mutants in it.
type binary struct {
	dir, work string
	mutations []*mutation
}

// build makes the test binary of a package. The files of the package stay as they are: the compiler gets others in their place.
func build(dir, work, tags string) (*binary, error) {
	mode := packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedCompiledGoFiles |
		packages.NeedImports | packages.NeedDeps
	found, err := packages.Load(&packages.Config{Mode: mode, Dir: dir, BuildFlags: []string{"-tags", tags}}, ".")
	if err != nil {
		return nil, err
	}
	p := found[0]
	if len(p.Errors) > 0 {
		return nil, p.Errors[0]
	}
	r := rewriter{fset: p.Fset, info: p.TypesInfo, pkg: p.Types}
	replace := map[string]string{}
	add := func(file, text string) error {
		replace[file] = filepath.Join(work, filepath.Base(file))
		return os.WriteFile(replace[file], []byte(text), 0o600)
	}
	for i, f := range p.Syntax {
		src, err := os.ReadFile(p.CompiledGoFiles[i])
		if err != nil {
			return nil, err
		}
		if err := add(p.CompiledGoFiles[i], r.rewrite(f, p.CompiledGoFiles[i], string(src))); err != nil {
			return nil, err
		}
	}
	place := filepath.Join(filepath.Dir(p.CompiledGoFiles[0]), "mutant_switches.go")
	if err := add(place, strings.Replace(switches, "PACKAGE", p.Name, 1)); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o600); err != nil {
		return nil, err
	}
	b := &binary{dir: dir, work: work, mutations: r.mutations}
	// #nosec G204 -- the arguments are those of the person who runs it
	compile := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s", "-tags", tags,
		"-overlay", filepath.Join(work, "overlay.json"), "-o", b.path(), ".")
	compile.Dir = dir
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the mutants of %s: %w: %s", dir, err, out)
	}
	return b, nil
}

func (b *binary) path() string { return filepath.Join(b.work, "mutants.test") }

// test is a test of the package, without a mutant.
type test struct {
	name    string
	took    time.Duration
	reached []int
}

var errTimeout = errors.New("it took too long")

// run runs some tests with variables in their environment.
func (b *binary) run(limit time.Duration, tests []string, env ...string) error {
	tmp, err := os.MkdirTemp(b.work, "tmp")
	if err != nil {
		return err
	}
	defer clean(tmp)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// #nosec G204 -- the binary that was built above
	cmd := exec.CommandContext(ctx, b.path(), "-test.failfast", "-test.timeout=0", "-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.Dir, cmd.Env = b.dir, append(append(os.Environ(), "TMPDIR="+tmp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if cmd.Process != nil {
		// Disks of tests that are files, which a test that panics leaves.
		disks, _ := filepath.Glob(fmt.Sprintf("/dev/shm/parallelfs-test-%d-*", cmd.Process.Pid))
		for _, dir := range disks {
			_ = os.RemoveAll(dir)
		}
	}
	if ctx.Err() != nil {
		return errTimeout
	}
	return err
}

// tests runs each test of the package once without a mutant, and returns how long it took and which mutants it reached. Tests whose name
// matches skip do not run, unless skip is empty.
func (b *binary) tests(skip string) ([]test, error) {
	skipped, err := regexp.Compile(skip)
	if err != nil {
		return nil, err
	}
	list := exec.Command(b.path(), "-test.list", "^(Test|Fuzz)") // #nosec G204 -- as above
	list.Dir = b.dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	var tests []test
	for _, name := range regexp.MustCompile(`(?m)^(Test|Fuzz)\S*$`).FindAllString(string(out), -1) {
		if skip != "" && skipped.MatchString(name) {
			continue
		}
		file := filepath.Join(b.work, "reached")
		start := time.Now()
		if err := b.run(time.Hour, []string{name}, "MUTANTS_REACHED="+file); err != nil {
			return nil, fmt.Errorf("%s fails without a mutant: %w", name, err)
		}
		t := test{name: name, took: time.Since(start)}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(text)) {
			id, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			t.reached = append(t.reached, id)
		}
		if err := os.Remove(file); err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	slices.SortStableFunc(tests, func(a, b test) int { return int(a.took - b.took) })
	return tests, nil
}

// quick is the longest duration of tests that run in one process.
const quick = 300 * time.Millisecond

// try runs the tests that reach a mutant, the shortest first, until one fails.
func (b *binary) try(m *mutation, tests []test) {
	var groups [][]test
	for _, t := range tests {
		switch {
		case !slices.Contains(t.reached, m.ID):
		case len(groups) > 0 && t.took < quick:
			groups[0] = append(groups[0], t)
		default:
			groups = append(groups, []test{t})
		}
	}
	m.Status = "LIVED"
	if len(groups) == 0 {
		m.Status = "NOT COVERED"
	}
	for _, group := range groups {
		limit := time.Minute
		var names []string
		for _, t := range group {
			limit += 10 * t.took
			names = append(names, t.name)
		}
		if err := b.run(limit, names, "MUTANT="+strconv.Itoa(m.ID)); err != nil {
			m.Status = "KILLED"
			if errors.Is(err, errTimeout) {
				m.Status = "TIMED OUT"
			}
			return
		}
	}
}

// tryAll runs the tests of each mutant, and as many at a time as parallel.
func (b *binary) tryAll(tests []test, parallel int) {
	next := make(chan *mutation)
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			for m := range next {
				b.try(m, tests)
			}
		})
	}
	for _, m := range b.mutations {
		next <- m
	}
	close(next)
	all.Wait()
}

// clean removes the temporary files of a run. A test that was killed leaves mounts and loop devices in them.
func clean(dir string) {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH)
		}
	}
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, file := range backing {
		if text, _ := os.ReadFile(file); strings.HasPrefix(string(text), dir+"/") { // #nosec G304 -- of sysfs
			_ = exec.Command("losetup", "-d", "/dev/"+strings.Split(file, "/")[3]).Run() // #nosec G204 -- as above
		}
	}
	// Directories at which a target was to be mounted are immutable.
	_ = exec.Command("chattr", "-R", "-f", "-i", dir).Run() // #nosec G204 -- as above
	_ = os.RemoveAll(dir)
}
