package patience_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// made is a reason for exceptions.
const made = "the end of the context is what the test makes happen"

// exceptions lists bounds that must not grow with the load, by file and function, with the reason.
var exceptions = map[string]string{
	"internal/node/check/check_test.go TestAToolEndsWithThePod":                    made,
	"test/mutants/binary.go run":                                                   "its caller measures how long the tests take without a mutant",
	"internal/node/serve/serve_test.go TestAHangingUnmountDelaysNoOtherAndIsNamed": made,
}

// root is the repository's directory.
const root = "../.."

// files holds the syntax trees of one directory, by path from the root.
type files struct {
	set  *token.FileSet
	all  map[string]*ast.File
	vars map[string]ast.Expr
}

func TestEveryBoundOfATestGrowsWithTheSlownessOfTheMachine(t *testing.T) {
	g := NewWithT(t)
	read := map[string]*files{}
	g.Expect(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || name == "bin" || name == "dist"):
			return fs.SkipDir
		case d.IsDir() || !isOfTests(filepath.ToSlash(name)):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return add(read, filepath.ToSlash(name), content)
	})).To(Succeed())
	g.Expect(len(read)).To(BeNumerically(">", 60), "the walk has found the tests")

	found, used := []string{}, map[string]bool{}
	for _, directory := range read {
		for _, b := range directory.unbounded() {
			if exceptions[b.where] == "" {
				found = append(found, b.String())
			}
			used[b.where] = true
		}
	}
	slices.Sort(found)
	for _, text := range found {
		t.Errorf("%s: write patience.Bound(…) around the time; exceptions holds what must not grow", text)
	}
	for where := range exceptions {
		g.Expect(used).To(HaveKey(where), "remove the exception that nothing needs")
	}
}

// isOfTests is true for tests and for the packages that only tests import. Doubles are programs: their limits are those of the programs
// that they replace. The measurements of test/scale have goals in seconds.
func isOfTests(name string) bool {
	if !strings.HasSuffix(name, ".go") {
		return false
	}
	if strings.HasPrefix(name, "test/scale/") || strings.HasPrefix(name, "test/patience/") {
		return false
	}
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(filepath.Dir(name), "test") ||
		strings.HasPrefix(name, "test/") && !strings.HasPrefix(name, "test/doubles/")
}

// add parses a file into its directory.
func add(read map[string]*files, name string, content []byte) error {
	directory := read[filepath.Dir(name)]
	if directory == nil {
		directory = &files{set: token.NewFileSet(), all: map[string]*ast.File{}, vars: map[string]ast.Expr{}}
		read[filepath.Dir(name)] = directory
	}
	file, err := parser.ParseFile(directory.set, name, content, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	directory.all[name] = file
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok {
			for _, s := range d.Specs {
				if s, ok := s.(*ast.ValueSpec); ok && len(s.Names) == len(s.Values) {
					for i, n := range s.Names {
						directory.vars[n.Name] = s.Values[i]
					}
				}
			}
		}
	}
	return nil
}

// bound is a bound that does not grow.
type bound struct {
	where, what string
	line        int
}

func (b bound) String() string {
	file, function, _ := strings.Cut(b.where, " ")
	return fmt.Sprintf("%s:%d: %s in %s", file, b.line, b.what, function)
}

// unbounded returns the bounds in a directory that do not grow.
func (f *files) unbounded() (found []bound) {
	defaults := false
	for _, file := range f.all {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && nameOf(call) == "SetDefaultEventuallyTimeout" {
				defaults = true
			}
			return true
		})
	}
	for name, file := range f.all {
		for _, d := range file.Decls {
			function := "the package"
			if d, ok := d.(*ast.FuncDecl); ok {
				function = d.Name.Name
			}
			locals := localsOf(d)
			report := func(n ast.Node, what string) {
				found = append(found, bound{where: name + " " + function, what: what, line: f.set.Position(n.Pos()).Line})
			}
			grows := func(e ast.Expr) bool { return f.grows(e, locals, 8) }
			chained := map[*ast.CallExpr]bool{} // Eventually(…) with a WithTimeout or Within later in the chain
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					checkCall(n, chained, defaults, grows, report)
				case *ast.CommClause:
					if after := afterOf(n.Comm); after != nil && fails(n.Body) && !grows(after) {
						report(n, "case <-time.After, after which the test fails,")
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "ControlPlaneStartTimeout" || key.Name == "MaxTime") && !grows(n.Value) {
						report(n, key.Name)
					}
				case *ast.BasicLit:
					if text := textOf(n); strings.HasPrefix(text, "--timeout") {
						report(n, "the option "+text)
					}
				}
				return true
			})
		}
	}
	return found
}

