//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/experiments"
)

// drive is a disk that a node is given for an experiment.
type drive struct {
	node              int
	name, size, media string
}

// drives are n disks of a node, with names that begin alike.
func drives(n, node int, name, size, media string) []drive {
	var out []drive
	for i := range n {
		out = append(out, drive{node, name + string(rune('0'+i)), size, media})
	}
	return out
}

// experimentOf reads the FileSystem of a manifest of benchmarks/experiments and reduces it.
func experimentOf(manifest string) *v1alpha1.FileSystem {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "benchmarks", "experiments", manifest+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	documents := strings.Split(string(text), "\n---\n")
	fs := &v1alpha1.FileSystem{}
	Expect(yaml.UnmarshalStrict([]byte(documents[1]), fs)).To(Succeed())
	apply(documents[0])
	experiments.Reduce(fs)
	return fs
}

// experimentsRun makes the filesystem of each experiment, reduced, and compares what its daemons were told with golden files.
func experimentsRun() {
	for number, e := range []struct {
		manifest string
		// roles are the labels that the manifest asks for, with the workers that get them.
		roles  map[string][]int
		drives []drive
		// servers and targets are those of the status.
		servers, targets string
		// golden are the pods whose configurations are compared: component and, behind a slash, slot or pool.
		golden []string
	}{
		{"beegfs-2015-backend/ext4-ssd", map[string][]int{"server": {0}}, drives(1, 0, "ssd", "300M", "SSD"), "3/3", "1/1", []string{"management", "meta/0", "storage/default"}},
		{"beegfs-2015-backend/xfs-hdd", map[string][]int{"server": {0}}, drives(1, 0, "hdd", "400M", "HDD"), "3/3", "1/1", []string{"meta/0"}},
		{"beegfs-2015-single-raid0", map[string][]int{"management": {0}, "metadata": {1}, "storage": {2}},
			append(drives(1, 1, "raid", "400M", "SSD"), drives(1, 2, "raid", "400M", "SSD")...), "3/3", "1/1", []string{"management", "meta/0", "storage/default"}},
		{"beegfs-2015-multi-mds", map[string][]int{"management": {0}, "metadata": {1}, "storage": {2}},
			append(drives(4, 1, "ssd", "300M", "SSD"), drives(1, 2, "raid", "400M", "SSD")...), "6/6", "1/1", []string{"meta/0", "meta/3", "storage/default"}},
		{"beegfs-2015-scale-out", map[string][]int{"management": {0}, "metadata": {0, 1}, "storage": {2}},
			append(append(drives(4, 0, "ssd", "300M", "SSD"), drives(4, 1, "ssd", "300M", "SSD")...), drives(1, 2, "raid", "400M", "SSD")...), "10/10", "1/1", []string{"meta/1"}},
		{"beegfs-2015-fixed", map[string][]int{"management": {0}, "metadata": {0}, "storage": {1, 2}},
			append(append(drives(4, 0, "ssd", "300M", "SSD"), drives(1, 1, "raid", "400M", "SSD")...), drives(1, 2, "raid", "400M", "SSD")...), "7/7", "2/2", []string{"meta/2", "storage/default"}},
		{"netapp-tr4782", map[string][]int{"metadata": {0}, "storage": {1, 2}},
			append(drives(1, 0, "meta", "300M", "SSD"), append(array(1), array(2)...)...), "6/6", "8/8", []string{"management", "meta/0", "storage/ssd", "storage/bulk"}},
	} {
		It("makes the filesystem of "+e.manifest+", and tells its daemons what the paper says", func() {
			fs := experimentOf(e.manifest)
			// A disk of an experiment before is not blank.
			for i := range e.drives {
				e.drives[i].name = fmt.Sprintf("x%d-%s", number, e.drives[i].name)
			}
			for role, on := range e.roles {
				for _, node := range on {
					kubectl("label", "--overwrite", "nodes", workers[node], "parallelfs.dev/"+fs.Namespace+"-"+role+"=")
				}
			}
			kubectl("label", "--overwrite", "nodes", workers[0], workers[1], workers[2], v1alpha1.LabelAgent+"=")
			for _, d := range e.drives {
				disks("attach", workers[d.node], disk(workers[d.node], d.name), d.size, d.media)
			}
			DeferCleanup(func() {
				kubectl("-n", fs.Namespace, "delete", "filesystem", fs.Name, "--timeout=300s")
				for role := range e.roles {
					kubectl("label", "nodes", "--all", "parallelfs.dev/"+fs.Namespace+"-"+role+"-")
				}
				for _, d := range e.drives {
					disks("detach", workers[d.node], disk(workers[d.node], d.name))
				}
			})
			fs.Spec.DeletionPolicy = v1alpha1.DeletionRetain
			manifest, err := json.Marshal(fs)
			Expect(err).NotTo(HaveOccurred())
			apply(string(manifest))
			Eventually(func() string {
				return kubectl("-n", fs.Namespace, "get", "filesystem", fs.Name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`)
			}, long).Should(HavePrefix("True"))
			Expect(kubectl("-n", fs.Namespace, "get", "filesystem", fs.Name, "-o", "jsonpath={.status.summary.servers} {.status.summary.targets}")).
				To(Equal(e.servers + " " + e.targets))
			for _, daemon := range e.golden {
				compareConfigurations(e.manifest, fs, daemon)
			}
		})
	}
}

// array are the disks of a storage server of TR-4782.
func array(node int) []drive {
	// mkfs.xfs with the stripes of an array asks for a log of 64 MiB, for which a smaller disk has no room.
	out := drives(2, node, "ssd", "1G", "SSD")
	out = append(out, drives(2, node, "hdd", "400M", "HDD")...)
	return append(out, drives(2, node, "log", "100M", "SSD")...)
}

// compareConfigurations compares all files that a daemon was started with. The golden files are those of the unit test, so what is
// rendered for the full experiment there is what runs here.
func compareConfigurations(manifest string, fs *v1alpha1.FileSystem, daemon string) {
	GinkgoHelper()
	component, which, _ := strings.Cut(daemon, "/")
	label := ""
	switch component {
	case "meta":
		label = "," + v1alpha1.LabelInstance + "=" + which
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
			Expect(experiments.Normalise(have)).To(Equal(string(want)), "%s of %s", file.Name(), pod)
		}
	}
}
