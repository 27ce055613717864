package lustre_test

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
	"parallelfs.dev/operator/internal/backend/lustre"
)

func BenchmarkScale(b *testing.B) {
	backendtest.Scale(b, lustre.New(), served)
}

// ofNodesWith24OSTs is a new Lustre on so many nodes with 24 OSTs each, four of them with two MDTs, and five times as many clients.
func ofNodesWith24OSTs(t testing.TB, nodes int) backend.Input {
	t.Helper()
	in := everything("2.17.57")
	fs := in.FileSystem
	fs.Spec.Lustre.Management = nil
	fs.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"oss": ""}
	fs.Spec.StoragePools[0].Targets.Select.CountPerNode = 24
	in.Nodes, in.Targets, in.Inventories = nil, nil, map[string]v1alpha1.NodeInventoryStatus{}
	add := func(name, label string, components ...[3]string) string {
		number := len(in.Nodes)
		ip := func(net int) string { return fmt.Sprintf("10.%d.%d.%d", number>>16+16*net, number>>8&255, number&255) }
		in.Nodes = append(in.Nodes, backend.Node{Name: name, IP: ip(0), Ready: true, Labels: map[string]string{label: ""}})
		in.Inventories[name] = v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{
			{Name: "ib0", Addresses: []string{ip(1) + "/12"}}, {Name: "ib1", Addresses: []string{ip(2) + "/12"}},
		}}
		for _, c := range components {
			in.Pods = append(in.Pods, backend.Pod{
				Name: types.NamespacedName{Namespace: fs.Namespace, Name: "scratch-" + strings.Join(c[:], "") + "." + name}, Component: c[0], StoragePool: c[1],
				Slot: c[2], Node: name, Ready: true, Started: noon, Seen: noon,
			})
		}
		return name
	}
	proven := func(target v1alpha1.StorageTarget) {
		prove(&target)
		in.Targets = append(in.Targets, target)
	}
	for i := range nodes * 5 {
		add(fmt.Sprintf("client-%05d", i), "client", [3]string{"client", "", ""})
	}
	for i := range 4 {
		node := add(fmt.Sprintf("mds-%d", i), "mds", [3]string{"mdt", "", "0"}, [3]string{"mdt", "", "1"})
		for slot := range int32(2) {
			proven(disk(fmt.Sprintf("scratch-mdt-%d-%d", i, slot), node, v1alpha1.RoleMetadata, "", slot))
		}
	}
	for i := range nodes {
		node := add(fmt.Sprintf("oss-%04d", i), "oss", [3]string{"ost", "ssd", ""})
		for d := range 24 {
			proven(disk(fmt.Sprintf("scratch-ssd-%06x", i*24+d), node, v1alpha1.RoleStorage, "ssd", 0))
		}
	}
	// The controller sorts them in the same way.
	slices.SortFunc(in.Nodes, func(a, b backend.Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(in.Pods, func(a, b backend.Pod) int { return strings.Compare(a.Component+" "+a.Node, b.Component+" "+b.Node) })
	return in
}

// served is an existing Lustre whose nodes all report that they serve their targets.
func served(t testing.TB, nodes int) backend.Input {
	t.Helper()
	in := ofNodesWith24OSTs(t, nodes)
	backendtest.Remember(t, lustre.New(), &in)
	in.State = &backend.State{Asked: noon.Add(time.Hour), Version: "2.17.57"}
	indexed := in.Indexed()
	for _, g := range indexed.Given() {
		node, _ := indexed.Node(g.Node)
		if n := len(in.State.Servers); n == 0 || in.State.Servers[n-1].Name != g.Node {
			in.State.Servers = append(in.State.Servers, backend.Server{Name: g.Node, IP: node.IP, Online: true, Version: "2.17.57"})
		}
		for _, target := range g.Targets {
			said := on(g.Role, target.ID)
			said.IP = node.IP
			in.State.Targets = append(in.State.Targets, said)
		}
	}
	backendtest.Remember(t, lustre.New(), &in) // the time since when they serve
	in.FileSystem.Status.Metadata.Initialized = new(metav1.NewTime(noon))
	return in
}

func TestTheLustreThatIsMeasuredBySizeIsWell(t *testing.T) {
	g := NewWithT(t)
	seen := lustre.New().Observe(served(t, 3))
	g.Expect(seen.Serves).To(BeTrue(), "%v", seen.Problems)
	g.Expect(seen.Summary.Servers).To(Equal("11/11"))
	g.Expect(seen.Summary.Targets).To(Equal("72/72"))
	g.Expect(seen.Summary.Clients).To(Equal("15/15"))
}

func TestNoObjectOfALustreOfAThousandNodesIsLargerThan64KiB(t *testing.T) {
	backendtest.Bounded(t, lustre.New(), ofNodesWith24OSTs(t, 1000))
}
