// Package filesystem reconciles FileSystems. A pass reads the current state, calls the backend's decisions, applies the desired objects,
// restarts outdated pods, and writes the status once.
package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/failures"
	"parallelfs.dev/operator/controllers/filesystem/derive"
	"parallelfs.dev/operator/controllers/passes"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// StateReader queries a filesystem's probe.
type StateReader interface {
	// State returns the filesystem's answer to a query that the probe made after this call began, or an error with the reason why there is
	// none. The caller sets State.Asked.
	State(ctx context.Context, q Question) (*backend.State, error)
}

// Reconciler reconciles FileSystems.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server and not from the cache, because the holder of the lease must be certain.
	Reader client.Reader
	// Backends by spec.type.
	Backends backend.Set
	Images   backend.Images
	// Cluster is the identity of this cluster (StorageTarget.spec.cluster).
	Cluster  string
	States   StateReader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Order is a monotonic clock (time.Now has a monotonic reading). It orders what this manager has seen and queried, and measures the time
	// between. State.Asked, Pod.Seen and Input.Since come from it.
	Order   clock.PassiveClock
	Applier *apply.Applier
	// Agents is the DaemonSet of the agents. Without a name, refusals of their pods by the API server are not checked, and no agent confirms
	// its reports.
	Agents types.NamespacedName
	// PollInterval is how often the filesystem itself is queried. A lost target shows in the status within one interval after the filesystem
	// notices it.
	PollInterval time.Duration

	// Views receives what the filesystems report about their targets and servers.
	Views *views.Board

	// Pause is the least time between two passes over one FileSystem. Everything that is written meanwhile is covered by one pass.
	Pause time.Duration
	// Reread is how long passes reuse Secrets that they have read, and the knowledge that the lease was released; 0 reads them in each pass.
	// The operator has no watch for their changes.
	Reread time.Duration

	// allTargets, allRecords, allNodes and allInventories cache what passes have read last. The counts of changes show when it is outdated.
	allTargets                             known[byOwner[v1alpha1.StorageTarget]]
	allRecords                             known[byOwner[v1alpha1.FileSystemNode]]
	allNodes                               known[[]backend.Node]
	allInventories                         known[inventories]
	allAgents                              known[map[string]bool]
	confirmations                          confirmations
	targetChanges, nodeChanges, podChanges changes
	recordChanges, inventoryChanges        changes
	guardChanges, agentChanges             changes
	// secrets is the Client, which caches Secrets; nil for a Client that was set by a test.
	secrets *secretReader
	// memories holds what passes over each FileSystem keep for the next pass.
	memories    map[types.NamespacedName]*memory
	remembering sync.Mutex

	// observations holds what this manager has seen so far, choices the choices of disks that are carried out, and pace when passes have
	// ended.
	observations observations
	choices      choices
	pace         pace
	// handles caches what names the volumes that Kubernetes has attached.
	handles handles
}

// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems/finalizers,verbs=update
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystemnodes,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=nodeinventories,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one FileSystem closer to its spec. It writes the status at the end, with the observed state and the reason if the pass
// failed.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	name := request.NamespacedName
	if rest := r.pace.rest(name, r.Order.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	fs := &v1alpha1.FileSystem{}
	if err := r.Client.Get(ctx, name, fs); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	began := r.Order.Now()
	p := &pass{Reconciler: r, fs: fs.DeepCopy()}
	p.complete()
	started := time.Now()
	err := p.run(ctx)
	measure(time.Since(started), p.waited)
	if err == nil {
		measureClients(p.fs, p.observation.Clients)
	}
	if err == nil && p.observed && !p.grows(growthLimit) {
		collect(len(p.in.Targets))
	}
	now := r.Order.Now()
	r.pace.ended(name, now.Sub(began)-p.waited, now, r.Pause)
	return apply.Again(ctrl.Result{RequeueAfter: p.after}, err)
}

// forget drops the state of a FileSystem that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.observations.forget(name)
	r.choices.forget(name)
	r.pace.forget(name)
	r.forgetAll(name)
	measureTransport(name, nil)
	forgetClients(name)
	r.Views.Forget(name)
}

