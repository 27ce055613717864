package custom

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

// The library parses a path, but its own evaluation has no bounds: each union of a path may double its results, and each ".." may multiply
// them by the depth of the document. Therefore paths are evaluated here.
const (
	// maxVisits bounds the values that all paths of a point visit together, and maxResults the results of one step of a path.
	maxVisits  = 1 << 19
	maxResults = 1 << 16
)

// errVisits is the error of a path that exceeds these bounds.
var errVisits = fmt.Errorf("it finds more than %d values, or the metrics look at more than %d together; "+
	"name the way to the number, without .. and lists of names", maxResults, maxVisits)

// character represents a character of a string that a wildcard matches, which is no number.
type character struct{}

// parsePath parses a path in kubectl's syntax. It refuses range, because every such path has a shorter form.
func parsePath(name, text string) ([]jsonpath.Node, error) {
	parser, err := jsonpath.Parse(name, text)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the name
	}
	for _, node := range parser.Root.Nodes {
		list, is := node.(*jsonpath.ListNode)
		for i := 0; is && i < len(list.Nodes); i++ {
			if _, is := list.Nodes[i].(*jsonpath.IdentifierNode); is {
				return nil, errors.New("range and end are not taken; write [*] instead, such as {.jobs[*].iops}")
			}
		}
	}
	return parser.Root.Nodes, nil
}

// walker visits values of documents up to a limit.
type walker struct{ left int }

// find returns the results of a path in a document.
func (w *walker) find(path []jsonpath.Node, document any) ([]any, error) {
	var out []any
	for _, node := range path {
		found, err := w.step([]any{document}, node)
		if err != nil {
			return nil, err
		}
		if out = append(out, found...); len(out) > maxResults {
			return nil, errVisits
		}
	}
	return out, nil
}

// step applies one step of a path to each of some values.
func (w *walker) step(from []any, node jsonpath.Node) ([]any, error) {
	if w.left -= len(from); w.left < 0 {
		return nil, errVisits
	}
	switch node := node.(type) {
	case *jsonpath.ListNode:
		return w.list(from, node)
	case *jsonpath.FieldNode:
		return w.field(from, node.Value)
	case *jsonpath.ArrayNode:
		return w.array(from, node.Params)
	case *jsonpath.WildcardNode:
		return w.each(from, w.children)
	case *jsonpath.RecursiveNode:
		return w.each(from, w.below)
	case *jsonpath.UnionNode:
		var out []any
		for _, list := range node.Nodes {
			found, err := w.list(from, list)
			if err != nil {
				return nil, err
			}
			if out = append(out, found...); len(out) > maxResults {
				return nil, errVisits
			}
		}
		return out, nil
	case *jsonpath.FilterNode:
		return w.filter(from, node)
	case *jsonpath.TextNode:
		return []any{node.Text}, nil
	case *jsonpath.IntNode:
		return constant(from, node.Value), nil
	case *jsonpath.FloatNode:
		return constant(from, node.Value), nil
	case *jsonpath.BoolNode:
		return constant(from, node.Value), nil
	default:
		return nil, fmt.Errorf("%s is not taken", strings.TrimPrefix(node.Type().String(), "Node"))
	}
}

func constant(from []any, value any) []any {
	out := make([]any, len(from))
	for i := range out {
		out[i] = value
	}
	return out
}

func (w *walker) list(from []any, list *jsonpath.ListNode) (_ []any, err error) {
	for _, node := range list.Nodes {
		if from, err = w.step(from, node); err != nil {
			return nil, err
		}
	}
	return from, nil
}

// field finds the members with a name. At least one must exist, unless there are no values to search.
func (w *walker) field(from []any, name string) ([]any, error) {
	var out []any
	for _, value := range from {
		if object, is := value.(map[string]any); is {
			if member, found := object[name]; found {
				out = append(out, member)
			}
		}
	}
	if len(out) == 0 && len(from) > 0 {
		return nil, fmt.Errorf("%s is not found", name)
	}
	return out, nil
}

