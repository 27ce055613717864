package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// world is three storage nodes with a small SSD, a large blank SSD, and a large SSD with a filesystem, and a manager with one image.
func world() []client.Object {
	out := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "this-cluster"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: "pfs", Labels: map[string]string{"app.kubernetes.io/component": "manager"}},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "manager", Args: []string{"--node-image=r/node:1", "--daemon-image=moosefs-4.57.5=r/moosefs:4.57.5"},
			}}}}},
		},
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
			&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{
				disk("sdb", 240e9), disk("sdc", 4e12),
				disk("sdd", 4e12, v1alpha1.Signature{Device: "sdd", Type: "ext4", Offset: "0x438", UUID: "aaaa"}),
			}}})
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

func TestThePlanOfAChangeNamesTheServersThatRestart(t *testing.T) {
	g := NewWithT(t)
	live := &v1alpha1.FileSystem{
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
	manifest := `apiVersion: parallelfs.dev/v1alpha1
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
	pfs := on(t, append(world(), live))
	same := pfs("plan", "-f", written(t, fmt.Sprintf(manifest, "/data/a")))
	g.Expect(same.code).To(Equal(exitGood), same.stderr)
	g.Expect(same.stdout).To(And(ContainSubstring("changed"),
		Not(ContainSubstring("Servers that restart"))), "an equal manifest changes nothing")

	more := pfs("plan", "-f", written(t, fmt.Sprintf(manifest, "/data/a, /data/b")))
	g.Expect(more.code).To(Equal(exitGood), more.stderr)
	g.Expect(more.stdout).To(And(ContainSubstring("Servers that restart"), ContainSubstring("chunkserver")), more.stdout)
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
