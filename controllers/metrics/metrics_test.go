package metrics_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/metrics"
)

var at = metav1.NewTime(time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC))

// world is a cache.
type world struct {
	client.Reader
	filesystems []v1alpha1.FileSystem
	nodes       []v1alpha1.FileSystemNode
	targets     []v1alpha1.StorageTarget
	runs        []v1alpha1.BenchmarkRun
	suites      []v1alpha1.BenchmarkSuite
	err         error
}

func (w *world) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.FileSystemList:
		list.Items = w.filesystems
	case *v1alpha1.FileSystemNodeList:
		list.Items = w.nodes
	case *v1alpha1.StorageTargetList:
		list.Items = w.targets
	case *v1alpha1.BenchmarkRunList:
		list.Items = w.runs
	case *v1alpha1.BenchmarkSuiteList:
		list.Items = w.suites
	}
	return w.err
}

func leads() <-chan struct{} {
	elected := make(chan struct{})
	close(elected)
	return elected
}

// scrape returns the series of the cache, without build_info, and checks their names, units and help texts.
func scrape(t *testing.T, w *world, elected <-chan struct{}) (series []string) {
	t.Helper()
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(&metrics.Collector{Reader: w, Leads: elected, Version: "v1"})).To(Succeed())
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := strings.TrimPrefix(family.GetName(), "parallelfs_")
			if name != "build_info" {
				series = append(series, fmt.Sprintf("%s{%s} %d", name, strings.Join(labels, ","), int64(m.GetGauge().GetValue()*1000)))
			}
		}
	}
	return series
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: at}
}

func fileSystem(conditions ...metav1.Condition) v1alpha1.FileSystem {
	return v1alpha1.FileSystem{ObjectMeta: meta("scratch"), Spec: v1alpha1.FileSystemSpec{Type: "Example", Version: "2"},
		Status: v1alpha1.FileSystemStatus{Version: "1", Conditions: conditions}}
}

func TestAFileSystemHasASeriesForTheCurrentStatusOfEachCondition(t *testing.T) {
	w := &world{filesystems: []v1alpha1.FileSystem{fileSystem(condition("Ready", "False", "TargetsOffline"))}}
	NewWithT(t).Expect(scrape(t, w, leads())).To(ConsistOf(
		"filesystem_info{filesystem=scratch,namespace=ns,type=Example,version=1,wanted_version=2} 1000",
		"filesystem_condition{filesystem=scratch,namespace=ns,reason=TargetsOffline,status=False,type=Ready} 1000",
		fmt.Sprintf("filesystem_condition_transition_timestamp_seconds{filesystem=scratch,namespace=ns,type=Ready} %d", at.Unix()*1000),
	))
}

func TestOnlyTheManagerThatLeadsExportsObjects(t *testing.T) {
	w := &world{filesystems: []v1alpha1.FileSystem{fileSystem(condition("Ready", "True", "Healthy"))}}
	NewWithT(t).Expect(scrape(t, w, make(chan struct{}))).To(BeEmpty())
}

func TestAScrapeFailsWhileTheCacheCanNotBeRead(t *testing.T) {
	g := NewWithT(t)
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(&metrics.Collector{Reader: &world{err: context.DeadlineExceeded}, Leads: leads()})).To(Succeed())
	_, err := registry.Gather()
	g.Expect(err).To(MatchError(ContainSubstring("list the objects of")), "no series would look like no problem")
}

