package backend

import (
	"iter"

	"parallelfs.dev/operator/api/v1alpha1"
)

// index finds what an Input holds without a walk over all of it: each question about one node would otherwise cost as much as the
// filesystem has nodes.
type index struct {
	nodes   map[string]int
	pods    map[podPlace][]int
	targets map[targetPlace][]int

	// servers and sessions are found by the address of their node, disks by that of their server.
	servers, sessions map[string][]int
	disks             map[listener][]int
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

// Indexed is the same Input, in which single things are found at once. A Backend begins with it whenever it is asked, and changes nothing
// in the Input afterwards.
func (in Input) Indexed() Input {
	in.index = newIndex(in)
	return in
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
		nodes: make(map[string]int, len(in.Nodes)), pods: make(map[podPlace][]int, len(in.Pods)), targets: map[targetPlace][]int{},
	}
	for i := range in.Nodes {
		x.nodes[in.Nodes[i].Name] = i
	}
	for i := range in.Pods {
		place := podPlace{in.Pods[i].Component, in.Pods[i].StoragePool, in.Pods[i].Node}
		x.pods[place] = append(x.pods[place], i)
	}
	for i := range in.Targets {
		spec := &in.Targets[i].Spec
		place := targetPlace{spec.Role, spec.StoragePool, spec.Node}
		x.targets[place] = append(x.targets[place], i)
	}
	if in.State == nil {
		return x
	}
	x.servers, x.sessions = make(map[string][]int, len(in.State.Servers)), make(map[string][]int, len(in.State.Sessions))
	x.disks = map[listener][]int{}
	for i, s := range in.State.Servers {
		x.servers[s.IP] = append(x.servers[s.IP], i)
	}
	for i, t := range in.State.Targets {
		x.disks[listener{t.IP, t.Port}] = append(x.disks[listener{t.IP, t.Port}], i)
	}
	for i, s := range in.State.Sessions {
		x.sessions[s.IP] = append(x.sessions[s.IP], i)
	}
	return x
}

// Node finds a node by its name. It is not there, for a daemon, while it has no address.
func (in Input) Node(name string) (Node, bool) {
	i, ok := in.find().nodes[name]
	if !ok {
		return Node{}, false
	}
	return in.Nodes[i], in.Nodes[i].IP != ""
}

// PodsOn are the pods of a component on a node, those of a pool where it serves one; to be read only, as all of an Input.
func (in Input) PodsOn(component, pool, node string) iter.Seq[*Pod] {
	return at(in.Pods, in.find().pods[podPlace{component, pool, node}])
}

// TargetsOn are the disks of a role on a node, those of a pool for the role Storage.
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
