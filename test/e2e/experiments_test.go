//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/experiments"
	"parallelfs.dev/operator/test/patience"
)

// drive is a disk that a node gets for an experiment.
type drive struct {
	node              int
	name, size, media string
}

// drives returns n disks of a node, with the same beginning of their names.
func drives(n, node int, name, size, media string) []drive {
	var out []drive
	for i := range n {
		out = append(out, drive{node, name + string(rune('0'+i)), size, media})
	}
	return out
}

// reducedExperiment reads the manifests of an experiment and reduces them to its own disks.
func (s *site) reducedExperiment(name string) experiments.Experiment {
	GinkgoHelper()
	e, err := experiments.Load(os.DirFS(filepath.Join(root, "benchmarks", "experiments")), name)
	Expect(err).NotTo(HaveOccurred())
	Expect(experiments.Reduce(&e, v1alpha1.Glob("ata-E2E_DISK_E2E-"+s.name+"-*"))).To(Succeed())
	Expect(experiments.OnLustre(&e, lustre)).To(Succeed())
	return e
}

// applyObject applies an object of the API.
func applyObject(object any) {
	GinkgoHelper()
	manifest, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	apply(string(manifest))
}

// field reads a field of an object of an experiment.
func field(ns, kind, name, path string) string {
	GinkgoHelper()
	return kubectl("-n", ns, "get", kind, name, "-o", "jsonpath={"+path+"}")
}

// succeededCondition returns the condition Succeeded of a run or suite: its status, its reason and its message.
func succeededCondition(ns, kind, name string) func() string {
	return func() string {
		const condition = `.status.conditions[?(@.type=="Succeeded")]`
		return kubectl("-n", ns, "get", kind, name, "-o", "jsonpath={"+condition+".status} {"+condition+".reason}: {"+condition+".message}")
	}
}

// site is what a test cluster provides for an experiment.
type site struct {
	name string
	// also lists experiments whose runs measure the same filesystem.
	also []string
	// roles holds the labels that the manifest asks for, with the workers that get them.
	roles  map[string][]int
	drives []drive
	// ramdisk is a directory that is a tmpfs on all workers.
	ramdisk string
	// servers and targets are those of the status, if there is one filesystem.
	servers, targets string
	// golden holds the pods whose configurations are compared, by variant: component and, behind a slash, slot or pool.
	golden map[string][]string
	// without holds runs that end as Stalled, with this reason.
	without map[string]string
	// always runs it with all other tests; `make experiments` runs the rest.
	always bool
}

