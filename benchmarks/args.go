package benchmarks

import (
	"slices"
	"strings"
	"unicode"

	"parallelfs.dev/operator/api/v1alpha1"
)

// CheckArgs refuses a tool's args if one sets an option in owned. owned maps an option, such as "-d" or "--posix.odirect", to its owner,
// such as "mdtest.items" or "the operator". field is the field of the args, such as spec.mdtest.args. Short options are recognized in every
// form of getopt and similar parsers: "-i 3", "-i3", "-i=3" and "-Fi3"; long ones with and without "=".
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

// options returns the options that an argument may set. A value sets none.
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
