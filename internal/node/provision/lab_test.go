//go:build disks

package provision_test

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
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/disktest"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
)

const mebi = 1 << 20

// lab is a node with disks of its own: sparse files in memory behind loop devices, with links in /dev/disk/by-id, and
// mountpoints in a directory of its own.
type lab struct {
	Gomega
	t    *testing.T
	root string
	// images is where the files behind the disks lie: each of hundreds of tests syncs its disk often, and a machine that does
	// something else has one disk for all.
	images string
	// made is how often a mkfs has come to its end.
	made int
	// run takes the place of provision.Run, for programs that are killed.
	run provision.Runner
}

func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests attach loop devices and mount them: run them as root (make test-disks)")
	}
	l := &lab{Gomega: NewWithT(t), t: t, root: t.TempDir(), images: t.TempDir(), run: provision.Run}
	l.Expect(unix.Mount("parallelfs-test", l.images, "tmpfs", 0, "")).To(Succeed())
	// A loop device that somebody still has open keeps its file.
	t.Cleanup(func() { l.Expect(unix.Unmount(l.images, unix.MNT_DETACH)).To(Succeed()) })
	t.Cleanup(l.closeMountpoints)
	return l
}

// closeMountpoints unmounts what a test left, and makes the mountpoints removable.
func (l *lab) closeMountpoints() {
	points, err := filepath.Glob(filepath.Join(l.root, spec.TargetsRoot, "*", "*"))
	if err != nil {
		l.t.Error(err)
	}
	for _, point := range points {
		for unix.Unmount(point, unix.UMOUNT_NOFOLLOW) == nil { // as often as something is mounted there
		}
		if err := mounts.Remove(point); err != nil {
			l.t.Error(err)
		}
	}
}

// must runs a program of the test itself.
func (l *lab) must(argv ...string) string {
	l.t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	l.Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(argv, " "), out)
	return strings.TrimSpace(string(out))
}

// disk is a disk of the lab.
type disk struct {
	lab              *lab
	file, loop, link string
	size             int64
	// swap is the size of the swap space in use at the beginning of the disk. The kernel writes to the pages after its first one
	// when it is short of memory, whatever the test does.
	swap int64
}

// disk makes a blank disk and attaches it.
func (l *lab) disk(name string, size int64) *disk {
	l.t.Helper()
	d := &disk{lab: l, file: filepath.Join(l.images, name+".img"), size: size}
	l.Expect(os.WriteFile(d.file, nil, 0o600)).To(Succeed())
	l.Expect(os.Truncate(d.file, size)).To(Succeed())
	l.Expect(os.MkdirAll("/dev/disk/by-id", 0o755)).To(Succeed())
	// The serial number of the lab is in the name: others may test on the same machine.
	d.link = fmt.Sprintf("/dev/disk/by-id/lab-%s-%s", string(uuid.NewUUID())[:8], name)
	d.attach()
	l.t.Cleanup(func() { d.detach() })
	return d
}

func (d *disk) attach(options ...string) {
	d.lab.t.Helper()
	d.loop = d.lab.must(append(append([]string{"losetup", "--find", "--show"}, options...), d.file)...)
	d.lab.Expect(os.Symlink("../../"+filepath.Base(d.loop), d.link)).To(Succeed())
}

// detach takes the disk out. It waits until the kernel has let it go.
func (d *disk) detach() {
	if d.loop == "" {
		return
	}
	if err := os.Remove(d.link); err != nil {
		d.lab.t.Error(err)
	}
	if out, err := exec.Command("losetup", "--detach", d.loop).CombinedOutput(); err != nil {
		d.lab.t.Errorf("losetup --detach %s: %s", d.loop, out)
	}
	d.loop = ""
}

func (d *disk) id() v1alpha1.DeviceID { return v1alpha1.DeviceID(filepath.Base(d.link)) }

func (d *disk) kernelName() string { return filepath.Base(d.loop) }

func (d *disk) identity() v1alpha1.DeviceIdentity {
	return v1alpha1.DeviceIdentity{ID: d.id(), SizeBytes: d.size}
}

// writeAt writes to the file behind the disk, through the device's cache.
func (d *disk) writeAt(offset int64, content []byte) {
	d.lab.t.Helper()
	device, err := os.OpenFile(d.loop, os.O_WRONLY, 0)
	d.lab.Expect(err).NotTo(HaveOccurred())
	_, err = device.WriteAt(content, offset)
	d.lab.Expect(errors.Join(err, device.Sync(), device.Close())).To(Succeed())
}

// content is disktest.Content.
func (d *disk) content() string {
	d.lab.t.Helper()
	content, err := disktest.Content(d.file, d.loop, d.swap)
	d.lab.Expect(err).NotTo(HaveOccurred())
	return content
}

