package ext4

import "parallelfs.dev/operator/internal/node/format"

// Signature is ext4.
func (Format) Signature() string { return "ext4" }

// Log is nil: the journal is always on the target's own disk.
func (Format) Log() *format.Log { return nil }
