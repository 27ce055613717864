package backend

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// index finds items of an Input without a search through its lists. Otherwise each question about one node or target would take time
// proportional to the size of the filesystem. Its values are positions in the lists of the Input.
type index struct {
	// of holds the indexed lists of objects, and state is the indexed answer of the filesystem.
	of    lists
	state *State

	nodes, addresses map[string]int
	pods             map[podPlace][]int
	jobs             map[string]int
	// targets holds the StorageTargets of a role on a node, by name; names holds all of them.
	targets map[targetPlace][]int
	names   map[string]int

	// servers and sessions are indexed by the address of their node, disks by that of their server.
	servers, sessions map[string][]int
	disks             map[listener][]int
	// serverIDs, targetIDs and sides (of mirrors) are indexed by the number that the filesystem assigned.
	serverIDs, targetIDs, sides map[numbered]int
}

type podPlace struct{ component, pool, node string }

type targetPlace struct {
	role       v1alpha1.Role
	pool, node string
}

// listener is the address and port of a server, as the filesystem lists it.
type listener struct {
	ip   string
	port int32
}

// numbered is a number that is unique in its role.
type numbered struct {
	role v1alpha1.Role
	id   int32
}

// Indexed returns the same Input with an index. A Backend calls it first in each of its methods, and changes nothing in the Input
// afterwards. An Input whose lists are unchanged keeps its index.
func (in Input) Indexed() Input {
	switch {
	case in.index == nil || in.index.of != listsOf(in):
		in.index = newIndex(in, in.index)
	case in.index.state != in.State:
		x := *in.index
		x.listed(in.State)
		in.index = &x
	}
	return in
}

// IndexedWith is Indexed, and reuses what an earlier Input has indexed of lists that are unchanged.
func (in Input) IndexedWith(earlier Input) Input {
	in.index = earlier.index
	return in.Indexed()
}

// Found returns only the indexed lists of an Input, for IndexedWith of the next one.
func (in Input) Found() Input {
	x := *in.find()
	x.listed(nil)
	return Input{index: &x}
}

// lists identifies the lists of objects of one Input.
type lists struct {
	nodes   list[Node]
	pods    list[Pod]
	jobs    list[Job]
	targets list[v1alpha1.StorageTarget]
}

// list is the address and the length of a list.
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

// find returns the index of an Input, and builds one if there is none.
func (in Input) find() *index {
	if in.index != nil {
		return in.index
	}
	return newIndex(in, nil)
}

// newIndex reuses the positions of unchanged lists from an earlier index, which is nil if there is none.
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
			First(x.jobs, in.Jobs[i].Name, i)
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

// ofSeveral marks an address that several nodes report, because any kubelet may report the address of another node.
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
		First(x.names, targets[i].Name, i)
	}
	for _, places := range x.targets {
		slices.SortFunc(places, func(a, b int) int { return strings.Compare(targets[a].Name, targets[b].Name) })
	}
}

// listed indexes the filesystem's answer, nil while there is none.
func (x *index) listed(state *State) {
	if x.state = state; state == nil {
		state = &State{}
	}
	x.servers = grouped(len(state.Servers), func(i int) string { return state.Servers[i].IP })
	x.disks = grouped(len(state.Targets), func(i int) listener { return listener{state.Targets[i].IP, state.Targets[i].Port} })
	x.sessions = grouped(len(state.Sessions), func(i int) string { return state.Sessions[i].IP })
	x.serverIDs, x.targetIDs = map[numbered]int{}, map[numbered]int{}
	for i := range state.Servers {
		if s := &state.Servers[i]; s.ID != 0 {
			First(x.serverIDs, numbered{s.Role, s.ID}, i)
		}
	}
	for i := range state.Targets {
		if t := &state.Targets[i]; t.ID != 0 {
			First(x.targetIDs, numbered{cmp.Or(t.Role, v1alpha1.RoleStorage), t.ID}, i)
		}
	}
	x.sides = make(map[numbered]int, 2*len(state.Mirrors)) //nolint:mnd // a mirror has two sides
	for i := range state.Mirrors {
		m := &state.Mirrors[i]
		First(x.sides, numbered{m.Role, m.Primary}, i)
		First(x.sides, numbered{m.Role, m.Secondary}, i)
	}
}

