// Package benchmarks is the seam between the operator and the tools that measure a filesystem. A tool is one folder
// that implements Tool, all of it pure: parameters in, a command line out; output in, numbers out.
package benchmarks

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Tool is one benchmark. Its methods are pure functions.
type Tool interface {
	// Name is the spec.tool that it serves, and the key of its image.
	Name() v1alpha1.BenchmarkTool

	// Parameters are the names that a sweep can vary and a derive can compute, with the kind of their values, and the values of
	// the spec (the point without a sweep) as strings.
	Parameters(spec *v1alpha1.BenchmarkRunSpec) []Parameter

	// Command is what runs one repetition of a point. An *InvalidPointError says which value can't be used.
	Command(spec *v1alpha1.BenchmarkRunSpec, point Point) (Command, error)

	// Parse turns the output of one repetition into samples, in a stable order. It returns an error, with the line where
	// there is one, for output that is cut off, of an aborted run, of another shape, or that lacks a test that the
	// point asked for; it never guesses a number.
	Parse(spec *v1alpha1.BenchmarkRunSpec, point Point, output []byte) ([]Sample, error)
}

// Parameter is a name that a sweep can vary.
type Parameter struct {
	Name v1alpha1.SweepName
	Kind ParameterKind
	// Value is that of the spec.
	Value string
}

// ParameterKind is the kind of a parameter's values.
type ParameterKind int

// The kinds of parameters.
const (
	// Count is a whole number of at least 1.
	Count ParameterKind = iota
	// Size is a whole number of kilobytes, or a number with k, m or g (powers of 1024).
	Size
)

// Point is one combination of parameters.
type Point struct {
	Index int
	// Parameters are all values that hold at this point, the unswept ones too.
	Parameters map[v1alpha1.SweepName]string
	// Varied names the swept and derived ones, in the order of the spec.
	Varied []v1alpha1.SweepName
}

// Command is what runs one repetition of a point.
type Command struct {
	// Argv is the tool with its arguments, run in the point's own directory. $(HOSTS_FILE) and $(LAUNCHER_IP) are
	// replaced when Distributed.
	Argv []string
	// Env is added to the tool's environment, NAME=value.
	Env []string
	// Distributed is true when the tool runs on Clients nodes, which a launcher reaches by ssh (an MPIJob).
	Distributed bool
	// Clients is the number of client nodes that take part; 0 means all that match.
	Clients int
	// Processes is the number of processes over all clients.
	Processes int
	// HostLine is one line of the host file of a distributed tool; $(HOST) and $(DIRECTORY) are replaced.
	HostLine string
}

// Sample is one number that a tool printed.
type Sample struct {
	// Name of what was measured, such as "randomRead".
	Name string `json:"name"`
	// Unit as the tool prints it.
	Unit string `json:"unit"`
	// Value in that unit.
	Value float64 `json:"value"`
}

// InvalidPointError says that a point can't be run as its parameters stand.
type InvalidPointError struct {
	Message string
}

// Error returns the message.
func (e *InvalidPointError) Error() string { return e.Message }

// InvalidPoint makes an InvalidPointError.
func InvalidPoint(format string, args ...any) *InvalidPointError {
	return &InvalidPointError{Message: fmt.Sprintf(format, args...)}
}
