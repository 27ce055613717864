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
