package beegfs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// Observe compares the desired servers and targets, from the recorded numbers, with those that the management service lists.
func (b Backend) Observe(in backend.Input) backend.Observation {
	v := viewOf(in.Indexed())
	in = v.in
	o := observer{
		view: v, readTime: b.TellTime, fs: in.FileSystem, placements: podspec.NewPlacements(in), domains: nodefacts.NewDomains(in),
		given: namesOf(in), work: v.workLeft(), offline: map[serverPlace]string{},
	}
	o.management()
	o.metadata()
	o.storage()
	o.clients()
	o.seen.Transport = o.transport()
	o.seen.Count()
	o.buddies = o.buddiesNow()
	o.seen.Licensed = licensed(in)
	o.diagnose()
	o.seen.NameAway(o.leaving)
	o.seen.Serves = o.serves()
	// Programs continue without the management service, but then the state of the servers is unknown.
	o.seen.Unknown = o.in.State == nil && o.fs.Status.Metadata != nil && o.fs.Status.Metadata.Initialized != nil
	o.seen.Pinned = o.placements.Pinned()
	o.seen.Spread = o.spread()
	o.restarts()
	o.sole()
	o.together()
	o.seen.Unconfirmed = o.unconfirmed()
	o.seen.Repeat = repeats(v, o.work)
	return o.seen
}

// observer collects an Observation.
type observer struct {
	*view
	// readTime is how long it may take until a daemon that starts reads a changed configuration. A restart waits that long, and so takes up
	// several disks at once. A pod that started later has read the change, so a disk that BeeGFS itself refuses (for its number or its
	// registration token) does not restart its server forever.
	readTime   time.Duration
	fs         *v1alpha1.FileSystem
	seen       backend.Observation
	placements *podspec.Placements
	domains    nodefacts.Domains
	// given has the servers and targets whose numbers the operator assigned.
	given   names
	work    work
	buddies buddies
	// offline has the messages of the storage servers that are offline.
	offline map[serverPlace]string
	// unplaced lists the disks that are not chosen yet, each in words that follow "waiting for disks: ".
	unplaced []string
	// impostors lists servers that BeeGFS has at another address than the server with their number.
	impostors []string
}

// daemon identifies the pod in which a server runs.
type daemon struct{ component, pool, slot string }

// management observes the management service.
func (o *observer) management() {
	record := o.fs.Status.Metadata
	if record == nil {
		return
	}
	server := backend.ServerStatus{
		Name: managementName(record.Node), Role: v1alpha1.RoleManagement, Node: record.Node, Target: cmp.Or(record.Target, record.Directory),
		Online: o.in.State != nil,
	}
	if node, ok := managementNode(o.in); ok {
		server.Address = backend.Address(node.IP, portsOf(o.fs).management())
		o.seen.Management = &v1alpha1.ManagementStatus{Address: server.Address}
	}
	if away := o.in.Away(componentManagement, "", "", record.Node); away != "" && o.in.State != nil {
		server.Online, server.Message = false, away
	}
	if o.in.State != nil {
		server.Version = o.in.State.Version
		if s := serverOf(o.in, v1alpha1.RoleManagement, 0); s != nil {
			server.ID = s.ID
		}
		if o.seen.Management != nil {
			o.seen.Management.Version = o.in.State.Version
		}
		// A management service that answers has read its store, so that store is initialized.
		o.seen.MetadataInitialized = true
	} else {
		server.Message = o.podMessage(daemon{component: componentManagement}, record.Node,
			"the management service does not answer: "+o.in.StateError)
	}
	server.Placement = o.placements.Of(record.Node, componentManagement, server.Name, nil, o.disksNamed(record.Target))
	o.seen.Servers = append(o.seen.Servers, server)
}

// metadata observes the metadata servers, by node and slot.
func (o *observer) metadata() {
	for _, a := range metadataServers(o.in) {
		server := backend.ServerStatus{Name: a.Server(), Role: v1alpha1.RoleMetadata, Node: a.Node, Slot: a.Slot, ID: a.ID}
		if len(a.Targets) > 0 {
			server.Target = a.Targets[0].Name
		}
		o.server(&server, daemon{component: componentMeta, slot: fmt.Sprint(a.Slot)}, portsOf(o.fs).meta(a.Slot))
		if t := listed(o.in, v1alpha1.RoleMetadata, a.ID); t != nil && server.Online {
			server.Online = t.Online
			if !t.Online {
				server.Message = fmt.Sprintf("BeeGFS reports its target as %s", cmp.Or(t.Status, "offline"))
			} else {
				server.Message = stateMessage(t)
			}
		}
		if !server.Online && asksForReplacement(o.disksNamed(server.Target)) {
			server.Message = metadataStays + "; " + server.Message
		}
		server.Placement = o.placements.Of(a.Node, metaDaemon(a.Slot), server.Name, o.fs.Spec.MetadataServers.CPUPinning,
			o.disksNamed(server.Target))
		o.seen.Servers = append(o.seen.Servers, server)
	}
}

// metadataServers returns the metadata servers, by node and slot.
func metadataServers(in backend.Input) []backend.Given {
	out := slices.DeleteFunc(in.Given(), func(a backend.Given) bool { return a.Role != v1alpha1.RoleMetadata || a.Retired })
	slices.SortFunc(out, func(a, b backend.Given) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), cmp.Compare(a.Slot, b.Slot))
	})
	return out
}

