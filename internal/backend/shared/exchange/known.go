package exchange

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Known returns the recorded servers and targets for a Job, by role and number. A list of 24,000 is short, because the numbers are
// consecutive.
func Known(servers, targets map[v1alpha1.Role][]int32) *spec.Known {
	lists := func(of map[v1alpha1.Role][]int32) map[string]string {
		out := map[string]string{}
		for role, numbers := range of {
			out[string(role)] = rangesOf(numbers)
		}
		return out
	}
	return &spec.Known{Servers: lists(servers), Targets: lists(targets)}
}

// Said returns the recorded servers and targets in the form of a filesystem's answer. Targets do not name their server.
func Said(known *spec.Known) (backend.State, error) {
	var out backend.State
	if known == nil {
		return out, nil
	}
	for _, role := range backend.SortedKeys(known.Servers) {
		numbers, err := numbersOf(known.Servers[role])
		if err != nil {
			return out, err
		}
		for _, id := range numbers {
			out.Servers = append(out.Servers, backend.Server{Role: v1alpha1.Role(role), ID: id})
		}
	}
	for _, role := range backend.SortedKeys(known.Targets) {
		numbers, err := numbersOf(known.Targets[role])
		if err != nil {
			return out, err
		}
		for _, id := range numbers {
			out.Targets = append(out.Targets, backend.Target{Role: v1alpha1.Role(role), ID: id})
		}
	}
	return out, nil
}

// rangesOf formats numbers as a list such as "1-3,7".
func rangesOf(numbers []int32) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	var out []string
	for first := 0; first < len(sorted); {
		last := first
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		if first == last {
			out = append(out, fmt.Sprint(sorted[first]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", sorted[first], sorted[last]))
		}
		first = last + 1
	}
	return strings.Join(out, ",")
}

// mostNumbers is a limit above the size of any filesystem.
const mostNumbers = 1 << 20

// numbersOf parses such a list.
func numbersOf(list string) (out []int32, err error) {
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseInt(from, 10, 32)
		last, err2 := strconv.ParseInt(to, 10, 32)
		if err != nil || err2 != nil || first < 1 || last < first || last-first+int64(len(out)) > mostNumbers {
			return nil, fmt.Errorf("%q is no list of numbers such as 1-3,7", list)
		}
		for n := first; n <= last; n++ {
			out = append(out, int32(n)) // #nosec G115 -- both ends were read as numbers of 32 bits
		}
	}
	return out, nil
}
