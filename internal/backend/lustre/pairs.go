package lustre

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

// OSTs that two nodes may serve, one at a time (docs/adr/0096). The desired node of each OST is decided here. The node that may mount it is
// written only by the agent of its holder, or by the manager once a person has confirmed that the holder's machine is off.

// secondsOf returns the nodes that reach the disks of others, by storage pool and node.
func secondsOf(fs *v1alpha1.FileSystem) map[string]map[string]string {
	var out map[string]map[string]string
	for i := range fs.Spec.StoragePools {
		pool := &fs.Spec.StoragePools[i]
		for _, pair := range ownPool(pool).Pairs {
			if len(pair.Nodes) != 2 { //nolint:mnd // a pair is two
				continue
			}
			if out == nil {
				out = map[string]map[string]string{}
			}
			if out[pool.Name] == nil {
				out[pool.Name] = map[string]string{}
			}
			out[pool.Name][pair.Nodes[0]], out[pool.Name][pair.Nodes[1]] = pair.Nodes[1], pair.Nodes[0]
		}
	}
	return out
}

// mostOfMember is how many targets a FileSystemNode can hold for a member.
const mostOfMember = 128

// checkPairs refuses a spec without a pair that an existing target has, and one with more targets than a node's configuration can hold.
func checkPairs(in backend.Input) error {
	seconds := secondsOf(in.FileSystem)
	for i := range in.FileSystem.Spec.StoragePools {
		pool, reached := &in.FileSystem.Spec.StoragePools[i], map[string]int{}
		for _, d := range pool.Targets.Devices {
			reached[d.Node]++
			if second := seconds[pool.Name][d.Node]; second != "" {
				reached[second]++
			}
		}
		for _, node := range backend.SortedKeys(reached) {
			if seconds[pool.Name][node] != "" && reached[node] > mostOfMember {
				return backend.Invalid(v1alpha1.ReasonInvalidSpec, "pool %s has %d disks that node %s may serve, its own and those of the other node of its pair, and a server "+
					"has at most %d; name fewer", pool.Name, reached[node], node, mostOfMember)
			}
		}
	}
	for i := range in.Targets {
		if t := &in.Targets[i]; plan.IsOfPair(t) && seconds[t.Spec.StoragePool][t.Spec.Node] != t.Spec.SecondNode {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec, "StorageTarget %s may be served by the nodes %s and %s, and its disk names both; "+
				"name them as a pair of pool %s again (spec.storagePools[].lustre.pairs), until the target is taken out", t.Name, t.Spec.Node, t.Spec.SecondNode, t.Spec.StoragePool)
		}
	}
	return nil
}

// serviceNodes returns the NIDs of the nodes that may serve a target, its own first, or why they are unknown; nil for a target of one node.
// The NIDs are written on the disk once, so they are never guessed.
func serviceNodes(in backend.Input, t *v1alpha1.StorageTarget) (nodes []v1alpha1.LustreServiceNode, why string) {
	if !plan.IsOfPair(t) {
		return nil, ""
	}
	for _, name := range []string{t.Spec.Node, t.Spec.SecondNode} {
		nids, why := nidsNow(in, name)
		if why != "" {
			return nil, why
		}
		nodes = append(nodes, v1alpha1.LustreServiceNode{NIDs: nids})
	}
	return nodes, ""
}

// nidsNow returns the present NIDs of a node, or why they are unknown.
func nidsNow(in backend.Input, name string) (nids []string, why string) {
	node, there := in.Node(name)
	found, known := in.Inventories[name]
	if !there || !known {
		return nil, fmt.Sprintf("node %s has no address or no NodeInventory, so its NIDs are not known", name)
	}
	network := NetworkOf(in.FileSystem.Spec.Network, own(in.FileSystem).RDMA)
	nids, err := network.NIDs(node, found)
	if err != nil {
		return nil, err.Error()
	}
	if why := network.Missing(name, nids, lnetOf(found)); why != "" {
		return nil, why
	}
	return nids, ""
}

