package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestTheNodeFileGetsTheDisksOfANodeTogether(t *testing.T) {
	now := time.Unix(1000, 0)
	finished := &v1alpha1.TargetProvisioned{Finished: new(metav1.Unix(900, 0))}
	for name, c := range map[string]struct {
		reason      string
		provisioned *v1alpha1.TargetProvisioned
		since       time.Duration
		making      bool
	}{
		"no agent has looked at the disk yet":           {since: time.Second, making: true},
		"a disk that is planned":                        {reason: v1alpha1.ReasonPlanning, since: time.Second, making: true},
		"one that is formatted":                         {reason: v1alpha1.ReasonProvisioning, since: time.Second, making: true},
		"one that is formatted for a long time":         {reason: v1alpha1.ReasonProvisioning, since: time.Minute},
		"one that waits for a person":                   {reason: v1alpha1.ReasonAwaitingApproval, since: time.Second},
		"one that is refused":                           {reason: v1alpha1.ReasonDeviceRefused, since: time.Second},
		"one that is a target, and was unmounted since": {reason: v1alpha1.ReasonProvisioning, provisioned: finished, since: time.Second},
		"one that is proven":                            {reason: v1alpha1.ReasonProven, provisioned: finished, since: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			target := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}, Spec: v1alpha1.StorageTargetSpec{Node: "n1"}}
			target.Status.Provisioned = c.provisioned
			if c.reason != "" {
				target.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: c.reason}}
			}
			in := backend.Input{Targets: []v1alpha1.StorageTarget{target}, Since: map[types.UID]time.Time{"a": now.Add(-c.since)}}
			NewWithT(t).Expect(disksBeingMade(in, now)["n1"]).To(Equal(c.making))
		})
	}
}

func TestOnlyNewsOfDisksThatAreReadyWaitForOthers(t *testing.T) {
	target := func(name, uuid string) v1alpha1.MemberTarget { return v1alpha1.MemberTarget{Name: name, UUID: uuid} }
	member := func(targets ...v1alpha1.MemberTarget) []v1alpha1.NodeMember {
		return []v1alpha1.NodeMember{{Name: "storage-ssd", Targets: targets}}
	}
	before := member(target("a", ""), target("b", "u-b"))
	for name, c := range map[string]struct {
		after []v1alpha1.NodeMember
		waits bool
	}{
		"nothing new":                   {before, true},
		"a disk that is ready":          {member(target("a", "u-a"), target("b", "u-b")), true},
		"a disk with another UUID":      {member(target("a", ""), target("b", "u-x")), false},
		"a disk that lost its UUID":     {member(target("a", ""), target("b", "")), false},
		"one more disk":                 {member(target("a", ""), target("b", "u-b"), target("c", "")), false},
		"a disk that is taken away":     {member(target("a", "")), false},
		"a permission that ends":        {member(v1alpha1.MemberTarget{Name: "a", UUID: "u-a", Granted: true}, target("b", "u-b")), false},
		"data that is to be moved away": {member(target("a", ""), v1alpha1.MemberTarget{Name: "b", UUID: "u-b", Remove: true}), false},
		"a server that has to wait":     {[]v1alpha1.NodeMember{{Name: "storage-ssd", Waits: "why", Targets: before[0].Targets}}, false},
		"one more server":               {append(member(before[0].Targets...), v1alpha1.NodeMember{Name: "storage-hdd"}), false},
		"no server":                     {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			for making, kept := range map[bool]bool{true: c.waits, false: false} {
				g := NewWithT(t)
				read := []v1alpha1.FileSystemNode{{Spec: v1alpha1.FileSystemNodeSpec{Node: "n1", Members: before}}}
				wanted := []v1alpha1.FileSystemNode{{Spec: v1alpha1.FileSystemNodeSpec{Node: "n1", Members: c.after}}}
				keepWhileDisksAreMade(read, wanted, map[string]bool{"n1": making})
				if kept {
					g.Expect(wanted[0].Spec.Members).To(Equal(before))
				} else {
					g.Expect(wanted[0].Spec.Members).To(Equal(c.after))
				}
			}
		})
	}
}
