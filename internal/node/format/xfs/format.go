// Package xfs is the format XFS, with the tools of xfsprogs.
package xfs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

// Format is XFS.
type Format struct{}

var _ format.Format = Format{}

// Name is xfs.
func (Format) Name() v1alpha1.FSType { return v1alpha1.XFS }
