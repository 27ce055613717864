package admitted_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/controllers/admitted"
)

func asked() *corev1.PodSpec {
	return &corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "install", Image: "node:1", Command: []string{"/node", "install"}}},
		Containers: []corev1.Container{{Name: "benchmark", Image: "ior:4", Command: []string{"node"}, Args: []string{"run"},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}},
		Volumes: []corev1.Volume{
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "mounts", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/parallelfs"}}},
		},
	}
}

func TestChangesOfAPodByAdmissionAreNamed(t *testing.T) {
	limit := func(c *corev1.Container, name corev1.ResourceName, to string) {
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[name] = resource.MustParse(to)
	}
	for name, c := range map[string]struct {
		change func(s *corev1.PodSpec)
		want   []string
	}{
		"nothing":                      {func(*corev1.PodSpec) {}, nil},
		"one quantity in other words":  {func(s *corev1.PodSpec) { limit(&s.Containers[0], "memory", "1024Mi") }, nil},
		"a limit of the CPU":           {func(s *corev1.PodSpec) { limit(&s.Containers[0], "cpu", "500m") }, []string{"the cpu of container benchmark is limited to 500m"}},
		"a limit of an init container": {func(s *corev1.PodSpec) { limit(&s.InitContainers[0], "memory", "16Mi") }, []string{"the memory of container install is limited to 16Mi"}},
		"another limit":                {func(s *corev1.PodSpec) { limit(&s.Containers[0], "memory", "512Mi") }, []string{"the memory of container benchmark is limited to 512Mi instead of 1Gi"}},
		"a limit that is gone":         {func(s *corev1.PodSpec) { s.Containers[0].Resources.Limits = nil }, []string{"the memory of container benchmark has no limit instead of 1Gi"}},
		"a sidecar": {func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "istio-proxy", Image: "proxyv2:1"})
		}, []string{"container istio-proxy (proxyv2:1) was added"}},
		"an init container": {func(s *corev1.PodSpec) {
			s.InitContainers = append(s.InitContainers, corev1.Container{Name: "istio-init", Image: "proxyv2:1"})
		}, []string{"container istio-init (proxyv2:1) was added"}},
		"another image":           {func(s *corev1.PodSpec) { s.Containers[0].Image = "mirror/ior:4" }, []string{"container benchmark has the image mirror/ior:4 instead of ior:4"}},
		"another command":         {func(s *corev1.PodSpec) { s.Containers[0].Args = []string{"run", "-v"} }, []string{"container benchmark runs another command"}},
		"an argument that is two": {func(s *corev1.PodSpec) { s.Containers[0].Command, s.Containers[0].Args = []string{"node", "run"}, nil }, []string{"container benchmark runs another command"}},
		"a container less":        {func(s *corev1.PodSpec) { s.InitContainers = nil }, []string{"container install was removed"}},
		"a volume": {func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "certs", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ca"}}})
		}, []string{"volume certs (secret ca) was added"}},
		"a volume from another place":    {func(s *corev1.PodSpec) { s.Volumes[1].HostPath = &corev1.HostPathVolumeSource{Path: "/tmp"} }, []string{"volume mounts is hostPath /tmp instead of hostPath /var/lib/parallelfs"}},
		"a volume less":                  {func(s *corev1.PodSpec) { s.Volumes = s.Volumes[1:] }, []string{"volume tmp was removed"}},
		"the token of a service account": {func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: "kube-api-access-x2v7k"}) }, nil},
		"the keys of the MPI operator": {func(s *corev1.PodSpec) {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: "ssh-auth"}, corev1.Volume{Name: "mpi-job-config"})
		}, nil},
		"a sandbox": {func(s *corev1.PodSpec) { s.RuntimeClassName = new("gvisor") }, []string{"the runtime class is gvisor instead of the default"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			template := asked()
			byRole, err := admitted.Decode(admitted.Encode(map[string]admitted.Asked{"client": admitted.AskedOf(template)}))
			g.Expect(err).NotTo(HaveOccurred())
			pod := template.DeepCopy()
			c.change(pod)
			g.Expect(byRole["client"].Changes(pod)).To(Equal(c.want))
			g.Expect(admitted.AskedOf(template).Changes(pod)).To(Equal(c.want))
		})
	}
}

func TestALimitOfTheCPUComesFirstAndIsRecognized(t *testing.T) {
	g := NewWithT(t)
	pod := asked()
	pod.Containers[0].Image = "mirror/ior:4"
	pod.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
	changes := admitted.AskedOf(asked()).Changes(pod)
	g.Expect(changes).To(HaveLen(2))
	g.Expect(admitted.LimitsCPU(changes[0])).To(BeTrue())
	g.Expect(admitted.LimitsCPU(changes[1])).To(BeFalse())
}

func TestAContainerThatOutlastsTheToolIsNamed(t *testing.T) {
	status := func(name string, ended bool) corev1.ContainerStatus {
		out := corev1.ContainerStatus{Name: name}
		if ended {
			out.State.Terminated = &corev1.ContainerStateTerminated{}
		} else {
			out.State.Running = &corev1.ContainerStateRunning{}
		}
		return out
	}
	own := func(name string) bool { return name == "benchmark" }
	for name, c := range map[string]struct {
		containers []corev1.ContainerStatus
		want       string
	}{
		"the tool runs":         {[]corev1.ContainerStatus{status("benchmark", false), status("proxy", false)}, ""},
		"all have ended":        {[]corev1.ContainerStatus{status("benchmark", true), status("proxy", true)}, ""},
		"another one runs":      {[]corev1.ContainerStatus{status("agent", true), status("proxy", false), status("benchmark", true)}, "proxy"},
		"nothing was started":   {nil, ""},
		"only another one runs": {[]corev1.ContainerStatus{status("proxy", false)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(admitted.Outlasting(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: c.containers}}, own)).To(Equal(c.want))
		})
	}
}
