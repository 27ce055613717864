package beegfs

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// measured returns the healthy cluster.
func measured(t *testing.T, version string) backend.Input {
	t.Helper()
	in := healthy(t, version)
	in.State, in.Pods, in.Jobs = nil, nil, nil // BenchmarkJob does not read them
	return in
}

// request measures pool bulk, whose targets are all healthy.
func request(t *testing.T, verbs ...string) backend.BenchmarkRequest {
	t.Helper()
	r := backend.BenchmarkRequest{
		Name: "run-p0-r0", StoragePool: "bulk", Timeout: 30 * time.Minute, Services: map[backend.TargetKey]v1alpha1.TargetService{},
	}
	for _, a := range measured(t, "7.4.6").Given() {
		for _, target := range a.Targets {
			r.Services[backend.TargetKey{Node: a.Node, Name: target.Name}] = v1alpha1.TargetService{State: v1alpha1.StateOnline, CapacityBytes: 10 << 30, UsedBytes: 1 << 30}
		}
	}
	for _, verb := range verbs {
		r.Calls = append(r.Calls, backend.BenchmarkCall{Verb: verb, Arguments: map[string]string{
			"blockSize": "131072", "fileSize": "1073741824", "threads": "2", "directIO": "true",
		}})
	}
	return r
}

func TestTheBenchmarkOfStorageServersUsesTheCommandsOfItsVersion(t *testing.T) {
	for version, want := range map[string][]string{
		"7.4.6": {
			"--storagebench --targetids=5,6 --status --verbose",
			"--storagebench --targetids=5,6 --cleanup",
			"--storagebench --targetids=5,6 --write --blocksize=131072 --size=1073741824 --threads=2 --odirect",
			"--storagebench --targetids=5,6 --status --verbose",
			"--storagebench --targetids=5,6 --read --blocksize=131072 --size=1073741824 --threads=2 --odirect",
			"--storagebench --targetids=5,6 --status --verbose",
			"--storagebench --targetids=5,6 --stop",
			"--storagebench --targetids=5,6 --status --verbose",
			"--storagebench --targetids=5,6 --cleanup",
		},
		"8.3.1": {
			"benchmark status --verbose --unadorned --raw --targets=s:5,s:6",
			"benchmark cleanup --targets=s:5,s:6",
			"benchmark start --targets=s:5,s:6 --block-size=131072 --size=1073741824 --num-tasks=2 --odirect",
			"benchmark status --verbose --unadorned --raw --targets=s:5,s:6",
			"benchmark start --read --targets=s:5,s:6 --block-size=131072 --size=1073741824 --num-tasks=2 --odirect",
			"benchmark status --verbose --unadorned --raw --targets=s:5,s:6",
			"benchmark stop --targets=s:5,s:6",
			"benchmark status --verbose --unadorned --raw --targets=s:5,s:6",
			"benchmark cleanup --targets=s:5,s:6",
		},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := measured(t, version)
			job, err := New().BenchmarkJob(in, request(t, "write", "read"))
			g.Expect(err).NotTo(HaveOccurred())
			pod := job.Spec.Template
			var told spec.Manage
			g.Expect(json.Unmarshal([]byte(pod.Annotations[podspec.ToldAnnotation]), &told)).To(Succeed())
			base := len(toolOf(in).Run())
			var got []string
			for _, c := range told.Calls {
				got = append(got, strings.Join(c.Argv[base:], " "))
			}
			g.Expect(got).To(Equal(want))
			g.Expect(told.TimeoutSeconds).To(Equal(int64(1800)))
			for i, c := range told.Calls {
				g.Expect(c.Always).To(Equal(i >= 6), "what is left is removed in any case, call %d", i)
			}
			g.Expect([]string{told.Calls[3].Name, told.Calls[5].Name, told.Calls[8].Name}).To(Equal([]string{"write", "read", "clean"}))
			g.Expect(job.Name).To(Equal("run-p0-r0"))
			g.Expect(job.Namespace).To(Equal(in.FileSystem.Namespace))
			g.Expect(job.Labels).To(BeEmpty(), "or the controller of the FileSystem takes it for its own")
			g.Expect(pod.Labels).To(BeEmpty())
			g.Expect(*job.Spec.BackoffLimit).To(BeZero())
			g.Expect(*job.Spec.ActiveDeadlineSeconds).To(Equal(int64(1980)))
			g.Expect(pod.Spec.Containers).To(HaveLen(1))
			g.Expect(pod.Spec.Containers[0].Name).To(Equal(backend.BenchmarkContainer))
			g.Expect(pod.Spec.Containers[0].Command).To(ContainElements("manage", "--spec"))
			g.Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(HaveField("MountPath", cli.AuthDirectory)), "it proves itself by the shared secret")
			g.Expect(pod.Annotations[podspec.ToldAnnotation]).NotTo(ContainSubstring(in.Password))
		})
	}
}

