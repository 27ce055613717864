// Package registry lists the formats of targets.
package registry

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/btrfs"
	"parallelfs.dev/operator/internal/node/format/ext4"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
	"parallelfs.dev/operator/internal/node/format/xfs"
)

// Default is the format of a target that names none; the API has the same default.
const Default = v1alpha1.XFS

// all lists the formats in the order for sentences. Of two with one signature, the plain one comes first.
var all = []format.Format{ext4.Format{}, xfs.Format{}, btrfs.Format{}, ldiskfs.Format{}}

// All returns all formats.
func All() []format.Format { return slices.Clone(all) }

// Names returns the names of all formats for a sentence: ext4, xfs and btrfs.
func Names() string {
	names := make([]string, 0, len(all))
	for _, f := range all {
		names = append(names, string(f.Name()))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// NameOf returns format.fsType, or the default.
func NameOf(f v1alpha1.FormatSpec) v1alpha1.FSType {
	if f.FSType == "" {
		return Default
	}
	return f.FSType
}

// Of returns the format that a target asks for. The error is a sentence that lists the existing ones.
func Of(f v1alpha1.FormatSpec) (format.Format, error) {
	name := NameOf(f)
	if found, known := find(func(f format.Format) bool { return f.Name() == name }); known {
		return found, nil
	}
	return nil, fmt.Errorf("format.fsType %q is not one of %s", name, Names())
}

// Served returns the format that a target asks for, false if the format is not one whose own server mounts it.
func Served(f v1alpha1.FormatSpec) (format.Served, bool) {
	found, err := Of(f)
	if err != nil {
		return nil, false
	}
	served, is := found.(format.Served)
	return served, is
}

// ByLabel returns the format of a target that only its own server mounts, by its type in libblkid and its label; false for any other
// target.
func ByLabel(kind, label string) (format.Served, bool) {
	for _, f := range all {
		if served, is := f.(format.Served); is && served.Signature() == kind && served.HasLabel(label) {
			return served, true
		}
	}
	return nil, false
}

// BySignature returns the format with this type in libblkid, false if no format of targets has it.
func BySignature(kind string) (format.Format, bool) {
	return find(func(f format.Format) bool { return f.Signature() == kind })
}

// ByMagic returns the format with this type in statfs(2), false if no format of targets has it.
func ByMagic(magic int64) (format.Format, bool) {
	return find(func(f format.Format) bool { return f.Proof().UUID != nil && f.Proof().Magic == magic })
}

// ByLog returns the format whose external log has this type in libblkid, false if there is none.
func ByLog(kind string) (format.Format, bool) {
	return find(func(f format.Format) bool { return f.Log() != nil && f.Log().Signature == kind })
}

// WithLog returns the formats that support an external log, for a sentence: XFS.
func WithLog() string {
	var names []string
	for _, f := range all {
		if log := f.Log(); log != nil {
			names = append(names, log.Of)
		}
	}
	return strings.Join(names, " or ")
}

func find(is func(format.Format) bool) (format.Format, bool) {
	at := slices.IndexFunc(all, is)
	if at < 0 {
		return nil, false
	}
	return all[at], true
}
