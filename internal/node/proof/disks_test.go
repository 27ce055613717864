//go:build disks

package proof_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
)

// disk is a formatted file, mounted through a loop device.
type disk struct {
	image string
	uuid  string
}

func command(t *testing.T, argv ...string) {
	t.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(argv, " "), output)
}

// newDisk makes one with a given UUID, as the agent does.
func newDisk(t *testing.T, fsType, uuid string) disk {
	t.Helper()
	d := disk{image: filepath.Join(t.TempDir(), "image"), uuid: uuid}
	g := NewWithT(t)
	g.Expect(os.WriteFile(d.image, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(d.image, 512<<20)).To(Succeed())
	switch fsType {
	case "xfs":
		command(t, "mkfs.xfs", "-q", "-m", "uuid="+uuid, d.image)
	case "btrfs":
		command(t, "mkfs.btrfs", "-q", "-U", uuid, d.image)
	default:
		command(t, "mkfs."+fsType, "-q", "-U", uuid, d.image)
	}
	return d
}

// mount mounts the disk, and puts a marker on it.
func (d disk) mount(t *testing.T, path string, options ...string) {
	t.Helper()
	NewWithT(t).Expect(os.MkdirAll(path, 0o755)).To(Succeed())
	command(t, "mount", "-o", strings.Join(append([]string{"loop"}, options...), ","), d.image, path)
	t.Cleanup(func() { command(t, "umount", path) })
}

func (d disk) marker() spec.TargetMarker {
	return spec.TargetMarker{Version: spec.TargetMarkerVersion, Owner: owner, Target: "a", UUID: d.uuid}
}

func mark(t *testing.T, path string, marker spec.TargetMarker) {
	t.Helper()
	g := NewWithT(t)
	content, err := json.Marshal(marker)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(path, spec.TargetMarkerFile), content, 0o600)).To(Succeed())
}

func TestARealDiskIsNotProvenWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, path string, d disk)
		reason string
	}{
		"it is unmounted, and the files lie in the mountpoint": {func(t *testing.T, path string, d disk) {
			t.Helper()
			command(t, "umount", path)
			mark(t, path, d.marker())
			t.Cleanup(func() { d.mountAgain(t, path) })
		}, "is not mounted"},
		"another disk with a copy of its marker is mounted over it": {func(t *testing.T, path string, d disk) {
			t.Helper()
			newDisk(t, "xfs", otherUUID).mount(t, path)
			mark(t, path, d.marker())
		}, "its UUID is " + otherUUID},
		"a directory of another disk with its marker is mounted over it": {func(t *testing.T, path string, d disk) {
			t.Helper()
			g, other := NewWithT(t), t.TempDir()
			g.Expect(os.Mkdir(filepath.Join(other, "b"), 0o755)).To(Succeed())
			mark(t, filepath.Join(other, "b"), d.marker())
			bind(t, filepath.Join(other, "b"), path)
		}, "only the directory"},
		"a directory of its own is mounted over it": {func(t *testing.T, path string, d disk) {
			t.Helper()
			NewWithT(t).Expect(os.Mkdir(filepath.Join(path, "b"), 0o755)).To(Succeed())
			mark(t, filepath.Join(path, "b"), d.marker())
			bind(t, filepath.Join(path, "b"), path)
		}, "only the directory /b"},
		"the marker names another disk": {func(t *testing.T, path string, d disk) {
			t.Helper()
			marker := d.marker()
			marker.UUID = otherUUID
			mark(t, path, marker)
		}, "so the marker was copied here"},
		"the marker is another FileSystem's": {func(t *testing.T, path string, d disk) {
			t.Helper()
			marker := d.marker()
			marker.Owner.Name = "home"
			mark(t, path, marker)
		}, "belongs to the FileSystem storage/home"},
		"the marker is gone": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			NewWithT(t).Expect(os.Remove(filepath.Join(path, spec.TargetMarkerFile))).To(Succeed())
		}, "is not there"},
		"the marker is a symbolic link to a right one": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			g, marker := NewWithT(t), filepath.Join(path, spec.TargetMarkerFile)
			g.Expect(os.Rename(marker, filepath.Join(path, "marker"))).To(Succeed())
			g.Expect(os.Symlink("marker", marker)).To(Succeed())
		}, "is a symbolic link"},
		"the marker is a pipe": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			g, marker := NewWithT(t), filepath.Join(path, spec.TargetMarkerFile)
			g.Expect(os.Remove(marker)).To(Succeed())
			g.Expect(unix.Mkfifo(marker, 0o600)).To(Succeed())
		}, "is not a plain file"},
		"the marker is mounted from elsewhere": {func(t *testing.T, path string, d disk) {
			t.Helper()
			other := t.TempDir()
			mark(t, other, d.marker())
			bind(t, filepath.Join(other, spec.TargetMarkerFile), filepath.Join(path, spec.TargetMarkerFile))
		}, "lies on another filesystem"},
		"the marker belongs to another user": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			NewWithT(t).Expect(os.Chown(filepath.Join(path, spec.TargetMarkerFile), 9421, 9421)).To(Succeed())
		}, "belongs to the user 9421, not to root"},
		"others can write the marker": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			NewWithT(t).Expect(os.Chmod(filepath.Join(path, spec.TargetMarkerFile), 0o666)).To(Succeed())
		}, "has the mode 0666"},
		"the marker is damaged": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			NewWithT(t).Expect(os.Truncate(filepath.Join(path, spec.TargetMarkerFile), 20)).To(Succeed())
		}, "is damaged"},
		"the marker is of a newer operator": {func(t *testing.T, path string, d disk) {
			t.Helper()
			marker := d.marker()
			marker.Version++
			mark(t, path, marker)
		}, "the program is older than the file"},
		"it is read-only": {func(t *testing.T, path string, _ disk) {
			t.Helper()
			command(t, "mount", "-o", "remount,ro", path)
		}, "is mounted read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d, path := newDisk(t, "xfs", uuid), filepath.Join(t.TempDir(), "a")
			d.mount(t, path)
			mark(t, path, d.marker())
			of := spec.Target{Name: "a", Path: path, UUID: d.uuid}
			g.Expect(proof.Prove(of, owner)).To(Succeed(), "it is right before the change")
			c.change(t, path, d)
			g.Expect(proof.Prove(of, owner)).To(MatchError(And(HavePrefix("target a"), ContainSubstring(path), ContainSubstring(c.reason))))
		})
	}
}

