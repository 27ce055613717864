package moosefs

import (
	"fmt"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Observe sets what should be there, from the recorded status, beside what the master says is there.
func (b Backend) Observe(in backend.Input) backend.Observation {
	o := observer{in: in, readTime: b.KubeletSync, fs: in.FileSystem, ports: portsOf(in.FileSystem), placements: backend.NewPlacements(in)}
	o.management()
	o.servers()
	o.storage()
	o.clients()
	o.seen.Count()
	o.diagnose()
	o.seen.Serves = o.serves()
	o.seen.Pinned = o.placements.Pinned()
	o.restarts()
	o.sole()
	return o.seen
}

// sole names the pods whose restart makes programs wait.
func (o *observer) sole() {
	o.seen.Sole = map[string]string{}
	for _, p := range o.in.Pods {
		switch p.Component {
		case componentMaster:
			o.seen.Sole[p.Name.Name] = "there is one master"
		case componentChunkserver:
			for _, pool := range o.fs.Spec.StoragePools {
				if pool.Name == p.StoragePool && backend.Copies(pool) < 2 {
					o.seen.Sole[p.Name.Name] = fmt.Sprintf("pool %s keeps one copy", pool.Name)
				}
			}
		}
	}
}

// observer collects an Observation.
type observer struct {
	in    backend.Input
	fs    *v1alpha1.FileSystem
	ports ports
	// readTime is how long a change may take until a daemon that starts reads it. A restart waits that long, and so takes up several
	// disks at once; a pod that has started later knows the change, so that a disk that MooseFS itself refuses does not restart its
	// chunkserver for ever.
	readTime time.Duration
	seen     backend.Observation
	// disks are the StorageTargets of all pools, beside what MooseFS says of each.
	disks []disk
	// unplaced are the disks that are not chosen yet, each in words that follow "waiting for disks: ".
	unplaced []string
	// placements are where the daemons run.
	placements *backend.Placements
}

func (o *observer) management() {
	master, ok := masterNode(o.in)
	if !ok {
		return
	}
	o.seen.Management = &v1alpha1.ManagementStatus{Address: backend.Address(master.IP, o.ports.clients())}
	if o.in.State != nil {
		o.seen.Management.Version = o.in.State.Version
		// A master that answers has loaded its metadata, so the directory is an initialized one.
		o.seen.MetadataInitialized = true
	}
}

func (o *observer) servers() {
	if o.fs.Status.Metadata != nil {
		name := o.fs.Status.Metadata.Node
		instance := v1alpha1.InstanceStatus{
			Name: componentMaster + "." + name, Role: v1alpha1.RoleMetadata, Node: name, Online: o.in.State != nil,
		}
		if o.seen.Management != nil {
			instance.Address, instance.Version = o.seen.Management.Address, o.seen.Management.Version
		}
		if !instance.Online {
			instance.Message = o.podMessage(componentMaster, "", name, "the master does not answer: "+o.in.StateError)
		} else if away := o.in.Away(componentMaster, "", "", name); away != "" {
			instance.Online, instance.Message = false, away
		}
		role := o.fs.Spec.Metadata
		instance.Placement = o.placements.Of(name, componentMaster, instance.Name, role.CPUPinning, recordedTarget(o.in))
		o.seen.Instances = append(o.seen.Instances, instance)
	}
	if own(o.fs).Metaloggers != nil {
		for _, n := range backend.Matching(o.in.Nodes, own(o.fs).Metaloggers.NodeSelector) {
			instance := v1alpha1.InstanceStatus{Name: componentMetalogger + "." + n.Name, Role: v1alpha1.RoleMetadataBackup, Node: n.Name}
			away := o.in.Away(componentMetalogger, "", "", n.Name)
			if server, ok := o.server(v1alpha1.RoleMetadataBackup, n.IP, 0); ok && server.Online && away == "" {
				instance.Online, instance.Version = true, server.Version
			} else if ok && server.Online {
				instance.Message = away
			} else {
				instance.Message = o.podMessage(componentMetalogger, "", n.Name, "the master does not list this metalogger")
			}
			instance.Placement = o.placements.Of(n.Name, componentMetalogger, instance.Name, nil, nil)
			o.seen.Instances = append(o.seen.Instances, instance)
		}
	}
}

// clients observes the mounts on the nodes that are there: a node that is down is no reason to call the filesystem unready.
func (o *observer) clients() {
	if o.fs.Spec.Clients == nil {
		return
	}
	for _, n := range backend.Matching(o.in.Nodes, o.fs.Spec.Clients.NodeSelector) {
		client := v1alpha1.ClientStatus{Node: n.Name}
		pod, there := o.pod(componentClient, "", n.Name)
		switch {
		case !n.Ready:
			client.Message = "the node is not Ready"
		case !there || !pod.Ready:
			client.Message = o.podMessage(componentClient, "", n.Name, "the mount does not answer")
		case !o.session(n.IP):
			client.Message = "the master does not list a session of this node"
		default:
			client.Mounted = true
		}
		o.seen.Clients = append(o.seen.Clients, client)
	}
}

func (o *observer) session(ip string) bool {
	return o.in.State != nil && slices.ContainsFunc(o.in.State.Sessions, func(s backend.Session) bool {
		return s.IP == ip && s.Connected && s.Path == string(o.fs.Spec.Clients.MountPath)
	})
}

// diagnose names what stands between the filesystem and Ready, worst first.
func (o *observer) diagnose() {
	say := func(reason, format string, args ...any) {
		o.seen.Problems = append(o.seen.Problems, backend.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
	}
	unproven, missing := o.missingTargets()
	metadata := o.unprovenMetadata()
	if metadata != "" {
		unproven = slices.Insert(unproven, 0, metadata)
	}
	notReady := func() {
		if len(unproven) > 0 {
			say(v1alpha1.ReasonTargetsNotReady, "waiting for %d disks: %s", len(unproven), backend.List(unproven))
		}
	}
	switch {
	case o.in.State == nil && metadata != "":
		notReady()
		o.diagnoseMaster(say)
		return
	case o.in.State == nil:
		o.diagnoseMaster(say)
		notReady()
		return
	}
	if data := o.in.State.Data; data.Known && data.Missing > 0 {
		say(v1alpha1.ReasonChunksEndangered, "%d chunks have no copy left on the targets that are online; bring back the missing targets", data.Missing)
	}
	if len(missing) > 0 {
		say(v1alpha1.ReasonTargetsMissing, "%d of %d targets are not online: %s", len(missing), len(o.seen.Targets), backend.List(missing))
	}
	notReady()
	var servers []string
	for _, i := range o.seen.Instances {
		if !i.Online && i.Role != v1alpha1.RoleStorage { // a chunkserver's targets were named above
			servers = append(servers, fmt.Sprintf("%s (%s)", i.Name, i.Message))
		}
	}
	if len(servers) > 0 {
		say(v1alpha1.ReasonServersMissing, "servers are not online: %s", backend.List(servers))
	}
	if data := o.in.State.Data; data.Known && (data.Endangered > 0 || data.Undergoal > 0) {
		say(v1alpha1.ReasonChunksEndangered,
			"%d chunks have one copy left and %d fewer than asked for; MooseFS makes new copies by itself when enough targets of their pool are online",
			data.Endangered, data.Undergoal)
	}
	o.diagnosePlacement(say)
	o.diagnoseClients(say)
	if !o.in.State.Data.Known {
		say(v1alpha1.ReasonDataUnknown, "MooseFS has not counted yet how many copies its data has, as after a chunkserver came or went")
	}
}

// serves is true when every chunk has a copy that is online, and each pool takes new files.
func (o *observer) serves() bool {
	switch {
	case o.in.State == nil || !o.in.State.Data.Known || o.in.State.Data.Missing > 0 || !o.seen.Reachable():
		return false
	case o.in.Away(componentMaster, "", "", o.masterNodeName()) != "":
		return false
	}
	for _, pool := range o.fs.Spec.StoragePools {
		if o.in.State.StorageClasses[pool.Name] != placement(o.fs, pool) || o.seen.Online(pool.Name) == 0 {
			return false
		}
		// The master has counted without the chunkservers that it missed. It did not know of those that have gone since, and each of them
		// may have had one of the copies.
		if len(o.goneSince(pool)) >= int(backend.Copies(pool)) {
			return false
		}
	}
	return true
}

// goneSince are the nodes whose chunkserver of a pool has gone since the master was asked.
func (o *observer) goneSince(pool v1alpha1.StoragePoolSpec) []string {
	record, _ := backend.RecordedPool(o.fs, pool.Name)
	return slices.DeleteFunc(slices.Clone(record.Nodes), func(node string) bool {
		n, _ := backend.NodeNamed(o.in.Nodes, node)
		server, ok := o.server(v1alpha1.RoleStorage, n.IP, o.ports.chunkserver(record.Slot))
		return !ok || !server.Online || o.in.Away(componentChunkserver, pool.Name, "", node) == ""
	})
}

// diagnoseMaster says why nothing is known of the filesystem.
func (o *observer) diagnoseMaster(say func(reason, format string, args ...any)) {
	pod, there := o.pod(componentMaster, "", o.masterNodeName())
	switch {
	case there && !pod.Ready && pod.Message != "":
		say(v1alpha1.ReasonDaemonRefused, "the master on node %s does not run: %s", pod.Node, pod.Message)
	case o.fs.Status.Metadata == nil || o.fs.Status.Metadata.Initialized == nil:
		say(v1alpha1.ReasonStarting, "waiting for the master to answer for the first time: %s", o.in.StateError)
	case !there || !pod.Ready:
		say(v1alpha1.ReasonMetadataOffline, "the master does not answer, so the state of the filesystem is unknown: %s", o.in.StateError)
	default:
		say(v1alpha1.ReasonProbeUnreachable, "the master runs, but its probe gives no answer that counts: %s", o.in.StateError)
	}
}

func (o *observer) diagnosePlacement(say func(reason, format string, args ...any)) {
	var wrong []string
	for _, pool := range o.fs.Spec.StoragePools {
		want := placement(o.fs, pool)
		if have := o.in.State.StorageClasses[pool.Name]; have != want {
			wrong = append(wrong, fmt.Sprintf("%s is %q and should be %q", pool.Name, have, want))
		}
	}
	if len(wrong) > 0 {
		for _, job := range o.in.Jobs {
			o.seen.Repeat = append(o.seen.Repeat, job.Name)
		}
		message := o.podMessage(componentStorageClasses, "", o.masterNodeName(), "the job that makes them has not ended")
		say(v1alpha1.ReasonPoolsNotPlaced, "storage classes are not as the pools ask: %s; %s", backend.List(wrong), message)
	}
}

func (o *observer) diagnoseClients(say func(reason, format string, args ...any)) {
	var missing []string
	for _, c := range o.seen.Clients {
		if n, _ := backend.NodeNamed(o.in.Nodes, c.Node); !c.Mounted && n.Ready {
			missing = append(missing, fmt.Sprintf("%s (%s)", c.Node, c.Message))
		}
	}
	if len(missing) > 0 {
		say(v1alpha1.ReasonClientsMissing, "the filesystem is not mounted on %s", backend.List(missing))
	}
}

func (o *observer) masterNodeName() string {
	if o.fs.Status.Metadata == nil {
		return ""
	}
	return o.fs.Status.Metadata.Node
}

func (o *observer) pod(component, pool, node string) (backend.Pod, bool) {
	for _, p := range o.in.Pods {
		if p.Component == component && p.StoragePool == pool && p.Node == node {
			return p, true
		}
	}
	return backend.Pod{}, false
}

// podMessage prefers what the pod says of itself.
func (o *observer) podMessage(component, pool, node, otherwise string) string {
	if p, ok := o.pod(component, pool, node); ok && p.Message != "" {
		return p.Message
	} else if !ok && component != componentStorageClasses {
		return "there is no pod of it on the node"
	}
	return otherwise
}

// server finds a daemon in the master's list; port 0 means any, because metaloggers listen on none.
func (o *observer) server(role v1alpha1.InstanceRole, ip string, port int32) (backend.Server, bool) {
	if o.in.State == nil {
		return backend.Server{}, false
	}
	for _, s := range o.in.State.Servers {
		if s.Role == role && s.IP == ip && (port == 0 || s.Port == port) {
			return s, true
		}
	}
	return backend.Server{}, false
}
