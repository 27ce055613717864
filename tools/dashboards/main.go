// Command dashboards writes the Grafana dashboards of the chart, one file for each, into the named folder. It is a module of its own, so that
// no build of the product compiles the SDK (docs/adr/0152).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// panel is one panel: a number, or a series over time.
type panel struct {
	title, unit string
	number      bool
	queries     []query
}

type query struct{ expr, legend string }

// board is one dashboard.
type board struct {
	file, title, about string
	// one is true for a dashboard about one filesystem.
	one  bool
	rows []row
}

type row struct {
	title  string
	panels []panel
}

func number(title, unit, expr string) panel { return panel{title, unit, true, []query{{expr, ""}}} }

func series(title, unit string, queries ...query) panel { return panel{title, unit, false, queries} }

// of selects one filesystem, by the variables of the dashboard.
const of = `namespace="$namespace",filesystem="$filesystem"`

const (
	count, ratio, size, rate, seconds, perSecond = "short", "percentunit", "bytes", "Bps", "s", "iops"
	fsLegend, targetLegend, addressLegend        = "{{namespace}}/{{filesystem}}", "{{target}}", "{{role}} {{address}}"
)

var boards = []board{
	{"overview", "ParallelFS: overview", "All filesystems of the cluster.", false, []row{
		{"Now", []panel{
			number("Filesystems", count, `count(max by (namespace, filesystem) (parallelfs_filesystem_info))`),
			number("Not ready", count, `count(max by (namespace, filesystem) (parallelfs_filesystem_condition{type="Ready",status="False"} == 1)) or vector(0)`),
			number("Degraded", count, `count(max by (namespace, filesystem) (parallelfs_filesystem_condition{type="Degraded",status="True"} == 1)) or vector(0)`),
			number("Wait for a person", count, `count(max by (namespace, filesystem) (parallelfs_filesystem_condition{type="Stalled",status="True"} == 1)) or vector(0)`),
		}},
		{"Filesystems", []panel{
			series("Answers", count, query{`max by (namespace, filesystem) (parallelfs_up)`, fsLegend}),
			series("Used space of pools", ratio, query{`max by (namespace, filesystem, pool) (parallelfs_filesystem_pool_used_ratio)`, fsLegend + " {{pool}}"}),
			series("Servers that are not online", count, query{`count by (namespace, filesystem) (max by (namespace, filesystem, role, id, address) (parallelfs_server_online) == 0) or vector(0)`, fsLegend}),
			series("Mounts", count, query{`max by (namespace, filesystem) (parallelfs_sessions)`, fsLegend}),
			series("Age of the backup of metadata", seconds, query{`time() - max by (namespace, filesystem) (parallelfs_filesystem_backup_timestamp_seconds > 0)`, fsLegend}),
			series("Servers by version", count, query{`max by (namespace, filesystem, version) (parallelfs_filesystem_version_servers)`, fsLegend + " {{version}}"}),
		}},
		{"Operator", []panel{
			series("Errors of controllers", count, query{`sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m]))`, "{{controller}}"}),
			series("Managers by version", count, query{`count by (version) (parallelfs_build_info)`, "{{version}}"}),
		}},
	}},
	{"filesystem", "ParallelFS: one filesystem", "Health, space, safety of the data and changes of one filesystem.", true, []row{
		{"Now", []panel{
			number("Answers", count, `max(parallelfs_up{`+of+`})`),
			number("Used", ratio, `sum(max by (role, id, address, path) (parallelfs_target_used_bytes{`+of+`,role="Storage"})) / sum(max by (role, id, address, path) (parallelfs_target_capacity_bytes{`+of+`,role="Storage"}))`),
			number("Targets offline", count, `count(max by (role, id, address, path) (parallelfs_target_online{`+of+`}) == 0) or vector(0)`),
			number("Mounts", count, `max(parallelfs_sessions{`+of+`})`),
		}},
		{"Health", []panel{
			series("Conditions that are false or unknown", count, query{`max by (type, status, reason) (parallelfs_filesystem_condition{` + of + `,status!="True"} == 1)`, "{{type}} {{status}}: {{reason}}"}),
			series("Disruptions: time since the start", seconds, query{`time() - max by (kind) (parallelfs_filesystem_disruption_start_timestamp_seconds{` + of + `})`, "{{kind}}"},
				query{`time() - max by (node) (parallelfs_filesystem_node_maintenance_start_timestamp_seconds{` + of + `})`, "maintenance of {{node}}"}),
			series("StorageTargets that are not online", count, query{`max by (role, pool, reason) (parallelfs_storage_target_conditions{` + of + `,type="Online",status="False"})`, "{{role}} {{pool}}: {{reason}}"}),
			series("Nodes that are not ready", count, query{`max by (reason) (parallelfs_filesystem_node_conditions{` + of + `,type="Ready",status="False"})`, "{{reason}}"}),
		}},
		{"Data", []panel{
			series("Pieces of data by safety (MooseFS)", count, query{`max by (state) (parallelfs_chunks{` + of + `,state!="safe"})`, "{{state}}"}),
			series("Targets whose data is not consistent", count, query{`count(max by (role, id, address, path) (parallelfs_target_consistent{` + of + `}) == 0) or vector(0)`, "targets"}),
			series("Copies of the metadata", count, query{`max by (state) (parallelfs_filesystem_metadata_copies{` + of + `})`, "{{state}}"}),
			series("Changes that copies lack", count, query{`max by (node) (parallelfs_filesystem_metadata_copy_behind_changes{` + of + `})`, "{{node}}"}),
		}},
		{"Space", []panel{
			series("Used space of pools", ratio, query{`max by (pool) (parallelfs_filesystem_pool_used_ratio{` + of + `})`, "{{pool}}"}),
			series("Pools in 30 days", ratio, query{`predict_linear(parallelfs_filesystem_pool_used_ratio{` + of + `}[7d], 30 * 86400)`, "{{pool}}"}),
			series("Used inodes", ratio, query{`max by (role, address, path) (parallelfs_target_used_inodes{` + of + `} / parallelfs_target_inodes{` + of + `})`, addressLegend + " {{path}}"}),
		}},
		{"Clients", []panel{
			series("Targets without a connection", count, query{`max by (node) (parallelfs_filesystem_client_disconnected_targets{` + of + `})`, "{{node}}"}),
			series("Evictions", count, query{`increase(parallelfs_filesystem_client_evictions{` + of + `}[1h])`, "{{node}}"}),
		}},
	}},
	{"servers-and-disks", "ParallelFS: servers and disks", "What each disk and daemon of one filesystem does, by the agents' samples.", true, []row{
		{"Disks", []panel{
			series("Busy", ratio, query{`sum by (target) (rate(parallelfs_disk_busy_seconds_total{` + of + `}[5m]))`, targetLegend}),
			series("Requests in the queue", count, query{`sum by (target) (rate(parallelfs_disk_queue_seconds_total{` + of + `}[5m]))`, targetLegend}),
			series("Read", rate, query{`sum by (target) (rate(parallelfs_disk_read_bytes_total{` + of + `}[5m]))`, targetLegend}),
			series("Written", rate, query{`sum by (target) (rate(parallelfs_disk_written_bytes_total{` + of + `}[5m]))`, targetLegend}),
			series("Reads", perSecond, query{`sum by (target) (rate(parallelfs_disk_reads_total{` + of + `}[5m]))`, targetLegend}),
			series("Writes", perSecond, query{`sum by (target) (rate(parallelfs_disk_writes_total{` + of + `}[5m]))`, targetLegend}),
		}},
		{"Daemons", []panel{
			series("CPUs", count, query{`sum by (daemon) (rate(parallelfs_daemon_cpu_seconds_total{` + of + `}[5m]))`, "{{daemon}}"}),
			series("Servers online", count, query{`max by (role, id, address) (parallelfs_server_online{` + of + `})`, addressLegend}),
		}},
		{"Health of disks", []panel{
			series("Not healthy", count, query{`max by (target, state) (parallelfs_disk_health{` + of + `,state!="Healthy"} == 1)`, targetLegend + " {{state}}"}),
			series("Temperature", "celsius", query{`max by (target) (parallelfs_disk_temperature_celsius{` + of + `})`, targetLegend}),
			series("Used endurance", ratio, query{`max by (target) (parallelfs_disk_used_endurance_ratio{` + of + `})`, targetLegend}),
			series("Media errors and pending sectors", count, query{`max by (target) (parallelfs_disk_media_errors_total{` + of + `})`, targetLegend + " errors"},
				query{`max by (target) (parallelfs_disk_pending_sectors{` + of + `})`, targetLegend + " pending"}),
		}},
	}},
	{"benchmarks", "ParallelFS: benchmarks", "Benchmarks over time, and what the servers did meanwhile. Results are in the BenchmarkRuns.", true, []row{
		{"Runs", []panel{
			series("Runs by result", count, query{`max by (status, reason) (parallelfs_benchmark_run_conditions{` + of + `,type="Succeeded"})`, "{{status}}: {{reason}}"}),
			series("Runs that are not over, or have failed", count, query{`max by (run, reason) (parallelfs_benchmark_run_condition{` + of + `,type="Succeeded"})`, "{{run}}: {{reason}}"}),
		}},
		{"Servers meanwhile", []panel{
			series("Read and written", rate, query{`sum(rate(parallelfs_disk_read_bytes_total{` + of + `}[1m]))`, "read"}, query{`sum(rate(parallelfs_disk_written_bytes_total{` + of + `}[1m]))`, "written"}),
			series("Busiest disks", ratio, query{`topk(5, sum by (target) (rate(parallelfs_disk_busy_seconds_total{` + of + `}[1m])))`, targetLegend}),
			series("Busiest daemons", count, query{`topk(5, sum by (daemon) (rate(parallelfs_daemon_cpu_seconds_total{` + of + `}[1m])))`, "{{daemon}}"}),
			series("Requests in the queues", count, query{`sum(rate(parallelfs_disk_queue_seconds_total{` + of + `}[1m]))`, "requests"}),
		}},
	}},
}

