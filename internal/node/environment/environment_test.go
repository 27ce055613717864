package environment_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/environment"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"NODE_IP": "10.0.0.1", "EMPTY": "", "NESTED": "$(NODE_IP)"}
	lookup := func(name string) (string, bool) { value, set := values[name]; return value, set }
	for name, c := range map[string]struct{ text, want, err string }{
		"a text without a reference stays":              {text: "PORT = 9421\n", want: "PORT = 9421\n"},
		"a reference becomes the value":                 {text: "HOST = $(NODE_IP):1", want: "HOST = 10.0.0.1:1"},
		"a variable that is set to nothing is no error": {text: "<$(EMPTY)>", want: "<>"},
		"a value is not expanded again":                 {text: "$(NESTED)", want: "$(NODE_IP)"},
		"a dollar without a name in brackets stays":     {text: "$NODE_IP ${NODE_IP} $(1x)", want: "$NODE_IP ${NODE_IP} $(1x)"},
		"an unset variable is an error that names it":   {text: "$(NODE_IP) $(NO_SUCH)", err: "NO_SUCH is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := environment.Expand(c.text, lookup)
			if c.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(c.want))
		})
	}
}

func TestTheAddressOfTheNodeIsTheOneOfIPv4(t *testing.T) {
	for list, want := range map[string]string{
		"10.0.0.1":         "10.0.0.1",
		"10.0.0.1,fd00::1": "10.0.0.1",
		"fd00::1,10.0.0.1": "10.0.0.1",
		"fd00::1":          "fd00::1",
		"":                 "",
	} {
		t.Run(list, func(t *testing.T) {
			t.Setenv("NODE_IP", list)
			value, set := environment.OfProcess("NODE_IP")
			g := NewWithT(t)
			g.Expect(set).To(BeTrue())
			g.Expect(value).To(Equal(want))
		})
	}
	t.Setenv("NODE_NAME", "a,b")
	value, _ := environment.OfProcess("NODE_NAME")
	NewWithT(t).Expect(value).To(Equal("a,b"))
}

func TestAnAddressToListenOnHasBracketsAroundIPv6(t *testing.T) {
	g := NewWithT(t)
	at := func(ip string) environment.Lookup { return func(string) (string, bool) { return ip, true } }
	g.Expect(environment.ExpandAddress("$(NODE_IP):9732", at("fd00::1"))).To(Equal("[fd00::1]:9732"))
	g.Expect(environment.ExpandAddress("$(NODE_IP):9732", at("10.0.0.1"))).To(Equal("10.0.0.1:9732"))
	g.Expect(environment.ExpandAddress("10.0.0.1:9732", at("x"))).To(Equal("10.0.0.1:9732"))
	_, err := environment.ExpandAddress("10.0.0.1", at("x"))
	g.Expect(err).To(MatchError(ContainSubstring(`"10.0.0.1" is no host and port`)))
}
