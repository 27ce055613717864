package beegfs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/options"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// The times that daemons may take to stop. The management service waits until clients have fetched the state of buddy groups
// (node-offline-timeout, 180 s); metadata and storage servers write their caches to disk.
const (
	managementGrace = 300
	serverGrace     = 120
	clientGrace     = 60
	// graceBeyond is added to the time without contact that a user sets.
	graceBeyond = 120
)

// Members returns the children of a BeeGFS filesystem: a Secret and a ConfigMap with the configuration of the pods, a DaemonSet for the
// management service, one for each metadata slot and pool, one for the clients, and the Jobs that set up pools and move data.
func (Backend) Members(in backend.Input) ([]client.Object, error) {
	v := viewOf(in.Indexed())
	in = v.in
	fs := in.FileSystem
	management, ok := managementNode(in)
	if !ok {
		if err := nodefacts.RefuseAddress(in, Backend{}.Families(fs), fs.Status.Metadata.Node); err != nil {
			return nil, err //nolint:wrapcheck // it is a sentence for a person
		}
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
			"node %s, which holds the store of the management service, %s; bring it back: without its "+
				"store, ids, pools and mirrors are forgotten; or, when it never comes back, ask for a recovery: "+
				"kubectl -n %s annotate filesystem %s %s=%s",
			fs.Status.Metadata.Node, in.Gone(fs.Status.Metadata.Node), fs.Namespace, fs.Name, v1alpha1.AnnotationRecoverMetadata,
			v1alpha1.RecoverPlan)
	}
	if err := cmp.Or(options.ConsistentTimeouts(own(fs).Config), refuseNetworks(fs)); err != nil {
		return nil, err
	}
	b := builder{view: v, management: management, told: map[string][]byte{}}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.objects, nil
}

// builder collects the objects of one filesystem.
type builder struct {
	*view
	// management is the node of the management service.
	management backend.Node
	// told holds the files that the node binary and the tools read in ToldDirectory, by name. It is written into the ConfigMap.
	told    map[string][]byte
	objects []client.Object
}

func (b *builder) build() error {
	fs := b.in.FileSystem
	var workloads []client.Object
	add := func(object client.Object, err error) error {
		if err == nil && object != nil {
			workloads = append(workloads, object)
		}
		return err
	}
	if err := add(b.managementSet()); err != nil {
		return err
	}
	for slot := range metaSlots(fs) {
		if err := add(b.metaSet(slot)); err != nil {
			return err
		}
	}
	for _, pool := range fs.Spec.StoragePools {
		if err := add(b.storageSet(pool)); err != nil {
			return err
		}
	}
	if err := add(b.clientSet()); err != nil {
		return err
	}
	if c := fs.Status.Certificate; c != nil {
		b.told[cli.TrustName] = []byte(c.Trusted + c.TrustedBefore)
	}
	if err := b.toolConfig(); err != nil {
		return err
	}
	jobs, err := b.jobs()
	if err != nil {
		return err
	}
	b.objects = append(b.objects,
		exchange.ProbeSecret(b.in),
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secretName(fs), Namespace: fs.Namespace},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{cli.AuthKey: []byte(b.in.Password)},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMapName(fs), Namespace: fs.Namespace}, Data: backend.Text(b.told)})
	if fs.Spec.BeeGFS.CSIDriver {
		csi, err := b.csiObjects()
		if err != nil {
			return err
		}
		b.objects = append(b.objects, csi...)
	} else {
		b.objects = append(b.objects, backend.Absent(fs.Namespace, csiName(fs)))
	}
	b.objects = append(append(b.objects, workloads...), jobs...)
	return nil
}

// The volumes with the configuration of the node binary, the shared secret, and the user's certificate and license.
const (
	configVolume  = "config"
	stateVolume   = "state"
	authVolume    = "auth"
	tlsVolume     = "tls"
	licenseVolume = "license"
)

// pod returns the part that all pods have in common, with their configuration and the shared secret.
func (b *builder) pod(w podspec.Workload) *corev1.PodTemplateSpec {
	fs := b.in.FileSystem
	auth := podspec.SecretVolume(authVolume, secretName(fs))
	return pods(b.in).Template(w, podspec.ConfigVolume(configVolume, configMapName(fs)), auth)
}

