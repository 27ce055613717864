//go:build envtest

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/patience"
)

// chunkserver is a server with one disk that is a target.
func chunkserver() v1alpha1.NodeMember {
	return v1alpha1.NodeMember{
		Name: "chunkserver-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 4, Variables: map[string]v1alpha1.VariableValue{"NODE_ID": "4"},
		Pinning: &v1alpha1.MemberPinning{CPUs: "0-7", Why: "spec.storagePools[ssd]"},
		Targets: []v1alpha1.MemberTarget{{Name: "scratch-ssd-1", Path: "/var/lib/parallelfs/targets/x/scratch-ssd-1", UUID: "a-b-c", ID: 7, Granted: true}},
	}
}

// fileSystemNode makes the FileSystemNode of a filesystem on a node.
func (w *world) fileSystemNode(fileSystem, node string, members ...v1alpha1.NodeMember) *v1alpha1.FileSystemNode {
	w.t.Helper()
	n := &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{Name: fileSystem + "-" + node, Namespace: w.namespace, Labels: map[string]string{v1alpha1.LabelNode: node}},
		Spec: v1alpha1.FileSystemNodeSpec{
			FileSystem: v1alpha1.TargetOwner{Name: fileSystem, UID: "1-2-3"}, Node: node, Members: members,
			Facts: &v1alpha1.FileSystemFacts{Type: exampleType, MetadataNode: "mds1"},
		},
	}
	w.Expect(server.Client.Create(w.t.Context(), n)).To(Succeed())
	return n
}

func (w *world) liveNode(n *v1alpha1.FileSystemNode) *v1alpha1.FileSystemNode {
	w.t.Helper()
	live := &v1alpha1.FileSystemNode{}
	w.Expect(server.Client.Get(w.t.Context(), client.ObjectKeyFromObject(n), live)).To(Succeed())
	return live
}

// exampleType is a spec.type that admission accepts. The agent treats all types alike.
const exampleType = "MooseFS"

func (w *world) nodeFiles() *NodeFiles {
	w.t.Helper()
	return &NodeFiles{
		Client: server.Client, Live: server.Client, NodeName: w.node.Name, Resync: time.Minute, Root: filepath.Join(w.t.TempDir(), "nodes"),
		Modprobe: w.t.TempDir(),
		Writer:   durable.Writer{Chown: func(string, int, int) error { return nil }},
		Record:   func(spec.Target, spec.TargetRecord) error { return nil },
	}
}

// writes makes one pass over a FileSystemNode.
func (w *world) writes(r *NodeFiles, n *v1alpha1.FileSystemNode) (ctrl.Result, error) {
	return r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(n)})
}

// fileOf is the path of the file of a filesystem.
func (w *world) fileOf(r *NodeFiles, fileSystem string) string {
	return filepath.Join(r.Root, w.namespace+"."+fileSystem, "node.json")
}

func (w *world) reads(path string) spec.NodeFile {
	w.t.Helper()
	content, err := os.ReadFile(path)
	w.Expect(err).NotTo(HaveOccurred())
	var file spec.NodeFile
	w.Expect(json.Unmarshal(content, &file)).To(Succeed())
	return file
}

func TestTheNodeFileIsWrittenBeforeTheStatusConfirmsIt(t *testing.T) {
	w := newWorld(t)
	n, r := w.fileSystemNode("scratch", w.node.Name, chunkserver()), w.nodeFiles()
	r.Writer.Before = func(string) error {
		w.Expect(w.liveNode(n).Status.Agent).To(BeNil(), "the status says nothing before the file is there")
		return nil
	}
	result, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(Equal(time.Minute))
	w.Expect(w.reads(w.fileOf(r, "scratch"))).To(Equal(spec.NodeFile{
		Version: 1, FileSystem: spec.Owner{Namespace: w.namespace, Name: "scratch", UID: "1-2-3"}, Node: w.node.Name, Generation: 1,
		Members: []spec.Member{{
			Name: "chunkserver-ssd", Variables: map[string]string{"NODE_ID": "4"}, Pinning: &spec.Pinning{CPUs: "0-7", Why: "spec.storagePools[ssd]"},
			Targets: []spec.Target{{Name: "scratch-ssd-1", Path: "/var/lib/parallelfs/targets/x/scratch-ssd-1", UUID: "a-b-c", Granted: true}},
		}},
	}))
	first := w.liveNode(n)
	w.Expect(first.Status.Agent).To(Equal(&v1alpha1.NodeAgentStatus{ObservedGeneration: 1}))
	w.Expect(first.ManagedFields).To(ContainElement(And(HaveField("Manager", FieldOwner), HaveField("Subresource", "status"))))

	r.Writer.Before = func(step string) error { return errors.New(step + " although nothing has changed") }
	for range 3 {
		_, err = w.writes(r, n)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.liveNode(n).ResourceVersion).To(Equal(first.ResourceVersion), "nothing is written when nothing has changed")

	r.Writer.Before = nil
	first.Spec.Members[0].Targets[0].Granted = false
	w.Expect(server.Client.Update(t.Context(), first)).To(Succeed())
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.reads(w.fileOf(r, "scratch"))).To(And(HaveField("Generation", BeEquivalentTo(2)), HaveField("Members", HaveExactElements(
		HaveField("Targets", HaveExactElements(HaveField("Granted", false)))))))
	w.Expect(w.liveNode(n).Status.Agent.ObservedGeneration).To(BeEquivalentTo(2))
}

