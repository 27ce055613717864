package lustre

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/internal/backend"
)

// lines are the lines of releases, oldest first.
var lines = []string{"2.15", "2.16", "2.17"}

// lineOf is the line that a version belongs to: its first two numbers.
func lineOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Lines returns the lines whose commands the operator supports.
func (Backend) Lines() []string { return slices.Clone(lines) }

// UpgradePath is empty within a line: modules and tools are the nodes' own, and the operator only compares them with the expected version.
// Another line changes the format of the disks, which was never tested with the operator.
func (Backend) UpgradePath(from, to string) string {
	if lineOf(from) == lineOf(to) && slices.Contains(lines, lineOf(to)) {
		return ""
	}
	return fmt.Sprintf("the operator does not take a Lustre from %s to %s yet, because modules and tools are those of the nodes; set spec.version to a %s.x again",
		from, to, lineOf(from))
}

// UpgradeSkew is empty: within a line, any server and client work together.
func (Backend) UpgradeSkew(backend.Input, string) string { return "" }
