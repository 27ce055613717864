package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/benchmarks/results"
)

// called is the result of a call of the program.
type called struct {
	code           int
	stdout, stderr string
}

// executed is the command line that the program has started last.
var executed []string

// on runs the program against a cluster with these objects. looks are the changes before the second poll of watch, the third, and so on.
func on(t *testing.T, objects []client.Object, looks ...func(client.Client)) func(args ...string) called {
	t.Helper()
	_, pfs := cluster(t, objects, looks...)
	return pfs
}

// cluster does the same and returns the cluster, so that a test can read it afterwards.
func cluster(t *testing.T, objects []client.Object, looks ...func(client.Client)) (client.Client, func(args ...string) called) {
	t.Helper()
	return clusterThrough(t, objects, interceptor.Funcs{}, looks...)
}

// clusterThrough is cluster, whose requests go through functions of the test.
func clusterThrough(t *testing.T, objects []client.Object, funcs interceptor.Funcs, looks ...func(client.Client)) (client.Client, func(args ...string) called) {
	t.Helper()
	return clusterThat(t, objects, funcs, "", looks...)
}

// clusterThat is clusterThrough with the text that a person types.
func clusterThat(
	t *testing.T, objects []client.Object, funcs interceptor.Funcs, typed string, looks ...func(client.Client),
) (client.Client, func(args ...string) called) {
	t.Helper()
	g := NewWithT(t)
	known, err := scheme()
	g.Expect(err).NotTo(HaveOccurred())
	c := fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return c, func(args ...string) called {
		a := &app{
			connect: func(flags clusterFlags) (connection, error) {
				namespace := flags.namespace
				if namespace == "" {
					namespace = "storage"
				}
				return connection{c, namespace, printed{}}, nil
			},
			tools: registry.Tools(), stdin: strings.NewReader(typed),
			execute: func(_ context.Context, argv []string) (int, error) { executed = argv; return 7, nil },
			now:     func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) },
		}
		a.wait = func(context.Context, time.Duration) bool {
			if len(looks) == 0 {
				return false
			}
			looks[0](c)
			looks = looks[1:]
			return true
		}
		var stdout, stderr bytes.Buffer
		code := a.run(t.Context(), args, &stdout, &stderr)
		return called{code, stdout.String(), stderr.String()}
	}
}

func metricOf(name string, value, spread float64) results.Metric {
	deviation := spread
	return results.Metric{
		Name: name, Unit: "ops/s", Value: value, Mean: value, Min: value - spread, Max: value + spread, StdDev: &deviation, Samples: 5,
	}
}

// documentOf returns a document of three points, whose creates are those of the first times a factor.
func documentOf(name, uid string, factor float64) results.Run {
	run := results.Run{
		Format: results.Format, Name: name, Namespace: "storage", UID: uid,
		Spec: v1alpha1.BenchmarkRunSpec{
			Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}, Tool: v1alpha1.ToolMdtest, Mdtest: &v1alpha1.MdtestSpec{}, Repetitions: 5,
			Statistic: v1alpha1.StatisticMean,
			Sweep:     []v1alpha1.SweepDimension{{Name: "processes", Values: []v1alpha1.SweepValue{"1", "2", "4"}}},
		},
	}
	for i, processes := range []string{"1", "2", "4"} {
		run.Points = append(run.Points, results.Point{
			Index: i, State: v1alpha1.PointSucceeded, Parameters: []results.Value{{Name: "processes", Value: processes}},
			Metrics: []results.Metric{metricOf("File creation", 1000*float64(i+1)*factor, 10)},
		})
	}
	return run
}

// runObjects returns a BenchmarkRun and the ConfigMap of its results.
func runObjects(t *testing.T, name string, factor float64) []client.Object {
	t.Helper()
	g := NewWithT(t)
	doc := documentOf(name, "uid-of-"+name, factor)
	packed, err := results.Pack(doc, 900000)
	g.Expect(err).NotTo(HaveOccurred())
	return []client.Object{
		&v1alpha1.BenchmarkRun{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage", UID: types.UID("uid-of-" + name)}, Spec: doc.Spec,
			Status: v1alpha1.BenchmarkRunStatus{
				Results: name + "-results", Progress: "3/3",
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllPointsSucceeded}},
				Points: []v1alpha1.PointStatus{{
					State: v1alpha1.PointSucceeded, Parameters: []v1alpha1.PointParameter{{Name: "processes", Value: "1"}},
					Metrics: []v1alpha1.MetricResult{{Name: "File creation", Unit: "ops/s", Value: "77", Samples: 1}},
				}},
			},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-results", Namespace: "storage"}, BinaryData: packed.Files},
	}
}

