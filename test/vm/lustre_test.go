//go:build vm && lustre

package vm_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// lustreServer has memory for an MDT, three OSTs and a client, and one processor on each socket, because emulated processors wait for each
// other. With two emulated processors that have cmpxchg16b, every second start panicked. The virtio disks are those of the recorded
// machine.
var lustreServer = hardware{
	cores: 1, numaMemory: 1280 << 20, emulated: "max,-cx16", system: 1 << 30, more: []int64{2 << 30, 2 << 30, 2 << 30, 2 << 30, 512 << 20},
}

// address is that of the machine's one interface, and nid its name in LNet.
const (
	address = "192.168.77.1"
	nid     = address + "@tcp"
)

// TestLustre runs on the Lustre given to run.sh: its kernel, its modules and its programs. The real programs give the answers here that a
// double gives in another tier.
func TestLustre(t *testing.T) {
	m := lustreServer.boot(t, t.TempDir(), blank0, foreign, blank1, partitioned)
	m.sh(t, "ip link set lo up; modprobe loop; modprobe dummy; ip link show dummy0 > /dev/null 2>&1 || ip link add dummy0 type dummy; "+
		"ip addr add "+address+"/24 dev dummy0; ip link set dummy0 up; mkdir -p /var/lib/parallelfs/tmp /mnt")
	m.sh(t, "mkfs.ext4 -q -L precious /dev/disk/by-id/nvme-eui.525400a0000000b2; udevadm settle")
	found := inventory(t, m)
	t.Run("the node has what servers and clients need", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(found.Software).To(HaveLen(1))
		t.Logf("%+v", found.Software[0])
		g.Expect(found.Software[0].MissingForServers).To(BeEmpty())
		g.Expect(found.Software[0].MissingForClients).To(BeEmpty())
		g.Expect(found.Software[0].Programs).To(ContainElement(And(HaveField("Name", "lctl"), HaveField("Version", Not(BeEmpty())))))
	})
	l := lustreNode{machine: m, version: versionOf(found)}
	t.Run("disks", func(t *testing.T) { l.testDisks(t, found) })
	t.Run("format", func(t *testing.T) { l.testAsElsewhere(t, "internal/node/format/ldiskfs", "") })
	t.Run("servers", func(t *testing.T) { l.testAsElsewhere(t, "internal/node/serve", onNode) })
	// The recorded machine brought its network up with the modules.
	m.sh(t, "mkdir -p /etc/modprobe.d; echo 'options lnet networks=tcp(dummy0)' > /etc/modprobe.d/lustre.conf; lustre_rmmod; modprobe lustre")
	t.Run("contract of the doubles", func(t *testing.T) { l.testAsElsewhere(t, "test/doubles/lustre", contract) })
}

// onNode selects the tests of the node binary with Lustre's programs.
const onNode = "^(TestPodsKeepTheTargetsOfANodeMountedAndUnmountThemInPeace|TestADiskThatDiffersFromItsAssignmentIsNotMounted|" +
	"TestANodeOfAnotherVersionServesNothing|TestAClientIsMountedByTheNodesOwnProgramAndEndsWithItsPod|" +
	"TestTheAgentProvesAMountedTargetAndReleasesItWhenItIsDeleted|TestAProbeOfANodeReportsWhatItsKernelServes|" +
	"TestAJobMakesPoolsAndLayoutsInAMountOfItsOwnAndCanBeRepeated|TestAnOSTIsEmptiedProvenAndForgottenByTheCommandsOfTheBackend)$"

// contract selects the tests of the doubles that can run on one machine whose kernel must not be killed.
const contract = "^(TestTheDoublesPrintTheRecordedOutput|TestTheDoubleRefusesWhatTheRealMkfsRefuses|TestACommentIsKeptUntilItIsChanged|" +
	"TestAMountIsRefusedWhen|TestAnOSTThatTakesNoNewObjectsGetsNone|TestTheDoublesAnswerAsTheRealLustreDid)$"

// versionOf is the version of the node's Lustre.
func versionOf(found v1alpha1.NodeInventoryStatus) string {
	for _, s := range found.Software {
		for _, p := range s.Programs {
			if p.Version != "" {
				return p.Version
			}
		}
	}
	return ""
}

