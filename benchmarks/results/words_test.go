package results_test

import (
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/results"
)

// Documents are kept for years and read beside objects of the cluster, so both use the same names.
func TestADocumentUsesTheNamesOfTheKinds(t *testing.T) {
	g := NewWithT(t)
	// old maps outdated field names to the current ones.
	old := map[string]string{
		"instance": "slot, or daemon", "instances": "servers", "nodeID": "id", "online": "state", "removing": "removal", "removable": "removal",
	}
	seen := map[reflect.Type]bool{}
	var look func(what reflect.Type)
	look = func(what reflect.Type) {
		switch what.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			look(what.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[what] {
			return
		}
		seen[what] = true
		for field := range what.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			g.Expect(old).NotTo(HaveKey(name), "%s.%s", what, field.Name)
			look(field.Type)
		}
	}
	look(reflect.TypeFor[results.Suite]())
	for _, stored := range []reflect.Type{reflect.TypeFor[results.Server](), reflect.TypeFor[results.Target]()} {
		g.Expect(seen).To(HaveKey(stored))
	}
}
