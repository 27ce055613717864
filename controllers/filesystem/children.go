package filesystem

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/apply"
)

// makeChildren applies the objects that the backend returns. Changes that disturb programs wait for the lease.
func (p *pass) makeChildren(ctx context.Context) error {
	in := p.in
	in.FileSystem = p.wanted
	objects, err := p.backend.Members(in)
	if err != nil {
		return err //nolint:wrapcheck // the phase adds its name
	}
	sets, err := p.daemonSets(ctx, objects)
	if err != nil {
		return err
	}
	if err := p.proveVersions(ctx, sets); err != nil {
		return err
	}
	kept := p.keepTemplates(sets)
	for _, set := range sets {
		admitted.Mark(&set.wanted.Spec.Template)
	}
	mine := map[string]string{v1alpha1.LabelFileSystem: p.fs.Name}
	children := p.Applier.CompareAll(ctx, p.fs, mine, objects)
	changes, which := disruptive(slices.DeleteFunc(children.Differences(), func(d apply.Difference) bool {
		return d.Kind == kindDaemonSet && d.Change == apply.Changed && kept[d.Name]
	}))
	if may, err := p.hold.mayApply(ctx, changes, which); err != nil {
		return err
	} else if !may {
		children.Hold(which...)
	}
	result, err := children.Apply(ctx)
	if result.Applied+result.Deleted > 0 {
		log.FromContext(ctx).Info("Applied children", "applied", result.Applied, "deleted", result.Deleted)
	}
	return err //nolint:wrapcheck // the phase adds its name
}
