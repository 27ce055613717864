package beegfs

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// member is a storage target or a metadata server that can be one side of a buddy group.
type member struct {
	id   int32
	node string
}

// pairs makes groups of two members on different nodes, and of different failure domains as long as there are any. Each group takes the two
// domains with the most members left, and in each the node with the most, so that as few members as possible stay alone. The lower number
// is the primary, so that the result is always the same.
func pairs(members []member, domains nodefacts.Domains) [][2]int32 {
	var out [][2]int32
	pair := func(a, b int32) { out = append(out, [2]int32{min(a, b), max(a, b)}) }
	left := sides(members, domains)
	for len(left) > 1 {
		a, b := left.first(), left.first()
		pair(a.take(), b.take())
		left.back(a)
		left.back(b)
	}
	for len(left) == 1 && len(left[0].parts) > 1 {
		nodes := &left[0].parts
		a, b := nodes.first(), nodes.first()
		pair(a.take(), b.take())
		nodes.back(a)
		nodes.back(b)
	}
	slices.SortFunc(out, func(a, b [2]int32) int { return cmp.Compare(a[0], b[0]) })
	return out
}

// side is a failure domain with the nodes in it as its parts, or a node with its members.
type side struct {
	name  string
	count int
	parts queue
	ids   []int32
}

// sides returns the failure domains that have members.
func sides(members []member, domains nodefacts.Domains) queue {
	nodes, all := map[string]*side{}, map[string]*side{}
	for _, m := range members {
		if nodes[m.node] == nil {
			nodes[m.node] = &side{name: m.node}
		}
		nodes[m.node].ids = append(nodes[m.node].ids, m.id)
		nodes[m.node].count++
	}
	for name, node := range nodes {
		slices.Sort(node.ids)
		domain, _ := domains.Of(name)
		if all[domain.String()] == nil {
			all[domain.String()] = &side{name: domain.String()}
		}
		all[domain.String()].parts.back(node)
		all[domain.String()].count += node.count
	}
	var out queue
	for _, domain := range all {
		out.back(domain)
	}
	return out
}

// take removes one member and returns it.
func (s *side) take() int32 {
	s.count--
	if len(s.parts) > 0 {
		node := s.parts.first()
		id := node.take()
		s.parts.back(node)
		return id
	}
	id := s.ids[0]
	s.ids = s.ids[1:]
	return id
}

// queue is a heap of sides: the side with the most members is the first, and sides with equally many are sorted by name. A side without
// members is never in it.
type queue []*side

// first removes the first side and returns it.
func (q *queue) first() *side { return heap.Pop(q).(*side) }

// back puts a side in again, unless it has no members left.
func (q *queue) back(s *side) {
	if s.count > 0 {
		heap.Push(q, s)
	}
}

// Len implements heap.Interface.
func (q queue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[j].count, q[i].count), strings.Compare(q[i].name, q[j].name)) < 0
}

// Swap implements heap.Interface.
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(s any) { *q = append(*q, s.(*side)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	*q = (*q)[:last]
	return s
}

// nodesByID returns the nodes of the storage targets, or of the metadata servers, by their assigned number.
func nodesByID(in backend.Input, role v1alpha1.Role) map[int32]string {
	out := map[int32]string{}
	for _, a := range in.Given() {
		switch {
		case a.Role != role || a.Retired:
		case role == v1alpha1.RoleMetadata:
			out[a.ID] = a.Node
		default:
			for _, t := range a.Targets {
				out[t.ID] = a.Node
			}
		}
	}
	return out
}

// spread computes the condition Spread: whether the sides of each buddy group are in different failure domains. Groups are never changed,
// so a group within one domain stays as it is.
func (o *observer) spread() *backend.Problem {
	switch {
	case o.domains.Label == "":
		return nil
	case o.in.State == nil:
		return &backend.Problem{Reason: v1alpha1.ReasonDataUnknown, Message: "BeeGFS does not answer, so it is unknown which targets are buddies"}
	}
	var nodes, together []string
	for _, role := range []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleStorage} {
		of := nodesByID(o.in, role)
		for _, node := range of {
			nodes = append(nodes, node)
		}
		for _, m := range o.in.State.Mirrors {
			if m.Role == role && !o.domains.Apart(of[m.Primary], of[m.Secondary]) {
				together = append(together, fmt.Sprintf("%s group %d (%d on node %s, %d on node %s)",
					strings.ToLower(string(role)), m.ID, m.Primary, of[m.Primary], m.Secondary, of[m.Secondary]))
			}
		}
	}
	unlabeled := o.domains.Unlabeled(nodes)
	switch {
	case len(together) > 0:
		message := fmt.Sprintf("%d buddy groups have both sides in one failure domain: %s; a group stays as it was made",
			len(together), backend.List(together))
		if unlabeled != nil {
			message += "; " + unlabeled.Message
		}
		return &backend.Problem{Reason: v1alpha1.ReasonCopiesTogether, Message: message}
	case unlabeled != nil:
		return unlabeled
	default:
		return &backend.Problem{Reason: v1alpha1.ReasonAsAsked, Message: fmt.Sprintf(
			"the nodes are in %d failure domains, and the sides of all %d buddy groups in different ones", o.domains.Count(nodes), len(o.in.State.Mirrors))}
	}
}

