// Package benchmarks is the seam between the operator and the tools that measure a filesystem. A tool is one folder
// that implements Tool, all of it pure: parameters in, command lines out; output in, numbers out.
package benchmarks

import (
	"fmt"
	"math"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Tool is one benchmark. Its methods are pure functions.
type Tool interface {
	// Name is the spec.tool that it serves, and the key of its image.
	Name() v1alpha1.BenchmarkTool

	// Parameters are the names that a sweep can vary and a derive can compute, with the kind of their values, and the values of
	// the spec (the point without a sweep) as strings. processes, clients and storagePool are among them where they mean something:
	// Common returns them.
	Parameters(spec *v1alpha1.BenchmarkRunSpec) []Parameter

	// Plan is what runs one repetition of a point. An *InvalidPointError says which value can't be used.
	Plan(spec *v1alpha1.BenchmarkRunSpec, point Point) (Plan, error)

	// Parse turns the output of one step of one repetition into a report, its samples in a stable order. It returns an error, with the
	// line where there is one, for output that is cut off, of an aborted run, of another shape, or that lacks a test that the
	// step asked for; it never guesses a number. A point without parameters is that of an output which was saved elsewhere: what the
	// output is of is then not compared with anything, where the tool can read it so.
	Parse(spec *v1alpha1.BenchmarkRunSpec, point Point, step int, output []byte) (Report, error)
}

// Parameter is a name that a sweep can vary.
type Parameter struct {
	Name v1alpha1.SweepName
	Kind ParameterKind
	// Value is that of the spec; empty when the spec leaves it open.
	Value string
	// Words are the values of a Word; any word is one when it is empty.
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
	// Size is a whole number of kilobytes of at least 1, or a number with k, m or g (powers of 1024), as iozone takes it.
	Size
	// Bytes is a whole number of bytes of at least 0, or a number with k, m, g or t (powers of 1024).
	Bytes
	// Word is a word, which no expression can use or compute.
	Word
)

// Point is one combination of parameters.
type Point struct {
	Index int
	// Parameters are all values that hold at this point, the unswept ones too.
	Parameters map[v1alpha1.SweepName]string
	// Varied names the swept and derived ones, in the order of the spec.
	Varied []v1alpha1.SweepName
}

// Plan is what runs one repetition of a point.
type Plan struct {
	// Steps are run one after the other in the same directory, each as a job of its own. There is one, unless caches are dropped between
	// phases (DropsBetweenPhases) and the tool has several.
	Steps []Step
	// Clients is the number of client nodes that take part; 0 leaves it to spec.clients.
	Clients int
	// Processes is the number of processes over all clients.
	Processes int
	// Demand is what the repetition needs on the filesystem.
	Demand Demand
}

// Step is one command of a repetition.
type Step struct {
	// Name of the phase, such as "read"; empty when it is the only step.
	Name    string
	Command Command
}

// Demand is what a repetition writes at most. 0 is unknown.
type Demand struct {
	Bytes, Inodes int64
	// EachTarget is what is written to each storage target, on the servers themselves.
	EachTarget int64
}

// Launch says how a command is started.
type Launch int

// The ways of starting a command.
const (
	// OnClient starts it once, on one client (a Job).
	OnClient Launch = iota
	// OnLauncher starts it once, in the launcher of an MPIJob; it starts its own processes on the clients by ssh, from Files that
	// name them.
	OnLauncher
	// OnProcesses starts it as an MPI program, on each process (mpirun in an MPIJob).
	OnProcesses
	// OnEachProcess starts it on each process as well, though it is no MPI program: each process has a directory of its own below the
	// repetition's, and Stdin. SplitRanks takes the output apart.
	OnEachProcess
	// OnEachClient is OnEachProcess with one process on each client, whatever the number of processes.
	OnEachClient
	// OnServers starts it on each node with servers of Role: it is the node's own program, which belongs to the modules of the node's kernel
	// (a privileged Job of the operator's own image). SplitRanks takes the output apart, and SplitTargets what it printed for each target.
	OnServers
	// OnManagement makes Calls with the filesystem's own tools, where its management service can be reached (a Job of backend.Benchmarker).
	OnManagement
)

// Command is one command line and how it is started. In arguments, files and standard input, these are replaced:
// $(DIRECTORY) is the repetition's directory (OnEachProcess, OnEachClient: the process's own), which is the working directory;
// $(RANK) the number of the process from 0 (OnEachProcess, OnEachClient); $(TARGETS) the names of the server's targets, with blanks
// between
// them, or that of the one (OnServers); $(HOSTS_FILE) the path of the first of Files;
// $(LAUNCHER_IP) the launcher's address (OnLauncher).
type Command struct {
	Launch Launch
	// Argv is the tool with its arguments.
	Argv []string
	// Env is added to the tool's environment, NAME=value.
	Env []string
	// Stdin is given to each process (OnClient, OnEachProcess, OnEachClient).
	Stdin string
	// Files are written in the launcher before the command starts (OnLauncher), or in the pod (OnClient).
	Files []File
	// Programs must be in the image (OnServers: on the node), besides Argv[0] and what the launch needs; they are looked for in PATH, or by
	// their absolute path.
	Programs []string
	// Role of the servers (OnServers). ForEachTarget starts the command once for each target of a server, all at once; without it, once.
	Role          v1alpha1.Role
	ForEachTarget bool
	// Calls are made one after the other (OnManagement), in the place of Argv.
	Calls []Call
}

// Call is one thing that the filesystem's own tools are to do. The backend knows the program and the options of the filesystem's version,
// when it has ended, and how a failure looks (backend.Benchmarker).
type Call struct {
	// Verb names it, such as "write".
	Verb string
	// Arguments by their names, such as blockSize; sizes are in bytes.
	Arguments map[string]string
}

// File is a file that a tool reads.
type File struct {
	// Path of the file; empty for a path that $(HOSTS_FILE) names.
	Path string
	// Text begins the file. PerHost is added for each client, and PerProcess for each process, its client in turn as placed; in them
	// $(HOST), $(INDEX) (from 1) and $(PROCESSES) (of that client) are replaced too. End ends it. None gets a newline that it has not.
	Text, PerHost, PerProcess, End string
}

// Report is what one step measured.
type Report struct {
	// Version is what the tool says of itself, empty when it says nothing.
	Version string
	Samples []Sample
	// Remarks are the lines that stand outside of the tool's report and were skipped.
	Remarks Remarks
}

// Saved is one report of an output that was saved elsewhere.
type Saved struct {
	Report
	// Parameters are what the report says of the run: values of the tool's parameters.
	Parameters map[v1alpha1.SweepName]string
}

// SavedParser is a Tool that reads outputs of runs that the operator could not have asked for.
type SavedParser interface {
	Tool
	// ParseSaved returns the reports of an output that was saved elsewhere, in their order. It refuses what Parse refuses, but compares the
	// output with nothing that was asked for.
	ParseSaved(output []byte) ([]Saved, error)
}

// Sample is one number that a tool printed.
type Sample struct {
	// Name of what was measured, as the tool prints it, such as "File creation".
	Name string `json:"name"`
	// Unit as the tool prints it.
	Unit string `json:"unit"`
	// Value in that unit; the mean where the tool itself made several.
	Value float64 `json:"value"`
	// Better is what the user says of the metric; empty when the unit and the name say it.
	Better v1alpha1.Better `json:"better,omitempty"`
	// Within is what the tool itself says of its own iterations, nil when there was one.
	Within *Within `json:"within,omitempty"`
}

// Within are the tool's own figures of its iterations, in the unit of the sample.
type Within struct {
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// StdDev is that of a sample (n-1), whatever the tool divides by; see SampleDeviation.
	StdDev float64 `json:"stdDev"`
}

// SampleDeviation is the standard deviation of a sample (n-1) of count values that a tool printed the deviation of all (n) of. Of fewer
// than two values there is none: it is 0.
func SampleDeviation(ofAll float64, count int) float64 {
	if count < 2 {
		return 0
	}
	return ofAll * math.Sqrt(float64(count)/float64(count-1))
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

// The names of the parameters of every run.
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

// DropsBetweenPhases is true when the spec asks for caches to be dropped before each phase of a repetition.
func DropsBetweenPhases(spec *v1alpha1.BenchmarkRunSpec) bool {
	return spec.Caches != nil && spec.Caches.Before == v1alpha1.CachesBeforePhases
}
