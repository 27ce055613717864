package inside_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/inside"
)

func TestToolsGetTheAddressAndTheCredentialsOfTheFileSystem(t *testing.T) {
	moosefs := func(*v1alpha1.FileSystem) {}
	beegfs := func(version string) func(*v1alpha1.FileSystem) {
		return func(fs *v1alpha1.FileSystem) {
			fs.Spec.Type, fs.Status.Version = v1alpha1.BeeGFS, version
			fs.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
		}
	}
	lustre := func(fs *v1alpha1.FileSystem) { fs.Spec.Type = v1alpha1.Lustre }
	for name, c := range map[string]struct {
		of         func(*v1alpha1.FileSystem)
		argv, want []string
		components []string
	}{
		"mfscli asks the master":      {moosefs, []string{"mfscli", "-SIN"}, []string{"mfscli", "-H", "127.0.0.1", "-P", "9421", "-SIN"}, []string{"master"}},
		"an address wins":             {moosefs, []string{"mfscli", "-H", "m", "-SIN"}, []string{"mfscli", "-H", "m", "-SIN"}, []string{"master"}},
		"another program":             {moosefs, []string{"ls", "a b", "$(id)"}, []string{"ls", "a b", "$(id)"}, []string{"master"}},
		"beegfs-ctl has a file":       {beegfs("7.4.6"), []string{"beegfs-ctl", "--listnodes"}, []string{"/opt/beegfs/sbin/beegfs-ctl", "--cfgFile=/etc/parallelfs/beegfs-client.conf", "--listnodes"}, []string{"management"}},
		"beegfs has the secret":       {beegfs("8.3.1"), []string{"beegfs", "node", "list"}, []string{"/opt/beegfs/sbin/beegfs", "--mgmtd-addr=10.0.0.1:8010", "--auth-file=/etc/parallelfs-auth/conn.auth", "--tls-disable", "node", "list"}, []string{"management"}},
		"lctl belongs to the node":    {lustre, []string{"lctl", "dl"}, []string{"/parallelfs/node", "on-node", "lctl", "dl"}, []string{"mgs", "mdt", "ost"}},
		"another tool in a BeeGFS":    {beegfs("8.3.1"), []string{"df", "-h"}, []string{"df", "-h"}, []string{"management"}},
		"the whole path of a program": {moosefs, []string{"/usr/bin/mfscli", "-SIN"}, []string{"/usr/bin/mfscli", "-SIN"}, []string{"master"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: v1alpha1.MooseFS}}
			fs.Status.Management = &v1alpha1.ManagementStatus{Address: "10.0.0.1:9421"}
			fs.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n1"}
			c.of(fs)
			got, err := inside.CallOf(fs, "10.0.0.1", c.argv)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(inside.Call{Components: c.components, Container: "probe", Argv: c.want}))
		})
	}
}

func TestAToolOfAnotherVersionIsRefused(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: v1alpha1.BeeGFS, Version: "8.3.1"}}
	_, err := inside.CallOf(fs, "", []string{"beegfs-ctl", "--listnodes"})
	g.Expect(err).To(MatchError("BeeGFS 8.3.1 has the tool beegfs, and not beegfs-ctl"))
	_, err = inside.CallOf(fs, "", []string{"beegfs", "node", "list"})
	g.Expect(err).To(MatchError(ContainSubstring("no management service yet")))
}

func TestTheToolRunsInARunningPodOfTheBestComponent(t *testing.T) {
	g := NewWithT(t)
	pod := func(name, component, node string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelComponent: component}},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	pods := []corev1.Pod{
		pod("ost-1", "ost", "n2", corev1.PodRunning), pod("mdt-2", "mdt", "n1", corev1.PodRunning), pod("mdt-1", "mdt", "n1", corev1.PodRunning),
		pod("mgs", "mgs", "n1", corev1.PodPending), pod("client", "client", "n3", corev1.PodRunning),
	}
	call := inside.Call{Components: []string{"mgs", "mdt", "ost"}}
	best, err := call.Choose(pods, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(best.Name).To(Equal("mdt-1"))
	best, err = call.Choose(pods, "n2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(best.Name).To(Equal("ost-1"))
	_, err = call.Choose(pods, "n3")
	g.Expect(err).To(MatchError(ContainSubstring("no pod of the filesystem that has this tool runs on node n3")))
}
