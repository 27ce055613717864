package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/disruption"
)

const (
	// maintenanceLimit is the limit of a maintenance if the spec sets none.
	maintenanceLimit = 2 * time.Hour
	// vacantAfter is how long nothing of a node must have been online before there is nothing left to guard. A restart takes less.
	vacantAfter = 3 * time.Minute
	// mostMaintained is how many nodes a status may name.
	mostMaintained = 64
)

// limitOf returns how long a maintenance may last.
func limitOf(fs *v1alpha1.FileSystem) time.Duration {
	return cmp.Or(fs.Spec.Updates.Maintenance.Limit.Duration, maintenanceLimit)
}

// maintenanceProblems reports that nodes may be away, so that the filesystem counts as unsettled meanwhile.
func maintenanceProblems(fs *v1alpha1.FileSystem) []backend.Problem {
	nodes := backend.Maintained(fs)
	if len(nodes) == 0 {
		return nil
	}
	return []backend.Problem{{Reason: v1alpha1.ReasonInMaintenance, Message: fmt.Sprintf(
		"%s in maintenance: %s; it ends when they are uncordoned and their servers are online; until then, nothing else is stopped",
		v1alpha1.Count(len(nodes), "node is", "nodes are"), backend.List(nodes))}}
}

// maintainNodes decides which of the cordoned nodes may be away. The decision is written with the status of this pass, in a write that
// fails if the FileSystem has changed since it was read. So two operators, or one with an old read, never release nodes of two failure
// domains. The next pass carries the decision out: it announces it to the filesystem, and opens the guards.
func (p *pass) maintainNodes(ctx context.Context) error {
	p.maintained, p.vacant = map[string]views.Maintenance{}, map[string]bool{}
	if !p.observed || isNew(p.fs) {
		return nil
	}
	before := slices.Clone(p.fs.Status.Maintenance)
	if len(before) > 0 {
		p.goOnWithMaintenance()
	}
	err := p.beginMaintenance(ctx)
	if !equality.Semantic.DeepEqual(before, p.fs.Status.Maintenance) {
		p.after = stopInterval // the next pass carries it out
	}
	return err
}

// goOnWithMaintenance ends the maintenance of nodes that are back or were away for too long, and reports on the others.
func (p *pass) goOnWithMaintenance() {
	now, limit := metav1.NewTime(p.Clock.Now().UTC().Truncate(time.Second)), limitOf(p.fs)
	guarded := p.guarded()
	var entries []v1alpha1.NodeMaintenance
	for _, m := range p.fs.Status.Maintenance {
		node, _ := p.in.Node(m.Node)
		waits := p.absence(m.Node).Waits
		// It does not wait for a node that was decommissioned or no longer has servers.
		left := guarded[m.Node] == nil
		switch {
		case m.Ended == nil && (left || !node.Cordoned && p.takesPart(m.Node)):
			m.Ended = &now
		case m.Ended == nil && !now.Before(new(metav1.NewTime(m.Since.Add(limit)))):
			m.Ended, m.LimitPassed = &now, true
		case m.Ended != nil && waits == "" && (left || !m.LimitPassed || !node.Cordoned):
			p.leavesTurns(m)
			continue
		}
		p.leavesTurns(m)
		p.telling = p.telling || waits != ""
		entries = append(entries, m)
		if described := sayMaintenance(m, limit, waits); described != nil {
			p.maintained[m.Node] = *described
		}
	}
	p.fs.Status.Maintenance = entries
}

// leavesTurns records the round of maintenances, which decides when a node may be away again. A manager that has just started has only the
// recorded maintenances.
func (p *pass) leavesTurns(m v1alpha1.NodeMaintenance) {
	until := p.Clock.Now()
	if m.Ended != nil {
		until = m.Ended.Time
	}
	p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID).round.Away(m.Node, m.Since.Time, until, limitOf(p.fs))
}

