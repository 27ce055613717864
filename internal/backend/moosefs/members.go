package moosefs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// Members returns the children of a MooseFS filesystem: the probe's Secret, a Secret and a ConfigMap with the configuration of the pods,
// one DaemonSet per role (one per pool for chunkservers), and the Job that creates the storage classes.
func (Backend) Members(in backend.Input) ([]client.Object, error) {
	b, err := newBuilder(in.Indexed())
	if err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.objects, nil
}

func newBuilder(in backend.Input) (*builder, error) {
	fs := in.FileSystem
	images, err := imagesOf(in)
	if err != nil {
		return nil, err
	}
	master, ok := masterNode(in)
	if !ok {
		if err := nodefacts.RefuseAddress(in, Backend{}.Families(fs), fs.Status.Metadata.Node); err != nil {
			return nil, err //nolint:wrapcheck // it is a sentence for a person
		}
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
			"node %s, which holds the metadata, %s; bring it back, or, when it never comes back, ask for a recovery: "+
				"kubectl -n %s annotate filesystem %s %s=%s",
			fs.Status.Metadata.Node, in.Gone(fs.Status.Metadata.Node), fs.Namespace, fs.Name, v1alpha1.AnnotationRecoverMetadata,
			v1alpha1.RecoverPlan)
	}
	return &builder{
		in: in, images: images, master: master, told: map[string][]byte{}, secrets: map[string][]byte{}, domains: nodefacts.NewDomains(in),
	}, nil
}

// imagesOf returns the images of all components.
func imagesOf(in backend.Input) (map[string]string, error) {
	images := map[string]string{}
	for _, component := range []string{componentMaster, componentMetalogger, componentChunkserver, componentClient, componentStorageClasses} {
		version := backend.VersionOf(in.FileSystem, component)
		if component == componentStorageClasses {
			version = toolsVersion(in)
		}
		image, ok := in.Images.Daemon("moosefs-" + version)
		if !ok {
			return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"the operator has no image for MooseFS %s; start it with --daemon-image=moosefs-%s=<image> (chart value images.daemons)", version, version)
		}
		images[component] = image
	}
	return images, nil
}

// builder collects the objects of one filesystem.
type builder struct {
	in backend.Input
	// images holds the images of the components, which differ while the filesystem is upgraded.
	images  map[string]string
	master  backend.Node
	objects []client.Object
	// told and secrets hold the configuration files of the node binary, by name. secrets contains the operator's password.
	told, secrets map[string][]byte
	domains       nodefacts.Domains
}

func (b *builder) build() error {
	fs := b.in.FileSystem
	var workloads []client.Object
	add := func(object client.Object, err error) error {
		if err == nil {
			workloads = append(workloads, object)
		}
		return err
	}
	if err := add(b.masterSet()); err != nil {
		return err
	}
	if runsMetaloggers(fs) {
		if err := add(b.metaloggerSet()); err != nil {
			return err
		}
	}
	for _, pool := range fs.Spec.StoragePools {
		if err := add(b.chunkserverSet(pool)); err != nil {
			return err
		}
	}
	// While the master waits for its disk, which a person may have to approve, the job would only fail, with a longer delay each time.
	if job := b.storageClassJob(); b.masterHasItsDisk() {
		workloads = append(workloads, job)
	}
	if fs.Spec.Clients != nil {
		if err := add(b.clientSet()); err != nil {
			return err
		}
	}
	b.objects = append(b.objects,
		exchange.ProbeSecret(b.in),
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: secretName(fs), Namespace: fs.Namespace},
			Type:       corev1.SecretTypeOpaque, Data: b.secrets,
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: configMapName(fs), Namespace: fs.Namespace},
			Data:       backend.Text(b.told),
		})
	b.objects = append(b.objects, workloads...)
	b.objects = append(b.objects, b.maintenanceJobs()...)
	return nil
}

// SecretName returns the name of the Secret with the operator's own password, and its key.
func (Backend) SecretName(fs *v1alpha1.FileSystem) (name, key string) {
	return secretName(fs), passwordKey
}

func secretName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "moosefs") }

const passwordKey = "password"

func configMapName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "moosefs") }

