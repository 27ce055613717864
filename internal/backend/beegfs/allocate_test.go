package beegfs

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
)

func TestRecordRefuses(t *testing.T) {
	cases := map[string]struct {
		directories bool
		change      func(in *backend.Input)
		reason      string
		says        string
	}{
		"a management service without a node": {
			change: func(in *backend.Input) { delete(in.Nodes[1].Labels, managementLabel) },
			reason: v1alpha1.ReasonNoNodes, says: "no node matches spec.beegfs.management.nodeSelector (parallelfs.dev/scratch-management=); label the node",
		},
		"two nodes for the one management service": {
			change: func(in *backend.Input) { in.Nodes[2].Labels[managementLabel] = "" },
			reason: v1alpha1.ReasonTooManyNodes, says: "matches oss1, oss2, but a BeeGFS has exactly one management service",
		},
		"a disk of another node for the management service": {
			change: func(in *backend.Input) { in.FileSystem.Spec.BeeGFS.Management.Targets.Devices[0].Node = "oss2" },
			reason: v1alpha1.ReasonInvalidSpec, says: "matches oss1, and spec.beegfs.management.targets.devices names a disk of node oss2",
		},
		"no node for the metadata": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.MetadataServers.NodeSelector = v1alpha1.NodeSelector{"tape": "yes"}
			},
			reason: v1alpha1.ReasonNoNodes, says: "no node matches spec.metadataServers.nodeSelector (tape=yes) and is in spec.metadataServers.targets.devices",
		},
		"a smaller number of metadata nodes than have servers": {
			directories: true,
			change: func(in *backend.Input) {
				in.FileSystem.Spec.MetadataServers.NodeCount = 1
				in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
				usedUp(in, v1alpha1.NumberOfMetadataServer, 3)
				give(in, "oss1", metadataServer(1))
				give(in, "oss2", metadataServer(3))
			},
			reason: v1alpha1.ReasonInvalidSpec,
			says:   "spec.metadataServers.nodeCount is 1, but oss1, oss2 have metadata servers; metadata can't be moved to another server, so set it to 2, or more, again",
		},
		"more metadata nodes than match": {
			directories: true,
			change:      func(in *backend.Input) { in.FileSystem.Spec.MetadataServers.NodeCount = 9 },
			reason:      v1alpha1.ReasonNoNodes, says: "spec.metadataServers.nodeCount is 9, and spec.metadataServers.nodeSelector (parallelfs.dev/scratch-metadata=) matches 2 usable nodes (oss1, oss2); label more nodes, or lower nodeCount to 2",
		},
		"fewer metadata disks than metadata servers on a node": {
			change: func(in *backend.Input) {
				targets := &in.FileSystem.Spec.MetadataServers.Targets
				targets.Devices = targets.Devices[:7]
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "names 3 disks of node oss2 for 4 metadata servers",
		},
		"another number of selected disks than of metadata servers": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 3}}
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "countPerNode is 3 for 4 metadata servers",
		},
		"another number of directories than of metadata servers": {
			directories: true,
			change:      func(in *backend.Input) { in.FileSystem.Spec.MetadataServers.InstancesPerNode = 3 },
			reason:      v1alpha1.ReasonInvalidSpec, says: "has 2 directories for 3 metadata servers",
		},
		"metadata servers that are taken away": {
			directories: true,
			change: func(in *backend.Input) {
				in.FileSystem.Spec.MetadataServers.InstancesPerNode = 1
				in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
				usedUp(in, v1alpha1.NumberOfMetadataServer, 2)
				give(in, "oss1", v1alpha1.NodeMember{Name: "meta-1", Role: v1alpha1.RoleMetadata, Slot: 1, ID: 2})
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "node oss1 has the metadata server meta-1.oss1; metadata can't be moved to another server, so set it to 2 again",
		},
		"a pool without a node": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.StoragePools[1].NodeSelector = v1alpha1.NodeSelector{"tape": "yes"}
			},
			reason: v1alpha1.ReasonNoNodes, says: `storage pool "bulk"`,
		},
		"two copies on one node": {
			directories: true,
			change: func(in *backend.Input) {
				in.FileSystem.Spec.StoragePools[0].Copies = 2
				delete(in.Nodes[2].Labels, storageLabel)
			},
			reason: v1alpha1.ReasonInvalidSpec, says: `storage pool "ssd" wants 2 copies on as many nodes, but has oss1 only`,
		},
		"a pool that is called like the one for drained targets": {
			change: func(in *backend.Input) { in.FileSystem.Spec.StoragePools[1].Name = "draining" },
			reason: v1alpha1.ReasonInvalidSpec, says: `a storage pool can't be named "draining"`,
		},
		"a chunk size that is no power of two": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.StoragePools[0].BeeGFS.Striping.ChunkSize = resource.MustParse("768Ki")
			},
			reason: v1alpha1.ReasonInvalidSpec, says: `spec.storagePools[ssd].beegfs.striping.chunkSize is "768Ki"; BeeGFS takes a power of two`,
		},
		"a chunk size below 64Ki": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.StoragePools[0].BeeGFS.Striping.ChunkSize = resource.MustParse("32Ki")
			},
			reason: v1alpha1.ReasonInvalidSpec, says: `is "32Ki"`,
		},
		"interfaces that a node has not": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.Network = &v1alpha1.NetworkSpec{Interfaces: []v1alpha1.InterfaceName{"ib0", "ib1"}}
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "node oss1 has none of spec.network.interfaces (ib0, ib1); it has cni0, eno1",
		},
		"ports that another BeeGFS uses on the same node": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.BeeGFS.BasePort = new(int32(9000))
				meet(in, neighbor(9063), "oss2")
			},
			reason: v1alpha1.ReasonPortConflict, says: "FileSystem storage/other uses the ports 9063 to 9126 on node oss2 too; set spec.beegfs.basePort at least 64 away from 9063",
		},
		"ports that a filesystem of another type uses on the same node": {
			change: func(in *backend.Input) {
				in.FileSystem.Spec.BeeGFS.BasePort = new(int32(9400))
				meet(in, stranger("oss1", "/elsewhere"))
			},
			reason: v1alpha1.ReasonPortConflict, says: "FileSystem storage/stranger uses the ports 9419 to 9450 on node oss1 too",
		},
		"another base port than the recorded one": {
			change: func(in *backend.Input) {
				in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
				in.FileSystem.Spec.BeeGFS.BasePort = new(int32(9000))
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "spec.beegfs.basePort is 9000, but 8000 was assigned to this filesystem",
		},
		"the directory of the management service inside of a metadata directory": {
			directories: true,
			change: func(in *backend.Input) {
				in.FileSystem.Spec.BeeGFS.Management.Targets.Directories[0] = "/data/meta0/mgmt"
			},
			reason: v1alpha1.ReasonDirectoryConflict, says: "on node oss1, /data/meta0/mgmt is for the management service, and /data/meta0 for meta-0.oss1",
		},
		"a directory of a pool that is a metadata directory": {
			directories: true,
			change:      func(in *backend.Input) { in.FileSystem.Spec.StoragePools[1].Targets.Directories[0] = "/data/meta1" },
			reason:      v1alpha1.ReasonDirectoryConflict, says: "on node oss1, /data/meta1 is for meta-1.oss1, and /data/meta1 for storage-bulk.oss1",
		},
		"a mount path that holds a directory with data": {
			directories: true,
			change:      func(in *backend.Input) { in.FileSystem.Spec.Clients.MountPath = "/data" },
			reason:      v1alpha1.ReasonDirectoryConflict, says: "spec.clients.mountPath",
		},
		"a metadata directory that another BeeGFS uses on the same node": {
			directories: true,
			change: func(in *backend.Input) {
				meet(in, neighbor(9000), "oss2", "/data/meta1")
			},
			reason: v1alpha1.ReasonDirectoryConflict, says: "FileSystem storage/other keeps data in /data/meta1 on node oss2",
		},
		"a storage directory that a filesystem of another type uses on the same node": {
			directories: true,
			change:      func(in *backend.Input) { meet(in, stranger("oss1", "/data/hdd0/below")) },
			reason:      v1alpha1.ReasonDirectoryConflict, says: "FileSystem storage/stranger keeps data in /data/hdd0/below on node oss1",
		},
		"a mount path at which another filesystem is mounted on the same node": {
			change: func(in *backend.Input) {
				other := stranger("n9", "/elsewhere")
				other.Spec.Clients = &v1alpha1.ClientsSpec{NodeSelector: labels(clientLabel), MountPath: "/mnt/scratch"}
				meet(in, other)
			},
			reason: v1alpha1.ReasonDirectoryConflict, says: "FileSystem storage/stranger is mounted at /mnt/scratch on node c1",
		},
		"trap 4: one id for two targets that are taken over": {
			change: func(in *backend.Input) {
				adopt(in, "oss1", v1alpha1.GivenServerID{Name: "storage-ssd", ID: 1, Targets: []v1alpha1.GivenTargetID{{Name: "scratch-oss1-ssd-s0", ID: 101}}})
				adopt(in, "oss2", v1alpha1.GivenServerID{Name: "storage-ssd", ID: 2, Targets: []v1alpha1.GivenTargetID{{Name: "scratch-oss2-ssd-s0", ID: 101}}})
			},
			reason: v1alpha1.ReasonInvalidSpec,
			says:   "the storage target id 101 is that of storage-ssd.oss1/scratch-oss1-ssd-s0 and of storage-ssd.oss2/scratch-oss2-ssd-s0; with one id for two, files are lost",
		},
		"trap 4: an id that is taken over and was assigned to another server": {
			change: func(in *backend.Input) {
				in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
				usedUp(in, v1alpha1.NumberOfMetadataServer, 1)
				give(in, "oss1", metadataServer(1))
				adopt(in, "oss1", v1alpha1.GivenServerID{Name: "meta-1", ID: 1})
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "the metadata server id 1 is that of meta-0.oss1 and of meta-1.oss1",
		},
		"trap 4: another id for what has one": {
			change: func(in *backend.Input) {
				in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
				usedUp(in, v1alpha1.NumberOfMetadataServer, 1)
				give(in, "oss1", metadataServer(1))
				adopt(in, "oss1", v1alpha1.GivenServerID{Name: "meta-0", ID: 7})
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "says that meta-0.oss1 has the metadata server id 7, but 1 was assigned to it already",
		},
		"trap 4: another id for a target that has one": {
			change: func(in *backend.Input) {
				give(in, "oss1", v1alpha1.NodeMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 1, Targets: []v1alpha1.MemberTarget{{Name: "a", ID: 5}}})
				adopt(in, "oss1", v1alpha1.GivenServerID{Name: "storage-ssd", ID: 1, Targets: []v1alpha1.GivenTargetID{{Name: "a", ID: 6}}})
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "says that the target a of storage-ssd.oss1 has the id 6, but 5 was assigned to it already",
		},
		"an entry to take over of a slot that no server can have": {
			change: func(in *backend.Input) { adopt(in, "oss2", v1alpha1.GivenServerID{Name: "meta-16", ID: 7}) },
			reason: v1alpha1.ReasonInvalidSpec, says: "spec.beegfs.adopt[oss2].members[meta-16]: a metadata server is called meta-<slot>, with a slot from 0 to 15",
		},
		"an entry to take over of what has no id": {
			change: func(in *backend.Input) {
				adopt(in, "oss1", v1alpha1.GivenServerID{Name: "management", ID: 1})
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "spec.beegfs.adopt[oss1].members[management]: a server with an id is called meta-<slot> or storage-<pool>",
		},
		"a metadata server to take over whose target has another id": {
			change: func(in *backend.Input) {
				adopt(in, "oss1", v1alpha1.GivenServerID{Name: "meta-0", ID: 7, Targets: []v1alpha1.GivenTargetID{{Name: "a", ID: 8}}})
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "a metadata server has one target, whose id is the server's own, 7",
		},
		"another target when all ids are assigned": {
			change: func(in *backend.Input) {
				usedUp(in, v1alpha1.NumberOfStorageTarget, 65535)
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "all 65535 numbers of a storage target were given",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := cluster("7.4.6")
			if c.directories {
				in = inDirectories("7.4.6")
			}
			c.change(&in)
			_, err := New().Allocate(in)
			var invalid *backend.InvalidSpecError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%v", err)
			g.Expect(invalid.Reason).To(Equal(c.reason), invalid.Message)
			g.Expect(invalid.Message).To(ContainSubstring(c.says))
		})
	}
}

// adopt puts the ids that a server of a node had into spec.beegfs.adopt.
func adopt(in *backend.Input, node string, member v1alpha1.GivenServerID) {
	in.FileSystem.Spec.BeeGFS.Adopt = append(in.FileSystem.Spec.BeeGFS.Adopt,
		v1alpha1.GivenIDs{Node: node, Members: []v1alpha1.GivenServerID{member}})
}

// neighbor returns another BeeGFS of the cluster.
func neighbor(port int32) v1alpha1.FileSystem {
	return v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "storage", UID: "77aa"},
		Spec:       v1alpha1.FileSystemSpec{Type: v1alpha1.BeeGFS, BeeGFS: &v1alpha1.BeeGFSSpec{}},
		Status: v1alpha1.FileSystemStatus{
			Metadata: &v1alpha1.MetadataRecord{Node: "n9", Directory: "/elsewhere/mgmt"},
			BeeGFS:   &v1alpha1.BeeGFSStatus{BasePort: port},
		},
	}
}

// stranger returns a filesystem of another type whose metadata is on a node.
func stranger(node, directory string) v1alpha1.FileSystem {
	return v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: "storage", UID: "88bb"},
		Spec:       v1alpha1.FileSystemSpec{Type: "Stranger"},
		Status:     v1alpha1.FileSystemStatus{Metadata: &v1alpha1.MetadataRecord{Node: node, Directory: directory}},
	}
}

