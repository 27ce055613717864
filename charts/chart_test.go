//go:build chart

// Package charts_test renders the Helm chart with the real helm, and checks the objects of a release.
package charts_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	chart     = "parallelfs-operator"
	namespace = "parallelfs-system"
	// The release has the chart's name, so the names of its objects begin with it once.
	release = "parallelfs-operator"
	// The only required value of a release, and the same as an argument of Helm.
	registry = "--set=imageRegistry=registry.example.com"
	// The oldest supported version of Kubernetes according to the chart.
	oldest = "1.31.0"
)

// helm runs Helm's binary in this folder with values on its standard input. HELM names the binary; the default is where the
// Makefile puts it.
func helm(t *testing.T, values string, args ...string) (string, error) {
	t.Helper()
	binary := os.Getenv("HELM")
	if binary == "" {
		binary = "../bin/helm"
	}
	if _, err := exec.LookPath(binary); err != nil {
		t.Fatalf("the tests of the chart need Helm's binary: run `make chart-test`, or set HELM to it: %v", err)
	}
	// Go keeps the result of a test until a file that the test itself has read changes; helm's reading does not count.
	err := filepath.WalkDir(chart, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// The configuration and the plugins of the person who runs the tests must not affect them.
	home := t.TempDir()
	command := exec.Command(binary, append(args, "--namespace", namespace, "--values", "-")...)
	command.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	command.Stdin = strings.NewReader(values)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stderr.String(), err
	}
	return stdout.String(), nil
}

// objects holds the objects that Helm would install.
type objects []*unstructured.Unstructured

// render returns the objects of a release with these values, decoded strictly: a field that Kubernetes does not have is an error.
func render(t *testing.T, values string, args ...string) objects {
	t.Helper()
	g := NewWithT(t)
	out, err := helm(t, values, append([]string{"template", release, chart, registry, "--kube-version", oldest}, args...)...)
	g.Expect(err).NotTo(HaveOccurred(), out)

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	var all objects
	for document := range strings.SplitSeq(out, "\n---\n") {
		object := &unstructured.Unstructured{}
		g.Expect(yaml.Unmarshal([]byte(document), &object.Object)).To(Succeed(), document)
		if len(object.Object) == 0 {
			continue
		}
		if object.GroupVersionKind().Group != "monitoring.coreos.com" {
			_, _, err := strict.Decode([]byte(document), nil, nil)
			g.Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
		}
		all = append(all, object)
	}
	return all
}

func TestAnImageFromAnUnnamedRegistryIsRefused(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	all := `
image: {manager: {repository: a.example/manager}, node: {repository: "b:5000/node"}, agent: {repository: localhost/agent}}
images:
  daemons: {moosefs-3.0.117: {repository: a.example/moosefs}, moosefs-4.57.5: {repository: a.example/moosefs}}
  benchmarks: {iozone: {repository: a.example/b}, fio: {repository: a.example/b}, postmark: {repository: a.example/b}, custom: {repository: a.example/b}}
`
	for name, c := range map[string]struct{ values, refused string }{
		"the default values":                         {"", "image.agent"},
		"the manager's":                              {all + "nameOverride: pfs\nimagePullPolicy: Always", ""},
		"a name of Docker Hub":                       {strings.Replace(all, "a.example/manager", "parallelfs/manager", 1), "image.manager"},
		"the node binary's":                          {strings.Replace(all, "b:5000/node", "library/node", 1), "image.node"},
		"the agent's":                                {strings.Replace(all, "localhost/agent", "localhostage/agent", 1), "image.agent"},
		"the agent's, when there are no agents":      {strings.Replace(all, "localhost/agent", "agent", 1) + "agent: {enabled: false}", ""},
		"a daemon's":                                 {strings.Replace(all, "a.example/moosefs", "moosefs", 1), "images.daemons.moosefs-3.0.117"},
		"a role of BeeGFS":                           {strings.Replace(all, "moosefs-3.0.117:", "beegfs-meta: {repository: mirror/beegfs-meta}, moosefs-3.0.117:", 1), "images.daemons.beegfs-meta"},
		"a benchmark's":                              {strings.Replace(all, "fio: {repository: a.example/b}", "fio: {repository: fio}", 1), "images.benchmarks.fio"},
		"the MPI operator's":                         {all + "mpiOperator: {image: {repository: mpioperator/mpi-operator}}", "mpiOperator.image"},
		"the MPI operator's, when it is not made":    {all + "mpiOperator: {enabled: false, image: {repository: mpioperator/mpi-operator}}", ""},
		"a digest is what it says, whoever keeps it": {strings.Replace(all, "a.example/manager", "parallelfs/manager, digest: \""+digest+"\"", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := helm(t, c.values, "template", release, chart, "--kube-version", oldest)
			if c.refused == "" {
				g.Expect(err).NotTo(HaveOccurred(), out)
				return
			}
			g.Expect(err).To(HaveOccurred(), "Helm renders it")
			g.Expect(out).To(ContainSubstring(c.refused + " names no registry"))
			g.Expect(out).To(ContainSubstring("set imageRegistry"))
		})
	}
}

