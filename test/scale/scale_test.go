//go:build scale

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestTheExponentIsThatOfAPowerAndUnknownForLess(t *testing.T) {
	g := NewWithT(t)
	sizes := []float64{10, 25, 125, 250}
	var squares []float64
	for _, n := range sizes {
		squares = append(squares, 0.3*n*n)
	}
	g.Expect(exponent(sizes, squares)).To(BeNumerically("~", 2, 1e-9))
	g.Expect(exponent(sizes, []float64{7, 7, 7, 7})).To(BeNumerically("~", 0, 1e-9))
	g.Expect(exponent(sizes, []float64{10, 25, math.NaN(), 250})).To(BeNumerically("~", 1, 1e-9), "what was not measured is left out")
	g.Expect(math.IsNaN(exponent(sizes, []float64{0, 0, 0, 5}))).To(BeTrue(), "one size has no growth")
}

const metrics = `# TYPE controller_runtime_reconcile_time_seconds histogram
controller_runtime_reconcile_time_seconds_bucket{controller="filesystem",le="0.1"} 50
controller_runtime_reconcile_time_seconds_bucket{controller="filesystem",le="0.2"} 90
controller_runtime_reconcile_time_seconds_bucket{controller="filesystem",le="+Inf"} 100
controller_runtime_reconcile_time_seconds_bucket{controller="storagetarget",le="0.1"} 7
`

func TestAQuantileIsFoundWithinItsBucket(t *testing.T) {
	g := NewWithT(t)
	h := readHistogram(metrics, "controller_runtime_reconcile_time_seconds", `controller="filesystem"`)
	g.Expect(h).To(HaveLen(3))
	g.Expect(h.quantile(0.5)).To(BeNumerically("~", 0.1, 1e-9))
	g.Expect(h.quantile(0.7)).To(BeNumerically("~", 0.15, 1e-9))
	g.Expect(h.quantile(0.99)).To(BeNumerically("~", 0.2, 1e-9), "of what took longer than every bucket it is only known that it did")
	g.Expect(math.IsNaN(h.since(h).quantile(0.5))).To(BeTrue(), "nothing has come since")
}

// line is one of the audit log.
func line(user, verb, resource, name string, code int, message string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":%q,"user":{"username":%q},"objectRef":{"resource":%q,"namespace":"scale","name":%q,"subresource":"status"},"responseStatus":{"code":%d,"message":%q},"requestReceivedTimestamp":"2026-11-22T12:00:00.5Z"}`+"\n",
		verb, user, resource, name, code, message)
}

func logOf(t *testing.T, lines ...string) *auditLog {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	NewWithT(t).Expect(os.WriteFile(path, []byte(strings.Join(lines, "")), privateFile)).To(Succeed())
	return &auditLog{path: path}
}

func TestOnlyWritesOfTheOperatorAreCounted(t *testing.T) {
	g := NewWithT(t)
	log := logOf(t,
		line(userManager, "patch", "storagetargets", "a", 200, ""), line(userAgents, "patch", "storagetargets", "a", 200, ""),
		line(userAgents, "patch", "storagetargets", "a", 409, "conflict"), line(userManager, "update", "leases", "parallelfs-operator", 200, ""),
		line(userKubelets, "create", "pods", "a", 201, ""), line(userPerson, "create", "filesystems", "scale", 201, ""), `{"verb":"pat`)
	g.Expect(log.read()).To(Succeed())
	g.Expect(log.all).To(HaveLen(6))
	second := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	g.Expect(count(log.between(second, second.Add(time.Second)), all)).To(Equal(2))
	g.Expect(count(log.between(second.Add(time.Second), second.Add(time.Hour)), all)).To(Equal(0))
	g.Expect(writes(log.all)).To(Equal(map[string]int{"manager patch storagetargets/status": 1, "agents patch storagetargets/status": 1}))
}

func TestTheHolderOfALeaseIsNoWriteOfTheOperator(t *testing.T) {
	g := NewWithT(t)
	event := func(object string) request { return request{user: userManager, resource: "events", object: object} }
	g.Expect(event(operatorNamespace+"/parallelfs-operator.17").byOperator()).To(BeFalse(), "it became leader")
	g.Expect(event(namespace + "/scale.17").byOperator()).To(BeTrue())
}

