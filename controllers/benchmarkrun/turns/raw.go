package turns

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
)

// maxRaw is how much of a repetition's raw output is stored, in bytes before compression.
const maxRaw = 512 << 10

// maxDrop is how many bytes at the end can be removed again.
const maxDrop = 1 << 10

// Raw is the raw output of a turn while it is written: its first and its last part, and its length. An output of any length takes less than
// 1 MiB.
type Raw struct {
	first, last []byte
	size        int
}

// Write appends to the output. It accepts everything.
func (r *Raw) Write(p []byte) (int, error) {
	r.size += len(p)
	n := min(len(p), maxRaw/2-len(r.first))
	r.first = append(r.first, p[:n]...)
	r.last = append(r.last, p[n:]...)
	if len(r.last) > maxRaw {
		r.last = append(r.last[:0], r.last[len(r.last)-maxRaw/2-maxDrop:]...)
	}
	return len(p), nil
}

// Len returns the length of the whole output.
func (r *Raw) Len() int { return r.size }

// End returns the last part of the output, of at most so many bytes and at most 256 KiB.
func (r *Raw) End(most int) []byte {
	most = min(most, maxRaw/2)
	if len(r.last) < most {
		return slices.Concat(r.first[max(0, len(r.first)+len(r.last)-most):], r.last)
	}
	return r.last[len(r.last)-most:]
}

// Drop removes the last bytes. They were written since the last Drop, and are at most 1 KiB.
func (r *Raw) Drop(n int) {
	r.size -= n
	ofLast := min(n, len(r.last))
	r.last = r.last[:len(r.last)-ofLast]
	r.first = r.first[:len(r.first)-(n-ofLast)]
}

// cut returns the first and the last part of an output that is longer than limit bytes. The limit is at most maxRaw.
func (r *Raw) cut(limit int) []byte {
	half := limit / 2
	if r.size > limit {
		mark := fmt.Appendf(nil, "\n[... %d bytes were left out here ...]\n", r.size-limit)
		return slices.Concat(r.first[:min(half, len(r.first))], mark, r.End(half))
	}
	return slices.Concat(r.first, r.last)
}

// compress compresses a text with a reused writer, because a new one takes 1 MiB.
func compress(w *gzip.Writer, text []byte) ([]byte, error) {
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("compress the raw output: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress the raw output: %w", err)
	}
	return out.Bytes(), nil
}
