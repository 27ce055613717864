package benchmarkrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/outcomes"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/internal/node/spec"
)

// inspect reads the result of the check, and records it with everything that the results will be measured on.
func (r *Reconciler) inspect(ctx context.Context, w *scope.Scope, c *children.Child) error {
	found := outcomes.Found(w, r.Version)
	found.CheckedBy, found.CheckedAt = "nobody", w.Now.UTC().Truncate(time.Second)
	if c != nil {
		found.CheckedBy = string(c.Object.GetUID())
		if err := r.readCheck(ctx, c, &found); err != nil {
			return err
		}
		outcomes.AddSeen(&found, c.ClientNodes())
	}
	return r.storeProvenance(ctx, w, found)
}

func (r *Reconciler) readCheck(ctx context.Context, c *children.Child, into *scope.Provenance) error {
	pods := c.MainPods()
	if len(pods) == 0 {
		into.CheckFailed = "the Job " + c.Name + " ended without a pod: " + cmp.Or(c.Message, "it gives no reason")
		return nil
	}
	pod := pods[len(pods)-1]
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == children.ContainerName {
			into.ImageID = status.ImageID
		}
	}
	if trouble := children.PodTrouble(pod); trouble != "" && !c.Succeeded {
		into.CheckFailed = "its pod " + trouble
		return nil
	}
	if !c.Succeeded {
		into.CheckFailed = cmp.Or(c.Message, fmt.Sprintf("the Job %s did not end within %s", c.Name, scope.CheckTimeout))
		return nil
	}
	stream, err := r.Logs.Logs(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, children.ContainerName, maxCheckLog)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(stream, maxCheckLog))
	if err = errors.Join(err, stream.Close()); err != nil {
		return fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	into.Checked, err = parseChecked(raw)
	if err != nil {
		into.CheckFailed = err.Error()
	}
	return nil
}

// parseChecked finds the answer of `node bench check` in its output.
func parseChecked(raw []byte) (spec.Checked, error) {
	for line := range bytes.Lines(raw) {
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		var checked spec.Checked
		if err := json.Unmarshal(line, &checked); err != nil {
			return checked, fmt.Errorf("its answer can't be read: %w", err)
		}
		return checked, nil
	}
	return spec.Checked{}, fmt.Errorf("the check printed no answer, but %q", text.LastLines(raw, 2, 300))
}
