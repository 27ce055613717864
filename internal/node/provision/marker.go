package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/record"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
	"parallelfs.dev/operator/internal/plan"
)

// markerLimit is the largest marker that is read, in bytes.
const markerLimit = 64 << 10

// ErrNoMarker means that the filesystem holds no marker of a target.
var ErrNoMarker = errors.New("there is no " + spec.TargetMarkerFile + " on it")

// markerOf returns the marker for the disk of a target.
func markerOf(target *v1alpha1.StorageTarget, uuid string, now time.Time) spec.TargetMarker {
	s, device := target.Spec, plan.DeviceOf(target)
	return spec.TargetMarker{
		Version: spec.TargetMarkerVersion,
		Owner:   spec.Owner{Namespace: target.Namespace, Name: s.FileSystem.Name, UID: s.FileSystem.UID}, Cluster: s.Cluster,
		Target: target.Name, Role: string(s.Role), StoragePool: s.StoragePool, Slot: s.Slot,
		UUID: uuid, DeviceID: string(device.ID), Serial: device.Serial, WWN: device.WWN,
		Time: now.UTC().Format(time.RFC3339),
	}
}

// writeMarker writes the marker at the top of a mounted filesystem. When it returns, the marker is on the disk.
func writeMarker(top string, marker spec.TargetMarker) error {
	content, err := json.MarshalIndent(marker, "", "  ")
	if err != nil {
		return fmt.Errorf("can't encode the marker: %w", err)
	}
	content = append(content, '\n')
	path := filepath.Join(top, spec.TargetMarkerFile)
	writer := durable.Writer{Chown: os.Chown}
	if err := writer.Text(path, content, durable.Ownership{Mode: 0o600}); err != nil {
		return err
	}
	return syncFileSystem(top)
}

// readMarker reads the marker at the top of a mounted filesystem.
func readMarker(top string) (*spec.TargetMarker, error) {
	content, err := readAtMost(filepath.Join(top, spec.TargetMarkerFile), markerLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoMarker
	}
	if err != nil {
		return nil, fmt.Errorf("can't read the marker of the target: %w", err)
	}
	if err := stored.Check(content, spec.TargetMarkerVersion); err != nil {
		return nil, fmt.Errorf("the marker of the target (%s) %w", spec.TargetMarkerFile, err)
	}
	var marker spec.TargetMarker
	if err := json.Unmarshal(content, &marker); err != nil {
		return nil, fmt.Errorf("the marker of the target (%s) can't be understood (%w); restore it from a backup of the disk", spec.TargetMarkerFile, err)
	}
	return &marker, nil
}

// ReadMarker reads the marker of a device that is not mounted. It mounts the device read-only, without a replay of its journal and where no
// other process sees it, so that not a bit of it changes. ErrNoMarker means that there is none. logDevice is the path of the device with
// the external log, or empty. signature is the type of the device's content in libblkid. The record beside the marker is nil if there is
// none that can be read.
func ReadMarker(device, logDevice, signature string) (marker *plan.Marker, beside *spec.TargetRecord, err error) {
	found, known := registry.BySignature(signature)
	if !known {
		return nil, nil, fmt.Errorf("%s carries %q, which is not a filesystem of targets", device, signature)
	}
	mounted, err := volume{format: found, device: device, logDevice: logDevice}.readOnly()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, mounted.Close()) }()
	marker, err = ReadMountedMarker(mounted.path())
	return marker, record.There(mounted.path()), err
}

// renameOwner changes the owner in the markers of the servers' directories on a disk, from the one that it is taken over from to this
// target's FileSystem. It keeps their uid, by which the server decides whether it may use the data. If a marker names any other owner, it
// returns an error and changes nothing. It may be interrupted and repeated.
func renameOwner(top string, t *v1alpha1.StorageTarget, former v1alpha1.FormerOwner) error {
	entries, err := os.ReadDir(top)
	if err != nil {
		return fmt.Errorf("can't list the disk: %w", err)
	}
	renamed := map[string][]byte{}
	for _, e := range entries {
		path := filepath.Join(top, e.Name(), spec.MarkerFile)
		if !e.IsDir() {
			continue
		}
		content, err := readAtMost(path, markerLimit)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = stored.Check(content, spec.MarkerVersion)
		}
		var marker spec.Marker
		if err == nil {
			err = json.Unmarshal(content, &marker)
		}
		switch own := marker.Owner; {
		case err != nil:
			return fmt.Errorf("the marker %s can't be read, and no marker was changed: %w", path, err)
		case own.Namespace == t.Namespace && own.Name == t.Spec.FileSystem.Name:
			continue
		case own.Namespace != former.Namespace || own.Name != former.FileSystem:
			return fmt.Errorf("the marker %s names the FileSystem %s/%s, and the disk was that of %s/%s; no marker was changed",
				path, own.Namespace, own.Name, former.Namespace, former.FileSystem)
		}
		marker.Owner.Namespace, marker.Owner.Name = t.Namespace, t.Spec.FileSystem.Name
		if content, err = json.MarshalIndent(marker, "", "  "); err != nil {
			return fmt.Errorf("can't encode the marker: %w", err)
		}
		renamed[path] = append(content, '\n')
	}
	writer := durable.Writer{Chown: os.Chown}
	for _, path := range slices.Sorted(maps.Keys(renamed)) {
		if err := writer.Text(path, renamed[path], durable.Ownership{Mode: 0o600}); err != nil {
			return err
		}
	}
	return nil
}

// ReadMountedMarker reads the marker at a mountpoint. ErrNoMarker means that there is none.
func ReadMountedMarker(mountpoint string) (*plan.Marker, error) {
	found, err := readMarker(mountpoint)
	if err != nil {
		return nil, err
	}
	return asFact(found), nil
}

func asFact(m *spec.TargetMarker) *plan.Marker {
	return &plan.Marker{
		Namespace: m.Owner.Namespace, FileSystem: m.Owner.Name, FileSystemUID: m.Owner.UID, Cluster: m.Cluster, Target: m.Target, UUID: m.UUID,
		Role: m.Role, StoragePool: m.StoragePool,
	}
}