// pass is one pass over a FileSystem: its input, its decisions and its results.
type pass struct {
	*Reconciler
	// fs is the FileSystem with the status as this pass changes it; read has the status of the API server. Their specs are complete; asked is
	// the spec as a person wrote it.
	fs, read *v1alpha1.FileSystem
	asked    v1alpha1.FileSystemSpec
	backend  backend.Backend
	// in is the backend's input, and disks the other input of the choice of disks.
	in    backend.Input
	disks disks
	hold  *hold
	// waited is how long the pass only waited for the filesystem's answer.
	waited time.Duration

	// allocation is what should be recorded, and joins is true if it may be. wanted is the FileSystem that may be carried out: without the
	// pools that have to wait.
	allocation backend.Allocation
	joins      bool
	wanted     *v1alpha1.FileSystem
	// recorded holds the FileSystemNodes as stored in the API server; Input has the desired ones.
	recorded []v1alpha1.FileSystemNode
	// stop is why nothing goes on until a person changes the spec. The filesystem is then left as it is, and still observed.
	stop *backend.InvalidSpecError
	// problems lists what a person has to change about disks, CPUs and nodes.
	problems []backend.Problem
	// requests holds the results of people's requests to decommission nodes, by FileSystemNode.
	requests map[string]backend.Problem

	// sets holds the DaemonSets of a deleted FileSystem, and nodes all nodes, read-only.
	sets  []appsv1.DaemonSet
	nodes []corev1.Node

	// observation is the observed state of the filesystem, valid once observed is true. restarts holds the pods that restart after the status
	// names them. rests is true if all of them wait for a person or a window. reconnects holds the pods that restart with them because they
	// look for recovered metadata at its former address.
	observation backend.Observation
	observed    bool
	restarts    []pendingPod
	rests       bool
	reconnects  []pendingPod
	// maintained holds the state of nodes that a person wants to take away, by name, and vacant those of them on which nothing is online.
	maintained map[string]views.Maintenance
	vacant     map[string]bool
	// telling is true while the filesystem does not show yet that a maintenance has begun or ended.
	telling bool
	// remounts holds the clients that are remounted for an upgrade after the status names them. clientsWait is what the others wait for.
	remounts    []pendingPod
	clientsWait string
	// pulls holds the images that an upgrade waits for.
	pulls []podspec.Pull
	// upgrading is the progress of an upgrade, nil if everything that the operator restarts runs the version of the spec.
	upgrading *upgrading

	// after is when the next pass begins, if nothing triggers it before. over ends a pass over a deletion, which waits or is done. gone is
	// true after the finalizer was removed.
	after      time.Duration
	over, gone bool
}

// phase is a step of a pass, with its name for the error message.
type phase struct {
	name string
	do   func(context.Context) error
	when when
}

// when determines whether a phase runs after an earlier phase has stopped or failed.
type when int

const (
	// unhindered: the phase needs all phases before it.
	unhindered when = iota
	// stopped: the phase runs even if a person has to change the spec first.
	stopped
	// anyway: the phase runs even if an earlier one failed.
	anyway
	// apart: like unhindered, but its own failure does not affect later phases.
	apart
)

