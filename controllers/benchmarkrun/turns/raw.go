package turns

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
)

// maxRaw is how much of a repetition's raw output is kept, in bytes before compression.
const maxRaw = 512 << 10

// maxDrop is how many bytes of the end can be taken away again.
const maxDrop = 1 << 10

// Raw is the raw output of a turn as it is written: its first and its last part, and how long it is. An output of any length takes less
// than 1 MiB.
type Raw struct {
	first, last []byte
	size        int
}

// Write takes more of the output. It takes everything.
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

// Len is the length of the whole output.
func (r *Raw) Len() int { return r.size }

// End is the last part of the output, of at most so many bytes and of 256 KiB.
func (r *Raw) End(most int) []byte {
	most = min(most, maxRaw/2)
	if len(r.last) < most {
		return slices.Concat(r.first[max(0, len(r.first)+len(r.last)-most):], r.last)
	}
	return r.last[len(r.last)-most:]
}

// Drop takes the last bytes away, which were written since the last Drop and are 1 KiB at most.
func (r *Raw) Drop(n int) {
	r.size -= n
	ofLast := min(n, len(r.last))
	r.last = r.last[:len(r.last)-ofLast]
	r.first = r.first[:len(r.first)-(n-ofLast)]
}

// cut keeps the first and the last part of an output that is longer than limit bytes, which are at most maxRaw.
func (r *Raw) cut(limit int) []byte {
	half := limit / 2
	if r.size > limit {
		mark := fmt.Appendf(nil, "\n[... %d bytes were left out here ...]\n", r.size-limit)
		return slices.Concat(r.first[:min(half, len(r.first))], mark, r.End(half))
	}
	return slices.Concat(r.first, r.last)
}

// compress packs a text with a writer that is used again: a new one takes 1 MiB.
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
