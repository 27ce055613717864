//go:build envtest

package filesystem_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

// sample is the spec of one of the smallest samples as it stands. Only the names of nodes and disks are those of the world.
func (w *world) sample(file string, names ...string) func(fs *v1alpha1.FileSystem) {
	w.t.Helper()
	text, err := os.ReadFile("../../config/samples/" + file)
	w.Expect(err).NotTo(HaveOccurred())
	var sample v1alpha1.FileSystem
	w.Expect(yaml.UnmarshalStrict([]byte(strings.NewReplacer(names...).Replace(string(text))), &sample)).To(Succeed())
	return func(fs *v1alpha1.FileSystem) { fs.Spec = sample.Spec }
}

// like gives a disk other properties.
func (w *world) like(d *fakeDisk, media v1alpha1.MediaType, size int64, transport string, numa int32) *fakeDisk {
	w.t.Helper()
	d.media, d.size, d.transport, d.numa = media, size, transport, &numa
	w.inventory(d.node)
	return d
}

// approvesAll approves the plan of each disk, as a person does who has read it.
func (w *world) approvesAll() {
	w.t.Helper()
	all := w.targets()
	for i := range all {
		w.person(&all[i], func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan = planHash })
	}
}

func TestTheSmallestSampleOnDirectoriesBecomesReady(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(w.sample("smallest-directories.yaml", "[n1, n2, n3]", "["+strings.Join(w.nodes, ", ")+"]"))
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Summary).To(HaveValue(And(HaveField("Servers", "6/6"), HaveField("Targets", "3/3"), HaveField("Clients", "3/3"))),
		"a master, two metaloggers, and a chunkserver on each node")
}

func TestTheSmallestSampleOnDisksBecomesReadyWhenAPersonHasApprovedTheirPlans(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.like(w.disk(w.nodes[0], "small"), v1alpha1.SSD, 240e9, "sas", 0)
	for _, node := range w.nodes {
		w.like(w.disk(node, "large"), v1alpha1.SSD, 4e12, "sas", 0)
		w.like(w.disk(node, "slow"), v1alpha1.HDD, 16e12, "sas", 0)
	}
	w.fileSystem(w.sample("smallest-disks.yaml", `storage: ""`, "storage-of: "+w.namespace))
	w.settle()
	w.Expect(w.targets()).To(HaveLen(4))
	w.Expect(w.formats()).To(BeZero(), "each waits for a person")
	w.approvesAll()
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.formats()).To(Equal(4))
}

func TestTheSmallestSampleOfABeeGFSBecomesReady(t *testing.T) {
	w := newWorld(t)
	management := w.like(w.disk(w.nodes[0], "mgmtd"), v1alpha1.SSD, 1e12, "nvme", 0)
	for _, node := range w.nodes[:2] {
		for i, name := range []string{"nvme-a", "nvme-b", "nvme-c", "nvme-d"} {
			w.like(w.disk(node, name), v1alpha1.SSD, 2e12, "nvme", int32(i%2))
		}
		w.like(w.disk(node, "hdd"), v1alpha1.HDD, 16e12, "sas", 0)
		w.sockets(node)
	}
	w.beeGFS(w.sample("smallest-beegfs.yaml", "[n1, n2]", "["+strings.Join(w.nodes[:2], ", ")+"]", "node: n1", "node: "+w.nodes[0],
		"nvme-eui.0025385b71b0c4a0", management.id))
	w.settle()
	w.approvesAll()
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.formats()).To(Equal(11), "one of the management service, four of metadata servers on each of two nodes, and two for data")
	w.Expect(w.get().Status.Summary.Servers).To(Equal("11/11"))
}

// sockets gives a node two NUMA nodes of four CPUs.
func (w *world) sockets(node string) {
	w.t.Helper()
	inventory := &v1alpha1.NodeInventory{}
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, inventory)).To(Succeed())
	inventory.Status.CPU.NUMANodes = []v1alpha1.NUMANode{{ID: 0, CPUs: "0-3"}, {ID: 1, CPUs: "4-7"}}
	w.Expect(server.Client.Status().Update(w.ctx, inventory)).To(Succeed())
}

func TestTheSmallestSampleOfALustreBecomesReady(t *testing.T) {
	w := newWorld(t)
	k := w.lustreWorld()
	one, two := w.nodes[0], w.nodes[1]
	shared := func(node, also string) string {
		d := w.disk(node, "shared")
		d.also = also
		w.like(d, v1alpha1.HDD, 8e12, "sas", 0)
		w.inventory(also)
		return d.id
	}
	first, second := shared(one, two), shared(two, one)
	for _, node := range w.nodes {
		w.boots(node, "first")
		w.wire(node)
	}
	k.lustre(w.sample("smallest-lustre.yaml", "oss1", one, "oss2", two, "wwn-0x5000c500a1b2c3d4", first, "wwn-0x5000c500a1b2c3d5", second))
	w.goesOn()
	w.approvesAll()
	w.goesOn()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.targets()).To(HaveLen(3), "MDT0000 with the MGT, and two OSTs")
}
