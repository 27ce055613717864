package lustre

import (
	"cmp"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/plan"
)

// ProbeURLs returns the addresses of the probes of the nodes with targets. Any member of a node answers for the whole node; a member whose
// pod is Ready is preferred.
func (Backend) ProbeURLs(in backend.Input) map[string]string {
	in = in.Indexed()
	fs := in.FileSystem
	out, ready := map[string]string{}, map[string]bool{}
	add := func(name, component, pool, slot string, port int32) {
		node, there := in.Node(name)
		if !there {
			return
		}
		up := false
		for p := range in.PodsOn(component, pool, name) {
			up = up || p.Slot == slot && p.Ready
		}
		if out[name] == "" || up && !ready[name] {
			out[name], ready[name] = "http://"+backend.Address(node.IP, port)+"/state", up
		}
	}
	if node := given(fs).ManagementNode; hasMGT(fs) && node != "" {
		add(node, componentMGS, "", "", portsOf(fs).mgs())
	}
	for _, g := range in.Given() {
		switch {
		case g.Retired || g.GivenUp:
		case g.Role == v1alpha1.RoleMetadata:
			add(g.Node, componentMDT, "", fmt.Sprint(g.Slot), portsOf(fs).mdt(g.Slot))
		default:
			add(g.Node, componentOST, g.StoragePool, "", portsOf(fs).ost(g.Slot))
		}
	}
	return out
}

// Together combines the answers of the nodes. An error means that two nodes serve one target, which destroys it: nothing may be started or
// stopped before a person has checked.
func (Backend) Together(in backend.Input, said map[string]*backend.State) (backend.State, error) {
	var state backend.State
	type number struct {
		role v1alpha1.Role
		id   int32
	}
	on := map[number]string{}
	for _, name := range backend.SortedKeys(said) {
		node, _ := in.Node(name)
		answer := said[name]
		state.Pools = append(state.Pools, answer.Pools...) // only the node of MDT0000 lists pools
		state.Links = append(state.Links, answer.Links...)
		state.Servers = append(state.Servers, backend.Server{
			Name: name, IP: node.IP, Online: true, Version: answer.Version, Modules: answer.Modules,
		})
		for _, t := range answer.Targets {
			// Each node may be the MGS of another Lustre, and an MGS does not report a filesystem's name.
			other, twice := on[number{t.Role, t.ID}]
			if twice && isMoving(in, t.Role, t.ID, other, name) {
				i := slices.IndexFunc(state.Targets, func(first backend.Target) bool { return first.Role == t.Role && first.ID == t.ID })
				state.Targets[i].Online = false
				state.Targets[i].Status = fmt.Sprintf("it is being moved, and nodes %s and %s have both answered that they have it mounted, one after the other", other, name)
				continue
			}
			if twice && t.Role != v1alpha1.RoleManagement {
				return backend.State{}, fmt.Errorf("nodes %s and %s both have %s mounted, which destroys it; stop one of the two nodes at once",
					other, name, TargetOf(own(in.FileSystem).FSName, t.Role, t.ID))
			}
			on[number{t.Role, t.ID}] = name
			t.IP = node.IP
			state.Targets = append(state.Targets, t)
		}
		if state.Version == "" || backend.CompareVersions(answer.Version, state.Version) < 0 {
			state.Version = answer.Version
		}
	}
	return state, nil
}

// statusOf returns why a mounted target does not serve, empty when it does. It serves programs, and the next target may be stopped, when
// its recovery is over.
func statusOf(target cli.Target, serving cli.Serving) string {
	r := serving.Recovery
	switch {
	case !serving.Up:
		return "it is being started or stopped"
	case !serving.Healthy:
		return "NOT HEALTHY"
	case target.Kind == cli.MGT || r.Over():
		return ""
	case r.NotReady != "":
		return fmt.Sprintf("%s, for the MDTs %s", r.Status, r.NotReady)
	case r.Expected > 0:
		return fmt.Sprintf("%s, %d of %d clients are back", r.Status, r.Clients, r.Expected)
	case r.Status == "":
		return "it does not say whether its recovery is over"
	default:
		return r.Status
	}
}

// Observe compares the desired targets, from the records, with those that each node reports as served.
func (b Backend) Observe(in backend.Input) backend.Observation {
	in = in.Indexed()
	o := observer{
		in: in, fs: in.FileSystem, work: workOf(in), departures: departuresOf(in), pins: pinsOf(in), placements: podspec.NewPlacements(in),
	}
	o.seen.Targets = make([]backend.TargetStatus, 0, len(in.Targets))
	o.management()
	o.metadata()
	o.storage()
	o.clients()
	o.seen.Count()
	o.diagnose()
	o.seen.NameAway(func(backend.ServerStatus) bool { return false })
	o.seen.Serves, o.seen.Unknown = o.serves()
	o.sole()
	o.stopsAgain()
	o.seen.Pinned = o.placements.Pinned()
	o.seen.Partners = partnersUnproven(in)
	return o.seen
}

