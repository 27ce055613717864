//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// pairs is how often a tool is started by hand and by the operator, in turn.
const pairs = 10

// byHand is a tool that is started by hand in pods like those of the operator.
type byHand struct {
	tool string
	// spec is that of the operator's run, which has one point.
	spec string
	// command is what a person would type in the launcher; DIR is an empty directory of the filesystem.
	command string
	// metrics lists the rates that are compared, in unit.
	metrics []string
	unit    string
}

var handmade = []byHand{
	{
		tool: "mdtest", metrics: []string{"File creation", "File stat", "File read", "File removal"}, unit: "ops/s",
		spec:    "\ttool: mdtest\n\tmdtest: {items: 400, uniqueDirectories: true, filesOnly: true, iterations: 3}\n\tprocesses: 2\n",
		command: "mpirun --allow-run-as-root --hostfile /etc/mpi/hostfile -n 2 --map-by slot --bind-to none --wdir DIR mdtest -d DIR -i 3 -I 400 -u -F",
	},
	{
		tool: "fio", metrics: []string{"write bw"}, unit: "KiB/s",
		spec: "\ttool: fio\n\tfio: {mode: write, blockSize: 128Ki, fileSize: 256Mi, fsyncOnClose: true}\n\tprocesses: 2\n",
		command: "mpirun --allow-run-as-root --hostfile /etc/mpi/hostfile -n 2 --map-by slot --bind-to none --wdir DIR sh -c 'mkdir rank-$OMPI_COMM_WORLD_RANK && cd rank-$OMPI_COMM_WORLD_RANK && " +
			"fio --name=benchmark --directory=. --rw=write --bs=131072 --size=268435456 --ioengine=psync --iodepth=1 --numjobs=1 --group_reporting --end_fsync=1 --output-format=json --eta=never > report.json' && " +
			"ssh $(head -1 /etc/mpi/hostfile | cut -d\" \" -f1) cat DIR/rank-0/report.json DIR/rank-1/report.json",
	},
	{
		tool: "iozone", metrics: []string{"write"}, unit: "kB/s",
		spec: "\ttool: iozone\n\tiozone: {mode: Distributed, tests: [Write], recordSize: 128Ki, fileSize: 64Mi, includeFlush: true, includeClose: true, noRetest: true}\n\tprocesses: 2\n",
		command: "cut -d\" \" -f1 /etc/mpi/hostfile | sed \"s#\\$# DIR /usr/bin/iozone#\" > /tmp/hosts && cd /tmp && " +
			"RSH=ssh rsh=ssh iozone -t 2 -r 128k -s 65536k -i 0 -e -c -+n -+m /tmp/hosts -+h $(hostname -i)",
	},
}

// operatorIsCompared compares the operator's measurements with measurements by hand: `make overhead`.
func (s *story) operatorIsCompared() {
	s.isMeasurable()
	for _, h := range handmade {
		It("measures with "+h.tool+" what a person measures by hand", func() {
			hand := "hand-" + h.tool
			DeferCleanup(func() {
				s.kubectl("delete", "mpijob", hand, "--ignore-not-found", patience.Flag(time.Minute))
			})
			s.apply(s.measuringRun(hand, h.spec))
			s.standIn(hand)
			s.finish(hand)
			ours, theirs := map[string][]float64{}, map[string][]float64{}
			for i := range pairs {
				byPerson := func() {
					measured := h.measure(s, hand, i)
					for _, name := range h.metrics {
						theirs[name] = append(theirs[name], measured[name])
					}
				}
				byOperator := func() {
					name := fmt.Sprintf("pair-%s-%d", h.tool, i)
					s.apply(s.measuringRun(name, h.spec))
					point := s.finish(name).Status.Points[0]
					for _, name := range h.metrics {
						ours[name] = append(ours[name], number(metric(point, name).Value))
					}
				}
				turn := []func(){byPerson, byOperator}
				if i%2 == 1 { // the disks may still work for the former measurement, so each is first in half of the pairs
					slices.Reverse(turn)
				}
				for _, measure := range turn {
					measure()
				}
			}
			table := ""
			for _, name := range h.metrics {
				table += fmt.Sprintf("%s in %s\nby hand:  %.0f\noperator: %.0f\nratio of the means: %.3f\n", name, h.unit, theirs[name], ours[name], mean(ours[name])/mean(theirs[name]))
			}
			ratios := make([]float64, pairs)
			for i := range ratios {
				for _, name := range h.metrics {
					ratios[i] += math.Log(ours[name][i]/theirs[name][i]) / float64(len(h.metrics))
				}
			}
			report("the operator's "+h.tool+" over that by hand", fmt.Sprintf("%sgeometric mean of all ratios: %.3f, with a factor of %.3f for one standard error",
				table, math.Exp(mean(ratios)), math.Exp(standardError(ratios))))
		})
	}
}