// secondPlace is the part of a pool that a node serves for other ones.
type secondPlace struct{ node, pool string }

// othersDisks returns the targets that a node may serve for another one, and that have their number, in the order of their names.
func othersDisks(in backend.Input) map[secondPlace][]*v1alpha1.StorageTarget {
	var out map[secondPlace][]*v1alpha1.StorageTarget
	for i := range in.Targets {
		t := &in.Targets[i]
		if !plan.IsOfPair(t) {
			continue
		}
		if g, _ := in.GivenTo(t.Spec.Node, Member(&t.Spec)); !has(g, t.Name) {
			continue
		}
		if out == nil {
			out = map[secondPlace][]*v1alpha1.StorageTarget{}
		}
		at := secondPlace{t.Spec.SecondNode, t.Spec.StoragePool}
		out[at] = append(out[at], t)
	}
	return out
}

func has(g backend.Given, target string) bool {
	_, is := g.Target(target)
	return is
}

// leaves is true for a node that is cordoned for maintenance and may be away, or was away for too long.
func leaves(in backend.Input, name string) bool {
	node, _ := in.Node(name)
	onRecord := func(m v1alpha1.NodeMaintenance) bool { return m.Node == name }
	return node.Cordoned && slices.ContainsFunc(in.FileSystem.Status.Maintenance, onRecord)
}

// serves is true when a node reports that it serves a target that it holds.
func serves(in backend.Input, t *v1alpha1.StorageTarget, name string, number int32) bool {
	holder := plan.HolderOf(t)
	if in.State == nil || number == 0 || holder.Node != name || holder.Number > 0 && holder.TakenUp == nil {
		return false
	}
	node, _ := in.Node(name)
	for said := range in.TargetsAt(node.IP, 0) {
		if said.Role == t.Spec.Role && said.ID == number {
			return said.Online
		}
	}
	return false
}

// unfit returns why a node can't serve a target of two nodes now, in words that follow "because "; empty when it can.
func unfit(in backend.Input, t *v1alpha1.StorageTarget, name string) string {
	node, there := in.Node(name)
	member, g := Member(&t.Spec), in.FileSystemNodeOn(name)
	is := func(of v1alpha1.MemberTarget) bool { return of.Name == t.Name && of.UUID != "" }
	told := g != nil && slices.ContainsFunc(g.Spec.Members, func(m v1alpha1.NodeMember) bool {
		return m.Name == member && !m.Retired && slices.ContainsFunc(m.Targets, is)
	})
	switch {
	case !there || !node.Ready:
		return fmt.Sprintf("node %s is not Ready", name)
	case node.OutOfService:
		return fmt.Sprintf("node %s has the taint that marks its machine as off", name)
	case node.Cordoned:
		return fmt.Sprintf("node %s is cordoned", name)
	case in.State == nil:
		return "no node reports what it serves: " + in.StateError
	case in.Unanswered[name] != "":
		return fmt.Sprintf("node %s does not report what it serves: %s", name, in.Unanswered[name])
	case in.GaveUp(name):
		return fmt.Sprintf("node %s was decommissioned", name)
	case !told || g.Status.Agent == nil || g.Status.Agent.ObservedGeneration != g.Generation:
		return fmt.Sprintf("the agent of node %s has not written the configuration of its servers yet", name)
	}
	if why := unreached(in, name, t); why != "" {
		return why
	}
	ready := false
	for p := range in.PodsOn(componentOST, t.Spec.StoragePool, name) {
		ready = ready || p.Ready && !p.Terminating
	}
	if !ready {
		return fmt.Sprintf("the server of pool %s on node %s is not ready", t.Spec.StoragePool, name)
	}
	return moved(in, t, name)
}

// unreached returns why a node is not proven to reach the disk of a target. Its inventory does not show the disk, or its agent does not
// confirm the inventory now.
func unreached(in backend.Input, name string, t *v1alpha1.StorageTarget) string {
	return cmp.Or(plan.Unreached(name, in.Inventories, t), in.Unconfirmed[name])
}

