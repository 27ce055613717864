package probe

import (
	"cmp"
	"net"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// collector converts the last answer to metrics at every scrape, so that the series of a removed target disappear.
type collector struct{ probe *Probe }

// Metrics describes what a probe serves at /metrics. It has nothing to collect.
func Metrics() prometheus.Collector { return collector{} }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("parallelfs_"+name, help, append([]string{"namespace", "filesystem"}, labels...), nil)
}

// describeTarget describes a metric of each target. In some filesystems a target has a path, in others an id that is unique in its role.
func describeTarget(name, help string, labels ...string) *prometheus.Desc {
	return describe(name, help, append([]string{"role", "id", "address", "path"}, labels...)...)
}

var (
	descUp       = describe("up", "1 while the filesystem answers the probe, else 0.")
	descDuration = describe("probe_duration_seconds", "Seconds that the last question to the filesystem took.")
	descSuccess  = describe("probe_last_success_timestamp_seconds", "Unix time at which the filesystem last answered.")
	descServer   = describe("server_online", "1 while the filesystem is connected to the server, else 0.", "role", "id", "address")
	descTarget   = describeTarget("target_online", "1 while the target is online, else 0.")
	descCapacity = describeTarget("target_capacity_bytes", "Size of the target; absent while it is not known.")
	descUsed     = describeTarget("target_used_bytes", "Used space of the target; absent while its size is not known.")
	descInodes   = describeTarget("target_inodes", "Inodes of the target's disk; absent where the filesystem does not report them.")
	descUsedIno  = describeTarget("target_used_inodes", "Used inodes of the target's disk; absent where the filesystem does not report them.")
	descGood     = describeTarget("target_consistent", "1 while the filesystem reports that the data of the target is good, else 0; absent where it reports nothing.")
	descPool     = describeTarget("target_capacity_pool", "1 for the class of free space that the filesystem has the target in.", "pool")
	descLicense  = describe("license_valid", "1 while the filesystem has a valid license, else 0; absent where it needs none.")
	descChunks   = describe("chunks", "Pieces of data by how safe they are; absent while the filesystem has not counted yet.", "state")
	descSessions = describe("sessions", "Mounts that are connected to the filesystem; absent where it does not list them.")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descUp, descDuration, descSuccess, descServer, descTarget, descCapacity, descUsed, descInodes, descUsedIno, descGood, descPool,
		descLicense, descChunks, descSessions,
	} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	last := c.probe.snapshot()
	state, _ := c.probe.fresh(last)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		values := append([]string{c.probe.config.FileSystem.Namespace, c.probe.config.FileSystem.Name}, labels...)
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
	if state.License != nil {
		gauge(descLicense, number(state.License.Valid))
	}
	if d := state.Data; d.Known {
		gauge(descChunks, float64(d.Missing), "missing")
		gauge(descChunks, float64(d.Endangered), "endangered")
		gauge(descChunks, float64(d.Undergoal), "undergoal")
		gauge(descChunks, float64(d.Stable), "stable")
	}
	if state.Sessions != nil {
		connected := 0
		for _, s := range state.Sessions {
			if s.Connected {
				connected++
			}
		}
		gauge(descSessions, float64(connected))
	}
}

type gaugeFunc func(d *prometheus.Desc, value float64, labels ...string)

// collectServers merges servers with the same role, id and address, because duplicate series would make the whole scrape fail.
func collectServers(state backend.State, gauge gaugeFunc) {
	online := map[[3]string]bool{}
	for _, s := range state.Servers {
		key := [3]string{string(s.Role), identity(s.ID), address(s.IP, s.Port)}
		online[key] = online[key] || s.Online
	}
	for key, up := range online {
		gauge(descServer, number(up), key[:]...)
	}
}

func collectTargets(state backend.State, gauge gaugeFunc) {
	targets := map[[4]string]backend.Target{}
	for _, t := range state.Targets {
		key := [4]string{string(cmp.Or(t.Role, v1alpha1.RoleStorage)), identity(t.ID), address(t.IP, t.Port), t.Path}
		if known, twice := targets[key]; !twice || t.Online && !known.Online {
			targets[key] = t
		}
	}
	for key, t := range targets {
		gauge(descTarget, number(t.Online), key[:]...)
		if t.CapacityBytes > 0 {
			gauge(descCapacity, float64(t.CapacityBytes), key[:]...)
			gauge(descUsed, float64(t.UsedBytes), key[:]...)
		}
		if t.Inodes > 0 {
			gauge(descInodes, float64(t.Inodes), key[:]...)
			gauge(descUsedIno, float64(t.UsedInodes), key[:]...)
		}
		if t.Consistency != "" {
			gauge(descGood, number(t.Consistency == "Good"), key[:]...)
		}
		if t.CapacityPool != "" {
			gauge(descPool, 1, append(key[:], t.CapacityPool)...)
		}
	}
}

// identity is empty for a server or target without an id.
func identity(id int32) string {
	if id == 0 {
		return ""
	}
	return strconv.Itoa(int(id))
}

// address omits the port if the server has none.
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
