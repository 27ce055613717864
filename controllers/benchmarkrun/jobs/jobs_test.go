package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/spec"
)

func render(w *scope.Scope) Renderer {
	return Renderer{Scope: w, Images: backend.Images{Node: "node:1", Benchmarks: map[string]string{"iozone": "iozone:1"}, PullPolicy: "Never"}}
}

// spread makes the points distributed, over two clients.
func spread(w *scope.Scope) *scope.Scope {
	w.Mount.Source = "10.0.0.1:9421"
	for i := range w.Plans {
		w.Plans[i] = benchmarks.Plan{Clients: 2, Processes: 5, Steps: []benchmarks.Step{{Command: benchmarks.Command{
			Launch: benchmarks.OnLauncher, Argv: []string{"iozone", "-+m", "$(HOSTS_FILE)"}, Env: []string{"RSH=ssh"},
			Files: []benchmarks.File{{PerProcess: "$(HOST) $(DIRECTORY) /usr/bin/iozone\n"}},
		}}}}
	}
	return w
}

// jobOf returns the job of a turn.
func jobOf(w *scope.Scope, t turns.Turn) client.Object {
	job, err := render(w).Turn(t)
	if err != nil {
		panic(err)
	}
	return job
}

func configOf(g *WithT, pod corev1.PodTemplateSpec) spec.Benchmark {
	var config spec.Benchmark
	g.Expect(json.Unmarshal([]byte(pod.Annotations[children.AnnotationTold]), &config)).To(Succeed())
	return config
}

func nodesOf(pod corev1.PodTemplateSpec) []string {
	var names []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		names = append(names, term.MatchFields[0].Values...)
	}
	return names
}

// templates returns all pods that a run can create, by their purpose.
func templates() map[string]corev1.PodTemplateSpec {
	mpi := jobOf(spread(scopetest.Idle()), scopetest.At(0, 1)).(*mpiv2.MPIJob).Spec.MPIReplicaSpecs
	return map[string]corev1.PodTemplateSpec{
		"client":   jobOf(scopetest.Idle(), scopetest.At(0, 1)).(*batchv1.Job).Spec.Template,
		"cleaner":  render(scopetest.Idle()).Cleaner().(*batchv1.Job).Spec.Template,
		"checker":  render(scopetest.Idle()).Checker().(*batchv1.Job).Spec.Template,
		"launcher": mpi[mpiv2.MPIReplicaTypeLauncher].Template,
		"worker":   mpi[mpiv2.MPIReplicaTypeWorker].Template,
	}
}

func TestEveryPodOfARun(t *testing.T) {
	for name, pod := range templates() {
		t.Run(name+" can be found by the operator, and finds what it is told", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(pod.Labels).To(HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedBy))
			g.Expect(pod.Labels).To(HaveKeyWithValue(v1alpha1.LabelBenchmarkRun, "sweep"))
			g.Expect(pod.Labels).To(HaveKeyWithValue(children.LabelRole, name))
			g.Expect(pod.Labels).NotTo(HaveKey(v1alpha1.LabelFileSystem), "the FileSystem's controller would take it for a daemon")
			g.Expect(pod.Spec.Containers[0].Name).To(Equal(children.ContainerName))
			config := configOf(g, pod)
			g.Expect(bench.Place(config)).To(Succeed())
			g.Expect(config.TimeoutSeconds).To(BeNumerically(">", 0))
		})
		t.Run(name+" has no more rights than its work needs", func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
			g.Expect(pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC).To(BeFalse())
			g.Expect(pod.Spec.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				g.Expect(c.SecurityContext.Privileged).To(BeNil())
				g.Expect(*c.SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
				g.Expect(*c.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
				g.Expect(c.SecurityContext.Capabilities.Drop).To(Equal([]corev1.Capability{"ALL"}))
				if name != "worker" {
					g.Expect(c.SecurityContext.Capabilities.Add).To(BeEmpty())
				}
			}
		})
		t.Run(name+" goes where the clients are, whatever the taints", func(t *testing.T) {
			NewWithT(t).Expect(pod.Spec.Tolerations).To(Equal([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}))
		})
		t.Run(name+" sees the node's mount only if it works in it", func(t *testing.T) {
			g := NewWithT(t)
			var mounts []corev1.VolumeMount
			for _, m := range pod.Spec.Containers[0].VolumeMounts {
				if m.Name == "mounts" {
					mounts = append(mounts, m)
				}
			}
			if name == "launcher" {
				g.Expect(mounts).To(BeEmpty())
				return
			}
			g.Expect(mounts).To(HaveLen(1))
			g.Expect(mounts[0].MountPath).To(Equal("/mnt"), "it is where programs on the node find it")
			volume := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "mounts" })
			g.Expect(pod.Spec.Volumes[volume].HostPath.Path).To(Equal("/var/lib/parallelfs/mounts/storage.scratch"),
				"the node's own /mnt may hold filesystems of others")
			g.Expect(*mounts[0].MountPropagation).To(Equal(corev1.MountPropagationHostToContainer), "a mount that is made anew appears")
			g.Expect(mounts[0].ReadOnly).To(BeTrue(), "the node's own disk is not written to when nothing is mounted")
		})
	}
}

