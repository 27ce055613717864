package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/controllers/metrics"
	"parallelfs.dev/operator/internal/node/probe"
	"parallelfs.dev/operator/internal/node/telemetry"
)

// exporters holds all collectors of the code, by the heading of their table in metrics.md.
var exporters = map[string][]prometheus.Collector{
	"## Manager": append([]prometheus.Collector{&metrics.Collector{}}, filesystem.Metrics()...),
	"## Probe":   {probe.Metrics()},
	"## Agent":   {telemetry.Metrics(), telemetry.HealthCollector{}},
}

var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// rowsOf returns the rows of the table of some collectors, sorted by name.
func rowsOf(t *testing.T, collectors []prometheus.Collector) string {
	t.Helper()
	g := NewWithT(t)
	descriptions := make(chan *prometheus.Desc, 100)
	for _, c := range collectors {
		c.Describe(descriptions)
	}
	close(descriptions)
	var rows []string
	for d := range descriptions {
		parts := description.FindStringSubmatch(d.String())
		g.Expect(parts).NotTo(BeNil(), d.String())
		name, err := strconv.Unquote(parts[1])
		g.Expect(err).NotTo(HaveOccurred())
		help, err := strconv.Unquote(parts[2])
		g.Expect(err).NotTo(HaveOccurred())
		rows = append(rows, fmt.Sprintf("| %#q | %s | %s |\n", name, strings.ReplaceAll(parts[3], ",", ", "), help))
	}
	slices.Sort(rows)
	return strings.Join(rows, "")
}

func TestTheTableOfMetricsIsWhatTheCodeExports(t *testing.T) {
	page := read(t, "metrics.md")
	for heading, collectors := range exporters {
		_, section, found := strings.Cut(page, "\n"+heading+"\n")
		NewWithT(t).Expect(found).To(BeTrue(), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		_, table, found := strings.Cut(section, "|---|---|---|\n")
		NewWithT(t).Expect(found).To(BeTrue(), heading)
		table, _, _ = strings.Cut(table, "\n\n")
		if want := rowsOf(t, collectors); strings.TrimSpace(table) != strings.TrimSpace(want) {
			t.Errorf("%s of metrics.md: make its table\n%s", heading, want)
		}
	}
}
