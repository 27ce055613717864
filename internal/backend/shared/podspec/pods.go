package podspec

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	binaryDirectory = "/parallelfs"
	// NodeBinary is the path of the node binary in every container.
	NodeBinary = binaryDirectory + "/node"
	// ToldDirectory holds the JSON configuration of the node binary.
	ToldDirectory = "/etc/parallelfs"
	// RunDirectory is a memory-backed volume of each pod, for files that the node binary writes at start.
	RunDirectory = "/run/parallelfs"
)

// installContainer is the init container that copies the node binary from the node image.
const installContainer = "install"

// NodeImage returns the node image that a pod was made with, empty for a pod without one.
func NodeImage(pod *corev1.PodSpec) string {
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; c.Name == installContainer {
			return c.Image
		}
	}
	return ""
}

// RoleClient is the role of pods that mount the filesystem. No status lists it among the daemons.
const RoleClient v1alpha1.Role = "Client"

// Pods builds the pods of one filesystem.
type Pods struct {
	FileSystem *v1alpha1.FileSystem
	Images     backend.Images
	// Software is the label app.kubernetes.io/name, such as "example".
	Software string
	// Group is the gid of the daemons' user in all images; 0 if they run as root.
	Group int64
	// Management is the node whose address is in the configuration of all daemons, in the form of ManagementAt; empty if there is none.
	Management string
}

// ManagementAnnotation on a pod template is the node whose address is in the configuration of its daemons, with the address, such as
// "n1=10.0.0.1". It is not part of the template's hash, because the configuration is.
const ManagementAnnotation = "parallelfs.dev/management"

// ManagementAt returns the value of ManagementAnnotation for a node, empty for a node without an address.
func ManagementAt(n backend.Node) string {
	if n.IP == "" {
		return ""
	}
	return n.Name + "=" + n.IP
}

// Moved compares two values of ManagementAnnotation. It returns a sentence if the node has another address now; empty if the address is the
// same or unknown.
func Moved(then, now string) string {
	node, before, ok := strings.Cut(then, "=")
	same, after, known := strings.Cut(now, "=")
	if !ok || !known || node != same || before == after {
		return ""
	}
	return fmt.Sprintf("node %s has another address: %s → %s", node, before, after)
}

// CertificateAnnotation on a pod template is the SHA-256 of the certificate that its server starts with (status.certificate). Whether
// another one needs a restart is in the template's hash.
const CertificateAnnotation = "parallelfs.dev/certificate"

// Workload describes the pods of a DaemonSet or a Job.
type Workload struct {
	Component string
	// Role of the daemon, RoleClient for pods that mount; empty for a Job.
	Role v1alpha1.Role
	// StoragePool and Slot are empty for pods that have none.
	StoragePool, Slot string
}

// Labels returns the labels of the pods, and of the object that creates them.
func (p Pods) Labels(w Workload) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelManagedBy:       v1alpha1.ManagedBy,
		"app.kubernetes.io/name":      p.Software,
		"app.kubernetes.io/instance":  p.FileSystem.Name,
		"app.kubernetes.io/component": w.Component,
	}
	maps.Copy(labels, p.selector(w))
	return labels
}

func (p Pods) selector(w Workload) map[string]string {
	selector := map[string]string{v1alpha1.LabelFileSystem: p.FileSystem.Name, v1alpha1.LabelComponent: w.Component}
	if w.StoragePool != "" {
		selector[v1alpha1.LabelStoragePool] = w.StoragePool
	}
	if w.Slot != "" {
		selector[v1alpha1.LabelSlot] = w.Slot
	}
	return selector
}

