package moosefs

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/node/spec"
)

// noon is when the disks were proven.
var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// onDisks returns a filesystem with the master's metadata, an SSD pool with a selector and an HDD pool with named disks, on three nodes. n1
// and n2 have targets. The second disk of n2 in the SSD pool waits for an approval.
func onDisks(version string) backend.Input {
	in := everything(version)
	fs := in.FileSystem
	fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Devices: []v1alpha1.DeviceReference{{Node: "n1", ID: "nvme-eui.01"}}}
	fs.Spec.MetadataServers.CPUPinning = &v1alpha1.CPUPinning{
		Mode: v1alpha1.PinningKubeletStatic, CPUs: new(int32(2)), Memory: resource.MustParse("16Gi"),
	}
	fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{MediaType: v1alpha1.SSD, CountPerNode: 2}}
	fs.Spec.StoragePools[0].CPUPinning = &v1alpha1.CPUPinning{
		Mode: v1alpha1.PinningNUMANode, NUMANodes: []int32{0}, MemoryPolicy: v1alpha1.MemoryBind,
	}
	fs.Spec.StoragePools[1].Targets = v1alpha1.TargetsSpec{Devices: []v1alpha1.DeviceReference{
		{Node: "n1", ID: "wwn-0x5000c500a1b2c3d1"}, {Node: "n2", ID: "wwn-0x5000c500a1b2c3d2"},
	}}
	in.Targets = []v1alpha1.StorageTarget{
		aTarget("scratch-mds0-00000001", "n1", ""),
		aTarget("scratch-bulk-0000000a", "n1", "bulk"), aTarget("scratch-ssd-0000000b", "n1", "ssd"), aTarget("scratch-ssd-0000000c", "n1", "ssd"),
		aTarget("scratch-bulk-0000000d", "n2", "bulk"), aTarget("scratch-ssd-0000000e", "n2", "ssd"), aTarget("scratch-ssd-0000000f", "n2", "ssd"),
	}
	waits := &in.Targets[6]
	waits.Status.Provisioned, waits.Status.Plan = nil, &v1alpha1.TargetPlan{Hash: "sha256:77"}
	waits.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAwaitingApproval, LastTransitionTime: metav1.NewTime(noon),
		Message: "approve the plan sha256:77 to lose an ext4",
	}}
	in.Pinnings = map[string]map[string]spec.Pinning{}
	in.Inventories = map[string]v1alpha1.NodeInventoryStatus{}
	for _, node := range []string{"n1", "n2"} {
		in.Pinnings[node] = map[string]spec.Pinning{"chunkserver/ssd": {
			CPUs: "0-7", MemoryNodes: "0", MemoryPolicy: "Bind", Why: "spec.storagePools[ssd].cpuPinning: NUMA node 0",
		}}
		in.Inventories[node] = v1alpha1.NodeInventoryStatus{Daemons: []v1alpha1.DaemonPlacement{
			{Name: "storage/scratch/chunkserver/bulk", CPUs: "0-15", NUMANodes: "0-1", MemoryPolicy: "default"},
			{Name: "storage/scratch/chunkserver/ssd", CPUs: "0-7", NUMANodes: "0", MemoryPolicy: "bind:0"},
			{Name: "storage/scratch/master", CPUs: "8,9", NUMANodes: "1", MemoryPolicy: "default"},
			{Name: "storage/scratch/metalogger", CPUs: "0-15", NUMANodes: "0-1", MemoryPolicy: "default"},
		}}
	}
	return in
}

// aTarget returns a proven disk of a pool, or of the metadata.
func aTarget(name, node, pool string) v1alpha1.StorageTarget {
	role := v1alpha1.RoleStorage
	if pool == "" {
		role = v1alpha1.RoleMetadata
	}
	id := name[len(name)-1:]
	return v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"},
		Spec:       v1alpha1.StorageTargetSpec{Node: node, Role: role, StoragePool: pool, FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "6f1c"}},
		Status: v1alpha1.StorageTargetStatus{
			KernelName:  "sd" + id,
			Provisioned: &v1alpha1.TargetProvisioned{PlanHash: "sha256:1", UUID: "c0ffee00-0000-4000-8000-00000000000" + id, Finished: new(metav1.NewTime(noon))},
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven, LastTransitionTime: metav1.NewTime(noon),
			}},
		},
	}
}