func TestDisruptionsInProgressHaveTheTimeOfTheirStart(t *testing.T) {
	g := NewWithT(t)
	fs := fileSystem(condition("Reconciling", "True", v1alpha1.ReasonRestarting), condition("Upgrading", "False", v1alpha1.ReasonUpgradeWaits),
		condition("Recovering", "True", v1alpha1.ReasonRestoring), condition("ChangesHeld", "True", v1alpha1.ReasonBenchmarkRunning))
	fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n1", Since: at}, {Node: "n2", Since: at, Ended: &at}}
	series := scrape(t, &world{filesystems: []v1alpha1.FileSystem{fs}}, leads())
	series = slices.DeleteFunc(series, func(s string) bool { return !strings.Contains(s, "_start_") })
	g.Expect(series).To(ConsistOf(
		fmt.Sprintf("filesystem_disruption_start_timestamp_seconds{filesystem=scratch,kind=Restart,namespace=ns} %d", at.Unix()*1000),
		fmt.Sprintf("filesystem_disruption_start_timestamp_seconds{filesystem=scratch,kind=Recovery,namespace=ns} %d", at.Unix()*1000),
		fmt.Sprintf("filesystem_disruption_start_timestamp_seconds{filesystem=scratch,kind=ChangesHeld,namespace=ns} %d", at.Unix()*1000),
		fmt.Sprintf("filesystem_node_maintenance_start_timestamp_seconds{filesystem=scratch,namespace=ns,node=n1} %d", at.Unix()*1000),
	), "an upgrade that waits is none, and n2 is back")
}

func TestBackupsCopiesPoolsVersionsAndChecksComeFromTheStatus(t *testing.T) {
	fs := fileSystem()
	later := metav1.NewTime(at.Add(time.Hour))
	fs.Spec.Backups = &v1alpha1.BackupsSpec{}
	fs.Status.Backups = []v1alpha1.BackupStatus{{Result: v1alpha1.BackupFailed, Time: &later}, {Result: v1alpha1.BackupVerified, Time: &at},
		{Result: v1alpha1.BackupVerified}}
	fs.Status.MetadataCopies = []v1alpha1.MetadataCopyStatus{
		{Node: "n1", Result: v1alpha1.MetadataCopyProven, Proven: &at, Behind: new(int64(12))}, {Node: "n2", Result: v1alpha1.MetadataCopyRefused}}
	fs.Status.StoragePools = []v1alpha1.StoragePoolStatus{{Name: "ssd", CapacityBytes: 200, UsedBytes: 50}, {Name: "unknown"}}
	fs.Status.Versions = []v1alpha1.VersionCount{{Version: "1", Servers: 3}}
	fs.Status.Certificate = &v1alpha1.CertificateStatus{NotAfter: later}
	fs.Status.Check = &v1alpha1.CheckStatus{Result: v1alpha1.CheckDamaged}
	g, none := NewWithT(t), fileSystem()
	none.Name = "none"
	g.Expect(scrape(t, &world{filesystems: []v1alpha1.FileSystem{fs, none}}, leads())).To(ConsistOf(
		HavePrefix("filesystem_info{filesystem=scratch,"), HavePrefix("filesystem_info{filesystem=none,"),
		fmt.Sprintf("filesystem_backup_timestamp_seconds{filesystem=scratch,namespace=ns} %d", at.Unix()*1000),
		fmt.Sprintf("filesystem_certificate_expiry_timestamp_seconds{filesystem=scratch,namespace=ns} %d", later.Unix()*1000),
		"filesystem_metadata_copies{filesystem=scratch,namespace=ns,state=asked} 2000",
		"filesystem_metadata_copies{filesystem=scratch,namespace=ns,state=proven} 1000",
		fmt.Sprintf("filesystem_metadata_copy_proven_timestamp_seconds{filesystem=scratch,namespace=ns,node=n1} %d", at.Unix()*1000),
		"filesystem_metadata_copy_proven_timestamp_seconds{filesystem=scratch,namespace=ns,node=n2} 0",
		"filesystem_metadata_copy_behind_changes{filesystem=scratch,namespace=ns,node=n1} 12000",
		"filesystem_pool_used_ratio{filesystem=scratch,namespace=ns,pool=ssd} 250",
		"filesystem_version_servers{filesystem=scratch,namespace=ns,version=1} 3000",
		"filesystem_check{filesystem=scratch,namespace=ns,result=Damaged} 1000",
	))
	none.Spec.Backups = &v1alpha1.BackupsSpec{}
	g.Expect(scrape(t, &world{filesystems: []v1alpha1.FileSystem{none}}, leads())).To(ContainElement(
		"filesystem_backup_timestamp_seconds{filesystem=none,namespace=ns} 0"), "backups are asked for, and there is none yet")
}

