package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// eventOf is an event of an object of the namespace storage.
func eventOf(name, kind, object, kindOfEvent, reason, message string, before time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"}, Type: kindOfEvent, Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: object, Namespace: "storage"}, EventTime: metav1.NewMicroTime(whenSeen.Add(-before)),
	}
}

// eventful is a FileSystem with events of it, of its parts, and of foreign objects.
func eventful() []client.Object {
	repeated := eventOf("e4", "StorageTarget", "scratch-a", corev1.EventTypeWarning, v1alpha1.ReasonTargetMissing, "no disk has its name", 50*time.Minute)
	repeated.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(whenSeen.Add(-5 * time.Minute))}
	ofNode := eventOf("e5", "Node", "mds1", corev1.EventTypeNormal, "NodeNotReady", "Node mds1 status is now: NodeNotReady", 20*time.Minute)
	ofNode.Namespace, ofNode.InvolvedObject.Namespace = "default", ""
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "creates", Namespace: "storage"}}
	run.Spec.Target.FileSystem.Name = "scratch"
	fs := troubled()
	fs[0].(*v1alpha1.FileSystem).Spec.Backups = &v1alpha1.BackupsSpec{}
	at := ago(10 * time.Hour)
	retry := metav1.NewTime(whenSeen.Add(time.Hour))
	fs[0].(*v1alpha1.FileSystem).Status.Backups = []v1alpha1.BackupStatus{
		{Name: "20261121-090000", Node: "n7", Result: v1alpha1.BackupFailed, Message: "the node has no room", Retry: &retry},
		{Name: "20261121-020000", Node: "n7", Result: v1alpha1.BackupVerified, Time: &at, Version: 48213377, SizeBytes: 1_874_339_201},
	}
	return append(fs, repeated, ofNode, run,
		eventOf("e1", "FileSystem", "scratch", corev1.EventTypeNormal, v1alpha1.ReasonRestarting, "chunkserver on node oss4 is restarted", 30*time.Minute),
		eventOf("e2", "BenchmarkRun", "creates", corev1.EventTypeNormal, "Started", "the first point runs", 10*time.Minute),
		eventOf("e3", "FileSystem", "archive", corev1.EventTypeNormal, v1alpha1.ReasonRestarting, "of a stranger", 30*time.Minute))
}

func TestEventsAreTheStoryOfAFileSystemAndItsPartsInOrder(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, eventful())
	got := pfs("events", "scratch")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	golden(t, "events.txt", got.stdout)
	g.Expect(got.stdout).NotTo(ContainSubstring("of a stranger"))
	g.Expect(pfs("events", "scratch", "--since", "15m").stdout).To(And(ContainSubstring("7 times"), Not(ContainSubstring("chunkserver on node oss4 is restarted"))))
}

func TestBackupsAreListedAndAskedFor(t *testing.T) {
	g := NewWithT(t)
	c, pfs := cluster(t, eventful())
	golden(t, "backup-list.txt", pfs("backup", "list", "scratch").stdout)
	asked := func() string {
		var fs v1alpha1.FileSystem
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "scratch"}, &fs)).To(Succeed())
		return fs.Annotations[v1alpha1.AnnotationBackUp]
	}
	g.Expect(pfs("backup", "now", "scratch", "--dry-run").code).To(Equal(exitGood))
	g.Expect(asked()).To(BeEmpty())
	g.Expect(pfs("backup", "now", "scratch").code).To(Equal(exitGood))
	g.Expect(asked()).To(Equal("now-20261121-120000"))
	g.Expect(pfs("backup", "now", "scratch").stderr).To(ContainSubstring("asked for already"))
	g.Expect(pfs("backup", "now", "scratch", "--request", "before-the-move").code).To(Equal(exitGood))
	g.Expect(asked()).To(Equal("before-the-move"))
	g.Expect(on(t, troubled())("backup", "now", "scratch").stderr).To(ContainSubstring("has no spec.backups"))
}

func TestAnUpgradeIsShownAndHeld(t *testing.T) {
	g := NewWithT(t)
	objects := troubled()
	since := ago(time.Hour)
	fs := objects[0].(*v1alpha1.FileSystem)
	fs.Spec.Version = "4.59.2"
	fs.Spec.Updates.Windows = []v1alpha1.UpdateWindow{{Schedule: "0 2 * * 6", Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "Europe/Berlin"}}
	fs.Status.Versions = []v1alpha1.VersionCount{{Version: "4.57.5", Servers: 12}}
	fs.Status.UpgradeAsked = &v1alpha1.UpgradeAsked{Version: "4.59.2", Since: since}
	c, pfs := cluster(t, objects)
	golden(t, "upgrade-plan.txt", pfs("upgrade", "plan", "scratch").stdout)
	paused := func() bool {
		var fs v1alpha1.FileSystem
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "scratch"}, &fs)).To(Succeed())
		g.Expect(fs.Spec.Updates.Windows).To(HaveLen(1), "nothing else of spec.updates changes")
		return fs.Spec.Updates.Paused
	}
	g.Expect(pfs("upgrade", "resume", "scratch", "--dry-run").code).To(Equal(exitGood))
	g.Expect(paused()).To(BeTrue())
	g.Expect(pfs("upgrade", "resume", "scratch").code).To(Equal(exitGood))
	g.Expect(paused()).To(BeFalse())
	g.Expect(pfs("upgrade", "pause", "scratch").code).To(Equal(exitGood))
	g.Expect(paused()).To(BeTrue())
	g.Expect(pfs("upgrade", "pause", "scratch").stderr).To(ContainSubstring("is true already"))
}

func TestNodesInMaintenanceAndDrainsThatWaitAreListed(t *testing.T) {
	g := NewWithT(t)
	got := on(t, troubled())("node", "maintenance", "scratch")
	golden(t, "maintenance.txt", got.stdout)
	g.Expect(on(t, []client.Object{scratchOf()})("node", "maintenance", "scratch").stderr).To(ContainSubstring("No node of FileSystem scratch is in maintenance"))
}
