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

// Metrics are those that passes over FileSystems write, besides those that package metrics reads from the cache.
func Metrics() []prometheus.Collector {
	return []prometheus.Collector{passSeconds, evictions, disconnected, transports}
}

// passSeconds is how long passes over FileSystems take, in seconds. Its parts tell a slow filesystem from a slow operator: "answer" is the
// time in which a pass waits for the filesystem and does nothing else, and "work" is all other time.
var passSeconds = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
	Name:    "parallelfs_filesystem_pass_seconds",
	Help:    "Seconds of a pass over a FileSystem: its own work (part work), and the wait for the answer of the filesystem (part answer).",
	Buckets: []float64{.005, .01, .025, .05, .075, .1, .15, .2, .25, .3, .4, .5, .75, 1, 2.5, 5, 10, 20, 40, 80},
}, []string{"part"})

// transports are the servers and clients of a FileSystem by what they offer; no series of a filesystem that does not say.
var transports = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_filesystem_transport",
	Help: "Servers and clients of a FileSystem by the transport that they offer: rdma, or tcp only.",
}, []string{"namespace", "filesystem", "of", "transport"})

// Of the clients of filesystems whose mounts are the kernel's, as the agents have seen them last; no series where no agent has seen one.
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

// measured are the clients of each FileSystem that have series, by node.
var measured = struct {
	sync.Mutex
	of map[types.NamespacedName]map[string]bool
}{of: map[types.NamespacedName]map[string]bool{}}

// measureClients says what the agents have seen of the clients of a FileSystem. A series that stays is never away: somebody may read all of
// them at any moment.
func measureClients(fs *v1alpha1.FileSystem, clients []backend.Client) {
	if len(clients) == 0 && fs.Spec.Clients != nil {
		return // this pass has not looked
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

// forgetClients takes away what was measured of the clients of a FileSystem that is gone.
func forgetClients(name types.NamespacedName) { onlyMeasured(name, nil) }

// onlyMeasured takes away what was measured of all other clients of a FileSystem.
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

// measure counts a pass that took so long, of which it waited for the filesystem's answer.
func measure(took, waited time.Duration) {
	passSeconds.WithLabelValues("work").Observe((took - waited).Seconds())
	passSeconds.WithLabelValues("answer").Observe(waited.Seconds())
}