// array finds elements by start, end and step.
func (w *walker) array(from []any, params [3]jsonpath.ParamsEntry) ([]any, error) {
	var out []any
	for _, value := range from {
		if value == nil {
			continue
		}
		list, is := value.([]any)
		if !is {
			return nil, fmt.Errorf("%T is no list", value)
		}
		start, end, step := 0, len(list), 1
		if params[0].Known {
			start = params[0].Value
		}
		if start < 0 {
			start += len(list)
		}
		if params[1].Known {
			end = params[1].Value
		}
		if end < 0 || end == 0 && params[1].Derived {
			end += len(list)
		}
		if params[2].Known {
			step = params[2].Value
		}
		switch {
		case start == end:
			return out, nil
		case start < 0 || start >= len(list) || end < 0 || end > len(list) || start > end || step < 1:
			return nil, fmt.Errorf("a list of %d elements has not those from %d to %d", len(list), start, end-1)
		}
		if w.left -= (end - start) / step; w.left < 0 {
			return nil, errVisits
		}
		for i := start; i < end; i += step {
			out = append(out, list[i])
		}
		if len(out) > maxResults {
			return nil, errVisits
		}
	}
	return out, nil
}

// each collects the results of find for each of some values.
func (w *walker) each(from []any, find func(out []any, value any) ([]any, error)) (out []any, err error) {
	for _, value := range from {
		if out, err = find(out, value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// children adds the members or elements of a value.
func (w *walker) children(out []any, value any) ([]any, error) {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			out = append(out, member)
		}
		w.left -= len(value)
	case []any:
		out = append(out, value...)
		w.left -= len(value)
	case string:
		if value != "" {
			out = append(out, character{})
		}
	}
	if w.left < 0 || len(out) > maxResults {
		return nil, errVisits
	}
	return out, nil
}

// below adds a value and everything below it that is not empty. The nesting of documents is bounded.
func (w *walker) below(out []any, value any) (_ []any, err error) {
	below, err := w.children(nil, value)
	if err != nil || len(below) == 0 {
		return out, err
	}
	if out = append(out, value); len(out) > maxResults {
		return nil, errVisits
	}
	for _, child := range below {
		if _, is := child.(character); is {
			continue
		}
		if out, err = w.below(out, child); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// filter finds the elements of lists that satisfy a comparison.
func (w *walker) filter(from []any, node *jsonpath.FilterNode) ([]any, error) {
	var out []any
	for _, value := range from {
		list, is := value.([]any)
		if !is {
			return nil, fmt.Errorf("%T is no list and can't be filtered", value)
		}
		for _, element := range list {
			passes, err := w.passes(element, node)
			if err != nil {
				return nil, err
			}
			if passes {
				out = append(out, element)
			}
			if len(out) > maxResults {
				return nil, errVisits
			}
		}
	}
	return out, nil
}

func (w *walker) passes(element any, node *jsonpath.FilterNode) (bool, error) {
	left, err := w.list([]any{element}, node.Left)
	if errors.Is(err, errVisits) {
		return false, err
	}
	if node.Operator == "exists" {
		return err == nil && len(left) > 0, nil
	}
	if err != nil {
		return false, err
	}
	right, err := w.list([]any{element}, node.Right)
	switch {
	case err != nil:
		return false, err
	case len(left) == 0 || len(right) == 0:
		return false, nil
	case len(left) > 1 || len(right) > 1:
		return false, errors.New("one element at a time can be compared")
	}
	compare, known := map[string]func(a, b any) (bool, error){
		"<": template.Less, ">": template.Greater, "!=": template.NotEqual,
		"==": func(a, b any) (bool, error) { return template.Equal(a, b) },
		"<=": template.LessEqual, ">=": template.GreaterEqual,
	}[node.Operator]
	if !known {
		return false, fmt.Errorf("the operator %s is not taken", node.Operator)
	}
	return compare(left[0], right[0])
}
