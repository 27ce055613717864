// Package claim permits one installation of the operator to work in a cluster. That installation is recorded in a Lease in the namespace
// kube-system, where every installation looks. A second one waits, reports the name of the first, and does nothing.
package claim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	// Namespace is that of the Lease.
	Namespace = metav1.NamespaceSystem
	// Name is that of the Lease.
	Name = "parallelfs-operator-cluster"
)

// Times are how long a claim is valid without a renewal, how long its holder tries to renew it before it ends, and how often.
type Times struct{ Valid, Deadline, Retry time.Duration }

// DefaultTimes leave an installation time for an upgrade: its claim is not released when its pods end.
var DefaultTimes = Times{Valid: 90 * time.Second, Deadline: 60 * time.Second, Retry: 10 * time.Second}

var isHolder = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "parallelfs_operator_holds_cluster",
	Help: "1 when this installation of the operator works in the cluster, 0 while the one in the label holder does and this one waits.",
}, []string{"holder"})

// Claim is the claim of one installation. All managers of the installation have the same claim: their own election decides which of them
// leads.
type Claim struct {
	operator string
	lock     resourcelock.Interface
	times    Times
	// held is closed when this installation has the cluster.
	held chan struct{}

	mu     sync.Mutex
	holder string
}

// New is the claim of the operator with this name, <namespace>/<release>, on the Lease in a namespace.
func New(config *rest.Config, namespace, operator string, times Times) (*Claim, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, Name,
		resourcelock.ResourceLockConfig{Identity: operator}, config, times.Deadline)
	if err != nil {
		return nil, fmt.Errorf("make the lock of the cluster: %w", err)
	}
	return &Claim{operator: operator, lock: lock, times: times, held: make(chan struct{})}, nil
}

// NeedLeaderElection is false: a manager without the claim can't lead.
func (*Claim) NeedLeaderElection() bool { return false }

// ErrLost ends a manager whose claim could not be renewed in time.
var ErrLost = errors.New("the claim on the cluster could not be renewed in time; another installation of the operator may work in it now")

// Start claims the cluster, and renews the claim until the context ends. A lost claim is an error.
func (c *Claim) Start(ctx context.Context) error {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: c.lock, LeaseDuration: c.times.Valid, RenewDeadline: c.times.Deadline, RetryPeriod: c.times.Retry, Name: Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.held) },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(holder string) { c.see(ctx, holder) },
		},
	})
	if err != nil {
		return fmt.Errorf("claim the cluster: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		return ErrLost
	}
	return nil
}

// see notes the present holder of the cluster.
func (c *Claim) see(ctx context.Context, holder string) {
	c.mu.Lock()
	c.holder = holder
	c.mu.Unlock()
	isHolder.Reset()
	if err := c.Ready(nil); err != nil {
		isHolder.WithLabelValues(holder).Set(0)
		ctrl.LoggerFrom(ctx).Error(err, "this operator does nothing", "holder", holder, "operator", c.operator)
		return
	}
	isHolder.WithLabelValues(holder).Set(1)
}

// Ready is a health check: its error says which other installation holds the cluster.
func (c *Claim) Ready(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder == "" || c.holder == c.operator {
		return nil
	}
	namespace, release, _ := strings.Cut(c.holder, "/")
	return fmt.Errorf("operator %s in namespace %s works in this cluster already, so this one does nothing: remove one of the two. "+
		"If that one is gone, this one begins %s after its last sign (Lease %s/%s)", release, namespace, c.times.Valid, Namespace, Name)
}

// Gate is a lock for the election of a leader that can't be taken while another installation has the cluster.
func (c *Claim) Gate(lock resourcelock.Interface) resourcelock.Interface { return gate{lock, c.held} }

type gate struct {
	resourcelock.Interface
	held <-chan struct{}
}

// Get implements resourcelock.Interface. It waits until this installation holds the claim.
func (g gate) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	select {
	case <-g.held:
		return g.Interface.Get(ctx)
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
