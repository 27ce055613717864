package filesystem

import (
	"context"

	"parallelfs.dev/operator/internal/backend/shared/decisions"
)

// choosePinnings finds the CPUs of the servers on their recorded nodes, and adds a problem for each pinning that contradicts another one or
// a node.
func (p *pass) choosePinnings(context.Context) error {
	if pinnings, problems := decisions.Pinnings(p.Backends, p.backend, p.in); pinnings != nil {
		p.in.Pinnings = pinnings
		p.problems = append(p.problems, problemsOf(problems)...)
	}
	return nil
}
