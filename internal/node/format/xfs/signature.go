package xfs

import "parallelfs.dev/operator/internal/node/format"

// Signature is xfs.
func (Format) Signature() string { return "xfs" }

// Log is the external log (xfs(5), logdev). mkfs.xfs wants 64 MiB at least (seen with xfsprogs 6.1).
func (Format) Log() *format.Log {
	return &format.Log{Of: "XFS", Signature: "xfs_external_log", MountOption: "logdev", Minimum: 64 << 20}
}
