package btrfs

import "parallelfs.dev/operator/internal/node/format"

// Signature is btrfs.
func (Format) Signature() string { return "btrfs" }

// Log is nil: the log of btrfs is a tree like any other.
func (Format) Log() *format.Log { return nil }
