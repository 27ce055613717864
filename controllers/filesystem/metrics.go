package filesystem

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Metrics returns the metrics that passes over FileSystems write, besides those that package metrics reads from the cache.
func Metrics() []prometheus.Collector {
	return []prometheus.Collector{passSeconds, evictions, disconnected, transports}
}

// passSeconds is how long passes over FileSystems take, in seconds. Its parts distinguish a slow filesystem from a slow operator: "answer"
// is the time in which a pass only waits for the filesystem, and "work" is all other time.
var passSeconds = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
	Name:    "parallelfs_filesystem_pass_seconds",
	Help:    "Seconds of a pass over a FileSystem: its own work (part work), and the wait for the answer of the filesystem (part answer).",
	Buckets: []float64{.005, .01, .025, .05, .075, .1, .15, .2, .25, .3, .4, .5, .75, 1, 2.5, 5, 10, 20, 40, 80},
}, []string{"part"})

// transports counts the servers and clients of a FileSystem by the transport that they offer. A filesystem that does not report it has no
// series.
var transports = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_filesystem_transport",
	Help: "Servers and clients of a FileSystem by the transport that they offer: rdma, or tcp only.",
}, []string{"namespace", "filesystem", "of", "transport"})

// The clients of filesystems that the kernel mounts, as the agents have last seen them. Without an agent's observation there is no series.
var (
	evictions = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "parallelfs_filesystem_client_evictions",
		Help: "Evictions of a client by servers of a FileSystem, by node: since its agent has started, and before as far as its kernel remembers.",
	}, []string{"namespace", "filesystem", "node"})
	disconnected = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "parallelfs_filesystem_client_disconnected_targets",
		Help: "Targets of a FileSystem that a client has no connection with, by node.",
	}, []string{"namespace", "filesystem", "node"})
)

// measured holds the clients of each FileSystem that have series, by node.
var measured = struct {
	sync.Mutex
	of map[types.NamespacedName]map[string]bool
}{of: map[types.NamespacedName]map[string]bool{}}

// measureClients sets the series for what the agents have observed about the clients of a FileSystem. A series that continues is never
// deleted in between, because a scrape may happen at any moment.
func measureClients(fs *v1alpha1.FileSystem, clients []backend.Client) {
	if len(clients) == 0 && fs.Spec.Clients != nil {
		return // this pass has not observed clients
	}
	now := map[string]bool{}
	for _, c := range clients {
		if c.Kernel != nil {
			now[c.Node] = true
			evictions.WithLabelValues(fs.Namespace, fs.Name, c.Node).Set(float64(c.Kernel.Evictions))
			disconnected.WithLabelValues(fs.Namespace, fs.Name, c.Node).Set(float64(len(c.Kernel.Disconnected)))
		}
	}
	onlyMeasured(types.NamespacedName{Namespace: fs.Namespace, Name: fs.Name}, now)
}

// forgetClients deletes the series of the clients of a FileSystem that is gone.
func forgetClients(name types.NamespacedName) { onlyMeasured(name, nil) }

// onlyMeasured deletes the series of a FileSystem's clients except the given ones.
func onlyMeasured(name types.NamespacedName, now map[string]bool) {
	measured.Lock()
	defer measured.Unlock()
	for node := range measured.of[name] {
		if !now[node] {
			evictions.DeleteLabelValues(name.Namespace, name.Name, node)
			disconnected.DeleteLabelValues(name.Namespace, name.Name, node)
		}
	}
	if measured.of[name] = now; len(now) == 0 {
		delete(measured.of, name)
	}
}

// measure records the duration of a pass, and the part in which it waited for the filesystem's answer.
func measure(took, waited time.Duration) {
	passSeconds.WithLabelValues("work").Observe((took - waited).Seconds())
	passSeconds.WithLabelValues("answer").Observe(waited.Seconds())
}
