package beegfs

import "parallelfs.dev/operator/api/v1alpha1"

// DefaultFormat is what BeeGFS's tuning guides want.
//
// Metadata lies in extended attributes of ext4 with inodes of 512 bytes, so that it needs no further block for each file, and with an inode
// for every 2048 bytes, because it consists of small files (doc.beegfs.io, Metadata Node Tuning: mkfs.ext4 -i 2048 -I 512). The journal of 400
// MiB that the guide adds is smaller than what mke2fs makes by itself today, and too large for small disks. Chunks lie on XFS (Storage Node
// Tuning), which allocates widely and in whole stripes. Its allocsize=131072k is left to a person: it takes 128 MiB for each file that is
// written. So is nobarrier, which loses data at a loss of power. The store of the management service is small, and needs nothing.
func (Backend) DefaultFormat(role v1alpha1.Role) v1alpha1.FormatSpec {
	switch role {
	case v1alpha1.RoleMetadata:
		return v1alpha1.FormatSpec{
			FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-i", "2048", "-I", "512"},
			MountOptions: []v1alpha1.LocalMountOption{"noatime", "nodiratime"},
		}
	case v1alpha1.RoleStorage:
		return v1alpha1.FormatSpec{
			FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime", "nodiratime", "largeio", "inode64", "swalloc"},
		}
	default:
		return v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime", "nodiratime"}}
	}
}
