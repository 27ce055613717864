//go:build chart

package charts_test

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// agents is the DaemonSet of the agents.
func agents(t *testing.T, o objects) *appsv1.DaemonSet {
	t.Helper()
	return find[appsv1.DaemonSet](t, o, "DaemonSet", release+"-agent")
}

func TestAnAgentSeesTheDisksProcessesAndNetworkOfItsNodeAndMountsForAllOfIt(t *testing.T) {
	g := NewWithT(t)
	pod := agents(t, render(t, "")).Spec.Template.Spec
	container := pod.Containers[0]
	g.Expect(pod.Containers).To(HaveLen(1))
	g.Expect([]bool{pod.HostNetwork, pod.HostPID, *container.SecurityContext.Privileged}).To(HaveEach(true))
	g.Expect(pod.DNSPolicy).To(Equal(corev1.DNSClusterFirstWithHostNet))
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	g.Expect(container.Env).To(ConsistOf(field("NODE_NAME", "spec.nodeName"), field("POD_IP", "status.podIP"),
		field("POD_NAMESPACE", "metadata.namespace"), field("POD_NAME", "metadata.name")))

	type mount struct {
		path, options string
		kind          corev1.HostPathType
	}
	var mounts []mount
	for i, volume := range pod.Volumes {
		m := container.VolumeMounts[i]
		g.Expect(m.Name).To(Equal(volume.Name))
		g.Expect(m.MountPath).To(Equal(volume.HostPath.Path), "a path is the same in the pod as on the node")
		options := ""
		if m.ReadOnly {
			options = "ro"
		}
		if m.MountPropagation != nil {
			options += string(*m.MountPropagation)
		}
		mounts = append(mounts, mount{m.MountPath, options, *volume.HostPath.Type})
	}
	g.Expect(mounts).To(ConsistOf(
		mount{"/dev", "", corev1.HostPathDirectory},
		mount{"/run/udev", "ro", corev1.HostPathDirectoryOrCreate},
		mount{"/var/lib/parallelfs", "Bidirectional", corev1.HostPathDirectoryOrCreate},
		mount{"/lib/modules", "ro", corev1.HostPathDirectoryOrCreate},
	))
}

func TestAgentsRunOnTheLabeledNodesWhateverTheirTaints(t *testing.T) {
	g := NewWithT(t)
	spec := agents(t, render(t, "")).Spec
	pod := spec.Template.Spec
	g.Expect(pod.NodeSelector).To(Equal(map[string]string{"parallelfs.dev/agent": ""}))
	g.Expect(pod.Tolerations).To(Equal([]corev1.Toleration{{Operator: corev1.TolerationOpExists}}))
	g.Expect(pod.PriorityClassName).To(Equal("system-node-critical"))
	labels := maps.Clone(spec.Selector.MatchLabels)
	labels["app.kubernetes.io/managed-by"] = "parallelfs-operator"
	g.Expect(spec.Template.Labels).To(Equal(labels), "the manager watches the pods with managed-by")
	g.Expect(spec.UpdateStrategy).To(Equal(appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))}}))
}

func TestAnAgentIsNeverKilledForADiskThatDoesNotAnswerNorSlowedDown(t *testing.T) {
	g := NewWithT(t)
	container := agents(t, render(t, "")).Spec.Template.Spec.Containers[0]
	g.Expect(container.LivenessProbe).To(BeNil())
	g.Expect(container.StartupProbe).To(BeNil())
	g.Expect(container.ReadinessProbe.HTTPGet).To(And(
		HaveField("Host", "127.0.0.1"), HaveField("Path", "/readyz"), HaveField("Port.IntVal", BeEquivalentTo(9416))))
	g.Expect(container.Resources.Requests).To(And(HaveKey(corev1.ResourceCPU), HaveKey(corev1.ResourceMemory)))
	g.Expect(container.Resources.Limits).To(HaveKey(corev1.ResourceMemory), "whatever a process of the node makes it read")
	g.Expect(container.Resources.Limits).NotTo(HaveKey(corev1.ResourceCPU))
}

func TestValuesReachTheAgents(t *testing.T) {
	g := NewWithT(t)
	spec := agents(t, render(t, `
imagePullPolicy: Never
imagePullSecrets: [{name: ours}]
logLevel: debug
image: {agent: {repository: localhost/parallelfs/agent, tag: dev}}
agent:
  nodeSelector: {parallelfs.dev/agent: null, disks: ours}
  resync: 1h
  healthPort: 9999
  telemetryInterval: 500ms
  telemetryPort: 9998
  diskHealthInterval: 6h
  resources: {requests: {cpu: 1}}
  tolerations: [{key: storage, operator: Exists}]
  updateStrategy: {type: OnDelete, rollingUpdate: null}
`)).Spec
	pod := spec.Template.Spec
	container := pod.Containers[0]
	g.Expect(container.Image).To(Equal("localhost/parallelfs/agent:dev"))
	g.Expect(container.ImagePullPolicy).To(Equal(corev1.PullNever))
	g.Expect(container.Args).To(Equal([]string{"--resync=1h", "--health-probe-bind-address=127.0.0.1:9999",
		"--telemetry-interval=500ms", "--disk-health-interval=6h", "--telemetry-port=9998", "--log-level=debug"}))
	g.Expect(container.Ports).To(Equal([]corev1.ContainerPort{{Name: "telemetry", ContainerPort: 9998}}))
	g.Expect(container.ReadinessProbe.HTTPGet.Port.IntValue()).To(Equal(9999))
	g.Expect(container.Resources.Requests.Cpu().Value()).To(BeEquivalentTo(1))
	g.Expect(pod.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "ours"}}))
	g.Expect(pod.NodeSelector).To(Equal(map[string]string{"disks": "ours"}))
	g.Expect(pod.Tolerations).To(Equal([]corev1.Toleration{{Key: "storage", Operator: corev1.TolerationOpExists}}))
	g.Expect(spec.UpdateStrategy.Type).To(Equal(appsv1.OnDeleteDaemonSetStrategyType))
}

