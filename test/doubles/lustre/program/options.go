// Package program holds the doubles of mkfs.lustre and tunefs.lustre, based on the output of 2.17.57 and its sources.
package program

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
)

// Version is the Lustre version of the doubles.
const Version = "2.17.57"

// Exit codes with their names in the C library.
const (
	ePerm     = 1
	eExist    = 17
	eNoDev    = 19
	eInval    = 22
	eOverflow = 75
)

var names = map[int]string{ePerm: "Operation not permitted", eExist: "File exists", eNoDev: "No such device", eInval: "Invalid argument"}

// run is one call of a program.
type run struct {
	name           string
	stdout, stderr io.Writer
	quiet          bool

	data     mountdata.Data
	device   string
	mke2fs   string
	dryRun   bool
	failover bool
	eraseAll bool
	knowsMGS bool
}

func (r *run) say(format string, arguments ...any) {
	if !r.quiet {
		fmt.Fprintf(r.stdout, format, arguments...)
	}
}

func (r *run) complain(format string, arguments ...any) { fmt.Fprintf(r.stderr, format, arguments...) }

// fatal prints a fatal error; after that nothing more is printed on standard output.
func (r *run) fatal(format string, arguments ...any) {
	r.quiet = true
	r.complain("\n"+r.name+" FATAL: "+format+"\n", arguments...)
}

// exit prints the reason of the end.
func (r *run) exit(code int) int {
	if code != 0 && code != eOverflow { // the real programs print nothing more about it
		r.complain("%s: exiting with %d (%s)\n", r.name, code, names[code])
	}
	return code
}

// Options of both programs, and of one; true if they have an argument.
var (
	both = map[string]bool{
		"comment": true, "dryrun": false, "fsname": true, "index": true, "mgs": false, "mgsnode": true, "param": true, "quiet": false,
		"servicenode": true, "version": false,
	}
	ofMkfs   = map[string]bool{"backfstype": true, "mdt": false, "mkfsoptions": true, "ost": false}
	ofTunefs = map[string]bool{"erase-params": false, "writeconf": false}
	// notPlayed lists options of the real programs that the doubles refuse. The first ones must never be used.
	notPlayed = []string{
		"reformat", "replace", "skipmmp", "mountdata-reset-from", "rename", "nolocallogs",
		"backfs-mount-opts", "failnode", "failover", "nomgs", "mountfsoptions", "network", "force-nohostid", "verbose", "stripe-count-hint",
		"device-size", "erase-param", "quota", "help", "mgsnid",
	}
)

// option is one option as it was given.
type option struct{ name, value string }

// split splits a command line, and describes what is wrong with it. Abbreviations and one-letter options are not supported.
func (r *run) split(arguments []string, known map[string]bool) (options []option, rest, wrong []string) {
	refuse := func(format string, arguments ...any) { wrong = append(wrong, fmt.Sprintf(format, arguments...)) }
	for i := 0; i < len(arguments); i++ {
		argument := arguments[i]
		if !strings.HasPrefix(argument, "-") {
			rest = append(rest, argument)
			continue
		}
		name, value, has := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		takes, isKnown := known[name]
		if !isKnown {
			takes, isKnown = both[name]
		}
		switch {
		case strings.HasPrefix(argument, "--") && slices.Contains(notPlayed, name):
			refuse("the double does not play --%s", name)
		case !isKnown || !strings.HasPrefix(argument, "--"):
			refuse("unrecognized option '%s'", argument)
		case takes && !has && i+1 == len(arguments):
			refuse("option '--%s' requires an argument", name)
		case !takes && has:
			refuse("option '--%s' doesn't allow an argument", name)
		case takes && !has:
			i++
			options = append(options, option{name, arguments[i]})
		default:
			options = append(options, option{name, value})
		}
	}
	return options, rest, wrong
}

// complainOf prints what is wrong with the command line. The real programs parse it twice, and therefore print it twice.
func (r *run) complainOf(wrong []string) {
	for _, sentence := range wrong {
		r.complain("%s: %s\n", r.name, sentence)
	}
}

