//go:build chart

package charts_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// alert is one rule of a PrometheusRule.
type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// rules holds the groups of a PrometheusRule.
type rules struct {
	Spec ruleFile `json:"spec"`
}

type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string  `json:"name"`
	Rules []alert `json:"rules"`
}

const served = "--api-versions=monitoring.coreos.com/v1"

// alerts returns the alerts of a release, by name.
func alerts(t *testing.T, values string) (map[string]alert, ruleFile) {
	t.Helper()
	spec := find[rules](t, render(t, values, served, "--set=monitoring.enabled=true"), "PrometheusRule", release).Spec
	out := map[string]alert{}
	for _, group := range spec.Groups {
		for _, a := range group.Rules {
			NewWithT(t).Expect(out).NotTo(HaveKey(a.Alert))
			out[a.Alert] = a
		}
	}
	return out, spec
}

// promtool runs Prometheus' tool. PROMTOOL names it; `make test-chart` unpacks it from Debian's package prometheus.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary := os.Getenv("PROMTOOL")
	if binary == "" {
		binary = "promtool"
	}
	if _, err := exec.LookPath(binary); err != nil {
		t.Fatalf("the tests of alerts need promtool: run `make test-chart`, or set PROMTOOL to it: %v", err)
	}
	out, err := exec.Command(binary, args...).CombinedOutput()
	return string(out), err
}

func TestAlertsAreMadeOnlyWhenAskedForAndServed(t *testing.T) {
	g := NewWithT(t)
	made := func(values string, args ...string) bool {
		return slices.Contains(render(t, values, args...).names(), "PrometheusRule/"+release)
	}
	g.Expect(made("monitoring: {enabled: true}", served)).To(BeTrue())
	g.Expect(made("", served)).To(BeFalse(), "not asked for")
	g.Expect(made("monitoring: {enabled: true}")).To(BeFalse(), "not served")
	g.Expect(made("monitoring: {enabled: true, rules: {enabled: false}}", served)).To(BeFalse(), "only monitors are asked for")
}

func TestValuesChangeEachAlert(t *testing.T) {
	g := NewWithT(t)
	plain, _ := alerts(t, "")
	changed, _ := alerts(t, `
monitoring:
  rules:
    runbooks: https://wiki.example.com/parallelfs/
    overrides:
      ParallelFSDiskBusy: {disabled: true}
      ParallelFSDown: {for: 20m, severity: warning, labels: {team: storage}}
`)
	g.Expect(len(plain)).To(BeNumerically(">=", 30))
	g.Expect(changed).To(HaveLen(len(plain) - 1))
	g.Expect(changed).NotTo(HaveKey("ParallelFSDiskBusy"))
	down := changed["ParallelFSDown"]
	g.Expect(down.For).To(Equal("20m"))
	g.Expect(down.Labels).To(Equal(map[string]string{"severity": "warning", "team": "storage"}))
	g.Expect(down.Expr).To(Equal(plain["ParallelFSDown"].Expr))
	g.Expect(down.Annotations).To(HaveKeyWithValue("runbook_url", "https://wiki.example.com/parallelfs/ParallelFSDown.md"))
	g.Expect(changed["ParallelFSStalled"].Labels).To(Equal(plain["ParallelFSStalled"].Labels))

	out, err := helm(t, "monitoring: {enabled: true, rules: {overrides: {ParallelFSDwon: {disabled: true}}}}", "template", release, chart, registry, served, "--kube-version", oldest)
	g.Expect(err).To(HaveOccurred())
	g.Expect(out).To(ContainSubstring("monitoring.rules.overrides.ParallelFSDwon: there is no such alert"))
	for _, override := range []string{"for: soon", "severity: bad", "expr: up"} {
		out, err = helm(t, "monitoring: {rules: {overrides: {ParallelFSDown: {"+override+"}}}}", "template", release, chart, registry, "--kube-version", oldest)
		g.Expect(err).To(HaveOccurred(), override)
		g.Expect(out).To(ContainSubstring("ParallelFSDown"))
	}
}

