//go:build chart

package charts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/internal/backend/all"
)

// monitor holds the fields of a PodMonitor or ServiceMonitor that the chart uses.
type monitor struct {
	Spec struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port        string `json:"port"`
			HonorLabels bool   `json:"honorLabels"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

// finds is true for a pod that a PodMonitor scrapes: its labels match, and a container has the port.
func (m *monitor) finds(t *testing.T, pod *corev1.PodTemplateSpec) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return selector.Matches(labels.Set(pod.Labels)) && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == m.Spec.PodMetricsEndpoints[0].Port })
	})
}

// daemonSets returns the DaemonSets in a golden file of a backend, whose own test keeps the file up to date.
func daemonSets(t *testing.T, file string) (sets []*appsv1.DaemonSet) {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(text), "---\n") {
		if strings.Contains(document, "kind: DaemonSet") || strings.Contains(document, "updateStrategy:") {
			set := &appsv1.DaemonSet{}
			NewWithT(t).Expect(yaml.Unmarshal([]byte(document), set)).To(Succeed(), file)
			sets = append(sets, set)
		}
	}
	return sets
}

// goldenFiles lists the golden files with the DaemonSets of a backend.
func goldenFiles(t *testing.T, kind string) (files []string) {
	t.Helper()
	folder := "../internal/backend/" + strings.ToLower(kind) + "/testdata"
	NewWithT(t).Expect(filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".golden.yaml") && len(daemonSets(t, path)) > 0 {
			files = append(files, path)
		}
		return err
	})).To(Succeed())
	return files
}

func TestEveryPodOfEveryBackendThatServesAProbeIsScraped(t *testing.T) {
	rendered := render(t, "monitoring: {enabled: true}", "--api-versions", "monitoring.coreos.com/v1")
	monitored := find[monitor](t, rendered, "PodMonitor", release+"-filesystems")
	NewWithT(t).Expect(monitored.Spec.PodMetricsEndpoints).To(HaveLen(1))
	for kind := range all.Backends(time.Minute) {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			files := goldenFiles(t, string(kind))
			g.Expect(files).NotTo(BeEmpty(), "the backend has no golden file of its objects")
			for _, file := range files {
				scraped := 0
				for _, set := range daemonSets(t, file) {
					pod := &set.Spec.Template
					serves := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
						return len(c.Command) > 1 && c.Command[1] == "probe"
					})
					g.Expect(monitored.finds(t, pod)).To(Equal(serves), "%s: a pod of %s is scraped if it has a probe", file, set.Name)
					if serves {
						scraped++
					}
				}
				g.Expect(scraped).To(BeNumerically(">", 0), "%s: nothing of this filesystem is scraped", file)
			}
		})
	}
}

func TestTheAgentsMonitorFindsTheAgents(t *testing.T) {
	g := NewWithT(t)
	rendered := render(t, "monitoring: {enabled: true}", "--api-versions", "monitoring.coreos.com/v1")
	g.Expect(find[monitor](t, rendered, "PodMonitor", release+"-agents").finds(t, &agents(t, rendered).Spec.Template)).To(BeTrue())
}