// partnersUnproven lists the targets of two nodes whose other node has no disk of theirs in its present inventory; nil when all have. It
// blocks nothing: the node whose path is repaired may have to restart for it. Decisions that rely on the partner use unfit.
func partnersUnproven(in backend.Input) *backend.Problem {
	var why []string
	for i := range in.Targets {
		t := &in.Targets[i]
		if !plan.IsOfPair(t) || !assign.Finished(t) || !t.DeletionTimestamp.IsZero() {
			continue
		}
		if is := unreached(in, plan.OtherOf(t, plan.HolderOf(t).Node), t); is != "" {
			why = append(why, fmt.Sprintf("%s (%s)", t.Name, is))
		}
	}
	if len(why) == 0 {
		return nil
	}
	return &backend.Problem{
		Reason: v1alpha1.ReasonPartnersUnproven,
		Message: fmt.Sprintf("%s no second node that is proven to reach the disk; look at the cables and multipath there: %s",
			v1alpha1.Count(len(why), "target has", "targets have"), backend.List(why)),
	}
}

// moved returns a sentence if a node no longer has the NIDs on the disk of a target, so that clients would not find the target there.
func moved(in backend.Input, t *v1alpha1.StorageTarget, name string) string {
	if t.Spec.Lustre == nil || len(t.Spec.Lustre.ServiceNodes) != 2 { //nolint:mnd // a pair has two nodes
		return "its disk names no two nodes"
	}
	want := t.Spec.Lustre.ServiceNodes[0].NIDs
	if name == t.Spec.SecondNode {
		want = t.Spec.Lustre.ServiceNodes[1].NIDs
	}
	have, why := nidsNow(in, name)
	if lost := without(want, have); why == "" && len(lost) > 0 {
		why = fmt.Sprintf("the disk names node %s by %s, which that node has not any more", name, backend.List(lost))
	}
	return why
}

// Moves moves targets to the other one of their nodes while their own is in maintenance, and back when it has returned. A node that is down
// hands over nothing. Its targets are taken over once a person has confirmed that its machine is off: with a taint of the Node, which
// Kubernetes uses as well, and for each target with its present holder.
func (Backend) Moves(in backend.Input) []backend.Move {
	in = in.Indexed()
	var out []backend.Move
	for i := range in.Targets {
		t := &in.Targets[i]
		if !plan.IsOfPair(t) || !assign.Finished(t) {
			continue
		}
		if m := moveOf(in, t); m != nil {
			out = append(out, *m)
		}
	}
	slices.SortFunc(out, func(a, b backend.Move) int { return cmp.Compare(a.Target, b.Target) })
	return out
}

func moveOf(in backend.Input, t *v1alpha1.StorageTarget) *backend.Move {
	home, second, wanted, holder := t.Spec.Node, t.Spec.SecondNode, plan.WantedOn(t), plan.HolderOf(t)
	if node, _ := in.Node(holder.Node); !node.Ready {
		m := &backend.Move{
			Target: t.Name, To: plan.OtherOf(t, holder.Node), Off: &holder, Waits: notOff(in, t),
			Why: fmt.Sprintf("the machine of node %s is off, as a person has confirmed", holder.Node),
		}
		if m.Waits == "" {
			m.Waits = unfit(in, t, m.To)
		}
		return m
	}
	m := &backend.Move{Target: t.Name}
	switch {
	case wanted == home && leaves(in, home):
		m.To, m.Why = second, fmt.Sprintf("node %s is in maintenance", home)
	case wanted == second && !leaves(in, home):
		m.To, m.Why, m.Back = home, fmt.Sprintf("node %s is back", home), !leaves(in, second)
	default:
		return nil
	}
	m.Waits = unfit(in, t, m.To)
	return m
}