// early handles options that come before the rest. It ends the program if it returns true.
func (r *run) early(options []option, rest []string) (code int, ends bool) {
	for _, o := range options {
		switch o.name {
		case "version":
			fmt.Fprintf(r.stdout, "%s %s\n", r.name, Version)
			return 0, true
		case "quiet":
			r.quiet = true
		case "erase-params":
			r.eraseAll = true
		case "backfstype":
			if o.value == "zfs" { // as in a Lustre that was built without it
				r.fatal("unhandled/unloaded OSD plugin 5 'zfs'")
				r.fatal("unable to prepare backend (22)")
				return r.exit(eInval), true
			}
			if o.value != "ldiskfs" {
				r.complain("%s: invalid backend filesystem type %s\n", r.name, o.value)
				return ePerm, true
			}
		}
	}
	switch len(rest) {
	case 0:
		r.fatal("Not enough arguments - device name or pool/dataset name not specified.")
		return eInval, true
	case 1:
		r.device = rest[0]
		return 0, false
	default:
		r.complain("%s: Only one device is allowed, but multiple devices are specified: %s\n", r.name, strings.Join(rest, " "))
		return eInval, true
	}
}

var nids = regexp.MustCompile(`^[0-9A-Za-z.:]+@[a-z][a-z0-9]*([,:][0-9A-Za-z.:]+@[a-z][a-z0-9]*)*$`)

// apply applies an option and returns an exit code.
func (r *run) apply(o option) int {
	switch o.name {
	case "mgs":
		r.data.Flags |= mountdata.MGS
	case "mdt":
		r.data.Flags |= mountdata.MDT
	case "ost":
		r.data.Flags |= mountdata.OST
	case "dryrun":
		r.dryRun = true
	case "writeconf":
		r.data.Flags |= mountdata.Writeconf
	case "mkfsoptions":
		r.mke2fs = o.value
		return r.fits(o.value, 512)
	case "comment":
		r.data.Comment = o.value
		return r.fits(o.value, mountdata.CommentLength+1)
	case "fsname":
		return r.fsName(o.value)
	case "index":
		return r.index(o.value)
	case "param":
		r.data.Parameters += " " + o.value
		r.data.Flags |= mountdata.Update
	case "mgsnode", "servicenode":
		return r.nodes(o)
	}
	return 0
}

// fits ends the program if a value does not fit into its field with its terminating zero.
func (r *run) fits(value string, size int) int {
	if len(value) < size {
		return 0
	}
	r.complain("string buffer overflow (max %d): '' + '%s'\n", size, value)
	return eOverflow
}

func (r *run) registered() bool { return r.data.Flags&(mountdata.FirstTime|mountdata.Writeconf) == 0 }

func (r *run) fsName(name string) int {
	if len(name) < 1 || len(name) > 8 {
		r.complain("%s: filesystem name must be 1-8 chars\n", r.name)
		return ePerm
	}
	for _, c := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c) {
			r.complain("%s: char '%c' not allowed in filesystem name\n", r.name, c)
			return ePerm
		}
	}
	if r.registered() {
		r.complain("%s: cannot change the name of a registered target\n", r.name)
		return ePerm
	}
	r.data.FSName = name
	return 0
}

func (r *run) index(value string) int {
	n, err := strconv.ParseUint(value, 10, 32)
	if hex, is := strings.CutPrefix(value, "0x"); is {
		n, err = strconv.ParseUint(hex, 16, 32)
	}
	switch {
	case err != nil:
		r.complain("%s: wrong index %s. Target index must be decimal or hexadecimal.\n", r.name, value)
		return ePerm
	case n > 0xffdf:
		r.complain("%s: wrong index %d. Target index must be less than %d.\n", r.name, n, 0xffe0)
		return ePerm
	case r.registered():
		r.complain("%s: cannot change the index of a registered target\n", r.name)
		return ePerm
	}
	r.data.Index, r.data.Flags = uint32(n), r.data.Flags&^mountdata.NeedsIndex
	return 0
}

