//go:build vm

package vm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// passed is the result of the agent's pass over a target (pass.Result).
type passed struct {
	Target   v1alpha1.StorageTarget
	Recorded []v1alpha1.StorageTargetStatus
	Error    string
}

// ready is the condition Ready of the target.
func (p passed) ready() metav1.Condition {
	if c := meta.FindStatusCondition(p.Target.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// pass runs the agent's code over one target, once.
func (m *machine) pass(t *testing.T, target v1alpha1.StorageTarget) passed {
	t.Helper()
	content, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := m.try(t, string(content), "pass")
	if code != 0 {
		t.Fatalf("pass: %s%s", stdout, stderr)
	}
	var result passed
	decode(t, stdout, &result)
	return result
}

// named is the target of a user who names the disk in spec.storagePools[].targets.devices.
func named(t *testing.T, found v1alpha1.NodeInventoryStatus, serial string, policy v1alpha1.FormatPolicy) v1alpha1.StorageTarget {
	t.Helper()
	id := v1alpha1.DeviceID(bySerial(t, found, serial).IDs[0])
	selection := choose(found, v1alpha1.TargetsSpec{
		Devices: []v1alpha1.DeviceReference{{Node: node, ID: id}}, Format: &v1alpha1.FormatSpec{FSType: v1alpha1.XFS},
	})
	if len(selection.Targets) != 1 {
		t.Fatalf("the disk %s gives %d targets: %+v", serial, len(selection.Targets), selection.Problems)
	}
	target := selection.Targets[0]
	target.Spec.FormatPolicy = policy
	return target
}

func testGuards(t *testing.T, m *machine, directory string, found v1alpha1.NodeInventoryStatus) {
	hash := "sha256:" + strings.Repeat("0", 64)
	for serial, sign := range map[string]string{foreign: "ext4", partitioned: "gpt"} {
		before := sum(t, directory, serial)
		for name, c := range map[string]struct {
			policy   v1alpha1.FormatPolicy
			approval string
			reason   string
		}{
			"is refused where only blank disks are formatted":      {v1alpha1.FormatIfBlank, "", v1alpha1.ReasonDeviceRefused},
			"is refused where no disk is formatted":                {v1alpha1.FormatNever, "", v1alpha1.ReasonFormatForbidden},
			"waits for an approval where each plan is approved":    {v1alpha1.FormatApproved, "", v1alpha1.ReasonAwaitingApproval},
			"is refused when another plan than this was approved":  {v1alpha1.FormatApproved, hash, v1alpha1.ReasonApprovalRefused},
			"is refused with an approval, where none is asked for": {v1alpha1.FormatIfBlank, hash, v1alpha1.ReasonDeviceRefused},
		} {
			t.Run("a disk with "+sign+" "+name, func(t *testing.T) {
				g := NewWithT(t)
				target := named(t, found, serial, c.policy)
				target.Spec.ApprovedPlan = c.approval
				result := m.pass(t, target)
				g.Expect(result.Error).To(BeEmpty())
				g.Expect(result.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", c.reason)), result.ready().Message)
				g.Expect(result.Target.Status.Provisioned).To(BeNil())
				g.Expect(result.Target.Status.MountPath).To(BeEmpty())
				g.Expect(strings.Join(result.Target.Status.Plan.Destroys, "\n")+result.ready().Message).To(ContainSubstring(sign), "what would be lost is named")
			})
		}
		t.Run("a disk with "+sign+" is bit for bit what it was before", func(t *testing.T) {
			m.sh(t, "sync")
			NewWithT(t).Expect(sum(t, directory, serial)).To(Equal(before))
		})
	}
}

// testFormat makes a target of the blank disk of NUMA node 1, and returns it.
func testFormat(t *testing.T, m *machine, found v1alpha1.NodeInventoryStatus) v1alpha1.StorageTarget {
	selection := choose(found, onNUMANode(1, 1))
	NewWithT(t).Expect(selection.Targets).To(HaveLen(1))
	result := m.pass(t, selection.Targets[0])
	target := result.Target
	path := spec.TargetPath(target.Namespace, target.Spec.FileSystem.Name, target.Name)
	t.Run("a blank disk that was selected is formatted, mounted and proven", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(result.Error).To(BeEmpty())
		g.Expect(result.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonProven)), result.ready().Message)
		g.Expect(target.Status.MountPath).To(Equal(path))
		g.Expect(target.Status.Provisioned.Finished).NotTo(BeNil())
		g.Expect(target.Status.CapacityBytes).To(BeNumerically(">", diskSize*8/10))
		testMounted(t, m, target)
	})
	t.Run("the intent was recorded before the first byte was written", func(t *testing.T) {
		g := NewWithT(t)
		first := result.Recorded[0]
		g.Expect(first.Provisioned).To(And(HaveField("UUID", target.Status.Provisioned.UUID), HaveField("Finished", BeNil())))
		g.Expect(first.MountPath).To(BeEmpty())
	})
	t.Run("the inventory shows what is on the disk now, and only a FileSystem of the same name chooses it", func(t *testing.T) {
		g := NewWithT(t)
		now := inventory(t, m)
		device := bySerial(t, now, blank1)
		g.Expect(device.Signatures).To(ContainElement(And(HaveField("Type", "xfs"), HaveField("UUID", target.Status.Provisioned.UUID),
			HaveField("Label", target.Status.Provisioned.Label))))
		g.Expect(device.Mounts).To(ContainElement(path))
		g.Expect(device.Unusable).NotTo(BeEmpty())
		g.Expect(choose(now, onNUMANode(1, 1)).Targets).To(ConsistOf(HaveField("Name", target.Name)), "it finds its data again")
		other := fileSystem(onNUMANode(1, 1))
		other.Name = "home"
		g.Expect(chooseFor(other, now).Targets).To(BeEmpty())
	})
	t.Run("a daemon starts on the target, bound to the disk's NUMA node", func(t *testing.T) {
		instance := "chunkserver/ssd"
		pinning := spec.Pinning{CPUs: "2-3", MemoryNodes: "1", MemoryPolicy: string(v1alpha1.MemoryBind), Why: "this test"}
		m.start(t, instance, spec.Member{Targets: []spec.Target{specTarget(target)}, Pinning: &pinning})
		testBound(t, m, instance, 1, pinning)
		m.stop(t, instance)
		m.sh(t, "echo chunk > "+path+"/daemon/data/chunk; sync")
	})
	return target
}

