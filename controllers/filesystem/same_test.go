package filesystem

import (
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// A field that the comparison omits would never be written again.
func TestEveryFieldOfATargetDistinguishesIt(t *testing.T) {
	g := NewWithT(t)
	values := []any{
		"x", int32(7), true, map[string]v1alpha1.VariableValue{"X": "y"}, new(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))),
	}
	g.Expect(sameTarget(v1alpha1.MemberTarget{}, v1alpha1.MemberTarget{})).To(BeTrue())
	for field := range reflect.TypeFor[v1alpha1.MemberTarget]().Fields() {
		var other v1alpha1.MemberTarget
		to := reflect.ValueOf(&other).Elem().FieldByIndex(field.Index)
		for _, value := range values {
			if v := reflect.ValueOf(value); v.Type().AssignableTo(to.Type()) {
				to.Set(v)
			}
		}
		g.Expect(to.IsZero()).To(BeFalse(), "no value for %s", field.Name)
		g.Expect(sameTarget(v1alpha1.MemberTarget{}, other)).To(BeFalse(), field.Name)
		g.Expect(sameTarget(other, other)).To(BeTrue(), field.Name)
		spec := func(target v1alpha1.MemberTarget) *v1alpha1.FileSystemNodeSpec {
			return &v1alpha1.FileSystemNodeSpec{Members: []v1alpha1.NodeMember{{Name: "meta-0", Targets: []v1alpha1.MemberTarget{target}}}}
		}
		g.Expect(sameSpec(spec(other), spec(other))).To(BeTrue(), field.Name)
		g.Expect(sameSpec(spec(v1alpha1.MemberTarget{}), spec(other))).To(BeFalse(), field.Name)
	}
	g.Expect(sameSpec(&v1alpha1.FileSystemNodeSpec{Node: "a"}, &v1alpha1.FileSystemNodeSpec{Node: "b"})).To(BeFalse())
	g.Expect(sameSpec(&v1alpha1.FileSystemNodeSpec{Members: []v1alpha1.NodeMember{{ID: 1}}},
		&v1alpha1.FileSystemNodeSpec{Members: []v1alpha1.NodeMember{{ID: 2}}})).To(BeFalse())
}
