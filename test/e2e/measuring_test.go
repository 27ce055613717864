//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

// measuringRun returns a BenchmarkRun of the filesystem scratch on its clients; content is the rest of its spec.
func (s *story) measuringRun(name, content string) string {
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: %s, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: scratch, storagePool: ssd}}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, oversubscribe: true, count: 2}
  limits: {pointTimeout: 5m, retries: 2, invalidRetries: 3}
%s`, name, strings.ReplaceAll(strings.TrimPrefix(content, "\n"), "\t", "  "))
}

// creates is a sweep of mdtest whose number of items is computed, so that each point creates the same total number of files.
const creates = `
	tool: mdtest
	mdtest: {depth: 1, branch: 2, uniqueDirectories: true, filesOnly: true, iterations: 2}
	sweep: [{name: processes, powersOfTwo: {from: "1", to: "2"}}]
	derive: [{name: mdtest.items, cel: "360 / (treeDirectories(mdtest.branch, mdtest.depth) * processes)"}]
	repetitions: 2
	order: Shuffled
	seed: 7
	along: processes
`

// metric returns a metric of a point, by its name and unit.
func metric(p v1alpha1.PointStatus, name string) v1alpha1.MetricResult {
	GinkgoHelper()
	i := slices.IndexFunc(p.Metrics, func(m v1alpha1.MetricResult) bool { return m.Name == name })
	Expect(i).To(BeNumerically(">=", 0), "%s is not among %v", name, p.Metrics)
	return p.Metrics[i]
}

func number(text string) float64 {
	GinkgoHelper()
	value, err := strconv.ParseFloat(text, 64)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// shape returns what two tables of the same run have in common: points, states, repetitions and names of metrics.
func shape(run *v1alpha1.BenchmarkRun) []string {
	var out []string
	for _, p := range run.Status.Points {
		line := fmt.Sprintf("%d %v %s %d", p.Index, p.Parameters, p.State, p.Repetitions)
		for _, m := range p.Metrics {
			line += fmt.Sprintf(" %s[%s]x%d", m.Name, m.Unit, m.Samples)
		}
		out = append(out, line)
	}
	return out
}

func (s *story) finish(name string) *v1alpha1.BenchmarkRun {
	GinkgoHelper()
	Eventually(s.ended(name), 3*long).Should(BeTrue(), func() string { return s.succeeded(name) })
	Expect(s.succeeded(name)).To(HavePrefix(v1alpha1.ReasonAllPointsSucceeded))
	return s.benchmarkRun(name)
}

// pfs runs kubectl-pfs.
func (s *story) pfs(args ...string) string {
	GinkgoHelper()
	return run("", "kubectl-pfs", append(args, "-n", s.namespace)...)
}

// running waits until a run has a running pod with that role.
func (s *story) running(name, role string) string {
	GinkgoHelper()
	var pod string
	Eventually(func() string {
		pod, _, _ = strings.Cut(s.kubectl("get", "pods", "-l", "parallelfs.dev/benchmarkrun="+name+",parallelfs.dev/benchmark-role="+role,
			"--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"), " ")
		return pod
	}, long).ShouldNot(BeEmpty())
	return pod
}

// kill kills a running pod with that role, or another one if the first has ended meanwhile.
func (s *story) kill(name, role string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := try("", "kubectl", "-n", s.namespace, "delete", "pod", s.running(name, role), "--grace-period=0", "--force")
		return err
	}, long).Should(Succeed())
}

// sweepsAreMeasured follows one sweep: its table, its report, and the same sweep with every process killed in the middle.
func (s *story) sweepsAreMeasured() {
	s.isMeasurable()

	It("sweeps mdtest with computed items, and records the systems and software of the measurement", func() {
		s.apply(s.measuringRun("creates", creates))
		run := s.finish("creates")
		Expect(run.Status.Points).To(HaveLen(2))
		for i, p := range run.Status.Points {
			Expect(metric(p, "items").Value).To(Equal("360"), "what mdtest itself reports")
			m := metric(p, "File creation")
			Expect(number(m.Value)).To(BeNumerically(">", 0))
			Expect(m.Samples).To(Equal(int32(2)), "two repetitions, each the mean of two iterations")
			Expect(m.Speedup).NotTo(BeEmpty())
			if i == 0 {
				Expect(m.Speedup).To(Equal("1.00"))
				Expect(m.Efficiency).To(Equal("100.0"))
			}
			Expect(p.Command).To(ContainSubstring(fmt.Sprintf("-I %d", 120>>i)))
			Expect(p.StartTime).NotTo(BeNil())
			Expect(p.Telemetry).NotTo(BeEmpty(), "what the servers did")
		}
		Expect(run.Status.Points[1].Placement).To(ContainSubstring("2 on 2 clients"))
		Expect(run.Status.Seed).To(HaveValue(Equal(int64(7))))
		from := run.Status.Provenance
		Expect(from.FileSystem).To(ContainSubstring("MooseFS 4.57.5"))
		Expect(from.ConfigHash).NotTo(BeEmpty())
		Expect(from.ToolVersion).NotTo(BeEmpty())
		Expect(from.ImageID).NotTo(BeEmpty())
		Expect(from.Clients).To(HaveLen(2))
		Expect(from.Clients[0].Kernel).NotTo(BeEmpty())
		s.results("creates")
		raw, err := json.MarshalIndent(run.Status, "", " ")
		Expect(err).NotTo(HaveOccurred())
		report("status of creates", v1alpha1.Cut(string(raw), 6000))
	})

	It("makes a report that can be read anywhere", func() {
		file := filepath.Join(GinkgoT().TempDir(), "report.html")
		s.pfs("bench", "report", "creates", "-o", "html", "--file", file)
		page, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(page)).To(And(ContainSubstring("<svg"), ContainSubstring("File creation"), Not(MatchRegexp(`(src|href)="http`))))
		Expect(s.pfs("bench", "report", "creates", "-o", "csv")).To(ContainSubstring("File creation"))
	})

	It("ends with the same table whichever process is killed in the middle, and compares it with an earlier one", func() {
		s.apply(s.measuringRun("killed", creates+"\tbaseline: {run: creates}\n"))
		s.kill("killed", "worker")
		Eventually(func() string { return s.benchmarkRun("killed").Status.Progress }, long).ShouldNot(BeEmpty())
		s.kill("killed", "launcher")
		s.running("killed", "launcher")
		kubectl("-n", systemNamespace, "delete", "pods", "-l", "app.kubernetes.io/component=manager", "--grace-period=0", "--force")
		run := s.finish("killed")
		Expect(shape(run)).To(Equal(shape(s.benchmarkRun("creates"))))
		Expect(run.Status.Baseline).To(ContainSubstring("2 points"))
		Expect(metric(run.Status.Points[0], "File creation").Baseline).To(MatchRegexp(`^[+-][0-9.]+ %`))
		report("kubectl pfs bench compare", s.pfs("bench", "compare", "creates", "killed"))
		for _, p := range run.Status.Points {
			report("point after the kills", fmt.Sprintf("%d: %s, %d attempts: %s", p.Index, p.State, p.Attempts, p.Message))
		}
	})

	It("writes complete results to a claim", func() {
		s.apply(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: e2e-results}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /var/lib/parallelfs-e2e/$STORY/results, type: DirectoryOrCreate}
  storageClassName: ""
  claimRef: {namespace: e2e-$STORY, name: results}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: results, namespace: e2e-$STORY}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: e2e-results, resources: {requests: {storage: 1Gi}}}
