package moosefs

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

func TestOnlyTheHostsOfTheSpecMayMount(t *testing.T) {
	g := NewWithT(t)
	in := everything("4.57.5")
	administrator := "127.0.0.1 / rw,alldirs,admin,maproot=0:0,md5pass=" + digest(in.Password) + "\n"
	g.Expect(exports(in)).To(Equal("* / rw,alldirs,maproot=0:0\n" + administrator))
	in.FileSystem.Spec.MooseFS.Exports = []v1alpha1.MooseFSExport{
		{Addresses: "192.168.10.0/24", Directory: "/"},
		{Addresses: "192.168.20.5-192.168.20.9", Directory: "/projects", ReadOnly: true, RootAs: &v1alpha1.MooseFSUser{User: new(int64(65534)), Group: new(int64(65533))},
			AllAs: &v1alpha1.MooseFSUser{User: new(int64(0)), Group: new(int64(7))}},
	}
	g.Expect(exports(in)).To(Equal("192.168.10.0/24 / rw,alldirs,maproot=0:0\n" +
		"192.168.20.5-192.168.20.9 /projects ro,alldirs,maproot=65534:65533,mapall=0:7\n" + administrator))
}

func TestHostsThatTheMasterCouldNotReadAreRefused(t *testing.T) {
	for addresses, accepted := range map[string]bool{
		"*": true, "10.0.0.1": true, "10.0.0.0/8": true, "10.0.0.1-10.0.0.1": true,
		"10.0.0.300": false, "10.0.0.1/8": false, "10.0.0.0/33": false, "10.0.0.2-10.0.0.1": false, "10.0.0.1-10.0.0.900": false,
	} {
		in := everything("3.0.117")
		in.FileSystem.Spec.MooseFS.Exports = []v1alpha1.MooseFSExport{{Addresses: addresses}}
		backendtest.Remember(t, New(), &in)
		_, err := New().Members(in)
		if accepted {
			NewWithT(t).Expect(err).NotTo(HaveOccurred(), addresses)
			continue
		}
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("spec.moosefs.exports: \""+addresses+"\" is neither")), addresses)
	}
}