// phases returns the steps of a pass, in their order.
func (p *pass) phases() []phase {
	if !p.fs.DeletionTimestamp.IsZero() {
		return []phase{
			{name: "remove the guards of nodes", do: p.removeGuards},
			{name: "remove what brings images to nodes", do: p.pullImages},
			{name: "end the maintenance of nodes", do: p.endMaintenance},
			{name: "read what is left", do: p.lookBack},
			{name: "stop the daemons", do: p.stopDaemons},
			{name: "release the disks", do: p.releaseDisks},
			{name: "take the labels from nodes", do: p.unlabelNodes},
			{name: "end the deletion", do: p.endDeletion},
		}
	}
	return []phase{
		{name: "add the finalizer", do: p.claim},
		{name: "read the state", do: p.look},
		{name: "decommission nodes that never come back", do: p.giveUpNodes, when: apart},
		{name: "choose what the spec leaves open", do: p.chooseOpen},
		{name: "record the version", do: p.recordVersion},
		{name: "decide what to record", do: p.allocate},
		{name: "record", do: p.record},
		{name: "choose CPUs", do: p.choosePinnings, when: stopped},
		{name: "configure servers", do: p.tell},
		{name: "label nodes", do: p.labelNodes, when: apart},
		{name: "choose disks", do: p.chooseDisks},
		{name: "apply the desired objects", do: p.makeChildren},
		{name: "leave out decommissioned nodes", do: p.leaveOut, when: anyway},
		{name: "look for pods that are refused", do: p.lookForRefusals, when: anyway},
		{name: "observe", do: p.observe, when: anyway},
		{name: "name nodes that are away", do: p.nameAway, when: anyway},
		{name: "read copies of the metadata back", do: p.readCopies, when: anyway},
		{name: "release nodes for maintenance", do: p.maintainNodes, when: anyway},
		{name: "move targets", do: p.moveTargets, when: anyway},
		{name: "upgrade", do: p.upgrade, when: stopped},
		{name: "repeat jobs", do: p.repeatUnseenJobs},
		{name: "choose what to restart", do: p.chooseRestarts},
		{name: "choose what to remount", do: p.chooseRemounts},
		{name: "bring images to nodes", do: p.pullImages, when: stopped},
		{name: "settle the lease", do: p.settle, when: stopped},
		{name: "guard nodes", do: p.guardNodes, when: anyway},
		{name: "back up the metadata", do: p.backUp, when: anyway},
		{name: "recover lost metadata", do: p.recoverMetadata, when: anyway},
		{name: "look for damage", do: p.check, when: anyway},
	}
}

// run runs the phases, writes the status, passes on the observations of targets and nodes, and then restarts the pods that the status
// names.
func (p *pass) run(ctx context.Context) error {
	failed := p.each(ctx)
	if p.gone {
		return failed
	}
	p.describe(failed)
	derive.Fit(&p.fs.Status)
	err := p.writeStatus(ctx)
	if refused(err) {
		err = errors.Join(err, p.sayRefused(ctx, err))
	}
	p.show()
	if err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	for _, pod := range slices.Concat(p.restarts, p.reconnects) {
		failed = errors.Join(failed, failures.In("restart", p.restart(ctx, &pod)))
	}
	for i := range p.remounts {
		failed = errors.Join(failed, failures.In("remount", p.restart(ctx, &p.remounts[i])))
	}
	if failed == nil {
		return nil
	}
	failures.Describe(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, failed)
	derive.Fit(&p.fs.Status)
	return errors.Join(failed, p.writeStatus(ctx))
}

// each runs the phases that may run, and returns the errors.
func (p *pass) each(ctx context.Context) error {
	var ok bool
	if p.backend, ok = p.Backends[p.fs.Spec.Type]; !ok {
		return fmt.Errorf("this operator has no filesystem of type %q", p.fs.Spec.Type)
	}
	p.hold = &hold{reconciler: p.Reconciler, fs: p.fs}
	var failed, others error
	for _, phase := range p.phases() {
		switch {
		case p.over:
			return errors.Join(failed, others)
		case failed != nil && phase.when != anyway, (p.stop != nil || p.allocation.Waits) && (phase.when == unhindered || phase.when == apart):
			continue
		}
		err := phase.do(ctx)
		var invalid *backend.InvalidSpecError
		switch {
		case errors.As(err, &invalid):
			p.stop = invalid
		case phase.when == apart:
			others = errors.Join(others, failures.In(phase.name, err))
		default:
			failed = errors.Join(failed, failures.In(phase.name, err))
		}
	}
	p.after = cmp.Or(p.after, p.PollInterval)
	return errors.Join(failed, others)
}

// claim sets the finalizer, so that the FileSystem is not gone before its daemons are.
func (p *pass) claim(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(p.fs, v1alpha1.Finalizer) {
		return nil
	}
	if err := passes.Claim(ctx, p.Client, p.fs); err != nil {
		return err //nolint:wrapcheck // the phase adds its name
	}
	p.complete()
	return nil
}
