package beegfs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

func BenchmarkScale(b *testing.B) {
	for _, version := range versions {
		for _, mirrored := range []bool{false, true} {
			name := version
			if mirrored {
				name += "-mirrored"
			}
			b.Run(name, func(b *testing.B) {
				backendtest.Scale(b, New(), func(t testing.TB, nodes int) backend.Input {
					t.Helper()
					return ofNodesWith24Disks(t, version, nodes, mirrored)
				})
			})
		}
	}
}

// ofNodesWith24Disks is a healthy filesystem on so many storage nodes with 24 disks each, and five times as many clients. One more node has
// the management service and the metadata. A mirrored one has a second such node, and buddy groups of all servers and targets.
func ofNodesWith24Disks(t testing.TB, version string, nodes int, mirrored bool) backend.Input {
	t.Helper()
	in := newOfNodesWith24Disks(version, nodes)
	if mirrored {
		fs := in.FileSystem
		fs.Spec.StoragePools[0].Copies, fs.Spec.BeeGFS.MirrorMetadata = 2, true
		in.Nodes = append(in.Nodes, backend.Node{Name: "meta2", IP: "10.255.0.2", Ready: true, Labels: labels(metadataLabel)})
		in.Targets = append(in.Targets, disk("meta2", "ssd-m0", v1alpha1.RoleMetadata, "", 0, 400e9))
	}
	backendtest.Remember(t, New(), &in)
	in.State = wholeState(in)
	in.FileSystem.Status.Metadata.Initialized = new(metav1.NewTime(noon))
	in.Pods = podsOf(in)
	if mirrored {
		mirror(&in)
	}
	for _, p := range workOf(in).pools {
		in.Jobs = append(in.Jobs, backend.Job{Name: p.name, Component: componentConfigure, Succeeded: true, Ended: noon.Add(-30 * time.Minute)})
	}
	return in
}

// mirror adds the buddy groups that the backend itself would make.
func mirror(in *backend.Input) {
	domains := nodefacts.NewDomains(*in)
	for _, role := range []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleStorage} {
		var all []member
		for id, node := range nodesByID(*in, role) {
			all = append(all, member{id, node})
		}
		for i, pair := range pairs(all, domains) {
			in.State.Mirrors = append(in.State.Mirrors, backend.Mirror{Role: role, ID: int32(i + 1), Primary: pair[0], Secondary: pair[1]})
		}
	}
	in.State.MetadataMirrored, in.FileSystem.Status.BeeGFS.MetadataMirrored = true, new(metav1.NewTime(noon))
	for i := range in.Pods {
		in.Pods[i].MetadataMirrored = true
	}
}

// newOfNodesWith24Disks is that filesystem before anything of it is recorded.
func newOfNodesWith24Disks(version string, nodes int) backend.Input {
	in := cluster(version)
	fs := in.FileSystem
	one := func(count int32) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: count}}
	}
	fs.Spec.BeeGFS.Management.Targets, fs.Spec.MetadataServers.Targets = one(1), one(1)
	fs.Spec.MetadataServers.InstancesPerNode, fs.Spec.MetadataServers.CPUPinning = 1, nil
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

func TestTheFilesystemThatIsMeasuredBySizeIsWell(t *testing.T) {
	for _, version := range versions {
		for name, mirrored := range map[string]bool{"with one copy": false, "mirrored": true} {
			t.Run(version+" "+name, func(t *testing.T) {
				g := NewWithT(t)
				in := ofNodesWith24Disks(t, version, 4, mirrored)
				backendtest.Remember(t, New(), &in)
				seen := New().Observe(in)
				g.Expect(seen.Problems).To(BeEmpty())
				g.Expect(seen.Summary.Targets).To(Equal("96/96"))
				g.Expect(seen.Summary.Clients).To(Equal("20/20"))
			})
		}
	}
}

func TestNoObjectOfAThousandNodesIsLargerThan64KiB(t *testing.T) {
	in := newOfNodesWith24Disks("8.3.1", 1000)
	in.State = &backend.State{Asked: noon}
	// The largest spec.beegfs.adopt that admission accepts: 32 nodes, with 128 servers and targets.
	for i := range int32(32) {
		server := v1alpha1.GivenServerID{Name: "storage-" + strings.Repeat("p", 24), ID: 30000 + i}
		for j := range int32(3) {
			server.Targets = append(server.Targets, v1alpha1.GivenTargetID{Name: fmt.Sprintf("/data-%0122d", j), ID: 30000 + 3*i + j})
		}
		in.FileSystem.Spec.BeeGFS.Adopt = append(in.FileSystem.Spec.BeeGFS.Adopt,
			v1alpha1.GivenIDs{Node: fmt.Sprintf("%0253d", i), Members: []v1alpha1.GivenServerID{server}})
	}
	backendtest.Bounded(t, New(), in)
}
