package moosefs

import (
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// Observe compares the recorded status with the master's answer.
func (b Backend) Observe(in backend.Input) backend.Observation {
	in = in.Indexed()
	o := observer{
		in: in, readTime: b.TellTime, fs: in.FileSystem, ports: portsOf(in.FileSystem), placements: podspec.NewPlacements(in),
		domains: nodefacts.NewDomains(in), disksOf: map[[2]string][]int{}, disks: make([]disk, 0, len(in.Targets)),
		directory: spec.TargetsDirectory(in.FileSystem.Namespace, in.FileSystem.Name),
	}
	o.seen.Targets = make([]backend.TargetStatus, 0, len(in.Targets))
	o.management()
	o.servers()
	o.storage()
	o.clients()
	o.seen.Count()
	o.diagnose()
	o.seen.NameAway(func(backend.ServerStatus) bool { return false })
	o.seen.Serves, o.seen.Pending = o.serves()
	o.seen.Pinned = o.placements.Pinned()
	o.seen.Spread = o.spread()
	o.restarts()
	o.sole()
	o.together()
	o.repeatMaintenance()
	return o.seen
}

// observer collects an Observation.
type observer struct {
	in    backend.Input
	fs    *v1alpha1.FileSystem
	ports ports
	// readTime is how long a change may take until a daemon that starts reads it. A restart waits that long, so that it covers several disks
	// at once. A pod that started later has read the change, so a disk that MooseFS itself refuses does not restart its chunkserver again and
	// again.
	readTime time.Duration
	seen     backend.Observation
	// directory holds the mountpoints of all disks.
	directory string
	// listed holds the entries that MooseFS lists for the current chunkserver.
	listed listing
	// disks holds the StorageTargets of all pools, with MooseFS's entry for each.
	disks []disk
	// disksOf holds the positions in disks for the disks of a chunkserver, by pool and node.
	disksOf map[[2]string][]int
	// unplaced lists the disks that are not chosen yet, each in words that follow "waiting for disks: ".
	unplaced []string
	// placements holds where the daemons run, domains where the nodes are.
	placements *podspec.Placements
	domains    nodefacts.Domains
}

func (o *observer) management() {
	master, ok := masterNode(o.in)
	if !ok {
		return
	}
	o.seen.Management = &v1alpha1.ManagementStatus{Address: backend.Address(master.IP, o.ports.clients())}
	if o.in.State != nil {
		o.seen.Management.Version = o.in.State.Version
		// A master that answers has loaded its metadata, so the directory is initialized.
		o.seen.MetadataInitialized = true
	}
}

func (o *observer) servers() {
	if o.fs.Status.Metadata != nil {
		name := o.fs.Status.Metadata.Node
		seen := backend.ServerStatus{
			Name: componentMaster + "." + name, Role: v1alpha1.RoleMetadata, Node: name, Online: o.in.State != nil,
		}
		if o.seen.Management != nil {
			seen.Address, seen.Version = o.seen.Management.Address, o.seen.Management.Version
		}
		if !seen.Online {
			seen.Message = o.podMessage(componentMaster, "", name, "the master does not answer: "+o.in.StateError)
		} else if away := o.in.Away(componentMaster, "", "", name); away != "" {
			seen.Online, seen.Message = false, away
		}
		role := o.fs.Spec.MetadataServers
		seen.Placement = o.placements.Of(name, componentMaster, seen.Name, role.CPUPinning, recordedTarget(o.in))
		o.seen.Servers = append(o.seen.Servers, seen)
	}
	if own(o.fs).Metaloggers != nil {
		for _, n := range metaloggerNodes(o.fs, o.in.Nodes) {
			seen := backend.ServerStatus{Name: componentMetalogger + "." + n.Name, Role: v1alpha1.RoleMetadataBackup, Node: n.Name}
			away := o.in.Away(componentMetalogger, "", "", n.Name)
			if server, ok := o.server(v1alpha1.RoleMetadataBackup, n.IP, 0); ok && server.Online && away == "" {
				seen.Online, seen.Version = true, server.Version
			} else if ok && server.Online {
				seen.Message = away
			} else {
				seen.Message = o.podMessage(componentMetalogger, "", n.Name, "the master does not list this metalogger")
			}
			seen.Placement = o.placements.Of(n.Name, componentMetalogger, seen.Name, nil, nil)
			o.seen.Servers = append(o.seen.Servers, seen)
		}
	}
}

// clients observes the mounts on the nodes that are Ready. A node that is down does not make the filesystem unready.
func (o *observer) clients() {
	if o.fs.Spec.Clients == nil {
		return
	}
	nodes := backend.ClientNodes(o.fs, o.in.Nodes)
	o.seen.Clients = make([]backend.Client, 0, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		client := backend.Client{Node: n.Name}
		pod, there := o.pod(componentClient, "", n.Name)
		switch {
		case !n.Ready:
			client.Message = "the node is not Ready"
		case !there || !pod.Ready:
			client.Message = o.podMessage(componentClient, "", n.Name, "the mount does not answer")
		default:
			client.Mounted, client.Message = o.session(n.IP)
		}
		o.seen.Clients = append(o.seen.Clients, client)
	}
}

// session reports whether the master lists the mount of the node at an address, and why not. The message names no other path, because the
// client that mounts chooses it.
func (o *observer) session(ip string) (listed bool, message string) {
	wanted := string(o.fs.Spec.Clients.MountPath)
	message = "the master does not list a session of this node"
	for s := range o.in.SessionsOf(ip) {
		switch {
		case s.Connected && s.Path == wanted:
			return true, ""
		case s.Connected:
			message = "the master lists mounts of this node, but none at " + wanted
		}
	}
	return false, message
}

func (o *observer) masterNodeName() string {
	if o.fs.Status.Metadata == nil {
		return ""
	}
	return o.fs.Status.Metadata.Node
}

func (o *observer) pod(component, pool, node string) (backend.Pod, bool) {
	for p := range o.in.PodsOn(component, pool, node) {
		return *p, true
	}
	return backend.Pod{}, false
}

// podMessage prefers the pod's own message.
func (o *observer) podMessage(component, pool, node, otherwise string) string {
	if p, ok := o.pod(component, pool, node); ok && p.Message != "" {
		return p.Message
	} else if !ok && component != componentStorageClasses {
		return "there is no pod of it on the node"
	}
	return otherwise
}

// server finds a daemon in the master's list. Port 0 means any port, because metaloggers listen on none.
func (o *observer) server(role v1alpha1.Role, ip string, port int32) (backend.Server, bool) {
	for s := range o.in.ServersAt(ip) {
		if s.Role == role && (port == 0 || s.Port == port) {
			return *s, true
		}
	}
	return backend.Server{}, false
}
