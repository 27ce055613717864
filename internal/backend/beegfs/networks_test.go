package beegfs

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestClientsUseAllTheirAdaptersAndServersOnlyTheNamedNetworks(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := everything(version)
			own := in.FileSystem.Spec.BeeGFS
			own.ClientRDMAInterfaces, own.Networks, own.TCPNetworks = []v1alpha1.InterfaceName{"ib0", "ib1"}, []v1alpha1.Network{"10.1.0.0/16"}, []v1alpha1.Network{"10.1.9.0/24"}
			in = recorded(t, in)
			for _, node := range []string{"oss1", "c1"} {
				files, err := Files(in, node)
				g.Expect(err).NotTo(HaveOccurred())
				for name, content := range files {
					switch {
					case strings.HasSuffix(name, "/tcp-networks"):
						g.Expect(content).To(Equal("10.1.9.0/24\n"), name)
					case strings.HasSuffix(name, "/networks"):
						g.Expect(content).To(Equal("10.1.0.0/16\n"), name)
					case strings.HasSuffix(name, "/rdma-interfaces"):
						g.Expect(content).To(Equal("ib0\nib1\n"), name)
					case strings.HasSuffix(name, "/beegfs-meta.conf"), strings.HasSuffix(name, "/beegfs-storage.conf"), strings.HasSuffix(name, "/beegfs-client.conf"):
						g.Expect(content).To(ContainSubstring("connNetFilterFile = /run/parallelfs/networks\n"), name)
						g.Expect(content).To(ContainSubstring("connTcpOnlyFilterFile = /run/parallelfs/tcp-networks\n"), name)
						g.Expect(files).To(HaveKey(name[:strings.LastIndex(name, "/")]+"/networks"), name)
						g.Expect(files).To(HaveKey(name[:strings.LastIndex(name, "/")]+"/tcp-networks"), name)
					}
				}
				if node == "c1" {
					g.Expect(files["client/beegfs-client.conf"]).To(ContainSubstring("connRDMAInterfacesFile = /run/parallelfs/rdma-interfaces\n"))
					g.Expect(files).To(HaveKey("client/rdma-interfaces"))
				}
			}
			for _, o := range objectsOf(t, in) {
				m, ok := o.(*corev1.ConfigMap)
				if !ok {
					continue
				}
				if ctl, has := m.Data["beegfs-client.conf"]; has {
					g.Expect(ctl).To(And(ContainSubstring("connNetFilterFile =\n"), ContainSubstring("connRDMAInterfacesFile =\n")), "the tools' pods have no such file")
				}
				if csi, has := m.Data["csi-beegfs-config.yaml"]; has {
					g.Expect(csi).To(And(ContainSubstring("connNetFilter:\n    - 10.1.0.0/16\n"), ContainSubstring("connTcpOnlyFilter:\n    - 10.1.9.0/24\n")))
				}
			}
		})
	}
}

func TestWhatIsNoNetworkIsRefusedWithItsField(t *testing.T) {
	for _, network := range []v1alpha1.Network{"10.1.0.1/16", "10.1.0.0/33", "999.1.0.0/16"} {
		in := recorded(t, cluster("7.4.6"))
		in.FileSystem.Spec.BeeGFS.TCPNetworks = []v1alpha1.Network{network}
		_, err := New().Members(in)
		NewWithT(t).Expect(err).To(MatchError(HavePrefix("spec.beegfs.tcpNetworks: \"" + string(network) + "\" is no network")))
	}
}

func TestChunksThatAreNotSmallerThanTheRDMABuffersAreNamed(t *testing.T) {
	g := NewWithT(t)
	in := offering(t, v1alpha1.RDMAAuto, backend.TransportRDMA, backend.TransportRDMA)
	message := func() string { return New().Observe(in).Transport.Problem.Message }
	g.Expect(message()).To(HaveSuffix("clients offer RDMA, as BeeGFS lists them; chunks of pool ssd are not smaller than the RDMA buffers of a connection (560 KiB), " +
		"which costs throughput; raise connRDMABufSize in spec.beegfs.config.client"))
	in.FileSystem.Spec.BeeGFS.Config.Client = v1alpha1.Options{"connRDMABufSize": "16384"}
	g.Expect(message()).To(HaveSuffix("clients offer RDMA, as BeeGFS lists them"))
	in.FileSystem.Spec.StoragePools[0].BeeGFS.Striping.ChunkSize = resource.MustParse("2Mi")
	g.Expect(message()).To(ContainSubstring("(1120 KiB)"))
}
