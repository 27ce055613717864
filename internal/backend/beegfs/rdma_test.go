package beegfs

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// serversOf returns the DaemonSets of an input by the name of their first container and its slot or pool, such as "meta 0".
func serversOf(t *testing.T, in backend.Input) map[string]*appsv1.DaemonSet {
	t.Helper()
	out := map[string]*appsv1.DaemonSet{}
	for _, object := range objectsOf(t, recorded(t, in)) {
		if d, ok := object.(*appsv1.DaemonSet); ok {
			labels := d.Spec.Template.Labels
			out[labels[v1alpha1.LabelComponent]+" "+labels[v1alpha1.LabelSlot]+labels[v1alpha1.LabelStoragePool]] = d
		}
	}
	return out
}

// withAdapters gives nodes an adapter each.
func withAdapters(in backend.Input, nodes ...string) backend.Input {
	inventories := map[string]v1alpha1.NodeInventoryStatus{}
	maps.Copy(inventories, in.Inventories)
	for _, node := range nodes {
		i := inventories[node]
		i.RDMADevices = []v1alpha1.RDMADevice{{Name: "mlx5_0", State: "ACTIVE", LinkLayer: "InfiniBand"}}
		inventories[node] = i
	}
	in.Inventories = inventories
	return in
}

func privileged(d *appsv1.DaemonSet) bool {
	c := d.Spec.Template.Spec.Containers[0].SecurityContext
	return c.Privileged != nil && *c.Privileged
}

// A mounted directory with the devices is not enough: the device cgroup of an unprivileged container refuses to open them.
func TestOnlyServersThatCanOpenRDMADevicesAreConfiguredToUseThem(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			server := func(in backend.Input, name string) *appsv1.DaemonSet {
				d := serversOf(t, in)[name]
				g.Expect(d).NotTo(BeNil(), name)
				return d
			}
			asked := func(mode v1alpha1.RDMAMode, resource string, nodes ...string) backend.Input {
				in := withAdapters(cluster(version), nodes...)
				in.FileSystem.Spec.BeeGFS.RDMA, in.FileSystem.Spec.BeeGFS.RDMAResource = mode, resource
				return in
			}
			for _, name := range []string{"meta 0", "storage ssd"} {
				for _, d := range []*appsv1.DaemonSet{
					server(asked("", "", "oss1", "oss2"), name), server(asked(v1alpha1.RDMARequired, ""), name),
				} {
					g.Expect(privileged(d)).To(BeTrue(), "%s: a node of it has an adapter, or RDMA is required", name)
				}
				for _, d := range []*appsv1.DaemonSet{
					server(asked("", ""), name), server(asked("", "", "c1"), name), server(asked(v1alpha1.RDMADisabled, "", "oss1", "oss2"), name),
				} {
					g.Expect(privileged(d)).To(BeFalse(), "%s: no node of it has an adapter, or RDMA is disabled", name)
				}
				const plugin = "rdma/hca_shared_devices_a"
				d := server(asked("", plugin, "oss1", "oss2"), name)
				c := d.Spec.Template.Spec.Containers[0]
				g.Expect(privileged(d)).To(BeFalse(), "the device plugin has the container open the devices")
				g.Expect(c.Resources.Requests).To(HaveKeyWithValue(corev1.ResourceName(plugin), resource.MustParse("1")))
				g.Expect(c.Resources.Limits).To(HaveKeyWithValue(corev1.ResourceName(plugin), resource.MustParse("1")))
				g.Expect(c.SecurityContext.Capabilities.Add).To(ContainElement(corev1.Capability("IPC_LOCK")))
				for _, v := range d.Spec.Template.Spec.Volumes {
					g.Expect(v.Name).NotTo(Equal("rdma"))
				}
			}
			g.Expect(privileged(server(asked(v1alpha1.RDMARequired, ""), "management "))).To(BeFalse(), "it speaks TCP only")
		})
	}
}

func TestAnAdapterThatComesOrGoesRestartsNoServer(t *testing.T) {
	g := NewWithT(t)
	hash := func(mode v1alpha1.RDMAMode, resource string, nodes ...string) string {
		in := withAdapters(cluster(versions[0]), nodes...)
		in.FileSystem.Spec.BeeGFS.RDMA, in.FileSystem.Spec.BeeGFS.RDMAResource = mode, resource
		return serversOf(t, in)["storage ssd"].Spec.Template.Annotations[backend.TemplateHashAnnotation]
	}
	auto := hash("", "")
	g.Expect(hash("", "", "oss1", "oss2")).To(Equal(auto))
	g.Expect(hash(v1alpha1.RDMAAuto, "")).To(Equal(auto))
	g.Expect(hash(v1alpha1.RDMARequired, "")).NotTo(Equal(auto))
	g.Expect(hash(v1alpha1.RDMADisabled, "")).NotTo(Equal(auto))
	g.Expect(hash("", "rdma/a")).NotTo(Equal(auto))
	g.Expect(hash("", "rdma/a")).NotTo(Equal(hash("", "rdma/b")))
}