// unmet sets a condition to False.
func unmet(t *v1alpha1.StorageTarget, name, reason, message string, since time.Time) {
	for i := range t.Status.Conditions {
		if t.Status.Conditions[i].Type == name {
			t.Status.Conditions = append(t.Status.Conditions[:i:i], t.Status.Conditions[i+1:]...)
			break
		}
	}
	t.Status.Conditions = append(t.Status.Conditions, metav1.Condition{
		Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since),
	})
}

// objectsOf returns the children of a filesystem that was recorded.
func objectsOf(t *testing.T, in backend.Input) (sets map[string]*appsv1.DaemonSet, maps map[string]*corev1.ConfigMap, secret *corev1.Secret) {
	t.Helper()
	objects, err := New().Members(in)
	if err != nil {
		t.Fatal(err)
	}
	sets, maps = map[string]*appsv1.DaemonSet{}, map[string]*corev1.ConfigMap{}
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			sets[o.Name] = o
		case *corev1.ConfigMap:
			maps[o.Name] = o
		case *corev1.Secret:
			secret = o
		}
	}
	return sets, maps, secret
}

func run(t *testing.T, raw string) spec.Run {
	t.Helper()
	var told spec.Run
	if err := json.Unmarshal([]byte(raw), &told); err != nil {
		t.Fatal(err)
	}
	return told
}

func told(t *testing.T, in backend.Input, node string) map[string]v1alpha1.NodeMember {
	t.Helper()
	return backendtest.Configured(New(), in, node)
}

func diskAt(name string) string { return "/var/lib/parallelfs/targets/storage.scratch/" + name }

func TestADaemonIsConfiguredWithTheDisksOfItsOwnNodeRoleAndPoolOnly(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	in.Targets[1].Spec.Remove = true
	uuid := func(id string) string { return "c0ffee00-0000-4000-8000-00000000000" + id }
	cpus := in.Pinnings["n1"]["chunkserver/ssd"].CPUs
	g.Expect(cpus).NotTo(BeEmpty())
	of := told(t, in, "n1")
	g.Expect(of["chunkserver-ssd"].Pinning).To(HaveField("CPUs", cpus))
	g.Expect(of).To(HaveLen(4))
	g.Expect(of["metalogger"]).To(Equal(v1alpha1.NodeMember{Name: "metalogger", Role: v1alpha1.RoleMetadataBackup}))
	g.Expect(of["master"]).To(Equal(v1alpha1.NodeMember{Name: "master", Role: v1alpha1.RoleMetadata, Targets: []v1alpha1.MemberTarget{
		{Name: "scratch-mds0-00000001", Path: diskAt("scratch-mds0-00000001"), UUID: uuid("1")},
	}}))
	g.Expect(of["chunkserver-bulk"]).To(Equal(v1alpha1.NodeMember{
		Name: "chunkserver-bulk", Role: v1alpha1.RoleStorage, StoragePool: "bulk", Slot: 1, Targets: []v1alpha1.MemberTarget{
			{Name: "scratch-bulk-0000000a", Path: diskAt("scratch-bulk-0000000a"), UUID: uuid("a"), Remove: true},
		}}))
	g.Expect(of["chunkserver-ssd"].Targets).To(Equal([]v1alpha1.MemberTarget{
		{Name: "scratch-ssd-0000000b", Path: diskAt("scratch-ssd-0000000b"), UUID: uuid("b")},
		{Name: "scratch-ssd-0000000c", Path: diskAt("scratch-ssd-0000000c"), UUID: uuid("c")},
	}))
	g.Expect(told(t, in, "n2")["chunkserver-ssd"].Targets[1]).To(Equal(
		v1alpha1.MemberTarget{Name: "scratch-ssd-0000000f", Path: diskAt("scratch-ssd-0000000f")}), "a disk that is no target yet has no UUID, so it is not used")
	g.Expect(told(t, in, "n2")).NotTo(HaveKey("master"))
}

func TestAChunkserverWaitsForItsCPUs(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	g.Expect(told(t, in, "n1")["chunkserver-ssd"].Waits).To(BeEmpty())
	in.Pinnings = nil
	g.Expect(told(t, in, "n1")["chunkserver-ssd"].Waits).To(ContainSubstring("its CPUs on this node"))
	g.Expect(told(t, in, "n1")["chunkserver-bulk"].Waits).To(BeEmpty(), "it asks for none")
}

