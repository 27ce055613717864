package filesystem

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// mostShared is how many fields of pass the methods in several files assign. It only falls: a phase returns a value instead.
const mostShared = 6

// TestFewFieldsOfAPassHaveSeveralWriters holds how many fields of pass more than one file assigns, or a part of which it assigns.
func TestFewFieldsOfAPassHaveSeveralWriters(t *testing.T) {
	g := NewWithT(t)
	paths, err := filepath.Glob("*.go")
	g.Expect(err).NotTo(HaveOccurred())
	writers := map[string]map[string]bool{}
	for field := range reflect.TypeFor[pass]().Fields() {
		if !field.Anonymous {
			writers[field.Name] = map[string]bool{}
		}
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		g.Expect(err).NotTo(HaveOccurred())
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Body == nil {
				continue
			}
			of, pointer := f.Recv.List[0].Type.(*ast.StarExpr)
			if !pointer {
				continue
			}
			if name, ok := of.X.(*ast.Ident); !ok || name.Name != "pass" {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if a, ok := n.(*ast.AssignStmt); ok {
					for _, left := range a.Lhs {
						if of, there := writers[fieldOf(left, f.Recv.List[0].Names[0].Name)]; there {
							of[path] = true
						}
					}
				}
				return true
			})
		}
	}
	maps.DeleteFunc(writers, func(_ string, files map[string]bool) bool { return len(files) < 2 })
	g.Expect(len(writers)).To(BeNumerically("<=", mostShared), "%v; return a value from the phase instead", slices.Sorted(maps.Keys(writers)))
}

// fieldOf returns the field of the receiver that an expression is, or is a part of; empty if it is none.
func fieldOf(e ast.Expr, receiver string) (field string) {
	for {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			field, e = x.Sel.Name, x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.Ident:
			if x.Name != receiver {
				return ""
			}
			return field
		default:
			return ""
		}
	}
}
