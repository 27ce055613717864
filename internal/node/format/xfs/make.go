package xfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

const mkfs = "mkfs.xfs"

// options holds the options of mkfs.xfs(8).
var options = map[string]format.Option{
	"-b": format.Takes(nil), "-i": format.Takes(nil), "-K": format.Plain, "-n": format.Takes(nil), "-s": format.Takes(nil),
	"-d": format.Takes(map[string]string{"file": format.SetsOther, "name": format.SetsOther, "size": format.SetsOther}),
	"-l": format.Takes(map[string]string{"logdev": format.SetsLog, "name": format.SetsLog, "file": format.SetsLog}),
	"-m": format.Takes(map[string]string{"uuid": format.SetsUUID}),
	"-r": format.Takes(map[string]string{"rtdev": format.SetsOther, "name": format.SetsOther, "file": format.SetsOther}),
	"-c": format.Not(true, format.ReadsPath), "-p": format.Not(true, format.ReadsPath), "-L": format.Not(true, format.SetsLabel),
	"-f": format.Not(false, format.Forces), "-q": format.Not(false, format.Quiet), "-N": format.Not(false, format.DryRun),
	"-V": format.Not(false, format.DryRun),
}

// RefusedOptions returns the options of mkfs.xfs(8) that a user may not set.
func (Format) RefusedOptions(given []v1alpha1.MkfsOption) []string {
	return format.Refused(mkfs, options, given)
}

// longestLog is the longest log, in bytes. Without a size, mkfs.xfs refuses a larger device (XFS_MAX_LOG_BYTES of libxfs; seen with
// xfsprogs 6.1).
const longestLog = 2<<30 - 10<<20

// Make returns the command mkfs.xfs. It refuses a device on which it finds something, but never checks the device of the log.
func (Format) Make(n format.New) []string {
	argv := []string{mkfs}
	for _, option := range n.Options {
		argv = append(argv, string(option))
	}
	argv = append(argv, "-L", n.Label, "-m", "uuid="+n.UUID)
	if n.LogDevice != "" {
		log := "logdev=" + n.LogDevice
		if n.LogBytes > longestLog && !setsLogSize(n.Options) {
			log += ",size=" + strconv.Itoa(longestLog)
		}
		argv = append(argv, "-l", log)
	}
	return append(argv, n.Device)
}

// setsLogSize reports whether the options set the size of the log: -l size=...
func setsLogSize(given []v1alpha1.MkfsOption) bool {
	for i, o := range given {
		argument, attached := strings.CutPrefix(string(o), "-l")
		if !attached {
			continue
		}
		if argument == "" && i+1 < len(given) {
			argument = string(given[i+1])
		}
		if slices.ContainsFunc(strings.Split(argument, ","), func(part string) bool { return strings.HasPrefix(part, "size=") }) {
			return true
		}
	}
	return false
}

// Striped adds the stripe unit in bytes and the stripe width as a multiple of it (mkfs.xfs(8), -d su and sw).
func (Format) Striped(options []v1alpha1.MkfsOption, chunk int64, data int32) []v1alpha1.MkfsOption {
	return append(slices.Clone(options), "-d", v1alpha1.MkfsOption(fmt.Sprintf("su=%d,sw=%d", chunk, data)))
}

// Inodes returns the number that follows from the share of the space for inodes, and from their size (mkfs.xfs(8), -i maxpct and size).
func (Format) Inodes(sizeBytes int64, given []v1alpha1.MkfsOption) int64 {
	const tib = 1 << 40
	percent, inode := int64(25), int64(512)
	switch {
	case sizeBytes >= 50*tib:
		percent = 1
	case sizeBytes >= tib:
		percent = 5
	}
	for i, o := range given {
		if o != "-i" || i+1 == len(given) {
			continue
		}
		for setting := range strings.SplitSeq(string(given[i+1]), ",") {
			name, value, _ := strings.Cut(setting, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case err != nil || n < 0:
			case name == "maxpct" && n == 0:
				percent = 100
			case name == "maxpct":
				percent = n
			case name == "size" && n > 0:
				inode = n
			}
		}
	}
	return sizeBytes / 100 * percent / inode
}
