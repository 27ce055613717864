package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parallelfs.dev/operator/internal/node/health"
)

// DiskHealth is the last report of the disk of one StorageTarget.
type DiskHealth struct {
	Namespace, FileSystem, Target string
	// At is the time of the report.
	At time.Time
	health.Report
}

// HealthCollector exports the reports of the disks of StorageTargets. Disks returns the last ones; without it there are none.
type HealthCollector struct{ Disks func() []DiskHealth }

var (
	descHealth    = describe("disk_health", "1 for the state of the disk by its own report: Healthy, Suspect or Failing.", "target", "state")
	descReported  = describeDisk("health_timestamp_seconds", "Unix time of the last report of the disk.")
	descCelsius   = describeDisk("temperature_celsius", "Temperature of the disk in its last report.")
	descEndurance = describeDisk("used_endurance_ratio", "Used part of the rated endurance of the disk: 1 for all of it; absent where the disk does not report it.")
	descMedia     = describeDisk("media_errors_total", "Data that the disk could not recover, since it was made.")
	descPending   = describeDisk("pending_sectors", "Sectors that the disk could not read, and that were not written since.")
)

// Describe implements prometheus.Collector.
func (c HealthCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descHealth, descReported, descCelsius, descEndurance, descMedia, descPending} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c HealthCollector) Collect(metrics chan<- prometheus.Metric) {
	if c.Disks == nil {
		return
	}
	for _, d := range c.Disks() {
		labels := []string{d.Namespace, d.FileSystem, d.Target}
		gauge := func(desc *prometheus.Desc, kind prometheus.ValueType, value *float64) {
			if value != nil {
				metrics <- prometheus.MustNewConstMetric(desc, kind, *value, labels...)
			}
		}
		metrics <- prometheus.MustNewConstMetric(descHealth, prometheus.GaugeValue, 1, append(labels, string(d.State))...)
		gauge(descReported, prometheus.GaugeValue, new(float64(d.At.Unix())))
		gauge(descCelsius, prometheus.GaugeValue, d.Celsius)
		gauge(descEndurance, prometheus.GaugeValue, d.UsedEndurance)
		gauge(descMedia, prometheus.CounterValue, d.MediaErrors)
		gauge(descPending, prometheus.GaugeValue, d.PendingSectors)
	}
}
