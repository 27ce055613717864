package agent

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
)

// A test in package daemon checks that the reader accepts this file.
func TestTheFileOfANodeIsWrittenAsInVersion1(t *testing.T) {
	g := NewWithT(t)
	const name = "scratch-ssd-0123456789abcdef"
	n := &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Generation: 7},
		Spec: v1alpha1.FileSystemNodeSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "3f2a7c1e-5b0d-4c59-9a83-6d1f0e7b2c44"}, Node: "oss1",
			Members: []v1alpha1.NodeMember{{
				Name: "storage-ssd", Waits: "its CPUs on this node are not decided yet",
				Targets: []v1alpha1.MemberTarget{{
					Name: name, Path: "/var/lib/parallelfs/targets/storage.scratch/" + name, UUID: "11111111-2222-4333-8444-555555555555",
					Remove: true, Directory: true, Granted: true, Expected: true, Variables: map[string]v1alpha1.VariableValue{"TARGET_ID": "12"},
				}},
				Pinning:   &v1alpha1.MemberPinning{CPUs: "0-7,16-23", MemoryNodes: "0", MemoryPolicy: "Bind", Why: "spec.storagePools[ssd].cpuPinning: NUMA node 0"},
				Variables: map[string]v1alpha1.VariableValue{"NODE_ID": "7"},
			}},
		},
	}
	r := &NodeFiles{Root: t.TempDir(), Writer: durable.Writer{Chown: func(string, int, int) error { return nil }}}
	g.Expect(r.write(n, nil, nil)).To(BeTrue())
	want, err := os.ReadFile(filepath.Join("..", "daemon", "testdata", "v1", spec.NodeFileName))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(filepath.Join(r.Root, "storage.scratch", spec.NodeFileName))).To(BeEquivalentTo(want))

	target := &v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}, Spec: v1alpha1.StorageTargetSpec{
		FileSystem: n.Spec.FileSystem, Cluster: "c1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
		Device: v1alpha1.DeviceIdentity{ID: "wwn-0x5000c500a1b2c3d4"}, Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs},
		Lustre: &v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(3)), ManagementNIDs: []string{"10.0.0.1@tcp"}},
	}}
	g.Expect(r.write(n, nil, served{name: target})).To(BeTrue())
	want, err = os.ReadFile(filepath.Join("..", "daemon", "testdata", "v1", "node-served.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(filepath.Join(r.Root, "storage.scratch", spec.NodeFileName))).To(BeEquivalentTo(want))

	target.Spec.SecondNode = "oss2"
	r.NodeName, r.BootID, target.Spec.Node = "oss1", "9f2c1a40-0f6b-4d0e-a0a5-6f3f5b8c2d11", "oss1"
	other := target.DeepCopy()
	other.Name, other.Spec.Node, other.Spec.SecondNode = "scratch-ssd-fedcba9876543210", "oss2", "oss1"
	n.Spec.Members[0].Targets = append(n.Spec.Members[0].Targets, v1alpha1.MemberTarget{Name: other.Name, Path: "/elsewhere"})
	g.Expect(r.write(n, nil, served{name: target, other.Name: other})).To(BeTrue())
	want, err = os.ReadFile(filepath.Join("..", "daemon", "testdata", "v1", "node-pair.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(filepath.Join(r.Root, "storage.scratch", spec.NodeFileName))).To(BeEquivalentTo(want))
	g.Expect(filepath.Join(r.Root, "storage.scratch", name+".lock")).To(BeARegularFile())

	n.Spec.Members[0].Targets[0].Files = map[string]v1alpha1.VariableValue{"targetID": "1F-6553F100-2\n"}
	g.Expect(r.write(n, nil, served{name: target, other.Name: other})).To(BeTrue())
	want, err = os.ReadFile(filepath.Join("..", "daemon", "testdata", "v1", "node-replacing.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.ReadFile(filepath.Join(r.Root, "storage.scratch", spec.NodeFileName))).To(BeEquivalentTo(want))
}
