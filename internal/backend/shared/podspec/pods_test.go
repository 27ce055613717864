package podspec

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestPodsOfDifferentSlotsAreDistinguished(t *testing.T) {
	g := NewWithT(t)
	p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}}, Software: "example"}
	first := Workload{Component: "meta", Slot: "0"}
	set := p.DaemonSet("meta-0", first, p.Template(first))
	g.Expect(set.Spec.Selector.MatchLabels).To(HaveKeyWithValue(v1alpha1.LabelSlot, "0"))
	g.Expect(p.Labels(Workload{Component: "meta", Slot: "1"})).NotTo(HaveKeyWithValue(v1alpha1.LabelSlot, "0"))
	g.Expect(set.Spec.Template.Labels).To(HaveKeyWithValue("app.kubernetes.io/name", "example"))
}

func TestOnlyWhatNeedsARestartChangesTheHashOfATemplate(t *testing.T) {
	g := NewWithT(t)
	p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}}}
	hash := func(text string, nodes ...string) string {
		w := Workload{Component: "meta"}
		pod := p.Template(w)
		pod.Spec.Affinity = OnNodes(nodes...)
		return p.DaemonSet("meta", w, pod, text).Spec.Template.Annotations[backend.TemplateHashAnnotation]
	}
	g.Expect(hash("a", "n1")).To(Equal(hash("a", "n1", "n2")), "which nodes there are is no reason to restart")
	g.Expect(hash("a", "n1")).NotTo(Equal(hash("b", "n1")), "what a daemon is told is one")
}

func TestPodsHaveWhatTheUserAsksForAndOnlyResourcesRestartThem(t *testing.T) {
	g := NewWithT(t)
	template := func(pods v1alpha1.PodsSpec) corev1.PodTemplateSpec {
		p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Spec: v1alpha1.FileSystemSpec{Pods: pods}}}
		w := Workload{Component: "meta", Role: v1alpha1.RoleMetadata}
		pod := p.Template(w)
		pod.Spec.Containers = []corev1.Container{p.Container("meta", "example-meta:7.4.6", "run", "config", "meta.json"), {Name: "probe"}}
		return p.DaemonSet("meta", w, pod, "told").Spec.Template
	}
	before := template(v1alpha1.PodsSpec{})
	g.Expect(before.Spec.Tolerations).To(ConsistOf(corev1.Toleration{Operator: corev1.TolerationOpExists}))
	g.Expect(before.Spec.PriorityClassName).To(Equal("system-node-critical"))

	asked := v1alpha1.PodsSpec{
		Tolerations: []v1alpha1.Toleration{
			{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))},
			{Key: "tier", Operator: corev1.TolerationOpEqual, Value: "fast"},
		},
		PriorityClassName: "storage", Labels: map[string]v1alpha1.LabelValue{"cost-center": "7", v1alpha1.LabelFileSystem: "another"},
		Annotations: map[string]v1alpha1.AnnotationValue{"scrape": "true"}, ImagePullSecrets: []v1alpha1.SecretReference{{Name: "registry"}},
		ServiceAccountName: "storage",
	}
	after := template(asked)
	g.Expect(after.Spec.Tolerations).To(HaveExactElements(
		corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(60))},
		corev1.Toleration{Key: "tier", Operator: corev1.TolerationOpEqual, Value: "fast"}))
	g.Expect(after.Spec.PriorityClassName).To(Equal("storage"))
	g.Expect(after.Spec.ImagePullSecrets).To(HaveExactElements(corev1.LocalObjectReference{Name: "registry"}))
	g.Expect(after.Spec.ServiceAccountName).To(Equal("storage"))
	g.Expect(after.Labels).To(And(HaveKeyWithValue("cost-center", "7"), HaveKeyWithValue(v1alpha1.LabelFileSystem, "scratch")), "the operator's own labels stay")
	g.Expect(after.Annotations).To(HaveKeyWithValue("scrape", "true"))
	g.Expect(after.Annotations[backend.TemplateHashAnnotation]).To(Equal(before.Annotations[backend.TemplateHashAnnotation]), "nothing of it restarts a daemon")

	asked.Resources.Metadata = &v1alpha1.ContainerResources{
		Requests: v1alpha1.ResourceAmounts{corev1.ResourceMemory: "16Gi"}, Limits: v1alpha1.ResourceAmounts{corev1.ResourceMemory: "32Gi"},
	}
	asked.Resources.Storage = &v1alpha1.ContainerResources{Requests: v1alpha1.ResourceAmounts{corev1.ResourceMemory: "1Gi"}}
	after = template(asked)
	g.Expect(after.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("16Gi"))
	g.Expect(after.Spec.Containers[0].Resources.Limits.Memory().String()).To(Equal("32Gi"))
	g.Expect(after.Spec.Containers[1].Resources.Requests).To(BeEmpty(), "only the daemon has it")
	g.Expect(after.Annotations[backend.TemplateHashAnnotation]).NotTo(Equal(before.Annotations[backend.TemplateHashAnnotation]))
}

