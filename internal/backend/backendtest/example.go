package backendtest

import (
	"bytes"
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
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Example is a backend for tests of what knows no filesystem. Its filesystem is as small as one can be: a process on each node of a pool,
// which keeps data in the pool's directories and says itself how all of them are, and a mount on each client node. It keeps no secret but
// the probe's, pins nothing, moves no data, and claims no port, so that who asks for that must do without.
type Example struct {
	// Kind is a spec.type that admission lets in: whoever asks a backend who it is, and not what it can do, is led astray.
	Kind v1alpha1.FileSystemType
}

var _ interface {
	backend.Backend
	backend.Prober
	backend.Mounter
} = Example{}

// The components, and the port of the process that runs on the node of the metadata, which answers for all.
const (
	ComponentServer = "server"
	ComponentClient = "client"
	ExamplePort     = 7000
)

// ExampleOption begins the name of an annotation of the FileSystem that is an option of the processes: the API has none for this type.
const ExampleOption = "example/"

// Type is the one that was chosen.
func (e Example) Type() v1alpha1.FileSystemType { return e.Kind }

// Versions are two that do not differ.
func (Example) Versions() []string { return []string{"1.0", "2.0"} }

// Order is that of the only daemon.
func (Example) Order() []string { return []string{ComponentServer} }

// Allocate records the node that answers, and those of the pools.
func (Example) Allocate(in backend.Input) (backend.Allocation, error) {
	fs := in.FileSystem
	var metadata v1alpha1.MetadataRecord
	if fs.Status.Metadata != nil {
		metadata = *fs.Status.Metadata
	} else if nodes := backend.Matching(in.Nodes, fs.Spec.Metadata.NodeSelector); len(nodes) > 0 {
		metadata.Node = nodes[0].Name
	} else {
		return backend.Allocation{}, backend.Invalid(v1alpha1.ReasonNoNodes, "no node matches spec.metadata.nodeSelector; label one")
	}
	const slots = 16
	disks, err := backend.ReadDisks(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	numbers := backend.NewNumbers(in, disks, backend.Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: slots}})
	pools, err := backend.RecordPools(in, disks, numbers)
	if err != nil {
		return backend.Allocation{}, err
	}
	status, joins := backend.Recorded(in, metadata, pools, numbers)
	records := backend.NewRecords(in)
	records.Join(pools, daemonOf)
	nodes := plan.TargetNodes{Metadata: []string{metadata.Node}, Pools: backend.PoolNodes(pools)}
	return backend.Allocation{Status: status, Nodes: records.Changed(), Joins: joins, TargetNodes: nodes}, nil
}

// Nodes are the FileSystemNodes: a process is told nothing more than that it is there.
func (Example) Nodes(in backend.Input) []v1alpha1.FileSystemNode {
	members := map[string][]v1alpha1.NodeMember{}
	for _, server := range in.Given() {
		members[server.Node] = append(members[server.Node], v1alpha1.NodeMember{Name: server.Name, Role: server.Role})
	}
	return backend.FileSystemNodes(in, backend.Facts(in.FileSystem, 0), members)
}

// Members are a DaemonSet of processes for each pool, one of mounts, and a ConfigMap with what they are told.
func (e Example) Members(in backend.Input) ([]client.Object, error) {
	fs := in.FileSystem
	pods := backend.Pods{FileSystem: fs, Images: in.Images, Software: "example"}
	name, told := backend.ChildName(fs, "example"), map[string][]byte{}
	config := func(w backend.Workload) *corev1.PodTemplateSpec {
		return pods.Template(w, backend.ConfigVolume("config", name))
	}
	var sets []client.Object
	for _, pool := range fs.Spec.StoragePools {
		if _, ok := in.Pool(pool.Name); !ok {
			return nil, fmt.Errorf("storage pool %q is not recorded yet", pool.Name)
		}
		w := backend.Workload{Component: ComponentServer, Role: v1alpha1.RoleStorage, StoragePool: pool.Name}
		run, file := serverRun(fs, pool), "server-"+pool.Name+".json"
		told[file] = backend.Encode(run)
		// The permission to initialize is withdrawn once, and restarts nothing.
		for _, d := range run.Directories {
			d.Initialize.Granted = false
		}
		pod := config(w)
		backend.OnMembers(fs, pod, spec.MemberName(daemonOf(pool.Name)))
		c := pods.Container(ComponentServer, "example-server", "run", "config", file)
		probe := pods.Container("probe", "example-state", "probe", "config", file)
		pods.ServeProbe(pod, &probe, ExamplePort)
		backend.MountNodeFile(fs, pod, &c)
		for i, d := range run.Directories {
			backend.HostDirectory(pod, &c, fmt.Sprintf("data-%d", i), d.Path, nil)
		}
		pod.Spec.Containers = []corev1.Container{c, probe}
		sets = append(sets, pods.DaemonSet("server-"+pool.Name, w, pod, run))
	}
	if fs.Spec.Clients != nil {
		w, mount := backend.Workload{Component: ComponentClient, Role: backend.RoleClient}, e.mount(in)
		pod := config(w)
		pod.Spec.NodeSelector = fs.Spec.Clients.NodeSelector
		c := pods.Container(ComponentClient, "example-client", "mount", "config", "client.json")
		c.SecurityContext = backend.Privileged()
		backend.MountOnNode(pod, &c, fs, &mount)
		backend.CheckMount(&c, "client.json")
		told["client.json"] = backend.Encode(mount)
		pod.Spec.Containers = []corev1.Container{c}
		sets = append(sets, pods.DaemonSet(ComponentClient, w, pod, mount))
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fs.Namespace}, Data: backend.Text(told)}
	return append([]client.Object{backend.ProbeSecret(in), m}, sets...), nil
}