func TestAFilesystemIsTooLargeOnlyWhenTheSameWriteIsRefusedAgainAndAgain(t *testing.T) {
	refused := func(code int, message string) func(times int) []string {
		return func(times int) (out []string) {
			for range times {
				out = append(out, line(userManager, "patch", "filesystems", "scale", code, message))
			}
			return out
		}
	}
	tooLarge := refused(500, "etcdserver: request is too large")
	cases := map[string]struct {
		lines []string
		want  string
	}{
		"etcd refuses it":                       {tooLarge(5), "refused by etcd: etcdserver: request is too large"},
		"etcd has refused it a few times":       {tooLarge(4), ""},
		"the API server finds it invalid":       {refused(422, "status.targets: Too many")(5), "refused by the API server: status.targets: Too many"},
		"another program has written meanwhile": {refused(409, "the object has been modified")(20), ""},
		"it is gone":                            {refused(404, "not found")(20), ""},
		"it was taken":                          {refused(200, "")(20), ""},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			log := logOf(t, c.lines...)
			g.Expect(log.read()).To(Succeed())
			g.Expect(refusal(log.all)).To(Equal(c.want))
		})
	}
}

func TestATableShowsExponentsAndWhyASizeWasAbandoned(t *testing.T) {
	g := NewWithT(t)
	var results []*Result
	for _, n := range []int{125, 500} {
		r := newResult(n)
		r.set(readySeconds, float64(n))
		r.Largest["FileSystem"] = 2 * float64(n)
		results = append(results, r)
	}
	last := newResult(1000)
	last.Stopped = "from apply to Ready: refused by etcd: etcdserver: request is too large"
	last.set(stoppedSeconds, 31)
	last.set(managerSeconds, 12)
	var out strings.Builder
	d := newDocument(append(results, last))
	g.Expect(d.print(&out)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`(?m)^ +125 +3001 +125 +- `))
	g.Expect(out.String()).To(MatchRegexp(`(?m)^ +grows with N\^ +1\.00 +- `))
	g.Expect(out.String()).To(ContainSubstring("1000 nodes, 24001 targets: from apply to Ready: refused by etcd: etcdserver: request is too large (after 31 s, 12 s of the manager's CPU)"))
	g.Expect(d.Exponents).To(Equal(map[string]float64{"readySeconds": 1, "largestKiB.FileSystem": 1}))
}

func TestAFilesystemIsHealthyOnlyWhenNothingIsLeftToDo(t *testing.T) {
	well := func() *v1alpha1.FileSystem {
		fs := fileSystem(9419)
		fs.Generation, fs.Status.ObservedGeneration = 1, 1
		fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		return fs
	}
	NewWithT(t).Expect(unwell(well())).To(BeEmpty())
	for sentence, change := range map[string]func(fs *v1alpha1.FileSystem){
		"not looked at": func(fs *v1alpha1.FileSystem) { fs.Status.ObservedGeneration = 0 },
		"no condition":  func(fs *v1alpha1.FileSystem) { fs.Status.Conditions = nil },
		"not ready":     func(fs *v1alpha1.FileSystem) { fs.Status.Conditions[0].Status = metav1.ConditionFalse },
		"degraded": func(fs *v1alpha1.FileSystem) {
			fs.Status.Conditions = append(fs.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue})
		},
		"something goes on": func(fs *v1alpha1.FileSystem) {
			fs.Status.Conditions = append(fs.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue})
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			fs := well()
			change(fs)
			NewWithT(t).Expect(unwell(fs)).NotTo(BeEmpty())
		})
	}
}

