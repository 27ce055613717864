package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Change is how a child is not as it should be.
type Change int

// The kinds of changes.
const (
	nothing Change = iota
	// Missing means that it would be made.
	Missing
	// Changed means that it would be changed.
	Changed
	// Unwanted means that it would be deleted.
	Unwanted
)

// Difference is one child that Apply would write.
type Difference struct {
	// Kind and Name of the child, in the namespace of its owner.
	Kind, Name string
	Change     Change
}

// Differences says what Apply would write, in the order of the wanted children, and writes nothing. A child that can't be compared is
// left out: Apply says why.
func (a *Applier) Differences(ctx context.Context, owner client.Object, selector map[string]string, wanted []client.Object) (
	[]Difference, error,
) {
	var out []Difference
	keep := map[childKey]bool{}
	for _, object := range wanted {
		if there, ok := object.(*metav1.PartialObjectMetadata); ok {
			keep[childKey{there.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(there)}] = true
			continue
		}
		key, _, change, err := a.compare(ctx, owner, selector, object)
		keep[key] = true
		if err == nil && change != nothing {
			out = append(out, Difference{Kind: key.kind.Kind, Name: key.name.Name, Change: change})
		}
	}
	err := a.unwanted(ctx, owner, selector, keep, func(key childKey, _ client.Object) error {
		out = append(out, Difference{Kind: key.kind.Kind, Name: key.name.Name, Change: Unwanted})
		return nil
	})
	return out, err
}
