package ldiskfs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Found is the data that identifies a target, as read from it.
type Found struct {
	Service Service
	// Name is the name in its label. mkfs.lustre prints it with the character of the registration, tunefs.lustre always with "-".
	Name string
	// Indexed is false for a target without an index, and for one that is only an MGS.
	Indexed bool
	// Registration is the progress of its registration with the MGS. Update is set until the MGS has its NIDs.
	Registration Registration
	Update       bool
	// MountType is that of its filesystem, and MountOptions holds the options that Lustre uses for each mount.
	MountType, MountOptions string
	// Parameters holds those besides the NIDs, as key=value.
	Parameters []string
	// Mark identifies its owner; empty if it was made without one.
	Mark string
}

// The flags of a target (include/uapi/linux/lustre/lustre_disk.h).
const (
	isMDT       = 0x1
	isOST       = 0x2
	isMGS       = 0x4
	needsIndex  = 0x10
	firstTime   = 0x20
	update      = 0x40
	writeconf   = 0x100
	noLocalLogs = 0x10000
)

// ReadBack returns the command that prints the data of a target, and writes nothing.
func (Format) ReadBack(device string) []string { return []string{Tunefs, "--dryrun", device} }

// ErrNoTarget means that a device holds no target of Lustre.
var ErrNoTarget = errors.New("the device was not formatted with " + Mkfs)

// noTarget is ENODEV, the exit code of tunefs.lustre if CONFIGS/mountdata does not exist.
const noTarget = 19

// ParseReadBack parses the standard output of the ReadBack command, with its exit code. ErrNoTarget is the result for any other device, and
// for one that can't be read.
func ParseReadBack(code int, stdout string) (Found, error) {
	switch {
	case code == noTarget:
		return Found{}, ErrNoTarget
	case code != 0:
		return Found{}, fmt.Errorf("%s ended with exit code %d", Tunefs, code)
	case !strings.Contains(stdout, "checking for existing Lustre data: found\n"):
		return Found{}, fmt.Errorf("%s does not say that it has found a target", Tunefs)
	}
	return parse(stdout, "Read previous values")
}

// ParseDryRun parses the standard output of the DryRun command, with its exit code.
func ParseDryRun(code int, stdout string) (Found, error) {
	switch {
	case code != 0:
		return Found{}, fmt.Errorf("%s --dryrun ended with exit code %d", Mkfs, code)
	case !strings.HasSuffix(strings.TrimSpace(stdout), "exiting before disk write."):
		return Found{}, fmt.Errorf("%s --dryrun does not say that it wrote nothing", Mkfs)
	}
	return parse(stdout, "Permanent disk data")
}

// parse parses the one block of values below a headline.
func parse(stdout, headline string) (Found, error) {
	if n := strings.Count(stdout, "\nDevice:     "); n != 1 {
		return Found{}, fmt.Errorf("the answer shows the values of %d targets instead of one", n)
	}
	_, block, has := strings.Cut(stdout, "   "+headline+":\n")
	if !has {
		return Found{}, fmt.Errorf("the answer has no %q", headline)
	}
	block, _, _ = strings.Cut(block, "\n\n")
	values := map[string]string{}
	for line := range strings.Lines(block) {
		// The names of the flags are on a line of their own, and repeat their number.
		if key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":"); ok && !strings.HasPrefix(line, " ") {
			if _, twice := values[key]; twice {
				return Found{}, fmt.Errorf("the answer has two values of %q", key)
			}
			values[key] = strings.TrimSpace(value)
		}
	}
	for _, key := range []string{"Device", "Target", "Index", "Lustre FS", "Mount type", "Flags", "Persistent mount opts", "Parameters"} {
		if _, there := values[key]; !there {
			return Found{}, fmt.Errorf("the answer has no value of %q", key)
		}
	}
	return found(values)
}

