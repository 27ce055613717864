// Package metrics exports what the operator has recorded about filesystems and benchmarks as Prometheus metrics. It reads the manager's
// cache at each scrape, so that the series of an object end with the object.
package metrics

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// mostObjects bounds the objects of one kind and FileSystem (of one namespace for BenchmarkSuites) that have series of their own. The
// counts are of all objects.
const mostObjects = 100

// listLimit bounds the time that a scrape waits for the cache, which answers at once after it was filled.
const listLimit = 5 * time.Second

// Collector is a prometheus.Collector over the objects in the manager's cache.
type Collector struct {
	// Reader reads from the cache.
	Reader client.Reader
	// Leads is closed when this manager leads. The others export only their build: otherwise each series would exist once for each manager.
	Leads <-chan struct{}
	// Version is the version of the program.
	Version string
}

// describe names a metric of an object that belongs to a FileSystem.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("parallelfs_"+name, help, append([]string{"namespace", "filesystem"}, labels...), nil)
}

var (
	descBuild = prometheus.NewDesc("parallelfs_build_info", "1, with the version of the manager and of Go.",
		[]string{"version", "goversion"}, nil)

	descInfo = describe("filesystem_info",
		"1, with the type of a FileSystem, the version that it runs and the version that its spec asks for.", "type", "version", "wanted_version")
	descSince = describe("filesystem_condition_transition_timestamp_seconds",
		"Unix time at which the status of a condition of a FileSystem last changed.", "type")
	descDisruption = describe("filesystem_disruption_start_timestamp_seconds",
		"Unix time since which a Restart, an Upgrade or a Recovery of a FileSystem is in progress, or its changes are held (ChangesHeld).", "kind")
	descMaintenance = describe("filesystem_node_maintenance_start_timestamp_seconds",
		"Unix time since which a node is in maintenance.", "node")
	descVersions = describe("filesystem_version_servers", "Servers of a FileSystem by the version that they report.", "version")
	descCheck    = describe("filesystem_check", "1 for the result of the last check for damage.", "result")
	// A time and no age, so that a manager that has stopped looking makes no backup look young.
	descBackup = describe("filesystem_backup_timestamp_seconds",
		"Unix time of the newest verified backup of a FileSystem's metadata; 0 while there is none, although spec.backups asks for backups.")
	descPool = describe("filesystem_pool_used_ratio",
		"Used space of the targets of a storage pool that are online, as a part of their capacity.", "pool")
	// A time as well, so that an alert counts the days.
	descCertificate = describe("filesystem_certificate_expiry_timestamp_seconds",
		"Unix time at which the certificate of a FileSystem's servers expires.")
	descCopies = describe("filesystem_metadata_copies",
		"Copies of a FileSystem's metadata on running servers: those that are asked for, and those that were read back (state proven).", "state")
	descCopyProven = describe("filesystem_metadata_copy_proven_timestamp_seconds",
		"Unix time at which the copy of a FileSystem's metadata on a node was last read back; 0 while it never was.", "node")
	descCopyBehind = describe("filesystem_metadata_copy_behind_changes",
		"Changes that the copy of a FileSystem's metadata on a node lacked when it was last read back; absent if unknown.", "node")
)

// kind are the metrics of the conditions of one kind of object.
type kind struct {
	// each has the conditions that are not well, by object, and counts has the number of objects by condition. counts is nil for a kind whose
	// conditions all have series.
	each, counts *prometheus.Desc
}

