package filesystem

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision/decisiontest"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/lease"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
)

// leases is a cluster with the Lease of a FileSystem and its possible holders.
type leases struct {
	client.Client
	fs   *v1alpha1.FileSystem
	run  *v1alpha1.BenchmarkRun // nil for one that is gone
	held *coordinationv1.Lease
}

func (l *leases) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *v1alpha1.FileSystem:
		l.fs.DeepCopyInto(o)
		return nil
	case *v1alpha1.BenchmarkRun:
		if l.run != nil {
			l.run.DeepCopyInto(o)
			return nil
		}
	case *coordinationv1.Lease:
		if l.held != nil {
			l.held.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (l *leases) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	l.held = object.(*coordinationv1.Lease).DeepCopy() //nolint:forcetypeassert // the test creates nothing else
	return nil
}

func (l *leases) Update(ctx context.Context, object client.Object, _ ...client.UpdateOption) error {
	return l.Create(ctx, object)
}

// holder returns the holder of the lease, or an empty string.
func (l *leases) holder() string {
	if l.held == nil || l.held.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.held.Spec.HolderIdentity
}

// contended is a random world in which a run and changes want the lease of the filesystem.
type contended struct {
	*randomWorld
	cluster *leases
	r       *Reconciler
	clock   *clocktesting.FakePassiveClock
	// run is nil if the run has ended or no longer exists, so that no pass covers it.
	run *scope.Scope
	// cordoned holds the nodes that a person wants to take away, and allowed those whose maintenance the person has allowed. The person
	// uncordons a node that was away.
	cordoned, allowed, awayOnce map[string]bool
	// moves is how many more passes with the lease it takes to empty a disk, and restores how many to recover the metadata.
	moves, restores int
	own             []v1alpha1.StorageTarget
	maintained      map[string]views.Maintenance
	// restless are nodes that are cordoned again as soon as they are back. Other nodes have copies of their data.
	restless []string
	// measured is true once the run had the lease.
	measured bool
}

// spare is a backend in which a node has no data without a copy elsewhere.
type spare struct{ backend.Backend }

func (spare) Absence(backend.Input, backend.Observation, string) backend.Absence {
	return backend.Absence{Together: 9}
}

func (spare) TellMaintenance(backend.Input) ([]client.Object, error) { return nil, nil }

// trouble makes some nodes of a world restless in which nothing else waits for a person.
func (w *contended) trouble(random *rand.Rand) {
	w.repair()
	clear(w.cordoned)
	clear(w.allowed)
	for i := range w.members {
		if name := w.members[i].node.Name; i > 0 && (len(w.restless) < 2 || random.IntN(2) == 0) {
			w.restless = append(w.restless, name)
		}
	}
}

// cordonAgain cordons the restless nodes that are back.
func (w *contended) cordonAgain() {
	for _, name := range w.restless {
		if !slices.ContainsFunc(w.fs.Status.Maintenance, func(m v1alpha1.NodeMaintenance) bool { return m.Node == name }) {
			w.cordoned[name] = true
		}
	}
}

func newContended(seed uint64, order []string) *contended {
	random := rand.New(rand.NewPCG(seed, 39))
	w := &contended{
		randomWorld: newRandomWorld(rand.New(rand.NewPCG(seed, 30)), order),
		cordoned:    map[string]bool{}, allowed: map[string]bool{}, awayOnce: map[string]bool{}, own: []v1alpha1.StorageTarget{{}},
	}
	w.fs.UID, w.fs.Status.Metadata = "fs", &v1alpha1.MetadataRecord{Initialized: new(metav1.NewTime(asked)), Node: w.members[0].node.Name}
	w.clock = clocktesting.NewFakePassiveClock(w.now)
	w.cluster = &leases{fs: w.fs}
	w.r = &Reconciler{Order: w.clock, Clock: w.clock, Client: w.cluster, Reader: w.cluster}
	if random.IntN(2) == 0 {
		w.repair() // only changes that need the lease remain
	}
	for i := range w.members {
		name := w.members[i].node.Name
		w.cordoned[name], w.allowed[name] = random.IntN(6) == 0, random.IntN(2) == 0
	}
	if random.IntN(4) == 0 {
		w.moves = 1 + random.IntN(3)
		w.own[0].Spec.Remove = true
	}
	if random.IntN(6) == 0 {
		w.restores = 1 + random.IntN(3)
		w.fs.Status.Recovery = &v1alpha1.RecoveryStatus{}
	}
	run := decisiontest.RandomRun(random)
	run.Run.Spec.Target.FileSystem.Name, run.FileSystem.Namespace, run.FileSystem.Name, run.FileSystem.UID = w.fs.Name, w.fs.Namespace, w.fs.Name, w.fs.UID
	w.run, w.cluster.run = run, run.Run
	if had := random.IntN(8) > 0 || len(run.Children) > 0; had {
		holder := lease.OfRun(run.Run).String()
		w.cluster.held = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
	}
	switch random.IntN(8) {
	case 0:
		w.run, w.cluster.run = nil, nil
	case 1:
		w.run, w.cluster.run.Status.CompletionTime = nil, new(metav1.NewTime(asked))
	}
	return w
}

