package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// collector converts the newest sample to metrics at every scrape, so that the series of removed targets and daemons disappear.
type collector struct{ sampler *Sampler }

// Metrics describes what an agent serves at /metrics. It has nothing to collect.
func Metrics() prometheus.Collector { return collector{} }

func describe(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("parallelfs_"+name, help, append([]string{"namespace", "filesystem"}, more...), nil)
}

func describeDisk(name, help string) *prometheus.Desc { return describe("disk_"+name, help, "target") }

var (
	descBusy    = describeDisk("busy_seconds_total", "Time that the disk of the StorageTarget had requests; its rate is the utilization.")
	descQueue   = describeDisk("queue_seconds_total", "That time multiplied by the number of requests; its rate is the length of the queue.")
	descReads   = describeDisk("reads_total", "Completed reads of the disk.")
	descWrites  = describeDisk("writes_total", "Completed writes of the disk.")
	descRead    = describeDisk("read_bytes_total", "Bytes read from the disk.")
	descWritten = describeDisk("written_bytes_total", "Bytes written to the disk.")
	descCPU     = describe("daemon_cpu_seconds_total", "CPU time of the daemon, in user and kernel mode; its rate is the number of CPUs.", "daemon")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBusy, descQueue, descReads, descWrites, descRead, descWritten, descCPU} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	sample, ok := c.sampler.kept.newest()
	if !ok || c.sampler.stale(sample.Time) {
		return
	}
	counter := func(d *prometheus.Desc, value float64, name string) {
		const parts = 3
		labels := strings.SplitN(name, "/", parts)
		if len(labels) == parts {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
		}
	}
	const milli = 1000
	for name, disk := range sample.Disks {
		counter(descBusy, float64(disk.BusyMilliseconds)/milli, name)
		counter(descQueue, float64(disk.QueueMilliseconds)/milli, name)
		counter(descReads, float64(disk.Reads), name)
		counter(descWrites, float64(disk.Writes), name)
		counter(descRead, float64(disk.ReadBytes), name)
		counter(descWritten, float64(disk.WrittenBytes), name)
	}
	for name, daemon := range sample.Daemons {
		counter(descCPU, daemon.CPUSeconds, name)
	}
}
