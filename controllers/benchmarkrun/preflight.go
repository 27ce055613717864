package benchmarkrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// checkTimeout bounds the look at image and space, with the pull of the image.
	checkTimeout = 10 * time.Minute
	// checkAgain is how long a run that failed its preflight waits before it looks again.
	checkAgain = 2 * time.Minute
)

// decidePreflight looks at image and space before the first point; it does not hold up a run that has passed.
func decidePreflight(w *world) (decision, bool) {
	d := w.reconciling(v1alpha1.ReasonPreflight, "looking at the image %s and the space of FileSystem %s", w.image, w.run.Spec.FileSystem.Name)
	d.lease, d.after = leaseTake, w.poll
	c := w.checker
	switch {
	case !w.any(onClients):
		// Nothing of it needs a mount, and the backend brings the image. What it is measured on is recorded all the same.
		d.action, d.after = inspect, soon
		return d, w.provenance.CheckedBy == ""
	case c == nil:
		d.action = check
		return d, true
	case c.deleting:
		return d, true
	case c.noPods():
		d.reason, d.message = v1alpha1.ReasonQuotaExceeded, w.overQuota(c)
		if c.failed {
			d.action, d.child = remove, c
		}
		return d, true
	case w.provenance.CheckedBy != string(c.object.GetUID()):
		if reason := why(c); reason != "" {
			d.message += reason
		}
		if c.over() || w.now.Sub(c.created) > checkTimeout {
			d.action, d.child, d.after = inspect, c, soon
		}
		return d, true
	}
	reason, sentence := w.unfit()
	if sentence == "" {
		return decision{}, false
	}
	d = stalled(reason, sentence)
	d.after = max(w.provenance.CheckedAt.Add(checkAgain).Sub(w.now), soon)
	if w.now.Sub(w.provenance.CheckedAt) >= checkAgain {
		d.action, d.child, d.after = remove, c, soon
	}
	return d, true
}

// unfit says why the run can't end well, from what the check has found.
func (w *world) unfit() (reason, sentence string) {
	p := w.provenance
	if p.CheckFailed != "" {
		return v1alpha1.ReasonImageRequired, fmt.Sprintf("the image %s could not be looked at: %s; see docs/benchmark-images.md",
			w.image, p.CheckFailed)
	}
	var missing []string
	for _, program := range p.Checked.MissingPrograms {
		missing = append(missing, "the program "+program)
	}
	for _, user := range p.Checked.MissingUsers {
		missing = append(missing, "the user "+user)
	}
	if len(missing) > 0 {
		return v1alpha1.ReasonImageRequired, fmt.Sprintf("the image %s lacks %s, which %s needs; docs/benchmark-images.md says what "+
			"must be in it", w.image, sentenceList(missing), w.run.Spec.Tool)
	}
	if p.Checked.Problem != "" {
		return v1alpha1.ReasonPreflightFailed, fmt.Sprintf("the filesystem could not be looked at: %s", p.Checked.Problem)
	}
	need, at := w.demand()
	switch {
	case need.Bytes > p.Checked.FreeBytes:
		return v1alpha1.ReasonPreflightFailed, fmt.Sprintf("%s needs %s, and FileSystem %s has %s free: make room, or make the benchmark smaller",
			describe(w.points[at]), v1alpha1.Bytes(need.Bytes), w.run.Spec.FileSystem.Name, v1alpha1.Bytes(p.Checked.FreeBytes))
	case p.Checked.FreeInodes >= 0 && need.Inodes > p.Checked.FreeInodes:
		return v1alpha1.ReasonPreflightFailed, fmt.Sprintf("a point of the sweep needs %d inodes, and FileSystem %s has %d free: "+
			"remove files, or make the benchmark smaller", need.Inodes, w.run.Spec.FileSystem.Name, p.Checked.FreeInodes)
	}
	return "", ""
}

