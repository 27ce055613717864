package xfs

import "parallelfs.dev/operator/internal/node/format"

// Signature is xfs.
func (Format) Signature() string { return "xfs" }

// Log describes the external log (xfs(5), logdev). mkfs.xfs needs at least 64 MiB (seen with xfsprogs 6.1).
func (Format) Log() *format.Log {
	return &format.Log{Of: "XFS", Signature: "xfs_external_log", MountOption: "logdev", Minimum: 64 << 20}
}