// sayMaintenance describes the progress of a maintenance, nil if it has ended normally.
func sayMaintenance(m v1alpha1.NodeMaintenance, limit time.Duration, waits string) *views.Maintenance {
	since := m.Since.UTC().Format(time.RFC3339)
	switch {
	case m.LimitPassed:
		return &views.Maintenance{Problem: backend.Problem{Reason: v1alpha1.ReasonMaintenanceTooLong, Message: fmt.Sprintf(
			"the maintenance began at %s and has lasted longer than %s (spec.updates.maintenance.limit), so it is over for the filesystem: data on the node counts as "+
				"missing while it is away, and its guard is closed. When the node is well, uncordon it", since, limit)}}
	case m.Ended != nil:
		return nil
	}
	message := fmt.Sprintf("the node may be away since %s, for %s at most; it ends when the node is uncordoned and its servers are online", since, limit)
	if m.Allowed {
		message += "; a person has allowed it"
	} else if waits != "" {
		message += "; its guard opens when " + waits
	}
	return &views.Maintenance{May: true, Problem: backend.Problem{Reason: v1alpha1.ReasonInMaintenance, Message: message}}
}

// allowWord returns the value with which a person allows the maintenance of a node whatever the filesystem reports. It is valid until the
// node reboots. While a condition is not met (Absence.Before), the value is another one, because an earlier approval does not
// cover an absence without that condition.
func allowWord(n *v1alpha1.FileSystemNode, node backend.Node, before string) string {
	if before == "" {
		return backend.Hash(n.UID, node.BootID)
	}
	return backend.Hash(n.UID, node.BootID, "without")
}

// allows reports whether a person has allowed a node to be away. An approval without the condition also covers an absence with it.
func allows(n *v1alpha1.FileSystemNode, node backend.Node, before string) bool {
	word := n.Annotations[v1alpha1.AnnotationAllowMaintenance]
	return word != "" && (word == allowWord(n, node, before) || before == "" && word == allowWord(n, node, "without"))
}

// candidate is a cordoned node.
type candidate struct {
	disruption.Leave
	record *v1alpha1.FileSystemNode
	node   backend.Node
}

// beginMaintenance begins the maintenance of the nodes that may be away now, and reports what each of the others waits for.
func (p *pass) beginMaintenance(ctx context.Context) error {
	candidates := p.candidates(p.in)
	if len(candidates) == 0 {
		return nil
	}
	waits := p.leaving(candidates, p.in)
	err := p.leaseFor(ctx, candidates, waits)
	if err == nil && slices.Contains(waits, disruption.Wait{}) {
		// The cache may not show an earlier restart yet, and still contain the pod that was deleted.
		in := p.in
		if in.Pods, err = p.pods(ctx, p.Reader, p.fs); err == nil {
			for i, now := range p.leaving(candidates, in.Remaining().Indexed()) {
				if waits[i].For == "" {
					waits[i] = now
				}
			}
		}
	}
	now := metav1.NewTime(p.Clock.Now().UTC().Truncate(time.Second))
	for i := range candidates {
		c := &candidates[i]
		switch {
		case waits[i].For != "":
		case err != nil:
			waits[i].For = "the operator has looked at all of its pods"
		case len(p.fs.Status.Maintenance) >= mostMaintained:
			waits[i].For = fmt.Sprintf("fewer than %d nodes are in maintenance, or cordoned after an over-long maintenance", mostMaintained)
		default:
			m := v1alpha1.NodeMaintenance{Node: c.Node, Address: c.node.IP, Since: now, Allowed: c.Allowed}
			p.fs.Status.Maintenance = append(p.fs.Status.Maintenance, m)
			p.maintained[c.Node] = *sayMaintenance(m, limitOf(p.fs), p.absence(c.Node).Waits)
			continue
		}
		p.maintained[c.Node] = c.sayWaits(waits[i])
	}
	return err
}