// server fills in the state of a server from BeeGFS's answer: whether it is online, its address, and the message of its own pod when it is
// offline.
func (o *observer) server(server *backend.ServerStatus, d daemon, port int32) {
	node, there := o.in.Node(server.Node)
	if !there {
		server.Message = "the node " + o.in.Gone(server.Node) + "; bring it back: it holds data"
	} else {
		server.Address = backend.Address(node.IP, port)
	}
	s := serverOf(o.in, server.Role, server.ID)
	switch {
	case s != nil && o.impostor(s, node, port):
		server.Message = fmt.Sprintf("BeeGFS lists %s server %d at %s, which is not on this node (%s): "+
			"another daemon uses the same number, or publishes a foreign address; find it and stop it",
			strings.ToLower(string(server.Role)), server.ID, backend.Address(s.IP, s.Port), server.Address)
		o.impostors = append(o.impostors, server.Name+": "+server.Message)
	case s != nil && s.Online && o.in.Away(d.component, d.pool, d.slot, server.Node) != "":
		server.Message = o.in.Away(d.component, d.pool, d.slot, server.Node)
	case s != nil && s.Online:
		server.Online, server.Version = true, s.Version
		if p, there := o.pod(d, server.Node); there {
			server.Version = cmp.Or(p.Version, s.Version) // no tool of BeeGFS prints it
		}
		server.Address = backend.Address(s.IP, s.Port)
	case server.Message != "":
	case o.in.State == nil:
		server.Message = o.podMessage(d, server.Node, "unknown while the management service does not answer: "+o.in.StateError)
	case s != nil:
		server.Message = o.podMessage(d, server.Node, "BeeGFS can't reach it")
	default:
		// A daemon whose registration was rejected continues to run and tries again.
		server.Message = o.podMessage(d, server.Node,
			"it runs, and has not registered with the management service; its log shows why, such as another daemon with its number, or another shared secret")
	}
}

// impostor is true when the server that BeeGFS lists can't be the one on this node: its port differs, or its address belongs to another
// node. If the node has no agent and networks were chosen, its addresses are unknown.
func (o *observer) impostor(s *backend.Server, node backend.Node, port int32) bool {
	if s.Port != 0 && s.Port != port {
		return true
	}
	if s.IP == "" || node.IP == "" || s.IP == node.IP {
		return false
	}
	inventory, agent := o.in.Inventories[node.Name]
	if !agent {
		return o.fs.Spec.Network == nil || len(o.fs.Spec.Network.Interfaces) == 0
	}
	return !slices.ContainsFunc(inventory.NetworkInterfaces, func(i v1alpha1.NetworkInterface) bool {
		return slices.ContainsFunc(i.Addresses, func(a string) bool {
			ip, _, _ := strings.Cut(a, "/")
			return ip == s.IP
		})
	})
}

// disksNamed returns the StorageTarget of that name, as a list of one or none.
func (o *observer) disksNamed(name string) []*v1alpha1.StorageTarget {
	if t := o.in.TargetNamed(name); t != nil {
		return []*v1alpha1.StorageTarget{t}
	}
	return nil
}

// clients observes the mounts on the nodes that are up: a node that is down is no reason to report the filesystem as not ready.
func (o *observer) clients() {
	if o.fs.Spec.Clients == nil {
		return
	}
	waits := awaitsMirror(o.in)
	for _, n := range backend.ClientNodes(o.fs, o.in.Nodes) {
		client := backend.Client{Node: n.Name}
		pod, there := o.pod(daemon{component: componentClient}, n.Name)
		switch {
		case !n.Ready:
			client.Message = "the node is not Ready"
		case there && pod.Ready:
			client.Mounted = true
		case withoutModule(o.in, n.Name) != "":
			client.Message = withoutModule(o.in, n.Name)
		case waits:
			client.Message = "it is mounted when the metadata is mirrored: BeeGFS mirrors it only while nobody has mounted the filesystem"
		default:
			client.Message = o.podMessage(daemon{component: componentClient}, n.Name, "the mount does not answer")
		}
		o.seen.Clients = append(o.seen.Clients, client)
	}
}

// withoutModule returns what a node lacks to mount a BeeGFS, whose client is a kernel module; empty when it lacks nothing, or when no agent
// has checked.
func withoutModule(in backend.Input, node string) string {
	for _, m := range in.Inventories[node].Kernel.Modules {
		if m.Name == mountType && m.State == "Missing" {
			return cmp.Or(m.Message, fmt.Sprintf("its kernel %s has no module beegfs; install beegfs-client-dkms and the headers of that kernel on the node",
				in.Inventories[node].Kernel.Release))
		}
	}
	return ""
}

// awaitsMirror is true while no client may mount a new filesystem, because its metadata is to be mirrored first. Clients that already run
// continue.
func awaitsMirror(in backend.Input) bool {
	fs := in.FileSystem
	return mirrorsMetadata(fs) && (fs.Status.BeeGFS == nil || fs.Status.BeeGFS.MetadataMirrored == nil) &&
		!slices.ContainsFunc(in.Pods, func(p backend.Pod) bool { return p.Component == componentClient })
}

// mirrorsMetadata is true when the spec asks for mirrored metadata.
func mirrorsMetadata(fs *v1alpha1.FileSystem) bool {
	return own(fs).MirrorMetadata
}

func (o *observer) pod(d daemon, node string) (backend.Pod, bool) {
	for p := range o.in.PodsOn(d.component, d.pool, node) {
		if p.Slot == d.slot {
			return *p, true
		}
	}
	return backend.Pod{}, false
}

// podMessage returns the message of the pod, or otherwise the given text.
func (o *observer) podMessage(d daemon, node, otherwise string) string {
	switch p, there := o.pod(d, node); {
	case !there:
		return "there is no pod of it on the node"
	case p.Message != "":
		return p.Message
	default:
		return otherwise
	}
}
