package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// mutation is one changed decision. Its number switches it on in the test binary.
type mutation struct {
	ID           int
	File, Kind   string
	Line, Column int
	Status       string
	Text         string // the line, with "«" in front of what is changed
}

// rewriter writes the files of a package again, so that each decision depends on a switch (switch.go.txt). It adds no lines.
type rewriter struct {
	fset      *token.FileSet
	info      *types.Info
	pkg       *types.Package
	imports   map[string]string // the name of each imported package in the present file
	src       string
	file      string
	mutations []*mutation
}

// rewrite returns the text of a file with a switch at each mutant.
func (r *rewriter) rewrite(f *ast.File, file, src string) string {
	r.src, r.file, r.imports = src, filepath.Base(file), map[string]string{}
	for _, s := range f.Imports {
		name := r.info.PkgNameOf(s)
		r.imports[name.Imported().Path()] = name.Name()
	}
	var out strings.Builder
	at := 0
	for _, d := range f.Decls {
		out.WriteString(src[at:r.offset(d.Pos())])
		out.WriteString(r.render(d, []ast.Node{f}))
		at = r.offset(d.End())
	}
	return out.String() + src[at:]
}

func (r *rewriter) offset(p token.Pos) int { return r.fset.Position(p).Offset }

func (r *rewriter) source(n ast.Node) string { return r.src[r.offset(n.Pos()):r.offset(n.End())] }

// mutant numbers a mutant.
func (r *rewriter) mutant(kind string, p token.Pos) int {
	at := r.fset.Position(p)
	line := strings.Split(r.src, "\n")[at.Line-1]
	text := strings.TrimSpace(line[:at.Column-1] + "«" + line[at.Column-1:])
	m := mutation{ID: len(r.mutations) + 1, File: r.file, Kind: kind, Line: at.Line, Column: at.Column, Text: text}
	r.mutations = append(r.mutations, &m)
	return len(r.mutations)
}

// render returns the text of a node below others.
func (r *rewriter) render(n ast.Node, above []ast.Node) string {
	if d, ok := n.(*ast.GenDecl); ok && d.Tok != token.VAR {
		return r.source(n)
	}
	if e, ok := n.(ast.Expr); ok && r.info.Types[e].Value != nil {
		return r.source(n) // a constant
	}
	below := append(slices.Clone(above), n)
	text := ""
	switch n := n.(type) {
	case *ast.BinaryExpr:
		text = r.binary(n, below)
	case *ast.UnaryExpr:
		if n.Op == token.SUB && r.isNumber(n) {
			text = fmt.Sprintf("mutantNEG(%d, %s)", r.mutant("INVERT_NEGATIVES", n.OpPos), r.render(n.X, below))
		}
	case *ast.IncDecStmt:
		text = r.incDec(n, below)
	case *ast.AssignStmt:
		text = r.assignment(n, below)
	case *ast.BranchStmt:
		text = r.branch(n, above)
	}
	if text == "" {
		return r.children(n, below)
	}
	return text
}

// children returns the text of a node whose children may have mutants.
func (r *rewriter) children(n ast.Node, below []ast.Node) string {
	var children []ast.Node
	ast.Inspect(n, func(c ast.Node) bool {
		switch c.(type) {
		case nil, *ast.CommentGroup, *ast.Comment:
			return false
		}
		if c != n {
			children = append(children, c)
		}
		return c == n
	})
	slices.SortStableFunc(children, func(a, b ast.Node) int { return int(a.Pos() - b.Pos()) })
	var out strings.Builder
	at := r.offset(n.Pos())
	for _, c := range children {
		if r.offset(c.Pos()) < at {
			continue
		}
		out.WriteString(r.src[at:r.offset(c.Pos())])
		out.WriteString(r.render(c, below))
		at = r.offset(c.End())
	}
	if end := r.offset(n.End()); end > at {
		out.WriteString(r.src[at:end])
	}
	return out.String()
}

