package probe

import (
	"net"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"parallelfs.dev/operator/internal/backend"
)

// collector turns the last answer into metrics at every scrape, so that the series of a target that has gone go too.
type collector struct{ probe *Probe }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("parallelfs_"+name, help, append([]string{"namespace", "filesystem"}, labels...), nil)
}

var (
	descUp       = describe("up", "1 while the filesystem answers the probe, else 0.")
	descDuration = describe("probe_duration_seconds", "How long the last question to the filesystem took.")
	descSuccess  = describe("probe_last_success_timestamp_seconds", "When the filesystem last answered, in seconds since 1970.")
	descServer   = describe("server_online", "1 while the filesystem is connected to the server, else 0.", "role", "address")
	descTarget   = describe("target_online", "1 while the storage target takes part, else 0.", "address", "path")
	descCapacity = describe("target_capacity_bytes", "Size of the storage target.", "address", "path")
	descUsed     = describe("target_used_bytes", "Used space of the storage target.", "address", "path")
	descChunks   = describe("chunks", "Pieces of data by how safe they are; absent while the filesystem has not counted yet.", "state")
	descSessions = describe("sessions", "Mounts that are connected to the filesystem.")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descUp, descDuration, descSuccess, descServer, descTarget, descCapacity, descUsed, descChunks, descSessions,
	} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	last := c.probe.snapshot()
	state, _ := c.probe.fresh(last)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		values := append([]string{c.probe.told.FileSystem.Namespace, c.probe.told.FileSystem.Name}, labels...)
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, values...)
	}
	gauge(descUp, number(state != nil))
	gauge(descDuration, last.took.Seconds())
	if !last.at.IsZero() {
		gauge(descSuccess, float64(last.at.UnixMilli())/1000)
	}
	if state == nil {
		return
	}
	collectServers(*state, gauge)
	collectTargets(*state, gauge)
	if d := state.Data; d.Known {
		gauge(descChunks, float64(d.Missing), "missing")
		gauge(descChunks, float64(d.Endangered), "endangered")
		gauge(descChunks, float64(d.Undergoal), "undergoal")
		gauge(descChunks, float64(d.Stable), "stable")
	}
	connected := 0
	for _, s := range state.Sessions {
		if s.Connected {
			connected++
		}
	}
	gauge(descSessions, float64(connected))
}

type gaugeFunc func(d *prometheus.Desc, value float64, labels ...string)

// collectServers joins servers of the same role and address, which would be the same series twice and make the whole scrape fail.
func collectServers(state backend.State, gauge gaugeFunc) {
	online := map[[2]string]bool{}
	for _, s := range state.Servers {
		key := [2]string{string(s.Role), address(s.IP, s.Port)}
		online[key] = online[key] || s.Online
	}
	for key, up := range online {
		gauge(descServer, number(up), key[0], key[1])
	}
}

func collectTargets(state backend.State, gauge gaugeFunc) {
	targets := map[[2]string]backend.Target{}
	for _, t := range state.Targets {
		key := [2]string{address(t.IP, t.Port), t.Path}
		if known, twice := targets[key]; !twice || t.Online && !known.Online {
			targets[key] = t
		}
	}
	for key, t := range targets {
		gauge(descTarget, number(t.Online), key[0], key[1])
		gauge(descCapacity, float64(t.CapacityBytes), key[0], key[1])
		gauge(descUsed, float64(t.UsedBytes), key[0], key[1])
	}
}

// address leaves the port out when the server listens on none.
func address(ip string, port int32) string {
	if port == 0 {
		return ip
	}
	return net.JoinHostPort(ip, strconv.Itoa(int(port)))
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
