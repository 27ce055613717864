// Package btrfs is the format btrfs, with the tools of btrfs-progs.
package btrfs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

// Format is btrfs.
type Format struct{}

var _ format.Format = Format{}

// Name is btrfs.
func (Format) Name() v1alpha1.FSType { return v1alpha1.Btrfs }
