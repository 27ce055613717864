package benchmarksuite

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend/all"
)

var backends = all.Backends(time.Minute)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const (
	suiteUID = "11111111-aaaa-4000-8000-000000000001"
	fsUID    = "22222222-bbbb-4000-8000-000000000002"
)

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func patch(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

const (
	mooseSpec = `{"type":"MooseFS","version":"4.57.5","moosefs":{},
 "metadataServers":{"nodeSelector":{"a":"b"},"targets":{"select":{"countPerNode":1}}},
 "storagePools":[{"name":"ssd","nodeSelector":{"a":"b"},"copies":1,"targets":{"select":{"countPerNode":1}}}]}`
	iozoneSpec = `{"tool":"iozone","iozone":{},"clients":{"nodeSelector":{"a":"b"}}}`
)

// aSuite has the variants one and two, each measured by the runs reads and writes.
func aSuite(change ...func(s *v1alpha1.BenchmarkSuite)) *v1alpha1.BenchmarkSuite {
	s := &v1alpha1.BenchmarkSuite{
		ObjectMeta: metav1.ObjectMeta{Name: "night", Namespace: "lab", UID: suiteUID, Generation: 1},
		Spec: v1alpha1.BenchmarkSuiteSpec{
			FileSystem: raw(mooseSpec), AfterVariant: v1alpha1.AfterVariantDelete, OnFailure: v1alpha1.SuiteContinue,
			Variants: []v1alpha1.SuiteVariant{{Name: "one", Scale: 1}, {Name: "two", Scale: 2, FileSystem: patch(`{"moosefs":{"basePort":9500}}`)}},
			Runs:     []v1alpha1.SuiteRun{{Name: "reads", Spec: raw(iozoneSpec)}, {Name: "writes", Spec: raw(iozoneSpec)}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// scene is a world after an event.
type scene struct {
	*world
	fs *v1alpha1.FileSystem
}

func sceneOf(suite *v1alpha1.BenchmarkSuite) *scene {
	w := &world{suite: suite, now: noon, poll: 10 * time.Second, fileSystems: map[string]*v1alpha1.FileSystem{}, runs: map[string]*v1alpha1.BenchmarkRun{}}
	w.plans, w.refused = build(suite, backends)
	return &scene{world: w}
}

// at puts the first variant into a state, with its FileSystem.
func (s *scene) at(state v1alpha1.VariantState) *scene {
	s.suite.Status.StartTime = &metav1.Time{Time: noon.Add(-time.Hour)}
	begun := metav1.NewTime(noon.Add(-10 * time.Minute))
	s.suite.Status.Variants = []v1alpha1.SuiteVariantStatus{
		{Name: "one", State: state, FileSystem: "night-one", FileSystemUID: fsUID, StartTime: &begun},
		{Name: "two", State: v1alpha1.VariantPending},
	}
	s.fs = &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{
		Name: "night-one", Namespace: "lab", UID: fsUID, Generation: 1,
		Labels: map[string]string{v1alpha1.LabelBenchmarkSuite: "night"}, Annotations: map[string]string{v1alpha1.AnnotationSuite: suiteUID},
	}}
	s.fs.Spec.DeletionPolicy = v1alpha1.DeletionRetain
	s.fileSystems["night-one"] = s.fs
	s.ready(v1alpha1.ReasonHealthy, metav1.ConditionTrue)
	return s
}

func (s *scene) ready(reason string, status metav1.ConditionStatus) {
	s.fs.Status.Conditions = nil
	progress := conditions.Reconciling
	if status == metav1.ConditionTrue {
		progress = conditions.Settled
	}
	conditions.Set(&s.fs.Status.Conditions, 1, v1alpha1.ConditionReady, status, progress, reason, "as it is")
}

func (s *scene) stall(reason string) {
	conditions.Set(&s.fs.Status.Conditions, 1, v1alpha1.ConditionReady, metav1.ConditionFalse, conditions.Stalled, reason, "somebody must act")
}

func (s *scene) first() *v1alpha1.SuiteVariantStatus { return &s.suite.Status.Variants[0] }

// under returns a run of the first variant that is in progress.
func (s *scene) under(name string) *v1alpha1.BenchmarkRun {
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "night-one-" + name, Namespace: "lab", UID: types.UID("run-" + name)}}
	run.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.suite, v1alpha1.GroupVersion.WithKind("BenchmarkSuite"))}
	run.Labels = map[string]string{v1alpha1.LabelBenchmarkSuite: "night"}
	run.Spec.Target.FileSystem.Name = "night-one"
	run.Status.Progress = "3/9"
	s.runs[run.Name] = run
	s.first().Runs = append(s.first().Runs, v1alpha1.SuiteRunStatus{Name: name, BenchmarkRun: run.Name, Succeeded: "Unknown"})
	conditions.Set(&run.Status.Conditions, 1, v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, conditions.Reconciling, v1alpha1.ReasonRunning, "running processes=4")
	return run
}

// done records that both runs of the first variant are over.
func (s *scene) done(succeeded string) *scene {
	for _, name := range []string{"reads", "writes"} {
		s.under(name).Status.CompletionTime = &metav1.Time{Time: noon}
		entry(s.first(), name).Succeeded = succeeded
	}
	return s
}

// disk adds a StorageTarget of the first variant's FileSystem.
func (s *scene) disk(id string, status v1alpha1.StorageTargetStatus) *scene {
	t := v1alpha1.StorageTarget{Status: status}
	t.Name = "night-one-" + id
	t.Spec.Node, t.Spec.Device.ID, t.Spec.FileSystem = "n1", v1alpha1.DeviceID(id), v1alpha1.TargetOwner{Name: "night-one", UID: fsUID}
	s.targets = append(s.targets, t)
	return s
}

var (
	formatted = v1alpha1.StorageTargetStatus{Provisioned: &v1alpha1.TargetProvisioned{PlanHash: "sha256:1", UUID: "u", Finished: &metav1.Time{Time: noon.Add(-9 * time.Minute)}}}
	adopted   = v1alpha1.StorageTargetStatus{Provisioned: &v1alpha1.TargetProvisioned{UUID: "u", Finished: &metav1.Time{Time: noon.Add(-9 * time.Minute)}}}
	planned   = v1alpha1.StorageTargetStatus{Plan: &v1alpha1.TargetPlan{Hash: "sha256:1"}}
)

func destroys(s *v1alpha1.BenchmarkSuite) {
	s.Spec.AfterVariant, s.Spec.ConfirmDestroy = v1alpha1.AfterVariantDestroy, suiteUID
}

func keeps(s *v1alpha1.BenchmarkSuite)    { s.Spec.AfterVariant = v1alpha1.AfterVariantKeep }
func stops(s *v1alpha1.BenchmarkSuite)    { s.Spec.OnFailure = v1alpha1.SuiteStop }
func suspends(s *v1alpha1.BenchmarkSuite) { s.Spec.Suspend = true }

// leaving is a FileSystem of the suite that waits for the confirmation of its wipe.
func leaving(change ...func(*v1alpha1.BenchmarkSuite)) *scene {
	s := sceneOf(aSuite(append([]func(*v1alpha1.BenchmarkSuite){destroys}, change...)...)).at(v1alpha1.VariantRemoving).done("True")
	s.fs.DeletionTimestamp = &metav1.Time{Time: noon}
	s.fs.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
	s.stall(v1alpha1.ReasonDestroyUnconfirmed)
	return s
}