func TestADiskWithUnfinishedFormattingHasNoUUID(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	in.Targets[1].Status.Provisioned.Finished = nil
	g.Expect(told(t, in, "n1")["chunkserver-bulk"].Targets[0].UUID).To(BeEmpty())
}

func TestPoolsArePlacedWhenTheMasterHasItsDisk(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	jobs := func() []client.Object {
		objects, err := New().Members(in)
		g.Expect(err).NotTo(HaveOccurred())
		return slices.DeleteFunc(objects, func(o client.Object) bool { _, is := o.(*batchv1.Job); return !is })
	}
	g.Expect(jobs()).To(HaveLen(1))
	for i := range in.Targets {
		if in.Targets[i].Spec.Role == v1alpha1.RoleMetadata {
			in.Targets[i].Status.Provisioned = nil
		}
	}
	g.Expect(jobs()).To(BeEmpty(), "there is no master that it could ask")
}

func TestTheMasterGetsItsRecordedDiskAndNoOther(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	g.Expect(*in.FileSystem.Status.Metadata).To(Equal(v1alpha1.MetadataRecord{
		Node: "n1", Target: "scratch-mds0-00000001", Directory: diskAt("scratch-mds0-00000001/master"),
	}))
	other := aTarget("scratch-mds0-00000000", "n1", "")
	in.Targets = append([]v1alpha1.StorageTarget{other}, in.Targets...)
	backendtest.Remember(t, New(), &in)
	g.Expect(in.FileSystem.Status.Metadata.Target).To(Equal("scratch-mds0-00000001"))
	g.Expect(told(t, in, "n1")["master"].Targets).To(HaveExactElements(HaveField("Name", "scratch-mds0-00000001")))

	in.Targets = in.Targets[:1]
	g.Expect(told(t, in, "n1")["master"].Targets).To(BeEmpty(), "it waits; another disk has no metadata")
	in.Targets[0].Spec.Node = "n2"
	g.Expect(told(t, in, "n1")["master"].Targets).To(BeEmpty())
}

func TestNothingIsAssignedBeforeTheDiskOfTheMetadataIsChosen(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	chosen := in.Targets
	in.Targets = nil
	allocation, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(allocation).To(And(HaveField("Waits", true), HaveField("Nodes", BeEmpty()), HaveField("Status.Metadata", BeNil())))
	g.Expect(allocation.TargetNodes.Metadata).To(HaveExactElements("n1"), "that is where the disk is chosen")
	in.Targets = chosen
	backendtest.Remember(t, New(), &in)
	g.Expect(*in.FileSystem.Status.Metadata).To(And(HaveField("Node", "n1"), HaveField("Target", "scratch-mds0-00000001")))
	delete(in.Nodes[0].Labels, masterLabel)
	backendtest.Remember(t, New(), &in)
	g.Expect(in.FileSystem.Status.Metadata.Node).To(Equal("n1"), "it stays")
}

func TestOnDisksADaemonFindsItsDataByItsTarget(t *testing.T) {
	for _, version := range []string{"3.0.117", "4.57.5"} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := onDisks(version)
			backendtest.Remember(t, New(), &in)
			_, maps, secret := objectsOf(t, in)

			master := run(t, string(secret.Data["master.json"]))
			g.Expect(master.Directories).To(BeEmpty())
			g.Expect(master.OnTargets.All).To(BeTrue(), "a master without its metadata must not start")
			g.Expect(master.OnTargets.Initialize.Granted).To(BeTrue())
			g.Expect(master.Files[0].Content).To(ContainSubstring("DATA_PATH = $(TARGET)\n"))
			g.Expect(master.Recover.File).To(Equal("$(TARGET)/metadata.mfs"))
			g.Expect(master.Daemon).To(Equal("master"))
			g.Expect(master.NodeFile).To(Equal("/var/lib/parallelfs/nodes/storage.scratch/node.json"))

			ssd := run(t, maps["scratch-moosefs"].Data["chunkserver-ssd.json"])
			g.Expect(ssd.OnTargets).To(Equal(&spec.OnTargets{Directory: "chunkserver", Data: "data"}), "it starts with the disks that are there")
			g.Expect(ssd.Daemon).To(Equal("chunkserver/ssd"))
			disks := ssd.Files[1]
			g.Expect(disks.Path).To(Equal("/run/parallelfs/mfshdd.cfg"))
			g.Expect(disks.Content).To(BeEmpty())
			g.Expect(disks.Line).To(Equal("$(TARGET)\n"))
			g.Expect(disks.RemoveLine).To(Equal("*$(TARGET)\n"))
		})
	}
}

