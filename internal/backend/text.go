package backend

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SortedKeys are the keys of a map in order: what is made from a map must be the same each time.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Ratio is how many there are of how many there should be, such as "3/4".
func Ratio(have, want int) string { return fmt.Sprintf("%d/%d", have, want) }

// List joins at most three items and counts the rest, so that a message stays readable on a large cluster.
func List(items []string) string {
	const most = 3
	if len(items) > most {
		return strings.Join(items[:most], ", ") + fmt.Sprintf(" and %d more", len(items)-most)
	}
	return strings.Join(items, ", ")
}

// Shorten cuts what an agent said to what fits beside others in a message of 1024 characters.
func Shorten(said string) string {
	const most = 500
	if runes := []rune(said); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return said
}

// Coarse rounds used space down to a thousandth of the capacity, so that a busy filesystem does not rewrite the status
// at every look. The probe's metrics are exact.
func Coarse(used, capacity int64) int64 {
	if step := capacity / 1000; step > 0 {
		return used - used%step
	}
	return used
}
