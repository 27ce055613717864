package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestTimesOfTheLeaseAndFormsOfTheLogThatCanNotWorkAreRefusedWithASentence(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"the defaults":                         {nil, ""},
		"longer times":                         {[]string{"--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s", "--leader-elect-retry-period=10s"}, ""},
		"a lease that ends before the renewal": {[]string{"--leader-elect-lease-duration=20s"}, "the lease lasts 20s"},
		"a renewal of one attempt":             {[]string{"--leader-elect-retry-period=24s"}, "tried each 24s"},
		"no pause between attempts":            {[]string{"--leader-elect-retry-period=0s"}, "tried each 0s"},
		"text":                                 {[]string{"--log-format=text"}, ""},
		"another form":                         {[]string{"--log-format=xml"}, `--log-format is "xml"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(append([]string{"--node-image=node:1"}, c.args...))
			if c.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}
