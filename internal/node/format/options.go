package format

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Option describes one option of a mkfs.
type Option struct {
	// Argument is true if it takes one.
	Argument bool
	// Why is the reason if it is refused; empty if a user may set it.
	Why string
	// Parts maps the refused parts of its argument to the reasons.
	Parts map[string]string
}

// The reasons for which an option is refused.
const (
	SetsLabel  = "the operator sets the label, by which it knows the disk"
	SetsUUID   = "the operator sets the UUID, by which it knows the filesystem"
	SetsLog    = "the operator sets the log device; name it in the FileSystem (logDevice or logDevices)"
	SetsOther  = "a target is one whole device"
	Forces     = "without force, mkfs itself refuses a device that is in use or not blank"
	DryRun     = "it makes no filesystem"
	Quiet      = "what mkfs prints is part of what the operator reports"
	ReadsPath  = "it reads a file or directory of the node"
	OtherKind  = "the operator chooses the kind of filesystem by format.fsType"
	PartlyMade = "it makes only a part of a filesystem"
	Obsolete   = "it is obsolete; use -n"
)

// Plain is an option without an argument that a user may set.
var Plain = Option{}

// Takes returns an option with an argument that a user may set, except for these parts of it.
func Takes(parts map[string]string) Option { return Option{Argument: true, Parts: parts} }

// Not returns an option that is refused.
func Not(argument bool, why string) Option { return Option{Argument: argument, Why: why} }

// Refused returns the refused options of a mkfs, each as a sentence that names it. It refuses unknown options, because they could name a
// device.
func Refused(mkfs string, known map[string]Option, options []v1alpha1.MkfsOption) []string {
	var refused []string
	refuse := func(option, why string) {
		refused = append(refused, fmt.Sprintf("format.mkfsOptions: %q of %s is refused: %s", option, mkfs, why))
	}
	items := make([]string, 0, len(options))
	for _, item := range options {
		items = append(items, string(item))
		if strings.Contains(string(item), "/") {
			refuse(string(item), "it is a path, and the operator alone names devices and files")
		}
	}
	for len(items) > 0 {
		item := items[0]
		items = items[1:]
		if len(item) < 2 || item[0] != '-' || item == "--" {
			refuse(item, "it is neither an option nor the argument of one, so that mkfs would take it for a device or its size")
			continue
		}
		for _, o := range splitOption(item, known) {
			what, isKnown := known[o.name]
			argument, has := o.argument, o.hasArgument
			if what.Argument && !has && len(items) > 0 {
				argument, has, items = items[0], true, items[1:]
			}
			switch {
			case !isKnown:
				refuse(o.name, "the operator does not know it")
			case what.Why != "":
				refuse(o.name, what.Why)
			case what.Argument && (!has || strings.HasPrefix(argument, "-")):
				refuse(o.name, "it needs an argument, as the next item of the list")
			case !what.Argument && has:
				refuse(o.name, "it takes no argument")
			default:
				for part := range strings.SplitSeq(argument, ",") {
					name, _, _ := strings.Cut(part, "=")
					if why := what.Parts[strings.TrimPrefix(name, "^")]; why != "" {
						refuse(o.name+" "+name, why)
					}
				}
			}
		}
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// givenOption is one option as getopt(3) parses it from an item.
type givenOption struct {
	name, argument string
	hasArgument    bool
}

// splitOption parses one item as getopt_long(3) does: "--name=value", or several letters in one item, of which the first one with an
// argument takes the rest. Abbreviations of long options are unknown, and so refused.
func splitOption(item string, known map[string]Option) []givenOption {
	if strings.HasPrefix(item, "--") {
		name, value, has := strings.Cut(item, "=")
		return []givenOption{{name: name, argument: value, hasArgument: has}}
	}
	var options []givenOption
	for i := 1; i < len(item); i++ {
		name := "-" + item[i:i+1]
		if known[name].Argument && i+1 < len(item) {
			return append(options, givenOption{name: name, argument: item[i+1:], hasArgument: true})
		}
		options = append(options, givenOption{name: name})
	}
	return options
}
