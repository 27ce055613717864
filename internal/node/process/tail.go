package process

import (
	"bytes"
	"regexp"
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

// escapes are what programs color a terminal with (console_codes(4)), which some do without a terminal too.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?]*[A-Za-z]|[()][0-9A-Za-z])`)

// Lines returns the last lines, at most n, without empty ones and without colors.
func (t *Tail) Lines(n int) string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var lines []string
	for line := range bytes.Lines(t.kept) {
		if text := strings.TrimSpace(escapes.ReplaceAllString(string(line), "")); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