func (r *rewriter) isNumber(e ast.Expr) bool {
	b, ok := r.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0
}

func (r *rewriter) binary(e *ast.BinaryExpr, below []ast.Node) string {
	names := map[token.Token]string{
		token.LSS: "LSS", token.LEQ: "LEQ", token.GTR: "GTR", token.GEQ: "GEQ",
		token.ADD: "ADD", token.SUB: "SUB", token.MUL: "MUL", token.QUO: "QUO", token.REM: "REM",
	}
	switch e.Op {
	case token.LAND, token.LOR:
		// By De Morgan, the other operator is this one with both sides and the result negated.
		id := r.mutant("INVERT_LOGICAL", e.OpPos)
		x, y := r.render(e.X, below), r.render(e.Y, below)
		return fmt.Sprintf("((((%s) != mutant(%d)) %s ((%s) != mutant(%d))) != mutant(%d))", x, id, e.Op, y, id, id)
	case token.EQL, token.NEQ:
		id := r.mutant("CONDITIONALS_NEGATION", e.OpPos)
		return fmt.Sprintf("((%s %s %s) != mutant(%d))", r.render(e.X, below), e.Op, r.render(e.Y, below), id)
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		negation, boundary := r.mutant("CONDITIONALS_NEGATION", e.OpPos), r.mutant("CONDITIONALS_BOUNDARY", e.OpPos)
		return fmt.Sprintf("(mutant%s(%d, %s, %s) != mutant(%d))", names[e.Op], boundary, r.render(e.X, below), r.render(e.Y, below), negation)
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM:
		if r.isNumber(e) {
			id := r.mutant("ARITHMETIC_BASE", e.OpPos)
			return fmt.Sprintf("mutant%s(%d, %s, %s)", names[e.Op], id, r.render(e.X, below), r.render(e.Y, below))
		}
	}
	return ""
}

func (r *rewriter) incDec(s *ast.IncDecStmt, below []ast.Node) string {
	op := map[token.Token]string{token.INC: "+=", token.DEC: "-="}[s.Tok]
	kind := types.TypeString(r.info.TypeOf(s.X), func(p *types.Package) string {
		if p == r.pkg {
			return ""
		}
		return r.imports[p.Path()]
	})
	return fmt.Sprintf("%s %s mutantONE[%s](%d)", r.render(s.X, below), op, kind, r.mutant("INCREMENT_DECREMENT", s.TokPos))
}

// assignment makes "=" of "+=" and the like, where a statement may stand.
func (r *rewriter) assignment(s *ast.AssignStmt, below []ast.Node) string {
	switch s.Tok {
	case token.ASSIGN, token.DEFINE:
		return ""
	}
	switch below[len(below)-2].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		id := r.mutant("REMOVE_SELF_ASSIGNMENTS", s.TokPos)
		x, y := r.render(s.Lhs[0], below), r.render(s.Rhs[0], below)
		return fmt.Sprintf("if mutant(%d) { %s = %s } else { %s %s %s }", id, x, y, x, s.Tok, y)
	}
	return ""
}

// branch makes "break" of "continue" and the reverse, inside a loop.
func (r *rewriter) branch(s *ast.BranchStmt, above []ast.Node) string {
	other := map[token.Token]string{token.CONTINUE: "break", token.BREAK: "continue"}[s.Tok]
	if _, labeled := above[len(above)-1].(*ast.LabeledStmt); other == "" || labeled || !isInLoop(above) {
		return ""
	}
	label := ""
	if s.Label != nil {
		label = " " + s.Label.Name
	}
	return fmt.Sprintf("if mutant(%d) { %s%s }; %s%s", r.mutant("INVERT_LOOPCTRL", s.TokPos), other, label, s.Tok, label)
}

func isInLoop(above []ast.Node) bool {
	for _, n := range slices.Backward(above) {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		case *ast.FuncLit, *ast.FuncDecl:
			return false
		}
	}
	return false
}