func TestTheRegistryIsPutInFrontOfEveryImageThatNamesNone(t *testing.T) {
	g := NewWithT(t)
	all := render(t, "imageRegistry: ignored.example.com\nimages: {benchmarks: {fio: {repository: other.example.com/fio, tag: '3'}}}",
		"--set=imageRegistry=registry.example.com:5000/team")
	var images []string
	for _, container := range slices.Concat(manager(t, all).Spec.Template.Spec.Containers, agents(t, all).Spec.Template.Spec.Containers,
		find[appsv1.Deployment](t, all, "Deployment", "parallelfs-operator-mpi-operator").Spec.Template.Spec.Containers) {
		images = append(images, container.Image)
	}
	g.Expect(images).To(Equal([]string{"registry.example.com:5000/team/parallelfs/manager:0.1.0", "registry.example.com:5000/team/parallelfs/agent:0.1.0",
		"docker.io/mpioperator/mpi-operator:0.7.0"}))
	g.Expect(manager(t, all).Spec.Template.Spec.Containers[0].Args).To(ContainElements(
		"--node-image=registry.example.com:5000/team/parallelfs/node:0.1.0",
		"--daemon-image=moosefs-4.57.5=registry.example.com:5000/team/parallelfs/moosefs:4.57.5",
		"--daemon-image=beegfs-meta=ghcr.io/thinkparq/beegfs-meta",
		"--benchmark-image=fio=other.example.com/fio:3",
	))
}

// names lists the objects as kind/name, sorted.
func (o objects) names() []string {
	var names []string
	for _, object := range o {
		names = append(names, object.GetKind()+"/"+object.GetName())
	}
	slices.Sort(names)
	return names
}

// find decodes the one object of this kind and name.
func find[T any](t *testing.T, o objects, kind, name string) *T {
	t.Helper()
	for _, object := range o {
		if object.GetKind() == kind && object.GetName() == name {
			typed := new(T)
			NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)).To(Succeed())
			return typed
		}
	}
	t.Fatalf("no %s %s among %v", kind, name, o.names())
	return nil
}

// manager is the Deployment of the manager.
func manager(t *testing.T, o objects) *appsv1.Deployment {
	t.Helper()
	return find[appsv1.Deployment](t, o, "Deployment", release+"-manager")
}

