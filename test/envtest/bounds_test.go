//go:build envtest

package envtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// everyBoundRefusals violates every bound of the schema for which the full manifest has a value, one at a time. The violations are texts
// that are too short, too long or malformed, numbers out of range, lists that are too long or have duplicates, unknown words, and missing
// required members. CEL rules are violated by hand-written rows.
func everyBoundRefusals(plural, full string, below ...string) refusals {
	return everyBoundOf("../../config/crd/bases/parallelfs.dev_"+plural+".yaml", full, below...)
}

// everyBoundOf returns everyBoundRefusals for the CRD in a file.
func everyBoundOf(file, full string, below ...string) refusals {
	raw, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		panic(err)
	}
	b := breaker{rows: refusals{}, below: below}
	if err := yaml.Unmarshal([]byte(full), &b.object); err != nil {
		panic(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	b.walk(&spec, "spec", b.object["spec"], func(v any) { b.object["spec"] = v })
	return b.rows
}

// breaker walks an object with its schema, and adds a row for each bound.
type breaker struct {
	object map[string]any
	below  []string
	rows   refusals
}

// row adds the current object as one that the API server must refuse.
func (b *breaker) row(path, what, says string) {
	if !slices.ContainsFunc(b.below, func(prefix string) bool {
		return strings.HasPrefix(path+".", prefix+".") || strings.HasPrefix(path, prefix+"[")
	}) {
		return
	}
	text, err := json.Marshal(b.object)
	if err != nil {
		panic(err)
	}
	b.rows[path+" "+what] = refusal{change: "spec: null\n---\n" + string(text), field: path, says: says}
}

// with adds a row with another value.
func (b *breaker) with(path string, value, broken any, set func(any), what, says string) {
	set(broken)
	b.row(path, what, says)
	set(value)
}

func (b *breaker) walk(s *apiextensionsv1.JSONSchemaProps, path string, value any, set func(any)) {
	if value == nil {
		return
	}
	for _, bound := range b.bounds(s, value) {
		b.with(path, value, bound.broken, set, bound.what, bound.says)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range s.Required {
			old := v[name]
			delete(v, name)
			b.row(path+"."+name, "is left out", "Required value")
			v[name] = old
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			b.walk(&property, path+"."+name, v[name], func(changed any) { v[name] = changed })
		}
	case []any:
		if len(v) == 0 || s.Items == nil {
			return
		}
		if s.XListType != nil && *s.XListType != "atomic" {
			set(append(slices.Clone(v), v[0]))
			b.row(path+"[]", "stands there twice", "Duplicate value")
			set(value)
		}
		// All items are visited, because one may have a member that another lacks.
		for i := range v {
			b.walk(s.Items.Schema, path+"[]", v[i], func(changed any) { v[i] = changed })
		}
	}
}

// broken is a value that violates a bound.
type broken struct {
	broken     any
	what, says string
}

func (b *breaker) bounds(s *apiextensionsv1.JSONSchemaProps, value any) []broken {
	var out []broken
	add := func(is bool, value func() any, what, format string, args ...any) {
		if is {
			out = append(out, broken{broken: value(), what: what, says: fmt.Sprintf(format, args...)})
		}
	}
	text := func(n int64) func() any { return func() any { return strings.Repeat("n", int(max(n, 0))) } }
	items := func(n int64) func() any {
		return func() any {
			list, is := value.([]any)
			if !is {
				return value
			}
			return slices.Repeat(list[:1], int(max(n, 0)))
		}
	}
	number := func(n float64) func() any { return func() any { return n } }
	add(s.MinLength != nil, func() any { return text(*s.MinLength - 1)() }, "is too short", "should be at least %d chars long", value64(s.MinLength))
	add(s.MaxLength != nil, func() any { return text(*s.MaxLength + 1)() }, "is too long", "may not be more than %d bytes", value64(s.MaxLength))
	add(s.MinItems != nil, func() any { return items(*s.MinItems - 1)() }, "has too few", "should have at least %d items", value64(s.MinItems))
	add(s.MaxItems != nil, func() any { return items(*s.MaxItems + 1)() }, "has too many", "must have at most %d items", value64(s.MaxItems))
	add(s.Minimum != nil, func() any { return number(*s.Minimum - 1)() }, "is too small", "should be greater than or equal to")
	add(s.Maximum != nil, func() any { return number(*s.Maximum + 1)() }, "is too large", "should be less than or equal to")
	add(s.Pattern != "", func() any { return strings.Repeat("?", int(max(1, value64(s.MinLength)))) }, "is of another form", "should match '%s'", s.Pattern)
	add(len(s.Enum) > 0, func() any { return "no-such" }, "is not known", "supported values: ")
	for _, sentence := range boundSentences(s) {
		// The expected message is the whole sentence with the bound.
		for j := range out {
			if strings.HasPrefix(sentence, out[j].says) {
				out[j].says = sentence
			}
		}
	}
	return out
}

func value64(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