// leaseFor takes the lease for the candidates that wait for nothing else, and records who holds it instead. A candidate that a person has
// allowed does not wait for it.
func (p *pass) leaseFor(ctx context.Context, candidates []candidate, waits []disruption.Wait) error {
	for i := range candidates {
		switch c := &candidates[i]; {
		case waits[i].For != "":
		case c.Allowed:
			if err := p.hold.take(ctx); err != nil {
				return err
			}
		default:
			may, err := p.hold.mayMaintain(ctx, c.Node)
			if err != nil {
				return err
			}
			if !may {
				waits[i].For = p.hold.by + " has ended, which has the lease of the filesystem"
			}
		}
	}
	return nil
}

// sayWaits describes why a node may not be away yet, and how a person can allow it nevertheless.
func (c *candidate) sayWaits(waits disruption.Wait) views.Maintenance {
	reason := v1alpha1.ReasonMaintenanceWaits
	if waits.Person {
		reason = v1alpha1.ReasonMaintenanceNotAllowed
	}
	return views.Maintenance{Problem: backend.Problem{Reason: reason, Message: fmt.Sprintf(
		"the node is cordoned, and its guard keeps it from being drained; it may be away when %s. To release it anyway, until its next restart: "+
			"kubectl -n %s annotate --overwrite filesystemnode %s %s=%s",
		waits.For, c.record.Namespace, c.record.Name, v1alpha1.AnnotationAllowMaintenance, allowWord(c.record, c.node, c.Before))}}
}

// candidates returns the cordoned nodes that are not recorded yet, by name. For nodes without anything online it records that there is
// nothing left to guard.
func (p *pass) candidates(in backend.Input) []candidate {
	if !slices.ContainsFunc(in.Nodes, func(n backend.Node) bool { return n.Cordoned }) {
		return nil
	}
	domains, away := nodefacts.NewDomains(in), p.vacancies(in)
	var out []candidate
	for name, record := range p.guarded() {
		node, there := in.Node(name)
		onRecord := slices.ContainsFunc(p.fs.Status.Maintenance, func(m v1alpha1.NodeMaintenance) bool { return m.Node == name })
		if !there || !node.Cordoned || onRecord {
			continue
		}
		if away[name] {
			p.vacant[name] = true
			p.maintained[name] = views.Maintenance{May: true, Problem: backend.Problem{
				Reason: v1alpha1.ReasonInMaintenance, Message: "the node is cordoned, and nothing on it is online, so its guard is open"}}
			continue
		}
		c := candidate{record: record, node: node}
		c.Leave = p.leave(name, domains)
		c.Turn = p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID).round.Turn(name)
		c.Allowed = allows(record, node, c.Before)
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b candidate) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// vacancies returns the nodes on which nothing has been online for a while, as the manager has seen. It returns none while the filesystem
// does not answer.
func (p *pass) vacancies(in backend.Input) map[string]bool {
	if in.State == nil {
		return nil
	}
	takesPart := map[string]bool{}
	for i := range p.observation.Servers {
		takesPart[p.observation.Servers[i].Node] = takesPart[p.observation.Servers[i].Node] || p.observation.Servers[i].Online
	}
	empty := map[types.UID]how{}
	for name, record := range p.guarded() {
		if !takesPart[name] {
			empty[record.UID] = how{}
		}
	}
	since := p.observations.see(observedGroup{client.ObjectKeyFromObject(p.fs), "vacant"}, maps.All(empty), in.State.Asked)
	out := map[string]bool{}
	for name, record := range p.guarded() {
		if first, is := since[record.UID]; is && in.State.Asked.Sub(first) >= vacantAfter {
			out[name] = true
		}
	}
	return out
}

// leaving returns what each of the candidates waits for.
func (p *pass) leaving(candidates []candidate, in backend.Input) []disruption.Wait {
	domains := nodefacts.NewDomains(in)
	queue := make([]disruption.Leave, len(candidates))
	for i := range candidates {
		queue[i] = candidates[i].Leave
	}
	var away []disruption.Leave
	maintained := backend.Maintained(p.fs)
	for _, node := range maintained {
		away = append(away, p.leave(node, domains))
	}
	return disruption.Leaving(queue, away, worldOf(p.backend.Order(), in, maintained, p.observation, ""), p.Clock.Now())
}

