package benchmarkrun

import (
	"context"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"

	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/refusals"
)

// launcherSuffix is the end of the name of the Job that the MPI operator makes for the launcher of an MPIJob.
const launcherSuffix = "-launcher"

// gatherRefusal checks whether the API server refuses the pods of a job. Neither a Job nor an MPIJob shows that in its status, so the
// events are read, and only while pods are missing.
func (r *Reconciler) gatherRefusal(ctx context.Context, w *scope.Scope, c *children.Child) (err error) {
	if c.Deleting || c.Held || c.Succeeded || w.Now.Sub(c.Started) < refusals.Patience || len(c.MainPods()) > 0 {
		return nil
	}
	owners := []refusals.Owner{{Kind: "Job", Namespace: w.Run.Namespace, Name: c.Name, Since: c.Created}}
	if _, is := c.Object.(*mpiv2.MPIJob); is {
		launcher := owners[0]
		launcher.Name += launcherSuffix
		owners[0].Kind = "MPIJob"
		owners = append(owners, launcher)
	}
	for _, owner := range owners {
		// The workers come first, because without them there is no launcher.
		if c.Refused, err = refusals.Of(ctx, r.Reader, owner); err != nil || c.Refused != "" {
			return err //nolint:wrapcheck // the error describes the request
		}
	}
	return nil
}
