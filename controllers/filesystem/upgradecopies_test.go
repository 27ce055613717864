package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

// upgradable is a backend that can go from each version to each other one. It has no servers, and an upgrade waits for them last.
type upgradable struct{ backendtest.Example }

func (upgradable) Lines() []string                                { return []string{"1.0", "2.0"} }
func (upgradable) UpgradePath(string, string) string              { return "" }
func (upgradable) UpgradeSkew(backend.Input, string) string       { return "" }
func (upgradable) Members(backend.Input) ([]client.Object, error) { return nil, nil }

func TestAnUpgradeBeginsOnlyWithAProvenCopyOfTheMetadataOrAPersonsApprovalForThisVersion(t *testing.T) {
	const waits, goesOn = "begins when a copy of the metadata is proven", "begins when all that the spec asks for is made"
	type copies = []v1alpha1.MetadataCopyStatus
	on := func(node string, result v1alpha1.MetadataCopyResult) v1alpha1.MetadataCopyStatus {
		return v1alpha1.MetadataCopyStatus{Node: node, Follows: "1a", Result: result}
	}
	proven, unread, refused := v1alpha1.MetadataCopyProven, v1alpha1.MetadataCopyUnread, v1alpha1.MetadataCopyRefused
	for name, c := range map[string]struct {
		copies  copies
		word    string
		message string
	}{
		"no copy is asked for":            {nil, "", goesOn},
		"the copy is proven":              {copies{on("n1", proven)}, "", goesOn},
		"one of two copies is proven":     {copies{on("n1", refused), on("n2", proven)}, "", goesOn},
		"the copy was not read":           {copies{on("n1", unread)}, "", waits},
		"the copy has a hole":             {copies{on("n1", refused)}, "", waits},
		"a person goes on without":        {copies{on("n1", refused)}, "2.0", goesOn},
		"the word is for another version": {copies{on("n1", refused)}, "3.0", waits},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{}
			fs.Spec.Version, fs.Status.Version, fs.Spec.Updates.UpgradeWithoutBackup = "2.0", "1.0", c.word
			fs.Status.MetadataCopies, fs.Spec.Backups = c.copies, &v1alpha1.BackupsSpec{}
			meta.SetStatusCondition(&fs.Status.Conditions, metav1.Condition{
				Type: v1alpha1.ConditionBackedUp, Status: metav1.ConditionTrue, Reason: "Verified", LastTransitionTime: metav1.NewTime(time.Now())})
			p := &pass{fs: fs, backend: upgradable{}, Reconciler: &Reconciler{Clock: clock.RealClock{}}}
			is, err := p.mayUpgrade(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(is.refused).To(BeFalse())
			g.Expect(is.message).To(ContainSubstring(c.message))
		})
	}
}
