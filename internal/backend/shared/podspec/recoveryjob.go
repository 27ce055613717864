package podspec

import (
	"path"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/node/spec"
)

// The configuration of a recovery Job is an annotation of its pod, which a volume shows as a file.
const (
	RecoveryToldAnnotation = "parallelfs.dev/recovery-told"
	RecoveryToldFile       = "recover.json"
	// RecoveryVolume is that volume.
	RecoveryVolume = "config"
	// RecoveryComponent is the name of the container.
	RecoveryComponent = "recovery"
)

// Paths in the pod of a recovery.
const (
	recoverySource  = "/source"
	recoveryScratch = "/scratch"
)

// An inspection may take lookSeconds, including everything that its pod waits for, such as a volume. A restore may take restoreSeconds.
const (
	lookSeconds    = 30 * 60
	restoreSeconds = 6 * 3600
)

// RecoveryServers describes the servers whose directories a recovery reads and fills.
type RecoveryServers struct {
	// Server keeps the metadata, as User and in the subdirectory Data. Follower, if there is one, keeps a copy of it.
	Server, Follower, User, Data string
}

// RecoveryJob returns the Job of a recovery, whose container runs `node recover`, with its configuration. The backend decides which program
// restores; the rest is the same for all backends.
func (p Pods) RecoveryJob(
	in backend.Input, request backend.RecoveryRequest, c corev1.Container, config spec.Recovery, of RecoveryServers,
) (*batchv1.Job, spec.Recovery) {
	fs, source := in.FileSystem, request.Source
	config.Owner, config.Backend, config.Scratch = backend.Owner(fs), string(fs.Spec.Type), recoveryScratch
	annotation := corev1.DownwardAPIVolumeFile{
		Path:     RecoveryToldFile,
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + RecoveryToldAnnotation + "']"},
	}
	pod := p.Template(Workload{Component: RecoveryComponent}, corev1.Volume{Name: RecoveryVolume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{annotation}},
	}})
	pod.Labels, pod.Annotations = nil, nil
	pod.Spec.HostNetwork, pod.Spec.DNSPolicy = false, corev1.DNSDefault // it needs no network
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.PriorityClassName = fs.Spec.Pods.PriorityClassName // it must not preempt a daemon
	switch {
	case source.ObjectStore != "":
		config.Source.Backups = path.Base(source.Directory)
	case source.Kind == v1alpha1.RecoveryBackup:
		config.Source.Backups = path.Join(recoverySource, path.Base(source.Directory))
	case source.Kind == v1alpha1.RecoveryFollower:
		config.Source = spec.RecoverySource{Directory: recoverySource, Component: of.Follower, Data: of.Data}
	default:
		config.Source = spec.RecoverySource{Directory: recoverySource, Component: of.Server, Data: of.Data}
		if source.OnTarget {
			config.Source.Directory = source.Directory
		}
	}
	switch {
	case source.ObjectStore != "":
		pod.Spec.HostNetwork, pod.Spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet // as the pod that wrote the backup
		config.Source.ObjectStore = UseObjectStore(fs, &pod.Spec, &c)
	case !source.OnTarget:
		mountCopies(pod, &c, source)
	case request.Restore == nil || request.Restore.Target == "": // otherwise it gets all disks
		MountTargets(fs, pod, &c)
		c.VolumeMounts[len(c.VolumeMounts)-1].ReadOnly = true
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: recoveryScratch})
	seconds, node := int64(lookSeconds), source.Node
	if request.Compare != nil {
		node = request.Compare.Node
		config.Compare = &spec.Compare{Backup: request.Compare.Backup}
	}
	if r := request.Restore; r != nil {
		seconds, node = restoreSeconds, r.Node
		config.Restore = &spec.Restore{
			Plan: r.Plan, Backup: r.Backup, Version: r.Version, ID: r.ID, Has: r.Has, Path: r.Directory, Data: of.Data, Component: of.Server,
			User: of.User, Ledger: backend.Ledger(fs, of.Server),
		}
		HostDirectory(pod, &c, "state", backend.StateRoot(fs), nil)
		if t := in.TargetNamed(r.Target); t != nil {
			disk := assign.MemberTarget(fs, t)
			config.Restore.Target = &spec.Target{Name: disk.Name, Path: disk.Path, UUID: disk.UUID}
			MountTargets(fs, pod, &c)
		} else {
			HostDirectory(pod, &c, "metadata", r.Directory, nil)
		}
	} else {
		c.SecurityContext = readsAll(p, source)
	}
	if node != "" {
		pod.Spec.Affinity = OnNodes(node)
	} else {
		pod.Spec.Tolerations = TolerationsOf(fs) // any untainted node will do
	}
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: request.Job, Namespace: fs.Namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(1)), ActiveDeadlineSeconds: new(seconds), Template: *pod,
		},
	}, config
}

// mountCopies gives a container the directory of a source, read-only. In a claim, the directory of the backups is somewhere below the root.
func mountCopies(pod *corev1.PodTemplateSpec, c *corev1.Container, source backend.RecoverySource) {
	volume, mount := corev1.Volume{Name: "source"}, corev1.VolumeMount{Name: "source", MountPath: recoverySource, ReadOnly: true}
	switch {
	case source.Claim != "":
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: source.Claim, ReadOnly: false}
		mount.SubPath = strings.TrimPrefix(path.Dir(source.Directory), ".")
		pod.Spec.SecurityContext.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	case source.Kind == v1alpha1.RecoveryBackup:
		volume.HostPath = &corev1.HostPathVolumeSource{Path: path.Dir(source.Directory), Type: new(corev1.HostPathDirectoryOrCreate)}
	default:
		volume.HostPath = &corev1.HostPathVolumeSource{Path: source.Directory, Type: new(corev1.HostPathDirectoryOrCreate)}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	c.VolumeMounts = append(c.VolumeMounts, mount)
}

// readsAll returns a security context that may read the files of the daemons' user on a node, and write nothing. The owner of backups is
// the backup's own user in a claim, and root on a node.
func readsAll(p Pods, source backend.RecoverySource) *corev1.SecurityContext {
	out := p.Unprivileged()
	if source.Claim != "" || source.ObjectStore != "" {
		return out
	}
	out.RunAsUser, out.RunAsGroup, out.RunAsNonRoot = new(int64(0)), new(int64(0)), new(false)
	out.Capabilities.Add = []corev1.Capability{"DAC_READ_SEARCH"}
	return out
}
