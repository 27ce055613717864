package format_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	root = "../../.."
	here = "internal/node/format"
	// servesIt is the filesystem whose own servers mount one of the formats, and whose tools and packages have that format's name.
	servesIt = "internal/backend/lustre"
)

// named matches the names of formats, and of their tools and signatures, in a string.
var named = regexp.MustCompile(`\b(ext[234]|xfs|btrfs|jbd2?|ldiskfs|zfs)\b|\b(xfs_|mkfs\.|mke2fs|e2label|e2fsck|tune2fs|dumpe2fs|resize2fs|debugfs|btrfs)\w*|\blogdev\b`)

// namesIn returns the places of a Go file that name a format.
func namesIn(t *testing.T, path string) []string {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, nil, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var found []string
	kernels := map[ast.Node]bool{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			// Linux has a filesystem with the same name as a program of e2fsprogs.
			if mount, is := n.Fun.(*ast.SelectorExpr); is && mount.Sel.Name == "Mount" {
				for _, argument := range n.Args {
					text, is := argument.(*ast.BasicLit)
					kernels[argument] = is && text.Value == `"debugfs"`
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && named.MatchString(n.Value) && !kernels[n] {
				found = append(found, files.Position(n.Pos()).String()+": "+n.Value)
			}
		case *ast.SelectorExpr:
			of, isPackage := n.X.(*ast.Ident)
			if isPackage && of.Name == "v1alpha1" && slices.Contains([]string{"Ext4", "XFS", "Btrfs", "Ldiskfs", "ZFS"}, n.Sel.Name) {
				found = append(found, files.Position(n.Pos()).String()+": v1alpha1."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// isDefaults reports whether a backend sets the defaults for its targets' formats in a file.
func isDefaults(path string) bool {
	backends := filepath.Join(root, "internal", "backend")
	return filepath.Base(path) == "format.go" && filepath.Dir(filepath.Dir(path)) == backends
}

// TestOnlyDriversNameAFormat reads the shipped code, and not the packages that help tests. It leaves out the API, which lists the names
// that a user may write.
func TestOnlyDriversNameAFormat(t *testing.T) {
	g := NewWithT(t)
	read := 0
	for _, top := range []string{"benchmarks", "cmd", "controllers", "internal"} {
		g.Expect(filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (path == filepath.Join(root, here) || path == filepath.Join(root, servesIt) || strings.HasSuffix(path, "test")):
				return fs.SkipDir
			case entry.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"), isDefaults(path):
				return nil
			}
			read++
			for _, place := range namesIn(t, path) {
				t.Errorf("%s; ask %s/registry for the format, and keep what is particular to it in its folder", place, here)
			}
			return nil
		})).To(Succeed())
	}
	g.Expect(read).To(BeNumerically(">", 100), "the files are where they are looked for")
}

// TestTheNamesOfFormatsAreFound proves that the search works: it finds the names in the formats themselves.
func TestTheNamesOfFormatsAreFound(t *testing.T) {
	for _, file := range []string{"ext4/make.go", "xfs/make.go", "xfs/signature.go", "xfs/format.go", "btrfs/signature.go", "ldiskfs/format.go", "registry/registry.go"} {
		NewWithT(t).Expect(namesIn(t, file)).NotTo(BeEmpty(), file)
	}
}

func TestEveryFormatHasTheSameFiles(t *testing.T) {
	g := NewWithT(t)
	files := func(folder string) []string {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		g.Expect(err).NotTo(HaveOccurred())
		for i := range found {
			found[i] = filepath.Base(found[i])
		}
		return found
	}
	all := []string{"format.go", "make.go", "mount.go", "prove.go", "signature.go"}
	for _, folder := range []string{"ext4", "xfs", "btrfs"} {
		g.Expect(files(folder)).To(Equal(all), folder)
	}
	tested := func(name string) bool { return strings.HasSuffix(name, "_test.go") }
	g.Expect(slices.DeleteFunc(files("ldiskfs"), tested)).To(ConsistOf(append(all, "read.go")), "a program reads its mark")
}
