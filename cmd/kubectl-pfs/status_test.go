package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// golden compares a screen with its file in testdata, and checks that no line except a command is wider than the screen. With
// UPDATE_GOLDEN, it writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.WriteFile(file, []byte(got), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file) // #nosec G304 -- a file of the test
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(string(want)))
	for line := range strings.Lines(got) {
		if !strings.Contains(line, "      kubectl ") {
			g.Expect(utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))).To(BeNumerically("<=", screenWidth), line)
		}
	}
}

// whenSeen is the clock of the program in tests; see clusterThrough.
var whenSeen = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(whenSeen.Add(-d)) }

func is(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(3 * time.Hour)}
}

// scratchOf is a FileSystem with these conditions.
func scratchOf(conditions ...metav1.Condition) *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "uid-of-scratch"},
		Spec:       v1alpha1.FileSystemSpec{Type: v1alpha1.MooseFS, Version: "4.57.5"},
		Status: v1alpha1.FileSystemStatus{
			Version: "4.57.5", Conditions: conditions,
			Summary: &v1alpha1.FileSystemSummary{Servers: "11/12", Targets: "46/48", Clients: "30/30", Capacity: "96TiB", Used: "41.2TiB"},
			StoragePools: []v1alpha1.StoragePoolStatus{
				{Name: "hdd", Targets: "34/36", Capacity: "80TiB", Used: "40TiB", CapacityBytes: 80, UsedBytes: 40,
					Fullness: &v1alpha1.PoolFullness{EmptiestPercent: 45, FullestPercent: 55}},
				{Name: "ssd", Targets: "12/12", Capacity: "16TiB", Used: "1.2TiB", CapacityBytes: 160, UsedBytes: 12},
			},
		},
	}
}

// diskOf is a StorageTarget of scratch with these conditions.
func diskOf(name, node string, conditions ...metav1.Condition) *v1alpha1.StorageTarget {
	return &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "storage", UID: "uid-of-target",
			Labels: map[string]string{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelNode: node},
		},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "uid-of-scratch"}, Node: node, Role: v1alpha1.RoleStorage, StoragePool: "hdd",
			FormatPolicy: v1alpha1.FormatApproved,
			Device:       v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("wwn-0x" + name), Serial: "S" + name, SizeBytes: 4_000_787_030_016},
		},
		Status: v1alpha1.StorageTargetStatus{Conditions: conditions, KernelName: "sdb"},
	}
}

// planned is a StorageTarget whose plan waits for approval.
func planned(name, node, hash string, destroys ...string) *v1alpha1.StorageTarget {
	t := diskOf(name, node, is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingApproval, "the plan must be approved"))
	t.Status.Plan = &v1alpha1.TargetPlan{
		Hash: hash, Destroys: destroys, Steps: []string{"wipefs --all /dev/disk/by-id/wwn-0x" + name, "mkfs.xfs /dev/disk/by-id/wwn-0x" + name},
	}
	return t
}

// serving is a healthy StorageTarget.
func serving(name, node string) *v1alpha1.StorageTarget {
	return diskOf(name, node, is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonProven, "the disk is mounted"),
		is(v1alpha1.ConditionOnline, metav1.ConditionTrue, v1alpha1.ReasonServing, ""))
}

var hashOf = func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