func TestTheManagerAsksTheAgentsOnThePortThatTheyAnswerOn(t *testing.T) {
	for name, c := range map[string]struct{ values, port, interval string }{
		"as it comes":                    {"", "--telemetry-port=9417", "1s"},
		"another port":                   {"agent: {telemetryPort: 9998}", "--telemetry-port=9998", "1s"},
		"nobody is asked for no samples": {`agent: {telemetryInterval: "0"}`, "", "0"},
		"nobody is asked without agents": {"agent: {enabled: false}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all := render(t, c.values)
			args := manager(t, all).Spec.Template.Spec.Containers[0].Args
			if c.port == "" {
				g.Expect(args).NotTo(ContainElement(ContainSubstring("telemetry")))
			} else {
				g.Expect(args).To(ContainElement(c.port))
			}
			if c.interval != "" {
				container := agents(t, all).Spec.Template.Spec.Containers[0]
				g.Expect(container.Args).To(ContainElement("--telemetry-interval=" + c.interval))
				g.Expect(len(container.Ports) == 1).To(Equal(c.port != ""))
			}
		})
	}
}

func TestTheAgentsRightsAreItsOwnAndTheManagerHasNoneOfThem(t *testing.T) {
	g := NewWithT(t)
	all := render(t, "")
	g.Expect(agents(t, all).Spec.Template.Spec.ServiceAccountName).To(Equal(release + "-agent"))
	g.Expect(manager(t, all).Spec.Template.Spec.ServiceAccountName).To(Equal(release + "-manager"))
	writes := map[string][]string{}
	for _, rule := range find[rbacv1.ClusterRole](t, all, "ClusterRole", release+"-agent").Rules {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" && verb != "watch" {
				for _, resource := range rule.Resources {
					writes[resource] = append(writes[resource], verb)
				}
			}
		}
	}
	g.Expect(writes).To(Equal(map[string][]string{
		"nodeinventories":        {"create", "patch"},
		"nodeinventories/status": {"patch", "update"},
		"filesystemnodes/status": {"patch", "update"},
		"storagetargets/status":  {"patch", "update"},
		"events":                 {"create", "patch"},
	}))
}

func TestEveryPolicyIsBoundAndRefusesWhenItCannotTell(t *testing.T) {
	all := render(t, "")
	for _, name := range []string{release + "-agent", release + "-annotations", release + "-filesystemnodes", release + "-filesystems", release + "-nodes", release + "-storagetargets"} {
		g := NewWithT(t)
		policy := find[admissionv1.ValidatingAdmissionPolicy](t, all, "ValidatingAdmissionPolicy", name)
		g.Expect(policy.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
		binding := find[admissionv1.ValidatingAdmissionPolicyBinding](t, all, "ValidatingAdmissionPolicyBinding", name)
		g.Expect(binding.Spec.PolicyName).To(Equal(name))
		g.Expect(binding.Spec.ValidationActions).To(Equal([]admissionv1.ValidationAction{admissionv1.Deny}))
		g.Expect(binding.Spec.MatchResources).To(BeNil())
		g.Expect(binding.Spec.ParamRef).To(BeNil())
	}
}

func TestThePoliciesKnowTheServiceAccountsByTheirNames(t *testing.T) {
	g := NewWithT(t)
	all := render(t, "serviceAccount: {create: false, name: theirs}")
	condition := func(name string) string {
		return find[admissionv1.ValidatingAdmissionPolicy](t, all, "ValidatingAdmissionPolicy", name).Spec.MatchConditions[0].Expression
	}
	for _, name := range []string{"-storagetargets", "-filesystemnodes", "-filesystems"} {
		g.Expect(condition(release + name)).To(Equal("request.userInfo.username != 'system:serviceaccount:parallelfs-system:theirs'"))
	}
	g.Expect(condition(release + "-nodes")).To(Equal("request.userInfo.username == 'system:serviceaccount:parallelfs-system:theirs'"))
	g.Expect(condition(release + "-agent")).To(Equal(
		"request.userInfo.username == 'system:serviceaccount:parallelfs-system:parallelfs-operator-agent'"))
}

func TestThePriorityClassOfAgentsIsAValueAndTheManagerFindsTheirDaemonSet(t *testing.T) {
	g := NewWithT(t)
	o := render(t, "")
	g.Expect(agents(t, o).Spec.Template.Spec.PriorityClassName).To(Equal("system-node-critical"))
	manager := find[appsv1.Deployment](t, o, "Deployment", release+"-manager")
	g.Expect(manager.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--agents=" + namespace + "/" + agents(t, o).Name))
	g.Expect(agents(t, render(t, "agent: {priorityClassName: storage}")).Spec.Template.Spec.PriorityClassName).To(Equal("storage"))
	g.Expect(agents(t, render(t, `agent: {priorityClassName: ""}`)).Spec.Template.Spec.PriorityClassName).To(BeEmpty())
}
