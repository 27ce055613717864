//go:build disks

// Package provisiontest simulates a node with disks for tests, and the agent that provisions them.
package provisiontest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/disktest"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
)

// Mebi is one MiB in bytes.
const Mebi = 1 << 20

// Lab is a node with disks of its own: sparse files in memory behind loop devices, with links in /dev/disk/by-id, and
// mountpoints in a directory of its own.
type Lab struct {
	gomega.Gomega
	T *testing.T
	// Root is the directory of the mountpoints.
	Root string
	// images is the directory of the files behind the disks. It is in memory, because hundreds of tests sync their disks often.
	images string
	// Made counts the completed runs of mkfs.
	Made int
	// Run replaces provision.Run, for programs that are killed.
	Run provision.Runner
	// NodePrograms is the directory of the node's own programs: the doubles of Lustre's programs, if WithLustre has built them.
	NodePrograms string
}

// lustre is the directory with the doubles of Lustre's programs, empty until they were built.
var lustre string

// WithLustre runs the tests of a package on nodes that have doubles of Lustre's programs for local filesystems.
func WithLustre(m *testing.M) int {
	var err error
	if lustre, err = os.MkdirTemp("", "lustre-doubles"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(lustre)
	binary := filepath.Join(lustre, "lustre-double")
	build := exec.Command("go", "build", "-o", binary, "parallelfs.dev/operator/test/doubles/lustre/cmd/lustre-double")
	if output, err := build.CombinedOutput(); err != nil {
		panic(string(output))
	}
	for _, name := range []string{ldiskfs.Mkfs, ldiskfs.Tunefs} {
		if err := os.Symlink(binary, filepath.Join(lustre, name)); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// New creates a lab, which is removed at the end of the test. It needs root.
func New(t *testing.T) *Lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests attach loop devices and mount them: run them as root (make test-disks)")
	}
	l := &Lab{Gomega: gomega.NewWithT(t), T: t, Root: t.TempDir(), images: t.TempDir(), Run: provision.Run, NodePrograms: lustre}
	l.Expect(unix.Mount("parallelfs-test", l.images, "tmpfs", 0, "")).To(gomega.Succeed())
	// A loop device that a program still has open keeps its file.
	t.Cleanup(func() { l.Expect(unix.Unmount(l.images, unix.MNT_DETACH)).To(gomega.Succeed()) })
	t.Cleanup(l.CloseMountpoints)
	return l
}

// CloseMountpoints unmounts what a test left, and makes the mountpoints removable.
func (l *Lab) CloseMountpoints() {
	points, err := filepath.Glob(filepath.Join(l.Root, spec.TargetsRoot, "*", "*"))
	if err != nil {
		l.T.Error(err)
	}
	for _, point := range points {
		for unix.Unmount(point, unix.UMOUNT_NOFOLLOW) == nil { // as often as something is mounted there
		}
		if err := mounts.Remove(point); err != nil {
			l.T.Error(err)
		}
	}
}

// Must runs a program of the test itself.
func (l *Lab) Must(argv ...string) string {
	l.T.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	l.Expect(err).NotTo(gomega.HaveOccurred(), "%s: %s", strings.Join(argv, " "), out)
	return strings.TrimSpace(string(out))
}

// Disk is a disk of the lab.
type Disk struct {
	Lab *Lab
	// File is the file behind the disk, Loop its device, and Link its link in /dev/disk/by-id.
	File, Loop, Link string
	// Size in bytes.
	Size int64
	// Swap is the size of the swap space in use at the beginning of the disk. The kernel writes to the pages after its first one
	// when it is short of memory, whatever the test does.
	Swap int64
}

// Disk creates a blank disk and attaches it.
func (l *Lab) Disk(name string, size int64) *Disk {
	l.T.Helper()
	d := &Disk{Lab: l, File: filepath.Join(l.images, name+".img"), Size: size}
	l.Expect(os.WriteFile(d.File, nil, 0o600)).To(gomega.Succeed())
	l.Expect(os.Truncate(d.File, size)).To(gomega.Succeed())
	l.Expect(os.MkdirAll("/dev/disk/by-id", 0o755)).To(gomega.Succeed())
	// The serial number of the lab is in the name: others may test on the same machine.
	d.Link = fmt.Sprintf("/dev/disk/by-id/lab-%s-%s", string(uuid.NewUUID())[:8], name)
	d.Attach()
	l.T.Cleanup(func() { d.Detach() })
	return d
}

// Attach attaches the disk to a loop device, with options of losetup(8).
func (d *Disk) Attach(options ...string) {
	d.Lab.T.Helper()
	d.Loop = d.Lab.Must(append(append([]string{"losetup", "--find", "--show"}, options...), d.File)...)
	d.removeStaleLinks()
	d.Lab.Expect(os.Symlink("../../"+filepath.Base(d.Loop), d.Link)).To(gomega.Succeed())
}

// removeStaleLinks removes the links of labs whose tests were killed, which would be other names of this device.
func (d *Disk) removeStaleLinks() {
	links, err := filepath.Glob(filepath.Join(filepath.Dir(d.Link), "lab-*"))
	d.Lab.Expect(err).NotTo(gomega.HaveOccurred())
	for _, link := range links {
		if leads, err := os.Readlink(link); err == nil && filepath.Base(leads) == filepath.Base(d.Loop) {
			d.Lab.Expect(os.Remove(link)).To(gomega.Succeed())
		}
	}
}

// Detach removes the disk. It waits until the kernel has released it.
func (d *Disk) Detach() {
	if d.Loop == "" {
		return
	}
	if err := os.Remove(d.Link); err != nil {
		d.Lab.T.Error(err)
	}
	if out, err := exec.Command("losetup", "--detach", d.Loop).CombinedOutput(); err != nil {
		d.Lab.T.Errorf("losetup --detach %s: %s", d.Loop, out)
	}
	d.Loop = ""
}

// ID returns the name of the disk's link.
func (d *Disk) ID() v1alpha1.DeviceID { return v1alpha1.DeviceID(filepath.Base(d.Link)) }

// KernelName returns the name of the disk's loop device, such as loop0.
func (d *Disk) KernelName() string { return filepath.Base(d.Loop) }

// Identity returns the identity of the disk for a target.
func (d *Disk) Identity() v1alpha1.DeviceIdentity {
	return v1alpha1.DeviceIdentity{ID: d.ID(), SizeBytes: d.Size}
}

// Reattach attaches the disk again, with other options of losetup(8).
func (d *Disk) Reattach(options ...string) {
	d.Lab.T.Helper()
	d.Detach()
	d.Attach(options...)
}

// WriteAt writes to the file behind the disk, through the device's cache.
func (d *Disk) WriteAt(offset int64, content []byte) {
	d.Lab.T.Helper()
	device, err := os.OpenFile(d.Loop, os.O_WRONLY, 0)
	d.Lab.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = device.WriteAt(content, offset)
	d.Lab.Expect(errors.Join(err, device.Sync(), device.Close())).To(gomega.Succeed())
}

// Content returns disktest.Content of the disk.
func (d *Disk) Content() string {
	d.Lab.T.Helper()
	content, err := disktest.Content(d.File, d.Loop, d.Swap)
	d.Lab.Expect(err).NotTo(gomega.HaveOccurred())
	return content
}

// Target returns a StorageTarget on the disk, as the operator creates it.
func (l *Lab) Target(d *Disk, change ...func(t *v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	sum := sha256.Sum256([]byte(d.Link))
	target := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{
			Name: "scratch-ssd-" + hex.EncodeToString(sum[:4]), Namespace: "storage", Generation: 1, UID: types.UID("target-" + d.File),
			Finalizers: []string{v1alpha1.Finalizer},
		},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "11111111-2222-3333-4444-555555555555"}, Node: "oss1",
			Role: v1alpha1.RoleStorage, StoragePool: "ssd", Device: d.Identity(),
			Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4}, FormatPolicy: v1alpha1.FormatIfBlank,
		},
	}
	for _, c := range change {
		c(target)
	}
	return target
}

