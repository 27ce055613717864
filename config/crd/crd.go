// Package crd holds the CustomResourceDefinition of FileSystems, for programs that fill in its defaults without an API server.
package crd

import _ "embed"

// FileSystems is the manifest of the CustomResourceDefinition.
//
//go:embed bases/parallelfs.dev_filesystems.yaml
var FileSystems []byte
