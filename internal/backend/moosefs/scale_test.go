package moosefs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

func BenchmarkScale(b *testing.B) {
	backendtest.Scale(b, New(), ofNodesWith24Disks)
}

// ofNodesWith24Disks returns a healthy filesystem on the given number of storage nodes with 24 disks each, and five times as many clients.
func ofNodesWith24Disks(_ testing.TB, nodes int) backend.Input {
	in := everything("4.57.5")
	fs := in.FileSystem
	fs.Spec.MooseFS.Metaloggers, fs.Spec.MooseFS.Config = nil, v1alpha1.MooseFSConfig{}
	fs.Spec.StoragePools = fs.Spec.StoragePools[:1]
	fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 24}}
	in.Nodes, in.Inventories = nil, map[string]v1alpha1.NodeInventoryStatus{}
	in.State = &backend.State{
		Asked: noon.Add(time.Hour), Version: "4.57.5", StorageClasses: map[string]string{"ssd": "2A"}, Data: backend.DataHealth{Known: true},
	}
	add := func(component, name, label, pool string) backend.Node {
		number := len(in.Nodes)
		node := backend.Node{
			Name: name, IP: fmt.Sprintf("10.%d.%d.%d", number>>16, number>>8&255, number&255), Ready: true, Labels: map[string]string{label: ""},
		}
		in.Nodes = append(in.Nodes, node)
		in.Pods = append(in.Pods, backend.Pod{
			Name: types.NamespacedName{Namespace: fs.Namespace, Name: "scratch-" + component + "-" + name}, Component: component, StoragePool: pool,
			Node: name, Ready: true, Started: noon, Seen: noon,
		})
		return node
	}
	for i := range nodes * 5 {
		node := add(componentClient, fmt.Sprintf("client-%05d", i), clientLabel, "")
		in.State.Sessions = append(in.State.Sessions, backend.Session{IP: node.IP, Path: "/mnt/scratch", Connected: true})
	}
	add(componentMaster, "meta", masterLabel, "")
	for i := range nodes {
		node := add(componentChunkserver, fmt.Sprintf("oss-%04d", i), storageLabel, "ssd")
		in.State.Servers = append(in.State.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: node.IP, Port: 9435, Online: true, CapacityBytes: 24 << 44})
		in.Inventories[node.Name] = v1alpha1.NodeInventoryStatus{Daemons: []v1alpha1.DaemonPlacement{
			{Name: "storage/scratch/chunkserver/ssd", CPUs: "0-127", NUMANodes: "0-1", MemoryPolicy: "default"},
		}}
		for d := range 24 {
			target := aTarget(fmt.Sprintf("scratch-ssd-%06x", i*24+d), node.Name, "ssd")
			target.Status.Provisioned = &v1alpha1.TargetProvisioned{
				PlanHash: "sha256:1", UUID: fmt.Sprintf("c0ffee00-0000-4000-8000-%012x", i*24+d), Finished: new(metav1.NewTime(noon)),
			}
			in.Targets = append(in.Targets, target)
			in.State.Targets = append(in.State.Targets, backend.Target{
				IP: node.IP, Port: 9435, Path: targetData(fs, target.Name) + "/", Online: true, CapacityBytes: 1 << 44,
			})
		}
	}
	// As the controller sorts them.
	slices.SortFunc(in.Nodes, func(a, b backend.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(in.Pods, func(a, b backend.Pod) int { return strings.Compare(a.Component+" "+a.Node, b.Component+" "+b.Node) })
	return in
}

func TestTheFilesystemThatIsMeasuredBySizeIsWell(t *testing.T) {
	g := NewWithT(t)
	in := ofNodesWith24Disks(t, 3)
	backendtest.Remember(t, New(), &in)
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Summary.Targets).To(Equal("72/72"))
	g.Expect(seen.Summary.Clients).To(Equal("15/15"))
}

func TestNoObjectOfAThousandNodesIsLargerThan64KiB(t *testing.T) {
	in := ofNodesWith24Disks(t, 1000)
	backendtest.Bounded(t, New(), in)
}