func TestPodsSeeTheDisksOfTheirOwnFileSystemOnly(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	sets, _, _ := objectsOf(t, in)
	for _, name := range []string{"scratch-master", "scratch-chunkserver-ssd", "scratch-chunkserver-bulk"} {
		pod := sets[name].Spec.Template.Spec
		var fromNode []string
		for _, v := range pod.Volumes {
			if v.HostPath != nil {
				fromNode = append(fromNode, v.HostPath.Path)
			}
		}
		g.Expect(fromNode).To(ConsistOf("/var/lib/parallelfs/storage.scratch", "/var/lib/parallelfs/targets/storage.scratch",
			"/var/lib/parallelfs/nodes/storage.scratch"), name)
		g.Expect(pod.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{
			Name: "targets", MountPath: "/var/lib/parallelfs/targets/storage.scratch", MountPropagation: new(corev1.MountPropagationHostToContainer),
		}), "%s: a disk that is mounted after the start must appear", name)
		g.Expect(pod.Containers[0].VolumeMounts).To(ContainElement(corev1.VolumeMount{
			Name: "node", MountPath: "/var/lib/parallelfs/nodes/storage.scratch", ReadOnly: true,
		}), "%s: as a directory, or it would never change", name)
	}
	for _, name := range []string{"scratch-metalogger", "scratch-client"} {
		for _, v := range sets[name].Spec.Template.Spec.Volumes {
			g.Expect(v.Name).NotTo(Equal("targets"), name)
		}
	}
}

func TestDirectoriesOfAnotherFileSystemDoNotConflictWithDisks(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	other := neighbor(9500, "/data/meta")
	other.Status.Metadata.Target, other.Status.Metadata.Directory = "other-mds0-1", in.FileSystem.Status.Metadata.Directory
	meet(&in, other)
	_, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	other.Spec.MooseFS.BasePort = 9440
	meet(&in, other)
	_, err = New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring("uses the ports 9440 to 9471 on node n1 too")))
}

func TestOnlyNodesWithNamedDevicesBelongToAPoolOfNamedDevices(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	in.Nodes[2].Labels[storageLabel] = ""
	record, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(record.Status.StoragePools).To(HaveExactElements(
		v1alpha1.StoragePoolStatus{Name: "ssd", Slot: 0}, v1alpha1.StoragePoolStatus{Name: "bulk", Slot: 1}))
	g.Expect(record.TargetNodes.Pools).To(Equal(map[string][]string{"ssd": {"n1", "n2", "n3"}, "bulk": {"n1", "n2"}}))
	in.FileSystem.Spec.StoragePools[1].Targets.Devices[0].Node = "n9"
	in.FileSystem.Spec.StoragePools[1].Targets.Devices[1].Node = "n9"
	_, err = New().Allocate(in)
	g.Expect(err).To(MatchError(ContainSubstring(`of storage pool "bulk" and is in its targets.devices`)))
}

func TestAServerInDirectoriesWithoutPinningMayStart(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	g.Expect(told(t, in, "n2")["chunkserver-bulk"]).To(Equal(
		v1alpha1.NodeMember{Name: "chunkserver-bulk", Role: v1alpha1.RoleStorage, StoragePool: "bulk", Slot: 1}))

	in.FileSystem.Spec.StoragePools[1].CPUPinning = &v1alpha1.CPUPinning{Mode: v1alpha1.PinningCPUSet, CPUSets: []v1alpha1.CPUList{"2-3"}}
	in.Pinnings = map[string]map[string]spec.Pinning{"n1": {"chunkserver/bulk": {CPUs: "2-3"}}}
	g.Expect(told(t, in, "n1")["chunkserver-bulk"].Pinning).To(Equal(&v1alpha1.MemberPinning{CPUs: "2-3"}))
	g.Expect(told(t, in, "n2")["chunkserver-bulk"].Waits).To(ContainSubstring("its CPUs on this node"), "a daemon whose CPUs are not known waits for them")
	g.Expect(told(t, in, "n2")["chunkserver-ssd"].Waits).To(BeEmpty())
}