// Mountpoint returns the mountpoint of a target.
func (l *Lab) Mountpoint(target *v1alpha1.StorageTarget) string {
	return filepath.Join(l.Root, spec.TargetPath(target.Namespace, target.Spec.FileSystem.Name, target.Name))
}

// Agent returns a provisioner like that of an agent that has just started.
func (l *Lab) Agent(hook func(step string, done bool) error) *provision.Provisioner {
	p := provision.New(devices.ThisHost(), func() string { return string(uuid.NewUUID()) })
	p.Path = func(namespace, fileSystem, target string) string {
		return filepath.Join(l.Root, spec.TargetPath(namespace, fileSystem, target))
	}
	p.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
		out, err := l.Run(ctx, argv, keep...)
		if err == nil && strings.HasPrefix(argv[0], "mkfs.") {
			l.Made++
		}
		return out, err
	}
	p.OnNode = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
		program := filepath.Join(l.NodePrograms, argv[0])
		if _, err := os.Stat(program); l.NodePrograms == "" || err != nil {
			return nil, &host.MissingError{Name: argv[0]}
		}
		out, err := l.Run(ctx, append([]string{program}, argv[1:]...), keep...)
		if err == nil && strings.HasPrefix(argv[0], "mkfs.") && !slices.Contains(argv, "--dryrun") {
			l.Made++
		}
		return out, err
	}
	p.Hook = hook
	return p
}

