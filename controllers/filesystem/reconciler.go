// Package filesystem reconciles FileSystems: it gathers what there is, lets the backend decide, applies what should be,
// restarts what is outdated, and writes the status once.
package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"parallelfs.dev/operator/controllers/passes"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

// StateReader asks a filesystem's probe.
type StateReader interface {
	// State returns what the filesystem says to a probe that asks it after this call began, or a sentence of why there is no such answer. It
	// leaves State.Asked to the caller.
	State(ctx context.Context, q Question) (*backend.State, error)
}

// Reconciler reconciles FileSystems.
type Reconciler struct {
	Client client.Client
	// Reader reads from the API server: who has the lease must really have it.
	Reader client.Reader
	// Backends by spec.type.
	Backends backend.Set
	Images   backend.Images
	// Cluster is the identity of this cluster (StorageTarget.spec.cluster).
	Cluster  string
	States   StateReader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Order is a clock that only goes on (time.Now has a monotonic reading): it tells what this manager has seen and asked before what, and
	// how long before. It makes State.Asked, Pod.Seen and Input.Since.
	Order   clock.PassiveClock
	Applier *apply.Applier
	// Agents is the DaemonSet of the agents; without a name, nobody looks whether the API server refuses their pods.
	Agents types.NamespacedName
	// PollInterval is how often the filesystem itself is asked. A target that is lost shows in the status within one interval of the
	// moment when the filesystem notices.
	PollInterval time.Duration

	// Views takes what the filesystems say of their targets and servers.
	Views *views.Board

	// Pause is the least time between two passes over one FileSystem: what is written meanwhile is looked at together.
	Pause time.Duration
	// Reread is how long passes rely on what they have read of Secrets, and on having let go of the lease; 0 reads them in each pass. Nobody
	// tells the operator of their changes.
	Reread time.Duration

	// allTargets, allRecords, allNodes and allInventories are what passes have read last, and the changes say when it is not as it was any
	// more.
	allTargets                             known[byOwner[v1alpha1.StorageTarget]]
	allRecords                             known[byOwner[v1alpha1.FileSystemNode]]
	allNodes                               known[[]backend.Node]
	allInventories                         known[inventories]
	targetChanges, nodeChanges, podChanges changes
	recordChanges, inventoryChanges        changes
	guardChanges                           changes
	// secrets is the Client, which keeps Secrets; nil for a Client that was set by hand.
	secrets *secretReader
	// memories are what passes over each FileSystem keep for the next one.
	memories    map[types.NamespacedName]*memory
	remembering sync.Mutex

	// seen is what this manager has seen so far, choices the choices of disks that are carried out, and pace when passes have ended.
	seen    sightings
	choices choices
	pace    pace
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
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one FileSystem nearer to what its spec asks for. Its status is written at the end: what was seen, and why the pass
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
	p.read = p.fs.DeepCopy()
	started := time.Now()
	err := p.run(ctx)
	measure(time.Since(started), p.waited)
	if err == nil {
		measureClients(p.fs, p.seen.Clients)
	}
	if err == nil && p.observed && !p.grows(growthLimit) {
		collect(len(p.in.Targets))
	}
	now := r.Order.Now()
	r.pace.ended(name, now.Sub(began)-p.waited, now, r.Pause)
	return apply.Again(ctrl.Result{RequeueAfter: p.after}, err)
}

// forget forgets a FileSystem that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.seen.forget(name)
	r.choices.forget(name)
	r.pace.forget(name)
	r.forgetAll(name)
	measureTransport(name, nil)
	forgetClients(name)
	r.Views.Forget(name)
}

// pass is one pass over a FileSystem: what it has found, and what it does.
type pass struct {
	*Reconciler
	// fs is the FileSystem with the status as this pass changes it, and read with that of the API server. Their specs are complete; asked is
	// what a person has written.
	fs, read *v1alpha1.FileSystem
	asked    v1alpha1.FileSystemSpec
	backend  backend.Backend
	// in is all that the backend may look at, and disks what the choice of disks depends on besides.
	in    backend.Input
	disks disks
	hold  *hold
	// waited is how long the pass had nothing to do but to wait for the filesystem's answer.
	waited time.Duration

	// allocation is what is to be recorded, and joins is true when it may be. wanted is the FileSystem as it may be carried out: without the
	// pools that have to wait.
	allocation backend.Allocation
	joins      bool
	wanted     *v1alpha1.FileSystem
	// recorded are the FileSystemNodes as the API server has them; Input has them as they are to be.
	recorded []v1alpha1.FileSystemNode
	// stop is why nothing goes on until a person changes the spec; the filesystem is then left as it is, and still observed.
	stop *backend.InvalidSpecError
	// problems are what a person has to change of disks, CPUs and nodes.
	problems []backend.Problem
	// requests are what became of the words of people that nodes never come back, by FileSystemNode.
	requests map[string]backend.Problem

	// sets are the DaemonSets of a deleted FileSystem, and nodes all nodes, which are only to be read.
	sets  []appsv1.DaemonSet
	nodes []corev1.Node

	// seen is what the filesystem says of itself, once observed is true. restarts are the pods that are restarted after the status says so;
	// rests is true when all of them wait for a person or a window.
	seen     backend.Observation
	observed bool
	restarts []due
	rests    bool
	// maintained is what becomes of nodes that somebody wants to take away, by name, and vacant are those of them on which nothing takes part.
	maintained map[string]views.Maintenance
	vacant     map[string]bool
	// telling is true while the filesystem was not told yet that a maintenance has begun or ended.
	telling bool
	// remounts are the clients that follow an upgrade after the status says so, and clientsWait is what the others wait for.
	remounts    []due
	clientsWait string
	// pulls are the images that an upgrade waits for.
	pulls []backend.Pull
	// upgrading is how far an upgrade is, nil when all that the operator restarts runs what the spec asks for.
	upgrading *upgrading

	// after is when the next pass begins, if nothing wakes it before. over ends a pass over a deletion, which waits or is done, and gone is
	// true when the finalizer was taken.
	after      time.Duration
	over, gone bool
}

