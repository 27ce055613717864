package plan

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// mkfsOption is what is known of one option of a mkfs: whether it takes an argument, why it is refused, and which parts of its
// argument are refused.
type mkfsOption struct {
	argument bool
	refused  string
	parts    map[string]string
}

// The reasons for which an option is refused.
const (
	setsLabel  = "the operator sets the label, by which it knows the disk"
	setsUUID   = "the operator sets the UUID, by which it knows the filesystem"
	setsLog    = "the operator sets the log device; name it in the FileSystem (logDevice or logDevices)"
	setsOther  = "a target is one whole device"
	forces     = "without force, mkfs itself refuses a device that is in use or not blank"
	dryRun     = "it makes no filesystem"
	quiet      = "what mkfs prints is part of what the operator reports"
	readsPath  = "it reads a file or directory of the node"
	otherKind  = "the operator chooses the kind of filesystem by format.fsType"
	partlyMade = "it makes only a part of a filesystem"
	obsolete   = "it is obsolete; use -n"
)

// takes and plain are options that a user may give; not is one that is refused.
func takes(parts map[string]string) mkfsOption { return mkfsOption{argument: true, parts: parts} }
func not(argument bool, why string) mkfsOption { return mkfsOption{argument: argument, refused: why} }

var plain = mkfsOption{}

// mkfsOptions are the options of mke2fs(8), mkfs.xfs(8) and mkfs.btrfs(8). What is not here is refused: an option that
// nobody knows could name a device.
var mkfsOptions = map[v1alpha1.FSType]map[string]mkfsOption{
	v1alpha1.Ext4: {
		"-b": takes(nil), "-c": plain, "-C": takes(nil), "-D": plain, "-e": takes(nil), "-g": takes(nil), "-G": takes(nil),
		"-i": takes(nil), "-I": takes(nil), "-j": plain, "-m": takes(nil), "-N": takes(nil), "-o": takes(nil), "-r": takes(nil),
		"-T": takes(nil), "-v": plain,
		"-E": takes(map[string]string{"offset": setsOther, "test_fs": partlyMade}),
		"-J": takes(map[string]string{"device": setsLog}),
		"-O": takes(map[string]string{"journal_dev": partlyMade}),
		"-d": not(true, readsPath), "-l": not(true, readsPath), "-M": not(true, readsPath), "-z": not(true, readsPath),
		"-L": not(true, setsLabel), "-U": not(true, setsUUID), "-F": not(false, forces), "-q": not(false, quiet),
		"-n": not(false, dryRun), "-V": not(false, dryRun), "-S": not(false, partlyMade), "-t": not(true, otherKind),
	},
	v1alpha1.XFS: {
		"-b": takes(nil), "-i": takes(nil), "-K": plain, "-n": takes(nil), "-s": takes(nil),
		"-d": takes(map[string]string{"file": setsOther, "name": setsOther, "size": setsOther}),
		"-l": takes(map[string]string{"logdev": setsLog, "name": setsLog, "file": setsLog}),
		"-m": takes(map[string]string{"uuid": setsUUID}),
		"-r": takes(map[string]string{"rtdev": setsOther, "name": setsOther, "file": setsOther}),
		"-c": not(true, readsPath), "-p": not(true, readsPath), "-L": not(true, setsLabel), "-f": not(false, forces),
		"-q": not(false, quiet), "-N": not(false, dryRun), "-V": not(false, dryRun),
	},
	v1alpha1.Btrfs: {
		"--csum": takes(nil), "--checksum": takes(nil), "-d": takes(nil), "--data": takes(nil), "-m": takes(nil), "--metadata": takes(nil),
		"-M": plain, "--mixed": plain, "-n": takes(nil), "--nodesize": takes(nil), "-s": takes(nil), "--sectorsize": takes(nil),
		"-K": plain, "--nodiscard": plain, "-O": takes(nil), "--features": takes(nil), "-R": takes(nil), "--runtime-features": takes(nil),
		"-v": plain, "--verbose": plain,
		"-L": not(true, setsLabel), "--label": not(true, setsLabel), "-U": not(true, setsUUID), "--uuid": not(true, setsUUID),
		"--device-uuid": not(true, setsUUID), "-f": not(false, forces), "--force": not(false, forces),
		"-q": not(false, quiet), "--quiet": not(false, quiet), "-V": not(false, dryRun), "--version": not(false, dryRun),
		"--help": not(false, dryRun), "-r": not(true, readsPath), "--rootdir": not(true, readsPath), "--shrink": not(false, readsPath),
		"-u": not(true, readsPath), "--subvol": not(true, readsPath), "--compress": not(true, readsPath), "--inode-flags": not(true, readsPath),
		"--reflink": not(false, readsPath), "-b": not(true, setsOther), "--byte-count": not(true, setsOther),
		"-A": not(true, setsOther), "--alloc-start": not(true, setsOther), "-l": not(true, obsolete), "--leafsize": not(true, obsolete),
	},
}

// RefusedMkfsOptions are the mkfs options of a format that are refused, each as a sentence that names it.
func RefusedMkfsOptions(format v1alpha1.FormatSpec) []string {
	fsType := fsTypeOf(format)
	known, ok := mkfsOptions[fsType]
	if !ok {
		return []string{fmt.Sprintf("format.fsType %q is not one of ext4, xfs and btrfs", fsType)}
	}
	var refused []string
	refuse := func(option, why string) {
		refused = append(refused, fmt.Sprintf("format.mkfsOptions: %q of mkfs.%s is refused: %s", option, fsType, why))
	}
	items := make([]string, 0, len(format.MkfsOptions))
	for _, item := range format.MkfsOptions {
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
			if what.argument && !has && len(items) > 0 {
				argument, has, items = items[0], true, items[1:]
			}
			switch {
			case !isKnown:
				refuse(o.name, "the operator does not know it")
			case what.refused != "":
				refuse(o.name, what.refused)
			case what.argument && (!has || strings.HasPrefix(argument, "-")):
				refuse(o.name, "it needs an argument, as the next item of the list")
			case !what.argument && has:
				refuse(o.name, "it takes no argument")
			default:
				for part := range strings.SplitSeq(argument, ",") {
					name, _, _ := strings.Cut(part, "=")
					if why := what.parts[strings.TrimPrefix(name, "^")]; why != "" {
						refuse(o.name+" "+name, why)
					}
				}
			}
		}
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

// givenOption is one option as getopt(3) takes it from an item.
type givenOption struct {
	name, argument string
	hasArgument    bool
}

// splitOption takes one item apart as getopt_long(3) does: "--name=value", or letters in one item, of which the first one
// with an argument takes the rest. The abbreviations of long options are not known, and so refused.
func splitOption(item string, known map[string]mkfsOption) []givenOption {
	if strings.HasPrefix(item, "--") {
		name, value, has := strings.Cut(item, "=")
		return []givenOption{{name: name, argument: value, hasArgument: has}}
	}
	var options []givenOption
	for i := 1; i < len(item); i++ {
		name := "-" + item[i:i+1]
		if known[name].argument && i+1 < len(item) {
			return append(options, givenOption{name: name, argument: item[i+1:], hasArgument: true})
		}
		options = append(options, givenOption{name: name})
	}
	return options
}

// fsTypeOf is the filesystem of a format; without one it is XFS, the default of the API.
func fsTypeOf(format v1alpha1.FormatSpec) v1alpha1.FSType {
	if format.FSType == "" {
		return v1alpha1.XFS
	}
	return format.FSType
}
