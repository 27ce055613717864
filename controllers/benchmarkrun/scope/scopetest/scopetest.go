// Package scopetest builds scopes for tests: a run of two points on three clients, and everything that may have happened to it.
package scopetest

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Now is the time in all scopes of tests.
var Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Idle returns a run of two points with two repetitions each that has its directory, and nothing else: the next step is the first job.
func Idle() *scope.Scope {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}}
	fs.Spec.StoragePools = []v1alpha1.StoragePoolSpec{{Name: "ssd"}}
	fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHealthy}}
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "sweep", Namespace: "storage", UID: "uid"}}
	run.Spec = v1alpha1.BenchmarkRunSpec{
		Tool: v1alpha1.ToolIOzone, Repetitions: 2, Statistic: v1alpha1.StatisticMean,
		Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}},
	}
	run.Status.Directory = "/mnt/scratch/ssd/.parallelfs-benchmarks/uid"
	point := func(index int, size string) benchmarks.Point {
		return benchmarks.Point{
			Index:      index,
			Parameters: map[v1alpha1.SweepName]string{"iozone.recordSize": size}, Varied: []v1alpha1.SweepName{"iozone.recordSize"},
		}
	}
	return &scope.Scope{
		Poll: 3 * time.Second,
		Run:  run, Now: Now, FileSystem: fs, Image: "iozone:1", Records: turns.Records{},
		Mount:   backend.Mount{Path: "/mnt/scratch", FSType: "fuse"},
		Mounted: []string{"n1", "n2", "n3"}, Clients: ClientNodes("n1", "n2"),
		Points: []benchmarks.Point{point(0, "64k"), point(1, "1m")},
		Plans:  []benchmarks.Plan{PlanOf(benchmarks.OnClient), PlanOf(benchmarks.OnClient)},
	}
}

// ClientNodes returns nodes with eight CPUs.
func ClientNodes(names ...string) []placement.Node {
	var out []placement.Node
	for _, name := range names {
		out = append(out, placement.Node{Name: name, CPUs: 8})
	}
	return out
}

// PlanOf returns a plan of one process, started in the given way, in one step or in the named ones.
func PlanOf(launch benchmarks.Launch, steps ...string) benchmarks.Plan {
	p := benchmarks.Plan{Processes: 1, Demand: benchmarks.Demand{Bytes: 1 << 30, Inodes: 10}}
	if len(steps) == 0 {
		steps = []string{""}
	}
	for _, name := range steps {
		p.Steps = append(p.Steps, benchmarks.Step{Name: name, Command: benchmarks.Command{Launch: launch, Argv: []string{"iozone", "-r", "64k"}}})
	}
	return p
}

// Done records a repetition that took ten seconds; a text makes it a failed one.
func Done(w *scope.Scope, point, repetition int, failure string) {
	entry := turns.Record{Point: point, Repetition: repetition, Attempt: 1, Started: Now, Finished: Now.Add(10 * time.Second), Error: failure}
	if failure == "" {
		entry.Samples = []benchmarks.Sample{{Name: "write", Unit: "kB/s", Value: float64(repetition)}}
	}
	w.Records.Add(entry)
}

// AllDone records a result of every repetition, and publishes them.
func AllDone(w *scope.Scope) {
	for point := range 2 {
		for repetition := 1; repetition <= 2; repetition++ {
			Done(w, point, repetition, "")
		}
	}
	w.Published = w.ToPublish(true)
}

// Checked records the check of image and space, with the given free space.
func Checked(w *scope.Scope, free int64) {
	w.Checker = &children.Child{Name: "sweep-check", Object: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "look"}}, Succeeded: true, Created: Now}
	w.Provenance.CheckedBy, w.Provenance.CheckedAt = "look", Now
	w.Provenance.Checked = spec.Checked{FreeBytes: free, FreeInodes: -1}
}

// Settled records the present results as written.
func Settled(w *scope.Scope) { w.Published = w.ToPublish(w.Final()) }

// At returns a first attempt.
func At(point, repetition int) turns.Turn {
	return turns.Turn{Point: point, Repetition: repetition, Attempt: 1}
}

// Job adds a job that was created this long ago.
func Job(w *scope.Scope, point, repetition int, age time.Duration) *children.Child {
	w.Children = append(w.Children, children.Child{
		Object: &batchv1.Job{}, Name: turns.JobName("sweep", turns.Turn{Point: point, Repetition: repetition, Attempt: 1}.Suffix()),
		Turn: turns.Turn{Point: point, Repetition: repetition, Attempt: 1}, Created: Now.Add(-age), Started: Now.Add(-age),
	})
	return &w.Children[len(w.Children)-1]
}

// Limit bounds the time of each turn, and of the whole run.
func Limit(w *scope.Scope, point, whole time.Duration) {
	w.Run.Spec.Limits = &v1alpha1.BenchmarkLimits{PointTimeout: &metav1.Duration{Duration: point}, Timeout: &metav1.Duration{Duration: whole}}
}

// PodOf returns a pod of a job on the node n1.
func PodOf(role string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{children.LabelRole: role}}, Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: phase},
	}
}

// Entry records a turn with its result, or with the given changes.
func Entry(w *scope.Scope, t turns.Turn, change ...func(*turns.Record)) {
	entry := turns.Record{
		Point: t.Point, Repetition: t.Repetition, WarmUp: t.WarmUp, Attempt: t.Attempt, Step: t.Step, Started: Now, Finished: Now.Add(10e9),
		Samples: []benchmarks.Sample{{Name: "write", Unit: "kB/s", Value: float64(t.Repetition)}},
	}
	for _, c := range change {
		c(&entry)
		entry.Samples = nil
	}
	w.Records.Add(entry)
}

// Failed turns a record into that of a failure.
func Failed(r *turns.Record) { r.Error = "iozone ended with exit code 1" }

// Disturbed turns a record into that of a disturbance.
func Disturbed(r *turns.Record) {
	r.Invalid = "iozone was disturbed: pod master on node n1 was restarted"
}

// Interrupted turns a record into that of an abandoned turn.
func Interrupted(r *turns.Record) { r.Interrupted = "was stopped" }

// Tries sets how often a repetition is tried again.
func Tries(w *scope.Scope, failed, invalid int32) {
	w.Run.Spec.Limits = &v1alpha1.BenchmarkLimits{Retries: failed, InvalidRetries: &invalid}
}

// OnVolume makes a run measure the PersistentVolumeClaim data, which has these access modes and is bound.
func OnVolume(w *scope.Scope, modes ...corev1.PersistentVolumeAccessMode) *scope.Volume {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "storage", UID: "0f0e0d0c-claim"}}
	claim.Spec.VolumeName, claim.Spec.AccessModes = "pv-1", modes
	claim.Status.Phase, claim.Status.AccessModes = corev1.ClaimBound, modes
	w.Run.Spec.Target = v1alpha1.BenchmarkTarget{PersistentVolumeClaim: v1alpha1.ClaimTarget{ClaimName: "data"}}
	w.Volume, w.FileSystem, w.Mounted, w.Mount = &scope.Volume{Claim: claim}, nil, nil, backend.Mount{Path: scope.VolumePath}
	w.Clients = w.Places()
	if w.Run.Status.Directory != "" {
		w.Run.Status.Directory = w.Directory()
	}
	return w.Volume
}