// phase is a step of a pass, with its name in the sentence that says why it failed.
type phase struct {
	name string
	do   func(context.Context) error
	when when
}

// when says which phases are done although something before them stands in the way.
type when int

const (
	// unhindered is a phase that needs all before it.
	unhindered when = iota
	// stopped is one that is done although a person has to change the spec first.
	stopped
	// anyway is one that is done although one before it failed.
	anyway
	// apart is unhindered, and its own failure holds up none behind it.
	apart
)

// phases are the steps of a pass, in their order.
func (p *pass) phases() []phase {
	if !p.fs.DeletionTimestamp.IsZero() {
		return []phase{
			{name: "remove the guards of nodes", do: p.removeGuards},
			{name: "remove what brings images to nodes", do: p.pullImages},
			{name: "end the maintenance of nodes", do: p.endMaintenance},
			{name: "look at what is left", do: p.lookBack},
			{name: "stop the daemons", do: p.stopDaemons},
			{name: "let go of the disks", do: p.releaseDisks},
			{name: "take the labels from nodes", do: p.unlabelNodes},
			{name: "let go", do: p.letGo},
		}
	}
	return []phase{
		{name: "add the finalizer", do: p.claim},
		{name: "look at what there is", do: p.look},
		{name: "give up nodes that never come back", do: p.giveUpNodes, when: apart},
		{name: "choose what the spec leaves open", do: p.chooseOpen},
		{name: "record the version", do: p.recordVersion},
		{name: "decide what to record", do: p.allocate},
		{name: "record", do: p.record},
		{name: "choose CPUs", do: p.choosePinnings, when: stopped},
		{name: "tell servers", do: p.tell},
		{name: "label nodes", do: p.labelNodes, when: apart},
		{name: "choose disks", do: p.chooseDisks},
		{name: "make what should be there", do: p.makeChildren},
		{name: "leave out what was given up", do: p.leaveOut, when: anyway},
		{name: "look for pods that are refused", do: p.lookForRefusals, when: anyway},
		{name: "observe", do: p.observe, when: anyway},
		{name: "name nodes that are away", do: p.nameAway, when: anyway},
		{name: "read copies of the metadata back", do: p.readCopies, when: anyway},
		{name: "let nodes go for maintenance", do: p.letNodesGo, when: anyway},
		{name: "move targets", do: p.moveTargets, when: anyway},
		{name: "upgrade", do: p.upgrade, when: stopped},
		{name: "repeat jobs", do: p.repeatUnseenJobs},
		{name: "choose what to restart", do: p.chooseRestarts},
		{name: "choose what to mount anew", do: p.chooseRemounts},
		{name: "bring images to nodes", do: p.pullImages, when: stopped},
		{name: "settle the lease", do: p.settle, when: stopped},
		{name: "guard nodes", do: p.guardNodes, when: anyway},
		{name: "back up the metadata", do: p.backUp, when: anyway},
		{name: "recover lost metadata", do: p.recoverMetadata, when: anyway},
		{name: "look for damage", do: p.check, when: anyway},
	}
}

// run goes through the phases, writes the status, hands on what was seen of targets and nodes, and then restarts what the status names.
func (p *pass) run(ctx context.Context) error {
	failed := p.each(ctx)
	if p.gone {
		return failed
	}
	p.describe(failed)
	fit(&p.fs.Status)
	err := p.writeStatus(ctx)
	if refused(err) {
		err = errors.Join(err, p.sayRefused(ctx, err))
	}
	p.show()
	if err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	for i := range p.restarts {
		failed = errors.Join(failed, failures.In("restart", p.restart(ctx, &p.restarts[i])))
	}
	for i := range p.remounts {
		failed = errors.Join(failed, failures.In("mount anew", p.restart(ctx, &p.remounts[i])))
	}
	if failed == nil {
		return nil
	}
	failures.Describe(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, failed)
	fit(&p.fs.Status)
	return errors.Join(failed, p.writeStatus(ctx))
}

// each does the phases that may be done, and returns what failed.
func (p *pass) each(ctx context.Context) error {
	var ok bool
	if p.backend, ok = p.Backends[p.fs.Spec.Type]; !ok {
		return fmt.Errorf("this operator knows no filesystem of type %q", p.fs.Spec.Type)
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

// claim makes sure that the FileSystem is not gone before its daemons are.
func (p *pass) claim(ctx context.Context) error {
	if controllerutil.ContainsFinalizer(p.fs, v1alpha1.Finalizer) {
		return nil
	}
	if err := passes.Claim(ctx, p.Client, p.fs); err != nil {
		return err //nolint:wrapcheck // the phase has a name
	}
	p.complete()
	p.read = p.fs.DeepCopy()
	return nil
}
