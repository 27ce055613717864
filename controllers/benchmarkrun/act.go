package benchmarkrun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/agents"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/jobs"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// act takes the decided step.
func (r *Reconciler) act(ctx context.Context, w *scope.Scope, d decision.Decision) error {
	render := jobs.Renderer{Scope: w, Images: r.Images}
	switch d.Action {
	case decision.Start:
		// The record may be newer than the cache, which showed none.
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
	case decision.MakeClaim:
		return r.makeClaim(ctx, w, render)
	case decision.RemoveClaim:
		return r.removeClaim(ctx, w)
	case decision.Export:
		return r.create(ctx, w, render.Exporter())
	case decision.Publish:
		return r.publish(ctx, w, d)
	case decision.DropCaches:
		return agents.AskToDropCaches(ctx, r.Client, w.DropNodes(d.Turn), d.Request)
	case decision.Keep:
		return r.keep(ctx, w, d)
	case decision.GiveUp:
		return r.record(ctx, w, given(w, d), &turns.Raw{})
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

// maxReaders is how many processes of the operator may begin to read an output.
const maxReaders = 2

// keep reads the outputs of a turn and records the result. The read itself is recorded first: an output that crashed the operator twice is
// not read again, because it would crash each next leader as well.
func (r *Reconciler) keep(ctx context.Context, w *scope.Scope, d decision.Decision) error {
	known := strings.Fields(d.Child.Object.GetAnnotations()[children.AnnotationReading])
	again := slices.Contains(known, r.identity())
	if !again && len(known) >= maxReaders {
		d.Invalid, d.Unread = turns.Unreadable, true
	} else if !again {
		if err := r.noteReaders(ctx, d.Child, append(known, r.identity())); err != nil {
			return err
		}
	}
	entry, raw, err := r.read(ctx, w, d.Child, d)
	if err == nil {
		err = r.record(ctx, w, entry, raw)
	}
	if err != nil && !d.Unread && !errors.Is(err, errUnderWay) {
		// The current leader reads it again later, because this process has not crashed during the read.
		return errors.Join(err, r.noteReaders(ctx, d.Child, known))
	}
	return err
}

// identity identifies this process, and differs after each start.
func (r *Reconciler) identity() string { return cmp.Or(r.Process, "unnamed") }

// noteReaders records which processes have begun to read the output of a job.
func (r *Reconciler) noteReaders(ctx context.Context, c *children.Child, readers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{children.AnnotationReading: strings.Join(readers, " ")}}})
	if err != nil {
		return fmt.Errorf("encode the readers of the job %s: %w", c.Name, err)
	}
	after, is := c.Object.DeepCopyObject().(client.Object)
	if !is {
		return fmt.Errorf("the job %s is no object", c.Name)
	}
	if err := r.Client.Patch(ctx, after, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("note on the job %s that its output is read: %w", c.Name, err)
	}
	return nil
}

// record stores the result of a turn.
func (r *Reconciler) record(ctx context.Context, w *scope.Scope, entry turns.Record, raw *turns.Raw) error {
	entry, err := r.store(ctx, w, entry, raw)
	if err != nil {
		return err
	}
	w.Records.Add(entry)
	log.FromContext(ctx).Info("Recorded a turn", "turn", entry.Turn().Suffix(), "trouble", entry.Trouble())
	return nil
}

// mark records on a job that it has left its queue, and the state of everything that could disturb it from then on.
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

// create creates a job. It does not apply it, because a job is never changed, and an existing job is a different one.
func (r *Reconciler) create(ctx context.Context, w *scope.Scope, job client.Object) error {
	if err := controllerutil.SetControllerReference(w.Run, job, r.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", job.GetName(), err)
	}
	annotations := maps.Clone(job.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[children.AnnotationAsked] = admitted.Encode(children.AskedOf(job))
	job.SetAnnotations(annotations)
	switch err := r.Client.Create(ctx, job); {
	case apierrors.IsAlreadyExists(err):
		return foreign("the job", job.GetName(), w.Run)
	case err != nil:
		return fmt.Errorf("create the job %s: %w", job.GetName(), err)
	}
	log.FromContext(ctx).Info("Created a job", "job", job.GetName())
	return nil
}

// remove deletes a job and, by the garbage collector, its pods.
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