`)
		s.kubectl("patch", "benchmarkrun", "creates", "--type=merge", "-p", `{"spec":{"results":{"persistentVolumeClaim":{"name":"results","path":"a"}}}}`)
		s.apply(s.measuringRun("exported", "\ttool: mdtest\n\tmdtest: {items: 2}\n\tresults: {persistentVolumeClaim: {name: results, path: a}}\n"))
		s.finish("exported")
		Eventually(func() string { return s.benchmarkRun("exported").Status.Exported }, long).Should(ContainSubstring("a/exported-"))
		var files string
		for _, node := range workers {
			out, _ := shell(node, "cd "+s.dataRoot+"/results 2>/dev/null && find . -type f && grep -h 'File creation' a/exported-*/*.csv | head -2")
			files += out
		}
		Expect(files).To(And(ContainSubstring(".json"), ContainSubstring(".csv"), ContainSubstring("File creation")))
		report("files of the claim", files)
		s.kubectl("delete", "pvc", "results", "--wait=false")
		kubectl("delete", "pv", "e2e-results", "--wait=false")
	})
}

// everyToolMeasures runs each tool that has an image once, and checks what must not run.
func (s *story) everyToolMeasures() {
	s.isMeasurable()

	It("measures with IOR, and drops the caches before it reads", func() {
		s.apply(s.measuringRun("bandwidth", `
	tool: ior
	ior: {blockSize: 4Mi, transferSize: 1Mi, filePerProcess: true, iterations: 1}
	processes: 2
	caches: {drop: All, before: Phases}