// troubled is a FileSystem with nearly everything that a screen can show.
func troubled() []client.Object {
	fs := scratchOf(
		is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonDegradedService, "programs can read and write all of their data"),
		is(v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonTargetsMissing,
			"2 of 48 storage targets are not online: scratch-a on node oss3, scratch-b on node oss3. Look at the disks: the StorageTargets name the reason"),
		is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonTargetMissing, "the disk of scratch-a is not there; put it back, or replace it"),
		is(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonInMaintenance, "node oss4 is in maintenance"),
		is(v1alpha1.ConditionUpgrading, metav1.ConditionFalse, v1alpha1.ReasonBackupMissing, "the upgrade to 4.59.2 waits for a verified backup"),
		is(v1alpha1.ConditionEvaluationOnly, metav1.ConditionTrue, v1alpha1.ReasonDirectoryTargets, "the metadata is in a directory"),
	)
	fs.Spec.Updates.Paused = true
	fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "oss4", Since: ago(25 * time.Minute)}}
	fs.Status.Missing = []v1alpha1.MissingMember{
		{Kind: v1alpha1.ServerMember, Name: "chunkserver-hdd", Node: "oss4", Message: "the master does not list it"},
		{Kind: v1alpha1.TargetMember, Name: "scratch-a", Node: "oss3", Message: "it is not mounted"},
	}
	gone := diskOf("scratch-a", "oss3", is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing,
		"no disk of the node has the name wwn-0xscratch-a; put it back, or replace it. Nothing was formatted, and nothing will be"))
	empty := serving("scratch-c", "oss5")
	empty.Spec.Remove = true
	empty.Status.Conditions = append(empty.Status.Conditions, is(v1alpha1.ConditionSafeToRemove, metav1.ConditionTrue, v1alpha1.ReasonDataMoved, ""))
	moving := serving("scratch-d", "oss5")
	moving.Spec.Remove = true
	moving.Status.Service = &v1alpha1.TargetService{State: v1alpha1.StateOnline, CapacityBytes: 1000, UsedBytes: 370}
	moving.Status.Conditions = append(moving.Status.Conditions, is(v1alpha1.ConditionSafeToRemove, metav1.ConditionFalse, v1alpha1.ReasonMovingData, "1200 chunks are left"))
	node := &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-mds1", Namespace: "storage", Labels: map[string]string{v1alpha1.LabelFileSystem: "scratch"}},
		Spec:       v1alpha1.FileSystemNodeSpec{Node: "mds1", FileSystem: v1alpha1.TargetOwner{Name: "scratch"}},
		Status: v1alpha1.FileSystemNodeStatus{Conditions: []metav1.Condition{is(v1alpha1.ConditionMaintenance, metav1.ConditionFalse,
			v1alpha1.ReasonMaintenanceNotAllowed, "the master runs on this node, and programs wait while it is away. To release it anyway: kubectl annotate …")}},
	}
	return []client.Object{
		fs, gone, planned("scratch-e", "oss6", hashOf("a")), planned("scratch-f", "oss6", hashOf("b"), "xfs on sdb (label home)"), empty, moving,
		serving("scratch-g", "oss7"), node,
	}
}

func TestStatusShowsWhichValuesTheOperatorChose(t *testing.T) {
	g := NewWithT(t)
	fs := scratchOf(is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHealthy, ""))
	fs.Spec.Clients, fs.Status.MountPath, fs.Status.Chosen = nil, "/mnt/scratch", nil
	g.Expect(on(t, []client.Object{fs})("status", "scratch").stdout).To(HaveSuffix(
		"\nChosen by the operator, because the spec says nothing\n  - clients.mountPath: /mnt/scratch\n"))

	fs.Status.Chosen = &v1alpha1.ChosenStatus{
		Copies: 2, Version: "4.57.5", BasePort: 9419, DefaultStoragePool: "ssd", Metaloggers: []string{"n2", "n3"},
	}
	fs.Spec.Clients = &v1alpha1.ClientsSpec{MountPath: "/mnt/scratch"}
	g.Expect(on(t, []client.Object{fs})("status", "scratch").stdout).To(HaveSuffix("\nChosen by the operator, because the spec says nothing\n" +
		"  - version: 4.57.5\n  - storagePools[].copies: 2\n  - defaultStoragePool: ssd\n  - moosefs.basePort: 9419\n" +
		"  - moosefs.metaloggers: n2, n3\n"))

	fs.Status.Chosen = nil
	g.Expect(on(t, []client.Object{fs})("status", "scratch").stdout).NotTo(ContainSubstring("Chosen"), "the spec says all")
}

func TestStatusShowsOnOneScreenWhatIsWrongAndWhatToType(t *testing.T) {
	g := NewWithT(t)
	got := on(t, troubled())("status", "scratch")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	golden(t, "status.txt", got.stdout)
}

func TestTheStatusOfAHealthyFileSystemIsShort(t *testing.T) {
	fs := scratchOf(is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "all servers, targets and mounts are online"))
	golden(t, "status-well.txt", on(t, []client.Object{fs, serving("scratch-g", "oss7")})("status", "scratch").stdout)
}

func TestStatusWithoutANameHasOneLineForEachFileSystem(t *testing.T) {
	g := NewWithT(t)
	down := scratchOf(is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMetadataOffline, "the master does not answer; look at its pod"))
	down.Name = "archive"
	other := scratchOf()
	other.Namespace = "elsewhere"
	pfs := on(t, append(troubled(), down, other))
	got := pfs("status", "-A")
	golden(t, "status-all.txt", got.stdout)
	g.Expect(pfs("status").stdout).NotTo(ContainSubstring("elsewhere"))
	g.Expect(pfs("status", "-n", "empty").stderr).To(ContainSubstring("There is no FileSystem in the namespace empty."))
	g.Expect(pfs("status", "scratch", "-A").code).To(Equal(exitUsage))
}

