package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
)

// wiredTo is the interface that has the InternalIP of a node.
func wiredTo(ip int) []v1alpha1.NetworkInterface {
	return []v1alpha1.NetworkInterface{{Name: "eth0", Addresses: []string{fmt.Sprintf("10.0.0.%d", ip)}}}
}

// manager is the operator, which was started with images.
func manager(images ...string) client.Object {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: "pfs", Labels: map[string]string{"app.kubernetes.io/component": "manager"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "manager", Args: append([]string{"--node-image=r/node:1"}, images...),
		}}}}},
	}
}

// world is three storage nodes with a small SSD, a large blank SSD, and a large SSD with a filesystem, and a manager with one image.
func world() []client.Object {
	out := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "this-cluster"}},
		manager("--daemon-image=moosefs-4.57.5=r/moosefs:4.57.5"),
	}
	for i := 1; i <= 3; i++ {
		node := fmt.Sprintf("n%d", i)
		disk := func(kernel string, size int64, more ...v1alpha1.Signature) v1alpha1.BlockDevice {
			id := node + "-" + kernel
			b := v1alpha1.BlockDevice{
				KernelName: kernel, Type: "disk", IDs: []string{"wwn-" + id}, WWN: "0x" + id, Serial: "S-" + id, SizeBytes: size,
				MediaType: v1alpha1.SSD, Transport: "sas", Signatures: more,
			}
			if len(more) > 0 {
				b.Unusable = []string{kernel + " holds ext4"}
			}
			return b
		}
		out = append(out,
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"storage": "", corev1.LabelHostname: node}},
				Status: corev1.NodeStatus{
					Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i)}},
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
				},
			},
			&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1alpha1.NodeInventoryStatus{
				NetworkInterfaces: wiredTo(i),
				BlockDevices: []v1alpha1.BlockDevice{
					disk("sdb", 240e9), disk("sdc", 4e12),
					disk("sdd", 4e12, v1alpha1.Signature{Device: "sdd", Type: "ext4", Offset: "0x438", UUID: "aaaa"}),
				},
			}})
	}
	return out
}

func TestThePlanOfANewFileSystemNamesItsDisksWithSerialAndSizeAndWhatIsChosen(t *testing.T) {
	g := NewWithT(t)
	got := on(t, world())("plan", "-f", "../../config/samples/smallest-disks.yaml")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stdout).To(And(
		ContainSubstring("storage/tank   MooseFS 4.57.5   new"),
		ContainSubstring("moosefs.basePort: 9419"), ContainSubstring("Ports on each of its nodes: 9419 to 9450"),
		ContainSubstring("wwn-n2-sdc on node n2, now sdc, 4 TB, serial number S-n2-sdc, for storage pool ssd"),
		ContainSubstring("it is FORMATTED after a person has approved its plan"),
		ContainSubstring("Disks that are taken up: 4"), // one for the metadata, and one of each node for the pool
	))
	g.Expect(got.stdout).NotTo(ContainSubstring("sdd"), "a selector takes blank disks only")
	golden(t, "plan-new.txt", got.stdout)
}

func TestThePlanOfARefusedSpecHasTheReasonAndExitsWithOne(t *testing.T) {
	g := NewWithT(t)
	file := manifestOf(t, "nodes: {selector: {matchLabels: {storage: nowhere}}}")
	got := on(t, world())("plan", "-f", file)
	g.Expect(got.code).To(Equal(exitFailed))
	g.Expect(got.stdout).To(And(ContainSubstring("Refused, and nothing changes: NoNodes"), ContainSubstring("no node matches")))
	g.Expect(got.stderr).To(ContainSubstring("1 of 1 FileSystems are refused"))
}

func TestThePlanNamesWhatADiskThatIsNamedByHandLoses(t *testing.T) {
	g := NewWithT(t)
	text := strings.Replace(manifestText("nodes: {names: [n1, n2]}"), "select: {mediaType: SSD, minSize: 1T}",
		"devices: [{node: n1, id: wwn-n1-sdd}, {node: n2, id: wwn-n2-sdc}]", 1)
	got := on(t, world())("plan", "-f", written(t, text))
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stdout).To(And(ContainSubstring("wwn-n1-sdd on node n1, now sdd, 4 TB"), MatchRegexp(`LOSES .*ext4`)), got.stdout)
}

// directories is a FileSystem that serves directories of three nodes.
func directories() *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "dirs", Namespace: "storage", UID: "u1"},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: "4.57.5", Nodes: &v1alpha1.NodesSpec{Names: []string{"n1", "n2", "n3"}},
			MetadataServers: v1alpha1.MetadataSpec{Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/m"}}},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: "data", Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/a"}},
			}},
		},
		Status: v1alpha1.FileSystemStatus{
			Version: "4.57.5", MountPath: "/mnt/dirs", Metadata: &v1alpha1.MetadataRecord{Node: "n1", Directory: "/data/m"},
			StoragePools: []v1alpha1.StoragePoolStatus{{Name: "data"}},
			Chosen:       &v1alpha1.ChosenStatus{Copies: 2, DefaultStoragePool: "data", BasePort: 9419, Metaloggers: []string{"n2", "n3"}},
		},
	}
}

