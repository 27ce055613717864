//go:build chart

package charts_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// build runs images/build.sh, and returns its output including errors.
func build(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.Command("../images/build.sh", args...).CombinedOutput()
	return string(out), err
}

func TestTheImagesThatArePushedWithoutAnyOptionAreThoseThatTheChartAsksFor(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../images/build.sh") // so that a change of it is noticed
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).NotTo(BeEmpty())
	out, err := build(t, "--registry", "registry.example.com/team", "--dry-run")
	g.Expect(err).NotTo(HaveOccurred(), out)
	pushed := strings.Fields(out)
	var wanted []string
	rendered, err := helm(t, "imageRegistry: registry.example.com/team", "template", release, chart)
	g.Expect(err).NotTo(HaveOccurred(), rendered)
	for _, image := range regexp.MustCompile(`registry\.example\.com/team/[a-z/-]+:[0-9.]+`).FindAllString(rendered, -1) {
		if !slices.Contains(wanted, image) {
			wanted = append(wanted, image)
		}
	}
	g.Expect(wanted).To(HaveLen(6))
	// The chart's own default of the MPI operator is the published one; the values that the script writes name this one.
	g.Expect(pushed).To(ConsistOf(append(wanted, "registry.example.com/team/parallelfs/mpi-operator:0.7.0")))
	g.Expect(rendered).To(ContainSubstring("mpioperator/mpi-operator:0.7.0"), "the same version")

	out, err = build(t, "--registry=registry.example.com:5000", "--tag=0.1.0-rc1", "--dry-run", "manager", "moosefs-4.57.5")
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(strings.Fields(out)).To(Equal([]string{"registry.example.com:5000/parallelfs/manager:0.1.0-rc1", "registry.example.com:5000/parallelfs/moosefs:4.57.5"}))
}

func TestTheScriptThatPushesImagesReportsWrongOptions(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"--registry team", "'team' has no name of a host at its beginning"},
		{"--registry https://registry.example.com", "write registry.example.com in the place of https://registry.example.com"},
		{"--registry registry.example.com/Team", "is no registry: write it as registry.example.com/team"},
		{"--registry registry.example.com --tag a/b --dry-run", "'a/b' is no tag"},
		{"--registry registry.example.com --dry-run managr", "there is no image 'managr'"},
		{"--registry", "--registry needs a value behind it"},
		{"--registry --dry-run", "--registry needs a value behind it"},
		{"--tag 0.1.0 manager", "--registry says where"},
		{"--push", "there is no option '--push': images/build.sh --help lists them"},
	} {
		t.Run(c.args, func(t *testing.T) {
			g := NewWithT(t)
			out, err := build(t, strings.Fields(c.args)...)
			g.Expect(err).To(HaveOccurred())
			g.Expect(out).To(ContainSubstring(c.says))
		})
	}
	g := NewWithT(t)
	out, err := build(t, "--registry", "")
	g.Expect(err).To(HaveOccurred(), "as `make images-push` without REGISTRY")
	g.Expect(out).To(ContainSubstring("--registry needs a value behind it"))
	help, err := build(t, "--help")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(help).To(And(ContainSubstring("--values FILE"), ContainSubstring("examples:\n"), ContainSubstring("podman login")))
}
