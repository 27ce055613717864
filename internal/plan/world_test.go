package plan_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

const (
	tib     = int64(1) << 40
	uidOld  = "0b9c1c1e-0000-0000-0000-00000000000a"
	uidNow  = "0b9c1c1e-0000-0000-0000-00000000000b"
	uuidOne = "11111111-2222-4333-8444-555555555555"
	uuidTwo = "99999999-8888-4777-8666-555555555555"
	here    = "c1c1c1c1-0000-0000-0000-000000000001"
	there   = "c2c2c2c2-0000-0000-0000-000000000002"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// fixedUUID is a source of UUIDs that has one.
func fixedUUID() string { return uuidOne }

// aTarget is a storage target of pool ssd on node oss1.
func aTarget(changes ...func(*v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	device := v1alpha1.DeviceIdentity{ID: "wwn-0x5000c500a1b2c3d4", Serial: "S1", WWN: "0x5000c500a1b2c3d4", Model: "DISK", SizeBytes: tib}
	t := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", device.ID)},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: uidNow}, Cluster: here, Node: "oss1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
			Device: device, Format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS}, FormatPolicy: v1alpha1.FormatIfBlank,
		},
	}
	for _, change := range changes {
		change(t)
	}
	return t
}

// blankDisk is the disk of aTarget with nothing on it.
func blankDisk(changes ...func(*plan.Facts)) plan.Facts {
	f := plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
		KernelName: "sdb", Type: "disk", IDs: []string{"wwn-0x5000c500a1b2c3d4", "scsi-35000c500a1b2c3d4"}, WWN: "0x5000c500a1b2c3d4", Serial: "S1",
		Model: "DISK", SizeBytes: tib, MediaType: v1alpha1.SSD, Transport: "sas",
	}}
	for _, change := range changes {
		change(&f)
	}
	return f
}

// blankLog is a partition for the log of aTarget.
func blankLog(changes ...func(*plan.Facts)) *plan.Facts {
	f := plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
		KernelName: "nvme0n1p1", Type: "part", IDs: []string{"nvme-eui.0025385b71b0c4a1-part1"}, Serial: "N1", WWN: "eui.0025385b71b0c4a1", SizeBytes: 1 << 30,
	}}
	for _, change := range changes {
		change(&f)
	}
	return &f
}

// withLog gives a target the log device of blankLog.
func withLog(t *v1alpha1.StorageTarget) {
	t.Spec.LogDevice = &v1alpha1.DeviceIdentity{ID: "nvme-eui.0025385b71b0c4a1-part1", Serial: "N1", WWN: "eui.0025385b71b0c4a1", SizeBytes: 1 << 30}
}

func policy(p v1alpha1.FormatPolicy) func(*v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) { t.Spec.FormatPolicy = p }
}

// holding puts a signature on a disk.
func holding(kind, uuid, label string) func(*plan.Facts) {
	return func(f *plan.Facts) {
		f.Signatures = append(f.Signatures, v1alpha1.Signature{Device: f.KernelName, Type: kind, Offset: "0x0", UUID: uuid, Label: label})
	}
}

// markerOf is the marker of a target.
func markerOf(t *v1alpha1.StorageTarget, uuid, uid string) *plan.Marker {
	return &plan.Marker{
		Namespace: t.Namespace, FileSystem: t.Spec.FileSystem.Name, FileSystemUID: uid, Cluster: t.Spec.Cluster, Target: t.Name, UUID: uuid,
		Role: string(t.Spec.Role), StoragePool: t.Spec.StoragePool,
	}
}

// carrying makes a disk that of a target: its filesystem and its marker.
func carrying(t *v1alpha1.StorageTarget, uuid, uid string) func(*plan.Facts) {
	return func(f *plan.Facts) {
		holding("xfs", uuid, plan.Label(t))(f)
		f.Marker = markerOf(t, uuid, uid)
	}
}

// begun records that a plan was begun, and finished that it ended.
func begun(t *v1alpha1.StorageTarget) {
	started := metav1.NewTime(now.Add(-time.Hour))
	t.Status.Provisioned = &v1alpha1.TargetProvisioned{PlanHash: "sha256:0", UUID: uuidOne, Label: plan.Label(t), Started: &started}
}

func finished(t *v1alpha1.StorageTarget) {
	begun(t)
	at := metav1.NewTime(now.Add(-time.Minute))
	t.Status.Provisioned.Finished = &at
}

func deleted(destroyFor string) func(*v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		at := metav1.NewTime(now)
		t.DeletionTimestamp = &at
		t.Spec.DestroyFor = destroyFor
	}
}

func mountpoint(t *v1alpha1.StorageTarget) string {
	return spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name)
}

// mounted is a look at the disk of a target, mounted at its mountpoint.
func mounted(t *v1alpha1.StorageTarget, uuid, uid string) plan.Look {
	l := plan.Look{Device: blankDisk(carrying(t, uuid, uid)), Mount: plan.Mounted{Mounted: true, UUID: uuid, KernelName: "sdb", Marker: markerOf(t, uuid, uid)}}
	l.Device.Mounts = []string{mountpoint(t)}
	l.Device.Busy = "device or resource busy"
	l.Device.Marker = nil
	return l
}

// diskNumber is a blank disk of an inventory.
func diskNumber(node string, i int, changes ...func(*v1alpha1.BlockDevice)) v1alpha1.BlockDevice {
	id := fmt.Sprintf("%s-%04d", node, i)
	b := v1alpha1.BlockDevice{
		KernelName: fmt.Sprintf("sd%c%c", 'a'+i/26, 'a'+i%26), Type: "disk", IDs: []string{"wwn-" + id, "scsi-" + id}, WWN: "0x" + id, Serial: "serial-" + id,
		Model: "DISK", SizeBytes: tib, MediaType: v1alpha1.SSD,
	}
	for _, change := range changes {
		change(&b)
	}
	return b
}
