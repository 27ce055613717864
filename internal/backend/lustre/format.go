package lustre

import "parallelfs.dev/operator/api/v1alpha1"

// DefaultFormat is ldiskfs, whose inodes and options mkfs.lustre chooses by the kind of the target and its size
// (lustre/utils/libmount_utils_ldiskfs.c, ldiskfs_make_lustre).
func (Backend) DefaultFormat(v1alpha1.Role) v1alpha1.FormatSpec {
	return v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
}