func TestKubeletStaticMakesAGuaranteedPodWithWholeCPUsForTheDaemonAlone(t *testing.T) {
	g := NewWithT(t)
	in := onDisks("4.57.5")
	backendtest.Remember(t, New(), &in)
	sets, _, _ := objectsOf(t, in)
	pod := sets["scratch-master"].Spec.Template.Spec
	g.Expect(pod.Containers).To(HaveLen(2))
	g.Expect(pod.InitContainers).To(HaveLen(1))
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			g.Expect(limit.IsZero()).To(BeFalse(), "%s has a limit of %s", c.Name, name)
			g.Expect(request.Cmp(limit)).To(BeZero(), "%s asks for as much %s as it may have", c.Name, name)
		}
		whole := c.Resources.Limits.Cpu().MilliValue()%1000 == 0
		g.Expect(whole).To(Equal(c.Name == "master"), "%s has %s CPUs", c.Name, c.Resources.Limits.Cpu())
	}
	g.Expect(pod.Containers[0].Resources.Limits.Cpu().Value()).To(BeEquivalentTo(2))
	g.Expect(pod.Containers[0].Resources.Limits.Memory().String()).To(Equal("16Gi"))
	for _, c := range sets["scratch-chunkserver-ssd"].Spec.Template.Spec.Containers {
		g.Expect(c.Resources.Limits).To(BeEmpty(), "a daemon that is bound by node run is not throttled")
	}
}

func TestAChangedPinningRestartsTheDaemonsThatItIsAbout(t *testing.T) {
	cases := map[string]struct {
		change  func(fs *v1alpha1.FileSystem)
		changed string
	}{
		"another NUMA node": {func(fs *v1alpha1.FileSystem) {
			fs.Spec.StoragePools[0].CPUPinning.NUMANodes = []int32{1}
		}, "scratch-chunkserver-ssd"},
		"no pinning any more": {func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].CPUPinning = nil }, "scratch-chunkserver-ssd"},
		"more exclusive CPUs": {func(fs *v1alpha1.FileSystem) { fs.Spec.MetadataServers.CPUPinning.CPUs = new(int32(3)) }, "scratch-master"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := onDisks("4.57.5")
			backendtest.Remember(t, New(), &in)
			before, _, _ := objectsOf(t, in)
			c.change(in.FileSystem)
			after, _, _ := objectsOf(t, in)
			for name := range before {
				same := before[name].Spec.Template.Annotations[backend.TemplateHashAnnotation] == after[name].Spec.Template.Annotations[backend.TemplateHashAnnotation]
				g.Expect(same).To(Equal(name != c.changed), name)
			}
		})
	}
}

func TestThePlacementOfADaemonIsThatOfTheKernel(t *testing.T) {
	g := NewWithT(t)
	seen := New().Observe(healthyOnDisks(t))
	placements := map[string]*v1alpha1.Placement{}
	for _, i := range seen.Servers {
		placements[i.Name] = i.Placement
	}
	g.Expect(placements["chunkserver-ssd.n1"]).To(Equal(&v1alpha1.Placement{
		CPUs: "0-7", WantedCPUs: "0-7", NUMANodes: "0", MemoryPolicy: "bind:0", Devices: []string{"sdb", "sdc"},
	}))
	g.Expect(placements["chunkserver-bulk.n2"]).To(Equal(&v1alpha1.Placement{
		CPUs: "0-15", NUMANodes: "0-1", MemoryPolicy: "default", Devices: []string{"sdd"},
	}))
	g.Expect(placements["master.n1"].Devices).To(Equal([]string{"sd1"}))
	g.Expect(placements["metalogger.n2"].CPUs).To(Equal("0-15"))
	g.Expect(*seen.Pinned).To(HaveField("Reason", v1alpha1.ReasonAsAsked))
}

