package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// wired is a node with an interface for Kubernetes and two for storage.
var wired = v1alpha1.NodeInventoryStatus{NetworkInterfaces: []v1alpha1.NetworkInterface{
	{Name: "eno1", Addresses: []string{"fd00::5/64", "10.0.0.5/24"}},
	{Name: "ib0", Addresses: []string{"10.1.0.5/16"}}, {Name: "ib1", Addresses: []string{"fe80::1/64", "10.2.0.5/16"}}, {Name: "ib2"},
}}

var n1 = backend.Node{Name: "n1", IP: "10.0.0.5"}

func network(rdma bool, interfaces ...v1alpha1.InterfaceName) lustre.Network {
	return lustre.NetworkOf(&v1alpha1.NetworkSpec{Interfaces: interfaces}, rdma)
}

func TestTheNetworkIsThatOfTheSpec(t *testing.T) {
	for name, c := range map[string]struct {
		network lustre.Network
		nids    []string
	}{
		"nothing is asked for":      {lustre.NetworkOf(nil, false), []string{"10.0.0.5@tcp"}},
		"only RDMA is":              {lustre.NetworkOf(nil, true), []string{"10.0.0.5@o2ib"}},
		"two rails, in their order": {network(true, "ib1", "ib0"), []string{"10.2.0.5@o2ib", "10.1.0.5@o2ib"}},
		"interfaces that this node has not, or without an address": {network(false, "ib9", "ib2", "ib0"), []string{"10.1.0.5@tcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(c.network.NIDs(n1, wired)).To(Equal(c.nids))
		})
	}
}

func TestANodeWithoutTheNetworkReportsWhatIsMissing(t *testing.T) {
	for says, ask := range map[string]func() ([]string, error){
		"none of the interfaces in spec.network.interfaces (ib2, ib9)": func() ([]string, error) { return network(false, "ib2", "ib9").NIDs(n1, wired) },
		`no interface of node n1 has its InternalIP "10.9.9.9"`: func() ([]string, error) {
			return network(false).NIDs(backend.Node{Name: "n1", IP: "10.9.9.9"}, wired)
		},
	} {
		_, err := ask()
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestANetworkThatIsUpIsNotChanged(t *testing.T) {
	g := NewWithT(t)
	n := network(false, "ib0")
	g.Expect(n.Missing("n1", []string{"10.1.0.5@tcp"}, []string{"10.0.0.5@tcp", "10.1.0.5@tcp"})).To(BeEmpty())
	g.Expect(n.Missing("n1", []string{"10.1.0.5@tcp"}, []string{"10.0.0.5@tcp"})).To(ContainSubstring("the operator changes no network that is up"))
	g.Expect(n.Missing("n1", []string{"10.1.0.5@tcp"}, []string{"10.0.0.5@o2ib"})).To(BeEmpty(), "it gets the network")
}

func TestALustreHasIPv4UnlessItsInterfacesAreNamed(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{}
	g.Expect(lustre.New().Families(fs)).To(HaveExactElements(corev1.IPv4Protocol), "NIDs are made of the InternalIP")
	fs.Spec.Network = &v1alpha1.NetworkSpec{Interfaces: []v1alpha1.InterfaceName{"ib0"}}
	g.Expect(lustre.New().Families(fs)).To(Equal(nodefacts.AllFamilies()), "only the probes use the InternalIP")
}
