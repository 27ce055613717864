package experiments_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/experiments"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

var update = flag.Bool("update", false, "write the golden files anew")

const gib = int64(1) << 30

// bay is a number of disks of one kind in each node with certain roles.
type bay struct {
	roles []string
	count int
	// kind is the prefix of their names in /dev/disk/by-id.
	kind  string
	media v1alpha1.MediaType
	size  int64
}

// machines is the cluster of a paper: the number of nodes in each role, and their disks. The nodes of a role are the first ones without
// another role. The roles in alike use the same nodes as their key.
type machines struct {
	roles map[string]int
	alike map[string]string
	bays  []bay
}

// prefix returns the prefix of the labels of an experiment.
func prefix(fs *v1alpha1.FileSystem) string { return "parallelfs.dev/" + fs.Namespace + "-" }

// assemble makes the input of a backend: the nodes with their labels, addresses, disks and sockets.
func (m machines) assemble(fs *v1alpha1.FileSystem) backend.Input {
	in := backend.Input{Chosen: true, FileSystem: fs, Inventories: map[string]v1alpha1.NodeInventoryStatus{}}
	fs.UID = "6f1c0a52-0000-4000-8000-000000000001"
	fs.CreationTimestamp = metav1.Now()
	for _, role := range slices.Sorted(maps.Keys(m.roles)) {
		for range m.roles[role] {
			number := len(in.Nodes) + 1
			node := backend.Node{Name: fmt.Sprintf("node%02d", number), IP: fmt.Sprintf("10.0.0.%d", number), Ready: true, Labels: map[string]string{prefix(fs) + role: ""}}
			roles := []string{role}
			for other, same := range m.alike {
				if same == role {
					node.Labels[prefix(fs)+other] = ""
					roles = append(roles, other)
				}
			}
			in.Nodes = append(in.Nodes, node)
			in.Inventories[node.Name] = m.inventory(node, roles)
		}
	}
	return in
}

func (m machines) inventory(node backend.Node, roles []string) v1alpha1.NodeInventoryStatus {
	inventory := v1alpha1.NodeInventoryStatus{
		NetworkInterfaces: []v1alpha1.NetworkInterface{{Name: "ib0", Addresses: []string{node.IP + "/24"}}},
		CPU:               v1alpha1.CPUStatus{NUMANodes: []v1alpha1.NUMANode{{ID: 0, CPUs: "0-9,20-29"}, {ID: 1, CPUs: "10-19,30-39"}}},
	}
	for _, b := range m.bays {
		if !slices.ContainsFunc(b.roles, func(r string) bool { return slices.Contains(roles, r) }) {
			continue
		}
		for i := range b.count {
			id := fmt.Sprintf("%s%s-%s-%d", b.kind, node.Name, strings.ToLower(string(b.media)), len(inventory.BlockDevices))
			kind := "disk"
			if strings.HasPrefix(b.kind, "md-") {
				kind = "raid0"
			}
			inventory.BlockDevices = append(inventory.BlockDevices, v1alpha1.BlockDevice{
				KernelName: fmt.Sprintf("sd%c%d", 'a'+len(inventory.BlockDevices), i), Type: kind, IDs: []string{id}, Serial: "serial-" + id, SizeBytes: b.size, MediaType: b.media,
			})
		}
	}
	return inventory
}

// provision advances a FileSystem until every daemon has its disks, as the controller does.
func provision(g *WithT, in backend.Input) backend.Input {
	b := beegfs.New()
	fs := in.FileSystem
	record := func() plan.TargetNodes {
		allocation, err := b.Allocate(in)
		g.Expect(err).NotTo(HaveOccurred())
		fs.Status, in.FileSystemNodes = allocation.Status, assign.WithRecords(in.FileSystemNodes, allocation.Nodes)
		return allocation.TargetNodes
	}
	selection := plan.Select(plan.SelectInput{FileSystem: fs, TargetNodes: record(), Inventories: in.Inventories})
	g.Expect(selection.Problems).To(BeEmpty())
	in.Targets = selection.Targets
	record()
	var problems []plan.Problem
	in.Pinnings, problems = plan.Pin(plan.PinInput{FileSystem: fs.Name, Daemons: b.PinDaemons(fs, in.FileSystemNodes), Inventories: in.Inventories})
	g.Expect(problems).To(BeEmpty())
	// The store exists, and no server has registered yet.
	fs.Status.Metadata.Initialized = fs.CreationTimestamp.DeepCopy()
	in.State = &backend.State{Asked: fs.CreationTimestamp.Time}
	return in
}

