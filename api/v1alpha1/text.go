package v1alpha1

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bytes writes a size in binary units with at most one decimal, such as "12.5TiB": the form of every size in a status that
// is for people.
func Bytes(n int64) string {
	const kibi, units = 1024, "KMGTPE"
	value, unit := float64(n), -1
	for value >= kibi && unit < len(units)-1 {
		value /= kibi
		unit++
	}
	if unit < 0 {
		return fmt.Sprintf("%dB", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + string(units[unit]) + "iB"
}

// Cut shortens a text to at most so many bytes, at the end of a rune: the fields of the API have bounds, and a program's
// output has none.
func Cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	end := most - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