// offering is a cluster in which BeeGFS lists its servers, and its client, with a transport each.
func offering(t *testing.T, mode v1alpha1.RDMAMode, servers, client string) backend.Input {
	t.Helper()
	in := healthy(t, versions[0])
	in.FileSystem.Spec.BeeGFS.RDMA = mode
	for i := range in.State.Servers {
		if in.State.Servers[i].Role != v1alpha1.RoleManagement {
			in.State.Servers[i].Transport = servers
		}
	}
	in.State.Sessions = []backend.Session{{IP: "10.0.0.9", Connected: true, Transport: client}}
	return in
}

func TestTheTransportIsWhatBeeGFSListsAndNotWhatTheSpecAsks(t *testing.T) {
	const rdma, tcp = backend.TransportRDMA, backend.TransportTCP
	for name, c := range map[string]struct {
		mode            v1alpha1.RDMAMode
		servers, client string
		adapters        []string
		reason, says    string
		summary         string
	}{
		"all by RDMA, as required": {mode: v1alpha1.RDMARequired, servers: rdma, client: rdma, reason: v1alpha1.ReasonAsAsked,
			says: "ALL of ALL servers and 1 of 1 clients offer RDMA", summary: "ALL/ALL, clients 1/1"},
		"the silent fall to TCP where RDMA is required": {mode: v1alpha1.RDMARequired, servers: tcp, client: rdma, reason: v1alpha1.ReasonTCPInUse,
			says: "TCP only, although RDMA is required: meta-0.oss1", summary: "0/ALL, clients 1/1"},
		"a client by TCP where RDMA is required": {mode: v1alpha1.RDMARequired, servers: rdma, client: tcp, reason: v1alpha1.ReasonTCPInUse,
			says: "TCP only, although RDMA is required: the client on c1; look at", summary: "ALL/ALL, clients 0/1"},
		"all by TCP, and no adapter": {servers: tcp, client: tcp, reason: v1alpha1.ReasonAsAsked, says: "0 of ALL servers and 0 of 1 clients offer RDMA",
			summary: "0/ALL, clients 0/1"},
		"by TCP beside an active adapter": {servers: tcp, client: tcp, adapters: []string{"oss1"}, reason: v1alpha1.ReasonTCPInUse,
			says: "TCP only, although the node has an active adapter: meta-0.oss1", summary: "0/ALL, clients 0/1"},
		"by RDMA where there is an adapter, by TCP elsewhere": {servers: rdma, client: tcp, adapters: []string{"oss1", "oss2"},
			reason: v1alpha1.ReasonAsAsked, says: "ALL of ALL servers and 0 of 1 clients", summary: "ALL/ALL, clients 0/1"},
		"the probe of an earlier operator":                       {},
		"the probe of an earlier operator, and RDMA is required": {mode: v1alpha1.RDMARequired, reason: v1alpha1.ReasonTransportUnknown, says: "no server is online that says"},
		"RDMA is disabled":                                       {mode: v1alpha1.RDMADisabled, servers: tcp, client: tcp},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := withAdapters(offering(t, c.mode, c.servers, c.client), c.adapters...)
			seen := New().Observe(in)
			all := fmt.Sprint(len(seen.Servers) - 1)
			g.Expect(seen.Summary.RDMA).To(Equal(strings.ReplaceAll(c.summary, "ALL", all)))
			if c.reason == "" {
				g.Expect(seen.Transport).To(BeNil())
				return
			}
			g.Expect(seen.Transport.Problem.Reason).To(Equal(c.reason))
			g.Expect(seen.Transport.Problem.Message).To(HavePrefix(strings.ReplaceAll(c.says, "ALL", all)))
			g.Expect(seen.Serves).To(BeTrue(), "the transport does not stand in the way of Ready")
			in.State, in.StateError = nil, "no answer"
			g.Expect(New().Observe(in).Transport.Problem.Reason).To(Equal(v1alpha1.ReasonTransportUnknown))
		})
	}
}