// container runs a verb of the node binary in an image, with a file of told as its configuration, and with the shared secret.
func (b *builder) container(name, image, verb, file string) corev1.Container {
	c := pods(b.in).Container(name, image, verb, configVolume, file)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: authVolume, MountPath: cli.AuthDirectory, ReadOnly: true})
	return c
}

// server returns the pod of a daemon with one container, which has the daemon's targets and the settings that differ from node to node.
func (b *builder) server(
	w podspec.Workload, role string, run spec.Run, file string, targets v1alpha1.TargetsSpec, directories []string,
	ports ...corev1.ContainerPort,
) (*corev1.PodTemplateSpec, error) {
	fs := b.in.FileSystem
	i, err := image(b.in, role, w.Component)
	if err != nil {
		return nil, err
	}
	b.told[file] = backend.Encode(run)
	pod := b.pod(w)
	c := b.container(w.Component, i, "run", file)
	c.Ports = ports
	podspec.HostDirectory(pod, &c, stateVolume, backend.StateRoot(fs), nil)
	for n, d := range directories {
		podspec.HostDirectory(pod, &c, fmt.Sprintf("target-%d", n), d, nil)
	}
	if assign.OnDevices(targets) {
		podspec.MountTargets(fs, pod, &c)
	}
	podspec.MountNodeFile(fs, pod, &c)
	pod.Spec.Containers = []corev1.Container{c}
	return pod, nil
}

// daemonSet runs a pod on its nodes. A changed secret makes all of them outdated: each daemon and client reads it when it starts, and can't
// communicate with others that have a different one.
func (b *builder) daemonSet(name string, w podspec.Workload, pod *corev1.PodTemplateSpec, told ...any) *appsv1.DaemonSet {
	return pods(b.in).DaemonSet(name, w, pod, append(told, b.in.Password)...)
}

// twoPorts returns the TCP and the UDP port of a daemon, which have the same number.
func twoPorts(name string, port int32) []corev1.ContainerPort {
	return []corev1.ContainerPort{
		{Name: name, ContainerPort: port, Protocol: corev1.ProtocolTCP},
		{Name: name + "-udp", ContainerPort: port, Protocol: corev1.ProtocolUDP},
	}
}

// rdmaCapability permits a daemon to lock the memory that an adapter reads and writes, so that the kernel neither swaps it out nor counts
// it against RLIMIT_MEMLOCK (documentation of the Kubernetes RDMA device plugins).
const rdmaCapability = "IPC_LOCK"

// withRDMA makes the DaemonSet of a server give it the devices of its nodes' adapters. It changes the DaemonSet after its hash was
// computed: the devices of a node are no reason to restart a server. Only the spec's settings are one, in rdmaTold.
//
// A directory of the node would show the devices, but the server could not open them. The device cgroup of a container refuses open(2) of
// every device that its runtime did not allow. So they come from the resource of a device plugin, or the container is privileged.
func (b *builder) withRDMA(daemonSet *appsv1.DaemonSet, nodes []string) *appsv1.DaemonSet {
	fs := b.in.FileSystem
	c := &daemonSet.Spec.Template.Spec.Containers[0]
	switch {
	case !usesRDMA(fs):
	case own(fs).RDMAResource != "":
		c.SecurityContext.Capabilities.Add = append(c.SecurityContext.Capabilities.Add, rdmaCapability)
		for _, list := range []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits} {
			*list = maps.Clone(*list)
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[corev1.ResourceName(own(fs).RDMAResource)] = resource.MustParse("1")
		}
	case rdmaOf(fs) == v1alpha1.RDMARequired || slices.ContainsFunc(nodes, b.hasAdapter):
		c.SecurityContext = podspec.Privileged()
	}
	return daemonSet
}

// hasAdapter is true when the agent of a node has found an RDMA adapter.
func (b *builder) hasAdapter(node string) bool { return len(b.in.Inventories[node].RDMADevices) > 0 }

// rdmaTold returns the settings of the spec whose change needs a restart of a server, in addition to its configuration. With Auto, a
// running server continues as it is.
func rdmaTold(fs *v1alpha1.FileSystem) []any {
	if !usesRDMA(fs) || own(fs).RDMAResource == "" {
		return nil
	}
	return []any{own(fs).RDMAResource}
}

