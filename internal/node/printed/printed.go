// Package printed proves that the log of a container is complete. The kubelet rotates logs, and afterwards returns only the last part. A
// program whose output is parsed as a result therefore writes through a Writer. Its last line contains the number of bytes before it and
// their checksum, which the reader of the log verifies with Check.
package printed

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strconv"
	"sync"
)

// line is the last line of a log. Like all lines of the node binary, it begins with "parallelfs: ", so that no parser takes it for one of
// the tool.
const line = "parallelfs: printed %d bytes, crc32c %08x\n"

var (
	lastLine   = regexp.MustCompile(`^parallelfs: printed (0|[1-9]\d{0,17}) bytes, crc32c ([0-9a-f]{8})\r?$`)
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Writer counts the bytes that it passes on. It is safe for concurrent use.
type Writer struct {
	to    io.Writer
	mutex sync.Mutex
	count int64
	sum   uint32
	// within is true while the last line is incomplete.
	within bool
	err    error
}

// New returns a Writer that passes everything on to another one.
func New(to io.Writer) *Writer { return &Writer{to: to} }

// Write passes bytes on and counts those that were accepted.
func (w *Writer) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.write(p)
}

func (w *Writer) write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if n > 0 {
		w.count += int64(n)
		w.sum = crc32.Update(w.sum, castagnoli, p[:n])
		w.within = p[n-1] != '\n'
	}
	if err != nil {
		w.err = err
	}
	return n, err //nolint:wrapcheck // a writer's error is that of the writer behind it
}

// Close completes an unfinished line and prints the last line. It returns an error if anything could not be printed.
func (w *Writer) Close() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.within {
		_, _ = w.write([]byte("\n")) // the error is also in w.err
	}
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.to, line, w.count, w.sum)
	}
	if w.err != nil {
		return fmt.Errorf("can't print the output: %w", w.err)
	}
	return nil
}

// Log returns the output of a Writer for a complete output.
func Log(output []byte) []byte {
	var out bytes.Buffer
	w := New(&out)
	_, _ = w.Write(output) // a Buffer accepts everything
	_ = w.Close()
	return out.Bytes()
}

// ErrNoLastLine is returned for a log without the last line of a Writer.
var ErrNoLastLine = errors.New("ended, but its output was read without its last line (parallelfs: printed N bytes), so it is unknown whether it is whole; " +
	"run it again, and look at the kubelet's log when it happens again")

// LastLine is the length of the last line of a log, 0 when it is none of a Writer. The end of the log is enough.
func LastLine(end []byte) int {
	start := bytes.LastIndexByte(bytes.TrimSuffix(end, []byte("\n")), '\n') + 1
	if !lastLine.Match(bytes.TrimSuffix(end[start:], []byte("\n"))) {
		return 0
	}
	return len(end) - start
}

// Check returns the output without its last line. It returns an error, which is the rest of a sentence about the program, unless the log
// is whole.
func Check(log []byte) ([]byte, error) {
	text := bytes.TrimSuffix(log, []byte("\n"))
	start := bytes.LastIndexByte(text, '\n') + 1
	match := lastLine.FindSubmatch(text[start:])
	if match == nil {
		return nil, ErrNoLastLine
	}
	output := log[:start]
	count, err := strconv.ParseInt(string(match[1]), 10, 64)
	if err != nil {
		return nil, ErrNoLastLine
	}
	switch left := int64(len(output)); {
	case left < count:
		return nil, fmt.Errorf("printed %d bytes, and %d of %d are left: the kubelet has rotated the log; have the program print less, "+
			"or raise containerLogMaxSize (usually 10Mi) in the kubelets' configuration", count, left, count)
	case left > count:
		return nil, fmt.Errorf("printed %d bytes, and its log has %d: something else wrote into it; run it again", count, left)
	case fmt.Sprintf("%08x", crc32.Checksum(output, castagnoli)) != string(match[2]):
		return nil, fmt.Errorf("printed %d bytes whose checksum (crc32c %s) is not that of its log: the log is damaged; run it again", count, match[2])
	}
	return output, nil
}
