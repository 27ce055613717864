package bench

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// blockLimit is PIPE_BUF (pipe(7)), the largest write that is not split. It is also the size of Open MPI's reads (ORTE_IOF_BASE_MSG_MAX in
	// version 4, PRTE_IOF_BASE_MSG_MAX in 5).
	blockLimit = 4096
	// lineLimit leaves room for the prefix.
	lineLimit = 4000
)

// lines prefixes each output line of one of several processes, so that the lines of all processes can be separated. It writes whole lines
// in blocks of at most blockLimit, each in one write. It is safe for concurrent writes.
type lines struct {
	prefix string
	to     io.Writer

	mutex   sync.Mutex
	partial []byte
	// skipping is true in the rest of an overlong line, and tooLong if there was one.
	skipping, tooLong bool
}

// Write buffers an incomplete line until its end arrives.
func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var block []byte
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		l.add(line)
		if !whole {
			break
		}
		var err error
		if block, err = l.end(block); err != nil {
			return 0, err
		}
	}
	return len(p), l.write(block)
}

// Close ends the last line, and returns an error if a line was too long.
func (l *lines) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.partial) > 0 || l.skipping {
		block, err := l.end(nil)
		if err != nil {
			return err
		}
		if err := l.write(block); err != nil {
			return err
		}
	}
	if l.tooLong {
		return fmt.Errorf("it printed a line of more than %d bytes, which can't be kept apart from those of other processes; "+
			"have it print shorter lines, or run it in one process", lineLimit)
	}
	return nil
}

func (l *lines) add(text []byte) {
	switch {
	case l.skipping:
	case len(l.partial)+len(text) > lineLimit:
		l.partial, l.skipping, l.tooLong = l.partial[:0], true, true
	default:
		l.partial = append(l.partial, text...)
	}
}

// end appends the line to the block. A full block is written first.
func (l *lines) end(block []byte) ([]byte, error) {
	if l.skipping {
		l.skipping = false
		return block, nil
	}
	if len(block)+len(l.prefix)+len(l.partial)+1 > blockLimit {
		if err := l.write(block); err != nil {
			return nil, err
		}
		block = block[:0]
	}
	block = append(append(append(block, l.prefix...), l.partial...), '\n')
	l.partial = l.partial[:0]
	return block, nil
}

func (l *lines) write(block []byte) error {
	if len(block) == 0 {
		return nil
	}
	_, err := l.to.Write(block)
	return err
}

// oneByOne writes to a pipe only after its reader has read everything before, so that the reader gets each write as one piece. mpirun reads
// all available bytes, and mixes them with the pieces of other processes.
type oneByOne struct {
	pipe  *os.File
	mutex sync.Mutex
}

// drained is the pause between two checks of whether the pipe is empty.
const drained = 200 * time.Microsecond

// pieces makes w write in separate pieces if it is a pipe.
func pieces(w io.Writer) io.Writer {
	file, is := w.(*os.File)
	if !is {
		return w
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return w
	}
	return &oneByOne{pipe: file}
}

// Write waits without a limit: output that mpirun does not read is lost, and the launcher's time is limited anyway.
func (o *oneByOne) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for {
		// FIONREAD (TIOCINQ) counts what is in a pipe from either end (pipe(7)).
		waiting, err := unix.IoctlGetInt(int(o.pipe.Fd()), unix.TIOCINQ)
		if err != nil || waiting == 0 {
			break
		}
		<-time.After(drained)
	}
	return o.pipe.Write(p)
}
