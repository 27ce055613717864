package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// holds reports whether the live value has everything that the wanted one says. The live value may have more, because
// the API server fills in defaults: a field that we never sent is not ours. Lists are compared item by item.
func holds(live, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for key, value := range w {
			// Typed reads from the cache carry neither kind nor apiVersion.
			if key == "apiVersion" || key == "kind" {
				if _, there := l[key]; !there {
					continue
				}
			}
			if !holds(l[key], value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		if len(l) != len(w) {
			return false
		}
		for i := range w {
			if !holds(l[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return live == wanted || sameQuantity(live, wanted)
	}
}

// sameQuantity treats "0.5" and "500m" as equal: the API server writes quantities in its own form.
func sameQuantity(live, wanted any) bool {
	l, err := resource.ParseQuantity(fmt.Sprint(live))
	if err != nil {
		return false
	}
	w, err := resource.ParseQuantity(fmt.Sprint(wanted))
	return err == nil && l.Cmp(w) == 0
}

func eachItem(list client.ObjectList, visit func(client.Object) error) error {
	return meta.EachListItem(list, func(item runtime.Object) error { return visit(item.(client.Object)) })
}