// Template returns what all pods of a filesystem share. They use the host's network, because servers register the address that they connect
// from. They get no token of the API server. An init container brings the node binary. Unless the user sets tolerations, no taint evicts
// them, because a daemon has to stay with its data. The volumes hold the configuration of the containers.
func (p Pods) Template(w Workload, volumes ...corev1.Volume) *corev1.PodTemplateSpec {
	install := corev1.Container{
		Name: installContainer, Image: p.Images.Node, ImagePullPolicy: corev1.PullPolicy(p.Images.PullPolicy),
		Command:         []string{"/node", "install", binaryDirectory},
		VolumeMounts:    []corev1.VolumeMount{{Name: binaryVolume, MountPath: binaryDirectory}},
		SecurityContext: p.Unprivileged(),
		Resources:       Requests("10m", "16Mi"),
	}
	security := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if p.Group != 0 {
		security.FSGroup = new(p.Group)
	}
	asked := p.FileSystem.Spec.Pods
	labels := labelsOf(p.FileSystem)
	maps.Copy(labels, p.Labels(w))
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotationsOf(p.FileSystem)},
		Spec: corev1.PodSpec{
			HostNetwork:                  true,
			DNSPolicy:                    corev1.DNSClusterFirstWithHostNet,
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			PriorityClassName:            cmp.Or(asked.PriorityClassName, "system-node-critical"),
			ServiceAccountName:           asked.ServiceAccountName,
			Tolerations:                  p.tolerations(w.Role),
			ImagePullSecrets:             pullSecretsOf(p.FileSystem),
			SecurityContext:              security,
			InitContainers:               []corev1.Container{install},
			Volumes: append([]corev1.Volume{
				{Name: binaryVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			}, volumes...),
		},
	}
}

// Container returns a container that runs a verb of the node binary in an image. The configuration is a file of a volume.
func (p Pods) Container(name, image, verb, volume, file string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullPolicy(p.Images.PullPolicy),
		Command: []string{NodeBinary, verb, "--spec", ToldDirectory + "/" + file},
		Env: []corev1.EnvVar{
			{Name: "NODE_IP", ValueFrom: fieldRef("status.hostIPs")},
			{Name: "NODE_NAME", ValueFrom: fieldRef("spec.nodeName")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: binaryVolume, MountPath: binaryDirectory, ReadOnly: true},
			{Name: "run", MountPath: RunDirectory},
			{Name: volume, MountPath: ToldDirectory, ReadOnly: true},
		},
		Resources:                Requests("50m", "64Mi"),
		SecurityContext:          DataDaemon(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// DaemonSet returns a DaemonSet that runs a pod on its nodes and never restarts it (OnDelete). The first container is the daemon. The
// template has a hash of everything that would need a restart, so that the controller finds outdated pods.
func (p Pods) DaemonSet(suffix string, w Workload, pod *corev1.PodTemplateSpec, config ...any) *appsv1.DaemonSet {
	if asked := p.resources(w.Role); asked != nil {
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: asked.Requests.Quantities(), Limits: asked.Limits.Quantities()}
	}
	pod.Spec.Tolerations = p.tolerations(w.Role)
	// A new node in a pool does not restart the daemons on the other nodes. Neither does a change that only the start of a pod needs.
	daemon := pod.DeepCopy()
	daemon.Spec.Affinity, daemon.Spec.Tolerations, daemon.Spec.ImagePullSecrets, daemon.Spec.PriorityClassName = nil, nil, nil, ""
	daemon.Spec.ServiceAccountName = ""
	daemon.Labels, daemon.Annotations = nil, nil
	// A release of the operator does not restart daemons either: the new node binary, and the containers beside the daemon, come with the next
	// restart (ADR 0062).
	daemon.Spec.InitContainers, daemon.Spec.Containers = nil, daemon.Spec.Containers[:min(1, len(daemon.Spec.Containers))]
	for i := range daemon.Spec.Containers {
		c := &daemon.Spec.Containers[i]
		if c.ImagePullPolicy = ""; c.Image == p.Images.Node {
			c.Image = "" // it runs only the node binary
		}
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, backend.TemplateHashAnnotation, backend.Hash(append(config, daemon)...))
	if p.Management != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, ManagementAnnotation, p.Management)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, backend.VersionAnnotation, backend.VersionOf(p.FileSystem, w.Component))
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: backend.ChildName(p.FileSystem, suffix), Namespace: p.FileSystem.Namespace, Labels: p.Labels(w),
		},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: p.selector(w)},
			Template:       *pod,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		},
	}
}