// repair does everything that a message may ask a person for.
func (w *contended) repair() {
	w.mutters, w.fs.Spec.Updates.Paused = false, false
	for i := range w.members {
		m := &w.members[i]
		m.unconfigured, m.deadDisk, m.cramped, m.Ready, m.node.Ready = false, false, false, true, true
		if m.stale == cutOff {
			m.stale = fresh + 1
		}
	}
}

// input returns the state that a pass reads.
func (w *contended) input() (backend.Input, backend.Observation) {
	in, o := w.randomWorld.input()
	for i := range in.Nodes {
		n := &in.Nodes[i]
		n.Cordoned = w.cordoned[n.Name]
		record := v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Namespace: w.fs.Namespace, Name: w.fs.Name + "-" + n.Name, UID: types.UID(n.Name)}}
		record.Spec.Node, record.Spec.Members = n.Name, []v1alpha1.NodeMember{{Name: w.members[i].Component}}
		if w.allowed[n.Name] {
			record.Annotations = map[string]string{v1alpha1.AnnotationAllowMaintenance: allowWord(&record, *n, "")}
		}
		in.FileSystemNodes = append(in.FileSystemNodes, record)
		if in.State != nil {
			in.State.Servers = append(in.State.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: n.IP, Online: o.Servers[i].Online})
		}
	}
	return in.Indexed(), o
}

// pass runs one pass over the FileSystem, and returns what its restarts wait for.
func (w *contended) pass(ctx context.Context, g *WithT, b backend.Backend) (message string) {
	in, o := w.input()
	w.readCopies(&o)
	p := &pass{
		Reconciler: w.r, fs: w.fs, read: w.fs.DeepCopy(), backend: b, in: in, observation: o, observed: true,
		maintained: map[string]views.Maintenance{}, vacant: map[string]bool{}, hold: &hold{reconciler: w.r, fs: w.fs},
	}
	may := func(changes ...string) bool {
		may, err := p.hold.may(ctx, changes...)
		g.Expect(err).NotTo(HaveOccurred())
		return may
	}
	if w.moves > 0 && may("job scratch-drain is to run") {
		if w.moves--; w.moves == 0 {
			w.own[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionTrue}}
		}
	}
	if w.restores > 0 && may("the daemons of scratch-master change") {
		if w.restores--; w.restores == 0 {
			w.fs.Status.Recovery = nil
		}
	}
	w.maintainNodes(ctx, g, p)
	next, message, _ := nextRestarts(b.Order(), in, o, circumstances{silent: p.silent(), maintained: backend.Maintained(w.fs)})
	if runs(next) && !may(fmt.Sprintf("%s is to be restarted: %s", next[0].Place, next[0].Why)) {
		next = nil
	}
	g.Expect(p.settle(ctx)).To(Succeed())
	p.hold.describe(w.fs, w.own)
	w.maintained = p.maintained
	for _, d := range next {
		w.restart(d.pod)
	}
	if held := meta.FindStatusCondition(w.fs.Status.Conditions, v1alpha1.ConditionChangesHeld); held != nil {
		message = held.Message
	}
	// The filesystem is queried again, later than any problem may last.
	w.now = w.now.Add(tooSilent)
	w.clock.SetTime(w.now)
	return message
}

// maintainNodes continues the maintenance of nodes. A node that is allowed to be away has been away by the next pass, and is then
// uncordoned.
func (w *contended) maintainNodes(ctx context.Context, g *WithT, p *pass) {
	for _, m := range w.fs.Status.Maintenance {
		w.awayOnce[m.Node], w.cordoned[m.Node] = true, false
		p.in.Nodes[slices.IndexFunc(p.in.Nodes, func(n backend.Node) bool { return n.Name == m.Node })].Cordoned = false
	}
	p.in = p.in.Indexed()
	p.goOnWithMaintenance()
	candidates := p.candidates(p.in)
	waits := p.leaving(candidates, p.in)
	g.Expect(p.leaseFor(ctx, candidates, waits)).To(Succeed())
	for i := range candidates {
		p.maintained[candidates[i].Node] = candidates[i].sayWaits(waits[i])
		if waits[i].For == "" {
			w.fs.Status.Maintenance = append(w.fs.Status.Maintenance, v1alpha1.NodeMaintenance{Node: candidates[i].Node, Since: metav1.NewTime(w.now)})
		}
	}
}

// measure runs a pass over the run.
func (w *contended) measure(ctx context.Context, g *WithT) {
	if w.run == nil || lease.Stopped(w.run.Run) && !w.run.Run.DeletionTimestamp.IsZero() {
		return // no pass covers it any longer
	}
	w.run.FileSystem.Status.Conditions = slices.Concat(w.fs.Status.Conditions, w.ready())
	d := decisiontest.Decide(w.run)
	switch subject, holder := lease.Of(w.fs), lease.OfRun(w.run.Run); d.Lease {
	case decision.LeaseTake:
		by, err := lease.Acquire(ctx, w.cluster, w.cluster, subject, holder, w.now)
		g.Expect(err).NotTo(HaveOccurred())
		if by != "" && len(w.run.Children) == 0 {
			d = decision.InUse(w.run, by)
		}
	case decision.LeaseFree:
		g.Expect(lease.Release(ctx, w.cluster, w.cluster, subject.Key, holder)).To(Succeed())
	case decision.LeaseAsIs:
	}
	w.measured = w.measured || w.cluster.holder() == lease.OfRun(w.run.Run).String()
	decisiontest.CarryOut(w.run, d)
	w.run.Now = w.run.Now.Add(scope.Soon)
}

