package environment_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/environment"
)

func TestInterfaceWith(t *testing.T) {
	with := func(name string, up bool, addresses ...string) environment.Interface {
		i := environment.Interface{Name: name, Up: up, Loopback: name == "lo"}
		for _, a := range addresses {
			i.Addresses = append(i.Addresses, netip.MustParseAddr(a))
		}
		return i
	}
	machine := []environment.Interface{
		with("lo", true, "127.0.0.1", "::1", "10.0.0.9"), with("eno1", true, "192.168.0.1", "10.0.0.1"), with("ib0", true, "10.1.0.1", "10.0.0.9"),
		with("eno2", false, "10.0.0.1", "10.0.0.2"), with("cni0", true, "10.244.0.1"), with("eno3", true, "fd00::1"),
	}
	for name, c := range map[string]struct{ address, want, err string }{
		"the interface with the address":                      {address: "10.1.0.1", want: "ib0"},
		"the second address of an interface counts":           {address: "192.168.0.1", want: "eno1"},
		"of two interfaces, the one that is up":               {address: "10.0.0.1", want: "eno1"},
		"the loopback comes last":                             {address: "10.0.0.9", want: "ib0"},
		"the loopback, where nothing else has the address":    {address: "127.0.0.1", want: "lo"},
		"an IPv6 address in another spelling":                 {address: "fd00:0::0001", want: "eno3"},
		"an IPv4 address in the form of IPv6":                 {address: "::ffff:10.1.0.1", want: "ib0"},
		"an interface that is down is an error that names it": {address: "10.0.0.2", err: "the interface eno2 has the address 10.0.0.2 (NODE_IP), but is down"},
		"an address that none has is an error that says what is there": {address: "10.0.0.7", err: "no interface has the address 10.0.0.7 (NODE_IP), " +
			"which $(NODE_INTERFACE) is looked for by; there is: lo 127.0.0.1"},
		"a name is no address": {address: "node1", err: `NODE_IP: "node1" is no address`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := environment.InterfaceWith(c.address, machine)
			if c.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(c.want))
		})
	}
}

func TestTheInterfaceOfTheNodeIsLookedForWhereATextNamesIt(t *testing.T) {
	with := func(values map[string]string) environment.Lookup {
		return func(name string) (string, bool) { value, set := values[name]; return value, set }
	}
	g := NewWithT(t)
	const text = "$(NODE_INTERFACE) *\n"
	g.Expect(environment.Expand(text, with(map[string]string{"NODE_IP": "127.0.0.1"}))).To(Equal("lo *\n"), "of this machine")
	g.Expect(environment.Expand(text, with(map[string]string{"NODE_INTERFACE": "ib0"}))).To(Equal("ib0 *\n"), "one that is set is taken as it is")
	_, err := environment.Expand(text, with(nil))
	g.Expect(err).To(MatchError(ContainSubstring("NODE_IP is not set")))
	// This is an address of "this network" (RFC 1122), which no machine can have.
	_, err = environment.Expand(text, with(map[string]string{"NODE_IP": "0.0.0.1"}))
	g.Expect(err).To(MatchError(And(ContainSubstring("no interface has the address 0.0.0.1"), ContainSubstring("lo 127.0.0.1"))))
	g.Expect(environment.Expand("$(NODE_IP)", with(map[string]string{"NODE_IP": "0.0.0.1"}))).To(Equal("0.0.0.1"), "and is not looked for elsewhere")
}
