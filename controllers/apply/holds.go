package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keys holds the fields that identify the items of a list, by the list's name. They are the merge keys of server-side apply
// (x-kubernetes-list-map-keys in the API of Kubernetes 1.30). Other lists belong completely to the last writer that applied them.
var keys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "volumes": {"name"}, "env": {"name"}, "imagePullSecrets": {"name"},
	"volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"}, "ports": {"containerPort", "protocol"}, "hostAliases": {"ip"},
	"ownerReferences": {"uid"},
}

// holds reports whether the live value contains the whole desired one. The live value may contain more, because the API server fills in
// defaults and other writers set their own fields. Fields that the operator never sent don't belong to it. The same holds for additional
// items in a list whose items have keys, such as variables from an admission webhook. The operator's items must be there in their order.
// Other lists are compared item by item.
func holds(live, wanted any) bool { return holdsIn("", live, wanted) }

func holdsIn(name string, live, wanted any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for key, value := range w {
			// Typed objects from the cache have neither kind nor apiVersion.
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

// holdsKeyed reports whether a list contains all desired items in their order, possibly among others.
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

// sameItem reports whether two items of a list have the same keys. A key that the desired item omits matches the default.
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

// sameQuantity treats "0.5" and "500m" as equal, because the API server normalizes quantities.
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
