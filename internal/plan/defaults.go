package plan

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// formatOf returns how a disk is formatted and mounted. The spec decides; where the spec leaves a value out, the default of the role
// applies (SelectInput.Formats). The second result lists the values that are defaults. Defaults apply to new targets only; existing targets
// keep their values.
func (s *selection) formatOf(g group, node string, id v1alpha1.DeviceID, name string) (v1alpha1.FormatSpec, string) {
	out, from := s.unstriped(g, node, id, name)
	if g.spec.Format == nil || g.spec.Format.RAID == nil {
		return out, from
	}
	f, err := registry.Of(out)
	if err != nil {
		return out, from
	}
	// The API refuses raid for any other format.
	if striper, is := f.(format.Striper); is {
		raid := g.spec.Format.RAID
		out.MkfsOptions = striper.Striped(out.MkfsOptions, raid.Chunk.Value(), raid.Data)
	}
	return out, from
}

// unstriped returns the format without the geometry of a RAID.
func (s *selection) unstriped(g group, node string, id v1alpha1.DeviceID, name string) (v1alpha1.FormatSpec, string) {
	old := s.existing[name]
	asked := v1alpha1.FormatSpec{}
	if g.spec.Format != nil {
		asked = *g.spec.Format.DeepCopy()
	}
	asked.LogDevices, asked.RAID = nil, nil
	standard, has := s.in.Formats[g.role]
	if !has {
		asked.FSType = registry.NameOf(asked)
		return asked, ""
	}
	out, made := asked, ""
	var defaulted []string
	if out.FSType == "" {
		defaulted = append(defaulted, "fsType")
		switch out.FSType, made = standard.FSType, s.madeAs(node, id, name); {
		case made != "":
			out.FSType = v1alpha1.FSType(made)
		case old != nil && isPlain(old.Spec.Format), g.spec.Format != nil && g.spec.Format.LogDevices != nil,
			slices.ContainsFunc(g.spec.Devices, func(d v1alpha1.DeviceReference) bool { return d.LogDevice != "" }):
			out.FSType = registry.Default
		}
	}
	if out.FSType == standard.FSType && (old == nil || !isPlain(old.Spec.Format)) {
		if len(out.MkfsOptions) == 0 && len(standard.MkfsOptions) > 0 && made == "" {
			out.MkfsOptions, defaulted = slices.Clone(standard.MkfsOptions), append(defaulted, "mkfsOptions")
		}
		if len(out.MountOptions) == 0 && len(standard.MountOptions) > 0 {
			out.MountOptions, defaulted = slices.Clone(standard.MountOptions), append(defaulted, "mountOptions")
		}
	}
	if len(defaulted) == 0 {
		return out, "asked for"
	}
	return out, fmt.Sprintf("default of type %[2]s for %[1]s: %[3]s; asked for: the rest", strings.ToLower(string(g.role)), s.in.FileSystem.Spec.Type,
		strings.Join(defaulted, ", "))
}

// isPlain reports whether a format equals the one that every target had before filesystems had defaults: XFS without options.
func isPlain(f v1alpha1.FormatSpec) bool {
	return registry.NameOf(f) == registry.Default && len(f.MkfsOptions) == 0 && len(f.MountOptions) == 0
}

// madeAs returns the format of a disk that already carries this target, from an earlier cluster or FileSystem, by its signature; empty for
// any other disk. Such a disk is never formatted again, so its existing format applies.
func (s *selection) madeAs(node string, id v1alpha1.DeviceID, name string) string {
	devices := s.in.Inventories[node].BlockDevices
	i := slices.IndexFunc(devices, func(b v1alpha1.BlockDevice) bool { return slices.Contains(stableNames(b), string(id)) })
	if i < 0 || !isLabeled(devices[i], s.in.FileSystem.Namespace, s.in.FileSystem.Name, name) {
		return ""
	}
	for _, found := range devices[i].Signatures {
		if f, known := registry.BySignature(found.Type); known && found.Device == devices[i].KernelName {
			return string(f.Name())
		}
	}
	return ""
}
