package beegfs

import "parallelfs.dev/operator/api/v1alpha1"

// DefaultFormat follows BeeGFS's tuning guides.
//
// Metadata is kept in extended attributes on ext4. Inodes of 512 bytes hold them without a further block for each file, and there is an
// inode for every 2048 bytes, because the files are small (doc.beegfs.io, Metadata Node Tuning: mkfs.ext4 -i 2048 -I 512). The guide also
// asks for a journal of 400 MiB. Small disks have no room for it, and mke2fs gives large disks a larger one by itself. Chunks are on XFS
// (Storage Node Tuning), which allocates large extents and whole stripes. A user can add the guide's allocsize=131072k, which takes 128 MiB
// for each file that is written. The guide's nobarrier is not used, because it loses data when the power fails. The store of the management
// service is small and needs no tuning.
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