type lustreNode struct {
	*machine
	version string
}

// testAsElsewhere runs tests of a package that run with doubles in other tiers. Their output is shown, and printed on the console while
// they run.
func (l lustreNode) testAsElsewhere(t *testing.T, folder, only string) {
	t.Helper()
	code, said, _ := l.try(t, "", "bash", "-o", "pipefail", "-c",
		"cd /node/"+folder+" && LUSTRE_REAL=1 TMPDIR=/var/lib/parallelfs/tmp ./tests -test.v -test.timeout=90m -test.run '"+only+"' 2>&1 | tee /dev/console")
	t.Log(said)
	if code != 0 {
		t.Errorf("the tests of %s fail on the real one", folder)
	}
}

// given is a target on a disk, as the operator requests it.
func (l lustreNode) given(t *testing.T, found v1alpha1.NodeInventoryStatus, serial string, given v1alpha1.LustreTarget) v1alpha1.StorageTarget {
	t.Helper()
	target := named(t, found, serial, v1alpha1.FormatIfBlank)
	target.Spec.Format = v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
	target.Spec.Lustre = &given
	return target
}

func (l lustreNode) testDisks(t *testing.T, found v1alpha1.NodeInventoryStatus) {
	mdt := l.given(t, found, blank0, v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), WithMGT: true})
	ost := l.given(t, found, blank1, v1alpha1.LustreTarget{
		Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: []string{nid},
	})
	t.Run("a foreign ext4 that mkfs.lustre would overwrite is refused", func(t *testing.T) {
		g := NewWithT(t)
		result := l.pass(t, l.given(t, found, foreign, *ost.Spec.Lustre))
		g.Expect(result.ready()).To(HaveField("Reason", v1alpha1.ReasonDeviceRefused), result.ready().Message)
		g.Expect(l.run(t, "blkid", "-p", "-o", "value", "-s", "LABEL", "/dev/disk/by-id/nvme-eui.525400a0000000b2")).To(Equal("precious\n"))
	})
	for _, target := range []*v1alpha1.StorageTarget{&mdt, &ost} {
		t.Run("a blank disk is made "+string(target.Spec.Lustre.Kind)+"0000, and proven", func(t *testing.T) {
			g := NewWithT(t)
			result := l.pass(t, *target)
			g.Expect(result.Error).To(BeEmpty())
			g.Expect(result.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonProven)), result.ready().Message)
			*target = result.Target
			g.Expect(l.saysOf(t, *target)).To(ContainSubstring("\nComment: " + markOf(*target) + "\n"))
		})
	}
	if t.Failed() {
		return
	}
	servers := []string{l.serve(t, "mdt/0", mdt), l.serve(t, "ost/ssd", ost)}
	t.Run("the servers mount them, and the kernel shows it", func(t *testing.T) {
		g := NewWithT(t)
		for _, server := range servers {
			l.sh(t, fmt.Sprintf("until NODE_NAME=%s node check-served --spec %s.json; do kill -0 $(cat %[2]s.pid) && sleep 1; done", nodeName, server))
		}
		g.Expect(l.run(t, "lctl", "dl")).To(And(ContainSubstring("UP mdt pfs-MDT0000"), ContainSubstring("UP obdfilter pfs-OST0000")))
		g.Expect(l.run(t, "lctl", "list_nids")).To(Equal(nid + "\n"))
	})
	t.Run("a mounted target shows its identity and owner, and is still proven", func(t *testing.T) {
		g := NewWithT(t)
		for _, target := range []*v1alpha1.StorageTarget{&mdt, &ost} {
			g.Expect(l.saysOf(t, *target)).To(ContainSubstring("\nComment: " + markOf(*target) + "\n"))
			result := l.pass(t, *target)
			g.Expect(result.ready()).To(HaveField("Reason", v1alpha1.ReasonProven), result.ready().Message)
			g.Expect(result.ready().Message).To(ContainSubstring("is mounted by its server"))
			*target = result.Target
		}
	})
	t.Run("servers that end unmount what they serve", func(t *testing.T) {
		for _, server := range slices.Backward(servers) {
			l.sh(t, fmt.Sprintf("p=$(cat %s.pid); kill $p; while [ -e /proc/$p/exe ]; do sleep 0.1; done", server))
		}
		NewWithT(t).Expect(l.sh(t, "grep lustre /proc/mounts || true")).To(BeEmpty())
	})
	t.Run("a new mark on a registered target changes nothing else", func(t *testing.T) {
		g := NewWithT(t)
		device := "/dev/" + ost.Status.KernelName
		before, label := l.saysOf(t, ost), l.run(t, "blkid", "-p", "-o", "value", "-s", "LABEL", device)
		g.Expect(label).To(Equal("pfs-OST0000\n"))
		t.Log(l.run(t, ldiskfs.Format{}.Remark(device, "another")...))
		g.Expect(l.saysOf(t, ost)).To(Equal(strings.Replace(before, markOf(ost), "another", 1)))
		g.Expect(l.run(t, "blkid", "-p", "-o", "value", "-s", "LABEL", device)).To(Equal(label))
		t.Log(l.run(t, ldiskfs.Format{}.Remark(device, markOf(ost))...))
		g.Expect(l.saysOf(t, ost)).To(Equal(before))
	})
	t.Run("a target with a requested writeconf keeps its mark, and is not mounted", func(t *testing.T) {
		g := NewWithT(t)
		l.run(t, ldiskfs.Tunefs, "--writeconf", "/dev/"+ost.Status.KernelName)
		g.Expect(l.saysOf(t, ost)).To(ContainSubstring("\nComment: " + markOf(ost) + "\n"))
		server := l.serve(t, "ost/ssd", ost)
		g.Expect(l.sh(t, "until grep 'which nobody has approved' "+server+".log; do kill -0 $(cat "+server+".pid) && sleep 1; done; kill $(cat "+server+".pid)")).
			NotTo(BeEmpty())
	})
	l.sh(t, "lustre_rmmod")
}

