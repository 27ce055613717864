package derive

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// Room adds the problem that storage pools or the metadata are full to an observation, and sets the condition PoolNearlyFull. Only the
// status reports it, because neither a restart nor a drain waits for space.
func Room(fs *v1alpha1.FileSystem, seen *backend.Observation) {
	full, nearly := seen.Full(fs.Spec.StoragePools)
	for _, c := range []struct {
		full  []string
		words string
	}{
		{full, "storage pools take no new data: %s; remove files, or give the pool more disks or nodes"},
		{seen.FullMetadata, "the metadata takes no new files: %s; remove files, or give the metadata more disks or nodes"},
	} {
		if len(c.full) > 0 {
			seen.Serves = false
			seen.Problems = slices.Insert(slices.Clone(seen.Problems), 0, backend.Problem{
				Reason: v1alpha1.ReasonPoolFull, Message: fmt.Sprintf(c.words, backend.List(c.full)),
			})
		}
	}
	nearlyFull(fs, append(full, seen.FullMetadata...), append(nearly, seen.NearlyFullMetadata...))
}

// nearlyFull sets the condition PoolNearlyFull, which exists while a pool or the metadata is full or soon will be.
func nearlyFull(fs *v1alpha1.FileSystem, full, nearly []string) {
	if len(full)+len(nearly) == 0 {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionPoolNearlyFull)
		return
	}
	reason, message := v1alpha1.ReasonPoolNearlyFull, "nearly full: "+backend.List(nearly)
	if len(full) > 0 {
		reason, message = v1alpha1.ReasonPoolFull, "full: "+backend.List(full)
		if len(nearly) > 0 {
			message += "; nearly full: " + backend.List(nearly)
		}
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionPoolNearlyFull, metav1.ConditionTrue,
		reason, message+"; remove files, or give the pool more disks or nodes")
}

// Unmatched sets the condition NodesSelected, which exists, with the status false, while an optional node selector matches no node.
// The part that it selects nodes for is then missing.
func Unmatched(b backend.Backend, fs *v1alpha1.FileSystem, in backend.Input) {
	if in.FileSystem == nil {
		return
	}
	var all []backend.Selector
	if own, ok := b.(backend.Selecting); ok {
		all = own.Selectors(fs)
	}
	if c := fs.Spec.Clients; c != nil {
		all = append(all, backend.Selector{
			Field: "spec.clients.nodeSelector", Costs: "no node mounts the filesystem", Labels: c.NodeSelector, Nodes: backend.ClientNodes,
		})
	}
	if kept := fs.Spec.Backups; kept != nil && kept.Nodes != nil {
		all = append(all, backend.Selector{
			Field: "spec.backups.nodes.nodeSelector", Costs: "no node keeps backups", Labels: kept.Nodes.NodeSelector,
		})
	}
	var unmatched []string
	for _, name := range nodefacts.Strangers(fs, in.Nodes) {
		unmatched = append(unmatched, fmt.Sprintf("spec.nodes names %s, which is no node of the cluster", name))
	}
	for _, s := range all {
		switch selects := s.Of(fs, in.Nodes); {
		case len(selects) > 0:
		case len(s.Labels) == 0:
			unmatched = append(unmatched, fmt.Sprintf("spec.nodes has no node for %s, so %s", strings.TrimSuffix(s.Field, ".nodeSelector"), s.Costs))
		default:
			key := firstKey(s.Labels)
			unmatched = append(unmatched, fmt.Sprintf("%s matches no node, so %s (kubectl label node NODE %s=%s)", s.Field, s.Costs, key, s.Labels[key]))
		}
	}
	if len(unmatched) == 0 {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionNodesSelected)
		return
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionNodesSelected, metav1.ConditionFalse,
		v1alpha1.ReasonUnmatched, backend.List(unmatched))
}

// firstKey returns the first key of a selector, by name.
func firstKey(labels v1alpha1.NodeSelector) (first string) {
	for key := range labels {
		if first == "" || key < first {
			first = key
		}
	}
	return first
}