// mountAgain mounts the disk again for the cleanup, which unmounts it.
func (d disk) mountAgain(t *testing.T, path string) {
	t.Helper()
	command(t, "mount", "-o", "loop", d.image, path)
}

func bind(t *testing.T, from, to string) {
	t.Helper()
	command(t, "mount", "--bind", from, to)
	t.Cleanup(func() { command(t, "umount", to) })
}

func TestALinkInThePlaceOfAMountpointIsNotFollowed(t *testing.T) {
	g := NewWithT(t)
	d, directory := newDisk(t, "ext4", uuid), t.TempDir()
	path, link := filepath.Join(directory, "a"), filepath.Join(directory, "b")
	d.mount(t, path)
	mark(t, path, d.marker())
	g.Expect(os.Symlink(path, link)).To(Succeed())
	g.Expect(proof.Prove(spec.Target{Name: "a", Path: link, UUID: d.uuid}, owner)).To(MatchError(ContainSubstring("symbolic link, which is not followed")))
	g.Expect(os.Symlink(directory, filepath.Join(directory, "c"))).To(Succeed())
	g.Expect(proof.Prove(spec.Target{Name: "a", Path: filepath.Join(directory, "c", "a"), UUID: d.uuid}, owner)).To(MatchError(ContainSubstring("is not mounted")))
}

func TestAProofChangesNothing(t *testing.T) {
	g := NewWithT(t)
	d, path := newDisk(t, "ext4", uuid), filepath.Join(t.TempDir(), "a")
	d.mount(t, path, "ro", "noload")
	before, err := os.ReadFile(d.image)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(proof.Prove(spec.Target{Name: "a", Path: path, UUID: d.uuid}, owner)).To(MatchError(ContainSubstring(fmt.Sprintf("%s is not there", filepath.Join(path, spec.TargetMarkerFile)))))
	after, err := os.ReadFile(d.image)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(before, after)).To(BeTrue())
}