// checkCall reports a bound of a call that does not grow. The outer calls of a chain are visited before the inner ones.
func checkCall(
	call *ast.CallExpr, chained map[*ast.CallExpr]bool, defaults bool, grows func(ast.Expr) bool, report func(ast.Node, string),
) {
	name := nameOf(call)
	switch name {
	case "Eventually", "EventuallyWithOffset":
		checkEventually(call, chained[call] || defaults, grows, report)
	case "WithTimeout", "Within":
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if ok && len(call.Args) == 1 {
			root := rootOf(selector.X)
			if root != nil {
				chained[root] = true
			}
			if (root == nil || nameOf(root) != "Consistently") && !grows(call.Args[0]) {
				report(call, name)
			}
			return
		}
		fallthrough
	case "WithTimeoutCause", "WithDeadline", "WithDeadlineCause":
		if len(call.Args) > 1 && !grows(call.Args[1]) {
			report(call, "context."+name)
		}
	case "SetDefaultEventuallyTimeout", "SetDeadline", "SetReadDeadline", "SetWriteDeadline":
		if len(call.Args) == 1 && !isZeroTime(call.Args[0]) && !grows(call.Args[0]) {
			report(call, name)
		}
	case "To", "Should":
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !mentions(selector.X, "time", "Since") {
			return
		}
		for _, matcher := range call.Args {
			m, ok := matcher.(*ast.CallExpr)
			if ok && nameOf(m) == "BeNumerically" && len(m.Args) == 2 && strings.HasPrefix(textOf(m.Args[0]), "<") && !grows(m.Args[1]) {
				report(call, "time.Since that is compared")
			}
		}
	}
}

// checkEventually reports the bound of Eventually itself. None is needed if the chain has another one.
func checkEventually(call *ast.CallExpr, given bool, grows func(ast.Expr) bool, report func(ast.Node, string)) {
	bounds := call.Args[min(1, len(call.Args)):]
	if len(bounds) > 0 && isContext(call.Args[0]) {
		bounds = bounds[1:]
	}
	switch {
	case len(bounds) > 0 && !grows(bounds[0]):
		report(call, "Eventually")
	case len(bounds) == 0 && !given:
		report(call, "Eventually with Gomega's own bound of a second")
	}
}

// grows is true for patience.Bound(…), and for values computed from it or names assigned from it.
func (f *files) grows(e ast.Expr, locals map[string]ast.Expr, depth int) bool {
	if depth == 0 {
		return false
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.grows(e.X, locals, depth-1)
	case *ast.BinaryExpr:
		return f.grows(e.X, locals, depth-1) || f.grows(e.Y, locals, depth-1)
	case *ast.Ident:
		if value := locals[e.Name]; value != nil {
			return f.grows(value, locals, depth-1)
		}
		return f.vars[e.Name] != nil && f.grows(f.vars[e.Name], nil, depth-1)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "patience" {
				return true
			}
		}
		return slices.ContainsFunc(e.Args, func(a ast.Expr) bool { return f.grows(a, locals, depth-1) })
	}
	return false
}

// localsOf returns the values of a function's local names.
func localsOf(d ast.Decl) map[string]ast.Expr {
	locals := map[string]ast.Expr{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if name, ok := left.(*ast.Ident); ok && len(n.Lhs) == len(n.Rhs) {
					locals[name.Name] = n.Rhs[i]
				}
			}
		case *ast.ValueSpec:
			if len(n.Names) == len(n.Values) {
				for i, name := range n.Names {
					locals[name.Name] = n.Values[i]
				}
			}
		}
		return true
	})
	return locals
}

// nameOf returns the last part of the called function's name.
func nameOf(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// rootOf returns the call of Eventually or Consistently at the beginning of a chain.
func rootOf(e ast.Expr) *ast.CallExpr {
	for {
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return nil
		}
		if name := nameOf(call); strings.HasPrefix(name, "Eventually") || strings.HasPrefix(name, "Consistently") {
			return call
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		e = selector.X
	}
}

// isContext is true for names of contexts.
func isContext(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "ctx"
	case *ast.CallExpr:
		return nameOf(e) == "Context"
	}
	return false
}

// isZeroTime is true for time.Time{}, which clears a deadline.
func isZeroTime(e ast.Expr) bool {
	c, ok := e.(*ast.CompositeLit)
	return ok && len(c.Elts) == 0
}

// mentions is true if an expression contains a package's name.
func mentions(e ast.Expr, of, name string) (does bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			x, ok := s.X.(*ast.Ident)
			does = does || ok && x.Name == of
		}
		return true
	})
	return does
}

// textOf returns the text of a string literal.
func textOf(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING && !strings.Contains(l.Value, "\n") {
		text, _ := strconv.Unquote(l.Value)
		return text
	}
	return ""
}