`))
		run := s.finish("bandwidth")
		Expect(number(metric(run.Status.Points[0], "write").Value)).To(BeNumerically(">", 0))
		Expect(number(metric(run.Status.Points[0], "read").Value)).To(BeNumerically(">", 0))
		Expect(kubectl("get", "nodeinventory", workers[0], "-o", "jsonpath={.status.droppedCaches.request}{.status.droppedCaches.error}")).NotTo(BeEmpty())
		s.results("bandwidth")
	})

	It("measures with fio, on one client and on two", func() {
		s.apply(s.measuringRun("random", `
	tool: fio
	fio: {mode: randrw, blockSize: 16Ki, fileSize: 4Mi}
	processes: 2
	sweep: [{name: clients, values: ["1", "2"]}]
`))
		run := s.finish("random")
		Expect(run.Status.Points).To(HaveLen(2))
		s.results("random")
	})

	It("measures with postmark on every process, and adds up the results", func() {
		s.apply(s.measuringRun("mail", `
	tool: postmark
	postmark: {files: 40, transactions: 60, subdirectories: 2}
	processes: 4
`))
		s.finish("mail")
		s.results("mail")
	})

	It("measures with any program", func() {
		s.apply(s.measuringRun("dd", `
	tool: custom
	custom:
		command: [dd, if=/dev/zero, of=file, bs=$(block), count=4, conv=fsync]
		parameters: [{name: block, value: 1M}]
		metrics: [{name: copied, unit: bytes, regex: "^([0-9]+) bytes"}]
	sweep: [{name: custom.block, values: [1M, 2M]}]
`))
		run := s.finish("dd")
		Expect(metric(run.Status.Points[1], "copied").Value).To(Equal("8388608"))
	})

	It("names the next step when no image has the tool", func() {
		s.apply(s.measuringRun("vdbench", "\ttool: vdbench\n\tvdbench: {}\n"))
		Eventually(func() string { return s.succeeded("vdbench") }).Should(HavePrefix(v1alpha1.ReasonImageRequired))
		report("a tool without an image", s.succeeded("vdbench"))
		s.apply(s.measuringRun("wrong-image", "\ttool: mdtest\n\tmdtest: {items: 1}\n\timage: localhost/parallelfs/moosefs:4.57.5\n"))
		Eventually(func() string { return s.succeeded("wrong-image") }, long).Should(HavePrefix(v1alpha1.ReasonImageRequired))
		report("an image without the tool", s.succeeded("wrong-image"))
		s.kubectl("delete", "benchmarkrun", "vdbench", "wrong-image", patience.Flag(2*time.Minute))
	})

	It("refuses a run that can't succeed before it starts", func() {
		s.apply(s.measuringRun("too-large", "\ttool: fio\n\tfio: {mode: write, fileSize: 100Ti}\n\tprocesses: 2\n"))
		Eventually(func() string { return s.succeeded("too-large") }, long).Should(HavePrefix(v1alpha1.ReasonPreflightFailed))
		s.apply(s.measuringRun("uneven", strings.ReplaceAll(creates, "360", "361")))
		Eventually(func() string { return s.succeeded("uneven") }).Should(And(HavePrefix(v1alpha1.ReasonInvalidSpec), ContainSubstring("remainder")))
		report("refused before anything started", s.succeeded("too-large")+"\n"+s.succeeded("uneven"))
		s.kubectl("delete", "benchmarkrun", "too-large", "uneven", patience.Flag(2*time.Minute))
	})

	It("makes a disturbed repetition invalid, and runs it again", func() {
		s.apply(s.measuringRun("disturbed", `
	tool: custom
	custom: {command: [sh, -c, "sleep 25; echo slept 25"], metrics: [{name: slept, unit: s, regex: "slept ([0-9]+)"}]}