func TestEachRoleHasItsOwnTolerations(t *testing.T) {
	lab, gpu, storage := v1alpha1.Toleration{Key: "lab", Value: "a"}, v1alpha1.Toleration{Key: "gpu", Value: "b"}, v1alpha1.Toleration{Key: "storage", Value: "c"}
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	as := func(t v1alpha1.Toleration) corev1.Toleration {
		return corev1.Toleration{Key: string(t.Key), Value: string(t.Value)}
	}
	byRole := v1alpha1.RoleTolerations{Client: []v1alpha1.Toleration{gpu}, Storage: []v1alpha1.Toleration{storage}}
	for name, c := range map[string]struct {
		general []v1alpha1.Toleration
		want    map[v1alpha1.Role][]corev1.Toleration
	}{
		"other roles have those of all pods, and jobs have all": {
			general: []v1alpha1.Toleration{lab},
			want: map[v1alpha1.Role][]corev1.Toleration{
				RoleClient: {as(gpu)}, v1alpha1.RoleStorage: {as(storage)}, v1alpha1.RoleMetadata: {as(lab)}, v1alpha1.RoleManagement: {as(lab)},
				v1alpha1.RoleMetadataBackup: {as(lab)}, "": {as(lab), as(storage), as(gpu)},
			},
		},
		"other roles, and jobs, tolerate every taint": {
			want: map[v1alpha1.Role][]corev1.Toleration{
				RoleClient: {as(gpu)}, v1alpha1.RoleStorage: {as(storage)}, v1alpha1.RoleMetadata: {all}, v1alpha1.RoleManagement: {all},
				v1alpha1.RoleMetadataBackup: {all}, "": {all},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pods := v1alpha1.PodsSpec{Tolerations: c.general, TolerationsByRole: byRole}
			p := Pods{FileSystem: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Spec: v1alpha1.FileSystemSpec{Pods: pods}}}
			for role, want := range c.want {
				pod := p.Template(Workload{}) // as backends make it, who name the role for the DaemonSet only
				NewWithT(t).Expect(pod.Spec.Tolerations).To(Equal(c.want[""]))
				if role != "" {
					pod.Spec.Containers = []corev1.Container{{}}
					NewWithT(t).Expect(p.DaemonSet("a", Workload{Role: role}, pod).Spec.Template.Spec.Tolerations).To(Equal(want), role)
				}
			}
		})
	}
}

func TestEveryContainerOfAPodWithExclusiveCPUsIsLimited(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{InitContainers: make([]corev1.Container, 1), Containers: make([]corev1.Container, 2)}}
	pinning := &v1alpha1.CPUPinning{Mode: v1alpha1.PinningKubeletStatic, CPUs: new(int32(8)), Memory: resource.MustParse("16Gi")}
	config, err := Pin(pod, "spec.metadataServers", pinning, "told")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config).To(Equal([]any{"told"}))
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		g.Expect(c.Resources.Limits).NotTo(BeEmpty())
		g.Expect(c.Resources.Limits).To(Equal(c.Resources.Requests), "or the kubelet gives no CPU of its own to any of them")
	}
	g.Expect(pod.Spec.Containers[0].Resources.Limits.Cpu().String()).To(Equal("8"))
}
