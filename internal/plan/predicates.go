package plan

import "parallelfs.dev/operator/api/v1alpha1"

// Unusable are all reasons for which a device can't become a target as it is; empty for a blank, free, whole disk with a
// stable name. The inventory shows them.
func Unusable(f Facts) []string { return Blank(f) }

// Blank are all reasons for which a device is not blank and free; empty when it is.
func Blank(f Facts) []string {
	if !f.Found {
		return []string{"it is not there"}
	}
	return []string{"not judged yet"}
}

// Label is the label of the filesystem on a target's disk: 12 characters, the limit of XFS.
func Label(t *v1alpha1.StorageTarget) string { return "pfs-00000000" }