func TestWithoutAPoolAllTargetsAreMeasured(t *testing.T) {
	g := NewWithT(t)
	r := request(t, "write")
	r.StoragePool = ""
	job, err := New().BenchmarkJob(measured(t, "7.4.6"), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(job.Spec.Template.Annotations[podspec.ToldAnnotation]).To(ContainSubstring("--targetids=1,2,3,4,5,6"))
}

func TestABenchmarkThatCanNotRunIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		change func(in *backend.Input, r *backend.BenchmarkRequest)
		says   string
	}{
		"a pool that is not there":          {func(_ *backend.Input, r *backend.BenchmarkRequest) { r.StoragePool = "tape" }, "there are no storage targets to measure in pool tape"},
		"a target of which nothing is said": {func(_ *backend.Input, r *backend.BenchmarkRequest) { r.Services = nil }, "are not online; bring them back"},
		"a target that is away": {func(_ *backend.Input, r *backend.BenchmarkRequest) {
			for key := range r.Services {
				r.Services[key] = v1alpha1.TargetService{State: v1alpha1.StateOffline, CapacityBytes: 10 << 30}
			}
		}, "are not online; bring them back"},
		"a target that is too full": {func(_ *backend.Input, r *backend.BenchmarkRequest) {
			for key := range r.Services {
				r.Services[key] = v1alpha1.TargetService{State: v1alpha1.StateOnline, CapacityBytes: 10 << 30, UsedBytes: 9 << 30}
			}
		}, "each target is to be written 2147483648 bytes, and less is free on"},
		"a verb of another filesystem":     {func(_ *backend.Input, r *backend.BenchmarkRequest) { r.Calls[0].Verb = "scrub" }, `BeeGFS has no call "scrub"`},
		"an argument that is no number":    {func(_ *backend.Input, r *backend.BenchmarkRequest) { r.Calls[0].Arguments["threads"] = "2 --x" }, "as whole numbers"},
		"a node that left the cluster":     {func(in *backend.Input, _ *backend.BenchmarkRequest) { in.Nodes = nil }, "is not in the cluster"},
		"an image that the operator lacks": {func(in *backend.Input, _ *backend.BenchmarkRequest) { in.Images.Daemons = nil }, "no image beegfs-tools"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in, r := measured(t, "7.4.6"), request(t, "write")
			test.change(&in, &r)
			job, err := New().BenchmarkJob(in, r)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(job).To(BeNil())
		})
	}
}

func TestTheOutputOfTheServersBenchmark(t *testing.T) {
	for name, test := range map[string]struct {
		line                string
		busy, failed, unrun bool
	}{
		"7: finished":       {"Finished:     2", false, false, false},
		"7: running":        {"Running:      2", true, false, false},
		"7: stopping":       {"Stopping:     1", true, false, false},
		"7: stopped":        {"Stopped:      1", false, false, true},
		"7: did not run":    {"Didn't run:   2", false, false, true},
		"7: error":          {"Error:        1", false, true, true},
		"7: errors":         {"Some errors occurred:", false, true, true},
		"8: finished":       {"            0            0      0        0         0        0          0         2        0  ", false, false, false},
		"8: running":        {"            0            0      0        2         0        0          0        12        0  ", true, false, false},
		"8: stopping":       {"            0            0      0        0        10        0          0         0        0  ", true, false, false},
		"8: finishing":      {"            0            0      0        0         0        0          1         0        0  ", true, false, false},
		"8: stopped":        {"            0            0      0        0         0        3          0         0        0  ", false, false, true},
		"8: uninitialized":  {"            2            0      0        0         0        0          0         0        0  ", false, false, true},
		"8: initialized":    {"            0            1      0        0         0        0          0         0        0  ", false, false, true},
		"8: error":          {"            0            0      1        0         0        0          0         0        0  ", false, true, true},
		"8: unknown":        {"            0            0      0        0         0        0          0         0        1  ", false, true, true},
		"8: heads of table": {"UNINITIALIZED  INITIALIZED  ERROR  RUNNING  STOPPING  STOPPED  FINISHING  FINISHED  UNKNOWN  ", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			busy, failed, unrun := busy7, failed7, unrun7
			if strings.HasPrefix(name, "8") {
				busy, failed, unrun = busy8, failed8, unrun8
			}
			g.Expect(regexp.MustCompile(busy).MatchString(test.line)).To(Equal(test.busy), "busy")
			g.Expect(regexp.MustCompile(failed).MatchString(test.line)).To(Equal(test.failed), "failed")
			g.Expect(regexp.MustCompile(unrun).MatchString(test.line)).To(Equal(test.unrun), "unrun")
		})
	}
}
