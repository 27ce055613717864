package procfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

const (
	// longestLine bounds a line of mountinfo that is read completely. The mountinfo package's scanner accepts no longer ones.
	longestLine = 60 << 10
	// longestKept bounds the part of a longer line that is kept. The fields before the filesystem's options need less: a path has at most
	// 4,096 bytes (PATH_MAX), each written as at most four.
	longestKept = 256 << 10
	// longestTable bounds a table: 100,000 mounts (sysctl fs.mount-max) of 1 KiB.
	longestTable = 100 << 20
)

// ErrTooLong means that a mount table exceeds the limit, which is 100 MiB if no other one was given.
var ErrTooLong = errors.New("the table of mounts is too long")

// EachMount calls each for every mount in a table, in its order. The table is for example PROCESS/mountinfo (proc_pid_mountinfo(5)). It
// holds one line in memory. For a line over 60 KiB, it passes on only those filesystem options that name a device.
func EachMount(path string, each func(*mountinfo.Info)) error {
	table, err := os.Open(path)
	if err != nil {
		return err
	}
	defer table.Close()
	return EachMountIn(table, each)
}

// EachMountIn calls each for every mount in a table, as EachMount does.
func EachMountIn(table io.Reader, each func(*mountinfo.Info)) error {
	left := int64(longestTable)
	return eachMount(table, &left, each)
}

// EachMountWithin is EachMount with a limit in bytes for several tables. It subtracts the length of this one.
func EachMountWithin(path string, left *int64, each func(*mountinfo.Info)) error {
	if *left <= 0 {
		return ErrTooLong
	}
	table, err := os.Open(path)
	if err != nil {
		return err
	}
	defer table.Close()
	return eachMount(table, left, each)
}

func eachMount(table io.Reader, left *int64, each func(*mountinfo.Info)) error {
	limited := &io.LimitedReader{R: table, N: *left}
	defer func() { *left = limited.N }()
	lines := &shortLines{lines: bufio.NewReaderSize(limited, longestLine)}
	_, err := mountinfo.GetMountsFromReader(lines, func(m *mountinfo.Info) (skip, stop bool) {
		each(m)
		return true, false
	})
	if limited.N == 0 {
		return ErrTooLong // the last line is cut
	}
	return err
}

// MountsAt lists the mounts at a mount point of a table. Later ones are on top of earlier ones.
func MountsAt(path, mountpoint string) ([]*mountinfo.Info, error) {
	var found []*mountinfo.Info
	err := EachMount(path, func(m *mountinfo.Info) {
		if m.Mountpoint == mountpoint {
			found = append(found, m)
		}
	})
	return found, err
}

// shortLines reads lines, and shortens those that are too long for the mountinfo package's scanner.
type shortLines struct {
	lines *bufio.Reader
	rest  []byte
}

func (s *shortLines) Read(into []byte) (int, error) {
	for len(s.rest) == 0 {
		line, err := s.lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if s.rest, err = s.shorten(line); err != nil {
				return 0, err
			}
		case len(line) > 0:
			s.rest = line
		default:
			return 0, err
		}
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// shorten reads a line to its end and returns it without most of its filesystem options.
func (s *shortLines) shorten(beginning []byte) ([]byte, error) {
	line := bytes.Clone(beginning)
	for {
		more, err := s.lines.ReadSlice('\n')
		if room := longestKept - len(line); room > 0 {
			line = append(line, more[:min(room, len(more))]...)
		}
		if err == nil || errors.Is(err, io.EOF) {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	fields := strings.Fields(string(line))
	// The separator is followed by the type, the source and the options of the filesystem.
	const behind = 3
	for i, field := range fields {
		if field != "-" || i+behind >= len(fields) {
			continue
		}
		kept := []string{"rw"}
		for option := range strings.SplitSeq(fields[i+behind], ",") {
			if strings.Contains(option, "=/dev/") {
				kept = append(kept, option)
			}
		}
		fields[i+behind] = strings.Join(kept, ",")
		if short := strings.Join(fields[:i+behind+1], " ") + "\n"; len(short) < longestLine {
			return []byte(short), nil
		}
	}
	return nil, fmt.Errorf("a line of %d KiB or more can't be shortened; it begins with %.80q", longestLine>>10, line)
}

// OthersUsers is true if a process is in another user namespace than the node's first process. Its user chose the types and sources of its
// mounts (user_namespaces(7)). It is false if a namespace can't be read.
func OthersUsers(proc, process string) bool {
	first, err := os.Readlink(filepath.Join(proc, "1", "ns", "user"))
	if err != nil {
		return false
	}
	own, err := os.Readlink(filepath.Join(process, "ns", "user"))
	return err == nil && own != first
}

// IsOfUser is true for a FUSE mount by a user other than root. Its type and source are the user's claims. The option user_id is written by
// the kernel itself (fuse(4)).
func IsOfUser(m *mountinfo.Info) bool {
	if m.FSType != "fuse" && m.FSType != "fuseblk" && !strings.HasPrefix(m.FSType, "fuse.") {
		return false
	}
	for option := range strings.SplitSeq(m.VFSOptions, ",") {
		if user, is := strings.CutPrefix(option, "user_id="); is && user != "0" {
			return true
		}
	}
	return false
}

// IsRemote is true for filesystem types whose files are on other nodes or behind a program, so that even stat(2) may block forever.
func IsRemote(kind string) bool {
	kind, _, _ = strings.Cut(kind, ".")
	switch kind {
	case "fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "beegfs", "9p", "virtiofs", "afs", "gpfs", "orangefs",
		"pvfs2", "wekafs", "ocfs2", "gfs2", "autofs":
		return true
	}
	return false
}
