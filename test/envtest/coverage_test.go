//go:build envtest

package envtest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// sameType maps parts of a status to a part of the spec with the same type, whose rules are tested there. Only programs of the operator
// write a status.
var sameType = map[string]string{
	"status.record.lustre": "spec.lustre", "status.newDevice.device.id": "spec.device.id", "status.provisioned.device.id": "spec.device.id",
}

// ofPrograms lists rules about a status, which only programs of the operator write. Tests of those programs violate them.
var ofPrograms = []string{
	"the number of the holder grows with each change of its node, and the holder stays", // internal/node/agent
}

func TestEveryRuleOfTheCRDsIsBrokenByATest(t *testing.T) {
	for _, crd := range customResources(t) {
		rows := allRefusals[crd.Spec.Names.Kind]
		everySchema(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			if path == "" {
				path = "<nil>" // the API server's name for the whole object
			}
			if other, is := sameType[path]; is {
				path = other
			}
			for _, rule := range schema.XValidations {
				if !slices.Contains(ofPrograms, rule.Message) && !refused(rows, path, rule.Message) {
					t.Errorf("%s: no refusal of %q says %q", crd.Spec.Names.Kind, path, rule.Message)
				}
			}
		})
	}
}

func TestEveryBoundOfASpecIsBrokenByATest(t *testing.T) {
	for _, crd := range customResources(t) {
		kind := crd.Spec.Names.Kind
		rows := allRefusals[kind]
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		everySchema(&spec, "spec", func(path string, schema *apiextensionsv1.JSONSchemaProps) {
			for _, name := range schema.Required {
				if !refused(rows, path+"."+name, "Required value") {
					t.Errorf("%s: %s.%s is required, and no refusal leaves it out", kind, path, name)
				}
			}
			for _, sentence := range boundSentences(schema) {
				if !refused(rows, path, sentence) {
					t.Errorf("%s: no refusal of %s says %q", kind, path, sentence)
				}
			}
			if schema.XListType != nil && *schema.XListType != "atomic" && !refused(rows, path+"[]", "Duplicate value") {
				t.Errorf("%s: no refusal has an item of %s twice", kind, path)
			}
		})
	}
}

// boundSentences returns the API server's messages for violations of each bound in a schema.
func boundSentences(s *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	add := func(is bool, format string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	for bound, format := range map[*int64]string{
		s.MinLength: "should be at least %d chars long", s.MaxLength: "may not be more than %d bytes",
		s.MinItems: "should have at least %d items", s.MaxItems: "must have at most %d items",
		s.MinProperties: "should have at least %d properties", s.MaxProperties: "must have at most %d items",
	} {
		if bound != nil {
			add(true, format, *bound)
		}
	}
	if s.Minimum != nil {
		add(true, "should be greater than or equal to %s", strconv.FormatFloat(*s.Minimum, 'f', -1, 64))
	}
	if s.Maximum != nil {
		add(true, "should be less than or equal to %s", strconv.FormatFloat(*s.Maximum, 'f', -1, 64))
	}
	add(s.Pattern != "", "should match '%s'", s.Pattern)
	var values []string
	for _, value := range s.Enum {
		values = append(values, string(value.Raw))
	}
	add(len(values) > 0, "supported values: %s", strings.Join(values, ", "))
	return out
}

// refused is true if a row in the tables expects this message for that field.
func refused(rows refusals, field, says string) bool {
	for _, row := range rows {
		if row.field == field && strings.Contains(row.says, says) {
			return true
		}
	}
	return false
}