// fileSystemOf returns the filesystem of an experiment, or the variant of a suite after the slash.
func fileSystemOf(t *testing.T, name string, reduced bool) v1alpha1.FileSystem {
	t.Helper()
	g := NewWithT(t)
	experiment, variant, _ := strings.Cut(name, "/")
	e := load(t, experiment)
	if reduced {
		g.Expect(experiments.Reduce(&e)).To(Succeed())
	}
	variants, err := e.Variants()
	g.Expect(err).NotTo(HaveOccurred())
	for _, v := range variants {
		if v.Name == variant {
			return v.FileSystem
		}
	}
	t.Fatalf("%s has no variant %q", experiment, variant)
	return v1alpha1.FileSystem{}
}

// servers2015 returns the servers of the paper of 2015: four SSDs each, single or as one RAID 0.
func servers2015(roles map[string]int, single, raid []string) machines {
	return machines{roles: roles, bays: []bay{
		{roles: single, count: 4, kind: "ata-INTEL_SSD-", media: v1alpha1.SSD, size: 238 * gib},
		{roles: raid, count: 1, kind: "md-uuid-", media: v1alpha1.SSD, size: 952 * gib},
	}}
}

// paper is the cluster of a paper, with its statements about the daemons: the beginnings of lines in a daemon's file.
type paper struct {
	machines
	says map[string][]string
	// metadata and storage count the servers.
	metadata, storage int
}

var published = map[string]paper{
	"beegfs-2015-single-raid0": {
		servers2015(map[string]int{"management": 1, "metadata": 1, "storage": 1, "client": 4}, nil, []string{"metadata", "storage"}),
		map[string][]string{"meta-0/beegfs-meta.conf": {"tuneNumWorkers = 160", "connUseRDMA = true", "storeAllowFirstRunInit = false"}}, 1, 1,
	},
	"beegfs-2015-multi-mds/4-instances": {
		servers2015(map[string]int{"management": 1, "metadata": 1, "storage": 1, "client": 4}, []string{"metadata"}, []string{"storage"}),
		map[string][]string{"meta-0/beegfs-meta.conf": {"tuneNumWorkers = 40", "tuneBindToNumaZone ="}, "meta-3/beegfs-meta.conf": {"tuneNumWorkers = 40"}}, 4, 1,
	},
	"beegfs-2015-scale-out/20-nodes": {
		servers2015(map[string]int{"management": 1, "metadata": 20, "storage": 1, "client": 18}, []string{"metadata"}, []string{"storage"}),
		map[string][]string{"meta-2/beegfs-meta.conf": {"tuneNumWorkers = 80"}}, 80, 1,
	},
	"beegfs-2015-fixed": {
		servers2015(map[string]int{"management": 1, "metadata": 4, "storage": 16, "client": 19}, []string{"metadata"}, []string{"storage"}),
		map[string][]string{"meta-1/beegfs-meta.conf": {"tuneNumWorkers = 80"}}, 16, 16,
	},
	"netapp-tr4782": {
		machines{roles: map[string]int{"metadata": 1, "storage": 2, "client": 2}, bays: []bay{
			{roles: []string{"metadata"}, count: 1, kind: "dm-uuid-mpath-", media: v1alpha1.SSD, size: 400 * gib},
			{roles: []string{"storage"}, count: 2, kind: "dm-uuid-mpath-", media: v1alpha1.SSD, size: 4096 * gib},
			{roles: []string{"storage"}, count: 5, kind: "dm-uuid-mpath-", media: v1alpha1.HDD, size: 44000 * gib},
			{roles: []string{"storage"}, count: 5, kind: "dm-uuid-mpath-", media: v1alpha1.SSD, size: 3 * gib},
		}},
		map[string][]string{
			"management/beegfs-mgmtd.conf":     {"tuneStorageSpaceLowLimit = 1T", "tuneStorageSpaceEmergencyLimit = 20G", "storeAllowFirstRunInit = false"},
			"meta-0/beegfs-meta.conf":          {"tuneTargetChooser = randomrobin"},
			"storage-ssd/beegfs-storage.conf":  {"connMaxInternodeNum = 24", "storeAllowFirstRunInit = false"},
			"storage-bulk/beegfs-storage.conf": {"connMaxInternodeNum = 24"},
			"client/beegfs-client.conf":        {"connMaxInternodeNum = 24"},
			"storage-bulk/interfaces":          {"ib0"},
		}, 1, 4,
	},
}

