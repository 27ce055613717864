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

// mostLine limits the part of a line that is parsed for the number of its change, in bytes.
const mostLine = 64 << 10

// Shorten removes from the change logs in a directory all lines before the first change that the metadata beside them lacks. A log without
// such a change is removed. No program applies those lines, but a program that meets a gap in them may refuse the whole log. An incomplete
// last line is removed as well. The daemon is still writing it or was killed, and a program that reads it refuses the whole log. A symbolic
// link becomes a regular file, so that the file that it leads to stays as it is.
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

// lastEnd returns the end of the last complete line of a log with this size.
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

// firstNeeded returns the offset of the first needed line.
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
