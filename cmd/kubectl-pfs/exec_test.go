package main

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestTheToolRunsInARunningPodOfTheBestComponent(t *testing.T) {
	g := NewWithT(t)
	pod := func(name, component, node string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelComponent: component}},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	pods := []corev1.Pod{
		pod("third-1", "third", "n2", corev1.PodRunning), pod("second-2", "second", "n1", corev1.PodRunning), pod("second-1", "second", "n1", corev1.PodRunning),
		pod("first", "first", "n1", corev1.PodPending), pod("client", "client", "n3", corev1.PodRunning),
	}
	components := []string{"first", "second", "third"}
	best, err := choosePod(pods, components, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(best.Name).To(Equal("second-1"))
	best, err = choosePod(pods, components, "n2")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(best.Name).To(Equal("third-1"))
	_, err = choosePod(pods, components, "n3")
	g.Expect(err).To(MatchError(ContainSubstring("no pod of the filesystem that has this tool runs on node n3")))
}
