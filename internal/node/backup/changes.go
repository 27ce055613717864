package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"parallelfs.dev/operator/internal/backend"
)

// mostLine is how much of a line is looked at to tell which change it has, in bytes.
const mostLine = 64 << 10

// Shorten takes out of the logs of changes in a directory what stands before the first change that the saved metadata beside them lacks; a
// log without such a change goes. No program applies what stands there, but one that meets a hole in it may refuse all. It takes the last
// line out as well where that has no end: a daemon that writes the log, or was killed, has not written all of it, and a program that reads
// it refuses all. A link becomes a file, which does not change any more: what it leads to stays as it is.
func Shorten(directory string, changes func([]backend.CopiedFile) backend.ChangeLogs) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("can't look for logs of changes: %w", err)
	}
	var found []backend.CopiedFile
	for _, e := range entries {
		path := filepath.Join(directory, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("can't look for logs of changes: %w", err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		file, err := copied(path)
		if err != nil {
			return fmt.Errorf("can't read %s: %w", e.Name(), err)
		}
		found = append(found, file)
	}
	logs := changes(found)
	for _, name := range logs.Names {
		if err := shorten(filepath.Join(directory, name), logs.Needed); err != nil {
			return fmt.Errorf("can't shorten the log of changes %s: %w", name, err)
		}
	}
	return nil
}

func shorten(path string, needed func(line []byte) bool) (err error) {
	own, err := os.Lstat(path)
	if err != nil {
		return err
	}
	log, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	end, err := lastEnd(log, info.Size())
	if err != nil {
		return err
	}
	begin, some := int64(0), true
	if needed != nil {
		begin, some, err = firstNeeded(io.NewSectionReader(log, 0, end), needed)
	}
	switch {
	case err != nil:
		return err
	case !some:
		return os.Remove(path)
	case begin == 0 && end == info.Size() && own.Mode().IsRegular():
		return nil
	}
	short := path + ".short"
	out, err := os.OpenFile(short, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, io.NewSectionReader(log, begin, end-begin)); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Close(), os.Rename(short, path))
}

// lastEnd is where the last line ends that has an end, of a log that is so long.
func lastEnd(log io.ReaderAt, size int64) (int64, error) {
	part := make([]byte, mostLine)
	for size > 0 {
		from := max(0, size-mostLine)
		n, err := log.ReadAt(part[:size-from], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if at := bytes.LastIndexByte(part[:n], '\n'); at >= 0 {
			return from + int64(at) + 1, nil
		}
		size = from
	}
	return 0, nil
}

// firstNeeded is where the first line begins that is needed.
func firstNeeded(log io.Reader, needed func(line []byte) bool) (begin int64, some bool, err error) {
	lines := bufio.NewReaderSize(log, mostLine)
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 && needed(line) {
			return begin, true, nil
		}
		begin += int64(len(line))
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a long line
			line, err = lines.ReadSlice('\n')
			begin += int64(len(line))
		}
		if errors.Is(err, io.EOF) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, err
		}
	}
}