func TestAReleaseWithDefaultValuesIsTheManagerTheAgentsTheDefinitionsAndTheMPIOperator(t *testing.T) {
	NewWithT(t).Expect(render(t, "").names()).To(Equal([]string{
		"ClusterRole/parallelfs-operator-admin",
		"ClusterRole/parallelfs-operator-agent",
		"ClusterRole/parallelfs-operator-edit",
		"ClusterRole/parallelfs-operator-manager",
		"ClusterRole/parallelfs-operator-mpi-operator",
		"ClusterRole/parallelfs-operator-view",
		"ClusterRoleBinding/parallelfs-operator-agent",
		"ClusterRoleBinding/parallelfs-operator-manager",
		"ClusterRoleBinding/parallelfs-operator-mpi-operator",
		"CustomResourceDefinition/benchmarkruns.parallelfs.dev",
		"CustomResourceDefinition/benchmarksuites.parallelfs.dev",
		"CustomResourceDefinition/filesystemnodes.parallelfs.dev",
		"CustomResourceDefinition/filesystems.parallelfs.dev",
		"CustomResourceDefinition/mpijobs.kubeflow.org",
		"CustomResourceDefinition/nodeinventories.parallelfs.dev",
		"CustomResourceDefinition/storagetargets.parallelfs.dev",
		"DaemonSet/parallelfs-operator-agent",
		"Deployment/parallelfs-operator-manager",
		"Deployment/parallelfs-operator-mpi-operator",
		"PodDisruptionBudget/parallelfs-operator-manager",
		"Role/parallelfs-operator-leader-election",
		"Role/parallelfs-operator-mpi-leader-election",
		"RoleBinding/parallelfs-operator-leader-election",
		"RoleBinding/parallelfs-operator-mpi-leader-election",
		"Service/parallelfs-operator-metrics",
		"ServiceAccount/parallelfs-operator-agent",
		"ServiceAccount/parallelfs-operator-manager",
		"ServiceAccount/parallelfs-operator-mpi-operator",
		"ValidatingAdmissionPolicy/parallelfs-operator-agent",
		"ValidatingAdmissionPolicy/parallelfs-operator-annotations",
		"ValidatingAdmissionPolicy/parallelfs-operator-filesystemnodes",
		"ValidatingAdmissionPolicy/parallelfs-operator-filesystems",
		"ValidatingAdmissionPolicy/parallelfs-operator-nodes",
		"ValidatingAdmissionPolicy/parallelfs-operator-owned",
		"ValidatingAdmissionPolicy/parallelfs-operator-storagetargets",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-agent",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-annotations",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-filesystemnodes",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-filesystems",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-nodes",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-owned",
		"ValidatingAdmissionPolicyBinding/parallelfs-operator-storagetargets",
	}))
}

func TestValuesLeaveObjectsOut(t *testing.T) {
	all := render(t, "").names()
	for name, c := range map[string]struct {
		values string
		gone   []string
	}{
		"the MPI operator off leaves out all of it": {"mpiOperator: {enabled: false}", []string{
			"ClusterRole/parallelfs-operator-mpi-operator",
			"ClusterRoleBinding/parallelfs-operator-mpi-operator",
			"CustomResourceDefinition/mpijobs.kubeflow.org",
			"Deployment/parallelfs-operator-mpi-operator",
			"Role/parallelfs-operator-mpi-leader-election",
			"RoleBinding/parallelfs-operator-mpi-leader-election",
			"ServiceAccount/parallelfs-operator-mpi-operator",
		}},
		"agents off leaves out all of them, and not what keeps StorageTargets the manager's": {"agent: {enabled: false}", []string{
			"ClusterRole/parallelfs-operator-agent",
			"ClusterRoleBinding/parallelfs-operator-agent",
			"DaemonSet/parallelfs-operator-agent",
			"ServiceAccount/parallelfs-operator-agent",
			"ValidatingAdmissionPolicy/parallelfs-operator-agent",
			"ValidatingAdmissionPolicyBinding/parallelfs-operator-agent",
		}},
		"filesystems off leaves out their kinds, agents, policies and rights on nodes": {"fileSystems: {enabled: false}", []string{
			"ClusterRole/parallelfs-operator-agent",
			"ClusterRoleBinding/parallelfs-operator-agent",
			"CustomResourceDefinition/benchmarksuites.parallelfs.dev",
			"CustomResourceDefinition/filesystemnodes.parallelfs.dev",
			"CustomResourceDefinition/filesystems.parallelfs.dev",
			"CustomResourceDefinition/nodeinventories.parallelfs.dev",
			"CustomResourceDefinition/storagetargets.parallelfs.dev",
			"DaemonSet/parallelfs-operator-agent",
			"ServiceAccount/parallelfs-operator-agent",
			"ValidatingAdmissionPolicy/parallelfs-operator-agent",
			"ValidatingAdmissionPolicy/parallelfs-operator-filesystemnodes",
			"ValidatingAdmissionPolicy/parallelfs-operator-filesystems",
			"ValidatingAdmissionPolicy/parallelfs-operator-nodes",
			"ValidatingAdmissionPolicy/parallelfs-operator-storagetargets",
			"ValidatingAdmissionPolicyBinding/parallelfs-operator-agent",
			"ValidatingAdmissionPolicyBinding/parallelfs-operator-filesystemnodes",
			"ValidatingAdmissionPolicyBinding/parallelfs-operator-filesystems",
			"ValidatingAdmissionPolicyBinding/parallelfs-operator-nodes",
			"ValidatingAdmissionPolicyBinding/parallelfs-operator-storagetargets",
		}},
		"definitions off leaves out all six": {"crds: {enabled: false}", []string{
			"CustomResourceDefinition/benchmarkruns.parallelfs.dev",
			"CustomResourceDefinition/benchmarksuites.parallelfs.dev",
			"CustomResourceDefinition/filesystemnodes.parallelfs.dev",
			"CustomResourceDefinition/filesystems.parallelfs.dev",
			"CustomResourceDefinition/mpijobs.kubeflow.org",
			"CustomResourceDefinition/nodeinventories.parallelfs.dev",
			"CustomResourceDefinition/storagetargets.parallelfs.dev",
		}},
		"one replica has no disruption budget, which would protect nothing": {"replicas: 1", []string{
			"PodDisruptionBudget/parallelfs-operator-manager",
		}},
		"a service account that exists is not made": {"serviceAccount: {create: false, name: theirs}", []string{
			"ServiceAccount/parallelfs-operator-manager",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			left := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(c.gone, n) })
			NewWithT(t).Expect(render(t, c.values).names()).To(Equal(left))
		})
	}
}

