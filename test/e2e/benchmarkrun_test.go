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
	"parallelfs.dev/operator/test/patience"
)

// singleRun is experiment moosefs-2017-single, reduced to minutes on a small machine. See distributedRun for its retries.
const singleRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: single, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: scratch, storagePool: ssd}}
  tool: iozone
  iozone: {mode: SingleClient, fileSize: 32Mi, includeFlush: true, includeClose: true, noRetest: true}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, oversubscribe: true}
  processes: 2
  sweep:
  - {name: iozone.recordSize, values: [64Ki, 1024Ki]}
  repetitions: 3
  statistic: TrimmedMean
  limits: {pointTimeout: 5m, retries: 4}
`

// distributedRun is experiment moosefs-2017-distributed, reduced as well. iozone omits a process if another one has ended before it began,
// and such a result is refused. So its files are large and not read from caches, and refused results are repeated.
const distributedRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: distributed, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: scratch, storagePool: ssd}}
  tool: iozone
  iozone: {mode: Distributed, tests: [Write, Read], fileSize: 64Mi, directIO: true, includeFlush: true, includeClose: true, noRetest: true}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, count: 2, oversubscribe: true}
  sweep:
  - {name: iozone.recordSize, values: [1024Ki]}
  derive:
  - {name: processes, cel: 2 * clients}
  repetitions: 2
  limits: {pointTimeout: 5m, retries: 4}
`

// troubledRun has a point whose tool the test stops, one whose tool it kills, and one that succeeds.
const troubledRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: troubled, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: scratch}}
  tool: iozone
  iozone: {recordSize: 4Ki, tests: [Write], directIO: true}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, oversubscribe: true}
  sweep:
  # Small enough for the disk, and long enough to be caught: every 4k waits for its write.
  - {name: iozone.fileSize, values: [3Gi, 2Gi, 1Mi]}
  limits: {pointTimeout: 45s}
