package benchmarks

import (
	"slices"
	"strings"
	"unicode"

	"parallelfs.dev/operator/api/v1alpha1"
)

// CheckArgs refuses the first of a tool's args that sets an option of owned, which maps an option, such as "-d" or "--posix.odirect", to
// who sets it, such as "mdtest.items" or "the operator". field is where the args stand, such as spec.mdtest.args. Short options are
// known in every form that getopt and its like take: "-i 3", "-i3", "-i=3" and "-Fi3"; long ones with and without "=".
func CheckArgs(field string, args []v1alpha1.BenchmarkArgument, owned map[string]string) error {
	for i, arg := range args {
		for _, option := range options(string(arg)) {
			if owner, found := owned[option]; found {
				return InvalidPoint("%s[%d]: %q sets %s, which is set by %s; remove it", field, i, arg, option, owner)
			}
		}
	}
	return nil
}

// options are those that an argument may set: none, when it is a value.
func options(arg string) []string {
	switch {
	case strings.HasPrefix(arg, "--"):
		name, _, _ := strings.Cut(arg, "=")
		return []string{name}
	case !strings.HasPrefix(arg, "-"):
		return nil
	}
	var out []string
	for _, letter := range arg[1:] {
		if !unicode.IsLetter(letter) {
			break
		}
		out = append(out, "-"+string(letter))
	}
	return slices.Compact(out)
}
