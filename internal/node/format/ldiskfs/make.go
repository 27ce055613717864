package ldiskfs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/ext4"
)

// MarkLength is the longest mark in bytes. ldd_userdata of struct lustre_disk_data has 824, including a zero at the end. For a longer one,
// mkfs.lustre exits with 75 (2.17.57).
const MarkLength = 823

// New describes a target to make.
type New struct {
	Service Service
	// Mark identifies the owner of the target. It is one line, stored in CONFIGS/mountdata as the user's comment.
	Mark string
	// UUID is that of the filesystem, and Device a path below /dev.
	UUID, Device string
	// Options holds the user's options for mke2fs, none of which is refused.
	Options []v1alpha1.MkfsOption
}

// newOf converts the description of a target.
func newOf(n format.New) New {
	out := New{Mark: n.Mark, UUID: n.UUID, Device: n.Device, Options: n.Options}
	if n.Given != nil {
		out.Service = ServiceOf(*n.Given)
	}
	return out
}

// Make returns the command mkfs.lustre.
func (Format) Make(n format.New) []string { return newOf(n).Make() }

// TryOut returns the command mkfs.lustre --dryrun.
func (Format) TryOut(n format.New) []string { return newOf(n).DryRun() }

// Tried compares what mkfs.lustre would write with the assignment.
func (Format) Tried(n format.New, a format.Answer) string {
	would, err := ParseDryRun(a.Code, a.Stdout)
	if err != nil {
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", err, a.Said), ": ")
	}
	if differ := Differences(ServiceOf(*n.Given), n.Mark, would); len(differ) > 0 {
		return fmt.Sprintf("%s --dryrun would make another target: %s", Mkfs, strings.Join(differ, ", and "))
	}
	return ""
}

// Problems returns why the target can't be made.
func (Format) Problems(n format.New) []string {
	if n.Given == nil {
		return []string{"the operator has not said yet what the target is to Lustre (spec.lustre)"}
	}
	return newOf(n).Problems()
}

// Inodes is 0: mkfs.lustre chooses their number by the target's kind.
func (Format) Inodes(int64, []v1alpha1.MkfsOption) int64 { return 0 }

// DryRun is the command that prints what Make would write to CONFIGS/mountdata, and writes nothing.
func (n New) DryRun() []string { return n.command("--dryrun") }

// Make returns the command that makes the target. It never has --reformat, with which mkfs.lustre overwrites another target. That protects
// nothing else: mkfs.lustre passes -F to mke2fs, and formats over whatever a disk has.
func (n New) Make() []string { return n.command() }

func (n New) command(first ...string) []string {
	s := n.Service
	argv := append([]string{Mkfs}, first...)
	argv = append(argv, "--backfstype=ldiskfs")
	if s.MGS {
		argv = append(argv, "--mgs")
	}
	if s.Kind != "" {
		argv = append(argv, "--"+strings.ToLower(string(s.Kind)), "--fsname="+s.FSName, "--index="+strconv.Itoa(int(s.Index)))
	}
	for _, node := range s.MGSNodes {
		argv = append(argv, "--mgsnode="+string(node))
	}
	for _, node := range s.ServiceNodes {
		argv = append(argv, "--servicenode="+string(node))
	}
	return append(argv, "--comment="+n.Mark, "--mkfsoptions="+n.mke2fs(), n.Device)
}

// mke2fs returns the options for mke2fs.
func (n New) mke2fs() string {
	items := []string{"-U", spelled(n.UUID)}
	for _, option := range n.Options {
		items = append(items, string(option))
	}
	return strings.Join(items, " ")
}

// spelled returns a UUID in a form that mkfs.lustre accepts. mkfs.lustre searches the text of all options for "-b" and others
// (ldiskfs_make_lustre of lustre/utils/libmount_utils_ldiskfs.c), and treats a group of the UUID that begins with b as the block size.
// mke2fs accepts capitals as well, and of those only "-E" would be found.
func spelled(uuid string) string { return strings.ReplaceAll(strings.ToLower(uuid), "-b", "-B") }

