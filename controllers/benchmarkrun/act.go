package benchmarkrun

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/controllers/agents"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/jobs"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// act takes the step that was decided on.
func (r *Reconciler) act(ctx context.Context, w *scope.Scope, d decision.Decision) error {
	render := jobs.Renderer{Scope: w, Images: r.Images}
	switch d.Action {
	case decision.Start:
		// The record may be newer than the cache that said that there is none.
		if err := r.refresh(ctx, w, d.Turn.Point); err != nil {
			return err
		}
		if next, found := w.Next(); !found || next != d.Turn {
			return nil
		}
		job, err := render.Turn(d.Turn)
		if err != nil {
			return err
		}
		return r.create(ctx, w, job)
	case decision.Check:
		return r.create(ctx, w, render.Checker())
	case decision.Inspect:
		return r.inspect(ctx, w, d.Child)
	case decision.Clean:
		return r.create(ctx, w, render.Cleaner())
	case decision.Export:
		return r.create(ctx, w, render.Exporter())
	case decision.Publish:
		return r.publish(ctx, w, d)
	case decision.DropCaches:
		return agents.AskToDropCaches(ctx, r.Client, w.DropNodes(d.Turn), d.Request)
	case decision.Keep:
		entry, raw, err := r.read(ctx, w, d.Child, d)
		if err != nil {
			return err
		}
		return r.record(ctx, w, entry, raw)
	case decision.GiveUp:
		return r.record(ctx, w, given(w, d), nil)
	case decision.Mark:
		return r.mark(ctx, w, d.Child)
	case decision.Remove:
		return r.remove(ctx, d.Child)
	case decision.Forget:
		return r.forget(ctx, w)
	case decision.Expire:
		uid := w.Run.UID
		return client.IgnoreNotFound(r.Client.Delete(ctx, w.Run, client.Preconditions{UID: &uid}))
	case decision.Nothing:
	}
	return nil
}

// record keeps what a turn has found.
func (r *Reconciler) record(ctx context.Context, w *scope.Scope, entry turns.Record, raw []byte) error {
	entry, err := r.store(ctx, w, entry, raw)
	if err != nil {
		return err
	}
	w.Records.Add(entry)
	log.FromContext(ctx).Info("Recorded a turn", "turn", entry.Turn().Suffix(), "trouble", entry.Trouble())
	return nil
}

// mark notes on a job that it has left its queue, and the state of all that could disturb it from then on.
func (r *Reconciler) mark(ctx context.Context, w *scope.Scope, c *children.Child) error {
	before, ok := c.Object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("the job %s is no object", c.Name)
	}
	annotations := c.Object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[children.AnnotationAdmitted] = w.Now.UTC().Format(time.RFC3339)
	annotations[children.AnnotationTrust] = w.Trust(c.Nodes).Encode()
	c.Object.SetAnnotations(annotations)
	if err := r.Client.Patch(ctx, c.Object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("mark the job %s: %w", c.Name, err)
	}
	return nil
}

// create makes a job. It is not applied: a job is never changed, and one that is there already is not this one.
func (r *Reconciler) create(ctx context.Context, w *scope.Scope, job client.Object) error {
	if err := controllerutil.SetControllerReference(w.Run, job, r.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", job.GetName(), err)
	}
	switch err := r.Client.Create(ctx, job); {
	case apierrors.IsAlreadyExists(err):
		return foreign("the job", job.GetName(), w.Run)
	case err != nil:
		return fmt.Errorf("create the job %s: %w", job.GetName(), err)
	}
	log.FromContext(ctx).Info("Created a job", "job", job.GetName())
	return nil
}

// remove deletes a job and with it, by the garbage collector, its pods.
func (r *Reconciler) remove(ctx context.Context, c *children.Child) error {
	if c.Deleting {
		return nil
	}
	uid := c.Object.GetUID()
	err := r.Client.Delete(ctx, c.Object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the job %s: %w", c.Name, err)
	}
	return nil
}
