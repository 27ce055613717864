package benchmarkrun

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
)

func TestAnOperatorWithoutFileSystemsRefusesARunOnOneAndReadsNothingOfIt(t *testing.T) {
	g := NewWithT(t)
	r, w := &Reconciler{NoFileSystems: true}, scopetest.Idle() // without a client, every read would fail
	w.FileSystem = nil
	g.Expect(r.gatherTarget(t.Context(), w)).To(Succeed())
	g.Expect(r.gatherMembers(t.Context(), w)).To(Succeed())
	g.Expect(r.gatherMounts(t.Context(), w)).To(Succeed())
	g.Expect(r.gatherNodes(t.Context(), w)).To(Succeed())
	d := decision.Decide(w)
	g.Expect(d.Reason).To(Equal(v1alpha1.ReasonInvalidSpec))
	g.Expect(d.Message).To(HavePrefix("spec.target.fileSystem: this operator is installed without filesystems"))
}