// save writes a document to a file.
func save(t *testing.T, run results.Run) string {
	t.Helper()
	g := NewWithT(t)
	data, err := results.Encode(run)
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(t.TempDir(), run.Name+".json")
	g.Expect(os.WriteFile(path, data, 0o600)).To(Succeed())
	return path
}

func TestEveryCommandTeachesByHelp(t *testing.T) {
	pfs := on(t, nil)
	for _, command := range []string{
		"", "bench", "bench list", "bench watch", "bench report", "bench compare", "bench parse", "bench tables", "baseline list",
		"node", "node give-up", "node take-back", "node accept-loss", "node allow-maintenance", "node machine-is-off", "node profile", "recover", "plan",
	} {
		g := NewWithT(t)
		got := pfs(append(strings.Fields(command), "--help")...)
		g.Expect(got.code).To(Equal(exitGood), command)
		g.Expect(got.stdout).To(ContainSubstring("kubectl pfs"), command)
		if strings.Contains(command, " ") && command != "bench list" || command == "recover" {
			g.Expect(got.stdout).To(ContainSubstring("Examples:"), command)
		}
	}
}

func TestACommandLineThatCanNotBeUnderstoodEndsWithTwo(t *testing.T) {
	pfs := on(t, nil)
	for _, line := range []string{
		"nothing", "bench nothing", "bench list --nothing", "bench watch", "bench watch a b", "bench report", "bench report a --from b.json",
		"bench report a -o pdf", "bench report a --file a.pdf", "bench report a --error-bars 3", "bench compare a", "bench parse --tool mdtest",
		"bench parse --tool nothing x.txt", "bench parse --tool mdtest -o html x.txt", "bench parse --tool mdtest --set depth x.txt",
		"bench parse --tool mdtest --processes -1 x.txt", "node nothing", "node give-up scratch", "node machine-is-off scratch", "node profile", "node profile a -o yaml", "recover", "recover a --plan --withdraw",
		"recover a --approve 1 --plan", "recover a --approve 1 --from b", "recover a --withdraw --from b", "plan", "plan a",
	} {
		g := NewWithT(t)
		got := pfs(strings.Fields(line)...)
		g.Expect(got.code).To(Equal(exitUsage), line)
		g.Expect(got.stderr).To(ContainSubstring("see --help"), line)
		g.Expect(got.stdout).To(BeEmpty(), line)
	}
}

func TestTheListHoldsRunsAndSuites(t *testing.T) {
	g := NewWithT(t)
	objects := append(runObjects(t, "creates", 1),
		&v1alpha1.BenchmarkSuite{
			ObjectMeta: metav1.ObjectMeta{Name: "backends", Namespace: "storage"},
			Spec:       v1alpha1.BenchmarkSuiteSpec{Variants: []v1alpha1.SuiteVariant{{Name: "a"}, {Name: "b"}}},
			Status:     v1alpha1.BenchmarkSuiteStatus{Progress: "1/2", Conditions: []metav1.Condition{{Type: "Succeeded", Status: "Unknown", Reason: "Running"}}},
		},
		&v1alpha1.BenchmarkRun{
			ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: "other"}, Spec: v1alpha1.BenchmarkRunSpec{Tool: "fio"},
			Status: v1alpha1.BenchmarkRunStatus{Conditions: []metav1.Condition{
				{Type: "Succeeded", Status: "False", Reason: "ImageRequired"}, {Type: "Stalled", Status: "True", Reason: "ImageRequired"},
			}},
		})
	pfs := on(t, objects)
	got := pfs("bench", "list")
	g.Expect(got.code).To(Equal(exitGood))
	g.Expect(got.stdout).To(MatchRegexp(`suite +backends +2 variants +1/2 +Running`))
	g.Expect(got.stdout).To(MatchRegexp(`run +creates +mdtest on FileSystem scratch +3/3 +Succeeded`))
	g.Expect(got.stdout).NotTo(ContainSubstring("elsewhere"))
	g.Expect(pfs("bench", "list", "-A").stdout).To(MatchRegexp(`other +run +elsewhere .*Stalled: ImageRequired`))
	g.Expect(pfs("bench", "list", "-n", "empty").stderr).To(ContainSubstring("no BenchmarkRun or BenchmarkSuite in the namespace empty"))
}

