package beegfs

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

func BenchmarkScale(b *testing.B) {
	// 1000 nodes take minutes.
	backendtest.Scale(b, New(), []int{10, 80, 250}, ofNodesWith24Disks)
}

// ofNodesWith24Disks is a filesystem that is well, on so many storage nodes with 24 disks each, and five times as many clients. One more node
// has the management service and the metadata.
func ofNodesWith24Disks(t testing.TB, nodes int) backend.Input {
	t.Helper()
	in := newOfNodesWith24Disks(nodes)
	backendtest.Remember(t, New(), &in)
	in.State = wholeState(in)
	in.FileSystem.Status.Metadata.Initialized = new(metav1.NewTime(noon))
	in.Pods = podsOf(in)
	return in
}

// newOfNodesWith24Disks is that filesystem before anything of it is recorded.
func newOfNodesWith24Disks(nodes int) backend.Input {
	in := cluster("8.3.1")
	fs := in.FileSystem
	one := func(count int32) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: count}}
	}
	fs.Spec.BeeGFS.Management.Targets, fs.Spec.Metadata.Targets = one(1), one(1)
	fs.Spec.Metadata.InstancesPerNode, fs.Spec.Metadata.CPUPinning = 1, nil
	fs.Spec.StoragePools = fs.Spec.StoragePools[:1]
	fs.Spec.StoragePools[0].Targets = one(24)
	in.Nodes, in.Targets, in.Pinnings, in.Inventories = nil, nil, nil, map[string]v1alpha1.NodeInventoryStatus{}
	add := func(name string, roles ...string) {
		number := len(in.Nodes)
		ip := fmt.Sprintf("10.%d.%d.%d", number>>16, number>>8&255, number&255)
		in.Nodes = append(in.Nodes, backend.Node{Name: name, IP: ip, Ready: true, Labels: labels(roles...)})
		in.Inventories[name] = inventory(ip)
	}
	for i := range nodes * 5 {
		add(fmt.Sprintf("client-%05d", i), clientLabel)
	}
	add("meta", managementLabel, metadataLabel)
	in.Targets = append(in.Targets,
		disk("meta", "ssd-m0", v1alpha1.RoleMetadata, "", 0, 400e9), disk("meta", "ssd-mgmt", v1alpha1.RoleManagement, "", 0, 100<<30))
	for i := range nodes {
		name := fmt.Sprintf("oss-%04d", i)
		add(name, storageLabel)
		for d := range 24 {
			in.Targets = append(in.Targets, disk(name, fmt.Sprintf("hdd-%02d", d), v1alpha1.RoleStorage, "ssd", 0, 16e12))
		}
	}
	return in
}

func TestTheFilesystemThatIsMeasuredBySizeHasAllOfItsTargets(t *testing.T) {
	g := NewWithT(t)
	in := ofNodesWith24Disks(t, 3)
	backendtest.Remember(t, New(), &in)
	seen := New().Observe(in)
	g.Expect(seen.Summary.Targets).To(Equal("72/72"))
	g.Expect(seen.Summary.Clients).To(Equal("15/15"))
}

func TestNoObjectOfAThousandNodesIsLargerThan64KiB(t *testing.T) {
	in := newOfNodesWith24Disks(1000)
	in.State = &backend.State{Asked: noon}
	backendtest.Bounded(t, New(), in)
}
