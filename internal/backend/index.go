package backend

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// index finds what an Input holds without a walk over all of it: each question about one node or target would otherwise cost as much as the
// filesystem has of them. Its values are places in the lists of the Input.
type index struct {
	// of are the lists of objects that it has the places of, and said is the answer of the filesystem whose places it has.
	of   lists
	said *State

	nodes, addresses map[string]int
	pods             map[podPlace][]int
	jobs             map[string]int
	// targets are the StorageTargets of a role on a node, by name; names are all of them.
	targets map[targetPlace][]int
	names   map[string]int

	// servers and sessions are found by the address of their node, disks by that of their server.
	servers, sessions map[string][]int
	disks             map[listener][]int
	// serverIDs, targetIDs and sides of mirrors are found by the number that the filesystem gave them.
	serverIDs, targetIDs, sides map[numbered]int
}

type podPlace struct{ component, pool, node string }

type targetPlace struct {
	role       v1alpha1.Role
	pool, node string
}

// listener is who listens on a port, as the filesystem says.
type listener struct {
	ip   string
	port int32
}

// numbered has a number that is unique in its role.
type numbered struct {
	role v1alpha1.Role
	id   int32
}

// Indexed is the same Input, in which single things are found at once. A Backend begins with it whenever it is asked, and changes nothing
// in the Input afterwards. One whose lists are still those that were indexed keeps its index.
func (in Input) Indexed() Input {
	switch {
	case in.index == nil || in.index.of != listsOf(in):
		in.index = newIndex(in, in.index)
	case in.index.said != in.State:
		x := *in.index
		x.listed(in.State)
		in.index = &x
	}
	return in
}

// IndexedWith is Indexed. What an earlier Input has Found in lists that are still the same, it takes from there.
func (in Input) IndexedWith(earlier Input) Input {
	in.index = earlier.index
	return in.Indexed()
}

// Found is what an Input has found in its lists of objects, and nothing else: for IndexedWith of the next one.
func (in Input) Found() Input {
	x := *in.find()
	x.listed(nil)
	return Input{index: &x}
}

// lists tell the lists of objects of one Input from those of another.
type lists struct {
	nodes   list[Node]
	pods    list[Pod]
	jobs    list[Job]
	targets list[v1alpha1.StorageTarget]
}

// list is where a list begins, and how long it is.
type list[T any] struct {
	first *T
	count int
}

func listOf[T any](items []T) list[T] {
	if len(items) == 0 {
		return list[T]{}
	}
	return list[T]{&items[0], len(items)}
}

func listsOf(in Input) lists {
	return lists{listOf(in.Nodes), listOf(in.Pods), listOf(in.Jobs), listOf(in.Targets)}
}

// find is the index of an Input; it is made anew for one that has none.
func (in Input) find() *index {
	if in.index != nil {
		return in.index
	}
	return newIndex(in, nil)
}

// newIndex takes from an earlier index, nil when there is none, the places in lists that are still the same.
func newIndex(in Input, earlier *index) *index {
	x := &index{}
	if earlier != nil {
		*x = *earlier
	}
	before := x.of
	x.of = listsOf(in)
	if x.nodes == nil || x.of.nodes != before.nodes {
		x.inNodes(in.Nodes)
	}
	if x.pods == nil || x.of.pods != before.pods {
		x.inPods(in.Pods)
	}
	if x.jobs == nil || x.of.jobs != before.jobs {
		x.jobs = make(map[string]int, len(in.Jobs))
		for i := range in.Jobs {
			first(x.jobs, in.Jobs[i].Name, i)
		}
	}
	if x.targets == nil || x.of.targets != before.targets {
		x.inTargets(in.Targets)
	}
	x.listed(in.State)
	return x
}

func (x *index) inNodes(nodes []Node) {
	x.nodes, x.addresses = make(map[string]int, len(nodes)), make(map[string]int, len(nodes))
	for i := range nodes {
		x.nodes[nodes[i].Name] = i
		if nodes[i].IP == "" {
			continue
		}
		if _, taken := x.addresses[nodes[i].IP]; taken {
			x.addresses[nodes[i].IP] = ofSeveral
		} else {
			x.addresses[nodes[i].IP] = i
		}
	}
}

// ofSeveral stands for the node of an address that several nodes report: any kubelet may report the address of another node.
const ofSeveral = -1

func (x *index) inPods(pods []Pod) {
	x.pods = grouped(len(pods), func(i int) podPlace { return podPlace{pods[i].Component, pods[i].StoragePool, pods[i].Node} })
}

func (x *index) inTargets(targets []v1alpha1.StorageTarget) {
	x.targets, x.names = grouped(len(targets), func(i int) targetPlace {
		spec := &targets[i].Spec
		return targetPlace{spec.Role, spec.StoragePool, spec.Node}
	}), make(map[string]int, len(targets))
	for i := range targets {
		first(x.names, targets[i].Name, i)
	}
	for _, places := range x.targets {
		slices.SortFunc(places, func(a, b int) int { return strings.Compare(targets[a].Name, targets[b].Name) })
	}
}

