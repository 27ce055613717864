package btrfs

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

const mkfs = "mkfs.btrfs"

// options holds the options of mkfs.btrfs(8).
var options = map[string]format.Option{
	"--csum": format.Takes(nil), "--checksum": format.Takes(nil), "-d": format.Takes(nil), "--data": format.Takes(nil),
	"-m": format.Takes(nil), "--metadata": format.Takes(nil), "-M": format.Plain, "--mixed": format.Plain,
	"-n": format.Takes(nil), "--nodesize": format.Takes(nil), "-s": format.Takes(nil), "--sectorsize": format.Takes(nil),
	"-K": format.Plain, "--nodiscard": format.Plain, "-O": format.Takes(nil), "--features": format.Takes(nil),
	"-R": format.Takes(nil), "--runtime-features": format.Takes(nil), "-v": format.Plain, "--verbose": format.Plain,
	"-L": format.Not(true, format.SetsLabel), "--label": format.Not(true, format.SetsLabel),
	"-U": format.Not(true, format.SetsUUID), "--uuid": format.Not(true, format.SetsUUID), "--device-uuid": format.Not(true, format.SetsUUID),
	"-f": format.Not(false, format.Forces), "--force": format.Not(false, format.Forces),
	"-q": format.Not(false, format.Quiet), "--quiet": format.Not(false, format.Quiet),
	"-V": format.Not(false, format.DryRun), "--version": format.Not(false, format.DryRun), "--help": format.Not(false, format.DryRun),
	"-r": format.Not(true, format.ReadsPath), "--rootdir": format.Not(true, format.ReadsPath), "--shrink": format.Not(false, format.ReadsPath),
	"-u": format.Not(true, format.ReadsPath), "--subvol": format.Not(true, format.ReadsPath), "--compress": format.Not(true, format.ReadsPath),
	"--inode-flags": format.Not(true, format.ReadsPath), "--reflink": format.Not(false, format.ReadsPath),
	"-b": format.Not(true, format.SetsOther), "--byte-count": format.Not(true, format.SetsOther),
	"-A": format.Not(true, format.SetsOther), "--alloc-start": format.Not(true, format.SetsOther),
	"-l": format.Not(true, format.Obsolete), "--leafsize": format.Not(true, format.Obsolete),
}

// RefusedOptions returns the options of mkfs.btrfs(8) that a user may not set.
func (Format) RefusedOptions(given []v1alpha1.MkfsOption) []string {
	return format.Refused(mkfs, options, given)
}

// Make returns the command mkfs.btrfs. It refuses a device on which it finds something.
func (Format) Make(n format.New) []string {
	argv := []string{mkfs}
	for _, option := range n.Options {
		argv = append(argv, string(option))
	}
	return append(argv, "-L", n.Label, "-U", n.UUID, n.Device)
}

// Inodes is 0: btrfs creates inodes on demand, and reports 0 in statfs(2).
func (Format) Inodes(int64, []v1alpha1.MkfsOption) int64 { return 0 }
