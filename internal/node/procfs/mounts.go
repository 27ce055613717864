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
	// longestLine bounds a line of mountinfo that is read whole. The scanner of the mountinfo package takes no longer ones.
	longestLine = 60 << 10
	// longestKept bounds what is kept of a longer line. Its fields before the options of the filesystem need less: a path has at most
	// 4,096 bytes (PATH_MAX), and each may be written as four.
	longestKept = 256 << 10
	// longestTable bounds a table: 100,000 mounts (sysctl fs.mount-max) of 1 KiB.
	longestTable = 100 << 20
)

// ErrTooLong means that a table of mounts has more bytes than are read.
var ErrTooLong = errors.New("the table of mounts is longer than 100 MiB")

// EachMount calls each for every mount of a table, such as PROCESS/mountinfo (proc_pid_mountinfo(5)), in its order. It keeps one line in
// memory. Of the options of a filesystem in a line over 60 KiB, it passes on those that name a device.
func EachMount(path string, each func(*mountinfo.Info)) error {
	table, err := os.Open(path)
	if err != nil {
		return err
	}
	defer table.Close()
	limited := &io.LimitedReader{R: table, N: longestTable}
	lines := &shortLines{lines: bufio.NewReaderSize(limited, longestLine)}
	_, err = mountinfo.GetMountsFromReader(lines, func(m *mountinfo.Info) (skip, stop bool) {
		each(m)
		return true, false
	})
	if err == nil && limited.N == 0 {
		return ErrTooLong
	}
	return err
}

// shortLines reads lines, and shortens those that are too long for the scanner of the mountinfo package.
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

// shorten reads a line to its end and returns it without most of the options of its filesystem.
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
	// Behind the separator stand the type, the source and the options of the filesystem.
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

// OthersUsers is true when a process is in another user namespace than the first process of the node. Its user chose the types and
// sources of its mounts (user_namespaces(7)). Where a namespace can't be read, it is false.
func OthersUsers(proc, process string) bool {
	first, err := os.Readlink(filepath.Join(proc, "1", "ns", "user"))
	if err != nil {
		return false
	}
	own, err := os.Readlink(filepath.Join(process, "ns", "user"))
	return err == nil && own != first
}

// IsOfUser is true for a mount that a user of the node who is not root made by FUSE: its type and its source are that user's words. The
// kernel itself writes the option user_id (fuse(4)).
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

// IsRemote is true for a type of filesystem whose files are on other nodes or behind a program, so that even stat(2) may wait without end.
func IsRemote(kind string) bool {
	kind, _, _ = strings.Cut(kind, ".")
	switch kind {
	case "fuse", "fuseblk", "nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "beegfs", "9p", "virtiofs", "afs", "gpfs", "orangefs",
		"pvfs2", "wekafs", "ocfs2", "gfs2", "autofs":
		return true
	}
	return false
}
