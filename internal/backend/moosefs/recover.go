package moosefs

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Lost metadata of MooseFS is made again by `mfsmaster -a restore` from what a metalogger has, or from a backup, which is the same: the
// last saved metadata and the change logs since (mfsmaster(8), mfsmetalogger(8)). It leaves a metadata.mfs, as a clean stop does, with
// which a master starts without -a.

const componentRecovery = "recovery"

// Where the pod of a recovery has what.
const (
	recoverySource  = "/source"
	recoveryScratch = "/scratch"
)

// A look may take lookSeconds with all that its pod waits for, such as a volume; restoring takes restoreSeconds at most.
const (
	lookSeconds    = 30 * 60
	restoreSeconds = 6 * 3600
)

// MetadataComponent is the master.
func (Backend) MetadataComponent() string { return componentMaster }

// RecoverySources are the metaloggers' directories, the places of backups, and that of the master.
func (Backend) RecoverySources(in backend.Input) []backend.RecoverySource {
	in = in.Indexed()
	fs := in.FileSystem
	if fs.Status.Metadata == nil {
		return nil
	}
	out := []backend.RecoverySource{{
		Name: componentMaster + "-" + fs.Status.Metadata.Node, Kind: v1alpha1.RecoveryServer,
		Node: fs.Status.Metadata.Node, Directory: fs.Status.Metadata.Directory, OnTarget: fs.Status.Metadata.Target != "",
	}}
	if metaloggers := own(fs).Metaloggers; metaloggers != nil {
		for _, node := range backend.Matching(in.Nodes, metaloggers.NodeSelector) {
			out = append(out, backend.RecoverySource{
				Name: componentMetalogger + "-" + node.Name, Kind: v1alpha1.RecoveryFollower, Node: node.Name,
				Directory: stateDirectory(fs, componentMetalogger),
			})
		}
	}
	if fs.Spec.Backups != nil {
		for _, p := range backend.BackupPlaces(fs, in.Nodes) {
			s := backend.RecoverySource{
				Name: "backup-in-" + p.Claim, Kind: v1alpha1.RecoveryBackup, Claim: p.Claim, ObjectStore: p.ObjectStore, Node: p.Node,
				Directory: path.Join(p.Directory, backend.BackupDirectory(fs)),
			}
			switch {
			case p.Node != "":
				s.Name = "backup-at-" + p.Node
			case p.ObjectStore != "":
				s.Name = "backup-s3-" + path.Base(p.ObjectStore)
			}
			out = append(out, s)
		}
	}
	return out
}

