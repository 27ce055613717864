package beegfs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	managementLabel = "parallelfs.dev/scratch-management"
	metadataLabel   = "parallelfs.dev/scratch-metadata"
	storageLabel    = "parallelfs.dev/scratch-storage"
	clientLabel     = "parallelfs.dev/scratch-client"
)

func labels(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = ""
	}
	return out
}

// versions are those of the golden files.
var versions = New().Versions()

// cluster is a filesystem on two servers of two sockets each. Each has four metadata servers, every other one on the second socket, and
// each metadata server has its own SSD. There are a pool of SSDs, one of hard disks, and a client.
func cluster(version string) backend.Input {
	in := backend.Input{Chosen: true,
		FileSystem: &v1alpha1.FileSystem{
			ObjectMeta: metav1.ObjectMeta{
				Name: "scratch", Namespace: "storage", UID: "6f1c", Generation: 1,
				CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)),
			},
			Spec: v1alpha1.FileSystemSpec{
				Type: v1alpha1.BeeGFS, Version: version,
				BeeGFS: &v1alpha1.BeeGFSSpec{
					TargetChooser: v1alpha1.ChooserRandomRobin,
					Management: v1alpha1.BeeGFSManagement{
						NodeSelector: labels(managementLabel), Targets: v1alpha1.TargetsSpec{Devices: devices("oss1", "ssd-mgmt")},
					},
					Config: v1alpha1.BeeGFSConfig{
						Storage: v1alpha1.Options{"connMaxInternodeNum": "24"}, Client: v1alpha1.Options{"tuneFileCacheType": "native"},
					},
				},
				MetadataServers: v1alpha1.MetadataSpec{
					NodeSelector: labels(metadataLabel), InstancesPerNode: 4, BeeGFS: &v1alpha1.BeeGFSMetadata{WorkerThreads: new(int32(40))},
					CPUPinning: &v1alpha1.CPUPinning{Mode: v1alpha1.PinningNUMANode, NUMANodes: []int32{0, 1}, MemoryPolicy: v1alpha1.MemoryPreferred},
					Targets: v1alpha1.TargetsSpec{
						Devices: append(devices("oss1", "ssd-m0", "ssd-m1", "ssd-m2", "ssd-m3"), devices("oss2", "ssd-m0", "ssd-m1", "ssd-m2", "ssd-m3")...),
						Format:  metadataFormat(),
					},
				},
				StoragePools: []v1alpha1.StoragePoolSpec{
					{
						Name: "ssd", NodeSelector: labels(storageLabel), Copies: 1,
						BeeGFS: &v1alpha1.BeeGFSPool{
							WorkerThreads: new(int32(14)), Striping: &v1alpha1.StripingSpec{ChunkSize: resource.MustParse("1Mi"), TargetsPerFile: 4},
						},
						Targets: v1alpha1.TargetsSpec{Devices: append(devices("oss1", "ssd-s0", "ssd-s1"), devices("oss2", "ssd-s0", "ssd-s1")...)},
					},
					{
						Name: "bulk", NodeSelector: labels(storageLabel), Copies: 1,
						Targets: v1alpha1.TargetsSpec{Devices: append(devices("oss1", "hdd-0"), devices("oss2", "hdd-0")...)},
					},
				},
				Clients: &v1alpha1.ClientsSpec{
					NodeSelector: labels(clientLabel), MountPath: "/mnt/scratch", MountOptions: []v1alpha1.MountOption{"noatime"},
				},
			},
		},
		Nodes: []backend.Node{
			{Name: "c1", IP: "10.0.0.9", Ready: true, Labels: labels(clientLabel)},
			{Name: "oss1", IP: "10.0.0.1", Ready: true, Labels: labels(managementLabel, metadataLabel, storageLabel)},
			{Name: "oss2", IP: "10.0.0.2", Ready: true, Labels: labels(metadataLabel, storageLabel)},
		},
		Inventories: map[string]v1alpha1.NodeInventoryStatus{
			"c1": inventory("10.0.0.9"), "oss1": inventory("10.0.0.1"), "oss2": inventory("10.0.0.2"),
		},
		Pinnings: map[string]map[string]spec.Pinning{},
		Images: backend.Images{
			Node: "node:1", PullPolicy: "IfNotPresent",
			Daemons: map[string]string{
				"beegfs-mgmtd": "ghcr.io/thinkparq/beegfs-mgmtd", "beegfs-meta": "ghcr.io/thinkparq/beegfs-meta",
				"beegfs-storage": "ghcr.io/thinkparq/beegfs-storage", "beegfs-tools-" + version: "tools:" + version,
			},
		},
		Password: "correct-horse-battery-staple", ProbeKey: "tr0ub4dor-and-3",
	}
	in.Targets = append(in.Targets, disk("oss1", "ssd-mgmt", v1alpha1.RoleManagement, "", 0, 100<<30))
	for _, node := range []string{"oss1", "oss2"} {
		in.Pinnings[node] = map[string]spec.Pinning{}
		for slot := range int32(4) {
			in.Targets = append(in.Targets, disk(node, fmt.Sprintf("ssd-m%d", slot), v1alpha1.RoleMetadata, "", slot, 400e9))
			in.Pinnings[node][metaDaemon(slot)] = spec.Pinning{
				CPUs: []string{"0-15", "16-31"}[slot%2], MemoryNodes: fmt.Sprint(slot % 2), MemoryPolicy: "Preferred",
				Why: fmt.Sprintf("spec.metadataServers.cpuPinning: NUMA node %d", slot%2),
			}
		}
		in.Targets = append(in.Targets,
			disk(node, "ssd-s0", v1alpha1.RoleStorage, "ssd", 0, 1600e9), disk(node, "ssd-s1", v1alpha1.RoleStorage, "ssd", 0, 1600e9),
			disk(node, "hdd-0", v1alpha1.RoleStorage, "bulk", 0, 8e12))
	}
	return in
}