var sites = []site{
	{name: "moosefs-2017-single", roles: map[string][]int{"metadata": {0}, "metalogger": {1}, "storage": {0, 1, 2}, "client": {0}}, ramdisk: "/mnt/ramdisk/moosefs", servers: "5/5", targets: "3/3"},
	{name: "moosefs-2017-distributed", roles: map[string][]int{"metadata": {0}, "metalogger": {1}, "storage": {0, 1, 2}, "client": {0, 1, 2}}, ramdisk: "/mnt/ramdisk/moosefs", servers: "5/5", targets: "3/3"},
	{
		name: "beegfs-2015-backend", roles: map[string][]int{"server": {0}, "client": {0, 1}}, drives: append(drives(1, 0, "ssd", "300M", "SSD"), drives(1, 0, "hdd", "400M", "HDD")...),
		golden: map[string][]string{"ext4-hdd": {"management", "meta/0", "storage/default"}, "ext4-ssd": {"meta/0"}},
	},
	{
		name: "beegfs-2015-single-raid0", roles: map[string][]int{"management": {0}, "metadata": {1}, "storage": {2}, "client": {0, 1}},
		drives:  append(drives(1, 1, "raid", "400M", "SSD"), drives(1, 2, "raid", "400M", "SSD")...),
		servers: "3/3", targets: "1/1", golden: map[string][]string{"": {"management", "meta/0", "storage/default"}},
	},
	{
		always: true,
		name:   "beegfs-2015-multi-mds", roles: map[string][]int{"management": {0}, "metadata": {1}, "storage": {2}, "client": {0, 1}},
		drives: append(drives(4, 1, "ssd", "300M", "SSD"), drives(1, 2, "raid", "400M", "SSD")...),
		golden: map[string][]string{"2-instances": {"meta/0", "meta/1", "storage/default"}},
	},
	{
		name: "beegfs-2015-scale-out", roles: map[string][]int{"management": {0}, "metadata": {0, 1}, "storage": {2}, "client": {0, 1}},
		drives: append(append(drives(4, 0, "ssd", "300M", "SSD"), drives(4, 1, "ssd", "300M", "SSD")...), drives(1, 2, "raid", "400M", "SSD")...),
		golden: map[string][]string{"02-nodes": {"meta/1"}},
	},
	{
		name: "beegfs-2015-fixed", roles: map[string][]int{"management": {0}, "metadata": {0}, "storage": {1, 2}, "client": {0, 1}},
		drives:  append(append(drives(4, 0, "ssd", "300M", "SSD"), drives(1, 1, "raid", "400M", "SSD")...), drives(1, 2, "raid", "400M", "SSD")...),
		servers: "7/7", targets: "2/2", golden: map[string][]string{"": {"meta/2", "storage/default"}},
	},
	{
		name: "netapp-tr4782", also: []string{"netapp-tr4782-mdtest", "netapp-tr4782-smallfile"},
		roles:   map[string][]int{"metadata": {0}, "storage": {1, 2}, "client": {0, 1}},
		drives:  append(drives(1, 0, "meta", "300M", "SSD"), append(array(1), array(2)...)...),
		servers: "6/6", targets: "8/8", golden: map[string][]string{"": {"management", "meta/0", "storage/ssd", "storage/bulk"}},
		// No image that can be built here contains vdbench.
		without: map[string]string{"netapp-tr4782-smallfile": v1alpha1.ReasonImageRequired},
	},
	{
		name: "lustre-2014-mds-survey", roles: map[string][]int{"metadata": {0}, "storage": {1, 2}, "client": {0}},
		drives: lustreDrives, servers: "3/3", targets: "4/4",
	},
	{name: "lustre-2014-mdtest-high", roles: lustreRoles, drives: lustreDrives},
	{name: "lustre-2014-mdtest-low", roles: lustreRoles, drives: lustreDrives},
	{name: "lustre-2014-postmark", roles: lustreRoles, drives: lustreDrives},
	// No image that can be built here contains netmist.
	{name: "lustre-2014-netmist", roles: lustreRoles, drives: lustreDrives, without: map[string]string{"lustre-2014-netmist": v1alpha1.ReasonImageRequired}},
}

// The metadata server of the talk of 2014 has a disk of each kind, and each object server has several; the variants use one kind.
var (
	lustreRoles  = map[string][]int{"metadata": {0}, "storage": {1, 2}, "client": {0, 1}}
	lustreDrives = slices.Concat(
		drives(1, 0, "hdd", "300M", "HDD"), drives(1, 0, "ssd", "300M", "SSD"),
		drives(2, 1, "hdd", "400M", "HDD"), drives(2, 1, "ssd", "400M", "SSD"),
		drives(2, 2, "hdd", "400M", "HDD"), drives(2, 2, "ssd", "400M", "SSD"),
	)
)