// meet adds another filesystem of the cluster. A BeeGFS gets a metadata server on a node, in these directories.
func meet(in *backend.Input, other v1alpha1.FileSystem, on ...string) {
	in.Others = append(in.Others, other)
	if other.Spec.Type == v1alpha1.BeeGFS {
		its := backend.Input{FileSystem: &other}
		if len(on) > 0 {
			server := metadataServer(1)
			for _, d := range on[1:] {
				server.Targets = append(server.Targets, v1alpha1.MemberTarget{Name: d, ID: 1})
			}
			give(&its, on[0], server)
		}
		in.Claims = append(in.Claims, New().Claims(&other, its.FileSystemNodes))
		return
	}
	claims := backend.NewClaims(&other, backend.PortRange{First: 9419, Count: 32}, "spec.stranger.basePort")
	claims.UseMetadata(*other.Status.Metadata)
	in.Claims = append(in.Claims, claims)
}

func TestNodeCountSetsTheNumberOfNodesWithMetadataServers(t *testing.T) {
	cases := map[string]struct {
		count     int32
		allocated []string
		want      []string
	}{
		"without it, all that match":                        {want: []string{"oss1", "oss2"}},
		"the first by name":                                 {count: 1, want: []string{"oss1"}},
		"those that have servers come first":                {count: 1, allocated: []string{"oss2"}, want: []string{"oss2"}},
		"it grows, and those that have servers stay":        {count: 2, allocated: []string{"oss2"}, want: []string{"oss1", "oss2"}},
		"a node without its label still counts, and stays":  {count: 2, allocated: []string{"gone"}, want: []string{"gone", "oss1"}},
		"all that have servers stay when it is taken away":  {allocated: []string{"gone", "oss2"}, want: []string{"gone", "oss1", "oss2"}},
		"as many as have servers already, and no other one": {count: 2, allocated: []string{"gone", "oss2"}, want: []string{"gone", "oss2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := inDirectories("7.4.6")
			slices.Reverse(in.Nodes)
			in.FileSystem.Spec.MetadataServers.NodeCount = c.count
			if c.allocated != nil {
				in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
			}
			for i, node := range c.allocated {
				give(&in, node, metadataServer(int32(i+1)))
			}
			g.Expect(metadataNodes(recorded(t, in))).To(Equal(c.want))
		})
	}
}