func specTarget(target v1alpha1.StorageTarget) spec.Target {
	return spec.Target{
		Name: target.Name, Path: spec.TargetPath(target.Namespace, target.Spec.FileSystem.Name, target.Name),
		UUID: target.Status.Provisioned.UUID,
	}
}

// testMounted queries the kernel and blkid about the mount at the target's mountpoint, and about the settings of the disk's queue.
func testMounted(t *testing.T, m *machine, target v1alpha1.StorageTarget) {
	t.Helper()
	g := NewWithT(t)
	provisioned := target.Status.Provisioned
	mounted := strings.Fields(m.run(t, "findmnt", "-n", "-o", "SOURCE,FSTYPE,OPTIONS", "--mountpoint", target.Status.MountPath))
	g.Expect(mounted[0]).To(Equal("/dev/" + target.Status.KernelName))
	g.Expect(mounted[1]).To(Equal("xfs"))
	g.Expect(strings.Split(mounted[2], ",")).To(ContainElements("rw", "noatime"))
	g.Expect(strings.TrimSpace(m.run(t, "cat", "/sys/block/"+target.Status.KernelName+"/device/serial"))).To(Equal(blank1))
	g.Expect(target.Status.Queue).To(HaveValue(Equal(v1alpha1.QueueStatus{Scheduler: "mq-deadline", ReadAheadKB: 4096, MaxSectorsKB: 256, Requests: 64})))
	queue := "/sys/block/" + target.Status.KernelName + "/queue/"
	g.Expect(m.run(t, "cat", queue+"scheduler", queue+"read_ahead_kb", queue+"max_sectors_kb", queue+"nr_requests")).To(
		MatchRegexp(`\[mq-deadline\].*\n4096\n256\n64\n`))
	onDisk := m.run(t, "blkid", "-p", "-o", "export", mounted[0])
	g.Expect(onDisk).To(And(ContainSubstring("UUID="+provisioned.UUID+"\n"), ContainSubstring("LABEL="+provisioned.Label+"\n")))
	var marker spec.TargetMarker
	decode(t, m.run(t, "cat", target.Status.MountPath+"/"+spec.TargetMarkerFile), &marker)
	g.Expect(marker).To(And(HaveField("Owner", owner()), HaveField("Target", target.Name), HaveField("UUID", provisioned.UUID),
		HaveField("Serial", blank1), HaveField("WWN", target.Spec.Device.WWN)))
}