// listed adds what the filesystem says of itself, nil while it says nothing.
func (x *index) listed(state *State) {
	if x.said = state; state == nil {
		state = &State{}
	}
	x.servers = grouped(len(state.Servers), func(i int) string { return state.Servers[i].IP })
	x.disks = grouped(len(state.Targets), func(i int) listener { return listener{state.Targets[i].IP, state.Targets[i].Port} })
	x.sessions = grouped(len(state.Sessions), func(i int) string { return state.Sessions[i].IP })
	x.serverIDs, x.targetIDs = map[numbered]int{}, map[numbered]int{}
	for i := range state.Servers {
		if s := &state.Servers[i]; s.ID != 0 {
			first(x.serverIDs, numbered{s.Role, s.ID}, i)
		}
	}
	for i := range state.Targets {
		if t := &state.Targets[i]; t.ID != 0 {
			first(x.targetIDs, numbered{cmp.Or(t.Role, v1alpha1.RoleStorage), t.ID}, i)
		}
	}
	x.sides = make(map[numbered]int, 2*len(state.Mirrors)) //nolint:mnd // a mirror has two sides
	for i := range state.Mirrors {
		m := &state.Mirrors[i]
		first(x.sides, numbered{m.Role, m.Primary}, i)
		first(x.sides, numbered{m.Role, m.Secondary}, i)
	}
}

// grouped are the places of so many items, in their order, by a key that each item has.
func grouped[K comparable](items int, key func(i int) K) map[K][]int {
	// Each group is cut out of one list: one that grows with its items would be as many lists as there are items, nearly.
	counts := map[K]int{}
	for i := range items {
		counts[key(i)]++
	}
	places, out := make([]int, items), make(map[K][]int, len(counts))
	for i := range items {
		k := key(i)
		group, begun := out[k]
		if !begun {
			group, places = places[:0:counts[k]], places[counts[k]:]
		}
		out[k] = append(group, i)
	}
	return out
}

// first remembers a place, unless the key has one: of two with one name, the first one counts.
func first[K comparable](places map[K]int, key K, place int) {
	if _, taken := places[key]; !taken {
		places[key] = place
	}
}

// Node finds a node by its name. It is not there, for a daemon, while it has no address.
func (in Input) Node(name string) (Node, bool) {
	i, ok := in.find().nodes[name]
	if !ok {
		return Node{}, false
	}
	return in.Nodes[i], in.Nodes[i].IP != ""
}

// NodeAt finds a node by its address. An address that several nodes report is that of none of them.
func (in Input) NodeAt(ip string) (Node, bool) {
	i, ok := in.find().addresses[ip]
	if !ok || i == ofSeveral {
		return Node{}, false
	}
	return in.Nodes[i], true
}

// IsShared is true for an address that several nodes report: nothing is concluded from what listens there.
func (in Input) IsShared(ip string) bool { return in.find().addresses[ip] == ofSeveral }

// JobNamed is a Job, nil when it is not there.
func (in Input) JobNamed(name string) *Job { return one(in.Jobs, in.find().jobs, name) }

// PodsOn are the pods of a component on a node, those of a pool where it serves one; to be read only, as all of an Input.
func (in Input) PodsOn(component, pool, node string) iter.Seq[*Pod] {
	return at(in.Pods, in.find().pods[podPlace{component, pool, node}])
}

// TargetNamed is a StorageTarget, nil when it is not there.
func (in Input) TargetNamed(name string) *v1alpha1.StorageTarget {
	return one(in.Targets, in.find().names, name)
}

// TargetsOn are the disks of a role on a node, by name; those of a pool for the role Storage.
func (in Input) TargetsOn(role v1alpha1.Role, pool, node string) iter.Seq[*v1alpha1.StorageTarget] {
	return at(in.Targets, in.find().targets[targetPlace{role, pool, node}])
}

// ServersAt are the servers that the filesystem lists at an address; none while it says nothing.
func (in Input) ServersAt(ip string) iter.Seq[*Server] {
	if in.State == nil {
		return at[Server](nil, nil)
	}
	return at(in.State.Servers, in.find().servers[ip])
}

// TargetsAt are the targets that the filesystem lists at the address of their server; none while it says nothing.
func (in Input) TargetsAt(ip string, port int32) iter.Seq[*Target] {
	if in.State == nil || ip == "" {
		return at[Target](nil, nil)
	}
	return at(in.State.Targets, in.find().disks[listener{ip, port}])
}

// SessionsOf are the mounts that the filesystem lists of an address; none while it says nothing.
func (in Input) SessionsOf(ip string) iter.Seq[*Session] {
	if in.State == nil {
		return at[Session](nil, nil)
	}
	return at(in.State.Sessions, in.find().sessions[ip])
}

// ServerWithID is the server that the filesystem lists with a number, nil while it lists none.
func (in Input) ServerWithID(role v1alpha1.Role, id int32) *Server {
	if in.State == nil {
		return nil
	}
	return one(in.State.Servers, in.find().serverIDs, numbered{role, id})
}

// TargetWithID is the target that the filesystem lists with a number, nil while it lists none.
func (in Input) TargetWithID(role v1alpha1.Role, id int32) *Target {
	if in.State == nil {
		return nil
	}
	return one(in.State.Targets, in.find().targetIDs, numbered{role, id})
}

// MirrorWith is the mirror that has a target or a metadata server with a number as one of its sides, nil while there is none.
func (in Input) MirrorWith(role v1alpha1.Role, id int32) *Mirror {
	if in.State == nil {
		return nil
	}
	return one(in.State.Mirrors, in.find().sides, numbered{role, id})
}

// one is the item of a list whose place is known by a key, nil when none is.
func one[T any, K comparable](list []T, places map[K]int, key K) *T {
	i, ok := places[key]
	if !ok {
		return nil
	}
	return &list[i]
}

// at yields the items of a list at these places.
func at[T any](list []T, places []int) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, i := range places {
			if !yield(&list[i]) {
				return
			}
		}
	}
}
