package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/images"
	"parallelfs.dev/operator/internal/load"
)

// sampled has a MooseFS with a master, servers on two nodes with agents, and the manager. The agent of node oss2 does not answer.
func sampled() []client.Object {
	fs := scratchOf(is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "well"))
	fs.Spec.Type, fs.Status.Management = v1alpha1.MooseFS, &v1alpha1.ManagementStatus{Address: "10.0.0.1:9421"}
	fs.Status.Metadata = &v1alpha1.MetadataRecord{Node: "oss1"}
	meta := serving("meta", "oss1")
	meta.Spec.Role = v1alpha1.RoleMetadata
	well := serving("well", "oss1")
	well.Spec.Role = v1alpha1.RoleStorage
	out := []client.Object{fs, meta, well, serving("other", "oss2")}
	pod := func(name, namespace, node, image string, labels map[string]string, ports ...corev1.ContainerPort) {
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: image, Ports: ports}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", ImageID: image + "@sha256:0123456789abcdef0123"},
			}},
		})
	}
	agent := map[string]string{"app.kubernetes.io/managed-by": "parallelfs-operator", "app.kubernetes.io/component": "agent"}
	port := corev1.ContainerPort{Name: "telemetry", ContainerPort: 9417}
	pod("agent-oss1", "parallelfs-system", "oss1", "registry.example.com/parallelfs/agent:1", agent, port)
	pod("agent-oss2", "parallelfs-system", "oss2", "registry.example.com/parallelfs/agent:1", agent, port)
	pod("agent-oss9", "parallelfs-system", "oss9", "registry.example.com/parallelfs/agent:1", agent, port)
	pod("scratch-master", "storage", "oss1", "registry.example.com/parallelfs/moosefs:4.57.5", map[string]string{
		"app.kubernetes.io/managed-by": "parallelfs-operator", v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelComponent: "master",
	})
	pod("stranger", "storage", "oss1", "registry.example.com/stranger:1", nil)
	manager := map[string]string{"app.kubernetes.io/component": "manager"}
	pod("manager", "parallelfs-system", "n9", "registry.example.com/parallelfs/manager:1", manager)
	return append(out,
		&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: "oss1"}, Status: v1alpha1.NodeInventoryStatus{
			CPU: v1alpha1.CPUStatus{Threads: 4}, NetworkInterfaces: []v1alpha1.NetworkInterface{
				{Name: "eth0", SpeedMbps: 10000, State: "up"}, {Name: "eth1", SpeedMbps: 100000, State: "down"},
			},
		}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "parallelfs-system", Labels: map[string]string{"helm.sh/chart": "parallelfs-operator-0.1.0"}},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: manager}, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/parallelfs/manager:1", Args: []string{
					"--node-image=registry.example.com/parallelfs/node:1",
				}}},
			}}},
		})
}

func TestWhyNamesTheDiskThatLimitsAFileSystem(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, sampled())
	got := pfs("why", "scratch")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	golden(t, "why.txt", got.stdout)
	var verdict load.Verdict
	g.Expect(json.Unmarshal([]byte(pfs("why", "scratch", "-o", "json").stdout), &verdict)).To(Succeed())
	g.Expect(verdict.Limit).To(Equal(load.Disk))
	g.Expect(pfs("why", "scratch", "--last", "3h").code).To(Equal(exitUsage))
}

func TestTopShowsDisksAndDaemonsTheBusiestFirst(t *testing.T) {
	got := on(t, sampled())("top", "scratch")
	NewWithT(t).Expect(got.code).To(Equal(exitGood), got.stderr)
	golden(t, "top.txt", got.stdout)
}

func TestImagesAreThoseOfTheOperatorAndOfThePodsOfFileSystems(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, sampled())
	golden(t, "images.txt", pfs("images").stdout)
	var got []images.Image
	g.Expect(json.Unmarshal([]byte(pfs("images", "-o", "json").stdout), &got)).To(Succeed())
	g.Expect(got).To(HaveLen(4))
	g.Expect(pfs("images", "--names").stdout).To(HavePrefix("registry.example.com/parallelfs/agent:1@sha256:0123456789abcdef0123\n"))
	g.Expect(pfs("images", "--file", "a", "--from", "b").code).To(Equal(exitUsage))
}

func TestImagesOfARenderedChartNeedNoCluster(t *testing.T) {
	_, pfs := clusterThat(t, nil, interceptor.Funcs{List: refuse}, `apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {containers: [{name: manager, image: "a.example/m:1", args: ["--benchmark-image=fio=a.example/b:1"]}]}}}
`)
	got := pfs("images", "-f", "-", "--names")
	NewWithT(t).Expect(got.stdout).To(Equal("a.example/b:1\na.example/m:1\n"), got.stderr)
}

func TestExecStartsAToolInThePodThatReachesTheFileSystem(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, sampled())
	executed = nil
	got := pfs("exec", "scratch", "--context", "lab", "--", "mfscli", "-SIN", "a b; $(id)")
	g.Expect(executed).To(Equal([]string{
		"kubectl", "--context=lab", "--namespace=storage", "exec", "--stdin", "scratch-master", "--container=probe", "--",
		"mfscli", "-H", "127.0.0.1", "-P", "9421", "-SIN", "a b; $(id)",
	}), got.stderr)
	g.Expect(got.code).To(Equal(7), "the exit code of the tool")
	executed = nil
	got = pfs("exec", "scratch", "--dry-run", "--", "mfscli", "-SIN", "it's")
	g.Expect(executed).To(BeNil())
	g.Expect(got.stdout).To(HaveSuffix(`'mfscli' '-H' '127.0.0.1' '-P' '9421' '-SIN' 'it'\''s'` + "\n"))
	g.Expect(pfs("exec", "scratch").code).To(Equal(exitUsage))
	g.Expect(pfs("exec", "scratch", "--node", "oss2", "--", "mfscli").stderr).To(ContainSubstring("runs on node oss2"))
}

func TestShellsCanCompleteCommands(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, nil)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		g.Expect(pfs("completion", shell).stdout).To(ContainSubstring("__complete"), shell)
	}
	g.Expect(pfs("__complete", "tar").stdout).To(ContainSubstring("target\t"))
}

// refuse refuses each list.
func refuse(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return errors.New("no cluster is needed")
}

func TestTopOfDirectoriesHasNoTableOfDisks(t *testing.T) {
	text := topText([]telemetry.Summary{{Node: "n1", Daemon: "master", CPUs: 0.5}})
	NewWithT(t).Expect(text).To(And(HavePrefix("DAEMON"), ContainSubstring("master")))
}
