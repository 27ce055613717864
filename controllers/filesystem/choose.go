package filesystem

import (
	"context"

	"parallelfs.dev/operator/internal/backend/shared/decisions"
)

// complete fills in the defaults in the spec of the FileSystem, and keeps what a person has written. The result counts as read, because no
// write may change the spec.
func (p *pass) complete() {
	p.asked = *p.fs.Spec.DeepCopy()
	p.fs.Complete()
	p.read = p.fs.DeepCopy()
}

// chooseOpen chooses the values that the spec leaves open. They are written with the rest of the record, before anything is created.
func (p *pass) chooseOpen(context.Context) error {
	chosen, err := decisions.ChooseOpen(p.backend, p.in, &p.asked)
	if err != nil {
		return err //nolint:wrapcheck // the phase adds its name
	}
	p.fs.Status.Chosen = chosen
	p.fs.Complete()
	p.read.Spec = *p.fs.Spec.DeepCopy() // no write may change the spec
	return nil
}
