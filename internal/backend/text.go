package backend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// SortedKeys returns the keys of a map in order, so that everything made from the map is the same each time.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Ratio formats how many there are of how many there should be, such as "3/4".
func Ratio(have, want int) string { return fmt.Sprintf("%d/%d", have, want) }

// List joins at most three items, limited to the length that a message of 400 characters can hold, and counts the rest. The first item,
// which may say what to do, is never cut.
func List(items []string) string {
	const most, mostOfAll = 3, 300
	var out string
	for i, item := range items {
		if i > 0 && (i == most || utf8.RuneCountInString(out+", "+item) > mostOfAll) {
			return out + fmt.Sprintf(" and %d more", len(items)-i)
		}
		if i > 0 {
			out += ", "
		}
		out += item
	}
	return out
}

// Shorten cuts an agent's message to a length that fits beside others in a message of 1024 characters.
func Shorten(message string) string {
	const most = 500
	if runes := []rune(message); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return message
}

// Coarse rounds used space down to a thousandth of the capacity, so that a busy filesystem does not rewrite the status in every pass. The
// probe's metrics are exact.
func Coarse(used, capacity int64) int64 {
	if step := capacity / 1000; step > 0 {
		return used - used%step
	}
	return used
}
