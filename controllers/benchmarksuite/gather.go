package benchmarksuite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// world has all facts that decide may use.
type world struct {
	suite *v1alpha1.BenchmarkSuite
	now   time.Time
	// poll is Reconciler.PollInterval.
	poll  time.Duration
	plans []variantPlan
	// refused is the reason why the suite can't begin. The API server is queried only before the suite has begun.
	refused *refusal
	// fileSystems and runs of the namespace, by name, whatever made them.
	fileSystems map[string]*v1alpha1.FileSystem
	runs        map[string]*v1alpha1.BenchmarkRun
	// targets has those of the FileSystem of the current variant.
	targets []v1alpha1.StorageTarget
}

// gather reads all facts that decide may use. FileSystems, the current run and the targets are read past the cache: a decision from a
// missing object, such as to make it, is right only if the object really does not exist.
func (r *Reconciler) gather(ctx context.Context, suite *v1alpha1.BenchmarkSuite) (*world, error) {
	w := &world{
		suite: suite, now: r.Clock.Now(), poll: r.PollInterval,
		fileSystems: map[string]*v1alpha1.FileSystem{}, runs: map[string]*v1alpha1.BenchmarkRun{},
	}
	w.plans, w.refused = build(suite, r.Backends)
	var all v1alpha1.FileSystemList
	if err := r.Reader.List(ctx, &all, client.InNamespace(suite.Namespace)); err != nil {
		return nil, fmt.Errorf("list FileSystems: %w", err)
	}
	for i := range all.Items {
		w.fileSystems[all.Items[i].Name] = &all.Items[i]
	}
	if err := r.gatherRuns(ctx, w); err != nil {
		return nil, err
	}
	if err := r.gatherTargets(ctx, w); err != nil {
		return nil, err
	}
	if suite.Status.StartTime == nil && w.refused == nil && !tried(suite) {
		refused, err := r.tryAll(ctx, w)
		if err != nil {
			return nil, err
		}
		w.refused = refused
	}
	return w, nil
}

func (r *Reconciler) gatherRuns(ctx context.Context, w *world) error {
	var all v1alpha1.BenchmarkRunList
	if err := r.Client.List(ctx, &all, client.InNamespace(w.suite.Namespace)); err != nil {
		return fmt.Errorf("list BenchmarkRuns: %w", err)
	}
	for i := range all.Items {
		w.runs[all.Items[i].Name] = &all.Items[i]
	}
	v, under := w.current()
	if !under || w.refused != nil {
		return nil
	}
	j, left := w.nextRun(v)
	if !left {
		return nil
	}
	name, run := w.plans[v].runs[j].GetName(), &v1alpha1.BenchmarkRun{}
	switch err := r.Reader.Get(ctx, client.ObjectKey{Namespace: w.suite.Namespace, Name: name}, run); {
	case apierrors.IsNotFound(err):
		delete(w.runs, name)
	case err != nil:
		return fmt.Errorf("read BenchmarkRun %s: %w", name, err)
	default:
		w.runs[name] = run
	}
	return nil
}

