// Package samples_test holds that the samples are written in the API as it is.
package samples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestTheSamplesHaveOnlyFieldsThatTheAPIKnows(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	files, err := filepath.Glob("*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var kinds []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			_, kind, err := strict.Decode([]byte(document), nil, nil)
			g.Expect(err).NotTo(HaveOccurred(), file)
			kinds = append(kinds, kind.Kind)
		}
	}
	g.Expect(kinds).To(ConsistOf("Namespace", "FileSystem", "Namespace", "FileSystem", "Namespace", "FileSystem", "Namespace", "FileSystem", "Namespace", "FileSystem", "BenchmarkRun", "BenchmarkRun", "BenchmarkRun", "BenchmarkSuite"))
}
