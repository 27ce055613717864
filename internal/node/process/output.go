package process

import (
	"bytes"
	"fmt"
)

// mostOutput bounds the output of a program in bytes. The largest answers about a disk have a few hundred KiB.
const mostOutput = 16 << 20

// Output keeps the output of a program up to a limit, and drops the rest. It never fails, because a failed write would end the program,
// which may be changing a disk.
type Output struct {
	// Most is the limit in bytes, by default 16 MiB.
	Most    int
	kept    bytes.Buffer
	dropped bool
}

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	fits := min(len(p), o.most()-o.kept.Len())
	o.dropped = o.dropped || fits < len(p)
	o.kept.Write(p[:fits])
	return len(p), nil
}

func (o *Output) most() int {
	if o.Most == 0 {
		return mostOutput
	}
	return o.Most
}

// Err is an error if the program has printed more than the limit. The part that was kept would be misleading.
func (o *Output) Err() error {
	if !o.dropped {
		return nil
	}
	return fmt.Errorf("it has printed more than %d bytes", o.most())
}

// Bytes returns what was kept.
func (o *Output) Bytes() []byte { return o.kept.Bytes() }

// String returns what was kept.
func (o *Output) String() string { return o.kept.String() }
