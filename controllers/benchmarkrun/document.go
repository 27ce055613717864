package benchmarkrun

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// annotationPublished on the ConfigMap of results says how far the run was when it was written.
const annotationPublished = "parallelfs.dev/benchmark-published"

// toPublish is what the ConfigMap of results is to be about: it is written anew with each point that is over, at the end, and when the
// baseline is another one.
func (w *world) toPublish(final bool) string {
	over := 0
	for _, s := range w.states() {
		if s.over {
			over++
		}
	}
	out := fmt.Sprintf("%d of %d points", over, len(w.points))
	if w.baselineOf != "" {
		spec := w.run.Spec.Baseline
		out += fmt.Sprintf(", compared with %s, %s %%", w.baselineOf, spec.TolerancePercent)
		if spec.AllowDifferences {
			out += " in spite of differences"
		}
	}
	if final {
		out += ", final"
	}
	return out
}

// final is true when nothing more is run.
func (w *world) final() bool {
	_, more := w.next()
	return !more || w.timedOut(0)
}

// unpublished is true when the complete results have to be written. Before the first point is over, there are none.
func (w *world) unpublished() bool {
	final := w.final()
	about := w.toPublish(final)
	return w.published != about && (final || !strings.HasPrefix(about, "0 of"))
}

// documentPoints are the points of the complete results, with their attempts when those are asked for, and what the comparison with the
// baseline says, nil without one.
func (w *world) documentPoints(d decision, attempts bool) ([]results.Point, *results.Comparison, error) {
	out := make([]results.Point, 0, len(w.points))
	for i, point := range w.points {
		s := w.state(i)
		p := results.Point{Index: i, Parameters: w.values(point), State: v1alpha1.PointPending}
		recorded := w.records.of(i)
		if len(recorded) > 0 {
			p.State = v1alpha1.PointRunning
			p.Placement = recorded[0].Placement
			p.Command = w.command(i)
		}
		switch {
		case s.bad != nil:
			p.State = v1alpha1.PointFailed
			if s.bad.Invalid != "" {
				p.State = v1alpha1.PointInvalid
			}
			p.Message = failureMessage(*s.bad)
		case s.over:
			p.State = v1alpha1.PointSucceeded
			metrics, err := stats.Summarize(s.results, w.run.Spec.Statistic)
			if err != nil {
				return nil, nil, fmt.Errorf("compute the metrics of point %d: %w", i, err)
			}
			p.Metrics, p.Message = metrics, w.remarks(i, s)
		case d.ended && len(recorded) > 0:
			p.State = v1alpha1.PointFailed
			p.Message = fmt.Sprintf("spec.limits.timeout was reached after %d of %d repetitions", s.Repetitions, s.needs)
		case d.running && d.turn.point == i:
			p.State = v1alpha1.PointRunning
		}
		if attempts {
			for _, entry := range recorded {
				p.Attempts = append(p.Attempts, attemptOf(entry))
			}
		}
		out = append(out, p)
	}
	if w.run.Spec.Along != "" {
		stats.Scaling(out, &w.run.Spec)
	}
	return out, w.compare(out), nil
}

// compare fills in what the baseline has beside the points; nil when there is none.
func (w *world) compare(points []results.Point) *results.Comparison {
	if w.baseline == nil {
		return nil
	}
	run := results.Run{Name: w.run.Name, UID: string(w.run.UID), Spec: w.run.Spec, Provenance: w.documentProvenance(), Points: points}
	found := stats.Compare([]stats.Pair{{Run: run, Baseline: *w.baseline, Of: w.baselineOf}}, stats.TermsOf(w.run.Spec.Baseline))[0]
	if len(found.Refused) > 0 && !w.run.Spec.Baseline.AllowDifferences {
		found.Summary = "without spec.baseline.allowDifferences " + found.Summary
	}
	return &found
}