var (
	fileSystems = kind{each: describe("filesystem_condition",
		"1 for the current status of each condition of a FileSystem.", "type", "status", "reason")}
	nodes = kind{
		each: describe("filesystem_node_condition",
			"1 for the current status of a condition of a FileSystemNode that is not well.", "node", "type", "status", "reason"),
		counts: describe("filesystem_node_conditions", "FileSystemNodes by the current status of their conditions.", "type", "status", "reason"),
	}
	targets = kind{
		each: describe("storage_target_condition",
			"1 for the current status of a condition of a StorageTarget that is not well.", "target", "node", "type", "status", "reason"),
		counts: describe("storage_target_conditions", "StorageTargets by role, pool and the current status of their conditions.",
			"role", "pool", "type", "status", "reason"),
	}
	runs = kind{
		each: describe("benchmark_run_condition",
			"1 for the current status of a condition of a BenchmarkRun that is not well, or not over.", "run", "type", "status", "reason"),
		counts: describe("benchmark_run_conditions", "BenchmarkRuns by the current status of their conditions.", "type", "status", "reason"),
	}
	suites = kind{
		each: prometheus.NewDesc("parallelfs_benchmark_suite_condition",
			"1 for the current status of a condition of a BenchmarkSuite that is not well, or not over.",
			[]string{"namespace", "suite", "type", "status", "reason"}, nil),
		counts: prometheus.NewDesc("parallelfs_benchmark_suite_conditions", "BenchmarkSuites by the current status of their conditions.",
			[]string{"namespace", "type", "status", "reason"}, nil),
	}
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descBuild, descInfo, descSince, descDisruption, descMaintenance, descVersions, descCheck, descBackup, descPool,
		descCopies, descCopyProven, descCopyBehind, descCertificate,
		fileSystems.each, nodes.each, nodes.counts, targets.each, targets.counts, runs.each, runs.counts, suites.each, suites.counts,
	} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	out <- prometheus.MustNewConstMetric(descBuild, prometheus.GaugeValue, 1, cmp.Or(c.Version, "unknown"), runtime.Version())
	select {
	case <-c.Leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listLimit)
	defer cancel()
	if err := c.collect(ctx, gauge(out)); err != nil {
		out <- prometheus.NewInvalidMetric(fileSystems.each, err) // the scrape fails: no series would look like no problem
	}
}

// gauge writes metrics.
type gauge chan<- prometheus.Metric

func (out gauge) set(d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// collect reads lists that are shared with the cache, and changes nothing in them.
func (c *Collector) collect(ctx context.Context, out gauge) error {
	var (
		filesystemList v1alpha1.FileSystemList
		nodeList       v1alpha1.FileSystemNodeList
		targetList     v1alpha1.StorageTargetList
		runList        v1alpha1.BenchmarkRunList
		suiteList      v1alpha1.BenchmarkSuiteList
	)
	for _, list := range []client.ObjectList{&filesystemList, &nodeList, &targetList, &runList, &suiteList} {
		if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list the objects of %T: %w", list, err)
		}
	}
	for i := range filesystemList.Items {
		out.fileSystem(&filesystemList.Items[i])
	}
	all := make([]subject, 0, len(nodeList.Items))
	for i := range nodeList.Items {
		n := &nodeList.Items[i]
		all = append(all, subject{
			of: n, owner: []string{n.Namespace, n.Spec.FileSystem.Name}, own: []string{n.Spec.Node}, conditions: n.Status.Conditions,
		})
	}
	out.conditions(nodes, all)
	all = make([]subject, 0, len(targetList.Items))
	for i := range targetList.Items {
		t := &targetList.Items[i]
		all = append(all, subject{
			of: t, owner: []string{t.Namespace, t.Spec.FileSystem.Name}, own: []string{t.Name, t.Spec.Node},
			group: []string{string(t.Spec.Role), t.Spec.StoragePool}, conditions: t.Status.Conditions,
		})
	}
	out.conditions(targets, all)
	all = make([]subject, 0, len(runList.Items))
	for i := range runList.Items {
		r := &runList.Items[i]
		all = append(all, subject{
			of: r, owner: []string{r.Namespace, r.Spec.Target.FileSystem.Name}, own: []string{r.Name}, conditions: r.Status.Conditions,
		})
	}
	out.conditions(runs, all)
	all = make([]subject, 0, len(suiteList.Items))
	for i := range suiteList.Items {
		s := &suiteList.Items[i]
		all = append(all, subject{of: s, owner: []string{s.Namespace}, own: []string{s.Name}, conditions: s.Status.Conditions})
	}
	out.conditions(suites, all)
	return nil
}

// subject is an object with conditions.
type subject struct {
	of client.Object
	// owner are the labels of the FileSystem that it belongs to, own are those of the object, and group are those that its count has besides.
	owner, own, group []string
	conditions        []metav1.Condition
}

// needsLook is true for a condition that a person may want to look at. Conditions such as Stalled exist only while they are true.
func needsLook(c *metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionReconciling:
		return false
	case v1alpha1.ConditionStalled, v1alpha1.ConditionDegraded, v1alpha1.ConditionMaintenance, v1alpha1.ConditionGivenUp:
		return true
	default:
		return c.Status != metav1.ConditionTrue
	}
}

