package jobs

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/bench"
)

var update = flag.Bool("update", false, "write the golden files anew")

// manager is a backend whose filesystem measures itself.
type manager struct{ backend.Backend }

func (manager) BenchmarkJob(in backend.Input, request backend.BenchmarkRequest) (*batchv1.Job, error) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: in.FileSystem.Namespace, Name: request.Name}}
	job.Spec.ActiveDeadlineSeconds = new(int64(request.Timeout.Seconds()))
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: backend.BenchmarkContainer, Args: []string{request.StoragePool, request.Calls[0].Verb}}}
	return job, nil
}

func TestTheJobsOfEachLaunch(t *testing.T) {
	for name, c := range map[string]struct {
		turn  turns.Turn
		given func(w *scope.Scope)
	}{
		"on-client": {scopetest.At(0, 1), func(w *scope.Scope) { w.Plans[0].Steps[0].Command.Stdin = "run\n" }},
		"on-client-second-step-of-a-second-attempt": {turns.Turn{Point: 1, Repetition: 2, Attempt: 2, Step: 1}, func(w *scope.Scope) {
			w.Plans[1] = scopetest.PlanOf(benchmarks.OnClient, "write", "read", "remove")
		}},
		"on-client-warm-up-in-a-queue-with-priority": {turns.Turn{WarmUp: true, Repetition: 1, Attempt: 1}, func(w *scope.Scope) {
			w.Run.Spec.QueueName, w.Run.Spec.PriorityClassName = "lab", "batch"
		}},
		"on-launcher": {scopetest.At(0, 1), func(w *scope.Scope) { spread(w) }},
		"on-processes": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnProcesses)
			w.Plans[0].Processes = 5
		}},
		"on-processes-in-a-queue": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnProcesses)
			w.Plans[0].Processes, w.Run.Spec.QueueName, w.Run.Spec.PriorityClassName = 2, "lab", "batch"
		}},
		"on-each-process-packed": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnEachProcess)
			w.Plans[0].Processes, w.Plans[0].Steps[0].Command.Stdin = 10, "set number 100\nrun\n"
			w.Run.Spec.Clients.Spread = v1alpha1.SpreadPacked
		}},
		"on-each-client": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnEachClient)
			w.Plans[0].Processes = 10
		}},
		"on-servers": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnServers)
			w.Plans[0].Steps[0].Command.Role, w.Plans[0].Steps[0].Command.ForEachTarget = v1alpha1.RoleMetadata, true
			w.Servers = measurer{"mds1": {"x-MDT0000", "x-MDT0002"}, "mds2": {"x-MDT0001"}}
			w.Members.Servers = []results.Server{
				{Role: v1alpha1.RoleMetadata, Node: "mds2"}, {Role: v1alpha1.RoleMetadata, Node: "mds1"}, {Role: v1alpha1.RoleMetadata, Node: "mds1", Slot: 1},
				{Role: v1alpha1.RoleStorage, Node: "oss1"},
			}
		}},
		"on-client-of-a-volume": {scopetest.At(0, 2), func(w *scope.Scope) {
			scopetest.OnVolume(w, corev1.ReadWriteOnce)
			w.Run.Spec.Clients.NodeSelector = v1alpha1.NodeSelector{"disk": "fast"}
			scopetest.Entry(w, scopetest.At(0, 1))
			w.Records.Of(0)[0].Nodes = []string{"n7"}
		}},
		"on-each-client-of-a-volume": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnEachClient)
			w.Run.Spec.Clients.Count = 3
			scopetest.OnVolume(w, corev1.ReadWriteMany)
		}},
		"on-management": {scopetest.At(0, 1), func(w *scope.Scope) {
			w.Management, w.Run.Spec.Target.FileSystem.StoragePool = manager{}, "ssd"
			w.Plans[0] = scopetest.PlanOf(benchmarks.OnManagement)
			w.Plans[0].Steps[0].Command.Calls = []benchmarks.Call{{Verb: "write"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			w.Run.Namespace = "storage"
			w.FileSystem.UID = "0123456789"
			c.given(w)
			text, err := yaml.Marshal(jobOf(w, c.turn))
			g.Expect(err).NotTo(HaveOccurred())
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
				g.Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
			}
			g.Expect(os.ReadFile(path)).To(BeEquivalentTo(text))
		})
	}
}

func TestARunOverTwoPoolsWorksInBoth(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	w.FileSystem.Spec.StoragePools = []v1alpha1.StoragePoolSpec{{Name: "ssd"}, {Name: "bulk"}}
	w.Points[0].Parameters["storagePool"], w.Points[1].Parameters["storagePool"] = "ssd", "bulk"
	w.Run.Status.Directory = w.Directory()
	g.Expect(w.Run.Status.Directory).To(Equal("/mnt/scratch/{ssd,bulk}/.parallelfs-benchmarks/uid"))
	job, ok := jobOf(w, scopetest.At(1, 1)).(*batchv1.Job)
	g.Expect(ok).To(BeTrue())
	g.Expect(configOf(g, job.Spec.Template).Directory).To(Equal("/mnt/scratch/bulk/.parallelfs-benchmarks/uid/p1-r1"))

	t.Run("and both are cleaned", func(t *testing.T) {
		g := NewWithT(t)
		cleaner, ok := render(w).Cleaner().(*batchv1.Job)
		g.Expect(ok).To(BeTrue())
		pod := cleaner.Spec.Template
		g.Expect(configOf(g, pod).Root).To(Equal("/mnt/scratch/ssd/.parallelfs-benchmarks/uid"))
		second := pod.Spec.InitContainers[1]
		g.Expect(second.Command).To(Equal([]string{"/parallelfs/node", "bench", "clean", "--spec", "/etc/parallelfs/benchmark-1.json"}))
		pod.Annotations[children.AnnotationTold] = pod.Annotations[children.AnnotationTold+"-1"]
		config := configOf(g, pod)
		g.Expect(config.Root).To(Equal("/mnt/scratch/bulk/.parallelfs-benchmarks/uid"))
		g.Expect(bench.RootPlace(config)).To(Succeed())
		g.Expect(pod.Spec.Volumes).To(ContainElement(HaveField("VolumeSource.DownwardAPI.Items", HaveLen(2))))
	})
}

func TestResultsAreTakenToAClaimAndAStore(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	w.Run.Spec.Results = &v1alpha1.ResultsSpec{
		PersistentVolumeClaim: &v1alpha1.ResultsClaim{Name: "lab", Path: "a/b"},
		ObjectStore:           &v1alpha1.ObjectStore{Endpoint: "https://s3.example.org", Bucket: "bench", Prefix: "p", Region: "eu", SecretName: "keys"},
	}
	job, ok := render(w).Exporter().(*batchv1.Job)
	g.Expect(ok).To(BeTrue())
	c := job.Spec.Template.Spec.Containers[0]
	g.Expect(c.Command).To(Equal([]string{
		"/node", "export", "--files", "/results", "--to", "/claim/a/b/sweep-uid", "--s3-endpoint", "https://s3.example.org", "--s3-bucket", "bench",
		"--s3-prefix", "p/sweep-uid", "--s3-credentials", "/credentials", "--s3-region", "eu",
	}))
	g.Expect(c.Env).To(BeEmpty(), "no secret stands in a pod's description")
	g.Expect(job.Name).To(Equal("sweep-export"))
}
