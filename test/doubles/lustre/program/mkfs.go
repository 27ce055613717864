package program

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
)

// Mkfs is mkfs.lustre.
func Mkfs(arguments []string, stdout, stderr io.Writer) int {
	r := &run{name: "mkfs.lustre", stdout: stdout, stderr: stderr, data: mountdata.Data{
		Flags: mountdata.NeedsIndex | mountdata.Update | mountdata.FirstTime, Index: mountdata.Unassigned,
	}}
	options, rest, wrong := r.split(arguments, ofMkfs)
	r.complainOf(wrong)
	if code, ends := r.early(options, rest); ends {
		return code
	}
	if len(wrong) > 0 {
		r.complainOf(wrong)
		return r.exit(eInval)
	}
	for _, o := range options {
		if code := r.apply(o); code != 0 {
			return r.exit(code)
		}
	}
	if code := r.complete(); code != 0 {
		return r.exit(code)
	}
	r.show("Permanent disk data")
	if r.dryRun {
		fmt.Fprintln(stdout, "exiting before disk write.")
		return 0
	}
	if mounted(r.device) {
		r.complain("%s: is currently mounted, exiting without any change\n", r.device)
		return eExist
	}
	_, _, found, err := mountdata.Of(r.device)
	r.say("checking for existing Lustre data: %s\n", map[bool]string{true: "found", false: "not found"}[found])
	switch {
	case err != nil:
		r.fatal("%s", err)
		return r.exit(eNoDev)
	case found:
		r.fatal("Device %s was previously formatted for lustre. Use --reformat to reformat it, or tunefs.lustre to modify.", r.device)
		return r.exit(ePerm)
	}
	if code := r.format(); code != 0 {
		r.fatal("mkfs failed %d", code)
		return r.exit(code)
	}
	return r.save()
}

// save writes the identity of the target. A target of several nodes is protected from double mounts (MMP).
func (r *run) save() int {
	if err := mountdata.Write(r.device, r.data); err != nil {
		r.complain("%s\n", err)
		r.fatal("failed to write local files")
		return r.exit(eNoDev)
	}
	if r.failover {
		if output, err := exec.Command("tune2fs", "-O", "mmp", r.device).CombinedOutput(); err != nil {
			r.complain("Error enabling multi-mount protection\n%s\n", output)
			return r.exit(eNoDev)
		}
	}
	return 0
}

// mounted searches for the device in the mount table.
func mounted(device string) bool {
	resolved, err := filepath.EvalSymlinks(device)
	if err != nil {
		return false
	}
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(table)) {
		if source, _, _ := strings.Cut(line, " "); source == device || source == resolved {
			return true
		}
	}
	return false
}

// format makes the ext4 by mke2fs, through a shell like the real program. An image in a file is treated as a disk.
func (r *run) format() int {
	file, err := os.Open(r.device)
	if err != nil {
		r.complain("%s: cannot open %s: %s\n", r.name, r.device, err)
		return eNoDev
	}
	size, err := file.Seek(0, io.SeekEnd)
	if file.Close() != nil || err != nil {
		return eNoDev
	}
	blockSize := int64(4096)
	if _, after, has := strings.Cut(r.mke2fs, "-b"); has {
		if blockSize = leadingNumber(after); blockSize < 1024 || blockSize > 65536 {
			r.complain("%s: blocksize %d not in 1024-65536 bytes, normally 4096 bytes\n", r.name, blockSize)
			return eInval
		}
	}
	r.say("device size = %dMB\n", size>>20)
	if size>>10 < 32384 {
		r.complain("%s: size of filesystem must be larger than 32MB, but is set to %dKB\n", r.name, size>>10)
		return eInval
	}
	options, code := r.options(size>>10, blockSize>>10)
	if code != 0 {
		return code
	}
	r.say("formatting backing filesystem ldiskfs on %s\n\ttarget name   %s\n\tkilobytes     %d\n\toptions       %s\n",
		r.device, r.data.Name, size>>10, options)
	command := fmt.Sprintf("mke2fs -j -b %d -L %s %s %s %dk", blockSize, r.data.Name, options, r.device, size>>10)
	r.say("mkfs_cmd = %s\n", command)
	// Only Whamcloud's e2fsprogs support the feature dirdata. With mmp, debugfs waits before it writes, so mmp is set last (save).
	output, err := exec.Command("sh", "-c", strings.NewReplacer(",dirdata", "", ",mmp", "").Replace(command)).CombinedOutput()
	if err != nil {
		for line := range strings.Lines(string(output)) {
			r.say("   %s", line)
		}
		r.fatal("Unable to build fs %s (%d)", r.device, 256)
		return ePerm
	}
	return 0
}

