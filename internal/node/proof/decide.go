// Package proof proves inside a daemon's container that the disk of a StorageTarget is mounted at its path and is the right disk. Look
// collects the facts only through the mounted filesystem, without access to the device; Decide is pure.
package proof

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// Facts holds the observations at the path of a target.
type Facts struct {
	// Fault explains why there is nothing to inspect, for example that the path is a symbolic link. It is empty otherwise.
	Fault string
	// Mounted is true if a filesystem is mounted at the path itself. The other facts describe the topmost mount.
	Mounted bool
	// Root is the mounted directory of the filesystem; "/" means all of it (proc_pid_mountinfo(5)).
	Root string
	// FSType is the type of the filesystem, such as "xfs".
	FSType string
	// ReadOnly is true if the mount is read-only.
	ReadOnly bool
	// UUID is the UUID that the kernel reports for the mounted filesystem; UUIDFault explains why there is none.
	UUID, UUIDFault string
	// Marker is nil if there is none that can be trusted, and MarkerFault explains why. MarkerGone is true if there is no marker at all.
	Marker      *spec.TargetMarker
	MarkerFault string
	MarkerGone  bool
}

// Decide returns nil if the facts prove that the target t of the FileSystem owner is mounted. The error is a sentence with the target, the
// path and the remedy.
func Decide(t spec.Target, owner spec.Owner, f Facts) error {
	refuse := func(format string, arguments ...any) error {
		return fmt.Errorf("target %s at %s %s", t.Name, t.Path, fmt.Sprintf(format, arguments...))
	}
	marker := filepath.Join(t.Path, spec.TargetMarkerFile)
	look := "kubectl describe storagetarget " + t.Name + " shows why"
	switch {
	case t.UUID == "":
		return refuse("is not provisioned yet: its UUID is not recorded; the node's agent formats and mounts it, %s when it does not", look)
	case f.Fault != "":
		return refuse("can't be used: %s", f.Fault)
	case !f.Mounted:
		return refuse("is not mounted; the node's agent mounts it when the disk is there, %s when it does not", look)
	case f.Root != "/":
		return refuse("has only the directory %s of a filesystem mounted on it, not a whole disk; unmount it (umount %s), the node's agent then mounts the disk",
			f.Root, t.Path)
	case f.UUIDFault != "":
		return refuse("is mounted (%s), but the kernel does not say the UUID of the filesystem: %s", f.FSType, f.UUIDFault)
	case !strings.EqualFold(f.UUID, t.UUID):
		return refuse("has another filesystem mounted on it: its UUID is %s, recorded is %s; unmount it (umount %s) and bring the right disk back; "+
			"to use another disk instead, replace the target", f.UUID, t.UUID, t.Path)
	case f.Marker == nil:
		return refuse("has no marker that can be trusted: %s; nothing is used until then", f.MarkerFault)
	}
	if err := decideMarker(t, owner, marker, f, refuse); err != nil {
		return err
	}
	if f.ReadOnly {
		return refuse("is mounted read-only, as the kernel does after an error; look into the kernel's log (dmesg) for the disk, then remount it")
	}
	return nil
}

func decideMarker(t spec.Target, owner spec.Owner, path string, f Facts, refuse func(string, ...any) error) error {
	m := f.Marker
	switch {
	case m.Owner.Namespace == "" || m.Owner.Name == "" || m.Target == "" || m.UUID == "":
		return refuse("has a marker that does not say whose it is; restore %s from a backup of the disk", path)
	case m.Owner.Namespace != owner.Namespace || m.Owner.Name != owner.Name:
		return refuse("belongs to the FileSystem %s/%s, not to %s/%s (see %s); bring the right disk back", m.Owner.Namespace, m.Owner.Name,
			owner.Namespace, owner.Name, spec.TargetMarkerFile)
	case m.Target != t.Name:
		return refuse("is the disk of the target %s (see %s); unmount it (umount %s), the node's agent then mounts each where it belongs", m.Target,
			spec.TargetMarkerFile, t.Path)
	case !strings.EqualFold(m.UUID, f.UUID):
		return refuse("has the marker of another filesystem: the marker names the UUID %s, the kernel %s, so the marker was copied here; bring the right disk back",
			m.UUID, f.UUID)
	case m.Owner.UID != owner.UID:
		return refuse("was used last by an earlier FileSystem %s/%s (uid %s; this one has %s); the node's agent takes it over, "+
			"kubectl describe storagetarget %s shows why when it does not", owner.Namespace, owner.Name, m.Owner.UID, owner.UID, t.Name)
	}
	return nil
}

// understand refuses an invalid target. The path must be exact, as it is in the mount table.
func understand(t spec.Target) error {
	switch {
	case t.Name == "":
		return errors.New("a target has no name; the operator and its node image must be of the same version")
	case !filepath.IsAbs(t.Path), filepath.Clean(t.Path) != t.Path, t.Path == "/":
		return fmt.Errorf("target %s: %q is not an absolute path without . and .. below /", t.Name, t.Path)
	case t.Directory && t.UUID != "":
		return fmt.Errorf("target %s at %s is called a directory of the node and a disk with the UUID %s; the operator and its node image must be of "+
			"the same version", t.Name, t.Path, t.UUID)
	}
	return nil
}

// Prove returns nil if the target is mounted at its path and is the right disk, see Decide. It changes nothing. It can block as long as the
// disk does. For a directory on the node there is nothing to prove before its own marker is read.
func Prove(t spec.Target, owner spec.Owner) error {
	if err := understand(t); err != nil {
		return err
	}
	if t.Directory {
		return nil
	}
	facts, err := Look(t.Path)
	if err != nil {
		return fmt.Errorf("target %s: %w", t.Name, err)
	}
	return Decide(t, owner, facts)
}