// sole lists the pods whose restart makes programs wait: a pod that ends unmounts its targets, whose data has no other copy. An MGS of its
// own stores no files.
func (o *observer) sole() {
	o.seen.Sole = map[string]string{}
	for i := range o.in.Pods {
		switch p := &o.in.Pods[i]; p.Component {
		case componentMDT, componentOST:
			o.seen.Sole[p.Name.Name] = "Lustre stores nothing twice"
		}
	}
}

// observer collects an Observation.
type observer struct {
	in   backend.Input
	fs   *v1alpha1.FileSystem
	seen backend.Observation
	// unproven lists the disks that are not ready, unplaced those that are not chosen, and missing the targets that do not serve although
	// their disks are ready. All are in words for a list.
	unproven, unplaced, missing []string
	// silent is true while some target with an index does not serve, and unasked while that is unknown for some target, because its node does
	// not answer.
	silent, unasked bool
	// work is the work that makes the pools, and departures are the OSTs that are to be taken out.
	work       work
	departures []departure
	// pins has the desired parameters of the modules of nodes, and placements the CPUs of their threads.
	pins       map[string]pin
	placements *podspec.Placements
}

// daemon identifies the pod of a server.
type daemon struct{ component, pool, slot string }

// server sets whether a node has a running pod and has answered.
func (o *observer) server(s *backend.ServerStatus, d daemon) {
	node, there := o.in.Node(s.Node)
	switch {
	case !there:
		s.Message = "the node " + o.in.Gone(s.Node) + "; bring it back: it holds data"
		return
	case o.in.State == nil:
		s.Message = o.podMessage(d, s.Node, "unknown: "+o.in.StateError)
		return
	case o.in.Unanswered[s.Node] != "":
		s.Message = o.podMessage(d, s.Node, "unknown: "+o.in.Unanswered[s.Node])
		return
	}
	for answer := range o.in.ServersAt(node.IP) {
		s.Version = answer.Version
	}
	if s.Message = o.in.Away(d.component, d.pool, d.slot, s.Node); s.Message == "" {
		s.Online = s.Version != ""
	}
	if !s.Online && s.Message == "" {
		s.Message = "the node was not asked yet"
	}
}

// podMessage returns the message of the pod, or otherwise the given text.
func (o *observer) podMessage(d daemon, node, otherwise string) string {
	there := false
	for p := range o.in.PodsOn(d.component, d.pool, node) {
		if p.Slot != d.slot {
			continue
		}
		if there = true; p.Message != "" {
			return p.Message
		}
	}
	if !there {
		return "there is no pod of it on the node"
	}
	return otherwise
}

// target returns a target as its node reports it: nil, and why, when it does not serve.
func (o *observer) target(node string, role v1alpha1.Role, id int32) (said *backend.Target, why string) {
	where, _ := o.in.Node(node)
	switch {
	case o.in.State == nil:
		return nil, "unknown: " + o.in.StateError
	case o.in.Unanswered[node] != "":
		return nil, "unknown: " + o.in.Unanswered[node]
	}
	for t := range o.in.TargetsAt(where.IP, 0) {
		if t.Role == role && t.ID == id {
			return t, t.Status
		}
	}
	if other := o.in.TargetWithID(role, id); other != nil && id != 0 {
		return nil, "it is mounted on another node, at " + other.IP + "; find out who has mounted it there, and unmount it"
	}
	return nil, "it is not mounted"
}

// management observes the MGS, and sets the source from which clients mount.
func (o *observer) management() {
	record := given(o.fs)
	if len(record.ManagementNIDs) > 0 {
		o.seen.Management = &v1alpha1.ManagementStatus{Address: shortSource(record.ManagementNIDs, own(o.fs).FSName)}
		if o.in.State != nil {
			o.seen.Management.Version = o.in.State.Version
		}
	}
	if !hasMGT(o.fs) || record.ManagementNode == "" {
		return
	}
	s := backend.ServerStatus{
		Name: componentMGS + "." + record.ManagementNode, Role: v1alpha1.RoleManagement, Node: record.ManagementNode,
		Target: record.ManagementTarget,
	}
	o.serve(&s, daemon{component: componentMGS}, 0)
	if record.ManagementTarget == "" {
		o.unplaced = append(o.unplaced, "one for the MGT on node "+record.ManagementNode)
	}
	o.seen.Servers = append(o.seen.Servers, s)
}

