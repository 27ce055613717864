package devices

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/internal/node/procfs"
)

// twoDisks describes a multipath device, on any level of the device, whose paths lead to different disks. It is empty if there is none.
// multipath(8) groups paths by the WWID alone, and some storage systems and enclosures give one WWID to several disks
// (github.com/ClusterLabs/resource-agents/issues/1463). Each write to such a device goes to one of the disks.
func (v *view) twoDisks(name string) string {
	below := entries(v.class(name, "slaves"))
	if v.listed[name].Type == "mpath" {
		if why := v.pathsDiffer(name, below); why != "" {
			return why
		}
	}
	for _, b := range below {
		if why := v.twoDisks(firstOf(v.parent(b), b)); why != "" {
			return why
		}
	}
	return ""
}

// pathsDiffer compares the properties of the disks at the end of each path. A path that is down may have no properties.
func (v *view) pathsDiffer(name string, paths []string) string {
	for _, property := range []struct {
		what string
		of   func(path string) string
	}{
		{"serial %q", v.kernelSerial},
		{"serial %q", func(path string) string { return v.listed[path].Serial }},
		{"WWN %s", func(path string) string {
			return cmp.Or(canonical(v.attribute(path, "wwid")), canonical(v.attribute(path, "device/wwid")))
		}},
		{"identification %s", v.identification},
	} {
		if names, answers := different(paths, property.of); len(names) > 1 {
			return areTwoDisks(name, property.what, names, answers)
		}
	}
	size := func(path string) string {
		if n, err := v.size(path); err == nil && n > 0 {
			return fmt.Sprint(n)
		}
		return ""
	}
	if names, answers := different(paths, size); len(names) > 1 {
		return areTwoDisks(name, "%s bytes", names, answers) + ". When one disk was resized, rescan all paths to it"
	}
	return ""
}

// different returns one path for each distinct answer if there are several answers. An empty answer does not count.
func different(paths []string, of func(path string) string) (names, answers []string) {
	for _, path := range paths {
		if answer := of(path); answer != "" && !slices.Contains(answers, answer) {
			names, answers = append(names, path), append(answers, answer)
		}
	}
	return names, answers
}

func areTwoDisks(name, what string, paths, answers []string) string {
	over := make([]string, len(paths))
	for i, path := range paths {
		over[i] = path + " (" + fmt.Sprintf(what, answers[i]) + ")"
	}
	count := "two"
	if len(over) > 2 {
		count = fmt.Sprint(len(over))
		if len(over) > 3 {
			over = append(over[:3:3], fmt.Sprintf("%d more", len(paths)-3))
		}
	}
	return fmt.Sprintf("%s is a multipath device over %s: these are %s disks; give each a WWN of its own, or blacklist them in multipath.conf, and take %s apart (multipath -f %s)",
		name, strings.Join(over, " and "), count, name, name)
}

// identification returns the "device identification" page of a SCSI disk's logical unit (SPC-4, 7.8.6) without the designators of the port,
// which differ by path. A page in another format is returned unchanged. It is empty if there is no page.
func (v *view) identification(name string) string {
	page, err := procfs.Read(v.class(name, "device/vpd_pg83"))
	if err != nil || len(page) == 0 {
		return ""
	}
	var units []string
	rest := page[min(4, len(page)):]
	if len(page) >= 4 {
		if length := int(page[2])<<8 | int(page[3]); length <= len(rest) {
			rest = rest[:length]
		}
	}
	for len(rest) > 0 {
		if len(rest) < 4 || len(rest) < 4+int(rest[3]) {
			return fmt.Sprintf("%x", page[:min(64, len(page))])
		}
		association, kind := rest[1]>>4&3, rest[1]&15
		if association == 0 && slices.Contains(unitNames, kind) {
			units = append(units, fmt.Sprintf("%x", rest[4:4+int(rest[3])]))
		}
		rest = rest[4+int(rest[3]):]
	}
	slices.Sort(units)
	return strings.Join(slices.Compact(units), " ")
}

// unitNames lists the designator types that identify one logical unit: T10 vendor ID, EUI-64, NAA, SCSI name string, UUID.
var unitNames = []byte{1, 2, 3, 8, 10}