// eachHeld calls visit for everything that holds data: the storage targets, and the metadata of each metadata server. It calls visit for
// nothing while BeeGFS does not answer.
func (o *observer) eachHeld(visit func(server, what string, role v1alpha1.Role, id int32, node string)) {
	if o.in.State == nil {
		return
	}
	for _, t := range o.targets {
		// A target that was never in the filesystem holds no data, and neither does one that was emptied.
		if t.said != nil && t.drained == nil || t.said == nil && t.initialized != nil {
			visit(storageName(t.pool.Name, t.node), fmt.Sprintf("target %d", t.id), v1alpha1.RoleStorage, t.id, t.node)
		}
	}
	for _, l := range o.leftovers {
		if l.Initialized != nil && l.Drained == nil && l.said != nil {
			// Its buddy may have all of its data, but that is not checked: a person has to see that a target was taken out before it was empty.
			what := fmt.Sprintf("target %d, which was taken out and never emptied,", l.ID)
			visit(l.server.Server(), what, v1alpha1.RoleStorage, 0, l.server.Node)
		}
	}
	for _, a := range metadataServers(o.in) {
		visit(a.Server(), "it", v1alpha1.RoleMetadata, a.ID, a.Node)
	}
}

// together lists the pods that may restart together with others of their failure domain. All data of their servers has a buddy in another
// domain that is online and complete.
func (o *observer) together() {
	o.seen.Together = map[string]int{}
	nodes := map[v1alpha1.Role]map[int32]string{
		v1alpha1.RoleStorage: nodesByID(o.in, v1alpha1.RoleStorage), v1alpha1.RoleMetadata: nodesByID(o.in, v1alpha1.RoleMetadata),
	}
	// holds has the servers that hold data, unsafe those that hold data without a complete copy in another failure domain.
	holds, unsafe := map[string]bool{}, map[string]bool{}
	o.eachHeld(func(server, _ string, role v1alpha1.Role, id int32, node string) {
		holds[server] = true
		unsafe[server] = unsafe[server] || !o.buddyApart(role, id, node, nodes[role])
	})
	for i := range o.in.Pods {
		if p := &o.in.Pods[i]; holds[p.Server()] && !unsafe[p.Server()] {
			o.seen.Together[p.Name.Name] = math.MaxInt
		}
	}
}

// buddyApart is true if the other side of a buddy group is online, has all of the data, and is in another failure domain.
func (o *observer) buddyApart(role v1alpha1.Role, id int32, node string, nodes map[int32]string) bool {
	other, known := nodes[o.buddies.of[part{role, id}]]
	return known && o.domains.Apart(node, other) && o.buddies.serves(role, id)
}

// part names a storage target, or a metadata server.
type part struct {
	role v1alpha1.Role
	id   int32
}

// buddies holds the sides of all buddy groups.
type buddies struct {
	// of maps each side to the other side of its group.
	of map[part]int32
	// whole has the sides that are online and complete, according to BeeGFS and to everything newer than its answer.
	whole map[part]bool
}

// serves is true when the other side of a buddy group is online, and has all of the data.
func (b buddies) serves(role v1alpha1.Role, id int32) bool {
	other, mirrored := b.of[part{role, id}]
	return mirrored && b.whole[part{role, other}]
}

// buddiesNow returns the buddy groups that BeeGFS lists. Groups of metadata servers count when the metadata is mirrored.
func (o *observer) buddiesNow() buddies {
	b := buddies{of: map[part]int32{}, whole: map[part]bool{}}
	if o.in.State == nil {
		return b
	}
	for _, m := range o.in.State.Mirrors {
		if m.Role != v1alpha1.RoleMetadata || o.in.State.MetadataMirrored {
			b.of[part{m.Role, m.Primary}], b.of[part{m.Role, m.Secondary}] = m.Secondary, m.Primary
		}
	}
	there := map[part]bool{}
	for _, i := range o.seen.Servers {
		if i.Role == v1alpha1.RoleMetadata && i.Online {
			there[part{i.Role, i.ID}] = true
		}
	}
	for _, t := range o.seen.Targets {
		if t.Online && t.ID != 0 {
			there[part{v1alpha1.RoleStorage, t.ID}] = true
		}
	}
	for _, t := range o.in.State.Targets {
		p := part{cmp.Or(t.Role, v1alpha1.RoleStorage), t.ID}
		// If the management service reports no state, as after its start, the state of the data is unknown.
		b.whole[p] = t.Online && t.Consistency == cli.Good && there[p]
	}
	return b
}