// notOff returns why a target of a node that is not Ready is not taken over, in words that follow "because ".
func notOff(in backend.Input, t *v1alpha1.StorageTarget) string {
	holder := plan.HolderOf(t)
	node, there := in.Node(holder.Node)
	word := t.OffWord()
	switch {
	case !there:
		return fmt.Sprintf("node %s has it, and is not in the cluster any more, so nobody can mark it there as off; bring back a machine of this name, or a Node of this name "+
			"to be marked", holder.Node)
	case in.State != nil && in.Unanswered[holder.Node] == "":
		return fmt.Sprintf("node %s answers, so its machine is not off", holder.Node)
	case t.Annotations[v1alpha1.AnnotationMachineIsOff] != word:
		taint := ""
		if !node.OutOfService {
			taint = fmt.Sprintf("kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute; and: ", holder.Node)
		}
		return fmt.Sprintf("node %s has it, and is not Ready. A machine that only does not answer may go on to write, and destroys the target when another one has it. "+
			"Switch the machine off. When it IS off: %skubectl -n %s annotate --overwrite storagetarget %s %s=%s", holder.Node, taint, t.Namespace, t.Name,
			v1alpha1.AnnotationMachineIsOff, word)
	case !node.OutOfService:
		return fmt.Sprintf("node %s has it, is not Ready, and does not have the taint that marks its machine as off: "+
			"kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", holder.Node, holder.Node)
	}
	return ""
}

// sayPair describes what a target of two nodes waits for when it does not serve.
func (o *observer) sayPair(t *v1alpha1.StorageTarget, why string) string {
	if !plan.IsOfPair(t) {
		return why
	}
	holder := plan.HolderOf(t)
	if m := moveOf(o.in, t); m != nil && m.Off != nil && m.Waits != "" {
		return fmt.Sprintf("node %s does not serve it, because %s", m.To, m.Waits)
	}
	switch wanted := plan.WantedOn(t); {
	case wanted != holder.Node:
		why = fmt.Sprintf("node %s hands it over to node %s; %s", holder.Node, wanted, why)
	case holder.Number > 0 && holder.TakenUp == nil:
		why = fmt.Sprintf("node %s holds it now, and does not serve it yet; %s", holder.Node, why)
	}
	if holder.Message != "" {
		why += "; the agent reports: " + backend.Shorten(holder.Message)
	}
	return why
}

// sayAway reports a target that is served by the other node, not by its own.
func (o *observer) sayAway(out *backend.TargetStatus, t *v1alpha1.StorageTarget) {
	if out.Message != "" || !plan.IsOfPair(t) || plan.HolderOf(t).Node == t.Spec.Node {
		return
	}
	out.Message = fmt.Sprintf("node %s serves it for node %s", t.Spec.SecondNode, t.Spec.Node)
	if m := moveOf(o.in, t); m != nil && m.Waits != "" {
		out.Message = fmt.Sprintf("%s, which does not get it back yet, because %s", out.Message, backend.Shorten(m.Waits))
	}
}

// isMoving is true for a target that moves from one of two nodes to the other, according to the holders read before the nodes were queried.
// One node may have answered before it handed the target over, and the other one afterwards.
func isMoving(in backend.Input, role v1alpha1.Role, id int32, one, other string) bool {
	for name, number := range numbersOf(in) {
		t := in.TargetNamed(name)
		if number != id || t == nil || t.Spec.Role != role || !plan.IsOfPair(t) {
			continue
		}
		of := []string{t.Spec.Node, t.Spec.SecondNode}
		holder := plan.HolderOf(t).Node
		return slices.Contains(of, one) && slices.Contains(of, other) && plan.WantedOn(t) != holder
	}
	return false
}

// neverWithout returns why the filesystem does not continue without a node of a pair.
func neverWithout(in backend.Input, node string) string {
	for i := range in.Targets {
		t := &in.Targets[i]
		switch {
		case !plan.IsOfPair(t):
		case t.Spec.Node == node:
			return fmt.Sprintf("the disk of %s is not in it: node %s reaches that, too, and serves it when a person has said that the machine of this node is off; "+
				"bring back another machine of this name", t.Name, t.Spec.SecondNode)
		case t.Spec.SecondNode == node && plan.HolderOf(t).Node == node:
			return fmt.Sprintf("it has %s, whose own node is %s; have that one take it over first", t.Name, t.Spec.Node)
		}
	}
	return ""
}
