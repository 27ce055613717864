package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a target is for.
type Kind string

// The kinds of targets.
const (
	MGT Kind = "MGS"
	MDT Kind = "MDT"
	OST Kind = "OST"
)

// MaxIndex is the highest index of a target: mkfs.lustre writes ffff for one that has none.
const MaxIndex = 0xfffe

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

// State is how far a target is, as its label says.
type State string

// The states of a target.
const (
	// Registered has been mounted once, so that the MGS knows it.
	Registered State = "Registered"
	// Unregistered was formatted and not mounted yet.
	Unregistered State = "Unregistered"
	// Writeconf makes the MGS forget its configuration when it is mounted.
	Writeconf State = "Writeconf"
)

var (
	targetName = regexp.MustCompile(`^([A-Za-z0-9_-]{1,8})([-:=])(MDT|OST)([0-9a-f]{4})$`)
	// states are by what stands between the name of the filesystem and that of the target.
	states = map[string]State{"-": Registered, ":": Unregistered, "=": Writeconf}
)

// ParseLabel reads the label of a disk, or the name of a target. It is false for any other label, and for a target without an index. The
// label of an MGT does not say whether it was mounted.
func ParseLabel(label string) (Target, State, bool) {
	if label == string(MGT) {
		return Target{Kind: MGT}, "", true
	}
	found := targetName.FindStringSubmatch(label)
	if found == nil {
		return Target{}, "", false
	}
	index, err := strconv.ParseUint(found[4], 16, 16)
	if err != nil || index > MaxIndex {
		return Target{}, "", false
	}
	return Target{FSName: found[1], Kind: Kind(found[3]), Index: int32(index)}, states[found[2]], true
}

// parseUUID reads the name of a target with what its device ends in, such as pfs-OST0001_UUID.
func parseUUID(text string) (Target, bool) {
	name, ends := strings.CutSuffix(text, "_UUID")
	target, _, is := ParseLabel(name)
	return target, ends && is
}

// Disk is what mkfs.lustre and tunefs.lustre say of a disk.
type Disk struct {
	Device string
	Target Target
	// MGS is true when the disk is an MGT, by itself or as MDT0000.
	MGS bool
	// FirstTime is true until the target was mounted once, and Writeconf when its next mount makes the MGS forget its configuration.
	FirstTime, Writeconf bool
	// MountType is ldiskfs or zfs.
	MountType string
	// MountOptions are kept on the disk, in their order.
	MountOptions []string
	// MGSNIDs are the NIDs of the MGS, and ServiceNIDs those of the nodes that may have the target, as the parameters say them.
	MGSNIDs, ServiceNIDs []string
	// Parameters are all others, sorted.
	Parameters []string
}

// The flags of a target (LDD_F_* of lustre_disk.h).
const (
	flagMDT       = 0x1
	flagOST       = 0x2
	flagMGS       = 0x4
	flagNoIndex   = 0x10
	flagFirstTime = 0x20
	flagWriteconf = 0x100
)

// Read is what tunefs.lustre --dryrun says is on a disk. It is nil when nothing of Lustre's is; the command then ends with 19 (ENODEV).
func Read(output []byte) (*Disk, error) {
	r := read("tunefs.lustre --dryrun", output)
	found := ""
	var disk *Disk
	for r.next() {
		switch {
		case strings.HasPrefix(r.text, existing):
			found = strings.TrimSpace(strings.TrimPrefix(r.text, existing))
		case strings.TrimSpace(r.text) == "Read previous values:":
			var err error
			if disk, err = r.disk(); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case found == "not found" && disk == nil:
		return nil, nil
	case found == "found" && disk != nil:
		return disk, nil
	default:
		return nil, r.without("whether there is data of Lustre, and which")
	}
}

const existing = "checking for existing Lustre data:"

// Made is what mkfs.lustre --dryrun says it would write.
func Made(output []byte) (*Disk, error) {
	r := read("mkfs.lustre --dryrun", output)
	var disk *Disk
	for r.next() {
		switch {
		case strings.Contains(r.text, "FATAL"):
			return nil, r.wrong("says why it fails")
		case strings.TrimSpace(r.text) == "Permanent disk data:":
			var err error
			if disk, err = r.disk(); err != nil {
				return nil, err
			}
		case r.text == "exiting before disk write." && disk != nil:
			return disk, nil
		}
	}
	return nil, r.without("that it ends before it writes")
}

// disk reads the values of a disk from the line behind their title on.
func (r *reader) disk() (*Disk, error) {
	var d Disk
	values := map[string]string{}
	for _, name := range []string{"Device", "Target", "Index", "Lustre FS", "Mount type", "Flags", "Persistent mount opts", "Parameters"} {
		if !r.next() {
			return nil, r.without(name)
		}
		if strings.HasPrefix(r.text, "              (") && name == "Persistent mount opts" && !r.next() { // the flags in words
			return nil, r.without(name)
		}
		value, is := strings.CutPrefix(r.text, name+":")
		if !is {
			return nil, r.wrong("should be %q", name)
		}
		values[name] = strings.TrimSpace(value)
	}
	flags, err := strconv.ParseUint(values["Flags"], 0, 32)
	if err != nil {
		return nil, fmt.Errorf("%s: the flags are no number: %q", r.command, values["Flags"])
	}
	target, _, is := ParseLabel(values["Target"])
	index := strconv.Itoa(int(target.Index))
	if target.Kind == MGT {
		index = "unassigned"
	}
	var kind uint64
	switch target.Kind {
	case MGT:
		kind = flagMGS
	case MDT:
		kind = flagMDT
	case OST:
		kind = flagOST
	}
	switch {
	case !is, flags&flagNoIndex != 0:
		return nil, fmt.Errorf("%s: the target %q has no index", r.command, values["Target"])
	case index != values["Index"], target.FSName != values["Lustre FS"], flags&(flagMDT|flagOST) != kind&(flagMDT|flagOST), flags&kind == 0:
		return nil, fmt.Errorf("%s: the target %q, its index %q, its filesystem %q and its flags %q contradict each other",
			r.command, values["Target"], values["Index"], values["Lustre FS"], values["Flags"])
	}
	d.Device, d.Target, d.MountType = values["Device"], target, values["Mount type"]
	d.MGS, d.FirstTime, d.Writeconf = flags&flagMGS != 0, flags&flagFirstTime != 0, flags&flagWriteconf != 0
	if values["Persistent mount opts"] != "" {
		d.MountOptions = strings.Split(values["Persistent mount opts"], ",")
	}
	for parameter := range strings.FieldsSeq(values["Parameters"]) {
		name, value, _ := strings.Cut(parameter, "=")
		switch name {
		case "mgsnode":
			d.MGSNIDs = append(d.MGSNIDs, nids(value)...)
		case "failover.node":
			d.ServiceNIDs = append(d.ServiceNIDs, nids(value)...)
		default:
			d.Parameters = append(d.Parameters, parameter)
		}
	}
	slices.Sort(d.Parameters)
	return &d, nil
}

// nids are those of a parameter: commas stand between those of one node, colons between nodes.
func nids(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ':' })
}