// afterOf returns the duration in `<-time.After(…)`.
func afterOf(s ast.Stmt) ast.Expr {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return nil
	}
	receive, ok := e.X.(*ast.UnaryExpr)
	if !ok {
		return nil
	}
	call, ok := receive.X.(*ast.CallExpr)
	if !ok || nameOf(call) != "After" || len(call.Args) != 1 {
		return nil
	}
	return call.Args[0]
}

// failing lists the calls that end a test or a program.
var failing = []string{"Fatal", "Fatalf", "Error", "Errorf", "Fail", "FailNow", "panic", "kill", "Kill"}

// fails is true for statements that end a test or a program.
func fails(body []ast.Stmt) (is bool) {
	for _, s := range body {
		ast.Inspect(s, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(failing, nameOf(call)) {
				is = true
			}
			return true
		})
	}
	return is
}

func TestABoundThatDoesNotGrowIsFound(t *testing.T) {
	for text, want := range map[string]string{
		`Eventually(f).Should(Succeed())`:                                                         "Gomega's own bound",
		`Eventually(f, "2m").Should(Succeed())`:                                                   "Eventually",
		`Eventually(f, 2*time.Minute).Should(Succeed())`:                                          "Eventually",
		`Eventually(ctx, f, 2*time.Minute).Should(Succeed())`:                                     "Eventually",
		`Eventually(f).WithTimeout(20*time.Second).Should(Succeed())`:                             "WithTimeout",
		`g.Eventually(f).WithPolling(time.Second).WithTimeout(fixed).Should(Succeed())`:           "WithTimeout",
		`Eventually(f).Within(d).Should(Succeed())`:                                               "Within",
		`ctx, cancel := context.WithTimeout(t.Context(), time.Minute)`:                            "context.WithTimeout",
		`ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))`:           "context.WithDeadline",
		`_ = c.SetReadDeadline(time.Now().Add(fixed))`:                                            "SetReadDeadline",
		`select { case <-done: case <-time.After(time.Minute): t.Fatal("late") }`:                 "time.After",
		`g.Expect(time.Since(began)).To(BeNumerically("<", time.Minute))`:                         "time.Since that is compared",
		`kubectl("wait", "--timeout=60s")`:                                                        "--timeout=60s",
		`start(Environment{ControlPlaneStartTimeout: fixed})`:                                     "ControlPlaneStartTimeout",
		`Eventually(f).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())`:                "",
		`Eventually(f, patience.Bound(time.Minute), time.Second).Should(Succeed())`:               "",
		`Eventually(ctx, f).WithTimeout(2*soon).Should(Succeed())`:                                "",
		`limit := patience.Bound(time.Minute); Eventually(f, limit).Should(Succeed())`:            "",
		`Consistently(f).WithTimeout(time.Second).Should(Succeed())`:                              "",
		`ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(patience.Bound(fixed)))`: "",
		`select { case <-done: case <-time.After(time.Second): n++ }`:                             "",
		`kubectl("wait", patience.Flag(time.Minute))`:                                             "",
		`_ = c.SetReadDeadline(time.Time{})`:                                                      "",
		`g.Expect(result.RequeueAfter).To(BeNumerically("<", time.Minute))`:                       "",
	} {
		t.Run(text, func(t *testing.T) {
			g, read := NewWithT(t), map[string]*files{}
			const head = "package a\nvar soon = patience.Bound(time.Minute)\nconst fixed = time.Minute\nfunc TestA(t *testing.T) {\n"
			g.Expect(add(read, "a/a_test.go", []byte(head+text+"\n}\n"))).To(Succeed())
			found := read["a"].unbounded()
			if want == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].String()).To(And(HavePrefix("a/a_test.go:5: "), ContainSubstring(want), HaveSuffix("in TestA")))
		})
	}
}

// hang is the minimum for `go test -timeout`: it ends a test that hangs, and must not end one that waits, because bounds grow.
const hang = 3 * time.Hour

func TestTheLimitOfATierEndsOnlyWhatHangs(t *testing.T) {
	g := NewWithT(t)
	scripts, err := filepath.Glob(filepath.Join(root, "test", "*", "run.sh"))
	g.Expect(err).NotTo(HaveOccurred())
	runner := regexp.MustCompile(`gotest\)|GOTEST:-|ginkgo --|-tags disks|LIFE=`)
	flag, seen := regexp.MustCompile(`\s--?timeout[= ](\S+)`), 0
	for _, path := range append(scripts, filepath.Join(root, "Makefile")) {
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(content)) {
			runs := runner.MatchString(line)
			for _, match := range flag.FindAllStringSubmatch(line, -1) {
				if runs {
					limit, err := time.ParseDuration(match[1])
					g.Expect(err).NotTo(HaveOccurred(), "%s: %s", path, line)
					g.Expect(limit >= hang).To(BeTrue(), "%s: %s", path, line)
					seen++
				}
			}
		}
	}
	g.Expect(seen).To(BeNumerically(">=", 6), "the limits of all tiers are looked at")
}