// Record simulates the API server: it stores the status in the API server's form.
func (l *Lab) Record(_ context.Context, t *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
	raw, err := json.Marshal(wanted)
	l.Expect(err).NotTo(gomega.HaveOccurred())
	t.Status = v1alpha1.StorageTargetStatus{}
	l.Expect(json.Unmarshal(raw, &t.Status)).To(gomega.Succeed())
	return nil
}

// Pass runs one pass of an agent that has just started.
func (l *Lab) Pass(t *v1alpha1.StorageTarget) error {
	l.T.Helper()
	return l.Agent(nil).Pass(l.T.Context(), t, l.Record)
}

// Ready returns the condition Ready of a target; empty without one.
func Ready(t *v1alpha1.StorageTarget) metav1.Condition {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// ExpectProven expects that a target is mounted at its mountpoint, with its UUID, label and marker.
func (l *Lab) ExpectProven(t *v1alpha1.StorageTarget, d *Disk) {
	l.T.Helper()
	c := Ready(t)
	l.Expect(string(c.Status)).To(gomega.Equal("True"), "%s: %s", c.Reason, c.Message)
	l.Expect(c.Reason).To(gomega.Equal(v1alpha1.ReasonProven), c.Message)
	l.Expect(t.Status.Provisioned).NotTo(gomega.BeNil())
	l.Expect(t.Status.Provisioned.Finished).NotTo(gomega.BeNil())
	l.Expect(t.Status.KernelName).To(gomega.Equal(d.KernelName()))
	l.Expect(t.Status.MountPath).To(gomega.Equal(l.Mountpoint(t)))
	l.Expect(t.Status.CapacityBytes).To(gomega.BeNumerically(">", d.Size/2))
	l.Expect(l.Must("findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", l.Mountpoint(t))).To(gomega.Equal(d.Loop))
	l.Expect(l.Must("blkid", "-p", "-o", "value", "-s", "UUID", d.Loop)).To(gomega.Equal(t.Status.Provisioned.UUID))
	l.Expect(l.Must("blkid", "-p", "-o", "value", "-s", "LABEL", d.Loop)).To(gomega.Equal(t.Status.Provisioned.Label))
	content, err := os.ReadFile(filepath.Join(l.Mountpoint(t), spec.TargetMarkerFile))
	l.Expect(err).NotTo(gomega.HaveOccurred())
	var marker spec.TargetMarker
	l.Expect(json.Unmarshal(content, &marker)).To(gomega.Succeed())
	l.Expect(marker.UUID).To(gomega.Equal(t.Status.Provisioned.UUID))
	l.Expect(marker.Target).To(gomega.Equal(t.Name))
	l.Expect(marker.Owner.UID).To(gomega.Equal(t.Spec.FileSystem.UID))
	l.Expect(marker.DeviceID).To(gomega.Equal(string(d.ID())))
}

// Stays expects that nothing was done.
func (l *Lab) Stays(target *v1alpha1.StorageTarget, d *Disk, before string, made int, how string) {
	l.T.Helper()
	l.Expect(d.Content()).To(gomega.Equal(before), how)
	l.Expect(l.Made).To(gomega.Equal(made), how)
	l.Expect(Ready(target).Status).To(gomega.BeEquivalentTo("False"), how)
	l.Expect(Ready(target).Message).NotTo(gomega.BeEmpty(), how)
	l.Expect(target.Status.Provisioned).To(gomega.BeNil(), how)
	there, err := filepath.Glob(l.Mountpoint(target) + "/*")
	l.Expect(err).NotTo(gomega.HaveOccurred())
	l.Expect(there).To(gomega.BeEmpty(), how)
}

// Unmount unmounts a target, like a restart of the node.
func (l *Lab) Unmount(t *v1alpha1.StorageTarget) {
	l.T.Helper()
	l.Expect(unix.Unmount(l.Mountpoint(t), 0)).To(gomega.Succeed())
}

// Deleted returns a target that a person has deleted.
func Deleted(t *v1alpha1.StorageTarget) { t.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// As sets the format of a target.
func As(fsType v1alpha1.FSType) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = fsType }
}

// WithLog sets an external log for a target.
func WithLog(log *Disk) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		identity := log.Identity()
		t.Spec.LogDevice, t.Spec.Format.FSType = &identity, v1alpha1.XFS
	}
}

// OfLustre changes a target to the OST of a Lustre with an index.
func OfLustre(index int32) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		t.Spec.Format = v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
		t.Spec.Lustre = &v1alpha1.LustreTarget{
			Kind: v1alpha1.LustreOST, FSName: "scratch", Index: &index, ManagementNIDs: []string{"10.0.0.1@tcp"},
		}
	}
}

// Approved sets the policy Approved for a target, and an approval of a plan; empty for none.
func Approved(hash string) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		t.Spec.FormatPolicy, t.Spec.ApprovedPlan = v1alpha1.FormatApproved, hash
	}
}