func TestEveryAlertNamesItsObjectHasASeverityAndAReasonForItsTime(t *testing.T) {
	all, _ := alerts(t, "")
	text, err := os.ReadFile(chart + "/files/alerts.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    for:") {
			NewWithT(t).Expect(strings.TrimRight(line, "\n")).To(MatchRegexp(`^    for: \d+[mh] # \S.*$`), "the comment is the reason")
		}
	}
	for name, a := range all {
		g := NewWithT(t)
		g.Expect(name).To(HavePrefix("ParallelFS"))
		g.Expect(a.Labels["severity"]).To(BeElementOf("critical", "warning", "info"), name)
		if strings.Contains(a.Expr, "by (namespace, filesystem") {
			g.Expect(a.Annotations["summary"]).To(ContainSubstring("{{ $labels.namespace }}/{{ $labels.filesystem }}"), name)
		}
	}
}

func TestEveryAlertHasARunbookAndEveryRunbookAnAlert(t *testing.T) {
	g := NewWithT(t)
	all, _ := alerts(t, "")
	files, err := filepath.Glob("../docs/runbooks/*.md")
	g.Expect(err).NotTo(HaveOccurred())
	var pages []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			pages = append(pages, name)
		}
	}
	index, err := os.ReadFile("../docs/runbooks/README.md")
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for name, a := range all {
		names = append(names, name)
		g.Expect(a.Annotations).To(HaveKeyWithValue("runbook_url", "docs/runbooks/"+name+".md"))
		after := a.For
		if after == "" {
			after = "at once"
		}
		g.Expect(string(index)).To(ContainSubstring(fmt.Sprintf("| [%s](%s.md) | %s | %s |", name, name, a.Labels["severity"], after)))
		page, err := os.ReadFile("../docs/runbooks/" + name + ".md")
		g.Expect(err).NotTo(HaveOccurred())
		var headings []string
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "#") {
				headings = append(headings, strings.TrimSpace(line))
			}
		}
		g.Expect(headings).To(Equal([]string{"# " + name, "## Meaning", "## Impact", "## Diagnosis", "## Mitigation"}), name)
	}
	g.Expect(pages).To(ConsistOf(names))
}

func TestRunbooksNameOnlyLabelsAnnotationsAndCommandsThatThereAre(t *testing.T) {
	g := NewWithT(t)
	text := func(path string) string {
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		return string(content)
	}
	names, plugin := text("../api/v1alpha1/conditions.go"), text("../docs/kubectl-pfs.md")
	files, err := filepath.Glob("../docs/runbooks/*.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">", 30))
	for _, file := range files {
		page := text(file)
		for _, name := range regexp.MustCompile(`[a-z.]*parallelfs\.dev/[a-z-]+`).FindAllString(page, -1) {
			g.Expect(names).To(ContainSubstring(fmt.Sprintf("= %q\n", name)), file)
		}
		for _, command := range regexp.MustCompile(`kubectl pfs [a-z]+(?: [a-z]+(?:-[a-z]+)+)?`).FindAllString(page, -1) {
			g.Expect(plugin).To(ContainSubstring(command), file)
		}
	}
}

// exported returns the metrics in docs/metrics.md with their labels; a test keeps that page equal to the code. It adds metrics of
// Prometheus and controller-runtime.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string][]string{"controller_runtime_reconcile_errors_total": {"controller"}}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		out[row[1]] = strings.Split(row[2], ", ")
	}
	return out
}

func TestAlertsUseOnlyMetricsLabelsAndConditionsThatThereAre(t *testing.T) {
	known := exported(t)
	NewWithT(t).Expect(len(known)).To(BeNumerically(">", 30))
	conditions, err := os.ReadFile("../api/v1alpha1/conditions.go")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	all, _ := alerts(t, "")
	for name, a := range all {
		g := NewWithT(t)
		expression, err := parser.ParseExpr(a.Expr)
		g.Expect(err).NotTo(HaveOccurred(), name)
		used := 0
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			selector, is := node.(*parser.VectorSelector)
			if !is {
				return nil
			}
			used++
			metric := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(selector.Name, "")
			g.Expect(known).To(HaveKey(metric), name)
			for _, m := range selector.LabelMatchers {
				if m.Name == "__name__" {
					continue
				}
				g.Expect(known[metric]).To(ContainElement(m.Name), "%s: a label of %s", name, metric)
				if strings.Contains(metric, "_condition") && (m.Name == "type" || m.Name == "reason") {
					for value := range strings.SplitSeq(m.Value, "|") {
						g.Expect(string(conditions)).To(ContainSubstring(fmt.Sprintf("= %q\n", value)), name)
					}
				}
			}
			return nil
		})
		g.Expect(used).To(BeNumerically(">", 0), name)
	}
}

