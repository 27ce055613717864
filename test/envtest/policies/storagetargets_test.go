//go:build envtest

package policies_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	staysWhatItIs = "the node, role, FileSystem and device of a StorageTarget can't be changed" // the CRD's own rule for everyone
	secondStays   = "the second node of a StorageTarget can't be changed"                       // so is this one
	onlyForPeople = "only spec.approvedPlan, spec.remove and spec.writersStopped are for people"
	holdsData     = "this StorageTarget holds data: set spec.remove: true and wait for SafeToRemove, or delete the FileSystem"
)

func TestOnlyTheManagerMakesStorageTargets(t *testing.T) {
	for name, says := range map[string]string{
		"the manager":                        "",
		"an administrator of the cluster":    "only the operator makes StorageTargets",
		"an administrator of filesystems":    "cannot create resource",
		"the garbage collector":              "cannot create resource",
		"the one user of all controllers":    "only the operator makes StorageTargets",
		"a service account of the same name": "only the operator makes StorageTargets",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := user(t, name).Create(t.Context(), target("made", "n1"), client.DryRunAll)
			if says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			g.Expect(err.Error()).To(ContainSubstring(says))
		})
	}
}

// changes holds a change of each field of the spec with the message for an administrator of the cluster; empty if people may change it.
var changes = map[string]struct{ to, says string }{
	"fileSystem": {`{"uid":"22-22"}`, onlyForPeople},
	"cluster":    {`"c2-c2"`, onlyForPeople},
	"takeOver":   {`"c2-c2"`, onlyForPeople},
	"takeOverFrom": {`{"owner":{"cluster":"c2","namespace":"lab","fileSystem":"old","node":"n9"},"fileSystemUID":"u","type":"MooseFS","target":"t","uuid":"u"}`,
		onlyForPeople},
	"node":           {`"n2"`, staysWhatItIs},
	"secondNode":     {`"n2"`, secondStays},
	"serveOn":        {`"n2"`, onlyForPeople},
	"role":           {`"Metadata"`, staysWhatItIs},
	"storagePool":    {`"hdd"`, onlyForPeople},
	"slot":           {`3`, onlyForPeople},
	"device":         {`{"serial":"S1"}`, onlyForPeople},
	"logDevice":      {`{"id":"wwn-0x5001","sizeBytes":1}`, onlyForPeople},
	"format":         {`{"fsType":"ext4"}`, onlyForPeople},
	"formatFrom":     {`"asked for"`, onlyForPeople},
	"lustre":         {`{"kind":"OST","fsName":"scratch","index":0,"managementNIDs":["10.0.0.1@tcp"]}`, onlyForPeople},
	"queue":          {`{"requests":64}`, onlyForPeople},
	"formatPolicy":   {`"Approved"`, onlyForPeople},
	"conflict":       {`"storage/other wants it too"`, onlyForPeople},
	"destroyFor":     {`"11-11"`, "only the operator sets spec.destroyFor"},
	"approvedPlan":   {`"sha256:` + strings.Repeat("0", 64) + `"`, ""},
	"remove":         {`true`, ""},
	"filesIn":        {`["storage/data/chunks"]`, onlyForPeople},
	"writersStopped": {`true,"remove":true`, ""},
}

func TestPeopleApproveAndRemoveAndChangeNothingElse(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../config/crd/bases/parallelfs.dev_storagetargets.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(text, &crd)).To(Succeed())
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	g.Expect(slices.Collect(maps.Keys(changes))).To(ConsistOf(slices.Collect(maps.Keys(fields))), "a field of the spec that the policy must know of")

	plain, ldiskfs, pair := made(t, target("change", "n1")), target("change-lustre", "n1"), target("change-pair", "n1")
	ldiskfs.Spec.Format.FSType, pair.Spec.Format.FSType, pair.Spec.SecondNode = v1alpha1.Ldiskfs, v1alpha1.Ldiskfs, "n2"
	objects := map[string]*v1alpha1.StorageTarget{"lustre": made(t, ldiskfs), "serveOn": made(t, pair)}
	patch := func(t *testing.T, name, field string) error {
		t.Helper()
		object := cmp.Or(objects[field], plain)
		change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"`+field+`":`+changes[field].to+`}}`))
		return user(t, name).Patch(t.Context(), object.DeepCopy(), change, client.DryRunAll)
	}
	for field, c := range changes {
		t.Run(field, func(t *testing.T) {
			g := NewWithT(t)
			for _, name := range []string{"an administrator of the cluster", "an administrator of filesystems"} {
				err := patch(t, name, field)
				if c.says == "" {
					g.Expect(err).NotTo(HaveOccurred())
					continue
				}
				g.Expect(apierrors.IsForbidden(err)).To(Equal(c.says != staysWhatItIs && c.says != secondStays), "%s: %v", name, err)
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
			// The CRD itself keeps some fields immutable; that is no refusal by the policy.
			g.Expect(apierrors.IsForbidden(patch(t, "the manager", field))).To(BeFalse())
		})
	}
}

func TestFieldsOfTheManagerAreNotRevertedByOthers(t *testing.T) {
	object := target("set", "n1")
	object.Spec.DestroyFor, object.Spec.Conflict, object.Spec.LogDevice = "11-11", "storage/other wants it too", &object.Spec.Device
	object.Spec.Queue = &v1alpha1.QueueSpec{Requests: new(int32(64))}
	object = made(t, object)
	for _, field := range []string{"destroyFor", "conflict", "logDevice", "queue", "storagePool"} {
		t.Run(field, func(t *testing.T) {
			change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"`+field+`":null}}`))
			err := user(t, "an administrator of the cluster").Patch(t.Context(), object.DeepCopy(), change, client.DryRunAll)
			NewWithT(t).Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		})
	}
}