// RecoveryJob looks at a source, or makes the metadata again, by `node recover`.
func (Backend) RecoveryJob(in backend.Input, request backend.RecoveryRequest) (*batchv1.Job, spec.Recovery, error) {
	in = in.Indexed()
	fs, source := in.FileSystem, request.Source
	// What a master has written, only programs of its version surely read.
	version := backend.VersionOf(fs, componentMaster)
	image, ok := in.Images.Daemons["moosefs-"+version]
	if !ok {
		return nil, spec.Recovery{}, backend.Invalid(v1alpha1.ReasonInvalidSpec, "the operator has no image for MooseFS %s", version)
	}
	told := spec.Recovery{Owner: backend.Owner(fs), Backend: string(v1alpha1.MooseFS), Version: version, Scratch: recoveryScratch}
	pod := pods(in).Template(backend.Workload{Component: componentRecovery}, corev1.Volume{
		Name: configVolume, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{{
			Path:     backend.RecoveryToldFile,
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + backend.RecoveryToldAnnotation + "']"},
		}}}},
	})
	pod.Labels, pod.Annotations = nil, nil
	pod.Spec.HostNetwork, pod.Spec.DNSPolicy = false, corev1.DNSDefault // it talks to nobody
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	pod.Spec.PriorityClassName = fs.Spec.Pods.PriorityClassName // no daemon is to give way to it
	b := builder{in: in, images: map[string]string{componentRecovery: image}}
	c := b.daemon(componentRecovery, componentRecovery, "recover", configVolume, backend.RecoveryToldFile)
	switch {
	case source.ObjectStore != "":
		told.Source.Backups = path.Base(source.Directory)
	case source.Kind == v1alpha1.RecoveryBackup:
		told.Source.Backups = path.Join(recoverySource, path.Base(source.Directory))
	case source.Kind == v1alpha1.RecoveryFollower:
		told.Source = spec.RecoverySource{Directory: recoverySource, Component: componentMetalogger, Data: dataSubdirectory}
	default:
		told.Source = spec.RecoverySource{Directory: recoverySource, Component: componentMaster, Data: dataSubdirectory}
		if source.OnTarget {
			told.Source.Directory = source.Directory
		}
	}
	switch {
	case source.ObjectStore != "":
		pod.Spec.HostNetwork, pod.Spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet // as the pod that has put it there
		told.Source.ObjectStore = backend.UseObjectStore(fs, &pod.Spec, &c)
	case !source.OnTarget:
		mountCopies(pod, &c, source)
	case request.Restore == nil || request.Restore.Target == "": // else it sees all disks
		backend.MountTargets(fs, pod, &c)
		c.VolumeMounts[len(c.VolumeMounts)-1].ReadOnly = true
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: recoveryScratch})
	seconds, node := int64(lookSeconds), source.Node
	if r := request.Restore; r != nil {
		seconds, node = restoreSeconds, r.Node
		told.Restore = &spec.Restore{
			Plan: r.Plan, Backup: r.Backup, Version: r.Version, ID: r.ID, Path: r.Directory, Data: dataSubdirectory, Component: componentMaster,
			User: daemonUser, Ledger: backend.Ledger(fs, componentMaster),
		}
		backend.HostDirectory(pod, &c, "state", backend.StateRoot(fs), nil)
		if t := in.TargetNamed(r.Target); t != nil {
			disk := backend.MemberTarget(fs, t)
			told.Restore.Target = &spec.Target{Name: disk.Name, Path: disk.Path, UUID: disk.UUID}
			backend.MountTargets(fs, pod, &c)
		} else {
			backend.HostDirectory(pod, &c, "metadata", r.Directory, nil)
		}
	} else {
		c.SecurityContext = readsAll(pods(in), source)
	}
	if node != "" {
		pod.Spec.Affinity = backend.OnNodes(node)
	} else {
		pod.Spec.Tolerations = backend.TolerationsOf(fs) // any node will do, and a tainted one is not just any
	}
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: request.Job, Namespace: fs.Namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(1)), ActiveDeadlineSeconds: new(seconds), Template: *pod,
		},
	}, told, nil
}

// mountCopies gives a container the directory of a source, to be read only. A claim has the directory of the backups somewhere below.
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

// readsAll may read what the daemons' user has on a node, and write nothing. Backups are their own user's in a claim, and root's on a node.
func readsAll(p backend.Pods, source backend.RecoverySource) *corev1.SecurityContext {
	out := p.Unprivileged()
	if source.Claim != "" || source.ObjectStore != "" {
		return out
	}
	out.RunAsUser, out.RunAsGroup, out.RunAsNonRoot = new(int64(0)), new(int64(0)), new(false)
	out.Capabilities.Add = []corev1.Capability{"DAC_READ_SEARCH"}
	return out
}

// RecoveryMethod reads copies as a master does after a crash.
func (Backend) RecoveryMethod() backend.RecoveryMethod { return backupMethod{} }

// Usable are the last saved metadata and all change logs, of a metalogger or of a master. A metalogger that has followed for less than an
// hour has got the word that there is no saved metadata yet: the change logs begin with the first change.
func (m backupMethod) Usable(found []backend.CopiedFile) map[string]string {
	out, logs := map[string]string{}, false
	for _, f := range found {
		isLog := isChangeLog(f.Name)
		switch {
		case isLog, strings.HasPrefix(f.Name, "metadata.mfs"), strings.HasPrefix(f.Name, copiedMetadata):
			out[f.Name] = f.Name
		case f.Name == copiedPartly && f.Size == int64(len(newMetadata)) && string(f.Head) == newMetadata:
			out[f.Name] = copiedMetadata
		}
		logs = logs || isLog && f.Size > 0
	}
	if len(out) == 0 || !logs && out["metadata.mfs"] == "" {
		return nil
	}
	return out
}

// Changed reads the last whole line of a change log: "VERSION: SECONDS|CHANGE(…)", with the master's clock (changelog.c and the callers of
// changelog(); 3.0.117 and 4.57.5).
func (m backupMethod) Changed(name string, end []byte) time.Time {
	if !strings.HasPrefix(name, "changelog") {
		return time.Time{}
	}
	lines := bytes.Split(end, []byte("\n"))
	for _, line := range slices.Backward(lines[:len(lines)-1]) {
		var version, seconds int64
		if n, _ := fmt.Sscanf(string(line), "%d: %d|", &version, &seconds); n == 2 {
			return time.Unix(seconds, 0)
		}
	}
	return time.Time{}
}
