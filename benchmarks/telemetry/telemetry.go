// Package telemetry is what the servers of a filesystem did while a benchmark ran: how busy each disk was and how much CPU each
// daemon took, as the agents of the nodes read it from the kernel. It holds the forms and what is computed from them, and reads nothing.
package telemetry

import "time"

// Sample is what an agent has read at one moment. All counters are the kernel's own and only grow, until a device or process is new.
type Sample struct {
	Time time.Time `json:"time"`
	// Disks by "<namespace>/<filesystem>/<StorageTarget>", of the StorageTarget that lies on them.
	Disks map[string]Disk `json:"disks,omitempty"`
	// Daemons by "<namespace>/<filesystem>/<daemon>", such as "storage/scratch/meta/0": the daemon as the node binary names it.
	Daemons map[string]Daemon `json:"daemons,omitempty"`
}

// Disk are the counters of one disk since the node was started (the kernel's Documentation/admin-guide/iostats.rst).
type Disk struct {
	// Reads and Writes are completed requests.
	Reads  uint64 `json:"reads"`
	Writes uint64 `json:"writes"`
	// ReadBytes and WrittenBytes are what they moved (sectors of 512 bytes).
	ReadBytes    uint64 `json:"readBytes"`
	WrittenBytes uint64 `json:"writtenBytes"`
	// BusyMilliseconds is the time that the disk had requests, and QueueMilliseconds that time weighted by their number.
	BusyMilliseconds  uint64 `json:"busyMilliseconds"`
	QueueMilliseconds uint64 `json:"queueMilliseconds"`
}

// Daemon are the counters of one daemon.
type Daemon struct {
	// CPUSeconds is the CPU time of all its threads, in user and kernel mode (proc(5), utime and stime).
	CPUSeconds float64 `json:"cpuSeconds"`
	// PID tells one start of the daemon from another.
	PID int `json:"pid"`
}

// Summary is what one disk or daemon did between two moments.
type Summary struct {
	Node string `json:"node"`
	// Target names the StorageTarget of a disk, Daemon the daemon, such as "meta/0"; one of them is set, unless there is a Problem.
	Target string `json:"target,omitempty"`
	Daemon string `json:"daemon,omitempty"`
	// Count is how many disks or daemons this stands for, which have the figures on average and are not named; 0 for the one that is.
	Count int `json:"count,omitempty"`
	// Seconds that the figures are from, and Samples the number of intervals.
	Seconds float64 `json:"seconds"`
	Samples int     `json:"samples"`
	// Utilization is the share of time that a disk had requests, from 0 to 1: on average, and in the busiest interval.
	Utilization    float64 `json:"utilization,omitempty"`
	MaxUtilization float64 `json:"maxUtilization,omitempty"`
	// ReadIOPS, WriteIOPS, ReadBytesPerSecond and WriteBytesPerSecond are averages, Queue is the average number of requests under way.
	ReadIOPS            float64 `json:"readIOPS,omitempty"`
	WriteIOPS           float64 `json:"writeIOPS,omitempty"`
	ReadBytesPerSecond  float64 `json:"readBytesPerSecond,omitempty"`
	WriteBytesPerSecond float64 `json:"writeBytesPerSecond,omitempty"`
	Queue               float64 `json:"queue,omitempty"`
	// CPUs is how many CPUs a daemon took: on average, and in the busiest interval.
	CPUs    float64 `json:"cpus,omitempty"`
	MaxCPUs float64 `json:"maxCPUs,omitempty"`
	// Problem says why there are no figures, such as that the agent did not answer.
	Problem string `json:"problem,omitempty"`
}

// Answer is what an agent answers to GET /telemetry.
type Answer struct {
	// Node is the name of the agent's node, Time its clock.
	Node string    `json:"node"`
	Time time.Time `json:"time"`
	// Summaries are of all samples between the two moments that were asked for.
	Summaries []Summary `json:"summaries"`
	// Samples are some of them, evenly spread, where the question asked for samples.
	Samples []Sample `json:"samples,omitempty"`
}
