// Package ldiskfs is the local filesystem of Lustre's targets, with Lustre's own tools. It is an ext4 with additional features and the file
// CONFIGS/mountdata, which holds the target's assignment in Lustre and its owner. Like every format it is pure: it returns commands, parses
// their output, and reports contradictions (docs/adr/0072).
package ldiskfs

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

// Format is ldiskfs.
type Format struct{}

var _ format.Served = Format{}

// Name is ldiskfs.
func (Format) Name() v1alpha1.FSType { return v1alpha1.Ldiskfs }

// The programs that make it and read it.
const (
	Mkfs   = "mkfs.lustre"
	Tunefs = "tunefs.lustre"
)

// The modules that mount it, and that connect it to Lustre.
const (
	Module    = "ldiskfs"
	OSDModule = "osd_ldiskfs"
)

// Kind is the kind of data on a target.
type Kind string

// Every kind of target. A target that has only the configuration of the filesystem has none.
const (
	MDT Kind = "MDT"
	OST Kind = "OST"
)

// Service is the assignment of a target in Lustre. It is assigned before the target is made. After the registration, everything but the
// NIDs is permanent.
type Service struct {
	// MGS is true if the target has the configuration of the filesystem, alone or beside metadata.
	MGS bool
	// Kind, FSName and Index name the target in its filesystem; empty and 0 for a target that is only an MGS.
	Kind   Kind
	FSName string
	Index  int32
	// MGSNodes lists the nodes that may run the MGS, each with its NIDs; none for a target that has the MGS itself.
	MGSNodes []Node
	// ServiceNodes lists the nodes that may serve the target, each with its NIDs; none if only one may.
	ServiceNodes []Node
}

// Node holds the NIDs of one node, separated by commas.
type Node string

// Registration is the progress of a target's registration with its MGS.
type Registration byte

// Every value of Registration. ldiskfs stores it in the label, as the character before the kind (server_make_name of
// lustre/utils/mkfs_lustre.c).
const (
	// FirstTime is the state before the first mount.
	FirstTime Registration = ':'
	// Registered is the state after it.
	Registered Registration = '-'
	// Writeconf means that the next mount rewrites the configuration, which a person must have approved.
	Writeconf Registration = '='
	// NoLocalLogs means that the next mount uses the configuration of the MGS instead of its own copy.
	NoLocalLogs Registration = '+'
)

// Label returns the label of the target's filesystem.
func (s Service) Label(r Registration) string {
	if s.Kind == "" {
		return "MGS"
	}
	return fmt.Sprintf("%s%c%s%04x", s.FSName, r, s.Kind, s.Index)
}

// ServiceOf returns the assignment in a StorageTarget.
func ServiceOf(t v1alpha1.LustreTarget) Service {
	s := Service{MGS: t.Kind == v1alpha1.LustreMGT || t.WithMGT, FSName: t.FSName}
	if t.Kind != v1alpha1.LustreMGT {
		s.Kind = Kind(t.Kind)
	}
	if t.Index != nil {
		s.Index = *t.Index
	}
	if len(t.ManagementNIDs) > 0 {
		// One node has the MGS.
		s.MGSNodes = []Node{Node(strings.Join(t.ManagementNIDs, ","))}
	}
	for _, node := range t.ServiceNodes {
		s.ServiceNodes = append(s.ServiceNodes, Node(strings.Join(node.NIDs, ",")))
	}
	return s
}