// variants returns the six filesystems of the first scenario of 2015, by manifest.
func variants() map[string]paper {
	out := map[string]paper{}
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		for _, media := range []string{"ssd", "hdd"} {
			out["beegfs-2015-backend/"+fsType+"-"+media] = paper{
				machines{roles: map[string]int{"server": 1, "client": 4}, bays: []bay{
					{roles: []string{"server"}, count: 1, kind: "ata-INTEL_SSDSC2MH250A2-", media: v1alpha1.SSD, size: 232 * gib},
					{roles: []string{"server"}, count: 1, kind: "scsi-SAS-", media: v1alpha1.HDD, size: 280 * gib},
				}},
				map[string][]string{"meta-0/beegfs-meta.conf": {"connUseRDMA = true"}}, 1, 1,
			}
		}
	}
	return out
}

func TestTheManifestsDescribeTheBeeGFSOfThePapersWhole(t *testing.T) {
	papers := variants()
	maps.Copy(papers, published)
	for name, paper := range papers {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := fileSystemOf(t, name, false)
			in := provision(g, paper.assemble(&fs))
			metadata, storage := 0, 0
			said := map[string]string{}
			for _, node := range in.Nodes {
				files, err := beegfs.Files(in, node.Name)
				g.Expect(err).NotTo(HaveOccurred())
				for file, content := range files {
					switch path.Base(file) {
					case "beegfs-meta.conf":
						metadata++
					case "beegfs-storage.conf":
						storage++
					}
					said[file] = content
				}
			}
			g.Expect(metadata).To(Equal(paper.metadata), "metadata servers")
			g.Expect(storage).To(Equal(paper.storage), "storage servers")
			for file, lines := range paper.says {
				for _, line := range lines {
					g.Expect(strings.Split(said[file], "\n")).To(ContainElement(HavePrefix(line)), "%s says %q", file, line)
				}
			}
			for _, target := range in.Targets {
				g.Expect(plan.RefusedMkfsOptions(target.Spec.Format)).To(BeEmpty(), target.Name)
			}
		})
	}
}

func TestThePinningsAreThoseOfThePaper(t *testing.T) {
	g := NewWithT(t)
	fs := fileSystemOf(t, "beegfs-2015-multi-mds/4-instances", false)
	in := provision(g, published["beegfs-2015-multi-mds/4-instances"].assemble(&fs))
	for node, daemons := range in.Pinnings {
		var placed []string
		for slot := range 4 {
			placed = append(placed, daemons[fmt.Sprintf("meta/%d", slot)].CPUs)
		}
		g.Expect(placed).To(Equal([]string{"0-9,20-29", "10-19,30-39", "0-9,20-29", "10-19,30-39"}), node)
	}
	g.Expect(in.Pinnings).To(HaveLen(1))
}

func TestTheDisksOfTheTechnicalReportAreMadeAsDescribed(t *testing.T) {
	g := NewWithT(t)
	fs := fileSystemOf(t, "netapp-tr4782", false)
	in := provision(g, published["netapp-tr4782"].assemble(&fs))
	pools := map[string][]v1alpha1.StorageTarget{}
	for _, target := range in.Targets {
		pools[target.Spec.StoragePool] = append(pools[target.Spec.StoragePool], target)
	}
	g.Expect(pools["ssd"]).To(HaveLen(4))
	g.Expect(pools["bulk"]).To(HaveLen(10))
	g.Expect(pools[""]).To(HaveLen(1), "the metadata")
	for _, target := range pools["bulk"] {
		g.Expect(target.Spec.LogDevice).NotTo(BeNil(), target.Name)
		g.Expect(target.Spec.LogDevice.SizeBytes).To(Equal(3*gib), "the log is on a volume for logs")
		g.Expect(*target.Spec.Queue.MaxSectorsKB).To(Equal(int32(1024)))
	}
	for _, target := range pools["ssd"] {
		g.Expect(target.Spec.Device.SizeBytes).To(Equal(4096*gib), "the data is on none of the volumes for logs")
	}
}