func (b *builder) managementSet() (client.Object, error) {
	fs := b.in.FileSystem
	run, err := managementRun(fs)
	if err != nil {
		return nil, err
	}
	var directories []string
	if !assign.OnDevices(own(fs).Management.Targets) {
		directories = []string{fs.Status.Metadata.Directory}
	}
	p, w := portsOf(fs), podspec.Workload{Component: componentManagement, Role: v1alpha1.RoleManagement}
	ports := twoPorts("management", p.management())
	if cli.Is8(backend.Version(fs)) {
		ports = append(ports, corev1.ContainerPort{Name: "grpc", ContainerPort: p.grpc(), Protocol: corev1.ProtocolTCP})
	}
	pod, err := b.server(w, "mgmtd", run, "management.json", own(fs).Management.Targets, directories, ports...)
	if err != nil {
		return nil, err
	}
	offline, _, _, _ := options.OfflineTimeouts(own(fs).Config)
	pod.Spec.TerminationGracePeriodSeconds = new(max(managementGrace, offline+graceBeyond))
	pod.Spec.Affinity = podspec.OnNodes(fs.Status.Metadata.Node)
	if cli.Is8(backend.Version(fs)) {
		b.usersSecret(pod, tlsVolume, fs.Spec.BeeGFS.TLS, tlsDirectory)
		b.usersSecret(pod, licenseVolume, fs.Spec.BeeGFS.License, licenseDirectory)
	}
	probe, told, err := b.probeContainer(pod)
	if err != nil {
		return nil, err
	}
	pod.Spec.Containers = append(pod.Spec.Containers, probe)
	told.Store = nil // the files that are handed out for backups are no reason to restart the daemon
	hashed := []any{run, told}
	if r := fs.Status.Metadata.Recovered; r != nil {
		hashed = append(hashed, r.PlanHash) // the old pod may still see the filesystem that was mounted then
	}
	c := fs.Status.Certificate
	if c == nil {
		return b.daemonSet(componentManagement, w, pod, hashed...), nil
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podspec.CertificateAnnotation, c.SHA256)
	return b.daemonSet(componentManagement, w, pod, append(hashed, c.SHA256)...), nil // it reads its certificate when it starts
}

// usersSecret mounts a Secret of the user into the daemon's container.
func (b *builder) usersSecret(pod *corev1.PodTemplateSpec, volume string, secret *v1alpha1.SecretReference, directory string) {
	if secret == nil {
		return
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, podspec.SecretVolume(volume, secret.Name))
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: directory, ReadOnly: true})
}

// probeContainer queries the management service and serves its answer. BeeGFS's tools work only for root, and this root has no
// capabilities.
func (b *builder) probeContainer(pod *corev1.PodTemplateSpec) (corev1.Container, spec.Probe, error) {
	fs, p := b.in.FileSystem, portsOf(b.in.FileSystem)
	tools, err := image(b.in, "tools", componentManagement)
	if err != nil {
		return corev1.Container{}, spec.Probe{}, err
	}
	address := backend.Address(b.management.IP, p.management())
	if cli.Is8(backend.Version(fs)) {
		address = grpcAddress(b.in)
	}
	probe := spec.Probe{
		Backend: string(v1alpha1.BeeGFS), Version: backend.VersionOf(fs, componentManagement), Address: address,
		Listen: backend.Address(b.management.IP, p.probe()), KeyFile: podspec.ProbeKeyFile,
		FileSystem: backend.Owner(fs), IntervalSeconds: 5, Store: storeOf(fs),
	}
	b.told["probe.json"] = backend.Encode(probe)
	c := b.container("probe", tools, "probe", "probe.json")
	b.nameManagement(pod)
	pods(b.in).ServeProbe(pod, &c, p.probe())
	c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup, c.SecurityContext.RunAsNonRoot = new(int64(0)), new(int64(0)), nil
	showStore(pod, &c)
	return c, probe, nil
}