func TestDefinitionsOutliveTheReleaseUnlessAValueForbidsIt(t *testing.T) {
	for values, kept := range map[string]bool{"": true, "crds: {keep: false}": false} {
		for _, object := range render(t, values) {
			_, has := object.GetAnnotations()["helm.sh/resource-policy"]
			wanted := kept && object.GetKind() == "CustomResourceDefinition"
			NewWithT(t).Expect(has).To(Equal(wanted), "%s with values %q", object.GetName(), values)
		}
	}
}

func TestMonitorsAreMadeOnlyWhenAskedForAndServed(t *testing.T) {
	monitors := func(o objects) []string {
		return slices.DeleteFunc(o.names(), func(n string) bool { return !strings.Contains(n, "Monitor/") })
	}
	served := []string{"--api-versions", "monitoring.coreos.com/v1"}
	on := "monitoring: {enabled: true, interval: 15s, labels: {release: prometheus}}"

	g := NewWithT(t)
	g.Expect(monitors(render(t, "", served...))).To(BeEmpty(), "not asked for")
	g.Expect(monitors(render(t, on))).To(BeEmpty(), "not served")

	all := render(t, on, served...)
	g.Expect(monitors(all)).To(Equal([]string{
		"PodMonitor/parallelfs-operator-agents", "PodMonitor/parallelfs-operator-filesystems", "ServiceMonitor/parallelfs-operator-manager"}))
	pods := *find[map[string]any](t, all, "PodMonitor", "parallelfs-operator-filesystems")
	g.Expect(pods).To(HaveKeyWithValue("spec", Equal(map[string]any{
		"namespaceSelector": map[string]any{"any": true},
		"selector": map[string]any{
			"matchLabels":      map[string]any{"app.kubernetes.io/managed-by": "parallelfs-operator"},
			"matchExpressions": []any{map[string]any{"key": "parallelfs.dev/filesystem", "operator": "Exists"}},
		},
		"podMetricsEndpoints": []any{map[string]any{"port": "probe", "honorLabels": true, "interval": "15s", "relabelings": []any{
			map[string]any{"sourceLabels": []any{"__meta_kubernetes_pod_node_name"}, "targetLabel": "node"},
		}}},
	})))
	g.Expect(pods["metadata"]).To(HaveKeyWithValue("labels", HaveKeyWithValue("release", "prometheus")))

	// The ServiceMonitor must find the metrics Service, and only that.
	service := find[corev1.Service](t, all, "Service", "parallelfs-operator-metrics")
	monitor := find[unstructured.Unstructured](t, all, "ServiceMonitor", "parallelfs-operator-manager")
	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	for key, value := range selector {
		g.Expect(service.Labels).To(HaveKeyWithValue(key, value))
	}
	g.Expect(service.Spec.Ports).To(HaveExactElements(HaveField("Name", "metrics")))
}

func TestTheSchemaRefusesWhatTheChartDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct{ values, message string }{
		"an unknown value":              {"replicaCount: 3", "replicaCount"},
		"an unknown nested value":       {"crds: {install: true}", "install"},
		"a number as text":              {`replicas: "2"`, "replicas"},
		"a truth value as text":         {`mpiOperator: {enabled: "no"}`, "enabled"},
		"a negative number of replicas": {"replicas: -1", "replicas"},
		"an unknown log level":          {"logLevel: trace", "logLevel"},
		"an unknown form of the log":    {"logFormat: xml", "logFormat"},
		"a lease without sense":         {"leaderElection: {leaseDuration: long}", "leaseDuration"},
		"a label that selects pods":     {"podLabels: {app.kubernetes.io/name: mine}", "podLabels"},
		"a label of the operator":       {"commonLabels: {parallelfs.dev/filesystem: mine}", "commonLabels"},
		"a number as a label":           {"commonLabels: {team: 7}", "team"},
		"an annotation of the chart":    {"podAnnotations: {kubectl.kubernetes.io/default-container: x}", "podAnnotations"},
		"a global registry of none":     {"global: {imageRegistry: parallelfs}", "imageRegistry"},
		"an unknown pull policy":        {"imagePullPolicy: Sometimes", "imagePullPolicy"},
		"a tag inside the repository":   {"image: {manager: {repository: 'parallelfs/manager:dev'}}", "repository"},
		"a registry that is none":       {"imageRegistry: parallelfs", "imageRegistry"},
		"a short digest":                {"image: {node: {digest: 'sha256:abc'}}", "digest"},
		"a daemon without a version":    {"images: {daemons: {moosefs: {repository: a/b}}}", "moosefs"},
		"a type that there is not":      {"images: {daemons: {gpfs-5.0: {repository: a/b}}}", "gpfs-5.0"},
		"a role that BeeGFS has not":    {"images: {daemons: {beegfs-helperd: {repository: a/b}}}", "beegfs-helperd"},
		"one tag for all of a role":     {"images: {daemons: {beegfs-meta: {tag: 8.3.1}}}", "tag"},
		"one digest for all of a role":  {`images: {daemons: {beegfs-meta: {digest: "sha256:` + strings.Repeat("a", 64) + `"}}}`, "digest"},
		"a quantity without sense":      {"resources: {limits: {memory: lots}}", "memory"},
		"an interval of nothing":        {`intervals: {poll: "0s"}`, "poll"},
		"agents on every node at once":  {"agent: {nodeSelector: {parallelfs.dev/agent: null}}", "nodeSelector"},
		"an agent that never looks":     {`agent: {resync: "0"}`, "resync"},
		"a health port that is none":    {"agent: {healthPort: 65536}", "healthPort"},
		"an unknown value of the agent": {"agent: {privileged: false}", "privileged"},
		"a toleration without sense":    {"agent: {tolerations: [{operator: Always}]}", "tolerations"},
		"agents replaced in parallel":   {"agent: {updateStrategy: {rollingUpdate: {maxSurge: 1}}}", "maxSurge"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := helm(t, c.values, "template", release, chart, "--kube-version", oldest)
			g.Expect(err).To(HaveOccurred())
			g.Expect(out).To(And(ContainSubstring("schema"), ContainSubstring(c.message)))
		})
	}
}