// shortSource is the source of a client's mount; if that is too long for a status, it has only the first NID.
func shortSource(nids []string, fsName string) string {
	const most = 128
	if source := sourceOf(nids, fsName); len(source) <= most {
		return source
	}
	return sourceOf(nids[:1], fsName)
}

// serve observes a server with one target on a disk of its own.
func (o *observer) serve(s *backend.ServerStatus, d daemon, id int32) {
	o.server(s, d)
	t := o.in.TargetNamed(s.Target)
	_, why := o.target(s.Node, s.Role, id)
	if why == "" {
		return
	}
	unproven := o.unready(t, s.Target)
	o.doesNotServe(s.Node, unproven)
	if s.Online || unproven != "" {
		s.Online, s.Message = false, cmp.Or(unproven, why)
	}
	switch {
	case s.Target == "":
	case unproven != "":
		o.unproven = append(o.unproven, fmt.Sprintf("%s on node %s (%s)", s.Target, s.Node, unproven))
	default:
		o.missing = append(o.missing, fmt.Sprintf("%s (%s)", s.Name, s.Message))
	}
}

// unready returns why the disk of a target can't be served, empty when it can.
func (o *observer) unready(t *v1alpha1.StorageTarget, name string) string {
	if t == nil {
		return "its StorageTarget " + name + " is gone; what is on that disk is nowhere else"
	}
	if plan.IsOfPair(t) && t.Spec.Lustre == nil {
		if _, why := serviceNodes(o.in, t); why != "" {
			return backend.Shorten("two nodes may serve it, and its disk is to name both: " + why)
		}
	}
	if _, why := assign.Proven(t); why != "" {
		return backend.Shorten("its disk: " + why)
	}
	return ""
}

// metadata observes the MDTs, by node and slot.
func (o *observer) metadata() {
	for _, g := range o.in.Given() {
		if g.Role != v1alpha1.RoleMetadata || g.Retired || len(g.Targets) == 0 {
			continue
		}
		s := backend.ServerStatus{Name: g.Server(), Role: v1alpha1.RoleMetadata, Node: g.Node, Slot: g.Slot, ID: g.ID, Target: g.Targets[0].Name}
		o.serve(&s, daemon{component: componentMDT, slot: fmt.Sprint(g.Slot)}, g.ID)
		if g.ID == rootID && s.Online {
			// The filesystem is initialized only with the directories of its pools.
			o.seen.MetadataInitialized = o.work.done(o.in)
		}
		o.place(&s, g, disksOf(o.in, g))
		o.seen.Servers = append(o.seen.Servers, s)
	}
}

// rootID is the number of MDT0000, which has the root directory.
const rootID = 1

// storage observes the nodes of the pools, and their OSTs.
func (o *observer) storage() {
	for _, pool := range o.fs.Spec.StoragePools {
		record, ok := o.in.Pool(pool.Name)
		if !ok {
			continue
		}
		first, online := len(o.seen.Targets), 0
		for _, node := range record.Nodes {
			g, _ := o.in.GivenTo(node, Member(&v1alpha1.StorageTargetSpec{Role: v1alpha1.RoleStorage, StoragePool: pool.Name}))
			if g.Retired {
				continue
			}
			s := backend.ServerStatus{Name: g.Server(), Role: v1alpha1.RoleStorage, Node: node, StoragePool: pool.Name}
			o.server(&s, daemon{component: componentOST, pool: pool.Name})
			disks := assign.TargetsOf(o.in, v1alpha1.RoleStorage, pool.Name, node)
			o.place(&s, g, disks)
			o.seen.Servers = append(o.seen.Servers, s)
			if len(disks) == 0 && nodefacts.HasTargets(pool.Targets, node) {
				o.unplaced = append(o.unplaced, fmt.Sprintf("one in pool %s on node %s", pool.Name, node))
			}
			for _, t := range disks {
				o.seen.Targets = append(o.seen.Targets, o.ost(g, t))
			}
		}
		status := v1alpha1.StoragePoolStatus{Name: pool.Name, Slot: record.Slot}
		targets := o.seen.Targets[first:]
		for i := range targets {
			status.CapacityBytes += targets[i].CapacityBytes
			status.UsedBytes += targets[i].UsedBytes
			if targets[i].Online {
				online++
			}
		}
		status.Fullness = backend.Fullness(targets)
		status.UsedBytes = backend.Coarse(status.UsedBytes, status.CapacityBytes)
		status.Capacity, status.Used = v1alpha1.Bytes(status.CapacityBytes), v1alpha1.Bytes(status.UsedBytes)
		status.Targets = backend.Ratio(online, len(targets))
		o.seen.StoragePools = append(o.seen.StoragePools, status)
	}
}