func TestStatusAsADocumentHasTheCommandsToType(t *testing.T) {
	golden(t, "status.yaml", on(t, troubled())("status", "scratch", "-o", "yaml").stdout)
}

func TestStatusThatIsWatchedShowsWhatHasChanged(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, []client.Object{scratchOf(is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "all is online"))}, func(c client.Client) {
		fs := &v1alpha1.FileSystem{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "scratch"}, fs)).To(Succeed())
		fs.Status.Conditions = []metav1.Condition{is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonMetadataOffline, "the master does not answer")}
		g.Expect(c.Update(t.Context(), fs)).To(Succeed())
	})
	got := pfs("status", "scratch", "--watch")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(strings.Index(got.stdout, "Down")).To(BeNumerically(">", strings.Index(got.stdout, "Well")))
}

func TestHealthIsTheExitCodeOfTheWorstFileSystem(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return is(v1alpha1.ConditionReady, status, reason, "as it is")
	}
	for name, one := range map[string]struct {
		conditions []metav1.Condition
		code       int
	}{
		"well":                         {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy)}, 0},
		"without backups":              {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), is(v1alpha1.ConditionBackedUp, metav1.ConditionFalse, v1alpha1.ReasonBackupsNotConfigured, "")}, 0},
		"with an old backup":           {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), is(v1alpha1.ConditionBackedUp, metav1.ConditionFalse, v1alpha1.ReasonBackupTooOld, "")}, 1},
		"degraded":                     {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonDegradedService), is(v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonTargetsMissing, "")}, 1},
		"waiting for a person":         {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval, "")}, 1},
		"nearly full":                  {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), is(v1alpha1.ConditionPoolNearlyFull, metav1.ConditionTrue, v1alpha1.ReasonPoolNearlyFull, "")}, 1},
		"full":                         {[]metav1.Condition{ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), is(v1alpha1.ConditionPoolNearlyFull, metav1.ConditionTrue, v1alpha1.ReasonPoolFull, "")}, 2},
		"down":                         {[]metav1.Condition{ready(metav1.ConditionFalse, v1alpha1.ReasonMetadataOffline)}, 2},
		"with a probe that is silent":  {[]metav1.Condition{ready(metav1.ConditionFalse, v1alpha1.ReasonProbeUnreachable)}, 3},
		"that nobody has looked at":    {nil, 3},
		"whose state is not known now": {[]metav1.Condition{ready(metav1.ConditionUnknown, "Starting")}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pfs := on(t, []client.Object{scratchOf(one.conditions...)})
			got := pfs("health", "scratch")
			g.Expect(got.code).To(Equal(one.code), got.stdout+got.stderr)
			g.Expect(got.stdout).To(HavePrefix("storage/scratch: " + health(one.code).String() + "."))
			g.Expect(pfs("health", "scratch", "-o", "json").stdout).To(ContainSubstring(fmt.Sprintf(`"health": %q`, health(one.code))))
		})
	}
	well, worse := scratchOf(ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy)), scratchOf(ready(metav1.ConditionFalse, v1alpha1.ReasonMetadataOffline))
	worse.Name = "archive"
	unknown := scratchOf()
	unknown.Name = "unknown"
	NewWithT(t).Expect(on(t, []client.Object{well, worse, unknown})("health").code).To(Equal(2), "one that is down is worse than one that is unknown")
}

func TestHealthThatCannotBeAskedForIsUnknown(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, nil)
	for _, args := range [][]string{{"health"}, {"health", "nothing"}, {"health", "--nonsense"}, {"health", "a", "b"}, {"health", "-o", "wide"}, {"health", "--from", "/nowhere"}} {
		got := pfs(args...)
		g.Expect(got.code).To(Equal(3), "%v: %s", args, got.stderr)
		g.Expect(got.stderr).NotTo(BeEmpty(), "%v", args)
	}
}

func TestTheStatusShowsEachValueThatTheOperatorChose(t *testing.T) {
	fields := reflect.TypeFor[v1alpha1.ChosenStatus]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			g := NewWithT(t)
			c := &v1alpha1.ChosenStatus{}
			switch value := reflect.ValueOf(c).Elem().Field(i); value.Kind() {
			case reflect.String:
				value.SetString("chosen-4242")
			case reflect.Slice:
				value.Set(reflect.ValueOf([]string{"chosen-4242"}))
			default:
				value.SetInt(4242)
			}
			fs := &v1alpha1.FileSystem{Status: v1alpha1.FileSystemStatus{Chosen: c}}
			g.Expect(chosen(fs)).To(HaveExactElements(ContainSubstring("4242")))
		})
	}
}
