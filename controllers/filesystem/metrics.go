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

// passSeconds is how long passes over FileSystems take, in seconds. Its parts tell a slow filesystem from a slow operator: "answer" is the
// time in which a pass waits for the filesystem and does nothing else, and "work" is all other time.
var passSeconds = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
	Name:    "parallelfs_filesystem_pass_seconds",
	Help:    "Seconds of a pass over a FileSystem: its own work, and the wait for the answer of the filesystem.",
	Buckets: []float64{.005, .01, .025, .05, .075, .1, .15, .2, .25, .3, .4, .5, .75, 1, 2.5, 5, 10, 20, 40, 80},
}, []string{"part"})

// backupTime is when the newest verified backup was made; 0 where backups are asked for and none was verified yet, and no series where none
// are asked for. It is a time and no age, so that a manager that has stopped looking makes no backup look young.
var backupTime = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_filesystem_backup_timestamp_seconds",
	Help: "Unix time of the newest verified backup of a FileSystem's metadata; 0 while there is none, although spec.backups asks for backups.",
}, []string{"namespace", "filesystem"})

// poolUsed is how full the storage pools are, from 0 to 1; no series of a pool of which no size is known.
var poolUsed = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_filesystem_pool_used_ratio",
	Help: "Used space of the targets of a storage pool that are online, as a part of their capacity.",
}, []string{"namespace", "filesystem", "pool"})

// metadataCopies are how many copies of its metadata running servers of a FileSystem are to keep, and how many of them are proven; no
// series of a FileSystem that has no such servers.
var metadataCopies = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_filesystem_metadata_copies",
	Help: "Copies of a FileSystem's metadata on running servers: those that are asked for, and those that were read back (state proven).",
}, []string{"namespace", "filesystem", "state"})

// transports are the servers and clients of a FileSystem by what they offer; no series of a filesystem that does not say.
var transports = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_filesystem_transport",
	Help: "Servers and clients of a FileSystem by the transport that they offer: rdma, or tcp only.",
}, []string{"namespace", "filesystem", "of", "transport"})

// measureCopies says how many copies of its metadata a FileSystem has.
func measureCopies(fs *v1alpha1.FileSystem) {
	if len(fs.Status.MetadataCopies) == 0 {
		forgetCopies(types.NamespacedName{Namespace: fs.Namespace, Name: fs.Name})
		return
	}
	proven := 0
	for i := range fs.Status.MetadataCopies {
		if fs.Status.MetadataCopies[i].Result == v1alpha1.MetadataCopyProven {
			proven++
		}
	}
	metadataCopies.WithLabelValues(fs.Namespace, fs.Name, "asked").Set(float64(len(fs.Status.MetadataCopies)))
	metadataCopies.WithLabelValues(fs.Namespace, fs.Name, "proven").Set(float64(proven))
}

// forgetCopies takes away what was measured of a FileSystem that is gone.
func forgetCopies(name types.NamespacedName) {
	metadataCopies.DeletePartialMatch(prometheus.Labels{"namespace": name.Namespace, "filesystem": name.Name})
}

// measurePools says how full the storage pools of a FileSystem are.
func measurePools(fs *v1alpha1.FileSystem) {
	for i := range fs.Status.StoragePools {
		if p := &fs.Status.StoragePools[i]; p.CapacityBytes > 0 {
			poolUsed.WithLabelValues(fs.Namespace, fs.Name, p.Name).Set(float64(p.UsedBytes) / float64(p.CapacityBytes))
		}
	}
}

// forgetPools takes away what was measured of a FileSystem that is gone.
func forgetPools(name types.NamespacedName) {
	poolUsed.DeletePartialMatch(prometheus.Labels{"namespace": name.Namespace, "filesystem": name.Name})
}

// Of the clients of filesystems whose mounts are the kernel's, as the agents have seen them last; no series where no agent has seen one.
var (
	evictions = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "parallelfs_filesystem_client_evictions",
		Help: "How often servers of a FileSystem have given clients up, by node: since its agent has started, and before as far as its kernel remembers.",
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

// measureBackups says how old the backups of a FileSystem are.
func measureBackups(fs *v1alpha1.FileSystem) {
	if fs.Spec.Backups == nil {
		backupTime.DeleteLabelValues(fs.Namespace, fs.Name)
		return
	}
	newest := 0.0
	for i := range fs.Status.Backups {
		if b := &fs.Status.Backups[i]; b.Result == v1alpha1.BackupVerified && b.Time != nil {
			newest = max(newest, float64(b.Time.Unix()))
		}
	}
	backupTime.WithLabelValues(fs.Namespace, fs.Name).Set(newest)
}

// forgetBackups takes away what was measured of a FileSystem that is gone.
func forgetBackups(name types.NamespacedName) {
	backupTime.DeleteLabelValues(name.Namespace, name.Name)
}

// measure counts a pass that took so long, of which it waited for the filesystem's answer.
func measure(took, waited time.Duration) {
	passSeconds.WithLabelValues("work").Observe((took - waited).Seconds())
	passSeconds.WithLabelValues("answer").Observe(waited.Seconds())
}