// metaSet is the DaemonSet of the metadata servers of a slot, and nil while none of them is recorded: they wait, and the other servers do
// not.
func (b *builder) metaSet(slot int32) (client.Object, error) {
	fs := b.in.FileSystem
	nodes := metadataNodesOf(b.in, slot)
	if len(nodes) == 0 {
		return nil, nil
	}
	run, err := metaRun(fs, b.management.IP, slot)
	if err != nil {
		return nil, err
	}
	var directories []string
	if d := fs.Spec.MetadataServers.Targets.Directories; len(d) > int(slot) {
		directories = []string{string(d[slot])}
	}
	w := podspec.Workload{Component: componentMeta, Role: v1alpha1.RoleMetadata, Slot: fmt.Sprint(slot)}
	name := fmt.Sprintf("%s-%d", componentMeta, slot)
	pod, err := b.server(w, "meta", run, name+".json", fs.Spec.MetadataServers.Targets, directories, twoPorts("meta",
		portsOf(fs).meta(slot))...)
	if err != nil {
		return nil, err
	}
	// The node binary writes mountTable. If the container engine has made it a link into /proc, a mount there would fail.
	pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil
	pod.Spec.TerminationGracePeriodSeconds = new(int64(serverGrace))
	podspec.OnMembers(fs, pod, metaMemberName(slot))
	if fs.Status.BeeGFS.MetadataMirrored != nil {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, backend.MetadataMirroredAnnotation, "true")
	}
	told, err := podspec.Pin(pod, "spec.metadataServers", fs.Spec.MetadataServers.CPUPinning, run)
	if err != nil {
		return nil, err
	}
	return b.withRDMA(b.daemonSet(name, w, pod, append(told, rdmaTold(fs)...)...), nodes), nil
}

func (b *builder) storageSet(pool v1alpha1.StoragePoolSpec) (client.Object, error) {
	fs := b.in.FileSystem
	record, ok := b.in.Pool(pool.Name)
	if !ok {
		return nil, fmt.Errorf("storage pool %q is not recorded yet", pool.Name)
	}
	run, err := storageRun(fs, b.management.IP, pool, record.Slot)
	if err != nil {
		return nil, err
	}
	nodes := slices.DeleteFunc(slices.Clone(record.Nodes), func(node string) bool {
		a, ok := b.in.GivenTo(node, storageMemberName(pool.Name))
		return ok && a.Retired
	})
	if len(nodes) == 0 {
		return nil, nil
	}
	directories := make([]string, len(pool.Targets.Directories))
	for i, d := range pool.Targets.Directories {
		directories[i] = string(d)
	}
	w := podspec.Workload{Component: componentStorage, Role: v1alpha1.RoleStorage, StoragePool: pool.Name}
	name := componentStorage + "-" + pool.Name
	pod, err := b.server(w, "storage", run, name+".json", pool.Targets, directories, twoPorts("storage", portsOf(fs).storage(record.Slot))...)
	if err != nil {
		return nil, err
	}
	pod.Spec.TerminationGracePeriodSeconds = new(int64(serverGrace))
	podspec.OnMembers(fs, pod, storageMemberName(pool.Name))
	told, err := podspec.Pin(pod, "spec.storagePools["+pool.Name+"]", pool.CPUPinning, run)
	if err != nil {
		return nil, err
	}
	return b.withRDMA(b.daemonSet(name, w, pod, append(told, rdmaTold(fs)...)...), nodes), nil
}

// clientSet mounts the filesystem on the client nodes, by the module of their own kernel. The image is that of the metadata server, for its
// mount(8): BeeGFS has no image for clients.
func (b *builder) clientSet() (client.Object, error) {
	fs := b.in.FileSystem
	if fs.Spec.Clients == nil || awaitsMirror(b.in) {
		return nil, nil
	}
	mount, err := clientMount(fs, b.management.IP, string(fs.Spec.Clients.MountPath))
	if err != nil {
		return nil, err
	}
	i, err := image(b.in, "meta", componentClient)
	if err != nil {
		return nil, err
	}
	w := podspec.Workload{Component: componentClient, Role: podspec.RoleClient}
	pod := b.pod(w)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(clientGrace))
	// A process that waits in the kernel for a lost server can't be killed. In a PID namespace of its own, it would keep the pod from ending.
	// The node's own namespace also shows which module it lacks.
	pod.Spec.HostPID = true
	podspec.OnClients(fs, pod)
	c := b.container("client", i, "mount", "client.json")
	c.SecurityContext = podspec.Privileged()
	podspec.MountOnNode(pod, &c, fs, &mount)
	b.told["client.json"] = backend.Encode(mount)
	podspec.CheckMount(&c, "client.json")
	pod.Spec.Containers = []corev1.Container{c}
	return b.daemonSet(componentClient, w, pod, mount), nil
}
