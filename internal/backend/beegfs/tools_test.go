package beegfs_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
)

func TestTheToolOfBeeGFSGetsTheAddressAndTheSecret(t *testing.T) {
	for name, c := range map[string]struct {
		version    string
		argv, want []string
	}{
		"beegfs-ctl has a file": {"7.4.6", []string{"beegfs-ctl", "--listnodes"},
			[]string{"/opt/beegfs/sbin/beegfs-ctl", "--cfgFile=/etc/parallelfs/beegfs-client.conf", "--listnodes"}},
		"beegfs has the secret": {"8.3.1", []string{"beegfs", "node", "list"}, []string{"/opt/beegfs/sbin/beegfs", "--mgmtd-addr=10.0.0.1:8010",
			"--auth-file=/etc/parallelfs-auth/conn.auth", "--tls-disable", "node", "list"}},
		"another program": {"8.3.1", []string{"df", "-h"}, []string{"df", "-h"}},
	} {
		t.Run(name, func(t *testing.T) {
			fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: v1alpha1.BeeGFS}}
			fs.Status.Version, fs.Status.Metadata = c.version, &v1alpha1.MetadataRecord{Node: "n1"}
			fs.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
			NewWithT(t).Expect(beegfs.Backend{}.RunTool(fs, "10.0.0.1", c.argv)).To(Equal(
				backend.ToolCall{Components: []string{"management"}, Container: "probe", Argv: c.want}))
		})
	}
}

func TestAToolOfAnotherVersionIsRefused(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: v1alpha1.BeeGFS, Version: "8.3.1"}}
	_, err := beegfs.Backend{}.RunTool(fs, "", []string{"beegfs-ctl", "--listnodes"})
	g.Expect(err).To(MatchError("BeeGFS 8.3.1 has the tool beegfs, and not beegfs-ctl"))
	_, err = beegfs.Backend{}.RunTool(fs, "", []string{"beegfs", "node", "list"})
	g.Expect(err).To(MatchError(ContainSubstring("no management service yet")))
}
