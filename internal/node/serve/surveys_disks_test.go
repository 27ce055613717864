//go:build disks

package serve_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/mdssurvey"
	"parallelfs.dev/operator/benchmarks/obdfiltersurvey"
	"parallelfs.dev/operator/benchmarks/tooltest"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/spec"
)

// survey runs a tool's plan like a pod of a benchmark, lets the tool parse the output, and returns both.
func (m *machine) survey(tool benchmarks.Tool, run *v1alpha1.BenchmarkRunSpec, needs []string, targets ...string) (string, []string, error) {
	m.Helper()
	point := tooltest.Point(m.T, tool, run)
	plan, err := tool.Plan(run, point)
	m.Expect(err).NotTo(HaveOccurred())
	command := plan.Steps[0].Command
	content, err := json.Marshal(spec.Benchmark{
		Argv: command.Argv, Env: command.Env, ForEachTarget: command.ForEachTarget, Programs: append(needs, command.Argv[0]),
		TimeoutSeconds: 60, Targets: map[string][]string{nodeName: targets},
	})
	m.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(m.TempDir(), "benchmark.json")
	m.Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	pod := exec.Command("unshare", "--mount", filepath.Join(programs, "node"), "bench", "local", "--spec", path, "--rank", "0")
	pod.Env = []string{"NODE_NAME=" + nodeName, "PATH=" + os.Getenv("PATH"), "thrlo=32"}
	output, _ := pod.CombinedOutput() // the output shows how it ended
	report, err := tool.Parse(run, point, 0, output)
	return string(output), tooltest.Lines(report), err
}

func TestSurveysAreTheNodesOwnProgramsAndLeaveNoFiles(t *testing.T) {
	m := newMachine(t)
	m.filesystem()
	mdt, ost := m.start("serve", m.serves("mdt/0")), m.start("serve", m.serves("ost/ssd"))
	m.eventuallyMounted("/mnt/targets/mdt0 /mnt/targets/ost0", mdt, ost)

	metadata := &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMDSSurvey, MDSSurvey: &v1alpha1.MDSSurveySpec{
		ThreadsLow: 4, ThreadsHigh: 16, FileCount: 1000, DirCount: 4, Tests: []v1alpha1.MDSSurveyTest{"create", "destroy"},
	}}
	said, samples, err := m.survey(mdssurvey.Tool{}, metadata, []string{"env", "lctl"}, "pfs-MDT0000")
	m.Expect(err).NotTo(HaveOccurred(), said)
	m.Expect(samples).To(Equal([]string{
		"create thr 4 3200.00 ops/s", "destroy thr 4 5400.00 ops/s", "create thr 8 4525.48 ops/s", "destroy thr 8 7636.75 ops/s",
		"create thr 16 6400.00 ops/s", "destroy thr 16 10800.00 ops/s",
	}), "what the environment of the pod says is nothing to a program of the node")
	left, err := filepath.Glob("/tmp/mds_survey_*")
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(left).To(BeEmpty())

	said, _, err = m.survey(mdssurvey.Tool{}, metadata, nil, "pfs-MDT0000", "pfs-MDT0009")
	m.Expect(err).To(MatchError(ContainSubstring(`mds-survey says "OST pfs-MDT0009 not setup"`)), said)
	printedBySurvey, err := printed.Check([]byte(said))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(string(printedBySurvey)).To(HaveSuffix("[rank 0 ended with exit code 0]\n"), "as the real one")
	said, _, err = m.survey(mdssurvey.Tool{}, metadata, []string{"no-such-program"}, "pfs-MDT0000")
	m.Expect(err).To(HaveOccurred())
	m.Expect(said).To(HavePrefix("parallelfs: process 0: the node has no no-such-program; install it there"))

	storage := &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolOBDFilterSurvey, OBDFilterSurvey: &v1alpha1.OBDFilterSurveySpec{ThreadsLow: 2, ThreadsHigh: 4}}
	said, samples, err = m.survey(obdfiltersurvey.Tool{}, storage, nil, "pfs-OST0000")
	m.Expect(err).NotTo(HaveOccurred(), said)
	m.Expect(samples).To(Equal([]string{
		"write obj 1 thr 2 100.00 MB/s", "read obj 1 thr 2 100.00 MB/s", "write obj 1 thr 4 100.00 MB/s", "read obj 1 thr 4 100.00 MB/s",
		"write obj 2 thr 2 100.00 MB/s", "read obj 2 thr 2 100.00 MB/s", "write obj 2 thr 4 100.00 MB/s", "read obj 2 thr 4 100.00 MB/s",
	}))
	said, _, err = m.survey(obdfiltersurvey.Tool{}, storage, nil, "pfs-OST0077")
	m.Expect(err).To(MatchError(ContainSubstring("process 0 ended with exit code 2")), said)
	storage.OBDFilterSurvey.SizeMiB = 64
	said, _, err = m.survey(obdfiltersurvey.Tool{}, storage, nil, "pfs-OST0000")
	m.Expect(err).To(MatchError(ContainSubstring("write was over before there were two looks at it")), said)
}