// target is a StorageTarget on the disk, as the operator makes it.
func (l *lab) target(d *disk, change ...func(t *v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	sum := sha256.Sum256([]byte(d.link))
	target := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{
			Name: "scratch-ssd-" + hex.EncodeToString(sum[:4]), Namespace: "storage", Generation: 1, UID: types.UID("target-" + d.file),
			Finalizers: []string{v1alpha1.Finalizer},
		},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "11111111-2222-3333-4444-555555555555"}, Node: "oss1",
			Role: v1alpha1.RoleStorage, StoragePool: "ssd", Device: d.identity(),
			Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4}, FormatPolicy: v1alpha1.FormatIfBlank,
		},
	}
	for _, c := range change {
		c(target)
	}
	return target
}

func (l *lab) mountpoint(target *v1alpha1.StorageTarget) string {
	return filepath.Join(l.root, spec.TargetPath(target.Namespace, target.Spec.FileSystem.Name, target.Name))
}

// agent is a provisioner as a fresh start of the agent makes it.
func (l *lab) agent(hook func(step string, done bool) error) *provision.Provisioner {
	p := provision.New(devices.ThisHost(), func() string { return string(uuid.NewUUID()) })
	p.Path = func(namespace, fileSystem, target string) string {
		return filepath.Join(l.root, spec.TargetPath(namespace, fileSystem, target))
	}
	p.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
		out, err := l.run(ctx, argv, keep...)
		if err == nil && strings.HasPrefix(argv[0], "mkfs.") {
			l.made++
		}
		return out, err
	}
	p.Hook = hook
	return p
}

// record is the API server: it keeps the status, in its own form.
func (l *lab) record(_ context.Context, t *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
	raw, err := json.Marshal(wanted)
	l.Expect(err).NotTo(HaveOccurred())
	t.Status = v1alpha1.StorageTargetStatus{}
	l.Expect(json.Unmarshal(raw, &t.Status)).To(Succeed())
	return nil
}

// pass makes one pass of a fresh agent.
func (l *lab) pass(t *v1alpha1.StorageTarget) error {
	l.t.Helper()
	return l.agent(nil).Pass(l.t.Context(), t, l.record)
}

func ready(t *v1alpha1.StorageTarget) metav1.Condition {
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// expectProven expects a target that is mounted where it should be, with its UUID, label and marker.
func (l *lab) expectProven(t *v1alpha1.StorageTarget, d *disk) {
	l.t.Helper()
	c := ready(t)
	l.Expect(string(c.Status)).To(Equal("True"), "%s: %s", c.Reason, c.Message)
	l.Expect(c.Reason).To(Equal(v1alpha1.ReasonProven), c.Message)
	l.Expect(t.Status.Provisioned).NotTo(BeNil())
	l.Expect(t.Status.Provisioned.Finished).NotTo(BeNil())
	l.Expect(t.Status.KernelName).To(Equal(d.kernelName()))
	l.Expect(t.Status.MountPath).To(Equal(l.mountpoint(t)))
	l.Expect(t.Status.CapacityBytes).To(BeNumerically(">", d.size/2))
	l.Expect(l.must("findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", l.mountpoint(t))).To(Equal(d.loop))
	l.Expect(l.must("blkid", "-p", "-o", "value", "-s", "UUID", d.loop)).To(Equal(t.Status.Provisioned.UUID))
	l.Expect(l.must("blkid", "-p", "-o", "value", "-s", "LABEL", d.loop)).To(Equal(t.Status.Provisioned.Label))
	content, err := os.ReadFile(filepath.Join(l.mountpoint(t), spec.TargetMarkerFile))
	l.Expect(err).NotTo(HaveOccurred())
	var marker spec.TargetMarker
	l.Expect(json.Unmarshal(content, &marker)).To(Succeed())
	l.Expect(marker.UUID).To(Equal(t.Status.Provisioned.UUID))
	l.Expect(marker.Target).To(Equal(t.Name))
	l.Expect(marker.Owner.UID).To(Equal(t.Spec.FileSystem.UID))
	l.Expect(marker.DeviceID).To(Equal(string(d.id())))
}

// unmount is what a restart of the node does to a target.
func (l *lab) unmount(t *v1alpha1.StorageTarget) {
	l.t.Helper()
	l.Expect(unix.Unmount(l.mountpoint(t), 0)).To(Succeed())
}

func deleted(t *v1alpha1.StorageTarget) { t.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func as(fsType v1alpha1.FSType) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = fsType }
}

func withLog(log *disk) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		identity := log.identity()
		t.Spec.LogDevice, t.Spec.Format.FSType = &identity, v1alpha1.XFS
	}
}

func approved(hash string) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		t.Spec.FormatPolicy, t.Spec.ApprovedPlan = v1alpha1.FormatApproved, hash
	}
}