// standIn creates pods like those of a running BenchmarkRun, whose launcher does nothing.
func (s *story) standIn(name string) {
	GinkgoHelper()
	s.running(name, "launcher")
	jobs := s.kubectl("get", "mpijobs", "-l", "parallelfs.dev/benchmarkrun="+name, "-o", "jsonpath={.items[0]}")
	var job map[string]any
	Expect(json.Unmarshal([]byte(jobs), &job)).To(Succeed())
	job["metadata"] = map[string]any{"name": name, "namespace": s.namespace}
	delete(job, "status")
	replicas := job["spec"].(map[string]any)["mpiReplicaSpecs"].(map[string]any)
	for role, replica := range replicas {
		template := replica.(map[string]any)["template"].(map[string]any)
		template["metadata"].(map[string]any)["labels"] = map[string]any{"hand": name, "role": role}
		pod := template["spec"].(map[string]any)
		if role == "Launcher" {
			container := pod["containers"].([]any)[0].(map[string]any)
			container["command"] = []string{"sleep", "infinity"}
			continue
		}
		delete(pod["affinity"].(map[string]any), "podAntiAffinity")
		pod["affinity"].(map[string]any)["podAntiAffinity"] = map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
			"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": map[string]any{"hand": name, "role": role}},
		}}}
	}
	delete(job["spec"].(map[string]any)["runPolicy"].(map[string]any), "activeDeadlineSeconds")
	applyObject(job)
	Eventually(func() string {
		return s.kubectl("get", "pods", "-l", "hand="+name, "--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}")
	}, long).Should(ContainSubstring("launcher"))
}

// measure starts the tool by hand once and parses its output with the operator's own parser.
func (h byHand) measure(s *story, name string, i int) map[string]float64 {
	GinkgoHelper()
	pods := strings.Fields(s.kubectl("get", "pods", "-l", "hand="+name, "-o", "jsonpath={.items[*].metadata.name}"))
	var launcher, worker string
	for _, p := range pods {
		if strings.Contains(p, "launcher") {
			launcher = p
		} else {
			worker = p
		}
	}
	directory := fmt.Sprintf("%s/ssd/by-hand-%s-%d", s.mountPath, h.tool, i)
	s.kubectl("exec", worker, "-c", "benchmark", "--", "mkdir", directory)
	out := s.kubectl("exec", launcher, "-c", "benchmark", "--", "bash", "-c", strings.ReplaceAll(h.command, "DIR", directory))
	s.kubectl("exec", worker, "-c", "benchmark", "--", "rm", "-r", directory)
	reports := []string{out}
	if h.tool == "fio" {
		first, second, _ := strings.Cut(out, "\n}\n")
		reports = []string{first + "\n}\n", second}
	}
	sums := map[string]float64{}
	for n, text := range reports {
		file := filepath.Join(GinkgoT().TempDir(), fmt.Sprintf("%d.txt", n))
		Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		var document struct {
			Points []struct {
				Metrics []struct {
					Name, Unit string
					Value      float64
				}
			}
		}
		Expect(json.Unmarshal([]byte(s.pfs("bench", "parse", "--tool", h.tool, file, "-o", "json")), &document)).To(Succeed())
		for _, m := range document.Points[0].Metrics {
			if m.Unit == h.unit {
				sums[m.Name] += m.Value
			}
		}
	}
	for _, name := range h.metrics {
		Expect(sums[name]).To(BeNumerically(">", 0), out)
	}
	return sums
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// standardError returns the standard error of the mean.
func standardError(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	n := float64(len(values))
	return math.Sqrt(sum / (n - 1) / n)
}