// prepare sets the labels and attaches the disks that an experiment needs, until the spec has ended.
func (s *site) prepare(ns string) {
	GinkgoHelper()
	disk := newStory(s.name, 0).disk
	prefix := "parallelfs.dev/" + ns + "-"
	for role, on := range s.roles {
		for _, node := range on {
			kubectl("label", "--overwrite", "nodes", workers[node], prefix+role+"=")
		}
	}
	for _, d := range s.drives {
		disks("attach", workers[d.node], disk(workers[d.node], d.name), d.size, d.media)
	}
	if s.ramdisk != "" {
		for _, node := range workers {
			// Its chunkservers leave 5 GiB free (HDD_LEAVE_SPACE_DEFAULT); a tmpfs uses memory only for written data.
			onNode(node, "mkdir -p "+s.ramdisk+" && mount -t tmpfs -o size=8g ramdisk "+s.ramdisk)
		}
	}
	DeferCleanup(func() {
		kubectl("-n", ns, "delete", "benchmarksuites,benchmarkruns", "--all", patience.Flag(5*time.Minute))
		deleteFileSystems(ns, "--all", patience.Flag(5*time.Minute))
		for role := range s.roles {
			kubectl("label", "nodes", "--all", prefix+role+"-")
		}
		for _, d := range s.drives {
			disks("detach", workers[d.node], disk(workers[d.node], d.name))
		}
		if s.ramdisk != "" {
			for _, node := range workers {
				// The metadata would still list chunks that were on the RAM disk.
				onNode(node, "umount -l "+s.ramdisk+" && rm -rf /var/lib/parallelfs/"+ns+" /var/lib/parallelfs/"+ns+".*")
			}
		}
	})
}

// wanted reports whether an experiment runs: its name begins with one of the words of a person, such as "moosefs netapp", or all run, or
// only those of each test.
func (s *site) wanted(words string) bool {
	if words == "" {
		return s.always
	}
	return words == "all" || slices.ContainsFunc(strings.Fields(words), func(word string) bool { return strings.HasPrefix(s.name, word) })
}

// experimentsRun runs each experiment in its reduced form: the configuration of the daemons equals golden files, and every point has a
// result.
func experimentsRun() {
	for i := range sites {
		s := &sites[i]
		if !s.wanted(os.Getenv("EXPERIMENTS")) {
			continue
		}
		It("runs the experiment "+s.name, func() {
			e := s.reducedExperiment(s.name)
			variants, err := e.Variants()
			Expect(err).NotTo(HaveOccurred())
			ns := variants[0].FileSystem.Namespace
			apply(e.Namespace)
			s.prepare(ns)
			if e.Suite != nil {
				s.suite(e, variants)
				return
			}
			applyObject(e.FileSystem)
			Eventually(readyIn(ns, e.FileSystem.Name), long).Should(HavePrefix("True"))
			Expect(field(ns, "filesystem", e.FileSystem.Name, ".status.summary.servers") + " " + field(ns, "filesystem", e.FileSystem.Name, ".status.summary.targets")).
				To(Equal(s.servers + " " + s.targets))
			for _, daemon := range s.golden[""] {
				compareConfigurations(s.name, e.FileSystem, daemon)
			}
			for _, name := range append([]string{s.name}, s.also...) {
				for _, run := range s.reducedExperiment(name).Runs {
					applyObject(run)
					if reason := s.without[name]; reason != "" {
						Eventually(succeededCondition(ns, "benchmarkrun", run.Name), long).Should(HavePrefix("False " + reason))
						continue
					}
					Eventually(succeededCondition(ns, "benchmarkrun", run.Name), 3*long).Should(HavePrefix("True "))
					telemetry := field(ns, "benchmarkrun", run.Name, ".status.points[*].telemetry")
					if e.FileSystem.Spec.Type != v1alpha1.Lustre { // it has no daemons, and a double ends sooner than the interval between two samples
						Expect(telemetry).To(ContainSubstring("busiest daemon"))
						if len(s.drives) > 0 {
							Expect(telemetry).To(ContainSubstring("busiest target"), "how busy the disks were")
						}
					}
					report("what the servers did during "+run.Name, telemetry)
					report("results of "+run.Name, kubectl("-n", ns, "get", "benchmarkrun", run.Name, "-o", "go-template-file="+root+"/test/demo/results.gotemplate"))
				}
			}
		})
	}
}

// readyIn returns the condition Ready of a FileSystem.
func readyIn(ns, name string) func() string {
	return func() string {
		const condition = `.status.conditions[?(@.type=="Ready")]`
		return kubectl("-n", ns, "get", "filesystem", name, "-o", "jsonpath={"+condition+".status} {"+condition+".message}")
	}
}