// healthy holds the series of a healthy hour. A number is a constant; 0+6 grows by 6 each minute.
var healthy = map[string]string{
	`parallelfs_build_info{instance="m1"}`:                                                "1",
	`controller_runtime_reconcile_errors_total{instance="m1",controller="storagetarget"}`: "0",
	`parallelfs_filesystem_pass_seconds_bucket{part="work",le="20"}`:                      "0+10",
	`parallelfs_filesystem_pass_seconds_bucket{part="work",le="80"}`:                      "0+10",
	`parallelfs_filesystem_pass_seconds_bucket{part="work",le="+Inf"}`:                    "0+10",
	`parallelfs_up{L}`:                                                                         "1",
	`parallelfs_license_valid{L}`:                                                              "1",
	`parallelfs_sessions{L}`:                                                                   "8",
	`parallelfs_chunks{L,state="missing"}`:                                                     "0",
	`parallelfs_chunks{L,state="endangered"}`:                                                  "0",
	`parallelfs_chunks{L,state="undergoal"}`:                                                   "0",
	`parallelfs_server_online{L,role="Metadata",id="1",address="m"}`:                           "1",
	`parallelfs_server_online{L,role="Storage",id="1",address="s1"}`:                           "1",
	`parallelfs_server_online{L,role="Storage",id="2",address="s2"}`:                           "1",
	`parallelfs_target_online{L,T1}`:                                                           "1",
	`parallelfs_target_online{L,T2}`:                                                           "1",
	`parallelfs_target_consistent{L,T1}`:                                                       "1",
	`parallelfs_target_capacity_bytes{L,T1}`:                                                   "100",
	`parallelfs_target_used_bytes{L,T1}`:                                                       "60",
	`parallelfs_target_inodes{L,T1}`:                                                           "100",
	`parallelfs_target_used_inodes{L,T1}`:                                                      "10",
	`parallelfs_target_capacity_pool{L,T1,pool="Normal"}`:                                      "1",
	`parallelfs_disk_busy_seconds_total{L,target="d1"}`:                                        "0+6",
	`parallelfs_filesystem_info{L,type="Example"}`:                                             "1",
	`parallelfs_filesystem_condition{L,type="Ready",status="True",reason="Healthy"}`:           "1",
	`parallelfs_filesystem_condition{L,type="BackedUp",status="True",reason="Verified"}`:       "1",
	`parallelfs_filesystem_condition{L,type="Upgrading",status="False",reason="UpgradeWaits"}`: "1",
	`parallelfs_filesystem_check{L,result="Clean"}`:                                            "1",
	`parallelfs_filesystem_backup_timestamp_seconds{L}`:                                        "1",
	`parallelfs_filesystem_pool_used_ratio{L,pool="ssd"}`:                                      "0.6",
	`parallelfs_filesystem_certificate_expiry_timestamp_seconds{L}`:                            "99999999",
	`parallelfs_filesystem_metadata_copies{L,state="asked"}`:                                   "2",
	`parallelfs_filesystem_metadata_copies{L,state="proven"}`:                                  "2",
	`parallelfs_filesystem_version_servers{L,version="1"}`:                                     "4",
	`parallelfs_filesystem_client_evictions{L,node="n1"}`:                                      "3",
	`parallelfs_filesystem_client_disconnected_targets{L,node="n1"}`:                           "0",
	`parallelfs_storage_target_conditions{L,type="Online",status="True",reason="Serving"}`:     "20",
	`parallelfs_storage_target_conditions{L,type="Online",status="False",reason="NotServing"}`: "0",
}

// change replaces the values of a series from a minute on: by another value, by "0+6" for growth, or by "gone". After that, the series
// continues as before.
type change struct {
	from, minutes int
	to            string
}

