package filesystem

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prometheus/client_golang/prometheus"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// describeTransport sets the condition TransportAsSpecified about how servers and clients can reach each other, and the metric.
func describeTransport(fs *v1alpha1.FileSystem, transport *backend.Transport) {
	measureTransport(types.NamespacedName{Namespace: fs.Namespace, Name: fs.Name}, transport)
	if transport == nil {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionTransportAsSpecified)
		return
	}
	status := metav1.ConditionFalse
	switch transport.Problem.Reason {
	case v1alpha1.ReasonAsAsked:
		status = metav1.ConditionTrue
	case v1alpha1.ReasonTransportUnknown:
		status = metav1.ConditionUnknown
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionTransportAsSpecified, status,
		transport.Problem.Reason, transport.Problem.Message)
}

// measureTransport sets how many servers and clients of a FileSystem offer RDMA, and how many offer TCP only. It deletes the series if
// nothing is known.
func measureTransport(name types.NamespacedName, transport *backend.Transport) {
	if transport == nil || transport.Servers+transport.Clients == 0 {
		transports.DeletePartialMatch(prometheus.Labels{"namespace": name.Namespace, "filesystem": name.Name})
		return
	}
	for of, counts := range map[string][2]int{
		"server": {transport.ServersRDMA, transport.Servers}, "client": {transport.ClientsRDMA, transport.Clients},
	} {
		transports.WithLabelValues(name.Namespace, name.Name, of, "rdma").Set(float64(counts[0]))
		transports.WithLabelValues(name.Namespace, name.Name, of, "tcp").Set(float64(counts[1] - counts[0]))
	}
}
