package filesystem

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// choosePinnings finds the CPUs of the servers on their recorded nodes, and adds a problem for each pinning that contradicts another one or
// a node.
func (p *pass) choosePinnings(context.Context) error {
	pinner, ok := p.backend.(backend.Pinner)
	if !ok {
		return nil
	}
	question := plan.PinInput{
		FileSystem: client.ObjectKeyFromObject(p.fs).String(), Daemons: pinner.PinDaemons(p.fs, p.in.FileSystemNodes),
		Inventories: p.in.Inventories, Targets: p.in.Targets, Others: map[string][]plan.PinDaemon{},
	}
	for i := range p.in.Others {
		other := &p.in.Others[i]
		if its, ok := p.Backends[other.Spec.Type].(backend.Pinner); ok {
			question.Others[client.ObjectKeyFromObject(other).String()] = its.PinDaemons(other, p.in.OthersNodes[other.UID])
		}
	}
	pinnings, problems := plan.Pin(question)
	p.in.Pinnings = pinnings
	p.problems = append(p.problems, said(problems)...)
	return nil
}