// markOf is the owner in the mark of a target.
func markOf(target v1alpha1.StorageTarget) string {
	return plan.NewOf(&target, plan.Look{}, target.Status.Provisioned.UUID).Mark
}

// saysOf is a target's own record.
func (l lustreNode) saysOf(t *testing.T, target v1alpha1.StorageTarget) string {
	t.Helper()
	return l.run(t, ldiskfs.Format{}.ReadBack("/dev/"+target.Status.KernelName)...)
}

// serve starts a server of a target, and returns the beginning of the names of its files.
func (l lustreNode) serve(t *testing.T, daemon string, target v1alpha1.StorageTarget) string {
	t.Helper()
	given, err := json.Marshal(target.Spec.Lustre)
	if err != nil {
		t.Fatal(err)
	}
	files := "/run/" + strings.ReplaceAll(daemon, "/", "-")
	network := spec.KernelNetwork{
		Name: "tcp", Interfaces: []string{"$(NODE_INTERFACE)"}, Start: [][]string{{"modprobe", "lnet"}, {"lnetctl", "lnet", "configure"}},
		List: []string{"lctl", "list_nids"}, Add: []string{"lnetctl", "net", "add", "--net", "tcp", "--if", "$(INTERFACES)"},
	}
	config := specTarget(target)
	config.Served = &spec.ServedTarget{DeviceID: string(target.Spec.Device.ID), FSType: string(v1alpha1.Ldiskfs), Mark: markOf(target), Given: given}
	l.write(t, files+".node", spec.NodeFile{
		Version: spec.NodeFileVersion, FileSystem: owner(), Node: nodeName, Generation: 1,
		Members: []spec.Member{{Name: spec.MemberName(daemon), Targets: []spec.Target{config}}},
	})
	l.write(t, files+".json", spec.Serve{
		Owner: owner(), Backend: string(v1alpha1.Lustre), Version: l.version, Daemon: daemon, NodeFile: files + ".node", Network: network, GraceSeconds: 600,
	})
	l.sh(t, fmt.Sprintf("NODE_NAME=%s NODE_IP=%s node serve --spec %s.json > %[3]s.log 2>&1 & echo $! > %[3]s.pid", nodeName, address, files))
	return files
}