// values formats a series for promtool: a value for each minute.
func values(before string, changes []change, length int) string {
	var out []string
	at := 0
	add := func(value string, count int) {
		switch {
		case count <= 0:
		case value == "gone" || value == "":
			out = append(out, fmt.Sprintf("_x%d", count))
		case strings.Contains(value, "+"):
			start, step, _ := strings.Cut(value, "+")
			out = append(out, fmt.Sprintf("%s+%sx%d", start, step, count-1))
		default:
			out = append(out, fmt.Sprintf("%sx%d", value, count-1))
		}
		at += count
	}
	for _, c := range changes {
		add(before, c.from-at)
		add(c.to, min(c.minutes, length-c.from))
	}
	add(before, length-at)
	return strings.Join(out, " ")
}

// expectation is the result of a query at a minute: a number of firing alerts.
type expectation struct {
	query  string
	minute int
	firing bool
}

// world writes a test for promtool: healthy series with the given changes, and the alerts that fire.
func world(name string, length int, changes map[string][]change, expected []expectation) map[string]any {
	all := map[string][]change{}
	for series := range healthy {
		all[series] = nil
	}
	maps.Copy(all, changes)
	short := strings.NewReplacer("{L", `{namespace="storage",filesystem="scratch"`, "T1", `role="Storage",id="1",address="s1",path="/a"`,
		"T2", `role="Storage",id="2",address="s2",path="/a"`)
	var input, tests []any
	for series, c := range all {
		input = append(input, map[string]any{"series": short.Replace(series), "values": values(healthy[series], c, length)})
	}
	for _, e := range expected {
		samples := []any{}
		if e.firing {
			samples = append(samples, map[string]any{"labels": "{}", "value": 1})
		}
		tests = append(tests, map[string]any{"expr": "sum(" + e.query + ") > bool 0", "eval_time": fmt.Sprintf("%dm", e.minute), "exp_samples": samples})
	}
	return map[string]any{"name": name, "interval": "1m", "input_series": input, "promql_expr_test": tests}
}

// condition is the series of a condition of the FileSystem that is absent in a healthy hour.
func condition(kind, status, reason string) string {
	return fmt.Sprintf(`parallelfs_filesystem_condition{L,type=%q,status=%q,reason=%q}`, kind, status, reason)
}

func disk(kind, status, reason string) string {
	return fmt.Sprintf(`parallelfs_storage_target_condition{L,target="d1",node="n1",type=%q,status=%q,reason=%q}`, kind, status, reason)
}

func node(kind, status, reason string) string {
	return fmt.Sprintf(`parallelfs_filesystem_node_condition{L,node="n1",type=%q,status=%q,reason=%q}`, kind, status, reason)
}

const start = 10 // the minute at which the change of a test begins

