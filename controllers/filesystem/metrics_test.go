package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// clientSeries are the series of one metric of the clients of a FileSystem, by node.
func clientSeries(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == name && labels["namespace"] == "of-clients" {
				out[labels["node"]] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestTheMetricsOfClientsAreWhatTheAgentsHaveSeen(t *testing.T) {
	g := NewWithT(t)
	const given, lost = "parallelfs_filesystem_client_evictions", "parallelfs_filesystem_client_disconnected_targets"
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "of-clients", Name: "lake"}}
	fs.Spec.Clients = &v1alpha1.ClientsSpec{}
	clients := []backend.Client{
		{Node: "n1", Kernel: &v1alpha1.HostClient{Name: "lake", Evictions: 3, Disconnected: []string{"lake-OST0001 DISCONN"}}},
		{Node: "n2", Kernel: &v1alpha1.HostClient{Name: "lake"}}, {Node: "n3"},
	}
	measureClients(fs, clients)
	g.Expect(clientSeries(t, given)).To(Equal(map[string]float64{"n1": 3, "n2": 0}), "of n3 nobody knows")
	g.Expect(clientSeries(t, lost)).To(Equal(map[string]float64{"n1": 1, "n2": 0}))

	measureClients(fs, nil)
	g.Expect(clientSeries(t, given)).To(HaveLen(2), "a pass that did not look takes nothing away")
	measureClients(fs, clients[1:])
	g.Expect(clientSeries(t, given)).To(Equal(map[string]float64{"n2": 0}), "n1 is no client any more")
	forgetClients(types.NamespacedName{Namespace: "of-clients", Name: "lake"})
	g.Expect(clientSeries(t, lost)).To(BeEmpty(), "it is gone")
}

func TestTheMetricsOfPassesHaveNoFault(t *testing.T) {
	g := NewWithT(t)
	measure(time.Second, time.Millisecond)
	evictions.WithLabelValues("of-lint", "lake", "n1").Set(1)
	disconnected.WithLabelValues("of-lint", "lake", "n1").Set(1)
	registry := prometheus.NewRegistry()
	for _, c := range Metrics() {
		g.Expect(registry.Register(c)).To(Succeed())
	}
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(HaveLen(len(Metrics())))
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty())
}
