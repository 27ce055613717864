// Package samples_test holds that the samples are written in the API as it is.
package samples_test

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/benchmarks/sweep"
)

func TestTheSamplesHaveOnlyFieldsOfTheAPI(t *testing.T) {
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
			object, kind, err := strict.Decode([]byte(document), nil, nil)
			g.Expect(err).NotTo(HaveOccurred(), file)
			kinds = append(kinds, kind.Kind)
			t.Run(file+" "+kind.Kind, func(t *testing.T) { commentsCountWhatIsThere(t, string(text), object) })
		}
	}
	of := map[string]int{}
	for _, kind := range kinds {
		of[kind]++
	}
	g.Expect(of).To(Equal(map[string]int{"Namespace": 5, "FileSystem": 9, "BenchmarkRun": 5, "BenchmarkSuite": 1}))
}

// A type has some settings with one value that is allowed, or with a default that fits. The samples and the experiments leave them out.
func TestNoSampleNamesTheFormatOrTheCopiesOfALustre(t *testing.T) {
	g := NewWithT(t)
	samples, err := filepath.Glob("*lustre*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	experiments, err := filepath.Glob("../../benchmarks/experiments/lustre*/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(samples).To(HaveLen(2))
	g.Expect(experiments).NotTo(BeEmpty())
	for _, file := range append(samples, experiments...) {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).NotTo(Or(ContainSubstring("fsType: ldiskfs"), ContainSubstring("copies:")), file)
	}
}

// What follows from the rest need not be written.
func TestTheSmallestSamplesAreNotLongerThanTheyWereMeantToBe(t *testing.T) {
	most := map[string]int{
		"smallest-directories.yaml": 5, "smallest-disks.yaml": 8, "smallest-beegfs.yaml": 22, "smallest-sweep.yaml": 5, "smallest-lustre.yaml": 30,
	}
	g := NewWithT(t)
	files, err := filepath.Glob("smallest-*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(len(most)))
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		_, spec, found := strings.Cut(string(text), "\nspec:\n")
		g.Expect(found).To(BeTrue(), file)
		lines := strings.Split(strings.TrimSpace(spec), "\n")
		g.Expect(len(lines)).To(BeNumerically("<=", most[file]), file)
		for _, line := range lines {
			g.Expect(len(line)).To(BeNumerically("<=", 80), "a short manifest is not one of long lines: %s", line)
		}
	}
}

// commentsCountWhatIsThere compares the numbers of a sample's comments with what its object asks for.
func commentsCountWhatIsThere(t *testing.T, text string, object runtime.Object) {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if _, comment, is := strings.Cut(line, "#"); is {
			lines = append(lines, strings.TrimSpace(comment))
		}
	}
	comments := strings.Join(lines, " ")
	switch o := object.(type) {
	case *v1alpha1.BenchmarkRun:
		countsOfRun(t, comments, &o.Spec)
	case *v1alpha1.FileSystem:
		counts(t, comments, `copies is (\w+)`, int(cmp.Or(o.Spec.StoragePools[0].Copies, o.Spec.Type.DefaultCopies())))
		counts(t, comments, `with (\w+) metadata servers each`, int(o.Spec.MetadataServers.InstancesPerNode))
		counts(t, comments, `(\w+) MDTs on each metadata node`, int(o.Spec.MetadataServers.InstancesPerNode))
		counts(t, comments, `(\w+) storage pools`, len(o.Spec.StoragePools))
		counts(t, comments, `(\w+) pools on disks`, len(o.Spec.StoragePools))
	}
}

func countsOfRun(t *testing.T, comments string, spec *v1alpha1.BenchmarkRunSpec) {
	t.Helper()
	g := NewWithT(t)
	points, err := sweep.Expand(registry.Tools()[spec.ToolName()], spec)
	g.Expect(err).NotTo(HaveOccurred())
	counts(t, comments, `(\w+) points`, len(points))
	counts(t, comments, `each run (\w+)`, int(spec.Repetitions))
	counts(t, comments, `(\w+) record sizes`, valuesOf(points, "iozone.recordSize"))
	counts(t, comments, `(\w+) process counts`, valuesOf(points, "processes"))
	counts(t, comments, `over (\w+) clients`, int(spec.Clients.Count))
	if found := regexp.MustCompile(`([\d,]+) files in all`).FindStringSubmatch(comments); found != nil {
		for _, point := range points {
			leaves := 1
			for range number(t, point.Parameters["mdtest.depth"]) {
				leaves *= number(t, point.Parameters["mdtest.branch"])
			}
			files := number(t, point.Parameters["mdtest.items"]) * leaves * number(t, point.Parameters["processes"])
			g.Expect(files).To(Equal(number(t, strings.ReplaceAll(found[1], ",", ""))))
		}
	}
}

// valuesOf is how many values a parameter has.
func valuesOf(points []benchmarks.Point, parameter v1alpha1.SweepName) int {
	values := map[string]bool{}
	for _, point := range points {
		values[point.Parameters[parameter]] = true
	}
	return len(values)
}

// counts holds that all numbers that a pattern finds in comments are this one.
func counts(t *testing.T, comments, pattern string, want int) {
	t.Helper()
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(comments, -1) {
		if n := number(t, found[1]); n >= 0 {
			NewWithT(t).Expect(n).To(Equal(want), "the comment says %q", found[0])
		}
	}
}

// number reads a number of a comment; it is -1 for a word that is none.
func number(t *testing.T, word string) int {
	t.Helper()
	words := map[string]int{"one": 1, "once": 1, "two": 2, "twice": 2, "three": 3, "four": 4, "five": 5, "six": 6}
	if n, is := words[strings.ToLower(word)]; is {
		return n
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return -1
	}
	return n
}