// faults holds, for each alert, the series that make it fire from the minute start on.
var faults = map[string]map[string]string{
	"ParallelFSDown":                   {`parallelfs_up{L}`: "0"},
	"ParallelFSProbeAbsent":            {`parallelfs_up{L}`: "gone"},
	"ParallelFSNotReady":               {condition("Ready", "False", "MetadataOffline"): "1"},
	"ParallelFSStalled":                {condition("Stalled", "True", "InvalidSpec"): "1"},
	"ParallelFSDegraded":               {condition("Degraded", "True", "TargetsNotReady"): "1"},
	"ParallelFSReconcileFailing":       {condition("Reconciled", "False", "PassFailed"): "1"},
	"ParallelFSLicenseInvalid":         {`parallelfs_license_valid{L}`: "0"},
	"ParallelFSCertificateExpires":     {`parallelfs_filesystem_certificate_expiry_timestamp_seconds{L}`: "1209600"},
	"ParallelFSRecoveryNeedsDecision":  {condition("Recovering", "False", "ApprovalNeeded"): "1"},
	"ParallelFSCheckFoundDamage":       {`parallelfs_filesystem_check{L,result="Damaged"}`: "1"},
	"ParallelFSNodeNotReady":           {node("Ready", "False", "ServersOffline"): "1"},
	"ParallelFSMetadataServerOffline":  {`parallelfs_server_online{L,role="Metadata",id="1",address="m"}`: "0"},
	"ParallelFSStorageServerOffline":   {`parallelfs_server_online{L,role="Storage",id="2",address="s2"}`: "0"},
	"ParallelFSMaintenanceTooLong":     {node("Maintenance", "False", "MaintenanceTooLong"): "1"},
	"ParallelFSNodeRebootedUnasked":    {node("Maintenance", "False", "RebootedUnasked"): "1"},
	"ParallelFSGiveUpWaits":            {node("GivenUp", "False", "LossNotAccepted"): "1"},
	"ParallelFSVersionSkew":            {`parallelfs_filesystem_version_servers{L,version="2"}`: "1"},
	"ParallelFSUpgradeStuck":           {`parallelfs_filesystem_disruption_start_timestamp_seconds{L,kind="Upgrade"}`: "-43200"},
	"ParallelFSRestartStuck":           {`parallelfs_filesystem_disruption_start_timestamp_seconds{L,kind="Restart"}`: "-43200"},
	"ParallelFSChangesHeldTooLong":     {`parallelfs_filesystem_disruption_start_timestamp_seconds{L,kind="ChangesHeld"}`: "-43200"},
	"ParallelFSTargetOffline":          {disk("Online", "False", "NotServing"): "1"},
	"ParallelFSManyTargetsOffline":     {`parallelfs_storage_target_conditions{L,type="Online",status="False",reason="NotServing"}`: "3"},
	"ParallelFSTargetFlapping":         {`parallelfs_target_online{L,T1}`: "flaps"},
	"ParallelFSDiskMissing":            {disk("Ready", "False", "TargetMissing"): "1"},
	"ParallelFSDiskFailing":            {disk("DiskHealthy", "False", "DiskFailing"): "1"},
	"ParallelFSDiskSuspect":            {disk("DiskHealthy", "False", "DiskSuspect"): "1"},
	"ParallelFSDiskMediaErrors":        {`parallelfs_disk_media_errors_total{L,target="d1"}`: "3+1"},
	"ParallelFSTargetNeedsPerson":      {disk("Stalled", "True", "AwaitingApproval"): "1"},
	"ParallelFSWipeFailed":             {disk("Destroyed", "False", "WipeFailed"): "1"},
	"ParallelFSAgentMissing":           {disk("Ready", "False", "AgentMissing"): "1"},
	"ParallelFSTargetInconsistent":     {`parallelfs_target_consistent{L,T1}`: "0"},
	"ParallelFSTargetNearlyFull":       {`parallelfs_target_used_bytes{L,T1}`: "91"},
	"ParallelFSInodesLow":              {`parallelfs_target_used_inodes{L,T1}`: "91"},
	"ParallelFSTargetInEmergencyPool":  {`parallelfs_target_capacity_pool{L,T1,pool="Emergency"}`: "1"},
	"ParallelFSPoolFull":               {`parallelfs_filesystem_pool_used_ratio{L,pool="ssd"}`: "0.96"},
	"ParallelFSPoolNearlyFull":         {`parallelfs_filesystem_pool_used_ratio{L,pool="ssd"}`: "0.86"},
	"ParallelFSPoolFillsSoon":          {`parallelfs_filesystem_pool_used_ratio{L,pool="ssd"}`: "0.6+0.001"},
	"ParallelFSChunksMissing":          {`parallelfs_chunks{L,state="missing"}`: "1"},
	"ParallelFSChunksEndangered":       {`parallelfs_chunks{L,state="endangered"}`: "1"},
	"ParallelFSDataRecoveryTakesLong":  {`parallelfs_chunks{L,state="undergoal"}`: "1"},
	"ParallelFSSpreadLost":             {condition("Spread", "False", "CopiesTogether"): "1"},
	"ParallelFSMetadataBackupFailing":  {condition("BackedUp", "False", "Failed"): "1"},
	"ParallelFSMetadataBackupOld":      {`parallelfs_filesystem_backup_timestamp_seconds{L}`: "-604800"},
	"ParallelFSNoMetadataBackup":       {condition("BackedUp", "False", "NotConfigured"): "1"},
	"ParallelFSMetadataCopiesUnproven": {`parallelfs_filesystem_metadata_copies{L,state="proven"}`: "1"},
	"ParallelFSClientsDropped":         {`parallelfs_sessions{L}`: "3"},
	"ParallelFSClientDisconnected":     {`parallelfs_filesystem_client_disconnected_targets{L,node="n1"}`: "2"},
	"ParallelFSClientEvicted":          {`parallelfs_filesystem_client_evictions{L,node="n1"}`: "4"},
	"ParallelFSPinningDrift":           {condition("Pinned", "False", "Drifted"): "1"},
	"ParallelFSPodsChanged":            {condition("PodsAsAsked", "False", "ChangedByAdmission"): "1"},
	"ParallelFSNodesNotSelected":       {condition("NodesSelected", "False", "Unmatched"): "1"},
	"ParallelFSDiskBusy":               {`parallelfs_disk_busy_seconds_total{L,target="d1"}`: "60+60"},
	"ParallelFSManagerAbsent":          {`parallelfs_build_info{instance="m1"}`: "gone"},
	"ParallelFSReconcileErrors":        {`controller_runtime_reconcile_errors_total{instance="m1",controller="storagetarget"}`: "0+6"},
	"ParallelFSPassesSlow":             {`parallelfs_filesystem_pass_seconds_bucket{part="work",le="20"}`: "100"},
	"ParallelFSBenchmarkStalled":       {`parallelfs_benchmark_run_condition{L,run="r",type="Stalled",status="True",reason="NoClients"}`: "1"},
}