// annotations mark what changes measured values: versions, disruptions and benchmarks.
var annotations = []query{
	{`changes(parallelfs_filesystem_info{` + of + `}[5m]) > 0`, "Version"},
	{`max by (kind) (parallelfs_filesystem_disruption_start_timestamp_seconds{` + of + `})`, "Disruption"},
	{`max by (run) (parallelfs_benchmark_run_condition{` + of + `,type="Succeeded",status="Unknown"} == 1)`, "Benchmark"},
}

func pointer[T any](value T) *T { return &value }

// source is the data source that a person chooses on the dashboard.
var source = common.DataSourceRef{Type: pointer("prometheus"), Uid: pointer("${datasource}")}

const refIDs = "ABCD"

func (b board) build() (dashboard.Dashboard, error) {
	out := dashboard.NewDashboardBuilder(b.title).Uid("parallelfs-"+b.file).Description(b.about).Tags([]string{"parallelfs"}).
		Timezone("browser").Refresh("1m").Time("now-6h", "now").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	if b.one {
		variable := func(name, values string) *dashboard.QueryVariableBuilder {
			return dashboard.NewQueryVariableBuilder(name).Datasource(source).Query(dashboard.StringOrMap{String: &values}).
				Refresh(dashboard.VariableRefreshOnTimeRangeChanged)
		}
		out.WithVariable(variable("namespace", "label_values(parallelfs_filesystem_info, namespace)")).
			WithVariable(variable("filesystem", `label_values(parallelfs_filesystem_info{namespace="$namespace"}, filesystem)`))
		for _, a := range annotations {
			out.Annotation(dashboard.NewAnnotationQueryBuilder().Name(a.legend).Datasource(source).Enable(true).IconColor("orange").Expr(a.expr).
				TitleFormat(a.legend).TextFormat("{{kind}}{{run}}{{version}}"))
		}
	}
	for _, r := range b.rows {
		out.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			if p.number {
				one := stat.NewPanelBuilder().Title(p.title).Unit(p.unit).Datasource(source).Span(6).Height(4)
				out.WithPanel(one.WithTarget(prometheus.NewDataqueryBuilder().RefId("A").Expr(p.queries[0].expr).Instant()))
				continue
			}
			one := timeseries.NewPanelBuilder().Title(p.title).Unit(p.unit).Datasource(source).Span(12).Height(8).Min(0)
			for i, q := range p.queries {
				one.WithTarget(prometheus.NewDataqueryBuilder().RefId(refIDs[i : i+1]).Expr(q.expr).LegendFormat(q.legend).Range())
			}
			out.WithPanel(one)
		}
	}
	return out.Build()
}

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name the folder that the dashboards are written to")
	}
	for _, b := range boards {
		built, err := b.build()
		if err != nil {
			return fmt.Errorf("build %s: %w", b.file, err)
		}
		text, err := json.MarshalIndent(built, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[0], b.file+".json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}
