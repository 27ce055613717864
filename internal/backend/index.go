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
	role       v1alpha1.InstanceRole
	pool, node string
}

// listener is who listens on a port, as the filesystem says.
type listener struct {
	ip   string
	port int32
}

// numbered has a number that is unique in its role.
type numbered struct {
	role v1alpha1.InstanceRole
	id   int32
}

// Indexed is the same Input, in which single things are found at once. A Backend begins with it whenever it is asked, and changes nothing
// in the Input afterwards. One whose lists are still those that were indexed keeps its index.
func (in Input) Indexed() Input {
	switch {
	case in.index == nil || in.index.of != listsOf(in):
		in.index = newIndex(in)
	case in.index.said != in.State:
		x := *in.index
		x.listed(in.State)
		in.index = &x
	}
	return in
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
	return newIndex(in)
}

func newIndex(in Input) *index {
	x := &index{
		of: listsOf(in),

		nodes: make(map[string]int, len(in.Nodes)), addresses: make(map[string]int, len(in.Nodes)),
		pods: make(map[podPlace][]int, len(in.Pods)), jobs: make(map[string]int, len(in.Jobs)),
		targets: map[targetPlace][]int{}, names: make(map[string]int, len(in.Targets)),
	}
	for i := range in.Nodes {
		x.nodes[in.Nodes[i].Name] = i
		first(x.addresses, in.Nodes[i].IP, i)
	}
	for i := range in.Pods {
		place := podPlace{in.Pods[i].Component, in.Pods[i].StoragePool, in.Pods[i].Node}
		x.pods[place] = append(x.pods[place], i)
	}
	for i := range in.Jobs {
		first(x.jobs, in.Jobs[i].Name, i)
	}
	for i := range in.Targets {
		spec := &in.Targets[i].Spec
		place := targetPlace{spec.Role, spec.StoragePool, spec.Node}
		x.targets[place] = append(x.targets[place], i)
		first(x.names, in.Targets[i].Name, i)
	}
	for _, places := range x.targets {
		slices.SortFunc(places, func(a, b int) int { return strings.Compare(in.Targets[a].Name, in.Targets[b].Name) })
	}
	x.listed(in.State)
	return x
}

// listed adds what the filesystem says of itself, nil while it says nothing.
func (x *index) listed(state *State) {
	if x.said = state; state == nil {
		state = &State{}
	}
	x.servers, x.serverIDs = make(map[string][]int, len(state.Servers)), make(map[numbered]int, len(state.Servers))
	x.disks, x.targetIDs = map[listener][]int{}, make(map[numbered]int, len(state.Targets))
	x.sessions, x.sides = make(map[string][]int, len(state.Sessions)), make(map[numbered]int, 2*len(state.Mirrors))
	for i := range state.Servers {
		s := &state.Servers[i]
		x.servers[s.IP] = append(x.servers[s.IP], i)
		first(x.serverIDs, numbered{s.Role, s.ID}, i)
	}
	for i := range state.Targets {
		t := &state.Targets[i]
		if t.IP != "" {
			x.disks[listener{t.IP, t.Port}] = append(x.disks[listener{t.IP, t.Port}], i)
		}
		if t.ID != 0 {
			first(x.targetIDs, numbered{cmp.Or(t.Role, v1alpha1.RoleStorage), t.ID}, i)
		}
	}
	for i := range state.Sessions {
		x.sessions[state.Sessions[i].IP] = append(x.sessions[state.Sessions[i].IP], i)
	}
	for i := range state.Mirrors {
		m := &state.Mirrors[i]
		first(x.sides, numbered{m.Role, m.Primary}, i)
		first(x.sides, numbered{m.Role, m.Secondary}, i)
	}
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

// NodeAt finds a node by its address.
func (in Input) NodeAt(ip string) (Node, bool) {
	i, ok := in.find().addresses[ip]
	if !ok {
		return Node{}, false
	}
	return in.Nodes[i], true
}

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
func (in Input) TargetsOn(role v1alpha1.InstanceRole, pool, node string) iter.Seq[*v1alpha1.StorageTarget] {
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
	if in.State == nil {
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
func (in Input) ServerWithID(role v1alpha1.InstanceRole, id int32) *Server {
	if in.State == nil {
		return nil
	}
	return one(in.State.Servers, in.find().serverIDs, numbered{role, id})
}

// TargetWithID is the target that the filesystem lists with a number, nil while it lists none.
func (in Input) TargetWithID(role v1alpha1.InstanceRole, id int32) *Target {
	if in.State == nil {
		return nil
	}
	return one(in.State.Targets, in.find().targetIDs, numbered{role, id})
}

// MirrorWith is the buddy group that has a target or a metadata server with a number as one of its sides, nil while there is none.
func (in Input) MirrorWith(role v1alpha1.InstanceRole, id int32) *Mirror {
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
