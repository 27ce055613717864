package backendtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Example is a backend for tests of code that must not depend on a type of filesystem. Its filesystem is minimal and has a member of both
// kinds. The metadata is served by a mount of its target, like a kernel's, and each pool by a process on each of its nodes, with data on
// disks or in directories. A process reads its configuration repeatedly, so a new disk needs no restart. Clients mount the filesystem. Its
// only secret is the probe's, and it has neither pinning nor ports, so callers must work without these capabilities.
type Example struct {
	// Kind is a spec.type that admission accepts. Code that decides by the type, and not by capabilities, fails with it.
	Kind v1alpha1.FileSystemType
}

var _ interface {
	backend.Backend
	backend.Prober
	backend.Mounter
	backend.Drainer
} = Example{}

// The components, and the port of the probe beside the mount, which answers for all servers.
const (
	ComponentMount  = "mount"
	ComponentServer = "server"
	ComponentClient = "client"
	ExamplePort     = 7000
)

// ExampleOption is the prefix of annotations of the FileSystem that set options of the processes, because the API has no options for this
// type.
const ExampleOption = "example/"

// Type returns the given type.
func (e Example) Type() v1alpha1.FileSystemType { return e.Kind }

// Versions returns two versions without a difference.
func (Example) Versions() []string { return []string{"1.0", "2.0"} }

// DefaultFormat returns XFS without options.
func (Example) DefaultFormat(v1alpha1.Role) v1alpha1.FormatSpec {
	return v1alpha1.FormatSpec{FSType: v1alpha1.XFS}
}

// Families returns IPv4.
func (Example) Families(*v1alpha1.FileSystem) []corev1.IPFamily {
	return []corev1.IPFamily{corev1.IPv4Protocol}
}

// Order returns the components, the metadata first.
func (Example) Order() []string { return []string{ComponentMount, ComponentServer} }

// Allocate records the node and the target of the metadata, and the nodes of the pools.
func (Example) Allocate(in backend.Input) (backend.Allocation, error) {
	fs := in.FileSystem
	var node string
	if fs.Status.Metadata != nil {
		node = fs.Status.Metadata.Node
	} else if nodes := backend.Matching(in.Nodes, fs.Spec.MetadataServers.NodeSelector); len(nodes) > 0 {
		node = nodes[0].Name
	} else {
		return backend.Allocation{}, backend.Invalid(v1alpha1.ReasonNoNodes, "no node matches spec.metadataServers.nodeSelector; label one")
	}
	const slots = 16
	disks, err := assign.ReadDisks(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	numbers := assign.NewNumbers(in, disks, assign.Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: slots}})
	pools, err := assign.RecordPools(in, disks, numbers)
	if err != nil {
		return backend.Allocation{}, err
	}
	nodes := plan.TargetNodes{Metadata: []string{node}, Pools: assign.PoolNodes(pools)}
	if disks.Waits(fs) {
		return backend.Allocation{Status: fs.Status, TargetNodes: nodes, Waits: true, Unread: disks.Why()}, nil
	}
	metadata, err := disks.RecordMetadata(in, backend.MetadataPlace{
		Role: v1alpha1.RoleMetadata, NodeSelector: fs.Spec.MetadataServers.NodeSelector, Targets: fs.Spec.MetadataServers.Targets,
		Component: ComponentMount,
	}, node)
	if err != nil {
		return backend.Allocation{}, err
	}
	status, joins := assign.Recorded(in, metadata, pools, numbers)
	records := assign.NewRecords(in)
	records.Join(pools, daemonOf)
	return backend.Allocation{Status: status, Nodes: records.Changed(), Joins: joins, TargetNodes: nodes}, nil
}

// Nodes returns the FileSystemNodes, which hold the disks of each member.
func (Example) Nodes(in backend.Input) []v1alpha1.FileSystemNode {
	members := map[string][]v1alpha1.NodeMember{}
	tell := func(node string, m v1alpha1.NodeMember, disks []*v1alpha1.StorageTarget) {
		for _, t := range disks {
			m.Targets = append(m.Targets, assign.MemberTarget(in.FileSystem, t))
		}
		assign.InitializedOn(in.FileSystem, m.Targets)
		members[node] = append(members[node], m)
	}
	if metadata := in.FileSystem.Status.Metadata; metadata != nil {
		tell(metadata.Node, backend.Member(v1alpha1.RoleMetadata, ComponentMount), metadataDisk(in))
	}
	for _, s := range in.Given() {
		m := v1alpha1.NodeMember{Name: s.Name, Role: s.Role}
		tell(s.Node, m, assign.TargetsOf(in, s.Role, s.StoragePool, s.Node))
	}
	return assign.FileSystemNodes(in, assign.Facts(in.FileSystem, 0), members)
}

