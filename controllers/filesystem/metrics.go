package filesystem

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// passSeconds is how long passes over FileSystems take, in seconds. Its parts tell a slow filesystem from a slow operator: "answer" is the
// time in which a pass waits for the filesystem and does nothing else, and "work" is all other time.
var passSeconds = promauto.With(metrics.Registry).NewHistogramVec(prometheus.HistogramOpts{
	Name:    "parallelfs_filesystem_pass_seconds",
	Help:    "Seconds of a pass over a FileSystem: its own work, and the wait for the answer of the filesystem.",
	Buckets: []float64{.005, .01, .025, .05, .075, .1, .15, .2, .25, .3, .4, .5, .75, 1, 2.5, 5, 10, 20, 40, 80},
}, []string{"part"})

// measure counts a pass that took so long, of which it waited for the filesystem's answer.
func measure(took, waited time.Duration) {
	passSeconds.WithLabelValues("work").Observe((took - waited).Seconds())
	passSeconds.WithLabelValues("answer").Observe(waited.Seconds())
}
