package metadatajobs

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// mostInConfigMap is how much of a record one ConfigMap holds. The API server accepts a mebibyte for the whole object.
const mostInConfigMap = 768 << 10

// BackupRecord returns the operator's record of a filesystem: the FileSystem, its FileSystemNodes and its StorageTargets, without fields
// that only this cluster needs. The record is a gzipped List, cut into pieces that fit into a ConfigMap each. A rebuild reads the permanent
// assignments from it. For each target it holds the spec and the disk's local filesystem. It holds no secrets.
func BackupRecord(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode, targets []v1alpha1.StorageTarget) ([][]byte, error) {
	list := metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	add := func(object any) error {
		raw, err := json.Marshal(object)
		list.Items = append(list.Items, runtime.RawExtension{Raw: raw})
		return err //nolint:wrapcheck // the caller adds what it did
	}
	own := func(m metav1.ObjectMeta) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, Labels: m.Labels, Annotations: m.Annotations, Generation: m.Generation,
		}
	}
	version := v1alpha1.GroupVersion.String()
	err := add(v1alpha1.FileSystem{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "FileSystem"}, ObjectMeta: own(fs.ObjectMeta), Spec: fs.Spec, Status: fs.Status,
	})
	for i := 0; i < len(nodes) && err == nil; i++ {
		err = add(v1alpha1.FileSystemNode{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "FileSystemNode"}, ObjectMeta: own(nodes[i].ObjectMeta), Spec: nodes[i].Spec,
		})
	}
	for i := 0; i < len(targets) && err == nil; i++ {
		err = add(v1alpha1.StorageTarget{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "StorageTarget"}, ObjectMeta: own(targets[i].ObjectMeta), Spec: targets[i].Spec,
			Status: v1alpha1.StorageTargetStatus{Provisioned: targets[i].Status.Provisioned},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("encode the record: %w", err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if err := json.NewEncoder(w).Encode(list); err != nil {
		return nil, fmt.Errorf("encode the record: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack the record: %w", err)
	}
	var out [][]byte
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(len(rest), mostInConfigMap)
		out, rest = append(out, rest[:n]), rest[n:]
	}
	return out, nil
}

// BackupConfigMaps returns the ConfigMaps with the configuration of a backup Job and with the record. Their names begin with the name of
// the Job.
func BackupConfigMaps(fs *v1alpha1.FileSystem, job string, config spec.Backup, record [][]byte) []corev1.ConfigMap {
	out := make([]corev1.ConfigMap, len(record))
	for i, name := range BackupConfigMapNames(job, len(record)) {
		out[i] = corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: fs.Namespace, Name: name},
			BinaryData: map[string][]byte{BackupRecordKey: record[i]},
		}
	}
	out[0].Data = map[string]string{BackupToldKey: string(backend.Encode(config))}
	return out
}

// BackupConfigMapNames returns the names of the ConfigMaps of a Job whose record has this number of pieces.
func BackupConfigMapNames(job string, pieces int) []string {
	out := make([]string, pieces)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", job, i)
	}
	return out
}

// The keys of the ConfigMaps of a backup. BackupToldKey holds a spec.Backup and is in the first ConfigMap only; BackupRecordKey holds a
// piece of the record.
const (
	BackupToldKey   = "backup.json"
	BackupRecordKey = "record"
)
