package scope

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// Current names a turn as in status.current.
func (w *Scope) Current(t turns.Turn) string {
	words := fmt.Sprintf("repetition %d/%d", t.Repetition, max(int(w.Run.Spec.Repetitions), t.Repetition))
	if t.WarmUp {
		words = fmt.Sprintf("warm-up %d", t.Repetition)
	}
	if t.Point < len(w.Plans) && len(w.Plans[t.Point].Steps) > 1 {
		words += ", " + w.Plans[t.Point].Steps[min(t.Step, len(w.Plans[t.Point].Steps)-1)].Name
	}
	if t.Attempt > 1 {
		words += fmt.Sprintf(", attempt %d", t.Attempt)
	}
	if t.Point >= len(w.Points) {
		return fmt.Sprintf("point %d (%s)", t.Point, words)
	}
	return fmt.Sprintf("%s (%s)", Describe(w.Points[t.Point]), words)
}

// Describe names a point by the parameters that vary, such as "iozone.recordSize=64k processes=4".
func Describe(point benchmarks.Point) string {
	var words []string
	for _, name := range point.Varied {
		words = append(words, fmt.Sprintf("%s=%s", name, point.Parameters[name]))
	}
	if len(words) == 0 {
		return "the only point"
	}
	return strings.Join(words, " ")
}
