package process

import (
	"bytes"
	"strings"
	"sync"
)

// Tail is a writer that remembers the end of what was written, for a message that says why something failed.
type Tail struct {
	mutex sync.Mutex
	kept  []byte
}

// tailBytes is less than the 4096 bytes that Kubernetes keeps of a termination message.
const tailBytes = 2048

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - tailBytes; extra > 0 {
		t.kept = append([]byte(nil), t.kept[extra:]...)
	}
	return len(p), nil
}

// Lines returns the last lines, at most n, without empty ones.
func (t *Tail) Lines(n int) string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var lines []string
	for line := range bytes.Lines(t.kept) {
		if text := strings.TrimSpace(string(line)); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