// measurer is a backend whose servers have these targets.
type measurer map[string][]string

func (measurer) MeasuresServers(v1alpha1.BenchmarkTool) bool { return true }

func (m measurer) MeasuredTargets(backend.Input, v1alpha1.Role) map[string][]string { return m }

func TestMoreTargetsThanAJobHoldsAreReported(t *testing.T) {
	g := NewWithT(t)
	w, targets := scopetest.Idle(), measurer{}
	w.Plans[0] = scopetest.PlanOf(benchmarks.OnServers)
	w.Plans[0].Steps[0].Command.Role = v1alpha1.RoleStorage
	for node := range 1000 {
		name := fmt.Sprintf("oss-%d", node)
		w.Members.Servers = append(w.Members.Servers, results.Server{Role: v1alpha1.RoleStorage, Node: name})
		for target := range 16 {
			targets[name] = append(targets[name], fmt.Sprintf("x-OST%04x", node*16+target))
		}
	}
	w.Servers = targets
	_, err := render(w).Turn(scopetest.At(0, 1))
	g.Expect(err).To(MatchError(MatchRegexp(`^the targets of the servers of FileSystem scratch take \d+ bytes, and a job holds 196608; measure it from its clients$`)))
}

func TestPodsOnServersRunTheOperatorsImage(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	w.Servers = measurer{}
	w.Run.Spec.Image, w.Image = "example.com/mine:1", "example.com/mine:1"
	w.Plans[0] = scopetest.PlanOf(benchmarks.OnServers)
	w.Plans[0].Steps[0].Command.Role = v1alpha1.RoleMetadata
	w.Members.Servers = []results.Server{{Role: v1alpha1.RoleMetadata, Node: "mds1"}}
	job, ok := jobOf(w, scopetest.At(0, 1)).(*batchv1.Job)
	g.Expect(ok).To(BeTrue())
	c := job.Spec.Template.Spec.Containers[0]
	g.Expect(c.SecurityContext.Privileged).To(HaveValue(BeTrue()))
	g.Expect(c.Image).To(Equal("node:1"))
	g.Expect(*job.Spec.Template.Spec.TerminationGracePeriodSeconds).To(BeNumerically(">", 45), "the tool has 45 seconds to take back what it has set up")
}