func TestOtherKindsAreCountedAndOnlyUnhealthyObjectsHaveTheirOwnSeries(t *testing.T) {
	owner := v1alpha1.TargetOwner{Name: "scratch"}
	target := func(name string, conditions ...metav1.Condition) v1alpha1.StorageTarget {
		return v1alpha1.StorageTarget{ObjectMeta: meta(name), Spec: v1alpha1.StorageTargetSpec{FileSystem: owner, Node: "n1", Role: "Storage", StoragePool: "ssd"},
			Status: v1alpha1.StorageTargetStatus{Conditions: conditions}}
	}
	w := &world{
		targets: []v1alpha1.StorageTarget{
			target("well", condition("Ready", "True", "Proven"), condition("Online", "True", "Serving")),
			target("gone", condition("Ready", "False", "TargetMissing"), condition("Online", "True", "Serving"), condition("Stalled", "True", "TargetMissing")),
		},
		nodes: []v1alpha1.FileSystemNode{{ObjectMeta: meta("scratch-1"), Spec: v1alpha1.FileSystemNodeSpec{FileSystem: owner, Node: "n1"},
			Status: v1alpha1.FileSystemNodeStatus{Conditions: []metav1.Condition{condition("Ready", "True", "Healthy"), condition("Maintenance", "True", "InMaintenance"),
				condition("Reconciling", "True", "InMaintenance")}}}},
		runs: []v1alpha1.BenchmarkRun{{ObjectMeta: meta("r"), Spec: v1alpha1.BenchmarkRunSpec{Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}},
			Status: v1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{condition("Succeeded", "False", "PointsFailed")}}}},
		suites: []v1alpha1.BenchmarkSuite{{ObjectMeta: meta("s"), Status: v1alpha1.BenchmarkSuiteStatus{Conditions: []metav1.Condition{condition("Succeeded", "Unknown", "Running")}}}},
	}
	NewWithT(t).Expect(scrape(t, w, leads())).To(ConsistOf(
		"storage_target_conditions{filesystem=scratch,namespace=ns,pool=ssd,reason=Proven,role=Storage,status=True,type=Ready} 1000",
		"storage_target_conditions{filesystem=scratch,namespace=ns,pool=ssd,reason=TargetMissing,role=Storage,status=False,type=Ready} 1000",
		"storage_target_conditions{filesystem=scratch,namespace=ns,pool=ssd,reason=TargetMissing,role=Storage,status=True,type=Stalled} 1000",
		"storage_target_conditions{filesystem=scratch,namespace=ns,pool=ssd,reason=Serving,role=Storage,status=True,type=Online} 2000",
		"storage_target_condition{filesystem=scratch,namespace=ns,node=n1,reason=TargetMissing,status=False,target=gone,type=Ready} 1000",
		"storage_target_condition{filesystem=scratch,namespace=ns,node=n1,reason=TargetMissing,status=True,target=gone,type=Stalled} 1000",
		"filesystem_node_conditions{filesystem=scratch,namespace=ns,reason=Healthy,status=True,type=Ready} 1000",
		"filesystem_node_conditions{filesystem=scratch,namespace=ns,reason=InMaintenance,status=True,type=Maintenance} 1000",
		"filesystem_node_conditions{filesystem=scratch,namespace=ns,reason=InMaintenance,status=True,type=Reconciling} 1000",
		"filesystem_node_condition{filesystem=scratch,namespace=ns,node=n1,reason=InMaintenance,status=True,type=Maintenance} 1000",
		"benchmark_run_conditions{filesystem=scratch,namespace=ns,reason=PointsFailed,status=False,type=Succeeded} 1000",
		"benchmark_run_condition{filesystem=scratch,namespace=ns,reason=PointsFailed,run=r,status=False,type=Succeeded} 1000",
		"benchmark_suite_conditions{namespace=ns,reason=Running,status=Unknown,type=Succeeded} 1000",
		"benchmark_suite_condition{namespace=ns,reason=Running,status=Unknown,suite=s,type=Succeeded} 1000",
	))
}

