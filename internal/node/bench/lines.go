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
	// blockLimit is PIPE_BUF (pipe(7)), up to which a write is not split, and the size that Open MPI reads and passes on at once
	// (ORTE_IOF_BASE_MSG_MAX in 4, PRTE_IOF_BASE_MSG_MAX in 5).
	blockLimit = 4096
	// lineLimit leaves room for the prefix.
	lineLimit = 4000
)

// lines writes what one of several processes prints so that it can be told from that of the others: each line with a prefix, whole
// lines in blocks of blockLimit at most, each in one write. It can be written to at the same time.
type lines struct {
	prefix string
	to     io.Writer

	mutex   sync.Mutex
	partial []byte
	// skipping is true in the rest of a line that was too long, tooLong when there was one.
	skipping, tooLong bool
}

// Write keeps the beginning of a line until its end comes.
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

// Close ends the last line, and returns an error when a line was too long.
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

// end puts the line at the end of the block, which is written before when it is full.
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

// oneByOne writes to a pipe when its reader has read all before, so that the reader gets what was written at once in one piece.
// mpirun reads what is there, and passes it on between the pieces of other processes.
type oneByOne struct {
	pipe  *os.File
	mutex sync.Mutex
}

// drained is the pause between two looks whether the reader has read.
const drained = 200 * time.Microsecond

// pieces makes w write in pieces when it is a pipe.
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

// Write waits without end: what mpirun does not read will never be known, and the launcher's time is limited.
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