func TestPinnedNamesDeviationsAndLeavesTheFileSystemReady(t *testing.T) {
	daemon := func(in *backend.Input, node, name string) *v1alpha1.DaemonPlacement {
		for i, d := range in.Inventories[node].Daemons {
			if d.Name == "storage/scratch/"+name {
				return &in.Inventories[node].Daemons[i]
			}
		}
		return nil
	}
	cases := map[string]struct {
		change       func(in *backend.Input)
		reason, says string
	}{
		"a chunkserver on other CPUs": {func(in *backend.Input) { daemon(in, "n2", "chunkserver/ssd").CPUs = "0-15" },
			v1alpha1.ReasonDrifted, "chunkserver-ssd.n2: "},
		"a master without CPUs of its own": {func(in *backend.Input) { daemon(in, "n1", "master").CPUs = "0-15" },
			v1alpha1.ReasonDrifted, "master.n1: it may run on CPUs 0-15, and asks for 2 of its own"},
		"a node without an agent": {func(in *backend.Input) { delete(in.Inventories, "n2") },
			v1alpha1.ReasonAgentMissing, "chunkserver-ssd.n2: no agent runs on node n2"},
		"a daemon that the agent does not see": {func(in *backend.Input) { daemon(in, "n1", "master").Name = "storage/other/master" },
			v1alpha1.ReasonStarting, "master.n1: the agent does not see it run"},
		"CPUs that can't be determined": {func(in *backend.Input) { delete(in.Pinnings, "n1") },
			v1alpha1.ReasonPinningConflict, "chunkserver-ssd.n1: its desired CPUs"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthyOnDisks(t)
			c.change(&in)
			seen := New().Observe(in)
			g.Expect(seen.Problems).To(BeEmpty())
			g.Expect(seen.Pinned.Reason).To(Equal(c.reason))
			g.Expect(seen.Pinned.Message).To(ContainSubstring(c.says))
		})
	}
	t.Run("nobody asks", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(New().Observe(healthy(t)).Pinned).To(BeNil())
	})
}

// healthyOnDisks returns onDisks with every disk proven and in use. The chunkservers started a minute before noon, and MooseFS was queried
// an hour later.
func healthyOnDisks(t *testing.T) backend.Input {
	t.Helper()
	in := onDisks("4.57.5")
	in.Targets[6] = aTarget("scratch-ssd-0000000f", "n2", "ssd")
	backendtest.Remember(t, New(), &in)
	said := healthy(t)
	in.State, in.Pods = said.State, said.Pods
	in.State.Asked = noon.Add(time.Hour)
	in.State.Targets = nil
	for _, target := range in.Targets[1:] {
		ip := map[string]string{"n1": "10.0.0.1", "n2": "10.0.0.2"}[target.Spec.Node]
		port := map[string]int32{"ssd": 9435, "bulk": 9436}[target.Spec.StoragePool]
		in.State.Targets = append(in.State.Targets, backend.Target{
			IP: ip, Port: port, Path: diskAt(target.Name) + "/chunkserver/data/", Online: true, Status: "ok", CapacityBytes: 1 << 40,
		})
	}
	for i := range in.Pods {
		in.Pods[i].Started, in.Pods[i].Seen = noon.Add(-time.Minute), noon.Add(-time.Minute)
		in.Pods[i].Name = types.NamespacedName{Namespace: "storage", Name: strings.Join([]string{in.Pods[i].Component, in.Pods[i].StoragePool, in.Pods[i].Node}, "-")}
	}
	return in
}

// drop removes a disk from MooseFS's list.
func drop(in *backend.Input, name string) {
	for i, s := range in.State.Targets {
		if strings.Contains(s.Path, name) {
			in.State.Targets = append(in.State.Targets[:i:i], in.State.Targets[i+1:]...)
			return
		}
	}
}

// lastOf returns MooseFS's entry for the last disk of the SSD pool on n2.
func lastOf(in *backend.Input) *backend.Target {
	for i, s := range in.State.Targets {
		if strings.Contains(s.Path, "0000000f") {
			return &in.State.Targets[i]
		}
	}
	return nil
}

func statusOf(seen backend.Observation, name string) backend.TargetStatus {
	for _, s := range seen.Targets {
		if s.StorageTarget == name {
			return s
		}
	}
	return backend.TargetStatus{}
}

