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
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
)

// Partners sets the condition PartnersProven, which exists, with the status false, while the second node of a target is not proven
// to reach its disk.
func Partners(fs *v1alpha1.FileSystem, partners *backend.Problem) {
	if partners == nil {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionPartnersProven)
		return
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionPartnersProven, metav1.ConditionFalse,
		partners.Reason, partners.Message)
}

// Unshared sets the condition MountsShared, which exists, with the status false, while the servers of some nodes do not see the
// disks that their agent mounts. Nodes without an agent are unknown.
func Unshared(fs *v1alpha1.FileSystem, own []v1alpha1.StorageTarget, in backend.Input) {
	var unshared []string
	for i := range own {
		if at := in.Inventories[own[i].Spec.Node].UnsharedState; at != "" {
			unshared = append(unshared, fmt.Sprintf("%s (%s)", own[i].Spec.Node, at))
		}
	}
	setWhile(fs, unshared, v1alpha1.ConditionMountsShared, v1alpha1.ReasonUnsharedMount,
		"servers do not see disks that the agent mounts; run mount --make-rshared for these mounts at each start of the node: ")
}

// setWhile sets a condition with the status false while there are such nodes, and removes it otherwise. The message ends with the nodes.
func setWhile(fs *v1alpha1.FileSystem, nodes []string, kind, reason, message string) {
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) == 0 {
		meta.RemoveStatusCondition(&fs.Status.Conditions, kind)
		return
	}
	message += backend.List(nodes)
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, kind, metav1.ConditionFalse, reason, message)
}

// backupsBeside is the prefix of backup directories that are on the same disk as /var/lib/parallelfs, which the agent inspects.
const backupsBeside = "/var/lib/"

// Volatile sets the condition CopiesLast, which exists, with the status false, while copies of metadata are on nodes that lose them
// in a reboot. Nodes without an agent are unknown.
func Volatile(b backend.Backend, fs *v1alpha1.FileSystem, in backend.Input) {
	var keepers []string
	if own, ok := b.(backend.Selecting); ok {
		for _, s := range own.Selectors(fs) {
			for _, n := range s.Of(fs, in.Nodes) {
				keepers = append(keepers, n.Name)
			}
		}
	}
	if fs.Spec.Backups != nil {
		for _, place := range metadatajobs.BackupPlaces(fs, in.Nodes) {
			if place.Node != "" && strings.HasPrefix(place.Directory, backupsBeside) {
				keepers = append(keepers, place.Node)
			}
		}
	}
	var lost []string
	for _, node := range keepers {
		if on := in.Inventories[node].VolatileState; on != "" {
			lost = append(lost, fmt.Sprintf("%s (%s)", node, on))
		}
	}
	setWhile(fs, lost, v1alpha1.ConditionCopiesLast, v1alpha1.ReasonVolatileNodes,
		"copies of metadata are lost when these nodes restart; mount a disk at /var/lib there, or choose others: ")
}
