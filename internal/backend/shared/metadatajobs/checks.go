package metadatajobs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// CheckJobFacts describes the Job of a check.
type CheckJobFacts struct {
	Name string
	// Ended is true if the Job is over. Answer is what its pod printed, nil if that is no answer. Message is why it failed, or what it waits
	// for.
	Ended   bool
	Answer  *spec.CheckAnswer
	Message string
}

// CheckView is the input of DecideCheck.
type CheckView struct {
	FileSystem *v1alpha1.FileSystem
	// Recorded is status.check as stored in the API server.
	Recorded *v1alpha1.CheckStatus
	Jobs     []CheckJobFacts
	// Can is false for a filesystem without tools for a check. Serves is true if the filesystem answers.
	Can, Serves bool
	Now         time.Time
}

// CheckDecision is the result of DecideCheck.
type CheckDecision struct {
	// Start is the name of the Job to make, empty for none. Remove holds the names of the Jobs that are no longer needed.
	Start  string
	Remove []string
	// Check is the new status.check.
	Check *v1alpha1.CheckStatus
}

// requestOf returns the value of an annotation by which a person requests something once, empty if it is not set. A new value is a new
// request.
func requestOf(fs *v1alpha1.FileSystem, annotation string) string {
	const most = 64
	return strings.TrimSpace(v1alpha1.Cut(strings.TrimSpace(fs.Annotations[annotation]), most))
}

// The limits of CheckStatus.
const (
	maxCheckFindings = 32
	maxCheckFinding  = 128
	maxCheckMessage  = 1024
)

// DecideCheck decides the next step of the check that a person has requested. A request is recorded before its Job is made, and the Job's
// name follows from the record. The result of a Job is recorded before the Job is removed. An operator that is killed therefore continues
// with the same Job.
func DecideCheck(v CheckView) CheckDecision {
	request := requestOf(v.FileSystem, v1alpha1.AnnotationCheck)
	d := CheckDecision{Check: v.Recorded.DeepCopy()}
	own := ""
	if v.Recorded != nil && v.Recorded.Result == v1alpha1.CheckRunning && v.Recorded.Request == request {
		own = checkJobName(v.FileSystem, v.Recorded)
	}
	for _, j := range v.Jobs {
		if j.Name != own {
			d.Remove = append(d.Remove, j.Name)
		}
	}
	now := metav1.NewTime(v.Now.UTC().Truncate(time.Second))
	switch {
	case request == "" && d.Check != nil && d.Check.Result == v1alpha1.CheckRunning:
		d.over(now, v1alpha1.CheckFailed, "the annotation "+v1alpha1.AnnotationCheck+" was removed before the check was over")
	case request == "":
	case d.Check == nil || d.Check.Request != request:
		d.Check = &v1alpha1.CheckStatus{Request: request, Started: now, Result: v1alpha1.CheckRunning}
		if !v.Can {
			d.over(now, v1alpha1.CheckFailed, "the operator knows no tool that looks for damage in a filesystem of this type")
		}
	case own != "":
		d.goOn(v, own, now)
	}
	return d
}

// goOn decides the next step of a recorded check that is not over.
func (d *CheckDecision) goOn(v CheckView, own string, now metav1.Time) {
	i := slices.IndexFunc(v.Jobs, func(j CheckJobFacts) bool { return j.Name == own })
	switch {
	case i < 0 && !v.Serves:
		d.Check.Message = "it begins when the filesystem answers"
	case i < 0:
		d.Start, d.Check.Message = own, ""
	case !v.Jobs[i].Ended:
		d.Check.Message = v1alpha1.Cut(cmp.Or(v.Jobs[i].Message, "Job "+own+" looks"), maxCheckMessage)
	case v.Jobs[i].Answer == nil || !v.Jobs[i].Answer.Done:
		d.over(now, v1alpha1.CheckFailed, cmp.Or(v.Jobs[i].Message, "the Job has ended and left no answer"))
	default:
		d.Check.Findings = findings(v.Jobs[i].Answer.Findings)
		result := v1alpha1.CheckClean
		if len(d.Check.Findings) > 0 {
			result = v1alpha1.CheckDamaged
		}
		d.over(now, result, v.Jobs[i].Answer.Message)
	}
}

func (d *CheckDecision) over(now metav1.Time, result v1alpha1.CheckResult, message string) {
	d.Check.Ended, d.Check.Result, d.Check.Message = &now, result, v1alpha1.Cut(message, maxCheckMessage)
}

// Refuse ends a check whose Job can't be made.
func (d *CheckDecision) Refuse(now time.Time, why string) {
	d.over(metav1.NewTime(now.UTC().Truncate(time.Second)), v1alpha1.CheckFailed, why)
}

// findings returns the findings of an answer for the status: each kind once, the most frequent first.
func findings(reported []spec.CheckFinding) []v1alpha1.CheckFinding {
	counts := map[string]int64{}
	for _, f := range reported {
		if what := strings.TrimSpace(v1alpha1.Cut(f.What, maxCheckFinding)); what != "" && f.Count > 0 {
			counts[what] += f.Count
		}
	}
	var out []v1alpha1.CheckFinding
	for _, what := range backend.SortedKeys(counts) {
		out = append(out, v1alpha1.CheckFinding{What: what, Count: counts[what]})
	}
	slices.SortStableFunc(out, func(a, b v1alpha1.CheckFinding) int { return cmp.Compare(b.Count, a.Count) })
	return out[:min(len(out), maxCheckFindings)]
}

func checkJobName(fs *v1alpha1.FileSystem, c *v1alpha1.CheckStatus) string {
	return backend.ChildName(fs, "check-"+backend.Hash(c.Request, c.Started.UTC().Format(time.RFC3339)))
}

// ReadCheckAnswer finds the answer of `node check` in a termination message, nil if there is none.
func ReadCheckAnswer(message string) *spec.CheckAnswer {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(message), "\n")) {
		answer := &spec.CheckAnswer{}
		if json.Unmarshal([]byte(line), answer) == nil && (answer.Done || answer.Message != "") {
			return answer
		}
	}
	return nil
}