func TestAServiceAccountThatIsNotMadeMustBeNamed(t *testing.T) {
	g := NewWithT(t)
	out, err := helm(t, "serviceAccount: {create: false}", "template", release, chart, registry, "--kube-version", oldest)
	g.Expect(err).To(HaveOccurred())
	g.Expect(out).To(ContainSubstring("serviceAccount.name must name an existing service account"))
}

func TestImagesReachTheManager(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name, c := range map[string]struct {
		values, image string
		args          []string
	}{
		"an empty tag is the chart's appVersion": {"", "registry.example.com/parallelfs/manager:0.1.0", []string{
			"--node-image=registry.example.com/parallelfs/node:0.1.0",
			"--daemon-image=moosefs-3.0.117=registry.example.com/parallelfs/moosefs:3.0.117",
			"--daemon-image=moosefs-4.57.5=registry.example.com/parallelfs/moosefs:4.57.5",
			"--daemon-image=beegfs-mgmtd=ghcr.io/thinkparq/beegfs-mgmtd",
			"--daemon-image=beegfs-meta=ghcr.io/thinkparq/beegfs-meta",
			"--daemon-image=beegfs-storage=ghcr.io/thinkparq/beegfs-storage",
			"--benchmark-image=custom=registry.example.com/parallelfs/benchmarks:0.1.0",
			"--benchmark-image=fio=registry.example.com/parallelfs/benchmarks:0.1.0",
			"--benchmark-image=iozone=registry.example.com/parallelfs/benchmarks:0.1.0",
			"--benchmark-image=postmark=registry.example.com/parallelfs/benchmarks:0.1.0",
			"--image-pull-policy=IfNotPresent",
		}},
		"repositories and tags can be changed": {`
imagePullPolicy: Never
image:
  manager: {repository: localhost/parallelfs/manager, tag: dev}
  node: {repository: localhost/parallelfs/node, tag: dev}
images:
  benchmarks: {iozone: {repository: "example.com:5000/iozone", tag: dev}}
`, "localhost/parallelfs/manager:dev", []string{
			"--node-image=localhost/parallelfs/node:dev",
			"--benchmark-image=iozone=example.com:5000/iozone:dev",
			"--image-pull-policy=Never",
		}},
		"a role of BeeGFS is a repository whose tags the manager adds, or the image of one version": {`
images:
  daemons:
    beegfs-tools: {repository: "example.com:5000/beegfs-tools"}
    beegfs-meta-8.3.1: {repository: mirror/beegfs-meta, digest: "` + digest + `"}
    beegfs-meta-7.4.6: {repository: mirror/beegfs-meta}
    beegfs-storage-7.4.6: {repository: mirror/beegfs-storage, tag: patched}
`, "registry.example.com/parallelfs/manager:0.1.0", []string{
			"--daemon-image=beegfs-tools=example.com:5000/beegfs-tools",
			"--daemon-image=beegfs-meta-8.3.1=registry.example.com/mirror/beegfs-meta@" + digest,
			"--daemon-image=beegfs-meta-7.4.6=registry.example.com/mirror/beegfs-meta:7.4.6",
			"--daemon-image=beegfs-storage-7.4.6=registry.example.com/mirror/beegfs-storage:patched",
			"--daemon-image=beegfs-meta=ghcr.io/thinkparq/beegfs-meta",
		}},
		"a digest wins over the tag": {`
image:
  manager: {tag: dev, digest: "` + digest + `"}
  node: {digest: "` + digest + `"}
images:
  daemons: {moosefs-4.57.5: {digest: "` + digest + `"}}
`, "registry.example.com/parallelfs/manager@" + digest, []string{
			"--node-image=registry.example.com/parallelfs/node@" + digest,
			"--daemon-image=moosefs-4.57.5=registry.example.com/parallelfs/moosefs@" + digest,
			"--daemon-image=moosefs-3.0.117=registry.example.com/parallelfs/moosefs:3.0.117",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			container := manager(t, render(t, c.values)).Spec.Template.Spec.Containers[0]
			g.Expect(container.Image).To(Equal(c.image))
			g.Expect(container.Args).To(ContainElements(c.args))
		})
	}
}