// leave returns the input of the decision about a node.
func (p *pass) leave(node string, domains nodefacts.Domains) disruption.Leave {
	absence := p.absence(node)
	domain, _ := domains.Of(node)
	return disruption.Leave{Node: node, Domain: domain, Costs: absence.Costs, Before: absence.Before, Together: absence.Together}
}

// absence describes the filesystem while a node is away.
func (p *pass) absence(node string) backend.Absence {
	if maintainer, ok := p.backend.(backend.Maintainer); ok {
		return maintainer.Absence(p.in, p.observation, node)
	}
	return backend.Absence{Costs: fmt.Sprintf("a filesystem of type %s does not report whether it can do without one of its nodes", p.fs.Spec.Type)}
}

// guarded returns the FileSystemNodes that have a guard, by node.
func (p *pass) guarded() map[string]*v1alpha1.FileSystemNode {
	out := make(map[string]*v1alpha1.FileSystemNode, len(p.in.FileSystemNodes))
	for i := range p.in.FileSystemNodes {
		if n := &p.in.FileSystemNodes[i]; podspec.Guarded(n) {
			out[n.Spec.Node] = n
		}
	}
	return out
}

// takesPart reports whether all servers of a node are online, according to an answer of the filesystem since they were started.
func (p *pass) takesPart(node string) bool {
	for i := range p.observation.Servers {
		if s := &p.observation.Servers[i]; s.Node == node && (!s.Online || slices.Contains(p.observation.Unconfirmed, s.Name)) {
			return false
		}
	}
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		if pod.Node == node && slices.Contains(p.backend.Order(), pod.Component) && (!pod.Ready || !p.in.AskedSince(*pod)) {
			return false
		}
	}
	return p.in.State != nil
}

// mayOpen reports whether the guard of a node may be evicted. A maintenance of the node must have been recorded before this pass began, and
// the filesystem must show it, or have shown it. An open guard stays open until the end.
func (p *pass) mayOpen(node string, budget *policyv1.PodDisruptionBudget) bool {
	if p.vacant[node] {
		return true
	}
	is := func(m v1alpha1.NodeMaintenance) bool { return m.Node == node && m.Ended == nil }
	at := slices.IndexFunc(p.fs.Status.Maintenance, is)
	if at < 0 || !slices.ContainsFunc(p.read.Status.Maintenance, is) {
		return false
	}
	return p.fs.Status.Maintenance[at].Allowed || budget != nil && podspec.IsOpen(budget) || p.absence(node).Waits == ""
}

// proveMaintenance returns an error if the recorded maintenance has changed since this pass read it, so that an operator with an old read
// opens no guard.
func (p *pass) proveMaintenance(ctx context.Context) error {
	now := &v1alpha1.FileSystem{}
	if err := p.Reader.Get(ctx, client.ObjectKeyFromObject(p.fs), now); err != nil {
		return fmt.Errorf("read which nodes are in maintenance: %w", err)
	}
	if now.UID != p.fs.UID || !equality.Semantic.DeepEqual(now.Status.Maintenance, p.read.Status.Maintenance) {
		return errors.New("which nodes are in maintenance has changed since it was read; the next pass looks again")
	}
	return nil
}

// showMaintenance adds the state of nodes that a person wants to take away to a view.
func (p *pass) showMaintenance(view views.FileSystem) {
	for i := range p.in.FileSystemNodes {
		n := &p.in.FileSystemNodes[i]
		node, shown := view.Nodes[n.Name]
		if m, is := p.maintained[n.Spec.Node]; is && shown {
			node.Maintenance = &m
			view.Nodes[n.Name] = node
		}
	}
}