func TestALostDiskShowsWhenTheFileSystemNamesItsTarget(t *testing.T) {
	lost := func() (*v1alpha1.FileSystem, *v1alpha1.StorageTarget) {
		fs, target := fileSystem(9419), &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: "ssd-1"}}
		target.Spec.Node = "oss-0001"
		fs.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Message: "a rolling restart is paused"},
			{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue},
		}
		fs.Status.Missing = []v1alpha1.MissingMember{{Kind: v1alpha1.TargetMember, Name: "ssd-1", Node: "oss-0001"}}
		target.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionFalse}}
		return fs, target
	}
	fs, target := lost()
	NewWithT(t).Expect(shows(fs, target)).To(BeTrue())
	for sentence, change := range map[string]func(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget){
		"only servers are being restarted": func(fs *v1alpha1.FileSystem, _ *v1alpha1.StorageTarget) {
			fs.Status.Conditions, fs.Status.Missing = fs.Status.Conditions[:1], nil
		},
		"another target is missing": func(fs *v1alpha1.FileSystem, _ *v1alpha1.StorageTarget) { fs.Status.Missing[0].Name = "ssd-2" },
		"its server is missing": func(fs *v1alpha1.FileSystem, _ *v1alpha1.StorageTarget) {
			fs.Status.Missing[0].Kind = v1alpha1.ServerMember
		},
		"the target itself does not say it": func(_ *v1alpha1.FileSystem, target *v1alpha1.StorageTarget) {
			target.Status.Conditions[0].Status = metav1.ConditionTrue
		},
		"the target is unknown": func(_ *v1alpha1.FileSystem, target *v1alpha1.StorageTarget) { target.Status.Conditions = nil },
	} {
		t.Run(sentence, func(t *testing.T) {
			fs, target := lost()
			change(fs, target)
			NewWithT(t).Expect(shows(fs, target)).To(BeFalse())
		})
	}
}

func TestPodsOfADaemonSetComeToTheNodesThatItsTemplateAsksFor(t *testing.T) {
	g := NewWithT(t)
	var nodes []corev1.Node
	for name, label := range map[string]string{"a": "storage", "b": "storage", "c": "client"} {
		nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"role": label}}})
	}
	set := &appsv1.DaemonSet{}
	g.Expect(nodesOf(set, nodes)).To(ConsistOf("a", "b", "c"))
	set.Spec.Template.Spec.NodeSelector = map[string]string{"role": "storage"}
	g.Expect(nodesOf(set, nodes)).To(ConsistOf("a", "b"))
	terms := func(terms ...corev1.NodeSelectorTerm) {
		set.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	terms(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"b", "c"}}}})
	g.Expect(nodesOf(set, nodes)).To(ConsistOf("b"))
	set.Spec.Template.Spec.NodeSelector = nil
	terms(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "role", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"storage"}}}})
	g.Expect(nodesOf(set, nodes)).To(ConsistOf("c"))
}

func TestStorageServersThatAreRestartedAreCountedWithTheirFailureDomains(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * racks)
	on := func(node int) *daemon {
		return &daemon{pod: types.UID(fmt.Sprint(node)), place: place{fileSystemName, fmt.Sprintf("oss-%04d", node), componentChunkserver}}
	}
	for node := range 3 {
		w.start(on(node))
	}
	w.start(on(racks)) // of the same rack as the first one
	end := func(node int) { w.end(on(node).place, on(node).pod) }
	end(0)
	end(racks)
	g.Expect([]int{w.awayMost, w.domainsMost}).To(Equal([]int{2, 1}))
	w.start(on(0))
	end(1)
	g.Expect([]int{w.awayMost, w.domainsMost}).To(Equal([]int{2, 2}), "the one of the first rack has not come back yet")
	w.start(on(racks))
	w.start(on(1))
	end(2)
	g.Expect([]int{w.awayMost, w.domainsMost}).To(Equal([]int{2, 2}))
	g.Expect(w.away).To(HaveLen(1))
	g.Expect(w.restarts).To(Equal(4))
}

func TestAFileSystemIsReadyWhenItsStatusWasWrittenLast(t *testing.T) {
	g := NewWithT(t)
	g.Expect(lastWord(nil).IsZero()).To(BeTrue())
	at := func(second int, resource, name string, code int) request {
		return request{
			resource: resource, subresource: "status", object: namespace + "/" + name, code: code, at: time.Unix(int64(second), 0),
		}
	}
	g.Expect(lastWord([]request{
		at(1, "filesystems", fileSystemName, 200), at(2, "filesystems", fileSystemName, 200), at(3, "filesystems", fileSystemName, 409),
		at(4, "filesystems", smallName(0), 200), at(5, targetResource, fileSystemName, 200),
	})).To(Equal(time.Unix(2, 0)))
}

func TestANodeIsShownWhenItsInventoryIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(1)
	m := w.machines[1]
	told := w.inventory(m)
	g.Expect(w.isAs(m, told)).To(BeTrue())
	w.start(&daemon{place: place{fileSystemName, m.name, componentChunkserver}})
	g.Expect(w.isAs(m, told)).To(BeFalse(), "a server has started")
	g.Expect(w.isAs(m, w.inventory(m))).To(BeTrue())
}