func (w *contended) ready() []metav1.Condition {
	is := metav1.ConditionTrue
	for i := range w.members {
		if !w.members[i].serves() || !w.answers {
			is = metav1.ConditionFalse
		}
	}
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: is, Reason: v1alpha1.ReasonHealthy}}
}

// measures reports whether a run may keep the lease: it is neither suspended nor deleted, and no finalizer keeps its Job.
func (w *contended) measures() bool {
	return w.run != nil && !w.run.Run.Spec.Suspend && w.run.Run.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(w.run.Children, func(c children.Child) bool { return len(c.Kept) > 0 })
}

func TestNoChangeAndNoRunWaitsForTheLeaseWithoutASentenceThatAsksAPerson(t *testing.T) {
	const worlds = 250 // of each type
	for kind, b := range all.Backends(time.Minute) {
		t.Run(string(kind), func(t *testing.T) {
			g, asks, measure, away := NewWithT(t), 0, 0, 0
			for seed := range uint64(worlds) {
				w := newContended(seed, b.Order())
				var message string
				for range 16 * len(w.members) {
					message = w.pass(t.Context(), g, b)
					w.measure(t.Context(), g)
				}
				g.Expect([]int{w.moves, w.restores}).To(HaveEach(0), "world %d: a drain and a recovery wait for nobody: %s", seed, message)
				if !w.waitsForAPerson() {
					g.Expect(w.fs.Status.Maintenance).To(BeEmpty(), "world %d: a maintenance ends when its node is back", seed)
				}
				away += len(w.awayOnce)
				for node, m := range w.maintained {
					g.Expect(m.Message).NotTo(ContainSubstring("has the lease"), "world %d: the maintenance of %s waits for a run", seed, node)
					g.Expect(m.Message).To(Or(ContainSubstring("annotate --overwrite filesystemnode"), ContainSubstring("its guard is open"),
						ContainSubstring("When the node is well, uncordon it")), "world %d: a person is asked", seed)
				}
				if meta.FindStatusCondition(w.fs.Status.Conditions, v1alpha1.ConditionChangesHeld) != nil {
					asks++
					g.Expect(w.measures()).To(BeTrue(), "world %d: nothing measures: %s", seed, message)
					g.Expect(message).To(And(HavePrefix("BenchmarkRun sweep has the lease"), ContainSubstring("suspend the run (spec.suspend) or delete it")), "world %d", seed)
					continue
				}
				w.proceedsOrAsks(g, seed, message)
				if holder := w.cluster.holder(); w.measures() && w.ready()[0].Status == metav1.ConditionTrue && message == "" {
					measure++
					g.Expect(holder).To(Equal(lease.OfRun(w.run.Run).String()), "world %d: the run waits, and nothing changes", seed)
				}
			}
			t.Logf("%d worlds: in %d a restart asks a person to end the run, in %d the run measures; %d nodes were away", worlds, asks, measure, away)
			g.Expect([]int{asks, measure, away}).To(HaveEach(BeNumerically(">", worlds/50)), "the worlds differ")
		})
	}
}

func TestNodesThatAreCordonedAgainAndAgainHoldUpNoRestartAndNoRun(t *testing.T) {
	const worlds = 40 // of each type
	for kind, b := range all.Backends(time.Minute) {
		t.Run(string(kind), func(t *testing.T) {
			g, times := NewWithT(t), 0
			for seed := range uint64(worlds) {
				w := newContended(seed, b.Order())
				w.trouble(rand.New(rand.NewPCG(seed, 40)))
				passes := 16 * len(w.members)
				var message string
				for i := range passes {
					w.measured = w.measured && i != passes/2 // a run had the lease at first
					before := len(w.fs.Status.Maintenance)
					w.cordonAgain()
					message = w.pass(t.Context(), g, spare{b})
					w.measure(t.Context(), g)
					times += max(len(w.fs.Status.Maintenance)-before, 0)
				}
				if w.measures() && w.run.Run.Status.CompletionTime == nil {
					g.Expect(w.measured).To(BeTrue(), "world %d: the run never had the lease: %s", seed, message)
				}
				for i := range w.members {
					if m := &w.members[i]; m.stale != fresh {
						g.Expect(message).To(Or(HavePrefix("BenchmarkRun sweep has the lease"), ContainSubstring("a copy of the metadata is proven")),
							"world %d: %s waits for its restart", seed, m.Server())
					}
				}
			}
			g.Expect(times).To(BeNumerically(">", 10*worlds), "nodes were away again and again")
		})
	}
}