func TestAPodOfARunBesideServersHasALimitOfMemory(t *testing.T) {
	limit := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	limits := func(pod corev1.PodTemplateSpec) []corev1.ResourceList {
		return []corev1.ResourceList{pod.Spec.InitContainers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Limits}
	}
	t.Run("as a client", func(t *testing.T) {
		g := NewWithT(t)
		w := scopetest.Idle()
		turn := func() corev1.PodTemplateSpec { return jobOf(w, scopetest.At(0, 1)).(*batchv1.Job).Spec.Template }
		w.Members.Servers = []results.Server{{Role: v1alpha1.RoleStorage, Node: "n2"}}
		g.Expect(limits(turn())).To(HaveEach(BeNil()), "it runs on n1")
		w.Members.Servers[0].Node = "n1"
		g.Expect(limits(turn())).To(HaveEach(Equal(limit("8Gi"))))
		w.Run.Spec.Pods = &v1alpha1.BenchmarkPodsSpec{Resources: &v1alpha1.ContainerResources{Limits: v1alpha1.ResourceAmounts{"memory": "64Gi"}}}
		g.Expect(limits(turn())).To(HaveEach(Equal(limit("64Gi"))), "the user asks for more")
		w.Run.Spec.Pods.Resources = &v1alpha1.ContainerResources{Limits: v1alpha1.ResourceAmounts{"cpu": "4"}, Requests: v1alpha1.ResourceAmounts{"cpu": "1"}}
		g.Expect(limits(turn())).To(HaveEach(HaveKeyWithValue(corev1.ResourceMemory, resource.MustParse("8Gi"))), "the user asks for CPUs alone")
		w.Run.Spec.Pods.Resources = &v1alpha1.ContainerResources{Requests: v1alpha1.ResourceAmounts{"memory": "16Gi"}}
		g.Expect(limits(turn())).To(HaveEach(Equal(limit("16Gi"))), "the user requests more than the default")
	})
	t.Run("as a client of a volume, on any node", func(t *testing.T) {
		w := scopetest.Idle()
		scopetest.OnVolume(w, corev1.ReadWriteMany)
		NewWithT(t).Expect(limits(jobOf(w, scopetest.At(0, 1)).(*batchv1.Job).Spec.Template)).To(HaveEach(Equal(limit("8Gi"))))
	})
	t.Run("as a worker and as a launcher", func(t *testing.T) {
		g := NewWithT(t)
		w := spread(scopetest.Idle())
		w.Members.Servers = []results.Server{{Role: v1alpha1.RoleStorage, Node: "n2"}}
		for _, replica := range jobOf(w, scopetest.At(0, 1)).(*mpiv2.MPIJob).Spec.MPIReplicaSpecs {
			g.Expect(limits(replica.Template)).To(HaveEach(Equal(limit("8Gi"))))
		}
	})
	t.Run("as the pod that exports results, on any node", func(t *testing.T) {
		w := scopetest.Idle()
		w.Run.Spec.Results = &v1alpha1.ResultsSpec{PersistentVolumeClaim: &v1alpha1.ResultsClaim{Name: "lab"}}
		NewWithT(t).Expect(render(w).Exporter().(*batchv1.Job).Spec.Template.Spec.Containers[0].Resources.Limits).To(Equal(limit("256Mi")))
	})
	t.Run("as a tool of the servers", func(t *testing.T) {
		w := scopetest.Idle()
		w.Servers, w.Plans[0] = measurer{}, scopetest.PlanOf(benchmarks.OnServers)
		w.Plans[0].Steps[0].Command.Role = v1alpha1.RoleMetadata
		w.Members.Servers = []results.Server{{Role: v1alpha1.RoleMetadata, Node: "mds1"}}
		NewWithT(t).Expect(limits(jobOf(w, scopetest.At(0, 1)).(*batchv1.Job).Spec.Template)).To(HaveEach(Equal(limit("1Gi"))))
	})
}

func TestPodsOfARunAreAsTheUserAsks(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	w.Run.Spec.Pods = &v1alpha1.BenchmarkPodsSpec{
		Labels: map[string]v1alpha1.LabelValue{"cost-center": "7"}, Annotations: map[string]v1alpha1.AnnotationValue{"inject": "false"},
		ImagePullSecrets: []v1alpha1.SecretReference{{Name: "registry"}},
		Resources:        &v1alpha1.ContainerResources{Limits: v1alpha1.ResourceAmounts{"memory": "2Gi"}},
	}
	asked := corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("2Gi")}}
	job, ok := jobOf(w, scopetest.At(0, 1)).(*batchv1.Job)
	g.Expect(ok).To(BeTrue())
	pod := job.Spec.Template
	g.Expect(pod.Labels).To(And(HaveKeyWithValue("cost-center", "7"), HaveKeyWithValue(v1alpha1.LabelBenchmarkRun, "sweep")))
	g.Expect(pod.Annotations).To(And(HaveKeyWithValue("inject", "false"), HaveKey(children.AnnotationTold)))
	g.Expect(pod.Spec.ImagePullSecrets).To(HaveExactElements(corev1.LocalObjectReference{Name: "registry"}))
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		g.Expect(c.Resources).To(Equal(asked), "a ResourceQuota may ask %s for limits", c.Name)
	}

	w.Servers = measurer{}
	w.Plans[0] = scopetest.PlanOf(benchmarks.OnServers)
	w.Plans[0].Steps[0].Command.Role = v1alpha1.RoleMetadata
	w.Members.Servers = []results.Server{{Role: v1alpha1.RoleMetadata, Node: "mds1"}}
	job, ok = jobOf(w, scopetest.At(0, 1)).(*batchv1.Job)
	g.Expect(ok).To(BeTrue())
	pod = job.Spec.Template
	g.Expect(pod.Labels).NotTo(HaveKey("cost-center"), "an injector would put a container into a privileged pod")
	g.Expect(pod.Annotations).NotTo(HaveKey("inject"))
	g.Expect(pod.Spec.ImagePullSecrets).To(HaveLen(1))
	g.Expect(pod.Spec.Containers[0].Resources).To(Equal(asked))
}

