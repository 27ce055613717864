//go:build chart

package charts_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// dashboards returns the dashboards of a release, by name of file.
func dashboards(t *testing.T, values string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range render(t, values).names() {
		if name, is := strings.CutPrefix(name, "ConfigMap/"); is && strings.Contains(name, "-dashboard-") {
			one := find[corev1.ConfigMap](t, render(t, values), "ConfigMap", name)
			NewWithT(t).Expect(one.Labels).To(HaveKeyWithValue("grafana_dashboard", "1"))
			maps.Copy(out, one.Data)
		}
	}
	return out
}

// expressions returns the values of each field expr in a document, with the title of its panel.
func expressions(node any, title string, take func(title, expr string)) {
	switch is := node.(type) {
	case []any:
		for _, child := range is {
			expressions(child, title, take)
		}
	case map[string]any:
		if name, has := is["title"].(string); has {
			title = name
		}
		if expr, has := is["expr"].(string); has {
			take(title, expr)
		}
		for _, child := range is {
			expressions(child, title, take)
		}
	}
}

func TestEveryQueryOfADashboardUsesOnlyMetricsAndLabelsThatThereAre(t *testing.T) {
	known := exported(t)
	all := dashboards(t, "monitoring: {dashboards: {enabled: true}}")
	NewWithT(t).Expect(slices.Sorted(maps.Keys(all))).To(Equal([]string{
		"parallelfs-benchmarks.json", "parallelfs-filesystem.json", "parallelfs-overview.json", "parallelfs-servers-and-disks.json",
	}))
	for file, text := range all {
		g := NewWithT(t)
		var board map[string]any
		g.Expect(json.Unmarshal([]byte(text), &board)).To(Succeed(), file)
		queries := 0
		expressions(board, file, func(title, expr string) {
			queries++
			parsed, err := parser.ParseExpr(expr)
			g.Expect(err).NotTo(HaveOccurred(), "%s: %s: %s", file, title, expr)
			parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
				selector, is := node.(*parser.VectorSelector)
				if !is {
					return nil
				}
				g.Expect(known).To(HaveKey(selector.Name), "%s: %s", file, title)
				for _, m := range selector.LabelMatchers {
					if m.Name != "__name__" {
						g.Expect(known[selector.Name]).To(ContainElement(m.Name), "%s: %s: a label of %s", file, title, selector.Name)
					}
				}
				return nil
			})
		})
		g.Expect(queries).To(BeNumerically(">", 8), file)
	}
}

func TestDashboardsAreMadeOnlyWhenAskedFor(t *testing.T) {
	NewWithT(t).Expect(dashboards(t, "monitoring: {enabled: true}")).To(BeEmpty())
}

func TestValuesAddArgumentsVariablesAndAnnotations(t *testing.T) {
	g := NewWithT(t)
	all := render(t, `
extraArgs: [--poll-interval=30s]
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy.example.com:3128"}]
runAsUser: 0
podDisruptionBudget: {enabled: false}
serviceAccount: {annotations: {team: storage}}
agent:
  extraArgs: [--resync=5m]
  extraEnv: [{name: A, value: b}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}
`)
	manager := find[appsv1.Deployment](t, all, "Deployment", release+"-manager").Spec.Template.Spec
	args := manager.Containers[0].Args
	g.Expect(args[len(args)-1]).To(Equal("--poll-interval=30s"), "the last of the same name counts")
	g.Expect(manager.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example.com:3128"}))
	g.Expect(manager.SecurityContext.RunAsUser).To(BeNil(), "the cluster chooses")
	g.Expect(*manager.SecurityContext.RunAsNonRoot).To(BeTrue())
	g.Expect(find[corev1.ServiceAccount](t, all, "ServiceAccount", release+"-manager").Annotations).To(HaveKeyWithValue("team", "storage"))
	g.Expect(all.names()).NotTo(ContainElement("PodDisruptionBudget/" + release + "-manager"))
	agent := find[appsv1.DaemonSet](t, all, "DaemonSet", release+"-agent").Spec.Template.Spec
	g.Expect(agent.Containers[0].Args).To(ContainElement("--resync=5m"))
	g.Expect(agent.Containers[0].Env).To(ContainElement(corev1.EnvVar{Name: "A", Value: "b"}))
	g.Expect(agent.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution).NotTo(BeNil())

	out, err := helm(t, "extraArgs: [poll]", "template", release, chart, registry, "--kube-version", oldest)
	g.Expect(err).To(HaveOccurred())
	g.Expect(out).To(ContainSubstring("extraArgs"))
}