// demand is the most that a point that is not over needs, and the point that needs most space.
func (w *world) demand() (need benchmarks.Demand, at int) {
	for i, plan := range w.plans {
		if w.state(i).over {
			continue
		}
		if plan.Demand.Bytes > need.Bytes {
			need.Bytes, at = plan.Demand.Bytes, i
		}
		need.Inodes = max(need.Inodes, plan.Demand.Inodes)
	}
	return need, at
}

// sshd is the daemon of a worker, by its path: it starts itself anew for each session.
const sshd = "/usr/sbin/sshd"

// contract is what must be in the image: the programs and users of all steps of all points, sorted.
func (w *world) contract() (programs, users []string) {
	for _, plan := range w.plans {
		for _, step := range plan.Steps {
			c := step.Command
			if c.Launch == benchmarks.OnManagement {
				continue
			}
			if len(c.Argv) > 0 {
				programs = append(programs, c.Argv[0])
			}
			programs = append(programs, c.Programs...)
			if distributed(c.Launch) {
				programs, users = append(programs, "ssh", sshd), append(users, "root", "sshd")
			}
			if distributed(c.Launch) && c.Launch != benchmarks.OnLauncher {
				programs = append(programs, "mpirun")
			}
		}
	}
	// A program that a placeholder names is known only in the pod.
	programs = slices.DeleteFunc(programs, func(p string) bool { return strings.Contains(p, "$(") })
	slices.Sort(programs)
	slices.Sort(users)
	return slices.Compact(programs), slices.Compact(users)
}

// checker is the Job that looks at the tool's image and at the filesystem, on a client.
func (r renderer) checker() task {
	programs, users := r.w.contract()
	directory := path.Join(r.w.roots(r.w.directory())[0], "none")
	told := spec.Benchmark{
		Mount: r.mount(), Root: path.Dir(directory), Directory: directory, Argv: []string{}, TimeoutSeconds: seconds(checkTimeout),
		Programs: programs, Users: users,
	}
	if custom := r.w.run.Spec.Custom; custom != nil {
		for _, argument := range custom.VersionCommand {
			told.VersionArgv = append(told.VersionArgv, string(argument))
		}
	}
	var nodes []string
	for _, n := range r.w.clients {
		nodes = append(nodes, n.Name)
	}
	return task{
		name: checkName(r.w.run.Name), role: roleChecker, verb: "check", image: r.w.image, nodes: nodes, told: told,
		deadline: checkTimeout + deadlineMargin,
	}
}

// inspect reads what the check has found, and records it with all that the results will have been measured on.
func (r *Reconciler) inspect(ctx context.Context, w *world, c *child) error {
	found := r.provenanceOf(w)
	found.CheckedBy, found.CheckedAt = "nobody", w.now.UTC().Truncate(time.Second)
	if c != nil {
		found.CheckedBy = string(c.object.GetUID())
		if err := r.readCheck(ctx, c, &found); err != nil {
			return err
		}
	}
	return r.storeProvenance(ctx, w, found)
}

func (r *Reconciler) readCheck(ctx context.Context, c *child, into *provenance) error {
	pods := c.mainPods()
	if len(pods) == 0 {
		into.CheckFailed = "the Job " + c.name + " ended without a pod: " + cmp.Or(c.message, "it gives no reason")
		return nil
	}
	pod := pods[len(pods)-1]
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == containerName {
			into.ImageID = status.ImageID
		}
	}
	if trouble := podTrouble(pod); trouble != "" && !c.succeeded {
		into.CheckFailed = "its pod " + trouble
		return nil
	}
	if !c.succeeded {
		into.CheckFailed = cmp.Or(c.message, fmt.Sprintf("the Job %s did not end within %s", c.name, checkTimeout))
		return nil
	}
	raw, err := r.Logs.Logs(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, containerName, maxLog)
	if err != nil {
		return err
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
	return spec.Checked{}, fmt.Errorf("the check printed no answer, but %q", lastLines(raw, 2, 300))
}
