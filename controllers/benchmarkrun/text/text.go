// Package text formats texts for the status of a run.
package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Quoted joins a command line, with quotation marks around arguments that contain blanks.
func Quoted(argv []string) string {
	words := make([]string, 0, len(argv))
	for _, word := range argv {
		if word == "" || strings.ContainsAny(word, " \t\n\"'") {
			word = strconv.Quote(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// ShortDuration formats a duration with its two largest units: "1h12m", "12m", "45s".
func ShortDuration(d time.Duration) string {
	if d = d.Round(time.Second); d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	if d = d.Round(time.Minute); d < time.Hour {
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}

// LastLines returns the last lines of an output that are not blank, in at most so many bytes.
func LastLines(output []byte, lines, most int) string {
	var kept []string
	for line := range strings.Lines(strings.ToValidUTF8(string(output[max(0, len(output)-16*most):]), "?")) {
		if line = strings.TrimRight(line, " \r\n\t"); line != "" {
			kept = append(kept, strings.ReplaceAll(line, "\x00", ""))
		}
	}
	kept = kept[max(0, len(kept)-lines):]
	text := strings.Join(kept, "\n")
	for len(text) > most {
		if len(kept) == 1 {
			return v1alpha1.Cut(text, most)
		}
		kept = slices.Delete(kept, 0, 1)
		text = strings.Join(kept, "\n")
	}
	return text
}

// SentenceList formats words as "a, b and c".
func SentenceList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
