package ext4

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

const mkfs = "mkfs.ext4"

// options holds the options of mke2fs(8).
var options = map[string]format.Option{
	"-b": format.Takes(nil), "-c": format.Plain, "-C": format.Takes(nil), "-D": format.Plain, "-e": format.Takes(nil),
	"-g": format.Takes(nil), "-G": format.Takes(nil), "-i": format.Takes(nil), "-I": format.Takes(nil), "-j": format.Plain,
	"-m": format.Takes(nil), "-N": format.Takes(nil), "-o": format.Takes(nil), "-r": format.Takes(nil), "-T": format.Takes(nil),
	"-v": format.Plain,
	"-E": format.Takes(map[string]string{"offset": format.SetsOther, "test_fs": format.PartlyMade}),
	"-J": format.Takes(map[string]string{"device": format.SetsLog}),
	"-O": format.Takes(map[string]string{"journal_dev": format.PartlyMade}),
	"-d": format.Not(true, format.ReadsPath), "-l": format.Not(true, format.ReadsPath), "-M": format.Not(true, format.ReadsPath),
	"-z": format.Not(true, format.ReadsPath), "-L": format.Not(true, format.SetsLabel), "-U": format.Not(true, format.SetsUUID),
	"-F": format.Not(false, format.Forces), "-q": format.Not(false, format.Quiet), "-n": format.Not(false, format.DryRun),
	"-V": format.Not(false, format.DryRun), "-S": format.Not(false, format.PartlyMade), "-t": format.Not(true, format.OtherKind),
}

// Options returns the known options of mke2fs(8), which makes other formats as well.
func Options() map[string]format.Option { return maps.Clone(options) }

// RefusedOptions returns the options of mke2fs(8) that a user may not set.
func (Format) RefusedOptions(given []v1alpha1.MkfsOption) []string {
	return format.Refused(mkfs, options, given)
}

// Make returns the command mkfs.ext4. It refuses a device that is mounted or busy, but without a terminal it overwrites another filesystem
// unasked. A step of its own therefore wipes the disk first.
func (Format) Make(n format.New) []string {
	argv := []string{mkfs}
	for _, option := range n.Options {
		argv = append(argv, string(option))
	}
	return append(argv, "-L", n.Label, "-U", n.UUID, n.Device)
}

// blockSize is the size of a block where no option sets another. mke2fs chooses smaller ones only below 512 MiB (mke2fs.conf).
const blockSize = 4096

// Striped adds the stripe in blocks: stride is the part of one disk, stripe_width that of all disks with data (mke2fs(8), -E). Of several
// -E, mke2fs uses only one, so that the stripe joins one that is there.
func Striped(options []v1alpha1.MkfsOption, chunk int64, data int32) []v1alpha1.MkfsOption {
	stripe := v1alpha1.MkfsOption(fmt.Sprintf("stride=%d,stripe_width=%d", chunk/blockSize, chunk/blockSize*int64(data)))
	out := slices.Clone(options)
	for i, o := range out {
		switch {
		case o == "-E" && i+1 < len(out):
			out[i+1] += "," + stripe
			return out
		case strings.HasPrefix(string(o), "-E") && len(o) > len("-E"):
			out[i] += "," + stripe
			return out
		}
	}
	return append(out, "-E", stripe)
}

// Striped adds the stripe.
func (Format) Striped(options []v1alpha1.MkfsOption, chunk int64, data int32) []v1alpha1.MkfsOption {
	return Striped(options, chunk, data)
}

// Inodes returns the number from the options, or the number that follows from the bytes per inode.
func (Format) Inodes(sizeBytes int64, given []v1alpha1.MkfsOption) int64 {
	if n := numberAfter(given, "-N"); n > 0 {
		return n
	}
	if ratio := numberAfter(given, "-i"); ratio > 0 {
		return sizeBytes / ratio
	}
	return sizeBytes / ratioOf(sizeBytes)
}

// ratioOf returns the number of bytes per inode that mke2fs uses for a size (mke2fs.conf of e2fsprogs 1.47: floppy, small, default, big and
// huge).
func ratioOf(size int64) int64 {
	const tib = 1 << 40
	switch {
	case size < 3<<20:
		return 8192
	case size < 512<<20:
		return 4096
	case size < 4*tib:
		return 16384
	case size < 16*tib:
		return 32768
	default:
		return 65536
	}
}

// numberAfter returns the number that follows an option of mke2fs, or is attached to it, 0 if there is none.
func numberAfter(given []v1alpha1.MkfsOption, name string) int64 {
	i := slices.IndexFunc(given, func(o v1alpha1.MkfsOption) bool { return strings.HasPrefix(string(o), name) })
	if i < 0 {
		return 0
	}
	text := strings.TrimPrefix(string(given[i]), name)
	if text == "" && i+1 < len(given) {
		text = string(given[i+1])
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
