//go:build envtest

package benchmarksuite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.Run(m, &server) }

// disk is a disk of the test's node.
type disk struct {
	// holder is the uid of the FileSystem that wrote to it last; empty when it is blank.
	holder string
	// wiped counts the wipes, and formats how often a FileSystem formatted it as a target.
	wiped, formats int
}

// lab is a namespace with an operator of suites. The test plays the controllers of FileSystems and BenchmarkRuns, the agent of a node with
// one disk for each FileSystem, and the garbage collector.
type lab struct {
	Gomega
	t         *testing.T
	namespace string
	client    *apiserver.Killable
	operator  *Reconciler
	clock     *clocktesting.FakePassiveClock
	recorder  *events.FakeRecorder
	// disks has the disks by the name of their StorageTarget; old has the targets whose disk holds earlier data.
	disks map[string]*disk
	// measured lists the runs in the order in which they ended, filesystems those that were made, and gone those that were deleted.
	measured, filesystems, gone []string
	// notReady keeps a FileSystem, by its name, from being Ready, with this message; fails makes a run fail.
	notReady map[string]string
	fails    map[string]bool
	// hold keeps runs from ending.
	hold bool
}

// newLab makes a lab for a test, which then runs in parallel with others.
func newLab(t *testing.T) *lab {
	t.Helper()
	t.Parallel()
	l := &lab{
		Gomega: NewWithT(t), t: t, namespace: server.Namespace(t.Context(), t), clock: clocktesting.NewFakePassiveClock(time.Now()),
		recorder: events.NewFakeRecorder(1000), disks: map[string]*disk{}, notReady: map[string]string{}, fails: map[string]bool{},
	}
	l.killedAfter(-1)
	return l
}

// killedAfter starts an operator that is killed after so many writes.
func (l *lab) killedAfter(writes int) {
	l.client = server.Killable(l.t, writes)
	l.operator = &Reconciler{Client: l.client, Reader: l.client, Clock: l.clock, PollInterval: 10 * time.Second, Tools: registry.Tools(), Backends: backends, Recorder: l.recorder}
}

func (l *lab) must(err error) {
	l.t.Helper()
	l.Expect(err).NotTo(HaveOccurred())
}

func (l *lab) suite(change ...func(s *v1alpha1.BenchmarkSuite)) {
	l.t.Helper()
	s := aSuite(change...)
	s.Namespace, s.UID, s.Generation = l.namespace, "", 0
	confirmed := s.Spec.ConfirmDestroy == suiteUID
	s.Spec.ConfirmDestroy = ""
	l.must(server.Client.Create(l.t.Context(), s))
	if confirmed {
		l.change(func(s *v1alpha1.BenchmarkSuite) { s.Spec.ConfirmDestroy = string(s.UID) })
	}
}

func (l *lab) get() *v1alpha1.BenchmarkSuite {
	l.t.Helper()
	s := &v1alpha1.BenchmarkSuite{}
	l.must(server.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "night"}, s))
	return s
}

func (l *lab) change(change func(s *v1alpha1.BenchmarkSuite)) {
	l.t.Helper()
	s := l.get()
	change(s)
	l.must(server.Client.Update(l.t.Context(), s))
}

func (l *lab) reconcile() error {
	_, err := l.operator.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: l.namespace, Name: "night"}})
	return err
}

// settle runs the operator and the cluster in turn until neither has work.
func (l *lab) settle() {
	l.t.Helper()
	for range 300 {
		before := l.writes()
		l.must(l.reconcile())
		if busy := l.play(); !busy && l.writes() == before {
			return
		}
	}
	l.t.Fatalf("still not settled: %+v", l.get().Status)
}

// writes counts the writes of the operator; a dry run writes nothing, but counts as a request.
func (l *lab) writes() int {
	s := &v1alpha1.BenchmarkSuite{}
	err := server.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "night"}, s)
	if apierrors.IsNotFound(err) || (err == nil && s.Status.StartTime == nil) {
		version := 0
		_, _ = fmt.Sscan(s.ResourceVersion, &version)
		return -version
	}
	return len(l.client.Writes())
}

// play does one round of the cluster's work, and returns whether there was any.
func (l *lab) play() bool {
	l.t.Helper()
	busy := false
	var all v1alpha1.FileSystemList
	l.must(server.Client.List(l.t.Context(), &all, client.InNamespace(l.namespace)))
	for i := range all.Items {
		if all.Items[i].Labels[v1alpha1.LabelBenchmarkSuite] != "" {
			busy = l.playFileSystem(&all.Items[i]) || busy
		}
	}
	var runs v1alpha1.BenchmarkRunList
	l.must(server.Client.List(l.t.Context(), &runs, client.InNamespace(l.namespace)))
	for i := range runs.Items {
		busy = l.playRun(&runs.Items[i]) || busy
	}
	return busy
}

// playFileSystem plays the controller of FileSystems, and the agent, for one FileSystem with one disk.
func (l *lab) playFileSystem(fs *v1alpha1.FileSystem) bool {
	target := &v1alpha1.StorageTarget{}
	err := server.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: fs.Name + "-d"}, target)
	there := err == nil
	l.must(client.IgnoreNotFound(err))
	switch {
	case fs.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(fs, v1alpha1.Finalizer):
		l.filesystems = append(l.filesystems, fs.Name)
		controllerutil.AddFinalizer(fs, v1alpha1.Finalizer)
		l.must(server.Client.Update(l.t.Context(), fs))
		return true
	case fs.DeletionTimestamp.IsZero() && !there:
		l.provision(fs)
		return true
	case fs.DeletionTimestamp.IsZero():
		if why := l.notReady[fs.Name]; why != "" {
			return l.say(fs, metav1.ConditionFalse, conditions.Reconciling, v1alpha1.ReasonStarting, why)
		}
		return l.say(fs, metav1.ConditionTrue, conditions.Settled, v1alpha1.ReasonHealthy, "all is well")
	case there && fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy && fs.Spec.ConfirmDestroy != string(fs.UID):
		return l.say(fs, metav1.ConditionFalse, conditions.Stalled, v1alpha1.ReasonDestroyUnconfirmed, "nothing was wiped")
	}
	if there {
		if d := l.disks[target.Name]; fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy {
			d.holder = ""
			d.wiped++
		}
		l.must(server.Client.Delete(l.t.Context(), target))
	}
	l.gone = append(l.gone, fs.Name)
	controllerutil.RemoveFinalizer(fs, v1alpha1.Finalizer)
	l.must(server.Client.Update(l.t.Context(), fs))
	return true
}

