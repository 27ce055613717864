package sweep

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// derivation is a compiled spec.derive[i].
type derivation struct {
	path      string
	cel       string
	parameter benchmarks.Parameter
	program   cel.Program
	// uses lists the parameters in the expression, sorted.
	uses []v1alpha1.SweepName
}

// compile checks and compiles the derived parameters in the order of the spec: an expression may use parameters that were derived before
// it.
func compile(derive []v1alpha1.DerivedParameter, parameters []benchmarks.Parameter,
	known func(string, v1alpha1.SweepName) (benchmarks.Parameter, error), swept []v1alpha1.SweepName) ([]derivation, error) {
	if len(derive) == 0 {
		return nil, nil
	}
	environment, err := expressions(parameters)
	if err != nil {
		return nil, err
	}
	open := map[v1alpha1.SweepName]int{}
	for i, d := range derive {
		path := fmt.Sprintf("spec.derive[%d].name", i)
		parameter, err := known(path, d.Name)
		if err != nil {
			return nil, err
		}
		if parameter.Kind == benchmarks.Word {
			return nil, fmt.Errorf("%s: %s is a word, which can't be computed; set it in the spec or sweep it", path, d.Name)
		}
		if slices.Contains(swept, d.Name) {
			return nil, fmt.Errorf("%s: %s is swept, so it can't be derived too; remove one of them", path, d.Name)
		}
		if first, found := open[d.Name]; found {
			return nil, fmt.Errorf("%s: %s is derived already by spec.derive[%d]; name it once", path, d.Name, first)
		}
		open[d.Name] = i
	}
	out := make([]derivation, 0, len(derive))
	for i, d := range derive {
		next := derivation{path: fmt.Sprintf("spec.derive[%d].cel", i), cel: d.CEL}
		if next.parameter, err = known(next.path, d.Name); err != nil {
			return nil, err
		}
		if next.program, next.uses, err = expression(environment, d.CEL, parameters); err != nil {
			return nil, fmt.Errorf("%s: %w", next.path, err)
		}
		for _, name := range next.uses {
			other, found := open[name]
			switch {
			case found && other == i:
				return nil, fmt.Errorf("%s: %s can't be computed from itself", next.path, name)
			case found:
				return nil, fmt.Errorf("%s: uses %s, which is derived later; put spec.derive[%d] before it", next.path, name, other)
			}
		}
		delete(open, d.Name)
		out = append(out, next)
	}
	return out, nil
}

// expression compiles one expression.
func expression(environment *cel.Env, text string, parameters []benchmarks.Parameter) (cel.Program, []v1alpha1.SweepName, error) {
	checked, issues := environment.Compile(text)
	if issues.Err() != nil {
		messages := make([]string, 0, len(issues.Errors()))
		for _, e := range issues.Errors() {
			messages = append(messages, strings.TrimSuffix(strings.TrimSuffix(e.Message, "(in container '')"), " "))
		}
		return nil, nil, fmt.Errorf("%q is no expression over whole numbers and the parameters of the run: %s", text, strings.Join(messages, "; "))
	}
	var uses []v1alpha1.SweepName
	for _, reference := range checked.NativeRep().ReferenceMap() {
		if reference.Name != "" {
			uses = append(uses, v1alpha1.SweepName(reference.Name))
		}
	}
	slices.Sort(uses)
	for _, p := range parameters {
		if p.Kind == benchmarks.Word && slices.Contains(uses, p.Name) {
			return nil, nil, fmt.Errorf("%q uses %s, which is a word; it can use numbers and sizes", text, p.Name)
		}
	}
	if !checked.OutputType().IsExactType(cel.IntType) {
		return nil, nil, fmt.Errorf("%q gives a %s; it must give a whole number", text, checked.OutputType())
	}
	program, err := environment.Program(checked)
	return program, slices.Compact(uses), err
}

