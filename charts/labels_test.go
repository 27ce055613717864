//go:build chart

package charts_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// podTemplates returns the templates of the chart's own pods, with their selectors.
func podTemplates(t *testing.T, o objects) (pods []corev1.PodTemplateSpec, selectors []map[string]string) {
	t.Helper()
	agent := agents(t, o).Spec
	pods, selectors = append(pods, agent.Template), append(selectors, agent.Selector.MatchLabels)
	for _, name := range []string{release + "-manager", release + "-mpi-operator"} {
		d := find[appsv1.Deployment](t, o, "Deployment", name).Spec
		pods, selectors = append(pods, d.Template), append(selectors, d.Selector.MatchLabels)
	}
	return pods, selectors
}

func TestLabelsAndAnnotationsOfValuesReachAllObjectsAndPodsAndSelectNothing(t *testing.T) {
	g := NewWithT(t)
	all := render(t, `
commonLabels: {team: storage, tier: both}
podLabels: {sidecar: "no", tier: pods}
podAnnotations: {example.com/scrape: "no"}
monitoring: {enabled: true, labels: {team: monitoring}}
`, served)
	for _, object := range all {
		team := "storage"
		if object.GroupVersionKind().Group == "monitoring.coreos.com" {
			team = "monitoring"
		}
		g.Expect(object.GetLabels()).To(And(HaveKeyWithValue("team", team), HaveKeyWithValue("tier", "both")), object.GetKind()+" "+object.GetName())
		g.Expect(object.GetLabels()).To(HaveKey("app.kubernetes.io/name"), object.GetName())
	}
	pods, selectors := podTemplates(t, all)
	_, before := podTemplates(t, render(t, ""))
	g.Expect(selectors).To(Equal(before), "what selects pods can't be changed by an update")
	for i, pod := range pods {
		g.Expect(pod.Labels).To(And(HaveKeyWithValue("team", "storage"), HaveKeyWithValue("tier", "pods"), HaveKeyWithValue("sidecar", "no")))
		g.Expect(pod.Annotations).To(HaveKeyWithValue("example.com/scrape", "no"))
		for key, value := range selectors[i] {
			g.Expect(pod.Labels).To(HaveKeyWithValue(key, value))
		}
	}
}

func TestGlobalValuesSetRegistryAndPullSecretsAndTheChartsOwnOverrideThem(t *testing.T) {
	g := NewWithT(t)
	global := "global: {imageRegistry: global.example.com, imagePullSecrets: [{name: theirs}], other: {chart: 1}}\n"
	out, err := helm(t, global, "template", release, chart, "--kube-version", oldest)
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(out).To(And(ContainSubstring("image: global.example.com/parallelfs/manager:"), ContainSubstring("--node-image=global.example.com/parallelfs/node:")))
	all := render(t, global+"imagePullSecrets: [{name: ours}, {name: theirs}]")
	g.Expect(manager(t, all).Spec.Template.Spec.Containers[0].Image).To(HavePrefix("registry.example.com/"))
	pods, _ := podTemplates(t, all)
	for _, pod := range pods {
		g.Expect(pod.Spec.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "ours"}, {Name: "theirs"}}))
	}
}

func TestTheFormOfTheLogAndTheTimesOfTheLeaseReachTheManager(t *testing.T) {
	for values, args := range map[string]string{
		"": "--leader-elect-lease-duration=30s --leader-elect-renew-deadline=25s --leader-elect-retry-period=4s --log-level=info --log-format=json",
		"{logLevel: error, logFormat: text, leaderElection: {leaseDuration: 2m, renewDeadline: 90s, retryPeriod: 10s}}": "--leader-elect-lease-duration=2m --leader-elect-renew-deadline=90s --leader-elect-retry-period=10s --log-level=error --log-format=text",
	} {
		NewWithT(t).Expect(manager(t, render(t, values)).Spec.Template.Spec.Containers[0].Args).To(ContainElements(strings.Fields(args)))
	}
}