// metadataDisk returns the recorded disk of the metadata, if there is one.
func metadataDisk(in backend.Input) []*v1alpha1.StorageTarget {
	if t := in.TargetNamed(in.FileSystem.Status.Metadata.Target); t != nil {
		return []*v1alpha1.StorageTarget{t}
	}
	return nil
}

// Members returns a DaemonSet for the mount of the metadata, one for the processes of each pool, one for clients, and a ConfigMap with
// their configuration.
func (e Example) Members(in backend.Input) ([]client.Object, error) {
	fs := in.FileSystem
	pods := podspec.Pods{FileSystem: fs, Images: in.Images, Software: "example"}
	name, told := backend.ChildName(fs, "example"), map[string][]byte{}
	config := func(w podspec.Workload) *corev1.PodTemplateSpec {
		return pods.Template(w, podspec.ConfigVolume("config", name))
	}
	metadata := podspec.Workload{Component: ComponentMount, Role: v1alpha1.RoleMetadata}
	pod, serve := config(metadata), mountServes{Daemon: ComponentMount, NodeFile: podspec.NodeFile(fs), FSType: mountType}
	told["mount.json"] = backend.Encode(serve)
	pod.Spec.Affinity = podspec.OnNodes(fs.Status.Metadata.Node)
	c := pods.Container(ComponentMount, "example-server", "serve", "config", "mount.json")
	c.SecurityContext = podspec.Privileged()
	podspec.MountNodeFile(fs, pod, &c)
	podspec.HostDirectory(pod, &c, "targets", spec.TargetsDirectory(fs.Namespace, fs.Name), new(corev1.MountPropagationBidirectional))
	probe := pods.Container("probe", "example-state", "probe", "config", "mount.json")
	pods.ServeProbe(pod, &probe, ExamplePort)
	pod.Spec.Containers = []corev1.Container{c, probe}
	sets := []client.Object{pods.DaemonSet(ComponentMount, metadata, pod, serve)}
	for _, pool := range fs.Spec.StoragePools {
		if _, ok := in.Pool(pool.Name); !ok {
			return nil, fmt.Errorf("storage pool %q is not recorded yet", pool.Name)
		}
		w := podspec.Workload{Component: ComponentServer, Role: v1alpha1.RoleStorage, StoragePool: pool.Name}
		run, file := serverRun(fs, pool), "server-"+pool.Name+".json"
		told[file] = backend.Encode(run)
		// The permission to initialize is withdrawn once, and restarts nothing.
		for _, d := range run.Directories {
			d.Initialize.Granted = false
		}
		pod := config(w)
		podspec.OnMembers(fs, pod, spec.MemberName(daemonOf(pool.Name)))
		c := pods.Container(ComponentServer, "example-server", "run", "config", file)
		podspec.MountNodeFile(fs, pod, &c)
		podspec.MountTargets(fs, pod, &c)
		for i, d := range run.Directories {
			podspec.HostDirectory(pod, &c, fmt.Sprintf("data-%d", i), d.Path, nil)
		}
		pod.Spec.Containers = []corev1.Container{c}
		sets = append(sets, pods.DaemonSet("server-"+pool.Name, w, pod, run))
	}
	if fs.Spec.Clients != nil {
		w, mount := podspec.Workload{Component: ComponentClient, Role: podspec.RoleClient}, e.mount(in)
		pod := config(w)
		pod.Spec.NodeSelector = fs.Spec.Clients.NodeSelector
		c := pods.Container(ComponentClient, "example-client", "mount", "config", "client.json")
		c.SecurityContext = podspec.Privileged()
		podspec.MountOnNode(pod, &c, fs, &mount)
		podspec.CheckMount(&c, "client.json")
		told["client.json"] = backend.Encode(mount)
		pod.Spec.Containers = []corev1.Container{c}
		sets = append(sets, pods.DaemonSet(ComponentClient, w, pod, mount))
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fs.Namespace}, Data: backend.Text(told)}
	return append([]client.Object{exchange.ProbeSecret(in), m}, sets...), nil
}