func (r *Reconciler) gatherTargets(ctx context.Context, w *world) error {
	v, under := w.current()
	if !under {
		return nil
	}
	uid := w.variant(v).FileSystemUID
	if uid == "" {
		return nil
	}
	var all v1alpha1.StorageTargetList
	if err := r.Reader.List(ctx, &all, client.InNamespace(w.suite.Namespace)); err != nil {
		return fmt.Errorf("list StorageTargets: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.FileSystem.UID == uid {
			w.targets = append(w.targets, all.Items[i])
		}
	}
	slices.SortFunc(w.targets, func(a, b v1alpha1.StorageTarget) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// tried is true when the suite was tried with its present spec, and waits for a person: a trial takes a request for each FileSystem and
// run.
func tried(suite *v1alpha1.BenchmarkSuite) bool {
	c := meta.FindStatusCondition(suite.Status.Conditions, v1alpha1.ConditionSucceeded)
	return c != nil && c.ObservedGeneration == suite.Generation &&
		(c.Reason == v1alpha1.ReasonDestroyUnconfirmed || c.Reason == v1alpha1.ReasonSuspended)
}

// tryAll sends all objects of all variants to the API server as a dry run: an invalid one is found before the first hour is spent.
func (r *Reconciler) tryAll(ctx context.Context, w *world) (*refusal, error) {
	for i := range w.plans {
		if taken := w.taken(&w.plans[i]); taken != nil {
			return taken, nil
		}
	}
	// Variants that change nothing in the runs share them.
	same := false
	for i := range w.plans {
		p := &w.plans[i]
		if why, err := r.try(ctx, p.fileSystem.DeepCopy()); err != nil || why != "" {
			return invalid("variant %s: its FileSystem (spec.fileSystem with spec.variants[%s].fileSystem) is refused: %s", p.name, p.name, why), err
		}
		plain := w.suite.Spec.Variants[i].Run == nil
		if plain && same {
			continue
		}
		same = same || plain
		for j, run := range p.runs {
			name, made := w.suite.Spec.Runs[j].Name, run.DeepCopy()
			why, err := r.try(ctx, made)
			if err == nil && why == "" {
				why = r.expand(made)
			}
			if err != nil || why != "" {
				return invalid("variant %s: its run %s (spec.runs[%s].spec with spec.variants[%s].run) is refused: %s", p.name, name, name, p.name, why), err
			}
		}
	}
	return nil, nil
}

// taken returns an existing object that a variant, which has not begun, would make.
func (w *world) taken(p *variantPlan) *refusal {
	sentence := "there is a %s %s already, which this suite did not make and does not touch; delete or rename it, or give the suite or its variant %s another name"
	if _, there := w.fileSystems[p.fileSystem.GetName()]; there {
		return &refusal{v1alpha1.ReasonNameTaken, fmt.Sprintf(sentence, "FileSystem", p.fileSystem.GetName(), p.name)}
	}
	for _, run := range p.runs {
		if _, there := w.runs[run.GetName()]; there {
			return &refusal{v1alpha1.ReasonNameTaken, fmt.Sprintf(sentence, "BenchmarkRun", run.GetName(), p.name)}
		}
	}
	return nil
}

// try creates an object as a dry run, and returns why it is refused. The object then has its defaults.
func (r *Reconciler) try(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	err := r.Client.Create(ctx, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	switch {
	case err == nil:
		return "", nil
	case isRefusal(err), apierrors.IsAlreadyExists(err):
		return because(err), nil
	default:
		return "", fmt.Errorf("try to create %s %s: %w", object.GetKind(), object.GetName(), err)
	}
}

// isRefusal is true for an error about an object that is invalid as it is.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// because is the message of the API server, with the fields that it names.
func because(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		var causes []string
		for _, c := range status.Status().Details.Causes {
			causes = append(causes, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
		}
		if len(causes) > 0 {
			slices.Sort(causes)
			return strings.Join(slices.Compact(causes), "; ")
		}
	}
	return err.Error()
}

// expand returns why the points of a run can't be run, with the defaults that the API server has set.
func (r *Reconciler) expand(made *unstructured.Unstructured) string {
	run := &v1alpha1.BenchmarkRun{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(made.Object, run); err != nil {
		return err.Error()
	}
	tool, known := r.Tools[run.Spec.ToolName()]
	if !known {
		return fmt.Sprintf("spec.tool: this operator has no tool %q", run.Spec.ToolName())
	}
	points, err := sweep.Expand(tool, &run.Spec)
	if err != nil {
		return err.Error()
	}
	for _, point := range points {
		if _, err := tool.Plan(&run.Spec, point); err != nil {
			return fmt.Sprintf("point %d: %v", point.Index, err)
		}
	}
	return ""
}

// variant is the status of a variant: Pending while it has none.
func (w *world) variant(i int) v1alpha1.SuiteVariantStatus {
	name := w.suite.Spec.Variants[i].Name
	for _, v := range w.suite.Status.Variants {
		if v.Name == name {
			return *v.DeepCopy()
		}
	}
	return v1alpha1.SuiteVariantStatus{Name: name, State: v1alpha1.VariantPending}
}

// current is the first variant that is not over.
func (w *world) current() (int, bool) {
	for i := range w.suite.Spec.Variants {
		if s := w.variant(i).State; s != v1alpha1.VariantDone && s != v1alpha1.VariantFailed {
			return i, true
		}
	}
	return 0, false
}

// nextRun is the first run of a variant that is not over.
func (w *world) nextRun(v int) (int, bool) {
	variant := w.variant(v)
	for j := range w.suite.Spec.Runs {
		if s := entry(&variant, w.suite.Spec.Runs[j].Name); s == nil || !over(s) {
			return j, true
		}
	}
	return 0, false
}

// entry is the status of a run of a variant, nil before the run was made.
func entry(variant *v1alpha1.SuiteVariantStatus, run string) *v1alpha1.SuiteRunStatus {
	for i := range variant.Runs {
		if variant.Runs[i].Name == run {
			return &variant.Runs[i]
		}
	}
	return nil
}

func over(s *v1alpha1.SuiteRunStatus) bool { return s.Succeeded == "True" || s.Succeeded == "False" }

// live is the FileSystem of a variant: nil when it does not exist, or when another FileSystem has its name.
func (w *world) live(v *v1alpha1.SuiteVariantStatus) *v1alpha1.FileSystem {
	if fs := w.fileSystems[v.FileSystem]; fs != nil && v.FileSystemUID != "" && string(fs.UID) == v.FileSystemUID {
		return fs
	}
	return nil
}