// states holds states of a StorageTarget, and whether people may delete it in each.
var states = map[string]struct {
	change func(*v1alpha1.StorageTarget)
	may    bool
}{
	"nothing was written to its disk yet": {func(*v1alpha1.StorageTarget) {}, true},
	"it was refused before a byte was written": {func(s *v1alpha1.StorageTarget) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", Reason: v1alpha1.ReasonDeviceRefused})
	}, true},
	"it is being formatted": {func(s *v1alpha1.StorageTarget) {
		s.Status.Provisioned = &v1alpha1.TargetProvisioned{UUID: "1", Started: &metav1.Time{Time: time.Unix(1, 0)}}
	}, false},
	"it holds data": {holding(nil), false},
	"its data is being moved": {holding(func(s *v1alpha1.StorageTarget) {
		s.Spec.Remove = true
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSafeToRemove, Status: "False", Reason: v1alpha1.ReasonMovingData})
	}), false},
	"it is unknown whether its data was moved": {holding(func(s *v1alpha1.StorageTarget) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSafeToRemove, Status: "Unknown", Reason: v1alpha1.ReasonMovingData})
	}), false},
	"another condition of it is true": {holding(func(s *v1alpha1.StorageTarget) {
		meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionOnline, Status: "True", Reason: v1alpha1.ReasonServing})
	}), false},
	"its data was moved": {holding(func(s *v1alpha1.StorageTarget) {
		s.Spec.Remove = true
		meta.SetStatusCondition(&s.Status.Conditions, moved(1))
	}), true},
	"its data was moved, and nobody asks for that any more": {holding(func(s *v1alpha1.StorageTarget) {
		meta.SetStatusCondition(&s.Status.Conditions, moved(1))
	}), false},
	"its data was moved before its spec was changed": {holding(func(s *v1alpha1.StorageTarget) {
		s.Spec.Remove = true
		meta.SetStatusCondition(&s.Status.Conditions, moved(0))
	}), false},
	"its node was decommissioned": {holding(func(s *v1alpha1.StorageTarget) {
		s.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "n1"}
	}), true},
	"another node was decommissioned": {holding(func(s *v1alpha1.StorageTarget) {
		s.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "n2"}
	}), false},
	"it was deleted already, and waits for its finalizer": {holding(func(s *v1alpha1.StorageTarget) {
		s.Finalizers = []string{v1alpha1.Finalizer}
	}), true},
}

// moved returns the condition SafeToRemove for a generation.
func moved(generation int64) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionSafeToRemove, Status: "True", Reason: v1alpha1.ReasonDataMoved, ObservedGeneration: generation}
}

func holding(change func(*v1alpha1.StorageTarget)) func(*v1alpha1.StorageTarget) {
	return func(s *v1alpha1.StorageTarget) {
		s.Status.Provisioned = &v1alpha1.TargetProvisioned{UUID: "1", Finished: &metav1.Time{Time: time.Unix(2, 0)}}
		if change != nil {
			change(s)
		}
	}
}

func TestATargetThatHoldsDataIsNotDeletedByHand(t *testing.T) {
	for name, state := range states {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			object := target("delete", "n1")
			state.change(object)
			object = made(t, object)
			if len(object.Finalizers) > 0 {
				g.Expect(user(t, "the manager").Delete(t.Context(), object.DeepCopy())).To(Succeed())
			}
			for _, name := range []string{"an administrator of the cluster", "an administrator of filesystems"} {
				err := user(t, name).Delete(t.Context(), object.DeepCopy(), client.DryRunAll)
				if state.may {
					g.Expect(err).NotTo(HaveOccurred())
					continue
				}
				g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", name, err)
				g.Expect(err.Error()).To(ContainSubstring(holdsData))
			}
			// Controllers that act for a user whose request was already checked may always delete.
			for _, name := range []string{"the manager", "the garbage collector", "the namespace controller", "the one user of all controllers"} {
				g.Expect(user(t, name).Delete(t.Context(), object.DeepCopy(), client.DryRunAll)).To(Succeed(), name)
			}
		})
	}
}

func TestANamespaceIsEmptiedWhenItIsDeleted(t *testing.T) {
	g := NewWithT(t)
	user(t, "the manager")
	space := server.Namespace(t.Context(), t)
	object := target("emptied", "n1")
	object.Namespace = space
	holding(nil)(object)
	made(t, object)

	// People can't delete collectively what they can't delete one by one.
	err := user(t, "an administrator of the cluster").DeleteAllOf(t.Context(), &v1alpha1.StorageTarget{}, client.InNamespace(space))
	g.Expect(err).To(MatchError(ContainSubstring(holdsData)))

	g.Expect(user(t, "the namespace controller").DeleteAllOf(t.Context(), &v1alpha1.StorageTarget{}, client.InNamespace(space))).To(Succeed())
	var left v1alpha1.StorageTargetList
	g.Expect(server.Client.List(t.Context(), &left, client.InNamespace(space))).To(Succeed())
	g.Expect(left.Items).To(BeEmpty())
}

func TestTheGarbageCollectorMayChangeWhatIsItsOwn(t *testing.T) {
	g := NewWithT(t)
	object := target("owned", "n1")
	object.Finalizers = []string{"foregroundDeletion"}
	holding(nil)(object)
	object = made(t, object)
	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": nil, "ownerReferences": nil}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user(t, "the garbage collector").Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", change))).To(Succeed())
	g.Expect(object.Finalizers).To(BeEmpty())
}