func TestEveryDaemonAndTargetGetsAnIDOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	g.Expect(given(in)).To(Equal([]string{
		"meta-0.oss1 1: ssd-m0=1", "meta-0.oss2 5: ssd-m0=5",
		"meta-1.oss1 2: ssd-m1=2", "meta-1.oss2 6: ssd-m1=6",
		"meta-2.oss1 3: ssd-m2=3", "meta-2.oss2 7: ssd-m2=7",
		"meta-3.oss1 4: ssd-m3=4", "meta-3.oss2 8: ssd-m3=8",
		"storage-bulk.oss1 3: hdd-0=5", "storage-bulk.oss2 4: hdd-0=6",
		"storage-ssd.oss1 1: ssd-s0=1 ssd-s1=2", "storage-ssd.oss2 2: ssd-s0=3 ssd-s1=4",
	}))
	g.Expect(in.FileSystem.Status.BeeGFS.BasePort).To(BeEquivalentTo(8000))
}

func TestAServerGetsItsIDWhenItsDiskIsChosenBecauseTheDiskMaySayIt(t *testing.T) {
	g := NewWithT(t)
	in := cluster("7.4.6")
	disks := in.Targets
	in.Targets = nil
	in = recorded(t, in)
	g.Expect(given(in)).To(BeEmpty())
	g.Expect(in.FileSystem.Status.Metadata).To(BeNil())
	in.Targets = slices.DeleteFunc(slices.Clone(disks), func(t v1alpha1.StorageTarget) bool { return t.Name == "scratch-oss1-ssd-m0" })
	in = recorded(t, in)
	g.Expect(given(in)).To(ContainElement(HavePrefix("meta-1.oss1 ")))
	g.Expect(given(in)).NotTo(ContainElement(HavePrefix("meta-0.oss1 ")))
	in = cluster("7.4.6")
	in = recorded(t, in)
	g.Expect(given(in)).To(ContainElement("meta-0.oss1 1: ssd-m0=1"))
	g.Expect(in.FileSystem.Status.Metadata.Target).To(Equal("scratch-oss1-ssd-mgmt"))
	g.Expect(in.FileSystem.Status.Metadata.Directory).To(Equal("/var/lib/parallelfs/targets/storage.scratch/scratch-oss1-ssd-mgmt/management"))
}