// ost observes one OST.
func (o *observer) ost(g backend.Given, t *v1alpha1.StorageTarget) backend.TargetStatus {
	path, holder := assign.TargetPath(o.fs, t.Name), plan.HolderOf(t).Node
	out := backend.TargetStatus{Node: holder, StoragePool: g.StoragePool, Directory: path, StorageTarget: t.Name}
	record, has := g.Target(t.Name)
	unproven := o.unready(t, t.Name)
	if !has {
		out.Message = cmp.Or(unproven, "it has no index yet")
		o.unproven = append(o.unproven, fmt.Sprintf("%s on node %s in pool %s (%s)", t.Name, g.Node, g.StoragePool, out.Message))
		return out
	}
	out.ID = record.ID
	said, why := o.target(holder, v1alpha1.RoleStorage, record.ID)
	if said != nil {
		out.CapacityBytes, out.UsedBytes = said.CapacityBytes, backend.Coarse(said.UsedBytes, said.CapacityBytes)
		out.Inodes, out.UsedInodes = said.Inodes, backend.Coarse(said.UsedInodes, said.Inodes)
	}
	if out.Online = why == ""; out.Online {
		o.drain(&out, record)
		o.sayShut(&out, t)
		o.sayAway(&out, t)
		return out
	}
	if record.Drained != nil { // no data is missing with it
		out.Removing, out.Removable = true, true
		return out
	}
	o.doesNotServe(holder, unproven)
	why = o.sayPair(t, why)
	if out.Message = why; unproven != "" {
		out.Message = unproven
		o.unproven = append(o.unproven, fmt.Sprintf("%s on node %s in pool %s (%s)", t.Name, g.Node, g.StoragePool, unproven))
	} else if is := fmt.Sprintf("%s in pool %s (%s)", out.Name(), g.StoragePool, why); plan.IsOfPair(t) {
		o.missing = slices.Insert(o.missing, 0, is) // this comes first, because a person may have to switch a machine off
	} else {
		o.missing = append(o.missing, is)
	}
	return out
}

// clients observes the mounts on the nodes that are up: a node that is down is no reason to report the filesystem as not ready.
func (o *observer) clients() {
	if o.fs.Spec.Clients == nil {
		return
	}
	software, fsName := HostSoftware().Name, own(o.fs).FSName
	for _, n := range backend.ClientNodes(o.fs, o.in.Nodes) {
		c := backend.Client{Node: n.Name, Message: "there is no pod of it on the node"}
		for p := range o.in.PodsOn(componentClient, "", n.Name) {
			c.Mounted, c.Message = p.Ready, ""
			if !p.Ready {
				c.Message = cmp.Or(p.Message, "the mount does not answer")
			}
			break
		}
		if !n.Ready {
			c.Mounted, c.Message = false, "the node is not Ready"
		}
		c.Kernel = clientIn(o.in.Inventories[n.Name], software, fsName)
		o.seen.Clients = append(o.seen.Clients, c)
	}
}

// clientIn is the mount that the agent of a node has found.
func clientIn(node v1alpha1.NodeInventoryStatus, software, fsName string) *v1alpha1.HostClient {
	for i := range node.Software {
		if node.Software[i].Name != software {
			continue
		}
		for j := range node.Software[i].Clients {
			if c := &node.Software[i].Clients[j]; c.Name == fsName {
				return c
			}
		}
	}
	return nil
}

// doesNotServe notes a target on a node, with the reason why its disk can't be served, if that is known. A node that is Ready and does not
// answer may serve nevertheless; a node that does not answer and is not Ready has failed.
func (o *observer) doesNotServe(node, unproven string) {
	if n, _ := o.in.Node(node); unproven == "" && n.Ready && o.in.State != nil && o.in.Unanswered[node] != "" {
		o.unasked = true
	} else {
		o.silent = true
	}
}

// serves is true when every MDT and OST with an index serves, and the directories of pools were made once: Lustre stores no data twice. It
// is unknown when it may be true, and nodes do not answer.
func (o *observer) serves() (serves, unknown bool) {
	prepared := o.seen.MetadataInitialized || o.fs.Status.Metadata != nil && o.fs.Status.Metadata.Initialized != nil
	if o.in.State == nil || o.silent || !prepared || !o.seen.Reachable() {
		return false, false
	}
	empty := func(p v1alpha1.StoragePoolSpec) bool { return o.seen.Online(p.Name) == 0 }
	if o.unasked {
		empty = func(p v1alpha1.StoragePoolSpec) bool {
			return !slices.ContainsFunc(o.seen.Targets, func(t backend.TargetStatus) bool { return t.StoragePool == p.Name })
		}
	}
	could := !slices.ContainsFunc(o.fs.Spec.StoragePools, empty)
	return could && !o.unasked, could && o.unasked
}
