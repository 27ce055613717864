package process

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// Tail is a writer that keeps the end of its input, for a message about a failure.
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

// escapes matches the escape sequences for colors (console_codes(4)), which some programs print even without a terminal.
var escapes = regexp.MustCompile(`\x1b(\[[0-9;?]*[A-Za-z]|[()][0-9A-Za-z])`)

// Lines returns at most n of the last lines, without empty ones and without colors.
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
