package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"parallelfs.dev/operator/internal/node/spec"
)

// rankPrefix and rankEnd have the forms of benchmarks.RankPrefix and benchmarks.RankEnd.
const (
	rankPrefix = "[rank %d] "
	rankEnd    = "[rank %d ended with exit code %d]\n"
)

// rankVariables are the variables in which Open MPI 4, PMIx (Open MPI 5) and PMI pass the number of a process.
var rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}

// meetingLimit is the longest time between the starts of the processes of one launch.
const meetingLimit = 2 * time.Minute

// Rank runs the tool as one process of several, in its own directory below the repetition's. It starts when all processes are ready. Each
// line of the tool's output gets the number of the process, and the last line contains its exit code. All output goes to Stderr, which
// mpirun reads from a pipe. Standard output would be a terminal, which splits lines. It returns an *ExitError, or nil.
func Rank(ctx context.Context, b spec.Benchmark, h Host) error {
	number, err := rankNumber(h.Environment)
	if err != nil {
		return err
	}
	h.Stderr = pieces(h.Stderr)
	return numbered(number, h.Stderr, h, func(t tool, h Host) error { return rank(ctx, b, number, t, h) })
}

// numbered prefixes all output of do with the number of the process and writes it to one writer, followed by how do ended.
func numbered(number int, to io.Writer, h Host, do func(t tool, h Host) error) error {
	// Each output has its own buffer, so that lines stay whole even if the tool holds back a part of one while it writes to the other.
	prefix := fmt.Sprintf(rankPrefix, number)
	stdout, stderr := &lines{prefix: prefix, to: to}, &lines{prefix: prefix, to: to}
	// Messages of this program are not output of the tool.
	h.Stderr = to
	code := 0
	err := do(tool{stdout: stdout, stderr: stderr}, h)
	var ended *ExitError
	if errors.As(err, &ended) {
		code = ended.Code
	}
	// The tool's output does not contain errors of this program.
	if err != nil && (ended == nil || ended.Reason != "") {
		h.say("process %d: %s", number, err)
		code = max(code, 1)
	}
	if err := errors.Join(stdout.Close(), stderr.Close()); err != nil {
		h.say("process %d can't be measured: %s", number, err)
		code = max(code, 1)
	}
	if _, err := fmt.Fprintf(to, rankEnd, number, code); err != nil {
		return fmt.Errorf("can't say how process %d has ended: %w", number, err)
	}
	if code != 0 {
		return &ExitError{Code: code}
	}
	return nil
}

func rank(ctx context.Context, b spec.Benchmark, number int, t tool, h Host) error {
	if err := errors.Join(Place(b), limited(b)); err != nil {
		return err
	}
	count := 0
	for _, n := range b.Placement {
		count += n
	}
	if number >= count {
		return fmt.Errorf("this is process %d, and only %d were to be started; it does nothing", number, count)
	}
	own := filepath.Join(b.Directory, fmt.Sprintf("rank-%d", number))
	preparing := func(mount *os.Root) error {
		if b.KeepBefore {
			return findDirectory(mount, b, own)
		}
		if err := enough(mount, b); err != nil {
			return err
		}
		return makeDirectory(ctx, mount, b, own, true)
	}
	if err := inMount(ctx, b, h, preparing); err != nil {
		return err
	}
	if err := meet(ctx, b, number, count, h); err != nil {
		return err
	}
	v := values{directory: own, rank: strconv.Itoa(number)}
	t.argv, t.directory, t.stdin, t.env = v.arguments(b.Argv), own, v.replacer().Replace(b.Stdin), b.Env
	return runTool(ctx, b, t, h)
}

func rankNumber(environment []string) (int, error) {
	for _, name := range rankVariables {
		value, set := lookup(environment, name)
		if !set {
			continue
		}
		number, err := strconv.Atoi(value)
		if err != nil || number < 0 || number > math.MaxInt32 {
			return 0, fmt.Errorf("%s is %q, which is no number of a process", name, value)
		}
		return number, nil
	}
	return 0, fmt.Errorf("none of %v says which of several processes this is; mpirun of Open MPI 4 or 5 starts it", rankVariables)
}

// meet waits until all processes are ready. Each process creates an empty file in a directory of this launch below the repetition's. It
// lists that directory until it holds one file per process. This needs only the filesystem and no clock. The processes start at most one
// listing interval apart: a millisecond for each process, and at most a quarter of a second. The directory is listed because a client may
// cache that a single name did not exist.
func meet(ctx context.Context, b spec.Benchmark, number, count int, h Host) error {
	launch, set := lookup(h.Environment, launchVariable)
	if !set || launch != filepath.Base(launch) || launch == "." || launch == ".." {
		return fmt.Errorf("%s is %q, which names no launch; the launcher of the same version sets it", launchVariable, launch)
	}
	place := filepath.Join(b.Directory, ".start-"+launch)
	limit := min(meetingLimit, time.Duration(b.TimeoutSeconds)*time.Second)
	pause := min(max(time.Duration(count)*time.Millisecond, 5*time.Millisecond), 250*time.Millisecond)
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return inMount(ctx, b, h, func(mount *os.Root) error {
		directory, err := enter(mount, inside(b, place), true)
		if err != nil {
			return fmt.Errorf("can't make %s: %w", place, err)
		}
		defer func() { _ = directory.Close() }() // nothing was written through it
		if err := write(directory, strconv.Itoa(number), nil); err != nil {
			return fmt.Errorf("can't write in %s: %w", place, err)
		}
		for {
			here, err := names(directory)
			if err != nil {
				return fmt.Errorf("can't list %s: %w", place, err)
			}
			if len(here) >= count {
				return nil
			}
			select {
			case <-waiting.Done():
				return fmt.Errorf("%d of %d processes have begun after %s (%s); look at the workers' pods", len(here), count, limit, first(here, 8))
			case <-time.After(pause):
			}
		}
	})
}

// names opens and lists a directory again.
func names(directory *os.Root) (out []string, err error) {
	opened, err := directory.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	out, err = opened.Readdirnames(-1)
	slices.Sort(out)
	return out, err
}

func first(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprint(names[:most]) + " and more"
	}
	return fmt.Sprint(names)
}

func unique() string { return rand.Text() }
