package moosefs

import (
	"crypto/sha256"
	"encoding/hex"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

const (
	binaryDirectory = "/parallelfs"
	nodeBinary      = binaryDirectory + "/node"
	// toldDirectory holds the JSON that tells the node binary what to do.
	toldDirectory = "/etc/parallelfs"
)

func (b *builder) labels(component, pool string) map[string]string {
	labels := map[string]string{
		v1alpha1.LabelFileSystem:      b.in.FileSystem.Name,
		v1alpha1.LabelComponent:       component,
		v1alpha1.LabelManagedBy:       v1alpha1.ManagedBy,
		"app.kubernetes.io/name":      "moosefs",
		"app.kubernetes.io/instance":  b.in.FileSystem.Name,
		"app.kubernetes.io/component": component,
	}
	if pool != "" {
		labels[v1alpha1.LabelStoragePool] = pool
	}
	return labels
}

// pod is what all pods of a filesystem share: the host's network, because chunkservers register the address that they
// connect from; no token of the API server; the node binary, brought by an init container; and no eviction for a taint,
// because a daemon that holds data belongs where its data is. It has the
// volumes by which its containers are told what to do: configVolume, secretVolume or both.
func (b *builder) pod(component, pool string, told ...string) *corev1.PodTemplateSpec {
	install := corev1.Container{
		Name: "install", Image: b.in.Images.Node, ImagePullPolicy: corev1.PullPolicy(b.in.Images.PullPolicy),
		Command:         []string{"/node", "install", binaryDirectory},
		VolumeMounts:    []corev1.VolumeMount{{Name: "binary", MountPath: binaryDirectory}},
		SecurityContext: unprivileged(),
		Resources:       requests("10m", "16Mi"),
	}
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: b.labels(component, pool)},
		Spec: corev1.PodSpec{
			HostNetwork:                  true,
			DNSPolicy:                    corev1.DNSClusterFirstWithHostNet,
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			PriorityClassName:            "system-node-critical",
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				FSGroup:        new(daemonGroup),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{install},
			Volumes: []corev1.Volume{
				{Name: "binary", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "run", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
			},
		},
	}
	for _, volume := range told {
		template.Spec.Volumes = append(template.Spec.Volumes, b.toldVolume(volume))
	}
	return template
}

// toldVolume holds what the node binary is told. The secret one belongs in the pods on the master's node only: a kubelet
// may read the Secrets of the pods on its node, and other nodes are not to know the operator's password.
func (b *builder) toldVolume(name string) corev1.Volume {
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMapName(b.in.FileSystem)}}}
	if name == secretVolume {
		source = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: secretName(b.in.FileSystem), DefaultMode: new(int32(0o440))}}
	}
	return corev1.Volume{Name: name, VolumeSource: source}
}

// The volumes that hold what the node binary is told.
const (
	configVolume = "config"
	secretVolume = "secret"
)

// daemonGroup is the gid of the daemons' user in all images.
const daemonGroup int64 = 9421

// daemon is a container that runs a verb of the node binary, told by a file of configVolume or secretVolume.
func (b *builder) daemon(name, verb, volume, file string) corev1.Container {
	return corev1.Container{
		Name: name, Image: b.image, ImagePullPolicy: corev1.PullPolicy(b.in.Images.PullPolicy),
		Command: []string{nodeBinary, verb, "--spec", toldDirectory + "/" + file},
		Env: []corev1.EnvVar{
			{Name: "NODE_IP", ValueFrom: fieldRef("status.hostIP")},
			{Name: "NODE_NAME", ValueFrom: fieldRef("spec.nodeName")},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "binary", MountPath: binaryDirectory, ReadOnly: true},
			{Name: "run", MountPath: runDirectory},
			{Name: volume, MountPath: toldDirectory, ReadOnly: true},
		},
		Resources:                requests("50m", "64Mi"),
		SecurityContext:          dataDaemon(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

func fieldRef(fieldPath string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fieldPath}}
}

func httpGet(path string, port int32) *corev1.HTTPGetAction {
	return &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}
}

// requests without limits: a daemon that is throttled or killed for its memory hangs every client.
func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

// dataDaemon may do what starting a daemon needs: own files as another user, and become that user.
func dataDaemon() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(0)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{
			Drop: []corev1.Capability{"ALL"},
			Add:  []corev1.Capability{"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "SYS_NICE"},
		},
	}
}

func unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(daemonGroup), RunAsGroup: new(daemonGroup), RunAsNonRoot: new(true),
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func privileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
}

// hostDirectory gives a container a directory of the node at the same path.
func (b *builder) hostDirectory(
	pod *corev1.PodTemplateSpec, c *corev1.Container, name, directory string, propagation *corev1.MountPropagationMode,
) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: directory, Type: new(corev1.HostPathDirectoryOrCreate)}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: directory, MountPropagation: propagation})
}

func (b *builder) fuseDevice(pod *corev1.PodTemplateSpec, c *corev1.Container) {
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "fuse", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/dev/fuse", Type: new(corev1.HostPathCharDev)}}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "fuse", MountPath: "/dev/fuse"})
}

// daemonSet runs a pod on its nodes and never restarts it by itself (OnDelete). The template carries a hash of all that
// would need a restart, so that the controller sees which pods are outdated.
func (b *builder) daemonSet(suffix, component, pool string, pod *corev1.PodTemplateSpec, told ...any) *appsv1.DaemonSet {
	// Which nodes a pool has is no reason to restart the daemons of those that it had before.
	anywhere := pod.DeepCopy()
	anywhere.Spec.Affinity = nil
	pod.Annotations = map[string]string{backend.TemplateHashAnnotation: hash(append(told, anywhere)...)}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: childName(b.in.FileSystem, suffix), Namespace: b.in.FileSystem.Namespace, Labels: b.labels(component, pool),
		},
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: b.selector(component, pool)},
			Template:       *pod,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
		},
	}
}

func (b *builder) selector(component, pool string) map[string]string {
	selector := map[string]string{v1alpha1.LabelFileSystem: b.in.FileSystem.Name, v1alpha1.LabelComponent: component}
	if pool != "" {
		selector[v1alpha1.LabelStoragePool] = pool
	}
	return selector
}

func hash(parts ...any) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(encode(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}
