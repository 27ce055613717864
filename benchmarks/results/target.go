package results

// Fact is one property of what a run measured.
type Fact struct{ What, Value string }

// TargetFacts returns what identifies the target of a run, in the same order for every run, so that those of two runs can be compared. An
// empty value is unknown.
func TargetFacts(run Run) []Fact {
	return []Fact{{"spec.target", run.Spec.Target.String()}}
}