func TestNewNodesAndTargetsGetNewIDs(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	before := given(in)

	in.Nodes = append(in.Nodes, backend.Node{Name: "aaa", IP: "10.0.0.3", Ready: true, Labels: labels(storageLabel)})
	in.FileSystem.Spec.StoragePools[0].Targets.Devices = append(in.FileSystem.Spec.StoragePools[0].Targets.Devices, devices("aaa", "new")...)
	in.Targets = append(in.Targets, disk("aaa", "new", v1alpha1.RoleStorage, "ssd", 0, 1e12), disk("oss1", "ssd-a", v1alpha1.RoleStorage, "ssd", 0, 1e12))
	in = recorded(t, in)
	g.Expect(given(in)).To(ContainElements(
		"storage-ssd.aaa 5: new=7", "storage-ssd.oss1 1: ssd-a=8 ssd-s0=1 ssd-s1=2", "storage-ssd.oss2 2: ssd-s0=3 ssd-s1=4"))
	g.Expect(given(in)).To(ContainElements(before[:8]), "metadata servers keep theirs")
}

func TestAMetadataServerIsAddedBehindTheOthersOfItsNode(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, inDirectories("8.3.1"))
	g.Expect(given(in)).To(ContainElements("meta-0.oss1 1: /data/meta0=1", "meta-1.oss2 4: /data/meta1=4"))
	in.FileSystem.Spec.MetadataServers.InstancesPerNode = 3
	in.FileSystem.Spec.MetadataServers.Targets.Directories = append(in.FileSystem.Spec.MetadataServers.Targets.Directories, "/data/meta2")
	in = recorded(t, in)
	g.Expect(given(in)).To(ContainElements(
		"meta-0.oss1 1: /data/meta0=1", "meta-1.oss2 4: /data/meta1=4", "meta-2.oss1 5: /data/meta2=5", "meta-2.oss2 6: /data/meta2=6"))
}