func TestTheJobOfARepetition(t *testing.T) {
	t.Run("runs once, on the first client, in a directory of its own", func(t *testing.T) {
		g := NewWithT(t)
		job := jobOf(scopetest.Idle(), scopetest.At(1, 2)).(*batchv1.Job)
		g.Expect(job.Name).To(Equal("sweep-p1-r2"))
		g.Expect(*job.Spec.BackoffLimit).To(BeZero())
		g.Expect(job.Spec.Template.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
		g.Expect(nodesOf(job.Spec.Template)).To(Equal([]string{"n1"}))
		g.Expect(configOf(NewWithT(t), job.Spec.Template).Directory).To(Equal("/mnt/scratch/ssd/.parallelfs-benchmarks/uid/p1-r2"))
		g.Expect(job.Spec.Template.Spec.Containers[0].Command).To(Equal([]string{"/parallelfs/node", "bench", "run", "--spec", "/etc/parallelfs/benchmark.json"}))
	})
	t.Run("is ended by Kubernetes only when the operator has not done it", func(t *testing.T) {
		g := NewWithT(t)
		w := scopetest.Idle()
		scopetest.Limit(w, 1500*time.Millisecond, time.Hour)
		job := jobOf(w, scopetest.At(0, 1)).(*batchv1.Job)
		g.Expect(configOf(g, job.Spec.Template).TimeoutSeconds).To(Equal(int64(2)))
		g.Expect(*job.Spec.ActiveDeadlineSeconds).To(BeNumerically(">", int64((1500*time.Millisecond+scope.OverdueAfter)/time.Second)))
	})
	t.Run("is an MPIJob with one worker on each client when it is distributed", func(t *testing.T) {
		g := NewWithT(t)
		job := jobOf(spread(scopetest.Idle()), scopetest.At(0, 1)).(*mpiv2.MPIJob)
		worker, launcher := job.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeWorker], job.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeLauncher]
		g.Expect(*worker.Replicas).To(Equal(int32(2)))
		g.Expect(*job.Spec.SlotsPerWorker).To(Equal(int32(3)), "five processes on two clients")
		g.Expect(nodesOf(worker.Template)).To(Equal([]string{"n1", "n2"}))
		g.Expect(worker.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey).To(Equal(corev1.LabelHostname))
		g.Expect(job.Spec.LauncherCreationPolicy).To(Equal(mpiv2.LauncherCreationPolicyWaitForWorkersReady))
		g.Expect(worker.Template.Spec.Containers[0].ReadinessProbe.TCPSocket.Port.IntValue()).To(Equal(22))
		config := configOf(g, launcher.Template)
		g.Expect(config.Placement).To(Equal([]int{3, 2}))
		g.Expect(config.Files).To(Equal([]spec.BenchmarkFile{{PerProcess: "$(HOST) $(DIRECTORY) /usr/bin/iozone\n"}}))
		g.Expect(config.Env).To(Equal([]string{"RSH=ssh"}))
		g.Expect(config.Mount.Source).To(Equal("10.0.0.1:9421"), "another filesystem at that path must not be measured")
	})
	t.Run("takes all clients when the tool names no number", func(t *testing.T) {
		g := NewWithT(t)
		w := spread(scopetest.Idle())
		w.Clients, w.Plans[0].Clients = scopetest.ClientNodes("n1", "n2", "n3"), 0
		job := jobOf(w, scopetest.At(0, 1)).(*mpiv2.MPIJob)
		g.Expect(*job.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeWorker].Replicas).To(Equal(int32(3)))
	})
}

func TestTheCleaningJobRunsOnAnyNodeThatMountsTheFileSystem(t *testing.T) {
	g := NewWithT(t)
	job := render(scopetest.Idle()).Cleaner().(*batchv1.Job)
	g.Expect(job.Name).To(Equal("sweep-clean"))
	g.Expect(nodesOf(job.Spec.Template)).To(Equal([]string{"n1", "n2", "n3"}))
	g.Expect(configOf(g, job.Spec.Template).Root).To(Equal("/mnt/scratch/ssd/.parallelfs-benchmarks/uid"))
	g.Expect(job.Spec.Template.Spec.Containers[0].Image).To(Equal("node:1"), "it works without the tool's image too")
}

func TestAWaitingProcessReleasesItsCPUOnlyIfThereAreFewerCPUsThanProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		cpus int
		want []string
	}{
		"a client has more processes than CPUs": {1, []string{yieldWhenIdle}},
		"every process has a CPU":               {8, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := spread(scopetest.Idle())
			w.Run.Spec.Clients.Oversubscribe = true
			for i := range w.Clients {
				w.Clients[i].CPUs = c.cpus
			}
			w.Plans[0].Steps[0].Command = benchmarks.Command{Launch: benchmarks.OnProcesses, Argv: []string{"mdtest"}}
			job := jobOf(w, scopetest.At(0, 1)).(*mpiv2.MPIJob)
			g.Expect(configOf(g, job.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeLauncher].Template).Env).To(Equal(c.want))
		})
	}
}