// labelsOf returns the labels that the user adds to pods.
func labelsOf(fs *v1alpha1.FileSystem) map[string]string {
	out := map[string]string{}
	for name, value := range fs.Spec.Pods.Labels {
		out[name] = string(value)
	}
	return out
}

// annotationsOf returns the annotations that the user adds to pods, nil for none.
func annotationsOf(fs *v1alpha1.FileSystem) map[string]string {
	if len(fs.Spec.Pods.Annotations) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, value := range fs.Spec.Pods.Annotations {
		out[name] = string(value)
	}
	return out
}

// tolerations returns the tolerations of pods of a role. Pods without a role may run on nodes of several roles, and tolerate what any role
// tolerates. Without tolerations in the spec, pods tolerate every taint.
func (p Pods) tolerations(role v1alpha1.Role) []corev1.Toleration {
	all := p.FileSystem.Spec.Pods.Tolerations
	by := p.FileSystem.Spec.Pods.TolerationsByRole
	of := map[v1alpha1.Role][]v1alpha1.Toleration{
		v1alpha1.RoleManagement: by.Management, v1alpha1.RoleMetadata: by.Metadata, v1alpha1.RoleMetadataBackup: by.MetadataBackup,
		v1alpha1.RoleStorage: by.Storage, RoleClient: by.Client,
	}
	switch own := of[role]; {
	case len(own) > 0:
		return tolerationsOf(own)
	case len(all) == 0:
		return []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	case role != "":
		return tolerationsOf(all)
	}
	return tolerationsOf(all, by.Management, by.Metadata, by.MetadataBackup, by.Storage, by.Client)
}

// TolerationsOf returns the tolerations of pods that can run on any node: those that the user sets for all pods.
func TolerationsOf(fs *v1alpha1.FileSystem) []corev1.Toleration {
	return tolerationsOf(fs.Spec.Pods.Tolerations)
}

func tolerationsOf(lists ...[]v1alpha1.Toleration) []corev1.Toleration {
	var out []corev1.Toleration
	for _, t := range slices.Concat(lists...) {
		out = append(out, corev1.Toleration{
			Key: string(t.Key), Operator: t.Operator, Value: string(t.Value), Effect: t.Effect, TolerationSeconds: t.TolerationSeconds,
		})
	}
	return out
}

// pullSecretsOf returns the pull secrets that the user sets for pods.
func pullSecretsOf(fs *v1alpha1.FileSystem) []corev1.LocalObjectReference {
	var out []corev1.LocalObjectReference
	for _, s := range fs.Spec.Pods.ImagePullSecrets {
		out = append(out, corev1.LocalObjectReference{Name: s.Name})
	}
	return out
}

// resources returns the resources that the user sets, nil for the operator's defaults.
func (p Pods) resources(role v1alpha1.Role) *v1alpha1.ContainerResources {
	asked := p.FileSystem.Spec.Pods.Resources
	return map[v1alpha1.Role]*v1alpha1.ContainerResources{
		v1alpha1.RoleManagement: asked.Management, v1alpha1.RoleMetadata: asked.Metadata, v1alpha1.RoleMetadataBackup: asked.MetadataBackup,
		v1alpha1.RoleStorage: asked.Storage, RoleClient: asked.Client,
	}[role]
}

// ConfigVolume returns a volume of a ConfigMap.
func ConfigVolume(name, configMap string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}
}

// SecretVolume returns a volume of a Secret that only root and the daemons' group may read.
func SecretVolume(name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: new(int32(0o440))}}}
}

// HostDirectory gives a container a directory of the node at the same path.
func HostDirectory(
	pod *corev1.PodTemplateSpec, c *corev1.Container, name, directory string, propagation *corev1.MountPropagationMode,
) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: directory, Type: new(corev1.HostPathDirectoryOrCreate)}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: directory, MountPropagation: propagation})
}