// directoriesText is its manifest, without the directories of its pool.
const directoriesText = `apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: dirs, namespace: storage}
spec:
  type: MooseFS
  version: 4.57.5
  nodes: {names: [n1, n2, n3]}
  metadataServers: {targets: {directories: [/data/m]}}
  storagePools:
  - {name: data, targets: {directories: [%s]}}
`

func TestThePlanOfAChangeNamesTheServersThatRestart(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, append(world(), directories()))
	same := pfs("plan", "-f", written(t, fmt.Sprintf(directoriesText, "/data/a")))
	g.Expect(same.code).To(Equal(exitGood), same.stderr)
	g.Expect(same.stdout).To(And(ContainSubstring("changed"),
		Not(ContainSubstring("Servers that restart"))), "an equal manifest changes nothing")

	more := pfs("plan", "-f", written(t, fmt.Sprintf(directoriesText, "/data/a, /data/b")))
	g.Expect(more.code).To(Equal(exitGood), more.stderr)
	g.Expect(more.stdout).To(And(ContainSubstring("Servers that restart"), ContainSubstring("chunkserver")), more.stdout)
}

// volume is a blank disk of n2 that a CSI driver has attached for a pod.
func volume() []client.Object {
	return []client.Object{
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "pool/wwn-n2-sdc"},
			}},
		},
		&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "csi.example.com", NodeName: "n2", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pvc-1")},
			},
		},
	}
}

func TestThePlanNamesTheVolumeThatKeepsADiskFromBeingTakenUp(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, append(world(), volume()...))
	selected := pfs("plan", "-f", "../../config/samples/smallest-disks.yaml")
	g.Expect(selected.code).To(Equal(exitGood), selected.stderr)
	g.Expect(selected.stdout).To(And(ContainSubstring("wwn-n3-sdc on node n3"), Not(ContainSubstring("wwn-n2-sdc on node n2"))))

	named := pfs("plan", "-f", written(t, strings.Replace(manifestText("nodes: {names: [n1, n2]}"), "select: {mediaType: SSD, minSize: 1T}",
		"devices: [{node: n1, id: wwn-n1-sdc}, {node: n2, id: wwn-n2-sdc}]", 1)))
	g.Expect(named.code).To(Equal(exitGood), named.stderr)
	g.Expect(inOneLine(named.stdout)).To(And(ContainSubstring("wwn-n1-sdc on node n1"), Not(ContainSubstring("wwn-n2-sdc on node n2,")),
		ContainSubstring("it is volume pvc-1, which csi.example.com has attached to the node")))
}

func TestThePlanSaysThatItMayNotReadTheAttachedVolumes(t *testing.T) {
	g := NewWithT(t)
	_, pfs := clusterThrough(t, append(world(), volume()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*storagev1.VolumeAttachmentList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "volumeattachments"}, "", nil)
			}
			return c.List(ctx, list, options...)
		},
	})
	got := pfs("plan", "-f", "../../config/samples/smallest-disks.yaml")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stderr).To(ContainSubstring("The volumes that Kubernetes has attached are unknown"))
}

// inOneLine undoes the breaks of lines.
func inOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// machine is a node with disks.
func machine(name string, ip int, status v1alpha1.NodeInventoryStatus) []client.Object {
	status.NetworkInterfaces = wiredTo(ip)
	return []client.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", ip)}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		},
		&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status},
	}
}

func TestThePlanOfABeeGFSNamesTheDisksOfItsServers(t *testing.T) {
	g := NewWithT(t)
	var objects []client.Object
	for i, node := range []string{"n1", "n2"} {
		status := v1alpha1.NodeInventoryStatus{}
		add := func(kernel, id, transport string, media v1alpha1.MediaType, numa int32) {
			status.BlockDevices = append(status.BlockDevices, v1alpha1.BlockDevice{
				KernelName: kernel, Type: "disk", IDs: []string{id}, Serial: "S-" + node + "-" + kernel, SizeBytes: 2e12,
				MediaType: media, Transport: transport, NUMANode: &numa,
			})
		}
		if node == "n1" {
			add("nvme0n1", "nvme-eui.0025385b71b0c4a0", "nvme", v1alpha1.SSD, 0)
		}
		for disk := range int32(4) {
			add(fmt.Sprintf("nvme%dn1", disk+1), fmt.Sprintf("nvme-eui.%s-%d", node, disk), "nvme", v1alpha1.SSD, disk%2)
		}
		add("sda", "wwn-"+node+"-sda", "sas", v1alpha1.HDD, 0)
		objects = append(objects, machine(node, i+1, status)...)
	}
	objects = append(objects, manager("--daemon-image=beegfs-mgmtd=r/mgmtd", "--daemon-image=beegfs-meta=r/meta",
		"--daemon-image=beegfs-storage=r/storage", "--daemon-image=beegfs-tools=r/tools"))
	got := on(t, objects)("plan", "-f", "../../config/samples/smallest-beegfs.yaml")
	g.Expect(got.code).To(Equal(exitGood), got.stderr+got.stdout)
	text := inOneLine(got.stdout)
	g.Expect(text).To(And(ContainSubstring("storage/bee BeeGFS 7.4.6 new"), ContainSubstring("Ports on each of its nodes: 8000 to 8063"),
		ContainSubstring("Disks that are taken up: 11"), // one of the management service, four of metadata servers and one of storage on each node
		ContainSubstring("nvme-eui.0025385b71b0c4a0 on node n1, now nvme0n1, 2 TB, serial number S-n1-nvme0n1, for management"),
		ContainSubstring("nvme-eui.n2-3 on node n2, now nvme4n1, 2 TB, serial number S-n2-nvme4n1, for metadata"),
		ContainSubstring("wwn-n2-sda on node n2, now sda, 2 TB, serial number S-n2-sda, for storage pool bulk")))
}

