package network_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/spec"
)

// tcp is an LNet network as a backend describes it.
var tcp = spec.KernelNetwork{
	Name: "tcp", Interfaces: []string{"eth1", "eth2", "eth9"}, Start: [][]string{{"modprobe", "lnet"}, {"lnetctl", "lnet", "configure"}},
	List: []string{"lctl", "list_nids"}, Add: []string{"lnetctl", "net", "add", "--net", "tcp", "--if", "$(INTERFACES)"},
}

// machine is a node with two usable interfaces. nids holds its NIDs, and ran the commands that were run.
type machine struct {
	nids []string
	// comes holds its NIDs after a network was added.
	comes []string
	ran   []string
}

func (m *machine) node() network.Node {
	up := func(name, address string, up bool) environment.Interface {
		return environment.Interface{Name: name, Up: up, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
	}
	return network.Node{
		Run: func(_ context.Context, argv []string) (format.Answer, error) {
			line := strings.Join(argv, " ")
			switch {
			case line == "lctl list_nids":
				if m.nids == nil {
					return format.Answer{Code: 100, Said: "IOC_LIBCFS_GET_NI error 100: Network is down"}, nil
				}
				return format.Answer{Stdout: strings.Join(m.nids, "\n") + "\n"}, nil
			case strings.HasPrefix(line, "lnetctl net add"):
				m.nids = append(m.nids, m.comes...)
			}
			m.ran = append(m.ran, line)
			return format.Answer{Code: 1, Said: "its exit code means nothing"}, nil
		},
		Interfaces: func() ([]environment.Interface, error) {
			return []environment.Interface{
				up("eth0", "10.9.0.1", true), up("eth1", "10.0.0.1", true), up("eth2", "10.0.0.2", true), up("eth3", "10.0.0.3", false), up("eth4", "fe80::1", true),
			}, nil
		},
		Lookup: func(name string) (string, bool) { return "eth1", name == "NODE_INTERFACE" },
	}
}

func TestANodeWithoutTheNetworkGetsItOnItsInterfaces(t *testing.T) {
	g, m := NewWithT(t), &machine{comes: []string{"10.0.0.1@tcp", "10.0.0.2@tcp"}}
	g.Expect(m.node().Up(t.Context(), tcp)).To(Succeed())
	g.Expect(m.ran).To(Equal([]string{"modprobe lnet", "lnetctl lnet configure", "lnetctl net add --net tcp --if eth1,eth2"}))
}

func TestTheInterfaceOfTheNodesAddressIsOneToo(t *testing.T) {
	g, m := NewWithT(t), &machine{comes: []string{"10.0.0.1@tcp"}}
	net := tcp
	net.Interfaces = []string{"$(NODE_INTERFACE)"}
	g.Expect(m.node().Up(t.Context(), net)).To(Succeed())
	g.Expect(m.ran).To(ContainElement("lnetctl net add --net tcp --if eth1"))
}

func TestANetworkThatIsUpIsNeverChanged(t *testing.T) {
	g, m := NewWithT(t), &machine{nids: []string{"10.9.0.1@tcp"}}
	g.Expect(m.node().Up(t.Context(), tcp)).To(Succeed())
	net := tcp
	net.NIDs = []string{"10.0.0.1@tcp"}
	g.Expect(m.node().Up(t.Context(), net)).To(MatchError(And(ContainSubstring("has 10.9.0.1@tcp, and not 10.0.0.1@tcp"), ContainSubstring("correct it on the node"))))
	g.Expect(m.ran).To(BeEmpty())
}

func TestANetworkOfAnotherNameIsNoReasonToLeaveOneOut(t *testing.T) {
	g, m := NewWithT(t), &machine{nids: []string{"10.9.0.1@tcp1", "10.9.0.1@o2ib"}, comes: []string{"10.0.0.1@tcp"}}
	g.Expect(m.node().Up(t.Context(), tcp)).To(Succeed())
	g.Expect(m.ran).To(ContainElement(HavePrefix("lnetctl net add")))
}

func TestANetworkThatDoesNotComeUpReportsTheReason(t *testing.T) {
	g, m := NewWithT(t), &machine{}
	g.Expect(m.node().Up(t.Context(), tcp)).To(MatchError(And(ContainSubstring("the network tcp does not come up"),
		ContainSubstring("lnetctl net add --net tcp --if eth1,eth2 ended with exit code 1"), ContainSubstring("Network is down"))))
	net := tcp
	net.Interfaces = []string{"eth3", "eth4", "eth9"}
	g.Expect(m.node().Up(t.Context(), net)).To(MatchError(ContainSubstring("needs one of the interfaces eth3, eth4, eth9")))
}
