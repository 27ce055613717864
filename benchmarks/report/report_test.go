package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/report"
	"parallelfs.dev/operator/benchmarks/results"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join("testdata", name)
	if *update {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, got, 0o600)).To(Succeed())
		return
	}
	want, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(got, want)).To(BeTrue(), "%s differs from what was written; look at it with -update", path)
}

func TestTheSampleDocumentsAreThoseOfTheFormula(t *testing.T) {
	g := NewWithT(t)
	run, err := results.Encode(sampleRun())
	g.Expect(err).NotTo(HaveOccurred())
	golden(t, "sample-run.json", run)
	suite, err := results.EncodeSuite(sampleSuite())
	g.Expect(err).NotTo(HaveOccurred())
	golden(t, "sample-suite.json", suite)
}

func TestTheReportOfARunIsWhatWasLookedAt(t *testing.T) {
	g := NewWithT(t)
	r, err := report.OfRun(sampleRun(), report.MinMax)
	g.Expect(err).NotTo(HaveOccurred())
	var html, markdown bytes.Buffer
	g.Expect(r.HTML(&html)).To(Succeed())
	golden(t, "sample-run.html", html.Bytes())
	g.Expect(r.Markdown(&markdown)).To(Succeed())
	golden(t, "sample-run.md", markdown.Bytes())
}

func TestTheReportOfASuiteIsWhatWasLookedAt(t *testing.T) {
	g := NewWithT(t)
	r, err := report.OfSuite(sampleSuite(), report.Confidence)
	g.Expect(err).NotTo(HaveOccurred())
	var html, markdown bytes.Buffer
	g.Expect(r.HTML(&html)).To(Succeed())
	golden(t, "sample-suite.html", html.Bytes())
	g.Expect(r.Markdown(&markdown)).To(Succeed())
	golden(t, "sample-suite.md", markdown.Bytes())
}

func TestTheReportNamesWhatDiffersFromTheBaseline(t *testing.T) {
	g := NewWithT(t)
	run := sampleRun()
	run.Comparison = &results.Comparison{
		Of: "before", Summary: "nothing was compared", Refused: []results.Difference{{What: "fio.directIO", Here: "true", There: "false"}},
		Differs: []results.Difference{{What: "the tool's version", Here: "4.0.0", There: "3.3.0"}},
	}
	r, err := report.OfRun(run, report.Confidence)
	g.Expect(err).NotTo(HaveOccurred())
	var html, markdown bytes.Buffer
	g.Expect(r.HTML(&html)).To(Succeed())
	g.Expect(r.Markdown(&markdown)).To(Succeed())
	g.Expect(markdown.String()).To(And(ContainSubstring("fio.directIO is true here and false there"), ContainSubstring("version is 4.0.0 here and 3.3.0 there")))
	g.Expect(html.String()).To(And(ContainSubstring("<li>fio.directIO is true here and false there</li>"), ContainSubstring("<p>nothing was compared.</p>")))
}

// hostile is a run whose every text would change the document if it were not escaped.
func hostile() results.Run {
	run := sampleRun()
	const text = `<script src="http://evil.example/x.js">|</script><img src=//evil.example/y onerror=z> url(http://evil.example) "' & | `
	run.Name, run.Namespace, run.Provenance.Image, run.Provenance.Pinning = text, text, text, text
	run.Provenance.Clients[0].CPUModel, run.Provenance.FileSystem, run.Provenance.Servers[0].Message = text, text, text
	run.Spec.Image = text
	for i := range run.Points {
		p := &run.Points[i]
		p.Message, p.Placement, p.Command = text, text, []string{text, text}
		for j := range p.Parameters {
			if p.Parameters[j].Name == "mdtest.writeBytes" {
				p.Parameters[j].Value += text
			}
		}
		for j := range p.Metrics {
			p.Metrics[j].Name, p.Metrics[j].Unit = text, text
			p.Metrics[j].Baseline.Of = text
		}
		p.Metrics = p.Metrics[:min(1, len(p.Metrics))]
		for j := range p.Attempts {
			p.Attempts[j].Error = text
			for k := range p.Attempts[j].Telemetry {
				p.Attempts[j].Telemetry[k].Target, p.Attempts[j].Telemetry[k].Problem = text, text
			}
		}
	}
	return run
}