`))
		s.running("disturbed", "client")
		chunkservers := strings.Fields(s.podOn("chunkserver", workers[2]))
		Expect(chunkservers).NotTo(BeEmpty())
		s.kubectl("delete", "pod", chunkservers[0], "--wait=false")
		run := s.finish("disturbed")
		Expect(run.Status.Points[0].Attempts).To(BeNumerically(">=", 2))
		Expect(run.Status.Points[0].Message).To(ContainSubstring("chunkserver"))
		report("a disturbed point", run.Status.Points[0].Message)
	})

	It("separates two runs, and runs from changes of the filesystem", func() {
		sleeper := func(seconds int) string {
			return fmt.Sprintf("\ttool: custom\n\tcustom: {command: [sh, -c, \"sleep %[1]d; echo slept %[1]d\"], metrics: [{name: slept, unit: s, regex: \"slept ([0-9]+)\"}]}\n", seconds)
		}
		s.apply(s.measuringRun("first", sleeper(60)))
		s.running("first", "client")
		s.apply(s.measuringRun("second", sleeper(1)))
		Eventually(func() string { return s.succeeded("second") }).Should(Or(HavePrefix(v1alpha1.ReasonFileSystemInUse), HavePrefix(v1alpha1.ReasonWaitingForRun)))
		before := s.podOn("chunkserver", workers[2])
		s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"moosefs":{"config":{"storage":{"HDD_LEAVE_SPACE_DEFAULT":"255MiB"}}}}}`)
		Eventually(func() string {
			return s.kubectl("get", "filesystem", "scratch", "-o", `jsonpath={.status.conditions[?(@.type=="ChangesHeld")].message}`)
		}).Should(ContainSubstring("first"))
		Expect(s.podOn("chunkserver", workers[2])).To(Equal(before))
		report("a change that waits", s.kubectl("get", "filesystem", "scratch", "-o", `jsonpath={.status.conditions[?(@.type=="ChangesHeld")].message}`))
		s.finish("first")
		Eventually(s.ended("second"), 2*long).Should(BeTrue())
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
	})
}

// variantsAreMeasured runs a suite.
func (s *story) variantsAreMeasured() {
	It("measures variants of a filesystem one after the other", func() {
		s.begin()
		for _, node := range workers {
			s.label(node, "storage", "client")
		}
		s.label(workers[0], "metadata")
		s.apply(`
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkSuite
metadata: {name: copies, namespace: e2e-$STORY}
spec:
  afterVariant: Delete
  fileSystem:
    type: MooseFS
    version: 4.57.5
    moosefs:
      basePort: $PORT
      config: {metadata: {NICE_LEVEL: "0"}, storage: {HDD_LEAVE_SPACE_DEFAULT: 256MiB, NICE_LEVEL: "0"}}
    metadataServers:
      nodeSelector: {e2e.parallelfs.dev/$STORY-metadata: ""}
    clients:
      nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}
      mountPath: /mnt/e2e/$STORY/fs
  variants:
  - name: one
    scale: 1
    fileSystem:
      metadataServers: {targets: {directories: [/var/lib/parallelfs-e2e/$STORY/one/metadata]}}
      storagePools: [{name: ssd, nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}, targets: {directories: [/var/lib/parallelfs-e2e/$STORY/one/ssd]}, copies: 1}]
  - name: two
    scale: 2
    fileSystem:
      metadataServers: {targets: {directories: [/var/lib/parallelfs-e2e/$STORY/two/metadata]}}
      storagePools: [{name: ssd, nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}, targets: {directories: [/var/lib/parallelfs-e2e/$STORY/two/ssd]}, copies: 2}]
  runs:
  - name: files
    spec:
      tool: mdtest
      mdtest: {items: 5, filesOnly: true}
      clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, count: 2, oversubscribe: true}
      processes: 2
      limits: {pointTimeout: 5m}
`)
		suite := &v1alpha1.BenchmarkSuite{}
		Eventually(func() string {
			Expect(api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "copies"}, suite)).To(Succeed())
			return succeededCondition(s.namespace, "benchmarksuite", "copies")()
		}, 4*long).Should(HavePrefix("True " + v1alpha1.ReasonAllRunsSucceeded))
		Expect(api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: "copies"}, suite)).To(Succeed())
		Expect(suite.Status.Progress).To(Equal("2/2"))
		Expect(suite.Status.Table).To(ContainElement(SatisfyAll(
			HaveField("Variant", "two"), HaveField("Metric", "File creation"), HaveField("Speedup", Not(BeEmpty())), HaveField("Efficiency", Not(BeEmpty())))))
		Expect(s.kubectl("get", "filesystems", "-o", "name")).NotTo(ContainSubstring("copies"))
		report("a suite's report", s.pfs("bench", "report", "copies", "-o", "markdown"))
		s.kubectl("delete", "benchmarksuite", "copies", patience.Flag(2*time.Minute))
	})
}