// leadingNumber parses a number like strtol(3), optionally followed by K.
func leadingNumber(text string) int64 {
	text = strings.TrimLeft(text, " ")
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err != nil {
		return 0
	}
	if strings.HasPrefix(strings.ToLower(text[digits:]), "k") {
		n *= 1024
	}
	return n
}

// options returns the options of mke2fs: the user's, and the added ones. The added ones are determined by a search in the user's text.
func (r *run) options(kilobytes, blockKilobytes int64) (string, int) {
	all := r.mke2fs
	has := func(option string) bool { return strings.Contains(r.mke2fs, option) }
	isMDT, isOST := r.data.Flags&mountdata.MDT != 0, r.data.Flags&mountdata.OST != 0
	if !has("-J") && kilobytes > 1<<20 && (isMDT || isOST) {
		most := int64(1024)
		if isMDT {
			most = 4096
		}
		all += fmt.Sprintf(" -J size=%d", min(kilobytes*4/(1024*100), most))
	}
	inodeSize := map[bool]int64{true: 1024, false: 512}[isMDT]
	if !has("-I") && (isMDT || isOST) {
		all += fmt.Sprintf(" -I %d", inodeSize)
	}
	if ratio := r.bytesPerInode(kilobytes, inodeSize); ratio > 0 && !has("-i") && !has("-N") {
		all += fmt.Sprintf(" -i %d", ratio)
	}
	all += " -q"
	for _, once := range []string{"-O", "-E"} {
		if strings.Count(r.mke2fs, once) > 1 {
			r.complain("%s: don't specify multiple %s options\n", r.name, once)
			return "", eInval
		}
	}
	all = extend(all, "-O", r.features(isMDT))
	if isOST && !has("-G") {
		all += fmt.Sprintf(" -G %d", 1024/blockKilobytes)
	}
	extended := []string{"lazy_journal_init", `lazy_itable_init="0"`, "packed_meta_blocks"}
	if isOST && kilobytes > 100<<10 && !has("meta_bg") {
		extended = append([]string{fmt.Sprintf("resize=%q", strconv.FormatInt(1<<32-(blockKilobytes*32)*(blockKilobytes*8192), 10))}, extended...)
	}
	return extend(all, "-E", extended) + " -F", 0
}

func (r *run) bytesPerInode(kilobytes, inodeSize int64) int64 {
	switch {
	case r.data.Flags&mountdata.MDT != 0:
		return inodeSize + 1536
	case r.data.Flags&mountdata.OST == 0:
		return 0
	case kilobytes > 16<<30:
		return 1 << 20
	case kilobytes > 4<<30:
		return 512 << 10
	case kilobytes > 1<<30:
		return 256 << 10
	case kilobytes > 10<<20:
		return 69905
	default:
		return 0
	}
}

func (r *run) features(isMDT bool) []string {
	all := []string{"uninit_bg", "extents"}
	if isMDT {
		all = append(all, "dirdata")
	}
	if r.failover {
		all = append(all, "mmp")
	}
	all = append(all, "dir_nlink", "quota", "project", "huge_file")
	if isMDT {
		all = append(all, "ea_inode")
	}
	return append(all, "large_dir", "^fast_commit", "flex_bg")
}

// extend moves an option to the end of the others, and adds the missing parts of its argument.
func extend(options, name string, more []string) string {
	before, after, has := strings.Cut(options, name)
	if !has {
		return options + " " + name + " " + strings.Join(more, ",")
	}
	argument, rest, _ := strings.Cut(strings.TrimLeft(after, " "), " ")
	for _, item := range more {
		key, _, _ := strings.Cut(item, "=")
		if !strings.Contains(argument, key) {
			argument += "," + item
		}
	}
	return strings.TrimRight(before, " ") + " " + rest + " " + name + " " + argument
}