`

func (s *story) benchmarkRun(name string) *v1alpha1.BenchmarkRun {
	GinkgoHelper()
	run := &v1alpha1.BenchmarkRun{}
	Expect(api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: name}, run)).To(Succeed())
	return run
}

func (s *story) ended(name string) func() bool {
	return func() bool { return s.benchmarkRun(name).Status.CompletionTime != nil }
}

func (s *story) succeeded(name string) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(s.benchmarkRun(name).Status.Conditions, v1alpha1.ConditionSucceeded)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// finishedRepetitions counts the records of the run with the name single.
func (s *story) finishedRepetitions() int {
	GinkgoHelper()
	records := s.kubectl("get", "configmaps", "-l", "parallelfs.dev/benchmarkrun=single", "-o", "jsonpath={.items[*].data}")
	return len(regexp.MustCompile(`"rep-[0-9]+\.json":`).FindAllString(records, -1))
}

func (s *story) podsOf(name string) string {
	GinkgoHelper()
	return s.kubectl("get", "pods", "-l", "parallelfs.dev/benchmarkrun="+name, "--field-selector", "status.phase!=Succeeded,status.phase!=Failed", "-o", "name")
}

func (s *story) benchmarksRun() {
	files := func() string {
		return s.inClient(workers[0], "sh", "-c", "find "+s.mountPath+"/*/.parallelfs-benchmarks -mindepth 1")
	}
	table := func(name string) {
		report("kubectl get benchmarkruns -o wide", s.kubectl("get", "benchmarkruns", "-o", "wide"))
		s.results(name)
	}

	s.isMeasurable()

	It("stops and removes its files when it is suspended, and continues afterwards", func() {
		s.apply(singleRun)
		Eventually(s.finishedRepetitions, long).Should(BeNumerically(">=", 2))
		s.kubectl("patch", "benchmarkrun", "single", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
		Eventually(func() string { return s.succeeded("single") }, long).Should(HavePrefix(v1alpha1.ReasonSuspended))
		Eventually(func() string { return s.benchmarkRun("single").Status.Directory }).Should(BeEmpty())
		Expect(s.podsOf("single")).To(BeEmpty())
		Expect(files()).To(BeEmpty())
		kept := s.finishedRepetitions()
		Consistently(s.finishedRepetitions, "5s").Should(Equal(kept))
		s.kubectl("patch", "benchmarkrun", "single", "--type=merge", "-p", `{"spec":{"suspend":false}}`)
		Eventually(s.finishedRepetitions, long).Should(BeNumerically(">", kept))
	})

	It("continues when the operator is killed, and counts every repetition once", func() {
		before := s.finishedRepetitions()
		kubectl("-n", systemNamespace, "delete", "pods", "-l", "app.kubernetes.io/component=manager", "--grace-period=0", "--force")
		Eventually(s.ended("single"), 4*long).Should(BeTrue())
		Expect(s.succeeded("single")).To(HavePrefix(v1alpha1.ReasonAllPointsSucceeded))
		run := s.benchmarkRun("single")
		Expect(run.Status.Progress).To(Equal("2/2"))
		Expect(before).To(BeNumerically("<", 6))
		Expect(s.finishedRepetitions()).To(Equal(6))
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

	It("frees the space of its files at once, without the trash of MooseFS", func() {
		Expect(s.inClient(workers[0], "mfsgettrashtime", s.mountPath+"/ssd/.parallelfs-benchmarks")).To(HaveSuffix(": 0"))
		Expect(s.inClient(workers[0], "mfsgettrashtime", s.mountPath+"/ssd")).NotTo(HaveSuffix(": 0"), "which is left as it is elsewhere")
	})

	It("keeps the raw output of every repetition", func() {
		output := s.benchmarkRun("single").Status.Points[0].Output
		raw := s.kubectl("get", "configmap", output, "-o", "jsonpath={.binaryData.rep-3\\.txt\\.gz}")
		text := s.inClient(workers[0], "sh", "-c", "echo "+raw+" | base64 -d | gunzip")
		Expect(text).To(ContainSubstring("iozone test complete"))
	})

	It("spreads over two clients by MPI", func() {
		s.apply(distributedRun)
		Eventually(s.ended("distributed"), 3*long).Should(BeTrue())
		Expect(s.succeeded("distributed")).To(HavePrefix(v1alpha1.ReasonAllPointsSucceeded))
		record := s.kubectl("get", "configmap", s.benchmarkRun("distributed").Status.Points[0].Output, "-o", "jsonpath={.data.rep-1\\.json}")
		Expect(record).To(And(ContainSubstring(workers[0]), ContainSubstring(workers[1])), "both took part")
		Expect(s.kubectl("get", "mpijobs", "-o", "name")).To(BeEmpty())
		Expect(files()).To(BeEmpty())
		table("distributed")
	})

	It("records a failed point for a tool that hangs and for one that fails, and runs the others", func() {
		s.apply(troubledRun)
		for _, point := range []struct{ size, signal string }{{"3Gi", "STOP"}, {"2Gi", "KILL"}} {
			Eventually(func() string { return s.benchmarkRun("troubled").Status.Current }, long).Should(ContainSubstring(point.size))
			Eventually(func() error {
				_, err := shell(workers[0], "sleep 2; kill -"+point.signal+" $("+s.processes(workers[0], "iozone")+")")
				return err
			}).Should(Succeed())
		}
		Eventually(s.ended("troubled"), long).Should(BeTrue())
		run := s.benchmarkRun("troubled")
		Expect(s.succeeded("troubled")).To(HavePrefix(v1alpha1.ReasonPointsFailed))
		Expect(run.Status.FailedPoints).To(Equal(int32(2)))
		Expect(run.Status.Points[0].Message).To(ContainSubstring("did not end within 45s"))
		Expect(run.Status.Points[1].Message).To(ContainSubstring("exit code"))
		Expect(run.Status.Points[2].State).To(Equal(v1alpha1.PointSucceeded))
		Expect(files()).To(BeEmpty())
		report("failed points", run.Status.Points[0].Message+"\n\n"+run.Status.Points[1].Message)
	})

	It("stops and removes its files when it is deleted", func() {
		s.apply(strings.NewReplacer("name: troubled", "name: deleted", "pointTimeout: 45s", "pointTimeout: 10m").Replace(troubledRun))
		Eventually(files, long).ShouldNot(BeEmpty())
		s.kubectl("delete", "benchmarkrun", "deleted", patience.Flag(2*time.Minute))
		Eventually(func() string { return s.podsOf("deleted") }, long).Should(BeEmpty())
		Expect(files()).To(BeEmpty())
		Expect(onNode(workers[0], s.processes(workers[0], "iozone")+"; true")).To(BeEmpty())
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