// documentProvenance is what the complete results say of what they were measured on and with.
func (w *world) documentProvenance() results.Provenance {
	out := w.provenance.Provenance
	if p := w.runProvenance(); p != nil {
		out.RunProvenance = *p
	}
	return out
}

// remarks says what is to be known of a point that has a result: attempts that were no result, and a stop rule that was not met.
func (w *world) remarks(point int, s pointState) string {
	var out []string
	for _, entry := range w.records.of(point) {
		if entry.Invalid != "" || entry.Error != "" {
			out = append(out, fmt.Sprintf("%s, attempt %d: %s", entry.title(), entry.Attempt, entry.trouble()))
		}
	}
	if rule := w.run.Spec.Until; rule != nil {
		if missing := stats.Uncertain(rule, s.results); missing != "" {
			out = append(out, missing)
		}
	}
	return v1alpha1.Cut(strings.Join(out, "; "), maxMessage)
}

// values are the parameters of a point as a document holds them.
func (w *world) values(point benchmarks.Point) []results.Value {
	return results.Values(point, w.parameters)
}

// command is that of a point: of several steps, all of them with a semicolon between.
func (w *world) command(point int) []string {
	var out []string
	for i := range w.plans[point].Steps {
		if i > 0 {
			out = append(out, ";")
		}
		out = append(out, w.blank(turn{point: point, step: i}).Command...)
	}
	return out
}

func attemptOf(entry record) results.Attempt {
	return results.Attempt{
		Repetition: entry.Repetition, Attempt: entry.Attempt, WarmUp: entry.WarmUp, Step: entry.StepName,
		Started: entry.Started, Ended: entry.Finished, ExitCode: entry.ExitCode,
		Error: cmp.Or(entry.Error, entry.Interrupted), Invalid: entry.Invalid, Samples: entry.Samples, Telemetry: entry.Telemetry,
	}
}

// document is the complete results so far.
func (w *world) document(d decision) (results.Run, error) {
	points, comparison, err := w.documentPoints(d, true)
	if err != nil {
		return results.Run{}, err
	}
	out := results.Run{
		Format: results.Format, Name: w.run.Name, Namespace: w.run.Namespace, UID: string(w.run.UID), Spec: w.run.Spec,
		Provenance: w.documentProvenance(), Points: points, Comparison: comparison,
	}
	if w.run.Status.StartTime != nil {
		out.Started = w.run.Status.StartTime.Time
	}
	if d.ended {
		out.Ended = w.records.lastEnd()
	}
	return out, nil
}

// publish writes the ConfigMap of results.
func (r *Reconciler) publish(ctx context.Context, w *world, d decision) error {
	final := w.final()
	d.ended = final
	document, err := w.document(d)
	if err != nil {
		return err
	}
	packed, err := results.Pack(document, maxStored)
	if err != nil {
		return fmt.Errorf("write the complete results: %w", err)
	}
	about := w.toPublish(final)
	if err := r.writeConfigMap(ctx, w, results.ConfigMapOfRun(w.run.Name), func(cm *corev1.ConfigMap) {
		cm.Data, cm.BinaryData = nil, packed.Files
		if packed.Note != "" {
			cm.Data = map[string]string{"left-out.txt": packed.Note}
		}
		if cm.Annotations == nil {
			cm.Annotations = map[string]string{}
		}
		cm.Annotations[annotationPublished] = about
	}); err != nil {
		return err
	}
	w.published = about
	return nil
}

// baselinesKept is how many results of other runs are kept. One holds no samples, and takes up to about 1 MiB.
const baselinesKept = 32

// knownBaseline are the results of another run as they were at a version of their ConfigMap.
type knownBaseline struct {
	version string
	run     results.Run
}