// large is a FileSystem of 1000 nodes with 24 disks each and 2000 runs, with the same conditions on all of a kind.
func large(status metav1.ConditionStatus) *world {
	owner := v1alpha1.TargetOwner{Name: "scratch"}
	fs := fileSystem()
	for i := range 16 { // the most that the API allows
		fs.Status.Conditions = append(fs.Status.Conditions, condition(fmt.Sprintf("Type%d", i), status, "Reason"))
		fs.Status.StoragePools = append(fs.Status.StoragePools, v1alpha1.StoragePoolStatus{Name: fmt.Sprintf("pool%d", i), CapacityBytes: 1})
		fs.Status.Versions = append(fs.Status.Versions, v1alpha1.VersionCount{Version: fmt.Sprint(i)})
	}
	for i := range 64 {
		fs.Status.Maintenance = append(fs.Status.Maintenance, v1alpha1.NodeMaintenance{Node: fmt.Sprint(i)})
	}
	w := &world{filesystems: []v1alpha1.FileSystem{fs}}
	conditions := []metav1.Condition{condition("Ready", status, "One"), condition("Online", status, "Two")}
	for i := range 1000 {
		n := v1alpha1.FileSystemNode{ObjectMeta: meta(fmt.Sprint(i)), Spec: v1alpha1.FileSystemNodeSpec{FileSystem: owner, Node: fmt.Sprint(i)}}
		n.Status.Conditions = conditions
		w.nodes = append(w.nodes, n)
		for j := range 24 {
			w.targets = append(w.targets, v1alpha1.StorageTarget{ObjectMeta: meta(fmt.Sprintf("%d-%d", i, j)),
				Spec:   v1alpha1.StorageTargetSpec{FileSystem: owner, Node: n.Name, Role: "Storage", StoragePool: fmt.Sprintf("pool%d", j%16)},
				Status: v1alpha1.StorageTargetStatus{Conditions: conditions}})
		}
	}
	for i := range 2000 {
		r := v1alpha1.BenchmarkRun{ObjectMeta: meta(fmt.Sprintf("r%04d", i)), Spec: v1alpha1.BenchmarkRunSpec{Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}},
			Status: v1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{condition("Succeeded", status, "Three")}}}
		r.CreationTimestamp = metav1.NewTime(at.Add(time.Duration(i) * time.Minute))
		w.runs = append(w.runs, r)
	}
	return w
}

func TestTheNumberOfSeriesIsBoundedAtAThousandNodesWith24DisksEach(t *testing.T) {
	g := NewWithT(t)
	well, ill := scrape(t, large("True"), leads()), scrape(t, large("False"), leads())
	g.Expect(well).To(HaveLen(164), "all is well: 129 of the FileSystem, and counts")
	g.Expect(ill).To(HaveLen(664), "nothing is well: the same, and the conditions of 100 nodes, 100 targets and 100 runs")
	g.Expect(ill).To(ContainElement("storage_target_conditions{filesystem=scratch,namespace=ns,pool=pool0,reason=One,role=Storage,status=False,type=Ready} 2000000"),
		"counts are of all")
	g.Expect(ill).To(ContainElement(ContainSubstring("run=r1999")), "the newest runs are shown")
	g.Expect(ill).NotTo(ContainElement(ContainSubstring("run=r0000")))
}