func TestIntervalsReachTheManager(t *testing.T) {
	for values, args := range map[string][]string{
		"": {"--poll-interval=12s", "--run-poll-interval=3s", "--tell-time=1m"},
		"intervals: {poll: 2s, runPoll: 500ms, tell: 5s}": {"--poll-interval=2s", "--run-poll-interval=500ms", "--tell-time=5s"},
	} {
		NewWithT(t).Expect(manager(t, render(t, values)).Spec.Template.Spec.Containers[0].Args).To(ContainElements(args))
	}
}

func TestTheHighestPriorityOfRunsReachesTheManager(t *testing.T) {
	for values, argument := range map[string]string{"": "--run-max-priority=1000000", "runs: {maxPriority: -5}": "--run-max-priority=-5"} {
		NewWithT(t).Expect(manager(t, render(t, values)).Spec.Template.Spec.Containers[0].Args).To(ContainElement(argument))
	}
}

func TestBothDeploymentsMeetThePodSecurityStandardRestricted(t *testing.T) {
	all := render(t, "")
	for _, name := range []string{"parallelfs-operator-manager", "parallelfs-operator-mpi-operator"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := find[appsv1.Deployment](t, all, "Deployment", name).Spec.Template.Spec
			g.Expect(pod.SecurityContext.RunAsNonRoot).To(HaveValue(BeTrue()))
			g.Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
			g.Expect([]bool{pod.HostNetwork, pod.HostPID, pod.HostIPC}).To(HaveEach(false))
			g.Expect(pod.Volumes).To(BeEmpty())
			g.Expect(pod.InitContainers).To(BeEmpty())
			for _, container := range pod.Containers {
				security := container.SecurityContext
				g.Expect(security.AllowPrivilegeEscalation).To(HaveValue(BeFalse()))
				g.Expect(security.ReadOnlyRootFilesystem).To(HaveValue(BeTrue()))
				g.Expect(security.Capabilities.Drop).To(Equal([]corev1.Capability{"ALL"}))
				g.Expect(security.Capabilities.Add).To(BeEmpty())
				g.Expect(security.Privileged).To(BeNil())
				g.Expect(container.Resources.Limits).To(HaveKey(corev1.ResourceMemory))
			}
		})
	}
}

func TestTheManagerIsElectedProbedAndSpread(t *testing.T) {
	g := NewWithT(t)
	deployment := manager(t, render(t, `
priorityClassName: system-cluster-critical
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]
affinity: {nodeAffinity: {}}
imagePullSecrets: [{name: ours}]
logLevel: debug
`))
	g.Expect(deployment.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	g.Expect(container.Args).To(ContainElements("--leader-elect", "--metrics-bind-address=:8080", "--health-probe-bind-address=:8081", "--log-level=debug"))
	g.Expect(container.LivenessProbe.HTTPGet.Path).To(Equal("/healthz"))
	g.Expect(container.ReadinessProbe.HTTPGet.Path).To(Equal("/readyz"))
	g.Expect(container.Ports).To(ConsistOf(
		corev1.ContainerPort{Name: "metrics", ContainerPort: 8080},
		corev1.ContainerPort{Name: "health", ContainerPort: 8081},
	))
	g.Expect(container.LivenessProbe.HTTPGet.Port.StrVal).To(Equal("health"))
	g.Expect(pod.TopologySpreadConstraints).To(HaveExactElements(HaveField("WhenUnsatisfiable", corev1.ScheduleAnyway)))
	g.Expect(pod.PriorityClassName).To(Equal("system-cluster-critical"))
	g.Expect(pod.NodeSelector).To(Equal(map[string]string{"kubernetes.io/os": "linux"}))
	g.Expect(pod.Tolerations).To(HaveLen(1))
	g.Expect(pod.Affinity.NodeAffinity).NotTo(BeNil())
	g.Expect(pod.ImagePullSecrets).To(Equal([]corev1.LocalObjectReference{{Name: "ours"}}))
}

func TestTheMPIOperatorIsElectedInTheNamespaceOfTheRelease(t *testing.T) {
	deployment := find[appsv1.Deployment](t, render(t, ""), "Deployment", "parallelfs-operator-mpi-operator")
	NewWithT(t).Expect(deployment.Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--lock-namespace=" + namespace}))
}

func TestASelectorFindsOnlyTheManagersOrOnlyTheMPIOperator(t *testing.T) {
	g := NewWithT(t)
	all := render(t, "")
	ours := manager(t, all).Spec
	theirs := find[appsv1.Deployment](t, all, "Deployment", "parallelfs-operator-mpi-operator").Spec
	g.Expect(ours.Template.Labels).To(Equal(ours.Selector.MatchLabels))
	g.Expect(theirs.Template.Labels).To(Equal(theirs.Selector.MatchLabels))
	g.Expect(ours.Selector.MatchLabels).NotTo(Equal(theirs.Selector.MatchLabels))
	g.Expect(find[corev1.Service](t, all, "Service", "parallelfs-operator-metrics").Spec.Selector).To(Equal(ours.Selector.MatchLabels))
}

func TestNamesFitHoweverLongTheReleaseNameIs(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("a", 53) // the longest name that Helm accepts
	out, err := helm(t, "", "template", long, chart, registry, "--kube-version", oldest)
	g.Expect(err).NotTo(HaveOccurred(), out)
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "  name: "+long[:40]); ok {
			g.Expect(len(strings.TrimSpace(name))+40).To(BeNumerically("<=", 63), line)
		}
	}
}

