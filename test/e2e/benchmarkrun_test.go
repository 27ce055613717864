//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// singleRun is experiment moosefs-2017-single, reduced to what a small machine does in minutes. See distributedRun for what is run again.
const singleRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: single, namespace: e2e}
spec:
  fileSystem: {name: scratch, storagePool: ssd}
  tool: iozone
  iozone: {mode: SingleClient, fileSize: 32m, includeFlush: true, includeClose: true, noRetest: true}
  clients: {nodeSelector: {e2e.parallelfs.dev/client: ""}, oversubscribe: true}
  sweep:
  - {name: iozone.recordSize, values: [64k, 1024k]}
  - {name: processes, values: ["1", "2"]}
  repetitions: 3
  statistic: TrimmedMean
  limits: {pointTimeout: 5m, retries: 4}
`

// distributedRun is experiment moosefs-2017-distributed, reduced as well. iozone leaves a process out when another has ended before it
// began, and such a result is refused: so its files are large and not read from caches, and what is refused all the same is run again.
const distributedRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: distributed, namespace: e2e}
spec:
  fileSystem: {name: scratch, storagePool: ssd}
  tool: iozone
  iozone: {mode: Distributed, fileSize: 64m, directIO: true, includeFlush: true, includeClose: true, noRetest: true}
  clients: {nodeSelector: {e2e.parallelfs.dev/client: ""}, count: 2, oversubscribe: true}
  sweep:
  - {name: iozone.recordSize, values: [64k, 1024k]}
  derive:
  - {name: processes, cel: 2 * clients}
  repetitions: 2
  limits: {pointTimeout: 5m, retries: 4}
`

// troubledRun has a point whose tool the test stops, one whose tool it kills, and one that is well.
const troubledRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: troubled, namespace: e2e}
spec:
  fileSystem: {name: scratch}
  tool: iozone
  iozone: {recordSize: 4k, tests: [Write], directIO: true}
  clients: {nodeSelector: {e2e.parallelfs.dev/client: ""}, oversubscribe: true}
  sweep:
  # Small enough for the disk, and long enough to be caught: every 4k waits for its write.
  - {name: iozone.fileSize, values: [3g, 2g, 1m]}
  limits: {pointTimeout: 45s}
