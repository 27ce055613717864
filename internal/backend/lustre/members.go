package lustre

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// Members returns the children of a Lustre: the Secrets of the probe and of backups, a ConfigMap with the configuration of the pods, the
// DaemonSets, and the Jobs that make pools and drain OSTs. There is one DaemonSet for an MGS with a disk of its own, one for each MDT of a
// node and each pool, and one for clients.
func (Backend) Members(in backend.Input) ([]client.Object, error) {
	b := &builder{in: in.Indexed(), told: map[string][]byte{}}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.objects, nil
}

// builder collects the objects of one filesystem.
type builder struct {
	in      backend.Input
	objects []client.Object
	// told holds the configuration that the node binary reads, by file name.
	told map[string][]byte
}

// configVolume holds the configuration of the node binary.
const configVolume = "config"

func configMapName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "lustre") }

func (b *builder) build() error {
	var workloads []client.Object
	// Nothing can be made or mounted before the NIDs of the MGS are on record.
	if len(given(b.in.FileSystem).ManagementNIDs) > 0 {
		var err error
		if workloads, err = b.workloads(); err != nil {
			return err
		}
	}
	fs := b.in.FileSystem
	secret, key := Backend{}.SecretName(fs)
	b.objects = append(b.objects, exchange.ProbeSecret(b.in), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: fs.Namespace},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{key: []byte(b.in.Password)},
	}, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: configMapName(fs), Namespace: fs.Namespace}, Data: backend.Text(b.told),
	})
	b.objects = append(b.objects, workloads...)
	return nil
}

// workloads returns the DaemonSets.
func (b *builder) workloads() (out []client.Object, err error) {
	fs := b.in.FileSystem
	if hasMGT(fs) {
		w := podspec.Workload{Component: componentMGS, Role: v1alpha1.RoleManagement}
		out = append(out, b.serverSet(w, componentMGS, portsOf(fs).mgs(), given(fs).ManagementNode))
	}
	for slot := range metadataSlots(fs) {
		w := podspec.Workload{Component: componentMDT, Role: v1alpha1.RoleMetadata, Slot: fmt.Sprint(slot)}
		out = append(out, b.serverSet(w, mdtDaemon(slot), portsOf(fs).mdt(slot), ""))
	}
	for _, pool := range fs.Spec.StoragePools {
		slot, recorded := b.in.PoolSlot(pool.Name)
		if !recorded {
			return nil, fmt.Errorf("storage pool %q is not recorded yet", pool.Name)
		}
		w := podspec.Workload{Component: componentOST, Role: v1alpha1.RoleStorage, StoragePool: pool.Name}
		out = append(out, b.serverSet(w, ostDaemon(pool.Name), portsOf(fs).ost(slot), ""))
	}
	if fs.Spec.Clients != nil {
		set, err := b.clientSet()
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return append(append(out, b.jobs()...), b.drains()...), nil
}

// serverSet returns the DaemonSet of a member: its pods keep its targets mounted, on one named node, or on all nodes that have such a
// member. The probe in the same pod answers for the whole node.
func (b *builder) serverSet(w podspec.Workload, daemon string, port int32, node string) client.Object {
	fs, name := b.in.FileSystem, spec.MemberName(daemon)
	version := backend.VersionOf(fs, w.Component)
	serve := spec.Serve{
		Owner: backend.Owner(fs), Backend: string(v1alpha1.Lustre), Version: version, Daemon: daemon, NodeFile: podspec.NodeFile(fs),
		Network: b.network(w.Role == v1alpha1.RoleManagement), GraceSeconds: graceSeconds - spareSeconds,
	}
	probe := spec.Probe{
		Backend: string(v1alpha1.Lustre), Version: version, Address: sourceOf(given(fs).ManagementNIDs, own(fs).FSName),
		Listen: backend.Address("$(NODE_IP)", port), KeyFile: podspec.ProbeKeyFile, FileSystem: backend.Owner(fs),
		IntervalSeconds: 10, Host: true,
	}
	pod := b.pod(w)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(graceSeconds))
	if node != "" {
		pod.Spec.Affinity = podspec.OnNodes(node)
	} else {
		podspec.OnMembers(fs, pod, name)
	}
	daemonContainer := b.container(w.Component, "serve", name+".json")
	podspec.MountNodeFile(fs, pod, &daemonContainer)
	podspec.CheckServed(&daemonContainer, name+".json")
	answers := b.container("probe", "probe", "probe-"+name+".json")
	pods(b.in).ServeProbe(pod, &answers, port)
	answers.SecurityContext = podspec.Privileged() // it runs the node's own programs
	b.handOut(pod, daemon, &probe, &answers)
	b.told[name+".json"], b.told["probe-"+name+".json"] = backend.Encode(serve), backend.Encode(probe)
	pod.Spec.Containers = []corev1.Container{daemonContainer, answers}
	return pods(b.in).DaemonSet(name, w, pod, serve, probe)
}

const (
	// graceSeconds is how long a pod may take to unmount its targets when it is stopped. One target took 10 to 20 s when the MGS had stopped
	// before it (2.17.57, emulated), and a server may have many.
	graceSeconds = 1800
	// spareSeconds is the time that remains for a message after the pod has stopped trying.
	spareSeconds = 60
)

// network is LNet's network, which a node gets if it has none of that name. The NIDs of the MGS's node are on every disk.
func (b *builder) network(isMGS bool) spec.KernelNetwork {
	fs := b.in.FileSystem
	n := NetworkOf(fs.Spec.Network, own(fs).RDMA).told()
	if isMGS {
		n.NIDs = given(fs).ManagementNIDs
	}
	return n
}

func (b *builder) clientSet() (client.Object, error) {
	fs := b.in.FileSystem
	mount, err := ClientMount(own(fs), *fs.Spec.Clients, given(fs).ManagementNIDs)
	if err != nil {
		return nil, err
	}
	network := b.network(false)
	mount.Host, mount.Network = true, &network
	mount.Evictions = &spec.Evictions{Argv: cli.Commands{FSName: own(fs).FSName}.ClientStates(), Pattern: cli.Eviction}
	w := podspec.Workload{Component: componentClient, Role: podspec.RoleClient}
	pod := b.pod(w)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(60))
	podspec.OnClients(fs, pod)
	c := b.container(componentClient, "mount", "client.json")
	podspec.MountOnNode(pod, &c, fs, &mount)
	b.told["client.json"] = backend.Encode(mount)
	podspec.CheckMount(&c, "client.json")
	pod.Spec.Containers = []corev1.Container{c}
	return pods(b.in).DaemonSet(componentClient, w, pod, mount), nil
}

// pod shares the process ids of the node, because the node's own programs run in its mounts.
func (b *builder) pod(w podspec.Workload) *corev1.PodTemplateSpec {
	pod := pods(b.in).Template(w, podspec.ConfigVolume(configVolume, configMapName(b.in.FileSystem)))
	pod.Spec.HostPID = true
	return pod
}

// container runs a verb of the node binary, with a file as its configuration. It needs only that binary: modules and tools are the node's.
func (b *builder) container(name, verb, file string) corev1.Container {
	c := pods(b.in).Container(name, b.in.Images.Node, verb, configVolume, file)
	c.SecurityContext = podspec.Privileged()
	return c
}
