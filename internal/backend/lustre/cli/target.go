package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/node/format/ldiskfs"
)

// Kind is the kind of a target.
type Kind string

// The kinds of targets.
const (
	MGT Kind = "MGS"
	MDT Kind = "MDT"
	OST Kind = "OST"
)

// MaxIndex is the highest index of a target that mkfs.lustre accepts.
const MaxIndex = ldiskfs.MaxIndex

// Target names a target. An MGT has neither filesystem nor index.
type Target struct {
	FSName string
	Kind   Kind
	Index  int32
}

// String is the name that Lustre's tools use, such as pfs-OST000a.
func (t Target) String() string {
	if t.Kind == MGT {
		return string(MGT)
	}
	return fmt.Sprintf("%s-%s%04x", t.FSName, t.Kind, t.Index)
}

var targetName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,8})-(MDT|OST)([0-9a-f]{4})$`)

// ParseTarget reads the name of a target. It is false for any other name, and for a target without an index.
func ParseTarget(name string) (Target, bool) {
	if name == string(MGT) {
		return Target{Kind: MGT}, true
	}
	found := targetName.FindStringSubmatch(name)
	if found == nil {
		return Target{}, false
	}
	index, err := strconv.ParseUint(found[3], 16, 16)
	if err != nil || index > MaxIndex {
		return Target{}, false
	}
	return Target{FSName: found[1], Kind: Kind(found[2]), Index: int32(index)}, true
}

// parseUUID reads the name of a target with the ending of its device, such as pfs-OST0001_UUID.
func parseUUID(text string) (Target, bool) {
	name, ends := strings.CutSuffix(text, "_UUID")
	target, is := ParseTarget(name)
	return target, ends && is
}