// small holds the disks of the reduced experiments, as the end-to-end tests assign them to three nodes.
var small = map[string]machines{
	"beegfs-2015-backend/ext4-hdd":      {roles: map[string]int{"server": 1}, bays: []bay{{roles: []string{"server"}, count: 1, kind: "ata-", media: v1alpha1.HDD, size: gib / 2}}},
	"beegfs-2015-backend/ext4-ssd":      {roles: map[string]int{"server": 1}, bays: []bay{{roles: []string{"server"}, count: 1, kind: "ata-", media: v1alpha1.SSD, size: gib / 2}}},
	"beegfs-2015-single-raid0":          smallServers(1, map[string]int{"management": 1, "metadata": 1, "storage": 1}),
	"beegfs-2015-multi-mds/2-instances": smallServers(2, map[string]int{"management": 1, "metadata": 1, "storage": 1}),
	"beegfs-2015-scale-out/02-nodes":    smallServers(4, map[string]int{"management": 1, "metadata": 2, "storage": 1}),
	"beegfs-2015-fixed":                 smallServers(4, map[string]int{"management": 1, "metadata": 1, "storage": 2}),
	"netapp-tr4782": {roles: map[string]int{"metadata": 1, "storage": 2}, bays: []bay{
		{roles: []string{"metadata"}, count: 1, kind: "ata-", media: v1alpha1.SSD, size: gib / 2},
		{roles: []string{"storage"}, count: 2, kind: "ata-", media: v1alpha1.SSD, size: gib / 2},
		{roles: []string{"storage"}, count: 2, kind: "ata-", media: v1alpha1.HDD, size: gib / 2},
		{roles: []string{"storage"}, count: 2, kind: "ata-", media: v1alpha1.SSD, size: gib / 10},
	}},
}

func smallServers(metadata int, roles map[string]int) machines {
	return machines{roles: roles, bays: []bay{
		{roles: []string{"metadata"}, count: metadata, kind: "ata-", media: v1alpha1.SSD, size: gib / 2},
		{roles: []string{"storage"}, count: 1, kind: "ata-", media: v1alpha1.SSD, size: gib / 2},
	}}
}

// TestTheDaemonsOfAReducedExperimentAreConfiguredAsInTheGoldenFiles writes the files that the end-to-end tests compare with the configuration
// of the daemons on a cluster.
func TestTheDaemonsOfAReducedExperimentAreConfiguredAsInTheGoldenFiles(t *testing.T) {
	for name, machines := range small {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := fileSystemOf(t, name, true)
			in := provision(g, machines.assemble(&fs))
			told := map[string]string{}
			for _, node := range in.Nodes {
				files, err := beegfs.Files(in, node.Name)
				g.Expect(err).NotTo(HaveOccurred())
				for file, content := range files {
					if path.Dir(path.Dir(file)) != "." || path.Base(file) == "interfaces" || path.Ext(file) == "" {
						continue // the initialization of an empty directory, and the names of a node's own interfaces
					}
					content = experiments.Normalize(content)
					if before, ok := told[file]; ok {
						g.Expect(content).To(Equal(before), "%s is the same on all nodes", file)
					}
					told[file] = content
				}
			}
			root := filepath.Join("testdata", name)
			if *update {
				g.Expect(os.RemoveAll(root)).To(Succeed())
			}
			var golden []string
			for file, content := range told {
				at := filepath.Join(root, file)
				if *update {
					g.Expect(os.MkdirAll(filepath.Dir(at), 0o755)).To(Succeed())
					g.Expect(os.WriteFile(at, []byte(content), 0o600)).To(Succeed())
				}
				want, err := os.ReadFile(at)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(content).To(Equal(string(want)), "if this change is meant, run: go test ./benchmarks/experiments -update")
				golden = append(golden, at)
			}
			var there []string
			g.Expect(filepath.WalkDir(root, func(at string, entry os.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					there = append(there, at)
				}
				return err
			})).To(Succeed())
			g.Expect(there).To(ConsistOf(golden), "no golden file is of a daemon that is not there")
		})
	}
}