// MountOnNode gives a client's container the directories that it needs to mount the filesystem on the node: the parent directory of the
// users' mountpoint, and a directory of this FileSystem only. The latter is all that the pods of benchmarks get.
func MountOnNode(pod *corev1.PodTemplateSpec, c *corev1.Container, fs *v1alpha1.FileSystem, mount *spec.Mount) {
	own := spec.MountsDirectory(fs.Namespace, fs.Name)
	mount.View = path.Join(own, path.Base(mount.Path))
	HostDirectory(pod, c, "mounts", path.Dir(mount.Path), new(corev1.MountPropagationBidirectional))
	HostDirectory(pod, c, "view", own, new(corev1.MountPropagationBidirectional))
}

// probeKeyDirectory holds the signing key of the probe, in the probe's container only. The kubelet updates the file when the Secret
// changes.
const probeKeyDirectory = "/etc/parallelfs-probe"

// ProbeKeyFile is the file with the signing key of the probe.
const ProbeKeyFile = probeKeyDirectory + "/" + exchange.ProbeKey

// ServeProbe makes a container serve the answers of `node probe` on a port, with the key to sign them. The container has no privileges.
func (p Pods) ServeProbe(pod *corev1.PodTemplateSpec, c *corev1.Container, port int32) {
	const volume = "probe-key"
	pod.Spec.Volumes = append(pod.Spec.Volumes, SecretVolume(volume, exchange.ProbeSecretName(p.FileSystem)))
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: probeKeyDirectory, ReadOnly: true})
	c.SecurityContext = p.Unprivileged()
	c.Ports = []corev1.ContainerPort{{Name: "probe", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/readyz", Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 5, TimeoutSeconds: 3, FailureThreshold: 2,
	}
}

// CheckMount makes a container Ready while the mount in the configuration file responds. Each check starts a process on the node, so checks
// are rare; the client itself watches the mount all the time.
func CheckMount(c *corev1.Container, file string) {
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: []string{NodeBinary, "check-mount", "--spec", ToldDirectory + "/" + file},
		}},
		InitialDelaySeconds: 3, PeriodSeconds: 10, TimeoutSeconds: 8, FailureThreshold: 1,
	}
}

// CheckServed makes a container Ready while the targets in the configuration file are mounted, as CheckMount does for a client.
func CheckServed(c *corev1.Container, file string) {
	CheckMount(c, file)
	c.ReadinessProbe.Exec.Command[1] = "check-served"
}

// binaryVolume holds the node binary that installContainer copied.
const binaryVolume = "binary"

const (
	// ToldAnnotation on the pod of a Job holds its configuration. It is in the pod itself because a ConfigMap could change while the Job runs.
	ToldAnnotation = "parallelfs.dev/told"
	jobDirectory   = "/etc/parallelfs-job"
	jobFile        = "told.json"
)

// TellJob makes a container of a Job run a verb of the node binary with the given configuration. It replaces all annotations of the pod.
func TellJob(pod *corev1.PodTemplateSpec, c *corev1.Container, verb string, config any) {
	const volume = "told"
	pod.Annotations = map[string]string{ToldAnnotation: string(backend.Encode(config))}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path: jobFile, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + ToldAnnotation + "']"},
		}}},
	}})
	c.Command = []string{NodeBinary, verb, "--spec", path.Join(jobDirectory, jobFile)}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: jobDirectory, ReadOnly: true})
}

func fieldRef(fieldPath string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fieldPath}}
}

// Requests returns requests without limits, because a daemon that is throttled or killed for its memory hangs every client.
func Requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

// DataDaemon grants chown and setuid, which a daemon needs when it starts.
func DataDaemon() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(0)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{
			Drop: []corev1.Capability{"ALL"},
			Add:  []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "SYS_NICE"},
		},
	}
}

// Nobody owns no file of a daemon. It is the number of a user and of a group.
const Nobody = 65534

// Unprivileged returns a security context without any privileges. It runs as the daemons' user, or as Nobody if the daemons run as root.
func (p Pods) Unprivileged() *corev1.SecurityContext {
	user := p.Group
	if user == 0 {
		user = Nobody
	}
	return &corev1.SecurityContext{
		RunAsUser: new(user), RunAsGroup: new(user), RunAsNonRoot: new(true),
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// Privileged returns a security context with all privileges of root, for a mount that is visible on the node (Kubernetes: mount
// propagation, Bidirectional).
func Privileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
}
