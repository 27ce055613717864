// Package benchmarks is the interface between the operator and the tools that measure a filesystem. A tool is one package that implements
// Tool as pure functions: parameters to command lines, and output to numbers.
package benchmarks

import (
	"fmt"
	"math"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Tool is one benchmark. Its methods are pure functions.
type Tool interface {
	// Name returns the spec.tool of this tool, which is also the key of its image.
	Name() v1alpha1.BenchmarkTool

	// Parameters returns the names that a sweep can vary and a derive can compute, with the kind of their values and the values of the spec
	// (the point without a sweep) as strings. processes, clients and storagePool are included if they have a meaning: Common returns them.
	Parameters(spec *v1alpha1.BenchmarkRunSpec) []Parameter

	// Plan returns the commands for one repetition of a point. An *InvalidPointError describes an unusable value.
	Plan(spec *v1alpha1.BenchmarkRunSpec, point Point) (Plan, error)

	// Parse converts the output of one step of one repetition into a report with samples in a stable order. It returns an error, with the line
	// if there is one, for output that is cut off, from an aborted run, or in another format, or that lacks a test of the step. It never
	// guesses a number. A point without parameters is for an output that was saved elsewhere. In that case nothing is compared with the point,
	// provided that the tool can parse it so.
	Parse(spec *v1alpha1.BenchmarkRunSpec, point Point, step int, output []byte) (Report, error)
}

// Parameter is a name that a sweep can vary.
type Parameter struct {
	Name v1alpha1.SweepName
	Kind ParameterKind
	// Value is the value in the spec, or empty if the spec leaves it open.
	Value string
	// Words lists the values of a Word; if it is empty, any word is valid.
	Words []string
}

// ParameterKind is the kind of a parameter's values.
type ParameterKind int

// The kinds of parameters.
const (
	// Count is a whole number of at least 1.
	Count ParameterKind = iota
	// Number is a whole number of at least 0.
	Number
	// Size is a whole number of kilobytes of at least 1, or a number with k, m or g (powers of 1024), as iozone accepts it.
	Size
	// Bytes is a whole number of bytes of at least 0, or a number with k, m, g or t (powers of 1024).
	Bytes
	// Word is a word, which no expression can use or compute.
	Word
)

// Point is one combination of parameters.
type Point struct {
	Index int
	// Parameters holds all values at this point, including those that are not swept.
	Parameters map[v1alpha1.SweepName]string
	// Varied lists the swept and derived ones in the order of the spec.
	Varied []v1alpha1.SweepName
}

// Plan holds the commands for one repetition of a point.
type Plan struct {
	// Steps are run one after the other in the same directory, each as a separate job. There is one step, unless caches are dropped between
	// phases (DropsBetweenPhases) and the tool has several.
	Steps []Step
	// Clients is the number of client nodes to use; 0 leaves it to spec.clients.
	Clients int
	// Processes is the number of processes over all clients.
	Processes int
	// Demand is the space that the repetition needs on the filesystem.
	Demand Demand
}

// Step is one command of a repetition.
type Step struct {
	// Name is the name of the phase, such as "read"; empty for the only step.
	Name    string
	Command Command
}

// Demand is the maximum that a repetition writes. 0 means unknown.
type Demand struct {
	Bytes, Inodes int64
	// EachTarget is the amount written to each storage target by the servers themselves.
	EachTarget int64
}

// Launch is the way in which a command is started.
type Launch int

// The ways of starting a command.
const (
	// OnClient starts it once, on one client (a Job).
	OnClient Launch = iota
	// OnLauncher starts it once, in the launcher of an MPIJob. The command starts its own processes on the clients by ssh, and reads their
	// names from Files.
	OnLauncher
	// OnProcesses starts it as an MPI program, on each process (mpirun in an MPIJob).
	OnProcesses
	// OnEachProcess starts it once for each process although it is no MPI program. Each process has its own directory below the repetition's,
	// and Stdin. SplitRanks splits the output.
	OnEachProcess
	// OnEachClient is OnEachProcess with one process on each client, whatever the number of processes is.
	OnEachClient
	// OnServers starts it on each node with servers of Role, in a privileged Job with the operator's own image. The command is the node's own
	// program, which belongs to the modules of the node's kernel. SplitRanks splits the output by server, and SplitTargets by target.
	OnServers
	// OnManagement makes Calls with the filesystem's own tools in a place from which its management service is reachable (a Job of
	// backend.Benchmarker).
	OnManagement
)

// Command is one command line with the way to start it. The following are replaced in arguments, files and standard input. $(DIRECTORY) is
// the repetition's directory, or the process's own (OnEachProcess, OnEachClient), and is the working directory. $(RANK) is the number of
// the process from 0 (OnEachProcess, OnEachClient). $(TARGETS) is the blank-separated list of the server's targets, or a single one
// (OnServers). $(HOSTS_FILE) is the path of the first of Files. $(LAUNCHER_IP) is the launcher's address (OnLauncher).
type Command struct {
	Launch Launch
	// Argv is the tool with its arguments.
	Argv []string
	// Env lists variables for the tool's environment in the form NAME=value.
	Env []string
	// Stdin is the standard input of each process (OnClient, OnEachProcess, OnEachClient).
	Stdin string
	// Files are written before the command starts: in the launcher (OnLauncher), or in the pod (OnClient).
	Files []File
	// Programs must be in the image (OnServers: on the node) in addition to Argv[0] and the needs of the launch. They are searched for in
	// PATH, or by absolute path.
	Programs []string
	// Role is the role of the servers (OnServers). ForEachTarget starts the command once for each target of a server, all at the same time,
	// instead of once.
	Role          v1alpha1.Role
	ForEachTarget bool
	// Calls are made one after the other (OnManagement), instead of Argv.
	Calls []Call
}

// Call is one operation of the filesystem's own tools. The backend determines the program and its options for the filesystem's version, and
// recognizes its end and its failures (backend.Benchmarker).
type Call struct {
	// Verb names it, such as "write".
	Verb string
	// Arguments holds arguments by name, such as blockSize; sizes are in bytes.
	Arguments map[string]string
}

// File is a file that a tool reads.
type File struct {
	// Path is the path of the file; empty means the path in $(HOSTS_FILE).
	Path string
	// Text is the beginning of the file. PerHost is added for each client, and PerProcess for each process; the processes are dealt to the
	// clients in turn as placed. In them, $(HOST), $(INDEX) (from 1) and $(PROCESSES) (of that client) are replaced too. End is the end of the
	// file. Newlines are not added.
	Text, PerHost, PerProcess, End string
}

// Report holds the results of one step.
type Report struct {
	// Version is the version that the tool reports, or empty.
	Version string
	Samples []Sample
	// Remarks holds the skipped lines outside of the tool's report.
	Remarks Remarks
}

// Saved is one report of an output that was saved elsewhere.
type Saved struct {
	Report
	// Parameters holds the tool's parameters that the report contains.
	Parameters map[v1alpha1.SweepName]string
}

// SavedParser is a Tool that parses outputs of runs that the operator could not have started.
type SavedParser interface {
	Tool
	// ParseSaved returns the reports of an output that was saved elsewhere, in their order. It refuses the same faults as Parse, but compares
	// the output with no point.
	ParseSaved(output []byte) ([]Saved, error)
}

// Sample is one number in a tool's output.
type Sample struct {
	// Name is the tool's name of the measured quantity, such as "File creation".
	Name string `json:"name"`
	// Unit is the unit as the tool prints it.
	Unit string `json:"unit"`
	// Value is in that unit. If the tool itself has iterated, it is the mean.
	Value float64 `json:"value"`
	// Better is the user's setting for the metric; empty if unit and name determine it.
	Better v1alpha1.Better `json:"better,omitempty"`
	// Within holds the tool's figures about its own iterations, or nil if there was only one.
	Within *Within `json:"within,omitempty"`
}

// Within holds the tool's own figures about its iterations, in the unit of the sample.
type Within struct {
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// StdDev is the deviation of a sample (n-1), whatever divisor the tool uses; see SampleDeviation.
	StdDev float64 `json:"stdDev"`
}

// SampleDeviation converts a tool's deviation of the whole set (n) of count values to the deviation of a sample (n-1). For fewer than two
// values it is 0.
func SampleDeviation(ofAll float64, count int) float64 {
	if count < 2 {
		return 0
	}
	return ofAll * math.Sqrt(float64(count)/float64(count-1))
}

// InvalidPointError means that a point can't be run with its parameters.
type InvalidPointError struct {
	Message string
}

// Error returns the message.
func (e *InvalidPointError) Error() string { return e.Message }

// InvalidPoint makes an InvalidPointError.
func InvalidPoint(format string, args ...any) *InvalidPointError {
	return &InvalidPointError{Message: fmt.Sprintf(format, args...)}
}

// Parameter names of every run.
const (
	ParameterProcesses   v1alpha1.SweepName = "processes"
	ParameterClients     v1alpha1.SweepName = "clients"
	ParameterStoragePool v1alpha1.SweepName = "storagePool"
)

// Common returns the parameters processes, clients and storagePool with the values of the spec.
func Common(spec *v1alpha1.BenchmarkRunSpec) []Parameter {
	clients := ""
	if spec.Clients.Count > 0 {
		clients = fmt.Sprint(spec.Clients.Count)
	}
	return []Parameter{
		{Name: ParameterProcesses, Kind: Count, Value: fmt.Sprint(max(spec.Processes, 1))},
		{Name: ParameterClients, Kind: Count, Value: clients},
		{Name: ParameterStoragePool, Kind: Word, Value: spec.Target.FileSystem.StoragePool},
	}
}

// DropsBetweenPhases is true if the spec requests that caches are dropped before each phase of a repetition.
func DropsBetweenPhases(spec *v1alpha1.BenchmarkRunSpec) bool {
	return spec.Caches != nil && spec.Caches.Before == v1alpha1.CachesBeforePhases
}
