package v1alpha1

import "fmt"

// Holder returns the one node that may mount a target. It is spec.node until a target of two nodes was handed over for the first time.
func (t *StorageTarget) Holder() TargetHolder {
	if h := t.Status.Holder; t.Spec.SecondNode != "" && h != nil {
		return *h
	}
	return TargetHolder{Node: t.Spec.Node}
}

// OffWord is the value of AnnotationMachineIsOff that is good for a target as it is held now, and for nothing after that.
func (t *StorageTarget) OffWord() string {
	holder := t.Holder()
	return fmt.Sprintf("%s/%d", holder.Node, holder.Number)
}