func TestAPageAsksTheNetworkForNothing(t *testing.T) {
	resource := regexp.MustCompile(`(?i)(<script|<link|<img|<iframe|<object|<embed|<image|@import|@font-face|url\(|\bon[a-z]+\s*=\s*["']|` +
		`\b(src|href|xlink:href|srcset|data|action|poster)\s*=\s*["']?[^#"'\s])`)
	outside := regexp.MustCompile(`(?i)<[^>]*(https?:)?//[^>]*>`)
	for name, run := range map[string]results.Run{"of samples": sampleRun(), "of texts that would like to": hostile()} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, err := report.OfRun(run, report.MinMax)
			g.Expect(err).NotTo(HaveOccurred())
			var page bytes.Buffer
			g.Expect(r.HTML(&page)).To(Succeed())
			// Text between tags is harmless, whatever it contains; text in a tag or a style is not.
			active := regexp.MustCompile(`(?s)<style>.*?</style>|<[a-zA-Z/!][^>]*>`).FindAllString(page.String(), -1)
			g.Expect(len(active)).To(BeNumerically(">", 500))
			for _, tag := range active {
				unnamed := strings.ReplaceAll(tag, `xmlns="http://www.w3.org/2000/svg"`, "")
				if label := strings.Contains(unnamed, "aria-label="); label {
					unnamed = regexp.MustCompile(`aria-label="[^"]*"`).ReplaceAllString(unnamed, "")
				}
				g.Expect(unnamed).NotTo(MatchRegexp(outside.String()))
				g.Expect(resource.FindString(unnamed)).To(BeEmpty(), unnamed)
			}
			g.Expect(page.String()).NotTo(ContainSubstring("ZgotmplZ"))
		})
	}
}

func TestAPageIsWellFormedAndDescribesItsPictures(t *testing.T) {
	for name, run := range map[string]results.Run{"of samples": sampleRun(), "of texts that are no names": hostile()} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, err := report.OfRun(run, report.MinMax)
			g.Expect(err).NotTo(HaveOccurred())
			var page bytes.Buffer
			g.Expect(r.HTML(&page)).To(Succeed())
			g.Expect(page.String()).To(HavePrefix("<!DOCTYPE html>\n<html lang=\"en\">"))
			svgs := regexp.MustCompile(`(?s)<svg .*?</svg>`).FindAllString(page.String(), -1)
			g.Expect(svgs).NotTo(BeEmpty())
			ids := map[string]bool{}
			for _, svg := range svgs {
				g.Expect(wellFormed(svg)).To(Succeed())
				g.Expect(svg).To(MatchRegexp(`(?s)^<svg role="img" viewBox="0 0 \d+ \d+" .*<title id=.*<desc id="[^"]+">Line chart of .+ over processes`))
				id := regexp.MustCompile(`title id="([^"]+)"`).FindStringSubmatch(svg)[1]
				g.Expect(ids).NotTo(HaveKey(id))
				ids[id] = true
			}
			g.Expect(strings.Count(page.String(), "<th scope=\"col\"")).To(Equal(strings.Count(page.String(), "<th ")))
			g.Expect(strings.Count(page.String(), "<table>")).To(Equal(strings.Count(page.String(), "<caption>")))
		})
	}
}

// wellFormed parses a text as XML to its end.
func wellFormed(text string) error {
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestAPictureIsAPNG(t *testing.T) {
	g := NewWithT(t)
	r, err := report.OfRun(sampleRun(), report.Confidence)
	g.Expect(err).NotTo(HaveOccurred())
	var picture bytes.Buffer
	g.Expect(r.PNG(&picture)).To(Succeed())
	size, err := png.DecodeConfig(&picture)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(size.Width).To(BeNumerically(">", 1500))
	g.Expect(size.Height).To(BeNumerically(">", 1500))
}

func TestARunWithoutResultsHasAReportToo(t *testing.T) {
	g := NewWithT(t)
	run := sampleRun()
	for i := range run.Points {
		run.Points[i].State, run.Points[i].Metrics, run.Points[i].Attempts = "Pending", nil, nil
	}
	for _, points := range [][]results.Point{run.Points, nil} {
		run.Points = points
		r, err := report.OfRun(run, report.MinMax)
		g.Expect(err).NotTo(HaveOccurred())
		var page, text bytes.Buffer
		g.Expect(r.HTML(&page)).To(Succeed())
		g.Expect(page.String()).To(ContainSubstring("no point has a result yet"))
		g.Expect(r.Markdown(&text)).To(Succeed())
		g.Expect(r.PNG(&text)).To(MatchError(ContainSubstring("no point has a result yet")))
	}
}

func BenchmarkReportOf256PointsWith9Metrics(b *testing.B) {
	run := sampleRun()
	run.Points = nil
	for i := range 256 {
		p := samplePoint(i, 1<<(i%8), 1, 0.05, []results.Value{
			{Name: "processes", Value: fmt.Sprint(1 << (i % 8))}, {Name: "mdtest.writeBytes", Value: fmt.Sprint(i / 8 % 8)}, {Name: "storagePool", Value: fmt.Sprint("p", i/64)},
		}, 0.98)
		for _, suffix := range []string{" b", " c"} {
			for _, m := range p.Metrics[:3] {
				m.Name += suffix
				p.Metrics = append(p.Metrics, m)
			}
		}
		run.Points = append(run.Points, p)
	}
	run.Spec.Sweep = append(run.Spec.Sweep, v1alpha1.SweepDimension{Name: "storagePool"})
	size := 0
	for b.Loop() {
		r, err := report.OfRun(run, report.MinMax)
		if err != nil {
			b.Fatal(err)
		}
		var page bytes.Buffer
		if err := r.HTML(&page); err != nil {
			b.Fatal(err)
		}
		size = page.Len()
	}
	b.ReportMetric(float64(size)/1e6, "MB/page")
}