func (b *builder) masterSet() (client.Object, error) {
	fs := b.in.FileSystem
	run, err := masterRun(b.in)
	if err != nil {
		return nil, err
	}
	b.secrets[passwordKey] = []byte(b.in.Password)
	b.secrets["master.json"] = backend.Encode(run)
	b.secrets[topologyKey] = []byte(topology(b.in, b.domains))
	// The permission to initialize is withdrawn once. That must not restart the master.
	for _, d := range run.Directories {
		d.Initialize.Granted, d.Initialize.Expected = false, false
	}
	if run.OnTargets != nil {
		run.OnTargets.Initialize.Granted, run.OnTargets.Initialize.Expected = false, false
	}
	// A release of the operator does not restart the master. A master that an earlier operator started gets this option at its next start.
	if _, set := own(fs).Config.Metadata[savingModeOption]; !set {
		run.Files = slices.Clone(run.Files)
		run.Files[0].Content = strings.Replace(run.Files[0].Content, savingModeOption+" = "+savingModeInMaster+"\n", "", 1)
	}

	probe := spec.Probe{
		Backend: string(v1alpha1.MooseFS), Version: backend.VersionOf(fs, componentMaster),
		Address: backend.Address("127.0.0.1", portsOf(fs).clients()),
		Listen:  backend.Address(b.master.IP, portsOf(fs).probe()), KeyFile: podspec.ProbeKeyFile,
		FileSystem: backend.Owner(fs), IntervalSeconds: 5,
	}
	b.told["probe.json"] = backend.Encode(probe)

	pod := b.pod(componentMaster, "", configVolume, secretVolume)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1800)) // mfsmaster(8): the metadata is saved at the stop, LOCKTIMEOUT 1800 s
	pod.Spec.Affinity = podspec.OnNodes(fs.Status.Metadata.Node)
	daemon := b.daemon(componentMaster, "master", "run", secretVolume, "master.json")
	daemon.Command = append(daemon.Command, "--rotate", "changelog.*.mfs", "--rotate-keep", strconv.Itoa(backLogs(own(fs).Config.Metadata)))
	p := portsOf(fs)
	daemon.Ports = []corev1.ContainerPort{
		{Name: "metaloggers", ContainerPort: p.metaloggers(), Protocol: corev1.ProtocolTCP},
		{Name: "chunkservers", ContainerPort: p.chunkservers(), Protocol: corev1.ProtocolTCP},
		{Name: "clients", ContainerPort: p.clients(), Protocol: corev1.ProtocolTCP},
	}
	podspec.HostDirectory(pod, &daemon, "state", backend.StateRoot(fs), nil)
	if assign.OnDevices(fs.Spec.MetadataServers.Targets) {
		b.mountedTargets(pod, &daemon)
	} else {
		podspec.HostDirectory(pod, &daemon, "metadata", fs.Status.Metadata.Directory, nil)
	}
	podspec.MountNodeFile(fs, pod, &daemon)
	pod.Spec.Containers = []corev1.Container{daemon, b.probeContainer(pod)}
	told, err := podspec.Pin(pod, "spec.metadataServers", fs.Spec.MetadataServers.CPUPinning, run, probe)
	if err != nil {
		return nil, err
	}
	if r := fs.Status.Metadata.Recovered; r != nil {
		told = append(told, r.PlanHash) // an existing pod may still have the earlier mount
	}
	return pods(b.in).DaemonSet(componentMaster, podspec.Workload{Component: componentMaster, Role: v1alpha1.RoleMetadata}, pod, told...), nil
}

// backLogs returns how many older change logs a master keeps (BACK_LOGS in mfsmaster.cfg(5)). A stop saves the metadata, and a master of
// 4.x then begins a new change log. A master of 3.0.117 continues the same log when it starts again. That log may lack the last changes
// before the stop (bgsaver.c), which the metadata has. If the master is killed before it saves its metadata again, it refuses the gap and
// does not start. So the change logs are rotated at the start.
func backLogs(options v1alpha1.Options) int {
	const usual, most = 50, 1000
	n, err := strconv.Atoi(string(options["BACK_LOGS"]))
	if err != nil {
		return usual
	}
	return min(max(n, 1), most)
}

// probeContainer queries the master and serves the answer. It is the only container with a server that is not part of MooseFS.
func (b *builder) probeContainer(pod *corev1.PodTemplateSpec) corev1.Container {
	port := portsOf(b.in.FileSystem).probe()
	c := b.daemon(componentMaster, "probe", "probe", configVolume, "probe.json")
	pods(b.in).ServeProbe(pod, &c, port)
	return c
}

func (b *builder) metaloggerSet() (client.Object, error) {
	fs := b.in.FileSystem
	run, err := metaloggerRun(b.in, b.master.IP)
	if err != nil {
		return nil, err
	}
	b.told["metalogger.json"] = backend.Encode(run)
	pod := b.pod(componentMetalogger, "", configVolume)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(60))
	if selector := own(fs).Metaloggers.NodeSelector; len(selector) > 0 {
		pod.Spec.NodeSelector = selector
	} else {
		pod.Spec.Affinity = podspec.OnNodes(fs.Status.Chosen.Metaloggers...)
	}
	daemon := b.daemon(componentMetalogger, "metalogger", "run", configVolume, "metalogger.json")
	podspec.HostDirectory(pod, &daemon, "state", backend.StateRoot(fs), nil)
	podspec.MountNodeFile(fs, pod, &daemon)
	pod.Spec.Containers = []corev1.Container{daemon}
	w := podspec.Workload{Component: componentMetalogger, Role: v1alpha1.RoleMetadataBackup}
	return pods(b.in).DaemonSet(componentMetalogger, w, pod, run), nil
}