// suite runs a suite: its variants one after the other, on the same disks.
func (s *site) suite(e experiments.Experiment, variants []experiments.Variant) {
	GinkgoHelper()
	ns := e.Suite.Namespace
	applyObject(e.Suite)
	Eventually(succeededCondition(ns, "benchmarksuite", e.Suite.Name), long).Should(ContainSubstring(v1alpha1.ReasonDestroyUnconfirmed))
	uid := field(ns, "benchmarksuite", e.Suite.Name, ".metadata.uid")
	kubectl("-n", ns, "patch", "benchmarksuite", e.Suite.Name, "--type=merge", "-p", `{"spec":{"confirmDestroy":"`+uid+`"}}`)
	if reason := s.without[s.name]; reason != "" {
		Eventually(succeededCondition(ns, "benchmarksuite", e.Suite.Name), 2*long).Should(ContainSubstring(reason))
		return
	}
	for i := range variants {
		fs := &variants[i].FileSystem
		daemons := s.golden[variants[i].Name]
		if len(daemons) == 0 {
			continue
		}
		Eventually(func() string {
			out, _ := try("", "kubectl", "-n", ns, "get", "filesystem", fs.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
			return out
		}, 2*long).Should(Equal("True"))
		for _, daemon := range daemons {
			compareConfigurations(s.name+"/"+variants[i].Name, fs, daemon)
		}
	}
	Eventually(succeededCondition(ns, "benchmarksuite", e.Suite.Name), 4*long).Should(HavePrefix("True "))
	Expect(kubectl("-n", ns, "get", "filesystems", "-o", "name")).To(BeEmpty(), "the disks are wiped for others")
	report("table of "+e.Suite.Name, kubectl("-n", ns, "get", "benchmarksuite", e.Suite.Name, "-o",
		`jsonpath={range .status.table[*]}{.variant} {.run} {.metric}: {.value} {.unit} at {.at}, speed-up {.speedup}, efficiency {.efficiency} %{"\n"}{end}`))
}

// array returns the disks of a storage server of TR-4782.
func array(node int) []drive {
	// With the stripes of an array, mkfs.xfs asks for a log of 64 MiB, for which a smaller disk has no room.
	out := drives(2, node, "ssd", "1G", "SSD")
	out = append(out, drives(2, node, "hdd", "400M", "HDD")...)
	return append(out, drives(2, node, "log", "100M", "SSD")...)
}

// compareConfigurations compares all files that a daemon was started with. The golden files are those of the unit test, so the rendered
// configuration of the full experiment is the one that runs here.
func compareConfigurations(manifest string, fs *v1alpha1.FileSystem, daemon string) {
	GinkgoHelper()
	component, which, _ := strings.Cut(daemon, "/")
	label := ""
	switch component {
	case "meta":
		label = "," + v1alpha1.LabelSlot + "=" + which
	case "storage":
		label = "," + v1alpha1.LabelStoragePool + "=" + which
	}
	pods := strings.Fields(kubectl("-n", fs.Namespace, "get", "pods", "-l", v1alpha1.LabelFileSystem+"="+fs.Name+","+v1alpha1.LabelComponent+"="+component+label,
		"-o", "jsonpath={.items[*].metadata.name}"))
	Expect(pods).NotTo(BeEmpty(), daemon)
	golden := filepath.Join(root, "benchmarks", "experiments", "testdata", manifest, strings.ReplaceAll(daemon, "/", "-"))
	files, err := os.ReadDir(golden)
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, pod := range pods {
		for _, file := range files {
			want, err := os.ReadFile(filepath.Join(golden, file.Name()))
			Expect(err).NotTo(HaveOccurred())
			have := written(fs.Namespace, pod, file.Name())
			Expect(experiments.Normalize(have)).To(Equal(string(want)), "%s of %s", file.Name(), pod)
		}
	}
}