func TestAReportIsOfTheCompleteResults(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, runObjects(t, "creates", 1))
	for format, holds := range map[string]string{
		"html": "<h1>creates</h1>", "markdown": "# BenchmarkRun creates", "csv": "File creation,ops/s,3000", "json": `"uid":"uid-of-creates"`, "png": "\x89PNG",
	} {
		got := pfs("bench", "report", "creates", "-o", format)
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(strings.ReplaceAll(got.stdout, `": "`, `":"`)).To(ContainSubstring(holds), format)
		g.Expect(got.stderr).To(BeEmpty())
	}
	path := filepath.Join(t.TempDir(), "report.md")
	g.Expect(pfs("bench", "report", "creates", "--file", path).stderr).To(ContainSubstring("Wrote " + path))
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(HavePrefix("# BenchmarkRun creates"))
}

func TestAReportWithoutTheCompleteResultsHasANote(t *testing.T) {
	t.Run("when their ConfigMap is not there", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, runObjects(t, "creates", 1)[:1])("bench", "report", "creates", "-o", "csv")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(got.stdout).To(ContainSubstring("File creation,ops/s,77"))
		g.Expect(got.stderr).To(ContainSubstring("the ConfigMap creates-results is not there; these are the rounded numbers of the status"))
	})
	t.Run("when they are of an earlier run of that name", func(t *testing.T) {
		g := NewWithT(t)
		objects := runObjects(t, "creates", 1)
		objects[0].SetUID("another")
		got := on(t, objects)("bench", "report", "creates", "-o", "csv")
		g.Expect(got.stdout).To(ContainSubstring("File creation,ops/s,77"))
		g.Expect(got.stdout).NotTo(ContainSubstring("3000"))
		g.Expect(got.stderr).To(ContainSubstring("another run of the same name"))
	})
	t.Run("and a run that is not there is an error", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, nil)("bench", "report", "creates")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stderr).To(ContainSubstring("there is no BenchmarkRun or BenchmarkSuite creates in the namespace storage"))
	})
}

func TestASuiteWithoutCompleteResultsIsPutTogetherFromItsRuns(t *testing.T) {
	g := NewWithT(t)
	objects := append(runObjects(t, "s-a-creates", 1), runObjects(t, "s-b-creates", 2)...)
	objects = append(objects, &v1alpha1.BenchmarkSuite{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "storage"},
		Spec:       v1alpha1.BenchmarkSuiteSpec{Variants: []v1alpha1.SuiteVariant{{Name: "a", Scale: 1}, {Name: "b", Scale: 2}, {Name: "c", Scale: 4}}},
		Status: v1alpha1.BenchmarkSuiteStatus{Variants: []v1alpha1.SuiteVariantStatus{
			{Name: "a", Runs: []v1alpha1.SuiteRunStatus{{Name: "creates", BenchmarkRun: "s-a-creates"}}},
			{Name: "b", Runs: []v1alpha1.SuiteRunStatus{{Name: "creates", BenchmarkRun: "s-b-creates"}}},
			{Name: "c", Runs: []v1alpha1.SuiteRunStatus{{Name: "creates", BenchmarkRun: "s-c-creates"}}},
		}},
	})
	pfs := on(t, objects)
	got := pfs("bench", "report", "s", "-o", "json")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stderr).To(And(ContainSubstring("put together from its runs"), ContainSubstring("s-c-creates is gone")))
	var suite results.Suite
	g.Expect(json.Unmarshal([]byte(got.stdout), &suite)).To(Succeed())
	g.Expect(suite.Variants).To(HaveLen(3))
	g.Expect(suite.Variants[1].Scale).To(BeEquivalentTo(2))
	g.Expect(suite.Variants[1].Runs[0].Run.Points[2].Metrics[0].Value).To(Equal(6000.0))
	html := pfs("bench", "report", "s").stdout
	g.Expect(html).To(And(ContainSubstring("creates: best of each variant"), ContainSubstring("speed-up")))
}