func TestTrap4AnAssignedIDIsNeverAssignedAgain(t *testing.T) {
	t.Run("trap 4: a target that was drained and taken out leaves its id behind", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		in.Targets = deleteTarget(in.Targets, "scratch-oss2-hdd-0")
		in.FileSystemNodes[1].Spec.Members = slices.DeleteFunc(in.FileSystemNodes[1].Spec.Members, func(m v1alpha1.NodeMember) bool { return m.Name == "storage-bulk" })
		in.Targets = append(in.Targets, disk("oss2", "hdd-1", v1alpha1.RoleStorage, "bulk", 0, 8e12))
		in = recorded(t, in)
		g.Expect(given(in)).To(ContainElement("storage-bulk.oss2 5: hdd-1=7"), "4 and 6 were given before")
	})
	t.Run("trap 4: ids that are taken over are not assigned again", func(t *testing.T) {
		g := NewWithT(t)
		in := cluster("7.4.6")
		adopt(&in, "oss2", v1alpha1.GivenServerID{Name: "meta-0", ID: 1, Targets: []v1alpha1.GivenTargetID{{Name: "scratch-oss2-ssd-m0", ID: 1}}})
		adopt(&in, "oss2", v1alpha1.GivenServerID{Name: "storage-ssd", ID: 3, Targets: []v1alpha1.GivenTargetID{{Name: "scratch-oss2-ssd-s1", ID: 101}}})
		in = recorded(t, in)
		g.Expect(given(in)).To(ContainElements(
			"meta-0.oss1 2: ssd-m0=2", "meta-0.oss2 1: ssd-m0=1", "storage-ssd.oss1 4: ssd-s0=102 ssd-s1=103", "storage-ssd.oss2 3: ssd-s0=104 ssd-s1=101"))
		g.Expect(recordOf(in, "storage-ssd.oss2").Targets[1].Initialized).To(BeNil(), "the directory may be adopted by this FileSystem, once it says that it is this target")
	})
}