func daemonOf(pool string) string { return ComponentServer + "/" + pool }

// serverRun tells the process of a pool where its data is, and what the user sets.
func serverRun(fs *v1alpha1.FileSystem, pool v1alpha1.StoragePoolSpec) spec.Run {
	run := spec.Run{
		Owner: backend.Owner(fs), Component: ComponentServer, User: "root", Ledger: backend.Ledger(fs, ComponentServer),
		Daemon: daemonOf(pool.Name), NodeFile: backend.NodeFile(fs),
		Command: []string{"example-server", path.Join(backend.RunDirectory, "server.conf")},
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

// Mount says where client nodes have the filesystem.
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

// ProbeURL is where the process on the node of the metadata answers.
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

// Observe lists a server, and its directories, for each node of a pool, and a client for each pod that mounts.
func (Example) Observe(in backend.Input) backend.Observation {
	fs := in.FileSystem
	out := backend.Observation{MetadataInitialized: in.State != nil}
	var away, unmounted []string
	for _, pool := range fs.Spec.StoragePools {
		record, ok := in.Pool(pool.Name)
		if !ok {
			continue
		}
		status := v1alpha1.StoragePoolStatus{Name: pool.Name, Slot: record.Slot}
		online := 0
		for _, node := range record.Nodes {
			server := backend.ServerStatus{
				Name: "server-" + pool.Name + "." + node, Role: v1alpha1.RoleStorage, Node: node, StoragePool: pool.Name,
			}
			if server.Message = unserved(in, pool.Name, node); server.Message == "" {
				server.Online = true
			} else {
				away = append(away, server.Name+": "+server.Message)
			}
			out.Servers = append(out.Servers, server)
			for _, d := range pool.Targets.Directories {
				out.Targets = append(out.Targets, backend.TargetStatus{
					Name: node + ":" + string(d), Node: node, StoragePool: pool.Name, Directory: string(d),
					Online: server.Online, Message: server.Message,
				})
				if server.Online {
					online++
				}
			}
		}
		status.Targets = backend.Ratio(online, len(record.Nodes)*len(pool.Targets.Directories))
		out.StoragePools = append(out.StoragePools, status)
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
	say := func(reason, message string) {
		out.Problems = append(out.Problems, backend.Problem{Reason: reason, Message: message})
	}
	switch {
	case in.State == nil:
		say(v1alpha1.ReasonProbeUnreachable, "the filesystem does not answer: "+in.StateError)
	case len(away) > 0:
		say(v1alpha1.ReasonServersMissing, backend.List(away))
	}
	if len(unmounted) > 0 {
		say(v1alpha1.ReasonStarting, "not mounted on "+backend.List(unmounted))
	}
	out.Count()
	out.Serves = in.State != nil && len(away) == 0 && out.Reachable()
	return out
}

// unserved says why the process of a pool does not serve on a node; empty when it does.
func unserved(in backend.Input, pool, node string) string {
	if why := in.Away(ComponentServer, pool, "", node); why != "" {
		return why
	}
	if in.State == nil {
		return "unknown: " + in.StateError
	}
	n, _ := in.Node(node)
	if !slices.ContainsFunc(in.State.Servers, func(s backend.Server) bool { return s.IP == n.IP && s.Online }) {
		return "the filesystem does not list it"
	}
	return ""
}