func found(values map[string]string) (Found, error) {
	flags, err := strconv.ParseUint(values["Flags"], 0, 32)
	if err != nil {
		return Found{}, fmt.Errorf("the flags %q are no number", values["Flags"])
	}
	f := Found{
		Name: values["Target"], Mark: values["Comment"], MountType: values["Mount type"], MountOptions: values["Persistent mount opts"],
		Registration: Registered, Update: flags&update != 0,
		Service: Service{MGS: flags&isMGS != 0, FSName: values["Lustre FS"]},
	}
	switch {
	case flags&isMDT != 0 && flags&isOST != 0:
		return Found{}, errors.New("the target says that it is an MDT and an OST")
	case flags&isMDT != 0:
		f.Service.Kind = MDT
	case flags&isOST != 0:
		f.Service.Kind = OST
	case flags&isMGS == 0:
		return Found{}, errors.New("the target says that it is neither an MGS nor an MDT nor an OST")
	}
	switch {
	case flags&writeconf != 0:
		f.Registration = Writeconf
	case flags&firstTime != 0:
		f.Registration = FirstTime
	case flags&noLocalLogs != 0:
		f.Registration = NoLocalLogs
	}
	if index := values["Index"]; index != "unassigned" {
		n, err := strconv.ParseInt(index, 10, 32)
		if err != nil {
			return Found{}, fmt.Errorf("the index %q is no number", index)
		}
		f.Service.Index, f.Indexed = int32(n), flags&needsIndex == 0
	}
	err = f.parameters(values["Parameters"])
	return f, err
}

// parameters separates the NIDs from the other parameters of a target.
func (f *Found) parameters(text string) error {
	for parameter := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(parameter, "=")
		into := map[string]*[]Node{"mgsnode": &f.Service.MGSNodes, "failover.node": &f.Service.ServiceNodes}[key]
		if into == nil {
			f.Parameters = append(f.Parameters, parameter)
			continue
		}
		nodes, err := nodesOf(value)
		if err != nil {
			return err
		}
		*into = append(*into, nodes...)
	}
	return nil
}

// nid matches one NID at the beginning of a list, and the separator behind it: a comma before another NID of the same node, a colon before
// another node. IPv6 addresses contain colons too, before the network.
var nid = regexp.MustCompile(`^([0-9A-Za-z.:]+?@[a-z][a-z0-9]*)([,:]|$)`)

func nodesOf(list string) ([]Node, error) {
	var nodes []Node
	joined := ""
	for rest := list; rest != ""; {
		match := nid.FindStringSubmatch(rest)
		if match == nil {
			return nil, fmt.Errorf("%q is no list of NIDs", list)
		}
		rest = rest[len(match[0]):]
		if match[2] != "" && rest == "" {
			return nil, fmt.Errorf("%q is no list of NIDs", list)
		}
		joined += match[1]
		if match[2] == "," {
			joined += ","
			continue
		}
		nodes, joined = append(nodes, Node(joined)), ""
	}
	return nodes, nil
}

// Differences returns how the data of a target differs from its assignment, each as a sentence; none if they agree.
func Differences(want Service, mark string, f Found) []string {
	var all []string
	differ := func(what string, has, wanted any) {
		if has != wanted {
			all = append(all, fmt.Sprintf("its %s is %q, and it was given %q", what, fmt.Sprint(has), fmt.Sprint(wanted)))
		}
	}
	differ("filesystem", f.Service.FSName, want.FSName)
	differ("kind", f.Service.Kind, want.Kind)
	differ("MGS", f.Service.MGS, want.MGS)
	if want.Kind != "" && !f.Indexed {
		all = append(all, "it has no index")
	} else {
		differ("index", f.Service.Index, want.Index)
	}
	if f.MountType != Module {
		all = append(all, fmt.Sprintf("its local filesystem is %q instead of %s", f.MountType, Module))
	}
	for _, nodes := range []struct {
		what        string
		has, wanted []Node
	}{{"MGS nodes", f.Service.MGSNodes, want.MGSNodes}, {"service nodes", f.Service.ServiceNodes, want.ServiceNodes}} {
		if !slices.Equal(nodes.has, nodes.wanted) {
			all = append(all, fmt.Sprintf("its %s are %q, and it was given %q", nodes.what, nodes.has, nodes.wanted))
		}
	}
	if f.Mark != mark {
		all = append(all, fmt.Sprintf("its mark is %q, and it was given %q", f.Mark, mark))
	}
	return all
}
