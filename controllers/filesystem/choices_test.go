package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// question is the input of a choice of disks.
type question struct {
	fs      v1alpha1.FileSystem
	disks   disks
	nodes   plan.TargetNodes
	filesIn map[string][]string
	volumes map[string][]plan.Attachment
}

func (q *question) hash() uint64 {
	return (&choices{}).dependsOn(&q.fs, q.disks, q.nodes, q.filesIn, q.volumes)
}

func newQuestion() *question {
	target := func(name string) v1alpha1.StorageTarget {
		return v1alpha1.StorageTarget{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "storage", Name: name, UID: types.UID(name), Generation: 1, Labels: map[string]string{"a": "b", "c": "d"},
				Finalizers: []string{v1alpha1.Finalizer}, OwnerReferences: []metav1.OwnerReference{{UID: "fs"}},
			},
			Status: v1alpha1.StorageTargetStatus{Provisioned: &v1alpha1.TargetProvisioned{}, Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionFalse},
			}},
		}
	}
	return &question{
		fs:    v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{UID: "fs", Generation: 1}},
		disks: disks{own: []v1alpha1.StorageTarget{target("one")}, others: [][]v1alpha1.StorageTarget{{target("two")}}, versions: map[string]string{"n1": "u/1"}},
		nodes: plan.TargetNodes{Management: []string{"n1"}, Metadata: []string{"n2"}, Pools: map[string][]string{"ssd": {"n3"}}},
	}
}

func TestDisksAreChosenAgainWhenTheInputOfTheChoiceChanges(t *testing.T) {
	now := metav1.Now()
	own := func(change func(t *v1alpha1.StorageTarget)) func(*question) {
		return func(q *question) { change(&q.disks.own[0]) }
	}
	for name, change := range map[string]func(q *question){
		"the spec of the FileSystem":          func(q *question) { q.fs.Generation = 2 },
		"another FileSystem of that name":     func(q *question) { q.fs.UID = "again" },
		"a node of the management":            func(q *question) { q.nodes.Management = []string{"n4"} },
		"a node of the metadata":              func(q *question) { q.nodes.Metadata = nil },
		"a node that joins a pool":            func(q *question) { q.nodes.Pools["ssd"] = []string{"n3", "n4"} },
		"a node in another pool":              func(q *question) { q.nodes.Pools = map[string][]string{"hdd": {"n3"}} },
		"the disks that an agent has found":   func(q *question) { q.disks.versions["n1"] = "u/2" },
		"an agent that is gone":               func(q *question) { q.disks.versions = nil },
		"directories whose files are counted": func(q *question) { q.filesIn = map[string][]string{"one": {"chunks"}} },
		"a volume that is attached":           func(q *question) { q.volumes = map[string][]plan.Attachment{"n1": {{Volume: "pvc-1", Driver: "d"}}} },
		"a StorageTarget that is gone":        func(q *question) { q.disks.own = nil },
		"one of another FileSystem":           func(q *question) { q.disks.others[0][0].Generation = 2 },
		"one that is another's now":           func(q *question) { q.disks.others, q.disks.own = nil, append(q.disks.own, q.disks.others[0]...) },
		"one that was made again":             own(func(t *v1alpha1.StorageTarget) { t.UID = "again" }),
		"one that is deleted":                 own(func(t *v1alpha1.StorageTarget) { t.DeletionTimestamp = &now }),
		"what is asked of one":                own(func(t *v1alpha1.StorageTarget) { t.Generation = 2 }),
		"a label that somebody took":          own(func(t *v1alpha1.StorageTarget) { delete(t.Labels, "a") }),
		"labels with each other's values":     own(func(t *v1alpha1.StorageTarget) { t.Labels = map[string]string{"a": "d", "c": "b"} }),
		"a label that became an annotation":   own(func(t *v1alpha1.StorageTarget) { t.Labels, t.Annotations = nil, t.Labels }),
		"a decommissioned one":                own(func(t *v1alpha1.StorageTarget) { t.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "n1"} }),
		"a finalizer that somebody took":      own(func(t *v1alpha1.StorageTarget) { t.Finalizers = nil }),
		"an owner that somebody took":         own(func(t *v1alpha1.StorageTarget) { t.OwnerReferences = nil }),
		"a disk that is made a target":        own(func(t *v1alpha1.StorageTarget) { t.Status.Provisioned = nil }),
		"a disk that was made one":            own(func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.Finished = &now }),
		"one on which nothing is needed":      own(func(t *v1alpha1.StorageTarget) { t.Status.Conditions[0].Status = metav1.ConditionTrue }),
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuestion()
			before := q.hash()
			change(q)
			NewWithT(t).Expect(q.hash()).NotTo(Equal(before))
		})
	}
	t.Run("but not for a change of its reported space", func(t *testing.T) {
		q := newQuestion()
		before := q.hash()
		q.disks.own[0].ResourceVersion = "9"
		q.disks.own[0].Status.Service = &v1alpha1.TargetService{State: v1alpha1.StateOnline, UsedBytes: 1 << 40}
		NewWithT(t).Expect(q.hash()).To(Equal(before))
	})
}