func TestAFileThatCanNotBeWrittenIsNotConfirmed(t *testing.T) {
	w := newWorld(t)
	n, r := w.fileSystemNode("scratch", w.node.Name, chunkserver()), w.nodeFiles()
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	live := w.liveNode(n)
	live.Spec.Members = nil
	w.Expect(server.Client.Update(t.Context(), live)).To(Succeed())
	r.Writer.Before = func(string) error { return errors.New("no space left on device") }
	_, err = w.writes(r, n)
	w.Expect(err).To(MatchError(ContainSubstring("no space left")))
	w.Expect(w.liveNode(n).Status.Agent.ObservedGeneration).To(BeEquivalentTo(1), "that is what the servers are still told")
	w.Expect(w.liveNode(n).Status.Agent.Message).To(ContainSubstring("no space left on device"))
	w.Expect(w.reads(w.fileOf(r, "scratch")).Members).To(HaveLen(1), "the last file stays")

	r.Writer.Before = nil
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.liveNode(n).Status.Agent).To(Equal(&v1alpha1.NodeAgentStatus{ObservedGeneration: 2}))
}

func TestTheNodeFileIsWrittenAlthoughOptionsOfModulesAreRefused(t *testing.T) {
	w := newWorld(t)
	n, r := w.fileSystemNode("scratch", w.node.Name, chunkserver()), w.nodeFiles()
	n.Spec.ModuleOptions = &v1alpha1.ModuleOptions{Write: true, Lines: []string{`options cpt pattern="0[0] 1[1]"`}}
	w.Expect(server.Client.Update(t.Context(), n)).To(Succeed())
	theirs, ours := filepath.Join(r.Modprobe, "cpt.conf"), filepath.Join(r.Modprobe, spec.ModuleOptionsFile(w.namespace, "scratch"))
	w.Expect(os.WriteFile(theirs, []byte("options cpt pattern=N\n"), 0o600)).To(Succeed())
	result, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically("<=", lastRetry), "it looks again")
	w.Expect(w.liveNode(n).Status.Agent).To(HaveValue(And(HaveField("ObservedGeneration", n.Generation),
		HaveField("Message", ContainSubstring(`/etc/modprobe.d/cpt.conf has "N" for the module's option "cpt pattern"`)))))
	w.Expect(w.reads(w.fileOf(r, "scratch")).Members).To(HaveLen(1))
	w.Expect(ours).NotTo(BeAnExistingFile())

	w.Expect(os.Remove(theirs)).To(Succeed())
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.liveNode(n).Status.Agent).To(Equal(&v1alpha1.NodeAgentStatus{ObservedGeneration: n.Generation}))
	w.Expect(ours).To(BeAnExistingFile())
	w.Expect(server.Client.Delete(t.Context(), n)).To(Succeed())
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(ours).NotTo(BeAnExistingFile(), "nobody asks any more")
}

func TestAFileThatWasChangedByHandIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	n, r := w.fileSystemNode("scratch", w.node.Name, chunkserver()), w.nodeFiles()
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	path := w.fileOf(r, "scratch")
	right, err := os.ReadFile(path)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(path, []byte("{}"), 0o600)).To(Succeed())
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.ReadFile(path)).To(Equal(right))
}

func TestObjectsOfOtherNodesAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	r := w.nodeFiles()
	other := w.fileSystemNode("scratch", "another-node", chunkserver())
	_, err := w.writes(r, other)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.fileOf(r, "scratch")).NotTo(BeAnExistingFile())
	w.Expect(w.liveNode(other).Status.Agent).To(BeNil())

	outside := w.fileSystemNode("x", w.node.Name)
	outside.Spec.FileSystem.Name = "/../../etc"
	_, err = r.write(outside, nil, nil)
	w.Expect(err).To(MatchError(ContainSubstring("can't be the name of a FileSystem")))
}

