package all_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
)

// versionRule is the rule of admission about the versions of a type.
var versionRule = regexp.MustCompile(`^self\.type != '(\w+)' (?:\|\| !has\(self\.version\) \|\||\|\| has\(self\.version\) &&) self\.version\.matches\('([^']+)'\)$`)

// The versions are listed in three places: in the admission rules, in the documents, and in the backend, which also has the upgrade paths.
func TestAdmissionTheDocumentsAndTheBackendNameTheSameVersions(t *testing.T) {
	g := NewWithT(t)
	raw, err := os.ReadFile("../../../config/crd/bases/parallelfs.dev_filesystems.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(raw, &crd)).To(Succeed())
	admits := map[string]*regexp.Regexp{}
	for _, rule := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].XValidations {
		if m := versionRule.FindStringSubmatch(rule.Rule); m != nil {
			admits[m[1]] = regexp.MustCompile(m[2])
		}
	}
	document, err := os.ReadFile("../../../docs/spec/filesystem.md")
	g.Expect(err).NotTo(HaveOccurred())
	row := regexp.MustCompile("(?m)^\\| `spec\\.version` \\|.*$").FindString(string(document))

	backends := all.Backends(time.Minute)
	g.Expect(admits).To(HaveLen(len(backends)), "each type has a rule about its versions")
	for kind, b := range backends {
		upgrader, ok := b.(backend.Upgrader)
		g.Expect(ok).To(BeTrue(), "%s has versions", kind)
		_, documented, _ := strings.Cut(row, string(kind)+": ")
		for other := range backends {
			documented, _, _ = strings.Cut(documented, string(other)+": ")
		}
		lines := upgrader.Lines()
		admitted := map[string]bool{}
		for _, version := range versions() {
			if !admits[string(kind)].MatchString(version) {
				continue
			}
			line := lineOf(lines, version)
			g.Expect(line).NotTo(BeEmpty(), "admission takes %s %s, which is of no line that the backend knows", kind, version)
			g.Expect(upgrader.UpgradePath(version, version)).To(BeEmpty())
			admitted[line] = true
		}
		for _, line := range lines {
			g.Expect(admitted).To(HaveKey(line), "the backend knows %s %s, and admission takes none of its versions", kind, line)
		}
		named := regexp.MustCompile(`\x60([0-9][0-9.]*)[^\x60]*\x60`).FindAllStringSubmatch(documented, -1)
		g.Expect(named).NotTo(BeEmpty(), "the document names no version of %s", kind)
		for _, version := range named {
			g.Expect(lineOf(lines, version[1]+".")).NotTo(BeEmpty(), "the document names %s %s, which the backend does not know", kind, version[1])
		}
		for _, line := range []string{lines[0], lines[len(lines)-1]} {
			g.Expect(documented).To(MatchRegexp("`"+regexp.QuoteMeta(line)+`[.`+"`]"), "the document does not name %s %s", kind, line)
		}
	}
}

// versions returns all plausible versions.
func versions() []string {
	var out []string
	for major := range 12 {
		for minor := range 130 {
			for _, patch := range []int{0, 1, 5, 9, 42, 99, 116, 117, 118, 130, 199, 200, 999} {
				out = append(out, fmt.Sprintf("%d.%d.%d", major, minor, patch))
			}
		}
	}
	return out
}

// lineOf returns the release line of a version.
func lineOf(lines []string, version string) string {
	for _, line := range lines {
		if strings.HasPrefix(version, line+".") {
			return line
		}
	}
	return ""
}
