//go:build envtest

package agent

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// storage is a server that keeps data on these disks.
func storage(targets ...string) v1alpha1.NodeMember {
	m := v1alpha1.NodeMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 7}
	for i, name := range targets {
		m.Targets = append(m.Targets, v1alpha1.MemberTarget{
			Name: name, ID: int32(i) + 1, Path: "/var/lib/parallelfs/targets/x/" + name, UUID: "uuid-of-" + name,
		})
	}
	return m
}

// disks holds the records on the disks of a node, by StorageTarget. An error stands for a failing disk.
type disks struct {
	says  map[string]spec.TargetRecord
	fails map[string]error
	count int
}

func (d *disks) record(t spec.Target, wanted spec.TargetRecord) error {
	if err := d.fails[t.Name]; err != nil {
		return err
	}
	d.count++
	if d.says == nil {
		d.says = map[string]spec.TargetRecord{}
	}
	d.says[t.Name] = wanted
	return nil
}

// uuids returns the UUIDs of the disks in a node file, by StorageTarget.
func uuids(file spec.NodeFile) map[string]string {
	out := map[string]string{}
	for _, m := range file.Members {
		for _, t := range m.Targets {
			out[t.Name] = t.UUID
		}
	}
	return out
}

func TestADiskHoldsItsAssignmentBeforeAServerIsConfiguredToUseIt(t *testing.T) {
	w := newWorld(t)
	n, r, d := w.fileSystemNode("scratch", w.node.Name, storage("a")), w.nodeFiles(), &disks{}
	r.Record = d.record
	r.Writer.Before = func(string) error {
		w.Expect(d.says).To(HaveKey("a"), "the record is on the disk before anything is told")
		return nil
	}
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(d.says["a"]).To(Equal(spec.TargetRecord{
		Version: 1, FileSystem: spec.Owner{Namespace: w.namespace, Name: "scratch", UID: "1-2-3"}, Node: w.node.Name,
		Type: exampleType, MetadataNode: "mds1", Member: spec.RecordedMember{Name: "storage-ssd", Role: "Storage", StoragePool: "ssd", ID: 7},
		Target: "a", TargetID: 1,
	}))
	r.Writer.Before = nil
	for range 3 {
		_, err = w.writes(r, n)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(d.count).To(Equal(1), "a disk that says it is left alone")

	live := w.liveNode(n)
	live.Spec.Facts.MetadataTarget = "scratch-mds0-1"
	w.Expect(server.Client.Update(t.Context(), live)).To(Succeed())
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(d.says["a"].MetadataTarget).To(Equal("scratch-mds0-1"))
}

func TestADiskWithAnUnreadableRecordIsNotUsedAndDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	n, r := w.fileSystemNode("scratch", w.node.Name, storage("a", "b")), w.nodeFiles()
	d := &disks{fails: map[string]error{"b": errors.New("input/output error")}}
	r.Record = d.record
	_, err := w.writes(r, n)
	w.Expect(err).To(MatchError(ContainSubstring("no server may use these disks before their record lies on them: b (input/output error)")))
	w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(Equal(map[string]string{"a": "uuid-of-a", "b": ""}))
	w.Expect(w.liveNode(n).Status.Agent).To(And(
		HaveField("ObservedGeneration", BeZero()), HaveField("Message", ContainSubstring("b (input/output error)"))))

	delete(d.fails, "b")
	_, err = w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(HaveKeyWithValue("b", "uuid-of-b"))
	w.Expect(w.liveNode(n).Status.Agent).To(Equal(&v1alpha1.NodeAgentStatus{ObservedGeneration: 1}))
}

func TestADiskThatDiesLaterDelaysNoConfigurationOfItsServers(t *testing.T) {
	w := newWorld(t)
	n, r, d := w.fileSystemNode("scratch", w.node.Name, storage("a", "b")), w.nodeFiles(), &disks{}
	r.Record = d.record
	_, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())

	// The agent restarts while one disk is dead.
	root := r.Root
	r = w.nodeFiles()
	r.Root, r.Record, d.fails = root, d.record, map[string]error{"b": errors.New("input/output error")}
	live := w.liveNode(n)
	live.Spec.Members[0].Targets[0].Remove = true
	w.Expect(server.Client.Update(t.Context(), live)).To(Succeed())
	result, err := w.writes(r, n)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(BeNumerically("<=", time.Minute), "it is tried again")
	w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(HaveKeyWithValue("b", "uuid-of-b"), "it has the record with the same ids")
	w.Expect(w.liveNode(n).Status.Agent).To(Equal(&v1alpha1.NodeAgentStatus{ObservedGeneration: 2}))
}

func TestADiskThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	n, r, d := w.fileSystemNode("scratch", w.node.Name, storage("a", "b")), w.nodeFiles(), &disks{}
	answers := make(chan struct{})
	r.Record = func(of spec.Target, wanted spec.TargetRecord) error {
		if of.Name == "b" {
			<-answers
			return nil
		}
		return d.record(of, wanted)
	}
	r.patience = time.Second
	_, err := w.writes(r, n)
	w.Expect(err).To(MatchError(ContainSubstring("b (its disk has not answered")))
	w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(Equal(map[string]string{"a": "uuid-of-a", "b": ""}))
	began := time.Now()
	_, err = w.writes(r, n)
	w.Expect(err).To(MatchError(ContainSubstring("b (its disk does not answer)")))
	w.Expect(time.Since(began)).To(BeNumerically("<", patience.Bound(time.Minute)), "it is not asked twice at once")
	close(answers)
	w.Eventually(func() error { _, err := w.writes(r, n); return err }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	w.Expect(uuids(w.reads(w.fileOf(r, "scratch")))).To(HaveKeyWithValue("b", "uuid-of-b"))
}