func TestAFileGoesWithItsFileSystemNodeAndNoSooner(t *testing.T) {
	w := newWorld(t)
	r := w.nodeFiles()
	gone, stays := w.fileSystemNode("gone", w.node.Name, chunkserver()), w.fileSystemNode("stays", w.node.Name, chunkserver())
	for _, n := range []*v1alpha1.FileSystemNode{gone, stays} {
		_, err := w.writes(r, n)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(server.Client.Delete(t.Context(), gone)).To(Succeed())

	r.Live = away{server.Client}
	_, err := w.writes(r, gone)
	w.Expect(err).To(MatchError(ContainSubstring("no route to host")))
	w.Expect(r.sweep(t.Context())).NotTo(Succeed())
	w.Expect(w.fileOf(r, "gone")).To(BeARegularFile(), "while the API server is away, the last file stays")

	r.Live = server.Client
	_, err = w.writes(r, gone)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.fileOf(r, "gone")).NotTo(BeAnExistingFile())
	w.Expect(filepath.Dir(w.fileOf(r, "gone"))).To(BeADirectory(), "a pod that has mounted it would not see another of that name")
	w.Expect(w.fileOf(r, "stays")).To(BeARegularFile())
}

func TestTheFileOfARemovedFileSystemNodeIsRemovedWhenTheAgentStarts(t *testing.T) {
	w := newWorld(t)
	r := w.nodeFiles()
	n := w.fileSystemNode("scratch", w.node.Name, chunkserver())
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(server.Client.Delete(t.Context(), n)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.sweepAlways(ctx) }()
	w.Eventually(w.fileOf(r, "scratch")).WithTimeout(patience.Bound(time.Minute)).ShouldNot(BeAnExistingFile())
	stop()
	w.Expect(<-ended).To(Succeed())
}

// away is an API server that can't be reached.
type away struct{ client.Reader }

var errAway = errors.New("no route to host")

func (away) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errAway
}

func (away) List(context.Context, client.ObjectList, ...client.ListOption) error { return errAway }

// ostOf makes a target whose disk only its own server mounts.
func (w *world) ostOf(name string) *v1alpha1.StorageTarget {
	w.t.Helper()
	target := w.target(name, w.node.Name)
	target.Spec.Format.FSType = v1alpha1.Ldiskfs
	target.Spec.Lustre = &v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(3)), ManagementNIDs: []string{"10.0.0.1@tcp"}}
	w.Expect(server.Client.Update(w.t.Context(), target)).To(Succeed())
	return target
}

func TestTheNodeFileHasTheExpectedIdentityOfADiskThatOnlyItsServerMounts(t *testing.T) {
	w := newWorld(t)
	target := w.ostOf("a")
	n, r := w.fileSystemNode("scratch", w.node.Name, storage("a")), w.nodeFiles()
	r.Record = func(spec.Target, spec.TargetRecord) error {
		return errors.New("a record is a file at the top of a disk, and this one shows no directory")
	}
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	told := w.reads(w.fileOf(r, "scratch")).Members[0].Targets[0]
	w.Expect(told.UUID).To(Equal("uuid-of-a"), "it waits for no record")
	w.Expect(told.Served).NotTo(BeNil())
	w.Expect(told.Served.DeviceID).To(Equal("wwn-a"))
	w.Expect(told.Served.FSType).To(Equal("ldiskfs"))
	w.Expect(told.Served.Given).To(MatchJSON(`{"kind":"OST","fsName":"pfs","index":3,"managementNIDs":["10.0.0.1@tcp"]}`))
	w.Expect(told.Served.Mark).To(Equal(plan.NewOf(w.live(target), plan.Look{}, "uuid-of-a").Mark))
	w.Expect(told.Served.Mark).To(And(ContainSubstring(`"uuid":"uuid-of-a"`), ContainSubstring(`"target":"a"`)))
}

func TestADiskLeavesTheNodeFileBeforeItIsUnmounted(t *testing.T) {
	w := newWorld(t)
	target := w.ostOf("a")
	w.ostOf("b")
	n, r := w.fileSystemNode("scratch", w.node.Name, storage("a", "b")), w.nodeFiles()
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(HaveLen(2))

	w.Expect(server.Client.Delete(t.Context(), target)).To(Succeed())
	passed := false
	agent := w.reconciler(func(context.Context, *v1alpha1.StorageTarget, provision.Record) error {
		passed = true
		w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(Equal(map[string]string{"b": "uuid-of-b"}), "its server would mount it again")
		return nil
	})
	agent.Withdraw = r.Withdraw
	_, err = agent.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(target)})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(passed).To(BeTrue())
}
