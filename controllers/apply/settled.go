package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staysTheSame asks the API server by a dry run for the result of applying the intent, and reports whether it equals the live object. If
// so, an admission webhook, for example one that adds a toleration, would make the same change again, and applying in each pass would be
// futile.
func (a *Applier) staysTheSame(ctx context.Context, key childKey, live client.Object, intent *unstructured.Unstructured) (bool, error) {
	content, err := contentOf(live)
	if err != nil || a.settled.has(key, content) {
		return err == nil, err
	}
	answer := intent.DeepCopy()
	question := client.ApplyConfigurationFromUnstructured(answer)
	if err := a.Client.Apply(ctx, question, client.ForceOwnership, client.FieldOwner(FieldOwner), client.DryRunAll); err != nil {
		return false, nil //nolint:nilerr // what is refused here is refused when it is applied, and said there
	}
	// It is read like the live object, so that both have the same form.
	typed, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(live).Elem()))
	if !ok {
		return false, fmt.Errorf("%T is no object of Kubernetes", live)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, typed); err != nil {
		return false, fmt.Errorf("read what would become of %s %s: %w", key.kind.Kind, key.name, err)
	}
	would, err := contentOf(typed)
	if err != nil || would != content {
		return false, err
	}
	a.settled.add(key, content)
	return true, nil
}

// contentOf returns a hash of an object without its status and the API server's own fields.
func contentOf(object client.Object) ([sha256.Size]byte, error) {
	object, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return [sha256.Size]byte{}, fmt.Errorf("%T is no object of Kubernetes", object)
	}
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetCreationTimestamp(metav1.Time{})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("convert %s: %w", object.GetName(), err)
	}
	for _, field := range []string{"status", "kind", "apiVersion"} {
		delete(content, field)
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encode %s: %w", object.GetName(), err)
	}
	return sha256.Sum256(raw), nil
}