// nodes adds NIDs. The doubles don't resolve host names.
func (r *run) nodes(o option) int {
	if !nids.MatchString(o.value) {
		r.complain("%s: Can't parse NID '%s'\n", r.name, o.value)
		return ePerm
	}
	key := "mgsnode="
	if o.name == "servicenode" {
		key = "failover.node="
		r.data.Flags |= mountdata.Update | mountdata.NoPrimnode
		r.failover = true
	} else {
		r.knowsMGS = true
	}
	before, after, has := strings.Cut(r.data.Parameters, key)
	if !has {
		r.data.Parameters += " " + key + o.value
		return 0
	}
	old, rest, more := strings.Cut(after, " ")
	if more {
		rest = " " + rest
	}
	r.data.Parameters = before + key + old + ":" + o.value + rest
	return 0
}

// setName gives the target its name.
func (r *run) setName() {
	kind := "OST"
	if r.data.Flags&mountdata.MDT != 0 {
		kind = "MDT"
	}
	if r.data.Flags&(mountdata.MDT|mountdata.OST) == 0 {
		r.data.Name = "MGS"
		return
	}
	separator := "-"
	switch {
	case r.data.Flags&mountdata.Writeconf != 0:
		separator = "="
	case r.data.Flags&mountdata.FirstTime != 0:
		separator = ":"
	}
	r.data.Name = fmt.Sprintf("%s%s%s%04x", r.data.FSName, separator, kind, r.data.Index)
}

// show prints the identity of a target.
func (r *run) show(title string) {
	index := strconv.Itoa(int(r.data.Index))
	if r.data.Index == mountdata.Unassigned {
		index = "unassigned"
	}
	var flags strings.Builder
	for _, f := range []struct {
		flag uint32
		name string
	}{
		{mountdata.MDT, "MDT"}, {mountdata.OST, "OST"}, {mountdata.MGS, "MGS"}, {mountdata.NeedsIndex, "needs_index"},
		{mountdata.FirstTime, "first_time"}, {mountdata.Update, "update"}, {mountdata.Writeconf, "writeconf"},
		{mountdata.NoPrimnode, "no_primnode"}, {mountdata.NoLocalLogs, "nolocallogs"},
	} {
		if r.data.Flags&f.flag != 0 {
			flags.WriteString(f.name + " ")
		}
	}
	r.say("\n   %s:\nDevice:     %s\nTarget:     %s\nIndex:      %s\nLustre FS:  %s\nMount type: ldiskfs\nFlags:      %#x\n              (%s)\n",
		title, r.device, r.data.Name, index, r.data.FSName, r.data.Flags, flags.String())
	r.say("Persistent mount opts: %s\nParameters:%s\n", r.data.MountOptions, r.data.Parameters)
	if r.data.Comment != "" {
		r.say("Comment: %s\n", r.data.Comment)
	}
	r.say("\n")
}

// complete checks the combination of all options and returns an exit code.
func (r *run) complete() int {
	flags := &r.data.Flags
	isMDT, isOST, isMGS := *flags&mountdata.MDT != 0, *flags&mountdata.OST != 0, *flags&mountdata.MGS != 0
	switch {
	case !isMDT && !isOST && !isMGS:
		r.fatal("must set target type: MDT,OST,MGS")
		return eInval
	case (isMDT || isMGS) && isOST:
		r.fatal("OST type is exclusive with MDT,MGS")
		return eInval
	}
	if isMGS && !isMDT {
		*flags &^= mountdata.NeedsIndex
	}
	if *flags&mountdata.NeedsIndex != 0 {
		r.complain("warning: %s: for Lustre 2.4 and later, the target index must be specified with --index\n", r.device)
	}
	if isMDT && r.data.Index == mountdata.Unassigned {
		r.data.Index, *flags = 0, *flags&^mountdata.NeedsIndex
	}
	switch {
	case !isMGS && !r.knowsMGS && isMDT:
		r.fatal("Must specify --mgs or --mgsnode")
		return eInval
	case !isMGS && !r.knowsMGS:
		r.fatal("Must specify --mgsnode")
		return eInval
	case (isMDT || isOST) && r.data.FSName == "":
		r.fatal("Must specify --fsname for MDT/OST device")
		return eInval
	}
	if r.data.MountOptions == "" {
		r.data.MountOptions = "errors=remount-ro"
		if isMDT || isMGS {
			r.data.MountOptions = "user_xattr," + r.data.MountOptions
		}
	}
	r.setName()
	return 0
}
