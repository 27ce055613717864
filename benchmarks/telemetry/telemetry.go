// Package telemetry describes the activity of a filesystem's servers during a benchmark: how busy each disk was and how much CPU time each
// daemon used, as the agents of the nodes read it from the kernel. It contains the formats and computations, and reads nothing.
package telemetry

import "time"

// Sample holds the values that an agent has read at one time. All counters are the kernel's own, and only grow until a device or process is
// replaced.
type Sample struct {
	Time time.Time `json:"time"`
	// Disks holds disks by "<namespace>/<filesystem>/<StorageTarget>" of the StorageTarget on them.
	Disks map[string]Disk `json:"disks,omitempty"`
	// Daemons holds daemons by "<namespace>/<filesystem>/<daemon>", such as "storage/scratch/meta/0", with the node binary's name of the
	// daemon.
	Daemons map[string]Daemon `json:"daemons,omitempty"`
}

// Disk holds the counters of one disk since the node's boot (the kernel's Documentation/admin-guide/iostats.rst).
type Disk struct {
	// Reads and Writes count completed requests.
	Reads  uint64 `json:"reads"`
	Writes uint64 `json:"writes"`
	// ReadBytes and WrittenBytes count the transferred bytes (sectors of 512 bytes).
	ReadBytes    uint64 `json:"readBytes"`
	WrittenBytes uint64 `json:"writtenBytes"`
	// BusyMilliseconds is the time during which the disk had requests, and QueueMilliseconds this time weighted by their number.
	BusyMilliseconds  uint64 `json:"busyMilliseconds"`
	QueueMilliseconds uint64 `json:"queueMilliseconds"`
}

// Daemon holds the counters of one daemon.
type Daemon struct {
	// CPUSeconds is the CPU time of all its threads, in user and kernel mode (proc(5), utime and stime).
	CPUSeconds float64 `json:"cpuSeconds"`
	// PID distinguishes one start of the daemon from another.
	PID int `json:"pid"`
}

// Summary is the activity of one disk or daemon between two times.
type Summary struct {
	Node string `json:"node"`
	// Target names the StorageTarget of a disk, and Daemon the daemon, such as "meta/0". One of them is set unless there is a Problem.
	Target string `json:"target,omitempty"`
	Daemon string `json:"daemon,omitempty"`
	// Count is the number of unnamed disks or daemons with these average figures, or 0 for a single named one.
	Count int `json:"count,omitempty"`
	// Seconds is the time that the figures cover, and Samples the number of intervals.
	Seconds float64 `json:"seconds"`
	Samples int     `json:"samples"`
	// Utilization is the share of time in which a disk had requests, from 0 to 1: on average, and in the busiest interval.
	Utilization    float64 `json:"utilization,omitempty"`
	MaxUtilization float64 `json:"maxUtilization,omitempty"`
	// ReadIOPS, WriteIOPS, ReadBytesPerSecond and WriteBytesPerSecond are averages. Queue is the average number of requests in flight.
	ReadIOPS            float64 `json:"readIOPS,omitempty"`
	WriteIOPS           float64 `json:"writeIOPS,omitempty"`
	ReadBytesPerSecond  float64 `json:"readBytesPerSecond,omitempty"`
	WriteBytesPerSecond float64 `json:"writeBytesPerSecond,omitempty"`
	Queue               float64 `json:"queue,omitempty"`
	// CPUs is the number of CPUs that a daemon used: on average, and in the busiest interval.
	CPUs    float64 `json:"cpus,omitempty"`
	MaxCPUs float64 `json:"maxCPUs,omitempty"`
	// Problem is the reason why there are no figures, for example that the agent did not answer.
	Problem string `json:"problem,omitempty"`
}

// Answer is an agent's response to GET /telemetry.
type Answer struct {
	// Node is the name of the agent's node, and Time the agent's clock.
	Node string    `json:"node"`
	Time time.Time `json:"time"`
	// Summaries cover all samples between the requested times.
	Summaries []Summary `json:"summaries"`
	// Samples holds some of them, evenly spread, if the request asks for samples.
	Samples []Sample `json:"samples,omitempty"`
}