// conditions writes the counts of all subjects, and the conditions that need a look of the newest mostObjects subjects of each owner.
func (out gauge) conditions(k kind, all []subject) {
	counts := map[string]int{}
	var bad []*subject
	for i := range all {
		s := &all[i]
		for j := range s.conditions {
			c := &s.conditions[j]
			counts[joined(s.owner, s.group, []string{c.Type, string(c.Status), c.Reason})]++
		}
		if slices.ContainsFunc(s.conditions, func(c metav1.Condition) bool { return needsLook(&c) }) {
			bad = append(bad, s)
		}
	}
	for key, count := range counts {
		out.set(k.counts, float64(count), strings.Split(key, "\xff")...)
	}
	slices.SortFunc(bad, func(a, b *subject) int {
		return cmp.Or(b.of.GetCreationTimestamp().Compare(a.of.GetCreationTimestamp().Time), strings.Compare(a.of.GetName(), b.of.GetName()))
	})
	shown := map[string]int{}
	for _, s := range bad {
		owner := joined(s.owner)
		if shown[owner]++; shown[owner] > mostObjects {
			continue
		}
		for i := range s.conditions {
			if c := &s.conditions[i]; needsLook(c) {
				out.set(k.each, 1, slices.Concat(s.owner, s.own, []string{c.Type, string(c.Status), c.Reason})...)
			}
		}
	}
}

// joined is one key for lists of labels, none of which has the separator: it is no part of any UTF-8 text.
func joined(parts ...[]string) string { return strings.Join(slices.Concat(parts...), "\xff") }

// fileSystem writes the metrics of a FileSystem.
func (out gauge) fileSystem(fs *v1alpha1.FileSystem) {
	set := func(d *prometheus.Desc, value float64, labels ...string) {
		out.set(d, value, append([]string{fs.Namespace, fs.Name}, labels...)...)
	}
	status := &fs.Status
	set(descInfo, 1, string(fs.Spec.Type), status.Version, fs.Spec.Version)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		set(fileSystems.each, 1, c.Type, string(c.Status), c.Reason)
		set(descSince, unix(c.LastTransitionTime), c.Type)
		if disruption := disruptionOf(c); disruption != "" {
			set(descDisruption, unix(c.LastTransitionTime), disruption)
		}
	}
	for i := range status.Maintenance {
		if m := &status.Maintenance[i]; m.Ended == nil {
			set(descMaintenance, unix(m.Since), m.Node)
		}
	}
	for _, v := range status.Versions {
		set(descVersions, float64(v.Servers), v.Version)
	}
	if status.Check != nil {
		set(descCheck, 1, string(status.Check.Result))
	}
	if fs.Spec.Backups != nil {
		newest := 0.0
		for i := range status.Backups {
			if b := &status.Backups[i]; b.Result == v1alpha1.BackupVerified && b.Time != nil {
				newest = max(newest, unix(*b.Time))
			}
		}
		set(descBackup, newest)
	}
	if c := status.Certificate; c != nil {
		set(descCertificate, unix(c.NotAfter))
	}
	for i := range status.StoragePools {
		if p := &status.StoragePools[i]; p.CapacityBytes > 0 {
			set(descPool, float64(p.UsedBytes)/float64(p.CapacityBytes), p.Name)
		}
	}
	if len(status.MetadataCopies) > 0 {
		proven := 0
		for i := range status.MetadataCopies {
			c, at := &status.MetadataCopies[i], 0.0
			if c.Result == v1alpha1.MetadataCopyProven {
				proven++
			}
			if c.Proven != nil {
				at = unix(*c.Proven)
			}
			set(descCopyProven, at, c.Node)
			if c.Behind != nil {
				set(descCopyBehind, float64(*c.Behind), c.Node)
			}
		}
		set(descCopies, float64(len(status.MetadataCopies)), "asked")
		set(descCopies, float64(proven), "proven")
	}
}

// disruptionOf is the disruption that a condition of a FileSystem reports as in progress, empty when it reports none.
func disruptionOf(c *metav1.Condition) string {
	if c.Status != metav1.ConditionTrue {
		return ""
	}
	switch {
	case c.Type == v1alpha1.ConditionReconciling && c.Reason == v1alpha1.ReasonRestarting:
		return "Restart"
	case c.Type == v1alpha1.ConditionUpgrading:
		return "Upgrade"
	case c.Type == v1alpha1.ConditionRecovering:
		return "Recovery"
	case c.Type == v1alpha1.ConditionChangesHeld:
		return "ChangesHeld"
	default:
		return ""
	}
}

func unix(t metav1.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
}
