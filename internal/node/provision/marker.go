package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
	"parallelfs.dev/operator/internal/plan"
)

// markerLimit is the largest marker that is read, in bytes.
const markerLimit = 64 << 10

// ErrNoMarker means that the filesystem holds no marker of a target.
var ErrNoMarker = errors.New("there is no " + spec.TargetMarkerFile + " on it")

// markerOf is what is written on the disk of a target.
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

// writeMarker writes the marker at the top of a mounted filesystem, such that it is on the disk when this returns.
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

// ReadMarker reads the marker of a device that is not mounted. The device is mounted read-only, without a replay of its
// journal and where no other process sees it; not a bit of it changes. ErrNoMarker says that there is none.
// logDevice is the path of the device with the external log, or empty; signature is the type of what is on the device in libblkid.
func ReadMarker(device, logDevice, signature string) (marker *plan.Marker, err error) {
	found, known := registry.BySignature(signature)
	if !known {
		return nil, fmt.Errorf("%s carries %q, which is not a filesystem of targets", device, signature)
	}
	mounted, err := volume{format: found, device: device, logDevice: logDevice}.readOnly()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mounted.Close()) }()
	return ReadMountedMarker(mounted.path())
}

// ReadMountedMarker reads the marker at a mountpoint. ErrNoMarker says that there is none.
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
