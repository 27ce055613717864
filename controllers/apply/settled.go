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

// staysTheSame asks the API server, without writing, what would become of a child if the intent were applied, and reports whether
// that is what it is already: then whoever rewrote it on its way, such as an admission webhook that adds a toleration, would do so again,
// and to apply it again in each pass would be in vain.
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
	// Read as the live one was, so that both are written down alike.
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

// contentOf is a hash of what is asked of an object, without its status and what the API server keeps for itself.
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
