package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

func TestANodeGetsTheLabelsOfItsServersAndLosesThoseOfRetiredOnes(t *testing.T) {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1b4e28ba-2fa1-11d2"}}
	again := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "7c9e6679-7425-40de"}}
	meta0, ssd := podspec.NodeLabel(fs, "meta-0"), podspec.NodeLabel(fs, "storage-ssd")
	meta, storage := v1alpha1.NodeMember{Name: "meta-0", Role: v1alpha1.RoleMetadata, ID: 1}, v1alpha1.NodeMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage}
	retired := v1alpha1.NodeMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, Retired: true}
	for name, c := range map[string]struct {
		have    map[string]string
		members []v1alpha1.NodeMember
		want    map[string]*string
	}{
		"a node with two new servers":      {nil, []v1alpha1.NodeMember{meta, storage}, map[string]*string{meta0: new(""), ssd: new("")}},
		"one that has them":                {map[string]string{meta0: "", ssd: ""}, []v1alpha1.NodeMember{meta, storage}, map[string]*string{}},
		"one of which a person took one":   {map[string]string{meta0: ""}, []v1alpha1.NodeMember{meta, storage}, map[string]*string{ssd: new("")}},
		"one of which a person changed it": {map[string]string{meta0: "no"}, []v1alpha1.NodeMember{meta}, map[string]*string{meta0: new("")}},
		"a server that has retired":        {map[string]string{meta0: "", ssd: ""}, []v1alpha1.NodeMember{meta, retired}, map[string]*string{ssd: nil}},
		"a server without assignments":     {nil, []v1alpha1.NodeMember{{Name: "master", Role: v1alpha1.RoleMetadata}}, map[string]*string{}},
		"a server that is not there":       {map[string]string{ssd: ""}, nil, map[string]*string{ssd: nil}},
		"labels of others": {map[string]string{"rack": "a", podspec.NodeLabel(again, "meta-0"): ""}, []v1alpha1.NodeMember{meta},
			map[string]*string{meta0: new("")}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(labelChanges(fs, c.have, c.members)).To(Equal(c.want))
		})
	}
}