func deleteTarget(targets []v1alpha1.StorageTarget, name string) []v1alpha1.StorageTarget {
	var out []v1alpha1.StorageTarget
	for _, t := range targets {
		if t.Name != name {
			out = append(out, t)
		}
	}
	return out
}

func TestMetadataServersThatJoinAreNamedAndTheFirstAreNot(t *testing.T) {
	g := NewWithT(t)
	before := backend.Input{FileSystem: &v1alpha1.FileSystem{}}
	after, target := before, metadataServer(1)
	target.Targets = []v1alpha1.MemberTarget{{Name: "a", ID: 1}}
	give(&after, "n1", target)
	give(&after, "n1", v1alpha1.NodeMember{Name: "meta-1", Role: v1alpha1.RoleMetadata, ID: 2})
	give(&after, "n4", v1alpha1.NodeMember{Name: "storage-bulk", Role: v1alpha1.RoleStorage, ID: 1})
	g.Expect(addedServers(before, after)).To(BeEmpty())
	before.FileSystem = &v1alpha1.FileSystem{Status: v1alpha1.FileSystemStatus{BeeGFS: &v1alpha1.BeeGFSStatus{}}}
	give(&before, "n1", metadataServer(1))
	g.Expect(addedServers(before, after)).To(Equal([]string{"metadata server meta-1.n1 is added"}), "what is known better of the same server waits for nothing")
	in := recorded(t, cluster("7.4.6"))
	again, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Joins).To(BeEmpty())
}

func TestPortsAreTheFirstFreeRange(t *testing.T) {
	g := NewWithT(t)
	in := cluster("7.4.6")
	asks := neighbor(0)
	asks.Status = v1alpha1.FileSystemStatus{}
	asks.Spec.BeeGFS.BasePort = new(int32(8100))
	meet(&in, neighbor(8000), "n7")
	meet(&in, asks)
	in = recorded(t, in)
	g.Expect(in.FileSystem.Status.BeeGFS.BasePort).To(BeEquivalentTo(8192), "8000 is taken, 8064 and 8128 overlap what the other asks for")

	in.Others, in.Claims = nil, nil
	g.Expect(recorded(t, in).FileSystem.Status.BeeGFS.BasePort).To(BeEquivalentTo(8192), "it stays")
}

