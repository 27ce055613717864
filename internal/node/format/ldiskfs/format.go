// Package ldiskfs is the local filesystem of Lustre's targets, with Lustre's own tools: an ext4 with features of its own, and with the
// file CONFIGS/mountdata, which says what the target is.
package ldiskfs

// The programs that make it and read it.
const (
	Mkfs   = "mkfs.lustre"
	Tunefs = "tunefs.lustre"
)

// The modules that mount it, and that give it to Lustre.
const (
	Module    = "ldiskfs"
	OSDModule = "osd_ldiskfs"
)