// RefusedOptions returns the options of mke2fs(8) that a user may not set for a target, each as a sentence that names it.
func (Format) RefusedOptions(given []v1alpha1.MkfsOption) []string {
	refused := format.Refused(Mkfs, ext4.Options(), given)
	for _, once := range []string{"-E", "-O"} {
		times := 0
		for _, option := range given {
			times += strings.Count(string(option), once)
		}
		if times > 1 {
			refused = append(refused, fmt.Sprintf("format.mkfsOptions: %q of %s is refused: it may be given once; put all into one, with commas", once, Mkfs))
		}
	}
	return refused
}

// Striped adds the stripe for mke2fs.
func (Format) Striped(options []v1alpha1.MkfsOption, chunk int64, data int32) []v1alpha1.MkfsOption {
	return ext4.Striped(options, chunk, data)
}

var (
	// fsName matches the names that mkfs.lustre accepts (parse_opts of lustre/utils/mkfs_lustre.c).
	fsName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,8}$`)
	// node matches NIDs with their network, separated by commas. A hostname, which mkfs.lustre would resolve, has no network.
	node = regexp.MustCompile(`^[0-9A-Za-z.:]+@[a-z][a-z0-9]*(,[0-9A-Za-z.:]+@[a-z][a-z0-9]*)*$`)
	// uuid matches a UUID in the form of all tools.
	uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
)

// MaxIndex is the highest index of a target that mkfs.lustre 2.17 accepts (LOV_V1_INSANE_STRIPE_INDEX of lustre_user.h).
const MaxIndex = 0xffdf

// optionsLength is the maximum length of all options for mke2fs, in bytes. mkfs.lustre has room for 511, and adds about 240 of its own.
const optionsLength = 256

// Problems returns why a target can't be made, each as a sentence; none if it can.
func (n New) Problems() []string {
	s := n.Service
	var all []string
	add := func(wrong bool, sentence string, arguments ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(sentence, arguments...))
		}
	}
	switch s.Kind {
	case "":
		add(!s.MGS, "the target is neither an MGS nor an MDT nor an OST")
		add(s.FSName != "" || s.Index != 0, "an MGS of its own has neither the name of a filesystem nor an index: it serves several")
	case MDT, OST:
		add(!fsName.MatchString(s.FSName), "the name %q of the filesystem has not 1 to 8 letters, digits, - and _", s.FSName)
		add(s.Index < 0 || s.Index > MaxIndex, "the index %d is not one from 0 to %d", s.Index, MaxIndex)
		add(s.MGS && s.Kind == OST, "an OST can't be an MGS: give that a target of its own, or put it beside MDT0000")
		add(s.MGS && s.Kind == MDT && s.Index != 0, "the MGS lies beside MDT0000 and not beside MDT%04x", s.Index)
		add(!s.MGS && len(s.MGSNodes) == 0, "the target is told no NID of its MGS")
	default:
		add(true, "the kind %q of the target is neither MDT nor OST", s.Kind)
	}
	add(s.MGS && len(s.MGSNodes) > 0, "a target with the MGS is told no NIDs of it")
	for _, n := range slices.Concat(s.MGSNodes, s.ServiceNodes) {
		add(!node.MatchString(string(n)), "%q are not NIDs with a comma between them, such as 192.168.77.1@tcp", string(n))
	}
	add(len(n.Mark) > MarkLength, "the mark has %d bytes, and a target has room for %d", len(n.Mark), MarkLength)
	add(n.Mark == "" || strings.ContainsAny(n.Mark, "\n\x00"), "the mark is not one line of text")
	add(len(n.mke2fs()) > optionsLength, "format.mkfsOptions are too long: with the UUID they have %d bytes, and %s has room for %d",
		len(n.mke2fs()), Mkfs, optionsLength)
	add(!uuid.MatchString(n.UUID), "%q is no UUID", n.UUID)
	return all
}
