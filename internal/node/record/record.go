// Package record keeps a record of the filesystem beside its data on each of its disks: what was permanently assigned to the filesystem,
// the server and the disk. The agent writes it before a server is configured to use the disk, and reads it when a disk is taken over.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

const (
	// limit bounds the size of a record in bytes.
	limit = 64 << 10
	// mostMessage is the limit of TargetRecord.message, in bytes.
	mostMessage = 1024
)

// Of returns the record of one disk of a server. The second result is false while the FileSystemNode has no facts.
func Of(n *v1alpha1.FileSystemNode, m *v1alpha1.NodeMember, t *v1alpha1.MemberTarget) (spec.TargetRecord, bool) {
	facts := n.Spec.Facts
	if facts == nil {
		return spec.TargetRecord{}, false
	}
	out := spec.TargetRecord{
		Version:    spec.TargetRecordVersion,
		FileSystem: spec.Owner{Namespace: n.Namespace, Name: n.Spec.FileSystem.Name, UID: n.Spec.FileSystem.UID}, Node: n.Spec.Node,
		Type: string(facts.Type), MetadataNode: facts.MetadataNode, MetadataTarget: facts.MetadataTarget, BasePort: facts.BasePort,
		Member: spec.RecordedMember{Name: m.Name, Role: string(m.Role), StoragePool: m.StoragePool, Slot: m.Slot, ID: m.ID},
		Target: t.Name, TargetID: t.ID,
	}
	if t.Initialized != nil {
		out.Initialized = t.Initialized.UTC().Format(time.RFC3339)
	}
	return out, true
}

// Keep writes this record to the disk of a target and syncs it. The target is proven first (proof.Prove), so that nothing is written to
// another disk. Keep can block as long as the disk does.
func Keep(t spec.Target, wanted spec.TargetRecord) error {
	if err := proof.Prove(t, wanted.FileSystem); err != nil {
		return err
	}
	return Write(t.Path, wanted)
}

// Write writes this record to the filesystem that is mounted at a path. An identical record is left alone. The time at which a disk was
// first listed is kept, even if a filesystem that has just taken the disk over does not list it yet.
func Write(top string, wanted spec.TargetRecord) error {
	path := filepath.Join(top, spec.TargetRecordFile)
	there, err := read(path)
	if form := formOf(there); err == nil && form > spec.TargetRecordVersion {
		return fmt.Errorf("%s %w", path, stored.Known("version", form, spec.TargetRecordVersion))
	}
	var before spec.TargetRecord
	if err == nil && json.Unmarshal(there, &before) == nil && before.Target == wanted.Target && wanted.Initialized == "" {
		wanted.Initialized = before.Initialized
	}
	content, err := json.MarshalIndent(wanted, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	content = append(content, '\n')
	if bytes.Equal(there, content) {
		return nil
	}
	return durable.Writer{Chown: os.Chown}.Text(path, content, durable.Ownership{Mode: 0o600})
}

// Read returns the record of a target from the filesystem that is mounted at a path. It is empty if no record was written, and has a
// message if the record can't be used.
func Read(top string, t *v1alpha1.StorageTarget) *v1alpha1.TargetRecord {
	content, err := read(filepath.Join(top, spec.TargetRecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return &v1alpha1.TargetRecord{}
	}
	if err != nil {
		return unusable("the record on the disk can't be read: %s", err)
	}
	return understand(content, t)
}

// formOf returns the format version of a record, or 0 if there is none. A record that can't be parsed is written again, because its whole
// content is known.
func formOf(content []byte) int {
	var form struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(content, &form) != nil {
		return 0
	}
	return form.Version
}

func unusable(format string, arguments ...any) *v1alpha1.TargetRecord {
	return &v1alpha1.TargetRecord{Message: v1alpha1.Cut(fmt.Sprintf(format, arguments...), mostMessage)}
}

func understand(content []byte, t *v1alpha1.StorageTarget) *v1alpha1.TargetRecord {
	if err := stored.Check(content, spec.TargetRecordVersion); err != nil {
		return unusable("the record on the disk (%s) %s", spec.TargetRecordFile, err)
	}
	var found spec.TargetRecord
	if err := json.Unmarshal(content, &found); err != nil {
		return unusable("the record on the disk (%s) can't be understood: %s", spec.TargetRecordFile, err)
	}
	s := t.Spec
	switch {
	case !isOf(found, t.Namespace, s.FileSystem.Name, t.Name, s.Node) && !isOfFormer(found, t):
		return unusable("the record on the disk is that of target %s on node %s of FileSystem %s/%s: it was copied here",
			found.Target, found.Node, found.FileSystem.Namespace, found.FileSystem.Name)
	case found.Member.Role != string(s.Role), found.Member.StoragePool != s.StoragePool:
		return unusable("the record on the disk is that of a server with the role %s and pool %q, and the target has the role %s and pool %q",
			found.Member.Role, found.Member.StoragePool, s.Role, s.StoragePool)
	}
	out := &v1alpha1.TargetRecord{
		Facts: &v1alpha1.FileSystemFacts{
			Type: v1alpha1.FileSystemType(found.Type), MetadataNode: found.MetadataNode, MetadataTarget: found.MetadataTarget,
			BasePort: found.BasePort,
		},
		Member: &v1alpha1.RecordedMember{
			Name: found.Member.Name, Role: s.Role, StoragePool: s.StoragePool, Slot: found.Member.Slot, ID: found.Member.ID,
			TargetID: found.TargetID,
		},
	}
	if found.Initialized != "" {
		when, err := time.Parse(time.RFC3339, found.Initialized)
		if err != nil {
			return unusable("the record on the disk (%s) can't be understood: %s", spec.TargetRecordFile, err)
		}
		out.Member.Initialized = new(metav1.NewTime(when))
	}
	return out
}

func isOf(r spec.TargetRecord, namespace, fileSystem, target, node string) bool {
	return r.FileSystem.Namespace == namespace && r.FileSystem.Name == fileSystem && r.Target == target && r.Node == node
}

// isOfFormer is true for the record of the owner from which a disk was taken over.
func isOfFormer(r spec.TargetRecord, t *v1alpha1.StorageTarget) bool {
	f := t.Status.FormerOwner
	return f != nil && t.Status.Provisioned != nil && isOf(r, f.Owner.Namespace, f.Owner.FileSystem, f.Target, f.Owner.Node)
}

// There returns the record on the filesystem that is mounted at a path, of any owner; nil if there is none that can be read.
func There(top string) *spec.TargetRecord {
	content, err := read(filepath.Join(top, spec.TargetRecordFile))
	if err != nil || stored.Check(content, spec.TargetRecordVersion) != nil {
		return nil
	}
	var found spec.TargetRecord
	if json.Unmarshal(content, &found) != nil {
		return nil
	}
	return &found
}

// read reads a file that is no link, up to the limit.
func read(path string) (content []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	content, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && len(content) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return content, err
}