func (l *lab) say(fs *v1alpha1.FileSystem, status metav1.ConditionStatus, progress conditions.Progress, reason, message string) bool {
	if c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Reason == reason && c.Message == message {
		return false
	}
	conditions.Set(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, status, progress, reason, message)
	l.must(server.Client.Status().Update(l.t.Context(), fs))
	return true
}

// provision makes the one target of a FileSystem: a blank disk is formatted, another is taken over as it is.
func (l *lab) provision(fs *v1alpha1.FileSystem) {
	target := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fs.Name + "-d"},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: fs.Name, UID: string(fs.UID)}, Node: "n1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
			Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("wwn-0x" + fs.Name), SizeBytes: 1 << 30}, Cluster: "c1-c1", FormatPolicy: v1alpha1.FormatIfBlank,
			Format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS},
		},
	}
	d := l.disks[target.Name]
	if d == nil {
		d = &disk{}
		l.disks[target.Name] = d
	}
	now := metav1.NewTime(l.clock.Now())
	p := &v1alpha1.TargetProvisioned{UUID: "0e0e0e0e", Finished: &now}
	if d.holder == "" {
		d.formats++
		p.PlanHash, p.Started = "sha256:"+strings.Repeat("0", 64), &now
	}
	d.holder = string(fs.UID)
	l.must(server.Client.Create(l.t.Context(), target))
	target.Status.Provisioned = p
	l.must(server.Client.Status().Update(l.t.Context(), target))
}

// playRun plays the controller of BenchmarkRuns: a run ends when its FileSystem is Ready, with a value that depends on the variant.
func (l *lab) playRun(run *v1alpha1.BenchmarkRun) bool {
	if run.Status.CompletionTime != nil || run.Spec.Suspend || l.hold {
		return false
	}
	fs := &v1alpha1.FileSystem{}
	err := server.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: run.Spec.Target.FileSystem.Name}, fs)
	if err != nil || !meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionReady) {
		return false
	}
	now := metav1.NewTime(l.clock.Now())
	run.Status.CompletionTime, run.Status.Progress = &now, "1/1"
	status, reason, message := metav1.ConditionTrue, v1alpha1.ReasonAllPointsSucceeded, "1 point has a result"
	point := v1alpha1.PointStatus{State: v1alpha1.PointSucceeded, Parameters: []v1alpha1.PointParameter{{Name: "processes", Value: "4"}}}
	value := "1000"
	if strings.Contains(run.Name, "-two-") {
		value = "1500"
	}
	point.Metrics = []v1alpha1.MetricResult{{Name: "write", Unit: "kB/s", Value: value, Mean: value, Min: value, Max: value, Samples: 1}}
	if l.fails[run.Name] {
		status, reason, message = metav1.ConditionFalse, v1alpha1.ReasonPointsFailed, "1 of 1 points failed"
		point.State, point.Metrics = v1alpha1.PointFailed, nil
	}
	run.Status.Points = []v1alpha1.PointStatus{point}
	conditions.Set(&run.Status.Conditions, run.Generation, v1alpha1.ConditionSucceeded, status, conditions.Settled, reason, message)
	l.must(server.Client.Status().Update(l.t.Context(), run))
	l.measured = append(l.measured, run.Name)
	return true
}

func (l *lab) succeeded() metav1.Condition {
	l.t.Helper()
	c := meta.FindStatusCondition(l.get().Status.Conditions, v1alpha1.ConditionSucceeded)
	l.Expect(c).NotTo(BeNil())
	return *c
}

func (l *lab) fileSystem(name string) *v1alpha1.FileSystem {
	l.t.Helper()
	fs := &v1alpha1.FileSystem{}
	err := server.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, fs)
	if apierrors.IsNotFound(err) {
		return nil
	}
	l.must(err)
	return fs
}

// own makes a FileSystem that does not belong to the suite.
func (l *lab) own(name string, change func(fs *v1alpha1.FileSystem)) *v1alpha1.FileSystem {
	l.t.Helper()
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
	plans, refused := build(aSuite(), backends)
	l.Expect(refused).To(BeNil())
	fs.Spec = plans[0].spec
	change(fs)
	l.must(server.Client.Create(l.t.Context(), fs))
	return fs
}

func (l *lab) states() []v1alpha1.VariantState {
	var out []v1alpha1.VariantState
	for _, v := range l.get().Status.Variants {
		out = append(out, v.State)
	}
	return out
}

func (l *lab) wiped() []string {
	var out []string
	for name, d := range l.disks {
		for range d.wiped {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (l *lab) announced() []string {
	var out []string
	for {
		select {
		case text := <-l.recorder.Events:
			out = append(out, text)
		default:
			return out
		}
	}
}

func (l *lab) configMap(name string) *corev1.ConfigMap {
	l.t.Helper()
	cm := &corev1.ConfigMap{}
	l.must(server.Client.Get(context.Background(), client.ObjectKey{Namespace: l.namespace, Name: name}, cm))
	return cm
}