func TestOnDisksEveryStorageTargetIsATarget(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Restarts).To(BeEmpty())
	g.Expect(seen.Summary.Targets).To(Equal("6/6"))
	g.Expect(statusOf(seen, "scratch-ssd-0000000e")).To(Equal(backend.TargetStatus{
		Node: "n2", StoragePool: "ssd", Directory: diskAt("scratch-ssd-0000000e"),
		StorageTarget: "scratch-ssd-0000000e", Online: true, CapacityBytes: 1 << 40, Inodes: 1000,
	}))
	g.Expect(filepath.Dir(seen.Targets[0].Directory)).To(Equal(spec.TargetsDirectory("storage", "scratch")))
}

func TestProblemsOfDisksAreNamed(t *testing.T) {
	missing := func(in *backend.Input, i int) {
		unmet(&in.Targets[i], v1alpha1.ConditionReady, v1alpha1.ReasonTargetMissing, "no disk has the id wwn-0x5", noon)
	}
	cases := map[string]struct {
		change       func(in *backend.Input)
		reason, says string
	}{
		"a disk that is not there": {func(in *backend.Input) {
			missing(in, 6)
			drop(in, "0000000f")
		}, v1alpha1.ReasonTargetsNotReady, "waiting for 1 disk: scratch-ssd-0000000f on node n2 in pool ssd (its disk: TargetMissing: no disk has the id wwn-0x5)"},
		"a disk that no agent has looked at": {func(in *backend.Input) {
			in.Targets[6].Status.Conditions = nil
			drop(in, "0000000f")
		}, v1alpha1.ReasonTargetsNotReady, "its disk: no agent has looked at it yet; node n2 needs the label parallelfs.dev/agent"},
		"a node whose disks are not chosen": {func(in *backend.Input) {
			in.Targets = in.Targets[:5]
		}, v1alpha1.ReasonTargetsNotReady, "waiting for 1 disk: one in pool ssd on node n2"},
		"a proven disk that the chunkserver does not use": {func(in *backend.Input) { drop(in, "0000000f") },
			v1alpha1.ReasonTargetsMissing, "scratch-ssd-0000000f in pool ssd (the chunkserver does not use this disk"},
		"a damaged disk": {func(in *backend.Input) {
			lastOf(in).Online, lastOf(in).Status = false, "damaged"
		}, v1alpha1.ReasonTargetsMissing, "MooseFS reports: damaged"},
		"the metadata's disk is not there": {func(in *backend.Input) {
			missing(in, 0)
			in.State, in.StateError = nil, "connection refused"
		}, v1alpha1.ReasonTargetsNotReady, "scratch-mds0-00000001 on node n1 for the metadata (its disk: TargetMissing: no disk has the id wwn-0x5)"},
		"the metadata's StorageTarget was deleted": {func(in *backend.Input) { in.Targets = in.Targets[1:] },
			v1alpha1.ReasonTargetsNotReady, "its StorageTarget is gone; the metadata is on that disk alone"},
		"the metadata's disk is not chosen": {func(in *backend.Input) {
			in.FileSystem.Status.Metadata.Target, in.FileSystem.Status.Metadata.Directory = "", ""
			in.State, in.StateError = nil, "connection refused"
		}, v1alpha1.ReasonTargetsNotReady, "one for the metadata on node n1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthyOnDisks(t)
			c.change(&in)
			seen := New().Observe(in)
			g.Expect(seen.Problems).NotTo(BeEmpty())
			g.Expect(seen.Problems[0].Reason).To(Equal(c.reason))
			g.Expect(seen.Problems[0].Message).To(ContainSubstring(c.says))
		})
	}
}

func TestTheOtherDisksOfANodeGoOnWithoutTheOneThatIsMissing(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	unmet(&in.Targets[6], v1alpha1.ConditionReady, v1alpha1.ReasonTargetMissing, "gone", noon)
	drop(&in, "0000000f")
	seen := New().Observe(in)
	g.Expect(seen.Summary.Targets).To(Equal("5/6"))
	g.Expect(statusOf(seen, "scratch-ssd-0000000e").Online).To(BeTrue())
	g.Expect(seen.Restarts).To(BeEmpty(), "a restart would not bring it back")
}
