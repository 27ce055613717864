package moosefs

import "parallelfs.dev/operator/api/v1alpha1"

// DefaultFormat is XFS without access times, which MooseFS recommends for chunkservers. The access times of chunks are never used (MooseFS
// 4 User's Manual, best practices: noatime).
func (Backend) DefaultFormat(v1alpha1.Role) v1alpha1.FormatSpec {
	return v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime", "nodiratime"}}
}
