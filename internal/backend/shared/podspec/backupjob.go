package podspec

import (
	"fmt"
	"path"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// Paths in the pod of a backup.
const (
	// BackupVolume holds the configuration of `node backup`, under BackupToldKey.
	BackupVolume = "config"
	backupPlace  = "/backups"
	backupRecord = "/etc/parallelfs-record"
	storeKeys    = "/etc/parallelfs-object-store"
)

// A copy may take copySeconds. The whole backup may take backupSeconds, including everything that its pod waits for, such as a volume.
const (
	copySeconds   = 2 * 3600
	backupSeconds = 6 * 3600
)

// BackupJob returns the Job of a backup. Its container runs `node backup` with the given configuration. The backend decides how the data is
// copied; the rest is the same for all backends.
func (p Pods) BackupJob(
	request backend.BackupRequest, c corev1.Container, config spec.Backup, more ...corev1.Volume,
) (*batchv1.Job, spec.Backup) {
	fs := p.FileSystem
	keep := fs.Spec.Backups.Keep
	config.Owner, config.Backend = backend.Owner(fs), string(fs.Spec.Type)
	config.Name, config.Place, config.Directory, config.Record = request.Backup, backupPlace, backend.BackupDirectory(fs), backupRecord
	config.Keep, config.MaxAgeDays, config.CopySeconds = int(keep.Count), int(keep.MaxAgeDays), copySeconds
	config.ReadAgainDays = int(fs.Spec.Backups.ReadAgainDays)
	names := metadatajobs.BackupConfigMapNames(request.Job, request.Pieces)
	volumes := append([]corev1.Volume{onlyKey(BackupVolume, names[0], metadatajobs.BackupToldKey)}, more...)
	pod := p.Template(Workload{Component: c.Name}, volumes...)
	pod.Labels = nil
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
	// A backup must not preempt a daemon.
	pod.Spec.PriorityClassName = fs.Spec.Pods.PriorityClassName
	const placeVolume, recordVolume = "backups", "record"
	volume := corev1.Volume{Name: placeVolume}
	c.SecurityContext = p.Unprivileged()
	switch place := request.Place; {
	case place.ObjectStore != "":
		config.ObjectStore = UseObjectStore(fs, &pod.Spec, &c)
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: new(mostInPod)}
		pod.Spec.Tolerations = TolerationsOf(fs) // any untainted node will do
	case place.Node != "":
		pod.Spec.Affinity = OnNodes(place.Node)
		volume.HostPath = &corev1.HostPathVolumeSource{Path: place.Directory, Type: new(corev1.HostPathDirectoryOrCreate)}
		// On a node, the directory belongs to root: root without any capability may write there, and nowhere that another user owns.
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup, c.SecurityContext.RunAsNonRoot = new(int64(0)), new(int64(0)), new(false)
	default:
		config.Directory = path.Join(place.Directory, config.Directory)
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: place.Claim}
		pod.Spec.Tolerations = TolerationsOf(fs) // any untainted node will do
		pod.Spec.SecurityContext.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	}
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: placeVolume, MountPath: backupPlace},
		corev1.VolumeMount{Name: recordVolume, MountPath: backupRecord, ReadOnly: true})
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume, recordOf(recordVolume, names))
	pod.Spec.Containers = []corev1.Container{c}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: request.Job, Namespace: fs.Namespace},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(2)), ActiveDeadlineSeconds: new(int64(backupSeconds)), Template: *pod,
		},
	}, config
}

// mostInPod is how much of a node's disk a backup for an object store may use before its pod is evicted. A million files have 75 MB of
// metadata, which is there twice while it is read back.
var mostInPod = resource.MustParse("128Gi")

// UseObjectStore gives a container the credentials of the object store of spec.backups, and returns the configuration of the store. The pod
// reaches the store by the network of the node, as the daemons do.
func UseObjectStore(fs *v1alpha1.FileSystem, pod *corev1.PodSpec, c *corev1.Container) *spec.ObjectStore {
	store := fs.Spec.Backups.ObjectStore
	const volume = "object-store"
	pod.Volumes = append(pod.Volumes, ObjectStoreKeys(volume, store.SecretName))
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: storeKeys, ReadOnly: true})
	return &spec.ObjectStore{
		Endpoint: store.Endpoint, Bucket: store.Bucket, Prefix: store.Prefix, Region: store.Region, Credentials: storeKeys,
	}
}

// ObjectStoreKeys returns a volume with the credentials of an object store: accessKey and secretKey, and ca.crt if the Secret has it.
func ObjectStoreKeys(volume, secret string) corev1.Volume {
	keys := func(optional bool, keys ...string) corev1.VolumeProjection {
		out := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}
		if optional {
			out.Optional = new(true)
		}
		for _, key := range keys {
			out.Items = append(out.Items, corev1.KeyToPath{Key: key, Path: key})
		}
		return corev1.VolumeProjection{Secret: out}
	}
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{keys(false, "accessKey", "secretKey"), keys(true, "ca.crt")},
	}}}
}

// onlyKey returns a volume with one key of a ConfigMap.
func onlyKey(name, configMap, key string) corev1.Volume {
	v := ConfigVolume(name, configMap)
	v.ConfigMap.Items = []corev1.KeyToPath{{Key: key, Path: key}}
	return v
}

// recordOf returns a volume with the pieces of a record in one directory, in the order of their names.
func recordOf(name string, configMaps []string) corev1.Volume {
	projected := &corev1.ProjectedVolumeSource{}
	for i, piece := range configMaps {
		projected.Sources = append(projected.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: piece},
			Items:                []corev1.KeyToPath{{Key: metadatajobs.BackupRecordKey, Path: fmt.Sprintf("record-%03d", i)}},
		}})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: projected}}
}