// testRestarted checks the machine after a restart in which the disks were attached in another order.
func testRestarted(t *testing.T, m *machine, before v1alpha1.NodeInventoryStatus, target v1alpha1.StorageTarget) {
	now := inventory(t, m)
	t.Run("every disk has another kernel name and the same identity", func(t *testing.T) {
		g := NewWithT(t)
		for _, d := range disks {
			old, device := bySerial(t, before, d.serial), bySerial(t, now, d.serial)
			g.Expect(device.KernelName).NotTo(Equal(old.KernelName))
			g.Expect(device.IDs).To(Equal(old.IDs))
			g.Expect(device.WWN).To(Equal(old.WWN))
			g.Expect(device.NUMANode).To(Equal(old.NUMANode))
		}
		g.Expect(bySerial(t, now, partitioned).KernelName).To(Equal(target.Status.KernelName), "another disk has the name of the target's")
	})
	t.Run("a daemon does not start before its target is mounted", func(t *testing.T) {
		g := NewWithT(t)
		path := m.runSpec(t, "chunkserver/ssd", spec.Member{Targets: []spec.Target{specTarget(target)}})
		// The wait has no limit, and its reason is printed: on a slow machine, the first one is that the target has not answered in time. Only a
		// test that fails waits until the end.
		said := m.sh(t, fmt.Sprintf("NODE_NAME="+nodeName+" node run --spec %s > /run/waits 2>&1 & p=$!; "+
			"for i in $(seq 600); do grep -q 'not mounted' /run/waits && break; sleep 0.1; done; kill $p; wait $p || true; cat /run/waits", path))
		g.Expect(said).To(And(ContainSubstring(target.Name), ContainSubstring("not mounted"), Not(ContainSubstring("starting the daemon"))))
		g.Expect(m.sh(t, fmt.Sprintf("ls -A %s; ! touch %[1]s/x 2>&1", specTarget(target).Path))).To(ContainSubstring("not permitted"))
	})
}

// testRemounted looks at the target after it was mounted again.
func testRemounted(t *testing.T, m *machine, target v1alpha1.StorageTarget) {
	t.Run("the target is found under its new name, and mounted with what was on it", func(t *testing.T) {
		g := NewWithT(t)
		result := m.pass(t, target)
		g.Expect(result.Error).To(BeEmpty())
		g.Expect(result.ready()).To(HaveField("Reason", v1alpha1.ReasonProven), result.ready().Message)
		g.Expect(result.Target.Status.KernelName).To(Equal(bySerial(t, inventory(t, m), blank1).KernelName))
		g.Expect(result.Target.Status.Provisioned).To(Equal(target.Status.Provisioned), "it is formatted once")
		testMounted(t, m, result.Target)
		g.Expect(m.run(t, "cat", result.Target.Status.MountPath+"/daemon/data/chunk")).To(Equal("chunk\n"))
	})
}

// testMissing checks the machine after a restart without the target's disk.
func testMissing(t *testing.T, m *machine, target v1alpha1.StorageTarget) {
	t.Run("a target without its disk is missing, and no other disk takes its place", func(t *testing.T) {
		g := NewWithT(t)
		result := m.pass(t, target)
		g.Expect(result.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonTargetMissing)))
		g.Expect(result.Target.Status.MountPath).To(BeEmpty())
		g.Expect(result.Target.Status.Provisioned).To(Equal(target.Status.Provisioned))
	})
}
