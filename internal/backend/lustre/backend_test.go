package lustre_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/lustre"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// everything is a filesystem that uses all features of the backend: an MGS of its own, two nodes with two MDTs and two OSTs each, over a
// network with two rails, and a client. All disks are proven.
func everything(version string) backend.Input {
	in := withMGT("n1", "n2")
	fs := in.FileSystem
	fs.Generation, fs.CreationTimestamp = 1, metav1.NewTime(noon)
	fs.Status = v1alpha1.FileSystemStatus{}
	fs.Spec.Version = version
	fs.Spec.Network = &v1alpha1.NetworkSpec{Interfaces: []v1alpha1.InterfaceName{"ib0", "ib1"}}
	fs.Spec.Lustre.RDMA = true
	fs.Spec.Clients = &v1alpha1.ClientsSpec{
		NodeSelector: v1alpha1.NodeSelector{"client": ""}, MountPath: "/mnt/scratch", MountOptions: []v1alpha1.MountOption{"flock"},
	}
	fs.Spec.MetadataServers.NodeSelector, fs.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"mds": ""}, v1alpha1.NodeSelector{"mds": ""}
	for i := range in.Nodes {
		switch in.Nodes[i].Name {
		case "n0":
			in.Nodes[i].Labels = map[string]string{"client": ""}
		case "n3":
		default:
			in.Nodes[i].Labels = map[string]string{"mds": ""}
		}
		in.Inventories[in.Nodes[i].Name] = v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{
			{Name: "eno1", Addresses: []string{in.Nodes[i].IP + "/24"}},
			{Name: "ib0", Addresses: []string{strings.Replace(in.Nodes[i].IP, "10.0", "10.1", 1) + "/16"}},
			{Name: "ib1", Addresses: []string{strings.Replace(in.Nodes[i].IP, "10.0", "10.2", 1) + "/16"}},
		}}
	}
	for i := range in.Targets {
		prove(&in.Targets[i])
	}
	in.Images = backend.Images{Node: "node:1", PullPolicy: "IfNotPresent"}
	in.Password, in.ProbeKey = "correct-horse-battery-staple", "tr0ub4dor-and-3"
	return in
}

// prove writes the status of an agent that has proven the disk.
func prove(t *v1alpha1.StorageTarget) {
	when := metav1.NewTime(noon)
	t.Status.Provisioned = &v1alpha1.TargetProvisioned{PlanHash: "sha256:1", UUID: "uuid-" + t.Name, Finished: &when}
	t.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven, LastTransitionTime: when,
	}}
}

func TestLustreKeepsTheContractOfBackends(t *testing.T) {
	backendtest.Contract(t, lustre.New(), everything, nil)
}

func TestObjectsAreThoseOfTheGoldenFile(t *testing.T) {
	for _, version := range lustre.New().Versions() {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := everything(version)
			backendtest.Remember(t, lustre.New(), &in)
			objects, err := lustre.New().Members(in)
			g.Expect(err).NotTo(HaveOccurred())
			for _, n := range lustre.New().Nodes(in) {
				objects = append(objects, &n)
			}
			var story strings.Builder
			for _, o := range objects {
				if secret, is := o.(*corev1.Secret); is {
					secret.Data = nil // the key of the probe, and the secret of backups
				}
				raw, err := yaml.Marshal(o)
				g.Expect(err).NotTo(HaveOccurred())
				story.WriteString("---\n" + string(raw))
			}
			path := filepath.Join("testdata", "objects-"+version+".golden.yaml")
			if *update {
				g.Expect(os.WriteFile(path, []byte(story.String()), 0o600)).To(Succeed())
			}
			golden, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred(), "run: go test ./internal/backend/lustre -update")
			g.Expect(story.String()).To(Equal(string(golden)), "if this change is meant, run: go test ./internal/backend/lustre -update")
		})
	}
}

func TestPodsNeedNoSoftwareButTheNodeBinaryAndRunOnTheNodeItself(t *testing.T) {
	g := NewWithT(t)
	in := everything("2.17.57")
	backendtest.Remember(t, lustre.New(), &in)
	objects, err := lustre.New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	sets := map[string]*appsv1.DaemonSet{}
	for _, o := range objects {
		if set, is := o.(*appsv1.DaemonSet); is {
			sets[set.Name] = set
			g.Expect(set.Spec.Template.Spec.HostPID).To(BeTrue(), set.Name)
			for _, c := range set.Spec.Template.Spec.Containers {
				g.Expect(c.Image).To(Equal("node:1"), set.Name)
			}
		}
	}
	g.Expect(backend.SortedKeys(sets)).To(Equal([]string{"scratch-client", "scratch-mdt-0", "scratch-mdt-1", "scratch-mgs", "scratch-ost-ssd"}))
}

func TestNothingRunsBeforeItIsOnRecordWhereTheMGSIs(t *testing.T) {
	g := NewWithT(t)
	in := everything("2.17.57")
	backendtest.Remember(t, lustre.New(), &in)
	in.FileSystem.Status.Lustre = nil
	objects, err := lustre.New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveExactElements(HaveField("Name", "scratch-probe"), HaveField("Name", "scratch-store"), HaveField("Name", "scratch-lustre")))
}
