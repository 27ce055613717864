// Package ext4 is the format ext4, with the tools of e2fsprogs.
package ext4

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

// Format is ext4.
type Format struct{}

var _ format.Format = Format{}

// Name is ext4.
func (Format) Name() v1alpha1.FSType { return v1alpha1.Ext4 }
