// Package turns names the jobs of a run in their order, and holds their results. A turn is one step of one attempt of one repetition of a
// point. The ConfigMap of the point holds its record.
package turns

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
)

// Turn is the work of one job: one step of one attempt of one repetition, or warm-up, of a point.
type Turn struct {
	Point int
	// WarmUp is true for a repetition that does not count; warm-ups are numbered separately.
	WarmUp bool
	// Repetition and Attempt count from 1, Step from 0.
	Repetition, Attempt, Step int
}

// Suffix returns the name of a turn behind the run's name: "-p3-r2", of a warm-up "-p3-w1", of a second attempt "-p3-r2-a2", of a later
// step "-p3-r2-s1".
func (t Turn) Suffix() string {
	out := "-" + t.Directory()
	if t.Attempt > 1 {
		out += fmt.Sprintf("-a%d", t.Attempt)
	}
	if t.Step > 0 {
		out += fmt.Sprintf("-s%d", t.Step)
	}
	return out
}

// Directory returns the name of the directory that a turn works in. All attempts and steps of a repetition share it; the first step of an
// attempt empties it.
func (t Turn) Directory() string {
	kind := "r"
	if t.WarmUp {
		kind = "w"
	}
	return fmt.Sprintf("p%d-%s%d", t.Point, kind, t.Repetition)
}

// Key returns the key of a record in the ConfigMap of its point, without its ending. The last record of a repetition is rep-2, with a
// result or without. Earlier records are rep-2.attempt-1 or, if more steps of the attempt follow, rep-2.step-0 and rep-2.attempt-2.step-0.
func (t Turn) Key(ends, lastStep bool) string {
	out := fmt.Sprintf("rep-%d", t.Repetition)
	if t.WarmUp {
		out = fmt.Sprintf("warmup-%d", t.Repetition)
	}
	if ends {
		return out
	}
	if t.Attempt > 1 || lastStep {
		out += fmt.Sprintf(".attempt-%d", t.Attempt)
	}
	if !lastStep {
		out += fmt.Sprintf(".step-%d", t.Step)
	}
	return out
}

var turnPattern = regexp.MustCompile(`-p([0-9]+)-([rw])([0-9]+)(?:-a([0-9]+))?(?:-s([0-9]+))?$`)

// TurnOf reads the turn from the name of its job.
func TurnOf(job string) (Turn, bool) {
	m := turnPattern.FindStringSubmatch(job)
	if m == nil {
		return Turn{}, false
	}
	number := func(text string, otherwise int) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return otherwise
	}
	return Turn{
		Point: number(m[1], 0), WarmUp: m[2] == "w", Repetition: number(m[3], 1), Attempt: number(m[4], 1), Step: number(m[5], 0),
	}, true
}

const (
	// maxJobName leaves room for the suffix that the MPI operator adds to form the name of a host (-worker-1023), which has at most 63
	// characters.
	maxJobName = 51
	// hashLength is the length of the hash that replaces the rest of a name that is cut.
	hashLength = 8
)

// JobName returns the run's name with a suffix. A long name is cut and gets a hash.
func JobName(run, suffix string) string {
	if len(run)+len(suffix) <= maxJobName {
		return run + suffix
	}
	sum := sha256.Sum256([]byte(run))
	return run[:maxJobName-len(suffix)-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength] + suffix
}

// CleanName returns the name of the job that removes the files of a run.
func CleanName(run string) string { return JobName(run, "-clean") }

// CheckName returns the name of the job that checks image and space.
func CheckName(run string) string { return JobName(run, "-check") }

// ExportName returns the name of the job that copies the results elsewhere.
func ExportName(run string) string { return JobName(run, "-export") }