// mountServes is the configuration of a pod of the mount: the node file with its targets, and the type of their mounts.
type mountServes struct{ Daemon, NodeFile, FSType string }

// mountType is the type of a mount that serves.
const mountType = "example_target"

func daemonOf(pool string) string { return ComponentServer + "/" + pool }

// serverRun returns the configuration of a pool's process: the places of its data, and the user's options.
func serverRun(fs *v1alpha1.FileSystem, pool v1alpha1.StoragePoolSpec) spec.Run {
	run := spec.Run{
		Owner: backend.Owner(fs), Component: ComponentServer, User: "root", Ledger: backend.Ledger(fs, ComponentServer),
		Daemon: daemonOf(pool.Name), NodeFile: podspec.NodeFile(fs),
		Command: []string{"example-server", path.Join(podspec.RunDirectory, "server.conf")},
	}
	if assign.OnDevices(pool.Targets) {
		run.OnTargets = &spec.OnTargets{Directory: ComponentServer, Data: "data"}
	}
	for _, d := range pool.Targets.Directories {
		run.Directories = append(run.Directories, spec.Directory{Path: string(d), Data: "data", Initialize: &spec.Initialize{
			Granted: fs.Status.Metadata.Initialized == nil, DataGlobs: []string{"example"}, Files: []spec.InitialFile{{Name: "example"}},
		}})
	}
	var content strings.Builder
	for _, name := range backend.SortedKeys(fs.Annotations) {
		if option, ok := strings.CutPrefix(name, ExampleOption); ok {
			fmt.Fprintf(&content, "%s = %s\n", option, fs.Annotations[name])
		}
	}
	run.Files = []spec.File{{Path: run.Command[1], Content: content.String(), Mode: 0o640}}
	return run
}

// Mount returns where client nodes mount the filesystem.
func (Example) Mount(fs *v1alpha1.FileSystem) backend.Mount {
	if fs.Spec.Clients == nil {
		return backend.Mount{}
	}
	return backend.Mount{Path: string(fs.Spec.Clients.MountPath), FSType: "examplefs", Source: "example:" + fs.Namespace + "/" + fs.Name}
}

func (e Example) mount(in backend.Input) spec.Mount {
	m := e.Mount(in.FileSystem)
	return spec.Mount{
		Path: m.Path, FSType: m.FSType, Source: m.Source, Kernel: true, Command: []string{"mount", "-t", m.FSType, m.Source, m.Path},
	}
}

// Removal returns that processes move their data, and that data of the mount can't be moved.
func (Example) Removal(_ *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, _ []string) backend.Removal {
	if target.Spec.Role == v1alpha1.RoleMetadata {
		return backend.Removal{Never: "the metadata is served by this mount, and by no other"}
	}
	return backend.Removal{Waits: "waiting until the process has read that it is to move the data", Moves: "the process moves the data elsewhere: "}
}

// ProbeURL returns the URL of the probe beside the mount of the metadata.
func (Example) ProbeURL(in backend.Input) string {
	if in.FileSystem.Status.Metadata == nil {
		return ""
	}
	node, ok := in.Node(in.FileSystem.Status.Metadata.Node)
	if !ok {
		return ""
	}
	return "http://" + backend.Address(node.IP, ExamplePort) + "/state"
}

// Questions ask a process by a program that prints a backend.State.
func (Example) Questions(_, address string) backend.Questions { return question(address) }

type question string

// Commands implements backend.Questions.
func (q question) Commands() [][]string { return [][]string{{"example-state", string(q)}} }

// Parse implements backend.Questions.
func (q question) Parse(outputs [][]byte) (backend.State, error) {
	var state backend.State
	err := json.NewDecoder(bytes.NewReader(bytes.Join(outputs, nil))).Decode(&state)
	if err != nil {
		return state, fmt.Errorf("example-state %s: %w", string(q), err)
	}
	return state, nil
}

