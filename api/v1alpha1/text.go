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

// Count writes a number with its words in the singular or plural, such as "1 disk is" or "3 disks are".
func Count[N ~int | ~int32 | ~int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// CountOf writes for how many of all things something holds: "no target is", "the target is", "1 of 3 targets is" or "all 3 targets are".
func CountOf(n, all int, thing, things, is, are string) string {
	switch {
	case n == 0:
		return "no " + thing + " " + is
	case all == 1:
		return "the " + thing + " " + is
	case n == all:
		return fmt.Sprintf("all %d %s %s", all, things, are)
	case n == 1:
		return fmt.Sprintf("1 of %d %s %s", all, things, is)
	default:
		return fmt.Sprintf("%d of %d %s %s", n, all, things, are)
	}
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

// String writes the servers of one kind, such as "4 Storage (ssd) 8.3.1".
func (c ServerCount) String() string {
	text := fmt.Sprintf("%d %s", c.Count, c.Role)
	if c.StoragePool != "" {
		text += fmt.Sprintf(" (%s)", c.StoragePool)
	}
	if c.Version == "" {
		return text + " of unknown version"
	}
	return text + " " + c.Version
}

// String writes the targets of one pool, such as "48 of ssd with 12.5TiB".
func (c TargetCount) String() string {
	text := fmt.Sprintf("%d of %s", c.Count, c.StoragePool)
	if c.CapacityBytes > 0 {
		text += " with " + Bytes(c.CapacityBytes)
	}
	return text
}

// Texts are the variables of a FileSystemNode as plain texts; nil for none.
func Texts(variables map[string]VariableValue) map[string]string {
	if variables == nil {
		return nil
	}
	out := make(map[string]string, len(variables))
	for name, value := range variables {
		out[name] = string(value)
	}
	return out
}
