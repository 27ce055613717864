// Package ldiskfs is the local filesystem of Lustre's targets, with Lustre's own tools: an ext4 with features of its own, and with the
// file CONFIGS/mountdata, which says what the target is to Lustre and whose it is. It is pure, as every format: it names commands, reads
// what they print, and says what does not agree (docs/adr/0072).
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

// The modules that mount it, and that give it to Lustre.
const (
	Module    = "ldiskfs"
	OSDModule = "osd_ldiskfs"
)

// Kind is what a target keeps.
type Kind string

// The kinds of targets. A target that only has the configuration of the filesystem has none.
const (
	MDT Kind = "MDT"
	OST Kind = "OST"
)

// Service is what a target is to Lustre. It is given before the target is made. A target that registered keeps all but the NIDs for ever.
type Service struct {
	// MGS is true when the target has the configuration of the filesystem, alone or beside metadata.
	MGS bool
	// Kind, FSName and Index name the target in its filesystem; empty and 0 for a target that is an MGS alone.
	Kind   Kind
	FSName string
	Index  int32
	// MGSNodes are the nodes that may have the MGS, each with its NIDs; none for a target that has it itself.
	MGSNodes []Node
	// ServiceNodes are the nodes that may serve the target, each with its NIDs; none when only one may.
	ServiceNodes []Node
}

// Node are the NIDs of one node, with a comma between them.
type Node string

// Registration is how far a target has come with its MGS.
type Registration byte

// The registrations. ldiskfs keeps them in the label, as the character before the kind (server_make_name of lustre/utils/mkfs_lustre.c).
const (
	// FirstTime is before the first mount.
	FirstTime Registration = ':'
	// Registered is after it.
	Registered Registration = '-'
	// Writeconf means that the next mount writes the configuration anew, which a person must have approved.
	Writeconf Registration = '='
	// NoLocalLogs means that the next mount takes the configuration of the MGS instead of its own copy.
	NoLocalLogs Registration = '+'
)

// Label is that of the target's filesystem.
func (s Service) Label(r Registration) string {
	if s.Kind == "" {
		return "MGS"
	}
	return fmt.Sprintf("%s%c%s%04x", s.FSName, r, s.Kind, s.Index)
}

// ServiceOf is what a StorageTarget says.
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
