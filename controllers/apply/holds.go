package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keys are the fields that tell the items of a list from each other, by the name of the list: those that server-side apply merges by
// (x-kubernetes-list-map-keys in the API of Kubernetes 1.30). All other lists belong to whoever applied them last, as a whole.
var keys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "volumes": {"name"}, "env": {"name"}, "imagePullSecrets": {"name"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "ports": {"containerPort", "protocol"}, "hostAliases": {"ip"},
	"ownerReferences": {"uid"},
}

// holds reports whether the live value has everything that the wanted one says. The live value may have more, because
// the API server fills in defaults, and others set fields of their own: what we never sent is not ours. So is an item that somebody
// has added to a list whose items have keys, as an admission webhook adds variables; ours must be there, in our order. Other lists are
// compared item by item.
func holds(live, wanted any) bool { return holdsIn("", live, wanted) }

func holdsIn(name string, live, wanted any) bool {
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
			if !holdsIn(key, l[key], value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		if by := keys[name]; by != nil {
			return holdsKeyed(by, l, w)
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

// holdsKeyed reports whether a list has all wanted items, in their order, among others.
func holdsKeyed(by []string, live, wanted []any) bool {
	at := 0
	for _, item := range wanted {
		for at < len(live) && !sameItem(by, live[at], item) {
			at++
		}
		if at == len(live) || !holds(live[at], item) {
			return false
		}
		at++
	}
	return true
}

// sameItem reports whether two items of a list have the same keys. One that we leave to its default is the default's.
func sameItem(by []string, live, wanted any) bool {
	l, ok := live.(map[string]any)
	w, ok2 := wanted.(map[string]any)
	if !ok || !ok2 {
		return false
	}
	for _, key := range by {
		if value, sent := w[key]; sent && l[key] != value {
			return false
		}
	}
	return true
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