func metadataFormat() *v1alpha1.FormatSpec {
	return &v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-i", "2048", "-I", "512"}}
}

func devices(node string, ids ...string) []v1alpha1.DeviceReference {
	var out []v1alpha1.DeviceReference
	for _, id := range ids {
		out = append(out, v1alpha1.DeviceReference{Node: node, ID: v1alpha1.DeviceID(id)})
	}
	return out
}

// disk returns a StorageTarget that the agent has proven.
func disk(node, id string, role v1alpha1.Role, pool string, instance int32, size int64) v1alpha1.StorageTarget {
	format := v1alpha1.FormatSpec{FSType: v1alpha1.XFS}
	if role == v1alpha1.RoleMetadata {
		format = *metadataFormat()
	}
	name := fmt.Sprintf("scratch-%s-%s", node, id)
	when := metav1.NewTime(time.Date(2026, 11, 1, 12, 5, 0, 0, time.UTC))
	return v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"},
		Spec: v1alpha1.StorageTargetSpec{
			Node: node, Role: role, StoragePool: pool, Slot: instance, Format: format,
			Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID(id), SizeBytes: size},
		},
		Status: v1alpha1.StorageTargetStatus{
			Provisioned: &v1alpha1.TargetProvisioned{PlanHash: "sha256:1", UUID: "uuid-of-" + name, Finished: &when},
			Conditions:  []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven, LastTransitionTime: when}},
		},
	}
}

func inventory(address string) v1alpha1.NodeInventoryStatus {
	return v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{
		{Name: "cni0", Addresses: []string{"10.244.0.1/24"}, State: "up"}, {Name: "eno1", Addresses: []string{address + "/24"}, State: "up"},
	}}
}

// inDirectories is the same filesystem for evaluation: in directories of the nodes, without pinned CPUs.
func inDirectories(version string) backend.Input {
	in := cluster(version)
	directories := func(names ...v1alpha1.DirectoryPath) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Directories: names}
	}
	fs := in.FileSystem
	fs.Spec.BeeGFS.Management.Targets = directories("/data/mgmt")
	fs.Spec.MetadataServers.InstancesPerNode, fs.Spec.MetadataServers.CPUPinning = 2, nil
	fs.Spec.MetadataServers.Targets = directories("/data/meta0", "/data/meta1")
	fs.Spec.StoragePools[0].Targets = directories("/data/ssd0", "/data/ssd1")
	fs.Spec.StoragePools[1].Targets = directories("/data/hdd0")
	in.Targets, in.Pinnings = nil, nil
	return in
}

// answer is a State in which every recorded server and target is online.
func answer(in backend.Input) *backend.State {
	state := &backend.State{Asked: time.Date(2026, 11, 1, 13, 0, 0, 0, time.UTC), Version: in.FileSystem.Spec.Version}
	for _, a := range in.Given() {
		state.Servers = append(state.Servers, backend.Server{Role: a.Role, ID: a.ID, Name: a.Server(), Online: true})
		for _, t := range a.Targets {
			if a.Role == v1alpha1.RoleStorage {
				state.Targets = append(state.Targets, backend.Target{Role: a.Role, ID: t.ID, ServerID: a.ID, PoolID: poolID(a.Slot), Online: true, Consistency: "Good"})
			}
		}
	}
	return state
}

// given returns the recorded ids, one line for each server, such as "meta-0.oss1 1: scratch-oss1-ssd-m0=1", sorted by name.
func given(in backend.Input) []string {
	var out []string
	for _, a := range in.Given() {
		line := fmt.Sprintf("%s %d:", a.Server(), a.ID)
		for _, t := range a.Targets {
			line += fmt.Sprintf(" %s=%d", strings.TrimPrefix(t.Name, "scratch-"+a.Node+"-"), t.ID)
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// look returns the view of a filesystem in its present state.
func look(in backend.Input) *view { return viewOf(in.Indexed()) }

// workOf returns the work that is left in a filesystem.
func workOf(in backend.Input) work { return look(in).workLeft() }

// give records the ids of a server.
func give(in *backend.Input, node string, member v1alpha1.NodeMember) {
	records := assign.NewRecords(*in)
	records.Change(node, member)
	in.FileSystemNodes = records.All()
}

// usedUp sets the highest number of a kind that the status has as assigned.
func usedUp(in *backend.Input, kind v1alpha1.NumberKind, highest int32) {
	in.FileSystem.Status.Given = &v1alpha1.GivenNumbers{Highest: []v1alpha1.HighestNumber{{Kind: kind, Number: highest}}}
}

// metadataServer is the first metadata server of a node.
func metadataServer(id int32) v1alpha1.NodeMember {
	return v1alpha1.NodeMember{Name: metaMemberName(0), Role: v1alpha1.RoleMetadata, ID: id}
}

// recordOf returns the record of a server, to be changed in place; the name is that in the status.
func recordOf(in backend.Input, instance string) *v1alpha1.NodeMember {
	for i := range in.FileSystemNodes {
		n := &in.FileSystemNodes[i]
		for j := range n.Spec.Members {
			if n.Spec.Members[j].Name+"."+n.Spec.Node == instance {
				return &n.Spec.Members[j]
			}
		}
	}
	return nil
}

// nodesOf returns copies of the FileSystemNodes of a filesystem.
func nodesOf(in backend.Input) []v1alpha1.FileSystemNode {
	out := make([]v1alpha1.FileSystemNode, len(in.FileSystemNodes))
	for i := range in.FileSystemNodes {
		out[i] = *in.FileSystemNodes[i].DeepCopy()
	}
	return out
}