// late is by how many minutes an expression is later than its series, for rates and for series that are gone.
const late = 12

// fault is the test of one alert: silent before, silent while "for" has not passed, and firing after it, with the labels of its summary.
func fault(t *testing.T, a alert) map[string]any {
	t.Helper()
	after, err := time.ParseDuration(a.For + "0s")
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), a.Alert)
	fires := start + int(after.Minutes()) + late
	changes := map[string][]change{}
	for series, to := range faults[a.Alert] {
		if to != "flaps" {
			changes[series] = []change{{from: start, minutes: fires, to: to}}
			continue
		}
		for i := range 5 {
			changes[series] = append(changes[series], change{from: start + 2*i, minutes: 1, to: "0"})
		}
	}
	query := fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"`, a.Alert)
	silent := query + "}"
	for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.Annotations["summary"], -1) {
		query += "," + label[1] + `!=""`
	}
	expected := []expectation{{silent, start - 1, false}, {query + "}", fires, true}}
	if after > time.Minute {
		expected = append(expected, expectation{silent, start + int(after.Minutes()) - 1, false})
	}
	return world(a.Alert, fires+1, changes, expected)
}

// quiet is a test in which no alert fires at any minute of five.
func quiet(name string, length int, changes map[string][]change) map[string]any {
	var expected []expectation
	for minute := 5; minute < length; minute += 5 {
		expected = append(expected, expectation{`ALERTS{alertstate="firing"}`, minute, false})
	}
	return world(name, length, changes, expected)
}