func TestTheStateOfTheManagementServiceIsRecorded(t *testing.T) {
	t.Run("a target counts as initialized when it is online, and not before", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		in.State = answer(in)
		for i := range in.State.Servers {
			in.State.Servers[i].Online = in.State.Servers[i].Role != v1alpha1.RoleMetadata
		}
		in.State.Targets[0].Online = false
		in = recorded(t, in)
		var open []string
		for _, a := range in.Given() {
			for _, target := range a.Targets {
				if target.Initialized == nil {
					open = append(open, fmt.Sprintf("%s %d", a.Role, target.ID))
				} else {
					g.Expect(target.Initialized.Time).To(BeTemporally("==", in.State.Asked))
				}
			}
		}
		g.Expect(open).To(ConsistOf("Metadata 1", "Metadata 2", "Metadata 3", "Metadata 4", "Metadata 5", "Metadata 6", "Metadata 7", "Metadata 8",
			fmt.Sprintf("Storage %d", in.State.Targets[0].ID)), "a store that was taken over remembers targets that no daemon has looked at")
	})
	t.Run("a target that was recorded as initialized stays so when nothing answers", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		in.State = answer(in)
		in = recorded(t, in)
		before := nodesOf(in)
		in.State = nil
		g.Expect(recorded(t, in).FileSystemNodes).To(Equal(before))
		in.State = &backend.State{Asked: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
		g.Expect(recorded(t, in).FileSystemNodes).To(Equal(before), "and when the management service has forgotten all")
	})
	t.Run("mirrored metadata is recorded once", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		in.State = answer(in)
		in.State.MetadataMirrored = true
		in = recorded(t, in)
		first := in.State.Asked
		g.Expect(in.FileSystem.Status.BeeGFS.MetadataMirrored.Time).To(BeTemporally("==", first))
		in.State.Asked = first.Add(time.Hour)
		in.State.MetadataMirrored = false
		g.Expect(recorded(t, in).FileSystem.Status.BeeGFS.MetadataMirrored.Time).To(BeTemporally("==", first))
	})
	t.Run("a drained target that is to stay after all is not drained any more", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		recordOf(in, "storage-bulk.oss2").Targets[0].Drained = new(metav1.NewTime(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)))
		in = recorded(t, in)
		g.Expect(recordOf(in, "storage-bulk.oss2").Targets[0].Drained).To(BeNil())
	})
	t.Run("nor is one that was put back into its pool by hand, although it is still to be taken out", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		drained := func() *metav1.Time {
			in = recorded(t, in)
			return recordOf(in, "storage-bulk.oss2").Targets[0].Drained
		}
		for i := range in.Targets {
			in.Targets[i].Spec.Remove = in.Targets[i].Name == "scratch-oss2-hdd-0"
		}
		a := recordOf(in, "storage-bulk.oss2")
		a.Targets[0].Drained = new(metav1.NewTime(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)))
		g.Expect(drained()).NotTo(BeNil(), "nobody says otherwise")
		in.State = answer(in)
		for i := range in.State.Targets {
			if in.State.Targets[i].ID == a.Targets[0].ID {
				in.State.Targets[i].PoolID = drain.Pool
			}
		}
		g.Expect(drained()).NotTo(BeNil())
		in.State = answer(in)
		g.Expect(drained()).To(BeNil())
	})
	t.Run("a server without targets after their drains is retired, and serves again with a new disk", func(t *testing.T) {
		g := NewWithT(t)
		in := recorded(t, cluster("7.4.6"))
		in.State = answer(in)
		in = recorded(t, in)
		a := recordOf(in, "storage-bulk.oss2")
		a.Targets[0].Drained = new(metav1.NewTime(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)))
		in.Targets = deleteTarget(in.Targets, "scratch-oss2-hdd-0")
		retired := func() bool {
			in = recorded(t, in)
			return recordOf(in, "storage-bulk.oss2").Retired
		}
		g.Expect(retired()).To(BeFalse(), "BeeGFS still knows it")
		for i, s := range in.State.Servers {
			if s.Name == "storage-bulk.oss2" {
				in.State.Servers = append(in.State.Servers[:i], in.State.Servers[i+1:]...)
				break
			}
		}
		for i, target := range in.State.Targets {
			if target.ID == 6 {
				in.State.Targets = append(in.State.Targets[:i], in.State.Targets[i+1:]...)
				break
			}
		}
		g.Expect(retired()).To(BeTrue())
		in.Targets = append(in.Targets, disk("oss2", "hdd-1", v1alpha1.RoleStorage, "bulk", 0, 8e12))
		g.Expect(retired()).To(BeFalse())
		g.Expect(given(in)).To(ContainElement("storage-bulk.oss2 4: hdd-0=6 hdd-1=7"))
	})
}

func TestPortsOfABeeGFS(t *testing.T) {
	cases := map[string]struct {
		fs   v1alpha1.FileSystem
		want backend.PortRange
	}{
		"it has the 64 that were given to it": {
			fs: v1alpha1.FileSystem{
				Spec:   v1alpha1.FileSystemSpec{BeeGFS: &v1alpha1.BeeGFSSpec{}},
				Status: v1alpha1.FileSystemStatus{BeeGFS: &v1alpha1.BeeGFSStatus{BasePort: 8064}},
			},
			want: backend.PortRange{First: 8064, Count: 64},
		},
		"it asks for some before they are given to it": {
			fs:   v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{BeeGFS: &v1alpha1.BeeGFSSpec{BasePort: new(int32(9000))}}},
			want: backend.PortRange{First: 9000, Count: 64},
		},
		"one that asks for none has none yet": {
			fs: v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{BeeGFS: &v1alpha1.BeeGFSSpec{}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(New().Claims(&c.fs, nil).Ports).To(Equal(c.want))
		})
	}
}