func TestEveryBindingBindsARoleAndAnAccountOfTheChart(t *testing.T) {
	all := render(t, "")
	names := all.names()
	for _, object := range all {
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		g := NewWithT(t)
		binding := find[rbacv1.RoleBinding](t, all, object.GetKind(), object.GetName())
		g.Expect(names).To(ContainElement(binding.RoleRef.Kind + "/" + binding.RoleRef.Name))
		for _, subject := range binding.Subjects {
			g.Expect(names).To(ContainElement(subject.Kind + "/" + subject.Name))
			g.Expect(subject.Namespace).To(Equal(namespace))
		}
	}
}

func TestEveryKindCanBeReadByWhoMayRead(t *testing.T) {
	all := render(t, "")
	for _, role := range []string{"view", "edit", "admin"} {
		var readable []string
		for _, rule := range find[rbacv1.ClusterRole](t, all, "ClusterRole", release+"-"+role).Rules {
			if slices.Contains(rule.Verbs, "get") && slices.Contains(rule.Verbs, "list") && slices.Contains(rule.Verbs, "watch") {
				readable = append(readable, rule.Resources...)
			}
		}
		NewWithT(t).Expect(readable).To(ConsistOf("benchmarkruns", "benchmarksuites", "filesystemnodes", "filesystems", "nodeinventories", "storagetargets"), role)
	}
}

func TestKubernetesOwnRolesMayNotWriteAFileSystem(t *testing.T) {
	const prefix = "rbac.authorization.k8s.io/aggregate-to-"
	aggregated := func(values string) map[string][]string {
		writes := map[string][]string{}
		for _, object := range render(t, values) {
			if object.GetKind() != "ClusterRole" {
				continue
			}
			for label := range object.GetLabels() {
				to, ok := strings.CutPrefix(label, prefix)
				if !ok {
					continue
				}
				writes[to] = []string{}
				role := find[rbacv1.ClusterRole](t, objects{object}, "ClusterRole", object.GetName())
				for _, rule := range role.Rules {
					if slices.Contains(rule.Verbs, "update") {
						writes[to] = append(writes[to], rule.Resources...)
					}
				}
			}
		}
		return writes
	}
	g := NewWithT(t)
	g.Expect(aggregated("")).To(Equal(map[string][]string{"view": {}}))
	g.Expect(aggregated("rbac: {aggregate: {edit: true}}")).To(Equal(map[string][]string{"view": {}, "edit": {"benchmarkruns"}}))
	g.Expect(aggregated("rbac: {aggregate: {view: false, edit: false, admin: true}}")).To(
		Equal(map[string][]string{"admin": {"benchmarkruns", "benchmarksuites", "filesystems", "storagetargets", "filesystemnodes"}}))
}