func TestEachAlertFiresWhenItShouldAndNoneInAHealthyHourOrAPlannedDisruption(t *testing.T) {
	g := NewWithT(t)
	all, spec := alerts(t, "")
	for name := range all {
		g.Expect(faults).To(HaveKey(name), "the alert has no test")
	}
	g.Expect(faults).To(HaveLen(len(all)), "there is a test of an alert that there is not")

	during := func(from, minutes int, to string) []change { return []change{{from: from, minutes: minutes, to: to}} }
	tests := []any{quiet("a healthy hour", 61, nil),
		// Each server is away for three minutes, the master or management service for two. Clients come back one after the other.
		quiet("servers that restart in turn", 91, map[string][]change{
			`parallelfs_filesystem_disruption_start_timestamp_seconds{L,kind="Restart"}`: during(10, 50, "600"),
			condition("Ready", "False", "MetadataOffline"):                               during(16, 8, "1"),
			condition("Degraded", "True", "TargetsNotReady"):                             during(10, 50, "1"),
			`parallelfs_up{L}`: during(16, 2, "0"),
			`parallelfs_server_online{L,role="Storage",id="1",address="s1"}`:                           during(10, 3, "0"),
			`parallelfs_server_online{L,role="Storage",id="2",address="s2"}`:                           during(13, 3, "0"),
			`parallelfs_server_online{L,role="Metadata",id="1",address="m"}`:                           during(16, 3, "0"),
			`parallelfs_target_online{L,T1}`:                                                           during(10, 3, "0"),
			`parallelfs_target_online{L,T2}`:                                                           during(13, 3, "0"),
			node("Ready", "False", "ServersOffline"):                                                   during(10, 4, "1"),
			disk("Online", "False", "NotServing"):                                                      during(10, 4, "1"),
			`parallelfs_storage_target_conditions{L,type="Online",status="False",reason="NotServing"}`: during(10, 6, "10"),
			`parallelfs_chunks{L,state="missing"}`:                                                     during(10, 3, "7"),
			`parallelfs_chunks{L,state="endangered"}`:                                                  during(10, 40, "9"),
			`parallelfs_chunks{L,state="undergoal"}`:                                                   during(10, 60, "99"),
			`parallelfs_target_consistent{L,T1}`:                                                       during(13, 15, "0"),
			`parallelfs_sessions{L}`:                                                                   during(16, 6, "2"),
			`parallelfs_filesystem_client_disconnected_targets{L,node="n1"}`:                           during(10, 9, "2"),
			`parallelfs_filesystem_client_evictions{L,node="n1"}`:                                      during(17, 200, "4"),
			`parallelfs_filesystem_version_servers{L,version="2"}`:                                     during(10, 50, "1"),
		}),
		quiet("a node in maintenance for three hours", 241, map[string][]change{
			`parallelfs_filesystem_node_maintenance_start_timestamp_seconds{L,node="n1"}`:              during(10, 190, "600"),
			condition("Degraded", "True", "NodesAway"):                                                 during(12, 180, "1"),
			node("Ready", "False", "ServersOffline"):                                                   during(12, 180, "1"),
			node("Maintenance", "True", "InMaintenance"):                                               during(10, 190, "1"),
			disk("Online", "False", "NotServing"):                                                      during(12, 180, "1"),
			disk("Ready", "False", "AgentMissing"):                                                     during(12, 180, "1"),
			disk("Stalled", "True", "AgentMissing"):                                                    during(12, 180, "1"),
			`parallelfs_storage_target_conditions{L,type="Online",status="False",reason="NotServing"}`: during(12, 180, "10"),
			`parallelfs_server_online{L,role="Storage",id="1",address="s1"}`:                           during(12, 180, "0"),
			`parallelfs_target_online{L,T1}`:                                                           during(12, 180, "0"),
			`parallelfs_target_consistent{L,T1}`:                                                       during(12, 185, "0"),
			`parallelfs_chunks{L,state="endangered"}`:                                                  during(12, 185, "9"),
			`parallelfs_chunks{L,state="undergoal"}`:                                                   during(12, 185, "99"),
			`parallelfs_filesystem_client_disconnected_targets{L,node="n1"}`:                           during(12, 180, "2"),
			`parallelfs_filesystem_client_evictions{L,node="n1"}`:                                      during(13, 300, "4"),
		}),
		quiet("a benchmark that keeps a disk busy", 91, map[string][]change{
			`parallelfs_benchmark_run_condition{L,run="r",type="Succeeded",status="Unknown",reason="Running"}`: during(5, 86, "1"),
			`parallelfs_disk_busy_seconds_total{L,target="d1"}`:                                                during(10, 60, "60+60"),
		}),
	}
	directory := t.TempDir()
	write := func(name string, content any) string {
		text, err := yaml.Marshal(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.WriteFile(filepath.Join(directory, name), text, 0o600)).To(Succeed())
		return filepath.Join(directory, name)
	}
	testFile := func(name string, rules ruleFile, tests ...any) string {
		write(name+".rules.yaml", rules)
		return write(name+".yaml", map[string]any{"rule_files": []string{name + ".rules.yaml"}, "evaluation_interval": "1m", "tests": tests})
	}
	arguments := []string{"test", "rules", testFile("all", spec, tests...)}
	for name, a := range all { // alone, because promtool evaluates each rule at each minute
		alone := ruleFile{Groups: []ruleGroup{{Name: name, Rules: []alert{a}}}}
		arguments = append(arguments, testFile(name, alone, fault(t, a)))
	}
	out, err := promtool(t, "check", "rules", filepath.Join(directory, "all.rules.yaml"))
	g.Expect(err).NotTo(HaveOccurred(), out)
	out, err = promtool(t, arguments...)
	g.Expect(err).NotTo(HaveOccurred(), out)
}