func TestThePlanOfALustreNamesTheDisksOfAPair(t *testing.T) {
	g := NewWithT(t)
	var objects []client.Object
	for i, node := range []string{"oss1", "oss2"} {
		status := v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{{
			KernelName: "sda", Type: "disk", IDs: []string{"wwn-" + node + "-sda"}, Serial: "S-" + node, SizeBytes: 4e11, MediaType: v1alpha1.SSD, Transport: "sas",
		}}}
		for disk := range 2 { // both nodes reach the same two
			id := fmt.Sprintf("0x5000c500a1b2c3d%d", disk+4)
			status.BlockDevices = append(status.BlockDevices, v1alpha1.BlockDevice{
				KernelName: fmt.Sprintf("sd%c", 'b'+disk), Type: "disk", IDs: []string{"wwn-" + id}, WWN: id, Serial: fmt.Sprintf("S-shared-%d", disk),
				SizeBytes: 8e12, MediaType: v1alpha1.HDD, Transport: "sas",
			})
		}
		objects = append(objects, machine(node, i+1, status)...)
	}
	got := on(t, objects)("plan", "-f", "../../config/samples/smallest-lustre.yaml")
	g.Expect(got.code).To(Equal(exitGood), got.stderr+got.stdout)
	text := inOneLine(got.stdout)
	g.Expect(text).To(And(ContainSubstring("storage/pair Lustre 2.15.6 new"), ContainSubstring("Disks that are taken up: 3"),
		ContainSubstring("wwn-oss1-sda on node oss1, now sda, 400 GB, serial number S-oss1, for metadata"),
		ContainSubstring("wwn-0x5000c500a1b2c3d4 on node oss1, now sdb, 8 TB, serial number S-shared-0, for storage pool bulk"),
		ContainSubstring("wwn-0x5000c500a1b2c3d5 on node oss2, now sdc, 8 TB, serial number S-shared-1, for storage pool bulk")))
}

func TestThePlanOfAChangeIsTheSameFromABundle(t *testing.T) {
	g := NewWithT(t)
	objects := append(world(), directories())
	for _, node := range []string{"n1", "n2", "n3"} {
		objects = append(objects, &v1alpha1.FileSystemNode{
			ObjectMeta: metav1.ObjectMeta{Name: "dirs-" + node, Namespace: "storage", Labels: map[string]string{v1alpha1.LabelFileSystem: "dirs"}},
			Spec:       v1alpha1.FileSystemNodeSpec{Node: node, FileSystem: v1alpha1.TargetOwner{Name: "dirs", UID: "u1"}},
		})
	}
	pfs, file := on(t, objects), written(t, fmt.Sprintf(directoriesText, "/data/a, /data/b"))
	bundle := filepath.Join(t.TempDir(), "dump.tar.gz")
	dump := pfs("dump", "dirs", "-f", bundle)
	g.Expect(dump.code).To(Equal(exitGood), dump.stderr)

	of := pfs("plan", "-f", file)
	g.Expect(of.stdout).To(And(ContainSubstring("Servers that restart"), ContainSubstring("n1:/data/b")))
	from := on(t, nil)("plan", "-f", file, "--from", bundle)
	g.Expect(from.code).To(Equal(exitGood), from.stderr+from.stdout)
	g.Expect(from.stdout).To(Equal(of.stdout))
}

// manifestText is the sample on disks with other nodes.
func manifestText(nodes string) string {
	return `apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: tank}
spec:
  type: MooseFS
  ` + nodes + `
  metadataServers: {targets: {select: {mediaType: SSD, maxSize: 500G}}}
  storagePools:
  - name: ssd
    targets: {select: {mediaType: SSD, minSize: 1T}}
`
}

func manifestOf(t *testing.T, nodes string) string {
	t.Helper()
	return written(t, manifestText(nodes))
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifest.yaml")
	NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}