`

func benchmarkRun(name string) *v1alpha1.BenchmarkRun {
	GinkgoHelper()
	run := &v1alpha1.BenchmarkRun{}
	Expect(api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, run)).To(Succeed())
	return run
}

func ended(name string) func() bool {
	return func() bool { return benchmarkRun(name).Status.CompletionTime != nil }
}

func succeeded(name string) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(benchmarkRun(name).Status.Conditions, v1alpha1.ConditionSucceeded)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// finishedRepetitions counts the records of the run called single.
func finishedRepetitions() int {
	GinkgoHelper()
	records := kubectl("-n", namespace, "get", "configmaps", "-l", "parallelfs.dev/benchmarkrun=single", "-o", "jsonpath={.items[*].data}")
	return len(regexp.MustCompile(`"rep-[0-9]+\.json":`).FindAllString(records, -1))
}

func podsOf(name string) string {
	GinkgoHelper()
	return kubectl("-n", namespace, "get", "pods", "-l", "parallelfs.dev/benchmarkrun="+name, "--field-selector", "status.phase!=Succeeded,status.phase!=Failed", "-o", "name")
}

func benchmarksRun() {
	files := func() string {
		return inClient(workers[0], "sh", "-c", "find "+mountPath+"/*/.parallelfs-benchmarks -mindepth 1")
	}
	table := func(name string) {
		report("kubectl get benchmarkruns -o wide", kubectl("-n", namespace, "get", "benchmarkruns", "-o", "wide"))
		report("results of "+name, kubectl("-n", namespace, "get", "benchmarkrun", name, "-o", "go-template-file="+root+"/test/demo/results.gotemplate"))
	}

	It("stops and removes its files when it is suspended, and goes on afterwards", func() {
		apply(singleRun)
		Eventually(finishedRepetitions, long).Should(BeNumerically(">=", 2))
		kubectl("-n", namespace, "patch", "benchmarkrun", "single", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
		Eventually(func() string { return succeeded("single") }, long).Should(HavePrefix(v1alpha1.ReasonSuspended))
		Eventually(func() string { return benchmarkRun("single").Status.Directory }).Should(BeEmpty())
		Expect(podsOf("single")).To(BeEmpty())
		Expect(files()).To(BeEmpty())
		kept := finishedRepetitions()
		Consistently(finishedRepetitions, "5s").Should(Equal(kept))
		kubectl("-n", namespace, "patch", "benchmarkrun", "single", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		Eventually(finishedRepetitions, long).Should(BeNumerically(">", kept))
	})

	It("goes on when the operator is killed, and counts every repetition once", func() {
		before := finishedRepetitions()
		kubectl("-n", systemNamespace, "delete", "pods", "-l", "app.kubernetes.io/component=manager", "--grace-period=0", "--force")
		Eventually(ended("single"), 4*long).Should(BeTrue())
		Expect(succeeded("single")).To(HavePrefix(v1alpha1.ReasonAllPointsSucceeded))
		run := benchmarkRun("single")
		Expect(run.Status.Progress).To(Equal("4/4"))
		Expect(before).To(BeNumerically("<", 12))
		Expect(finishedRepetitions()).To(Equal(12))
		for _, p := range run.Status.Points {
			Expect(p.State).To(Equal(v1alpha1.PointSucceeded))
			Expect(p.Repetitions).To(Equal(int32(3)))
			names := map[string]bool{}
			for _, m := range p.Metrics {
				names[m.Name] = true
				value, err := strconv.ParseFloat(m.Value, 64)
				Expect(err).NotTo(HaveOccurred())
				Expect(value).To(BeNumerically(">", 0), m.Name)
				Expect(m.Samples).To(Equal(int32(3)))
			}
			Expect(names).To(And(HaveKey("write"), HaveKey("read"), HaveKey("randomRead"), HaveKey("randomWrite")))
		}
		Expect(files()).To(BeEmpty())
		table("single")
	})

	It("gives the space of its files back at once, past the trash of MooseFS", func() {
		Expect(inClient(workers[0], "mfsgettrashtime", mountPath+"/ssd/.parallelfs-benchmarks")).To(HaveSuffix(": 0"))
		Expect(inClient(workers[0], "mfsgettrashtime", mountPath+"/ssd")).NotTo(HaveSuffix(": 0"), "which is left as it is elsewhere")
	})

	It("keeps the raw output of every repetition", func() {
		output := benchmarkRun("single").Status.Points[0].Output
		raw := kubectl("-n", namespace, "get", "configmap", output, "-o", "jsonpath={.binaryData.rep-3\\.txt\\.gz}")
		text := inClient(workers[0], "sh", "-c", "echo "+raw+" | base64 -d | gunzip")
		Expect(text).To(ContainSubstring("iozone test complete"))
	})

	It("spreads over two clients by MPI", func() {
		apply(distributedRun)
		Eventually(ended("distributed"), 3*long).Should(BeTrue())
		Expect(succeeded("distributed")).To(HavePrefix(v1alpha1.ReasonAllPointsSucceeded))
		record := kubectl("-n", namespace, "get", "configmap", benchmarkRun("distributed").Status.Points[0].Output, "-o", "jsonpath={.data.rep-1\\.json}")
		Expect(record).To(And(ContainSubstring(workers[0]), ContainSubstring(workers[1])), "both took part")
		Expect(kubectl("-n", namespace, "get", "mpijobs", "-o", "name")).To(BeEmpty())
		Expect(files()).To(BeEmpty())
		table("distributed")
	})

	It("makes a failed point of what hangs and of what fails, and runs the others", func() {
		apply(troubledRun)
		for _, point := range []struct{ size, signal string }{{"3g", "STOP"}, {"2g", "KILL"}} {
			Eventually(func() string { return benchmarkRun("troubled").Status.Current }, long).Should(ContainSubstring(point.size))
			Eventually(func() error {
				_, err := shell(workers[0], "sleep 2; pkill -"+point.signal+" -x iozone")
				return err
			}).Should(Succeed())
		}
		Eventually(ended("troubled"), long).Should(BeTrue())
		run := benchmarkRun("troubled")
		Expect(succeeded("troubled")).To(HavePrefix(v1alpha1.ReasonPointsFailed))
		Expect(run.Status.FailedPoints).To(Equal(int32(2)))
		Expect(run.Status.Points[0].Message).To(ContainSubstring("did not end within 45s"))
		Expect(run.Status.Points[1].Message).To(ContainSubstring("exit code"))
		Expect(run.Status.Points[2].State).To(Equal(v1alpha1.PointSucceeded))
		Expect(files()).To(BeEmpty())
		report("failed points", run.Status.Points[0].Message+"\n\n"+run.Status.Points[1].Message)
	})

	It("stops and removes its files when it is deleted", func() {
		apply(strings.NewReplacer("name: troubled", "name: deleted", "pointTimeout: 45s", "pointTimeout: 10m").Replace(troubledRun))
		Eventually(files, long).ShouldNot(BeEmpty())
		kubectl("-n", namespace, "delete", "benchmarkrun", "deleted", "--timeout=120s")
		Expect(podsOf("deleted")).To(BeEmpty())
		Expect(files()).To(BeEmpty())
		Expect(inClient(workers[0], "sh", "-c", "pgrep -x iozone || echo none")).To(Equal("none"))
	})

	It("costs the operator little memory", func() {
		var lines []string
		for _, node := range workers {
			out, _ := shell(node, "for p in $(pgrep -x manager); do grep VmRSS /proc/$p/status; done")
			lines = append(lines, fmt.Sprintf("%s: %s", node, strings.Join(strings.Fields(out), " ")))
		}
		report("memory of the manager after "+time.Since(started).Round(time.Minute).String(), strings.Join(lines, "\n"))
	})
}

var started = time.Now()