// gatherBaseline reads what the results are compared with. The results of another run are large and not in the cache, so they are read
// again only when they have changed.
func (r *Reconciler) gatherBaseline(ctx context.Context, w *world) error {
	spec := w.run.Spec.Baseline
	switch {
	case spec == nil || w.run.Status.CompletionTime != nil && w.run.Status.ObservedGeneration == w.run.Generation:
		return nil
	case spec.Published != "" && r.Published == nil:
		w.baselineProblem = "this operator holds no published tables"
		return nil
	case spec.Published != "":
		table, err := r.Published(spec.Published, spec.Variant)
		if err != nil {
			w.baselineProblem = v1alpha1.Cut("spec.baseline.published: "+err.Error(), maxBaseline)
			return nil //nolint:nilerr // it is told in the status, and the run goes on
		}
		w.baseline, w.baselineOf = &table, spec.Published
		if spec.Variant != "" {
			w.baselineOf += ", " + spec.Variant
		}
		return nil
	}
	key := types.NamespacedName{Namespace: w.run.Namespace, Name: results.ConfigMapOfRun(spec.Run)}
	cm := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, key, cm)
	if apierrors.IsNotFound(err) {
		w.baselineProblem = fmt.Sprintf("spec.baseline.run: BenchmarkRun %s has no results (there is no ConfigMap %s)", spec.Run, key.Name)
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key.Name, err)
	}
	if r.baselines == nil {
		r.baselines = lru.New(baselinesKept)
	}
	var known knownBaseline
	if cached, ok := r.baselines.Get(key); ok {
		known, _ = cached.(knownBaseline)
	}
	if known.version != cm.ResourceVersion {
		if err := r.Reader.Get(ctx, key, cm); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ConfigMap %s: %w", key.Name, err)
		}
		document, err := results.Decode(cm.BinaryData[results.FileJSON])
		if err != nil {
			w.baselineProblem = v1alpha1.Cut(
				fmt.Sprintf("spec.baseline.run: the results of BenchmarkRun %s can't be read: %v", spec.Run, err), maxBaseline)
			return nil
		}
		for i := range document.Points {
			document.Points[i].Attempts = nil // a comparison needs no samples, and they are most of it
		}
		known = knownBaseline{version: cm.ResourceVersion, run: document}
		r.baselines.Add(key, known)
	}
	w.baseline, w.baselineOf = &known.run, spec.Run
	return nil
}

const (
	maxBaseline = 512
	maxExported = 1024
	// exportTimeout bounds the job that takes the results elsewhere.
	exportTimeout = 10 * time.Minute
)

// destination says where the complete results go besides, empty when nowhere.
func (w *world) destination() string {
	spec := w.run.Spec.Results
	if spec == nil {
		return ""
	}
	var out []string
	if claim := spec.PersistentVolumeClaim; claim != nil {
		out = append(out, fmt.Sprintf("PersistentVolumeClaim %s, directory %s", claim.Name, path.Join(claim.Path, w.exportDirectory())))
	}
	if store := spec.ObjectStore; store != nil {
		out = append(out, fmt.Sprintf("s3://%s/%s", store.Bucket, path.Join(store.Prefix, w.exportDirectory())))
	}
	return strings.Join(out, "; ")
}

// exportDirectory tells the runs of one name apart.
func (w *world) exportDirectory() string {
	uid := string(w.run.UID)
	return w.run.Name + "-" + uid[:min(len(uid), uidLength)]
}

// decideExport has the results taken elsewhere. What becomes of that is no failure of the run.
func decideExport(w *world) (exported string, d decision, waits bool) {
	to := w.destination()
	if to == "" || strings.Contains(w.run.Status.Exported, to) {
		return w.run.Status.Exported, d, false
	}
	d = w.reconciling(v1alpha1.ReasonCleaningUp, "taking the complete results to %s", to)
	d.after = w.poll
	switch c := w.exporter; {
	case c == nil:
		d.action = export
	case c.succeeded:
		return v1alpha1.Cut(to, maxExported), d, false
	case c.failed || w.now.Sub(c.created) > exportTimeout:
		return v1alpha1.Cut(fmt.Sprintf("could not be taken to %s: Job %s: %s%s", to, c.name, c.message, why(c)), maxExported), d, false
	}
	return "", d, true
}