// grouped returns the positions of items, in their order, by the key of each item.
func grouped[K comparable](items int, key func(i int) K) map[K][]int {
	// All groups share one backing array. Growing each group on its own would allocate nearly as many arrays as there are items.
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

// First stores a position unless the key has one: of two items with one name, the first counts.
func First[K comparable](places map[K]int, key K, place int) {
	if _, taken := places[key]; !taken {
		places[key] = place
	}
}

// Node finds a node by its name. It returns false for a node without an address, because a daemon can't use it.
func (in Input) Node(name string) (Node, bool) {
	i, ok := in.find().nodes[name]
	if !ok {
		return Node{}, false
	}
	return in.Nodes[i], in.Nodes[i].IP != ""
}

// NodeAt finds a node by its address. It returns no node for an address that several nodes report.
func (in Input) NodeAt(ip string) (Node, bool) {
	i, ok := in.find().addresses[ip]
	if !ok || i == ofSeveral {
		return Node{}, false
	}
	return in.Nodes[i], true
}

// IsShared reports whether several nodes report an address. A listener at such an address proves nothing.
func (in Input) IsShared(ip string) bool { return in.find().addresses[ip] == ofSeveral }

// JobNamed returns a Job, nil if it does not exist.
func (in Input) JobNamed(name string) *Job { return one(in.Jobs, in.find().jobs, name) }

// PodsOn yields the pods of a component on a node, and of a pool if the component serves one. They are read-only, like all of an Input.
func (in Input) PodsOn(component, pool, node string) iter.Seq[*Pod] {
	return at(in.Pods, in.find().pods[podPlace{component, pool, node}])
}

// TargetNamed returns a StorageTarget, nil if it does not exist.
func (in Input) TargetNamed(name string) *v1alpha1.StorageTarget {
	return one(in.Targets, in.find().names, name)
}

// TargetsOn yields the disks of a role on a node, by name; for the role Storage, those of a pool.
func (in Input) TargetsOn(role v1alpha1.Role, pool, node string) iter.Seq[*v1alpha1.StorageTarget] {
	return at(in.Targets, in.find().targets[targetPlace{role, pool, node}])
}

// ServersAt yields the servers that the filesystem lists at an address; none without an answer.
func (in Input) ServersAt(ip string) iter.Seq[*Server] {
	if in.State == nil {
		return at[Server](nil, nil)
	}
	return at(in.State.Servers, in.find().servers[ip])
}

// TargetsAt yields the targets that the filesystem lists at the address of their server; none without an answer.
func (in Input) TargetsAt(ip string, port int32) iter.Seq[*Target] {
	if in.State == nil || ip == "" {
		return at[Target](nil, nil)
	}
	return at(in.State.Targets, in.find().disks[listener{ip, port}])
}

// SessionsOf yields the mounts that the filesystem lists for an address; none without an answer.
func (in Input) SessionsOf(ip string) iter.Seq[*Session] {
	if in.State == nil {
		return at[Session](nil, nil)
	}
	return at(in.State.Sessions, in.find().sessions[ip])
}

// ServerWithID returns the server that the filesystem lists with a number, nil if it lists none.
func (in Input) ServerWithID(role v1alpha1.Role, id int32) *Server {
	if in.State == nil {
		return nil
	}
	return one(in.State.Servers, in.find().serverIDs, numbered{role, id})
}

// TargetWithID returns the target that the filesystem lists with a number, nil if it lists none.
func (in Input) TargetWithID(role v1alpha1.Role, id int32) *Target {
	if in.State == nil {
		return nil
	}
	return one(in.State.Targets, in.find().targetIDs, numbered{role, id})
}

// MirrorWith returns the mirror that has the target or metadata server with this number as a side, nil if there is none.
func (in Input) MirrorWith(role v1alpha1.Role, id int32) *Mirror {
	if in.State == nil {
		return nil
	}
	return one(in.State.Mirrors, in.find().sides, numbered{role, id})
}

// one returns the item of a list whose position is stored under a key, nil if there is none.
func one[T any, K comparable](list []T, places map[K]int, key K) *T {
	i, ok := places[key]
	if !ok {
		return nil
	}
	return &list[i]
}

// at yields the items of a list at these positions.
func at[T any](list []T, places []int) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, i := range places {
			if !yield(&list[i]) {
				return
			}
		}
	}
}