func (b *builder) chunkserverSet(pool v1alpha1.StoragePoolSpec) (client.Object, error) {
	fs := b.in.FileSystem
	record, ok := b.in.Pool(pool.Name)
	if !ok {
		return nil, fmt.Errorf("storage pool %q is not recorded yet", pool.Name)
	}
	run, err := chunkserverRun(b.in, b.master.IP, pool, record.Slot)
	if err != nil {
		return nil, err
	}
	file := "chunkserver-" + pool.Name + ".json"
	b.told[file] = backend.Encode(run)
	pod := b.pod(componentChunkserver, pool.Name, configVolume)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(120))
	podspec.OnMembers(fs, pod, spec.MemberName(chunkserverDaemon(pool.Name)))
	daemon := b.daemon(componentChunkserver, "chunkserver", "run", configVolume, file)
	daemon.Ports = []corev1.ContainerPort{{Name: "data", ContainerPort: portsOf(fs).chunkserver(record.Slot), Protocol: corev1.ProtocolTCP}}
	podspec.HostDirectory(pod, &daemon, "state", backend.StateRoot(fs), nil)
	for i, d := range pool.Targets.Directories {
		podspec.HostDirectory(pod, &daemon, fmt.Sprintf("target-%d", i), string(d), nil)
	}
	if assign.OnDevices(pool.Targets) {
		b.mountedTargets(pod, &daemon)
	}
	podspec.MountNodeFile(fs, pod, &daemon)
	pod.Spec.Containers = []corev1.Container{daemon}
	told, err := podspec.Pin(pod, "spec.storagePools["+pool.Name+"]", pool.CPUPinning, run)
	if err != nil {
		return nil, err
	}
	w := podspec.Workload{Component: componentChunkserver, Role: v1alpha1.RoleStorage, StoragePool: pool.Name}
	return pods(b.in).DaemonSet(componentChunkserver+"-"+pool.Name, w, pod, told...), nil
}

func (b *builder) clientSet() (client.Object, error) {
	fs := b.in.FileSystem
	mount, err := clientMount(fs, b.master.IP)
	if err != nil {
		return nil, err
	}
	pod := b.pod(componentClient, "", configVolume)
	pod.Spec.TerminationGracePeriodSeconds = new(int64(60))
	podspec.OnClients(fs, pod)
	c := b.daemon(componentClient, "client", "mount", configVolume, "client.json")
	// A FUSE mount that reaches the host needs a privileged container (Kubernetes: mount propagation, Bidirectional).
	c.SecurityContext = podspec.Privileged()
	podspec.MountOnNode(pod, &c, fs, &mount)
	b.fuseDevice(pod, &c)
	b.told["client.json"] = backend.Encode(mount)
	podspec.CheckMount(&c, "client.json")
	pod.Spec.Containers = []corev1.Container{c}
	return pods(b.in).DaemonSet(componentClient, podspec.Workload{Component: componentClient, Role: podspec.RoleClient}, pod, mount), nil
}

// masterHasItsDisk reports whether the metadata is in a directory, or on a disk that was made a target.
func (b *builder) masterHasItsDisk() bool {
	return !assign.OnDevices(b.in.FileSystem.Spec.MetadataServers.Targets) || slices.ContainsFunc(recordedTarget(b.in), assign.Finished)
}

// daemonGroup is the gid of the daemons' user in all images.
const daemonGroup int64 = 9421

// pods returns the builder of the filesystem's pods.
func pods(in backend.Input) podspec.Pods {
	master, _ := masterNode(in)
	return podspec.Pods{
		FileSystem: in.FileSystem, Images: in.Images, Software: "moosefs", Group: daemonGroup, Management: podspec.ManagementAt(master),
	}
}

// toldVolume returns a volume with the configuration of the node binary. The one with secrets is only in the pods on the master's node. A
// kubelet may read the Secrets of the pods on its node, and other nodes must not get the operator's password.
func toldVolume(fs *v1alpha1.FileSystem, name string) corev1.Volume {
	if name == secretVolume {
		return podspec.SecretVolume(name, secretName(fs))
	}
	return podspec.ConfigVolume(name, configMapName(fs))
}

// The volumes with the configuration of the node binary.
const (
	configVolume = "config"
	secretVolume = "secret"
)

func (b *builder) pod(component, pool string, told ...string) *corev1.PodTemplateSpec {
	volumes := make([]corev1.Volume, len(told))
	for i, name := range told {
		volumes[i] = toldVolume(b.in.FileSystem, name)
	}
	return pods(b.in).Template(podspec.Workload{Component: component, StoragePool: pool}, volumes...)
}

// daemon returns a container of a component that runs a verb of the node binary, configured by a file of configVolume or secretVolume.
func (b *builder) daemon(component, name, verb, volume, file string) corev1.Container {
	return pods(b.in).Container(name, b.images[component], verb, volume, file)
}

func (b *builder) fuseDevice(pod *corev1.PodTemplateSpec, c *corev1.Container) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "fuse", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/dev/fuse", Type: new(corev1.HostPathCharDev)}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "fuse", MountPath: "/dev/fuse"})
}
