// Package environment puts the values of environment variables into texts, for what is known only on the node.
package environment

import (
	"fmt"
	"regexp"
)

// reference is the form that Kubernetes uses in a container's command.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// Lookup says the value of a variable, and whether it is set; os.LookupEnv is one.
type Lookup func(name string) (value string, set bool)

// Expand replaces every $(NAME) in text by the value of NAME. The error names the first variable that is not set.
func Expand(text string, lookup Lookup) (string, error) {
	var missing string
	expanded := reference.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		value, set := lookup(name)
		if !set && missing == "" {
			missing = name
		}
		return value
	})
	if missing != "" {
		return "", fmt.Errorf("the environment variable %s is not set; set it in the container", missing)
	}
	return expanded, nil
}

// ExpandAll expands every text.
func ExpandAll(texts []string, lookup Lookup) ([]string, error) {
	expanded := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if expanded[i], err = Expand(text, lookup); err != nil {
			return nil, err
		}
	}
	return expanded, nil
}