// derive adds the derived values to the values of a point. Its errors contain the expression and the point.
func derive(derived []derivation, parameters []benchmarks.Parameter, values map[v1alpha1.SweepName]string, point string) error {
	for _, d := range derived {
		where := d.path + ": " + d.cel
		if point != "" {
			where += " at " + point
		}
		input := map[string]any{}
		for _, name := range d.uses {
			value, found := values[name]
			if !found {
				return fmt.Errorf("%s uses %s, which has no value; set it in the spec or sweep it", where, name)
			}
			parameter := parameters[slices.IndexFunc(parameters, func(p benchmarks.Parameter) bool { return p.Name == name })]
			number, err := benchmarks.ParseValue(parameter, value)
			if err != nil {
				return fmt.Errorf("%s uses %s: %w", where, name, err)
			}
			input[string(name)] = number
		}
		result, _, err := d.program.Eval(input)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		number, isInt := result.Value().(int64)
		if !isInt {
			return fmt.Errorf("%s gives %v, which is no whole number", where, result.Value())
		}
		if values[d.parameter.Name], err = format(d.parameter, number); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// format formats a derived number as a value of its parameter.
func format(parameter benchmarks.Parameter, number int64) (string, error) {
	least := int64(1)
	if parameter.Kind == benchmarks.Number || parameter.Kind == benchmarks.Bytes {
		least = 0
	}
	if number < least {
		return "", fmt.Errorf("gives %d; it must give at least %d", number, least)
	}
	if parameter.Kind == benchmarks.Size && number%benchmarks.Kilo != 0 {
		return "", fmt.Errorf("gives %d bytes; a size must be a multiple of %d", number, benchmarks.Kilo)
	}
	text := benchmarks.FormatValue(parameter, number)
	if _, err := benchmarks.ParseValue(parameter, text); err != nil {
		return "", fmt.Errorf("gives a number that is too large: %w", err)
	}
	return text, nil
}

// expressions returns the language of derived values: CEL with whole numbers, the parameters of the run by name, and nothing else. Its
// division is exact, while CEL's own drops the remainder, which would result in an unintended point. Without macros, expressions can't
// loop, so the length of the text bounds the cost.
func expressions(parameters []benchmarks.Parameter) (*cel.Env, error) {
	subset := &env.LibrarySubset{DisableMacros: true}
	for _, name := range []string{
		operators.Add, operators.Subtract, operators.Multiply, operators.Modulo, operators.Negate, operators.Conditional,
		operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot,
	} {
		subset.IncludeFunctions = append(subset.IncludeFunctions, env.NewFunction(name))
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.Function(operators.Divide, cel.Overload("divide_int64_exactly", []*cel.Type{cel.IntType, cel.IntType}, cel.IntType,
			cel.BinaryBinding(divide))),
		cel.Function("treeDirectories", cel.Overload("tree_directories", []*cel.Type{cel.IntType, cel.IntType}, cel.IntType,
			cel.BinaryBinding(tree("treeDirectories", true)))),
		cel.Function("treeLeaves", cel.Overload("tree_leaves", []*cel.Type{cel.IntType, cel.IntType}, cel.IntType,
			cel.BinaryBinding(tree("treeLeaves", false)))),
	}
	for _, p := range parameters {
		kind := cel.IntType
		if p.Kind == benchmarks.Word {
			kind = cel.DynType // declared, so that it can be refused by name
		}
		options = append(options, cel.Variable(string(p.Name), kind))
	}
	return cel.NewCustomEnv(options...)
}

// divide divides, and refuses a remainder.
func divide(left, right ref.Val) ref.Val {
	a, aIsInt := left.(types.Int)
	b, bIsInt := right.(types.Int)
	switch {
	case !aIsInt || !bIsInt:
		return types.MaybeNoSuchOverloadErr(left)
	case b == 0:
		return types.WrapErr(errors.New("divides by zero"))
	case a == math.MinInt64 && b == -1:
		return types.WrapErr(errors.New("gives a number that is too large"))
	case a%b != 0:
		return types.WrapErr(fmt.Errorf("%d / %d leaves a remainder of %d", a, b, a%b))
	}
	return a / b
}

// tree counts the directories of a tree of mdtest (-b, -z): the deepest ones, branch^depth, or all, 1 + branch + ... + branch^depth.
func tree(name string, all bool) func(branch, depth ref.Val) ref.Val {
	return func(branch, depth ref.Val) ref.Val {
		b, bIsInt := branch.(types.Int)
		z, zIsInt := depth.(types.Int)
		tooLarge := types.WrapErr(fmt.Errorf("%s(%v, %v) is a number that is too large", name, branch, depth))
		switch {
		case !bIsInt || !zIsInt:
			return types.MaybeNoSuchOverloadErr(branch)
		case b < 1 || z < 0:
			return types.WrapErr(fmt.Errorf("%s(%d, %d) is no tree: it has at least 1 branch and a depth of at least 0", name, b, z))
		case b == 1 && !all:
			return types.IntOne
		case b == 1 && z == math.MaxInt64:
			return tooLarge
		case b == 1:
			return z + 1
		}
		leaves, sum := types.IntOne, types.IntOne
		for range z {
			if leaves > math.MaxInt64/b {
				return tooLarge
			}
			leaves *= b
			if !all {
				continue
			}
			if sum > math.MaxInt64-leaves {
				return tooLarge
			}
			sum += leaves
		}
		if all {
			return sum
		}
		return leaves
	}
}
