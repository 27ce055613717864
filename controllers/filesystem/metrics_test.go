package filesystem

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// seriesOf returns the values of a metric in a namespace, by labels, with a space between them.
func seriesOf(t *testing.T, metric, namespace string, by ...string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["namespace"] == namespace {
				var key []string
				for _, label := range by {
					key = append(key, labels[label])
				}
				out[strings.Join(key, " ")] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

// clientSeries returns the series of one metric of a FileSystem's clients, by node.
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

func TestTheMetricsOfClientsAreTheAgentsObservations(t *testing.T) {
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
	transports.WithLabelValues("of-lint", "lake", "server", "rdma").Set(1)
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

func TestTheTransportIsAConditionAndAMetricAndGoesWhereNothingIsKnown(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "of-transports", Name: "scratch"}}
	series := func() map[string]float64 {
		return seriesOf(t, "parallelfs_filesystem_transport", "of-transports", "of", "transport")
	}
	condition := func() *metav1.Condition {
		return meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionTransportAsSpecified)
	}
	transport := backend.Transport{Servers: 12, ServersRDMA: 11, Clients: 32, ClientsRDMA: 31}
	for reason, status := range map[string]metav1.ConditionStatus{
		v1alpha1.ReasonAsAsked: metav1.ConditionTrue, v1alpha1.ReasonTCPInUse: metav1.ConditionFalse, v1alpha1.ReasonTransportUnknown: metav1.ConditionUnknown,
	} {
		transport.Problem = backend.Problem{Reason: reason, Message: "as it is"}
		describeTransport(fs, &transport)
		g.Expect(condition().Status).To(Equal(status), reason)
		g.Expect(series()).To(Equal(map[string]float64{"server rdma": 11, "server tcp": 1, "client rdma": 31, "client tcp": 1}))
	}
	describeTransport(fs, nil)
	g.Expect(condition()).To(BeNil())
	g.Expect(series()).To(BeEmpty())
}