// Observe lists the mount of the metadata, a server with its targets for each node of a pool, and a client for each pod that mounts.
func (Example) Observe(in backend.Input) backend.Observation {
	fs := in.FileSystem
	out := backend.Observation{MetadataInitialized: in.State != nil}
	var away, unready, missing, unmounted []string
	server := func(i backend.ServerStatus, component string) backend.ServerStatus {
		i.Message = unserved(in, component, i)
		if i.Online = i.Message == ""; !i.Online {
			away = append(away, i.Name+": "+i.Message)
		}
		out.Servers = append(out.Servers, i)
		return i
	}
	if m := fs.Status.Metadata; m != nil {
		server(backend.ServerStatus{Name: ComponentMount + "." + m.Node, Role: v1alpha1.RoleMetadata, Node: m.Node}, ComponentMount)
		for _, t := range metadataDisk(in) {
			if _, why := assign.Proven(t); why != "" {
				unready = append(unready, t.Name+" (its disk: "+why+")")
			}
		}
	}
	for _, pool := range fs.Spec.StoragePools {
		record, ok := in.Pool(pool.Name)
		if !ok {
			continue
		}
		first := len(out.Targets)
		for _, node := range record.Nodes {
			i := server(backend.ServerStatus{
				Name: "server-" + pool.Name + "." + node, Role: v1alpha1.RoleStorage, Node: node, StoragePool: pool.Name,
			}, ComponentServer)
			for _, d := range pool.Targets.Directories {
				out.Targets = append(out.Targets, backend.TargetStatus{
					Node: node, StoragePool: pool.Name, Directory: string(d), Online: i.Online, Message: i.Message,
				})
			}
			for _, t := range assign.TargetsOf(in, v1alpha1.RoleStorage, pool.Name, node) {
				status := onDisk(in, t, i)
				if _, why := assign.Proven(t); why != "" {
					unready = append(unready, t.Name+" (its disk: "+why+")")
				} else if i.Online && !status.Online {
					missing = append(missing, t.Name+" ("+status.Message+")")
				}
				out.Targets = append(out.Targets, status)
			}
		}
		out.StoragePools = append(out.StoragePools, v1alpha1.StoragePoolStatus{
			Name: pool.Name, Slot: record.Slot, Targets: backend.Ratio(out.Online(pool.Name), len(out.Targets)-first),
		})
	}
	for _, p := range in.Pods {
		if p.Component != ComponentClient {
			continue
		}
		out.Clients = append(out.Clients, backend.Client{Node: p.Node, Mounted: p.Ready, Message: p.Message})
		if !p.Ready {
			unmounted = append(unmounted, p.Node)
		}
	}
	say := func(reason, message string, of ...string) {
		if len(of) > 0 {
			out.Problems = append(out.Problems, backend.Problem{Reason: reason, Message: message + backend.List(of)})
		}
	}
	say(v1alpha1.ReasonTargetsNotReady, "waiting for disks: ", unready...)
	if in.State == nil {
		say(v1alpha1.ReasonProbeUnreachable, "the filesystem does not answer: ", in.StateError)
	} else {
		say(v1alpha1.ReasonServersMissing, "", away...)
		say(v1alpha1.ReasonTargetsMissing, "", missing...)
	}
	say(v1alpha1.ReasonStarting, "not mounted on ", unmounted...)
	out.Count()
	out.Serves = in.State != nil && len(away) == 0 && in.State.Data.Missing == 0 && out.Reachable()
	return out
}

// unserved returns why the mount, or the process of a pool, does not serve on a node; empty if it does.
func unserved(in backend.Input, component string, i backend.ServerStatus) string {
	if why := in.Away(component, i.StoragePool, "", i.Node); why != "" {
		return why
	}
	if in.State == nil {
		return "unknown: " + in.StateError
	}
	n, _ := in.Node(i.Node)
	if !slices.ContainsFunc(in.State.Servers, func(s backend.Server) bool { return s.IP == n.IP && s.Role == i.Role && s.Online }) {
		return "the filesystem does not list it"
	}
	return ""
}

// onDisk returns a process's report about a disk.
func onDisk(in backend.Input, t *v1alpha1.StorageTarget, server backend.ServerStatus) backend.TargetStatus {
	status := backend.TargetStatus{
		Node: server.Node, StoragePool: server.StoragePool,
		Directory: assign.TargetPath(in.FileSystem, t.Name), StorageTarget: t.Name, Message: server.Message,
	}
	if _, why := assign.Proven(t); why != "" || !server.Online {
		status.Message = cmp.Or(why, server.Message)
		return status
	}
	status.Message = "the process does not list it"
	for _, said := range in.State.Targets {
		if said.Path == status.Directory {
			status.Online, status.Message = said.Online, said.Status
			status.CapacityBytes, status.UsedBytes = said.CapacityBytes, said.UsedBytes
			status.Removing, status.Removable = said.Removing, said.Removable
		}
	}
	return status
}
