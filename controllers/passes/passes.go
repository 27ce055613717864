// Package passes holds what the passes of several controllers have in common: they are lists of phases, and begin with a finalizer.
package passes

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/failures"
)

// Phase is a step of a pass, with its name in the sentence that shows why it failed.
type Phase struct {
	Name string
	Do   func(context.Context) error
}

// Each does one phase after the other, until one fails or has set over.
func Each(ctx context.Context, phases []Phase, over *bool) error {
	for _, phase := range phases {
		if err := phase.Do(ctx); err != nil || *over {
			return failures.In(phase.Name, err)
		}
	}
	return nil
}

// Claim makes sure that an object is not gone before what belongs to it is. The object is then as the API server has it.
func Claim(ctx context.Context, c client.Client, object client.Object) error {
	if controllerutil.ContainsFinalizer(object, v1alpha1.Finalizer) {
		return nil
	}
	before, is := object.DeepCopyObject().(client.Object)
	if !is {
		return fmt.Errorf("%T is no object of Kubernetes", object)
	}
	controllerutil.AddFinalizer(object, v1alpha1.Finalizer)
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return c.Patch(ctx, object, lock) //nolint:wrapcheck // the phase adds its name
}
