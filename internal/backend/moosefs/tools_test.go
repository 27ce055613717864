package moosefs_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/moosefs"
)

func TestMfscliGetsTheAddressOfTheMaster(t *testing.T) {
	for name, c := range map[string]struct{ argv, want []string }{
		"mfscli":                      {[]string{"mfscli", "-SIN"}, []string{"mfscli", "-H", "127.0.0.1", "-P", "9421", "-SIN"}},
		"a person's own address":      {[]string{"mfscli", "-H", "m", "-SIN"}, []string{"mfscli", "-H", "m", "-SIN"}},
		"another program":             {[]string{"ls", "a b", "$(id)"}, []string{"ls", "a b", "$(id)"}},
		"the whole path of a program": {[]string{"/usr/bin/mfscli", "-SIN"}, []string{"/usr/bin/mfscli", "-SIN"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{}
			fs.Status.Management = &v1alpha1.ManagementStatus{Address: "10.0.0.1:9421"}
			g.Expect(moosefs.Backend{}.RunTool(fs, "10.0.0.1", c.argv)).To(Equal(
				backend.ToolCall{Components: []string{"master"}, Container: "probe", Argv: c.want}))
		})
	}
	_, err := moosefs.Backend{}.RunTool(&v1alpha1.FileSystem{}, "", []string{"mfscli", "-SIN"})
	NewWithT(t).Expect(err).To(MatchError("the FileSystem has no master yet (status.management)"))
}
