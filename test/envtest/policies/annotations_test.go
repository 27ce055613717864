//go:build envtest

package policies_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// annotated holds the annotations of each kind.
var annotated = map[string]struct {
	make func() client.Object
	has  []string
}{
	"FileSystem": {func() client.Object { return mountedFileSystem() }, []string{
		v1alpha1.AnnotationBackUp, v1alpha1.AnnotationCheck, v1alpha1.AnnotationConfirmDelete, v1alpha1.AnnotationRecoverFrom,
		v1alpha1.AnnotationRecoverMetadata, v1alpha1.AnnotationSuite, v1alpha1.AnnotationTakeUpNodeImage}},
	"FileSystemNode": {func() client.Object { return fileSystemNode("annotated", "n1") }, []string{
		v1alpha1.AnnotationAcceptLoss, v1alpha1.AnnotationAllowMaintenance, v1alpha1.AnnotationGiveUp}},
	"StorageTarget": {func() client.Object { return target("annotated", "n1") }, []string{
		v1alpha1.AnnotationAcceptDevice, v1alpha1.AnnotationGiveUp, v1alpha1.AnnotationMachineIsOff, v1alpha1.AnnotationReplaceDisk}},
	"NodeInventory": {func() client.Object { return inventory("annotated") }, []string{v1alpha1.AnnotationDropCaches}},
}

func TestAnAnnotationThatItsKindDoesNotHaveIsRefused(t *testing.T) {
	manager := user(t, "the manager")
	for kind, c := range annotated {
		t.Run(kind, func(t *testing.T) {
			create := func(annotations ...string) error {
				object := c.make()
				all := map[string]string{}
				for _, a := range annotations {
					all[a] = "yes"
				}
				object.SetAnnotations(all)
				return manager.Create(t.Context(), object, client.DryRunAll)
			}
			g := NewWithT(t)
			g.Expect(create("example.com/team", "kubectl.kubernetes.io/last-applied-configuration", "parallelfs.dev/applied-hash")).To(Succeed())
			for _, a := range c.has {
				g.Expect(create(a)).To(Succeed())
			}
			for _, a := range []string{"parallelfs.dev/giveup", "target.parallelfs.dev/give-up", "parallelfs.dev/Check"} {
				refused(t, create(a), "the operator has no annotation "+a+" of ")
			}
		})
	}
}

func TestAnAnnotationThatWasThereBeforeStays(t *testing.T) {
	g := NewWithT(t)
	fs := mountedFileSystem()
	fs.Annotations = map[string]string{v1alpha1.AnnotationCheck: "one"}
	g.Expect(server.Client.Create(t.Context(), fs)).To(Succeed())
	fs.Annotations = map[string]string{v1alpha1.AnnotationCheck: "two", "parallelfs.dev/chekc": "three"}
	refused(t, user(t, "the manager").Update(t.Context(), fs, client.DryRunAll),
		"the operator has no annotation parallelfs.dev/chekc of filesystems; it has parallelfs.dev/back-up, parallelfs.dev/check, ")
}

// TestEveryAnnotationOfTheAPIHasAKind reads the constants of the API.
func TestEveryAnnotationOfTheAPIHasAKind(t *testing.T) {
	g := NewWithT(t)
	known := map[string]bool{}
	for _, c := range annotated {
		for _, a := range c.has {
			known[a] = true
		}
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "api", "v1alpha1", "*.go"))
	g.Expect(err).NotTo(HaveOccurred())
	found := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		g.Expect(err).NotTo(HaveOccurred())
		ast.Inspect(parsed, func(n ast.Node) bool {
			if c, is := n.(*ast.ValueSpec); is && strings.HasPrefix(c.Names[0].Name, "Annotation") && len(c.Values) == 1 {
				if value, is := c.Values[0].(*ast.BasicLit); is {
					text, err := strconv.Unquote(value.Value)
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(known).To(HaveKey(text), c.Names[0].Name)
					found++
				}
			}
			return true
		})
	}
	g.Expect(found).To(BeNumerically(">=", len(known)))
}
