//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	greeting = "hello from another node"
	// newest is the version of MooseFS that everything is tested with.
	newest = "4.57.5"
)

// fileSystemManifest has its data in directories of the version's own, so that no version meets the data of another.
func fileSystemManifest(version string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: scratch, namespace: %[1]s}
spec:
  type: MooseFS
  version: %[2]s
  moosefs:
    metaloggers: {nodeSelector: {e2e.parallelfs.dev/metalogger: ""}}
  metadata:
    nodeSelector: {e2e.parallelfs.dev/metadata: ""}
    targets: {directories: [%[3]s/%[2]s/metadata]}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/storage: ""}
    targets: {directories: [%[3]s/%[2]s/ssd0, %[3]s/%[2]s/ssd1]}
    copies: 2
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/storage: ""}
    targets: {directories: [%[3]s/%[2]s/hdd0]}
  clients:
    nodeSelector: {e2e.parallelfs.dev/client: ""}
    mountPath: %[4]s
  config:
    storage: {HDD_LEAVE_SPACE_DEFAULT: 256MiB}
`, namespace, version, dataRoot, mountPath)
}

func fileSystem() *v1alpha1.FileSystem {
	GinkgoHelper()
	return fileSystemNamed("scratch")
}

func fileSystemNamed(name string) *v1alpha1.FileSystem {
	GinkgoHelper()
	fs := &v1alpha1.FileSystem{}
	Expect(api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, fs)).To(Succeed())
	return fs
}

func ready() bool {
	GinkgoHelper()
	fs := fileSystem()
	return fs.Status.ObservedGeneration == fs.Generation && meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionReady)
}

// whyNotReady is the message of Ready, empty when it is true.
func whyNotReady() string {
	GinkgoHelper()
	return whyNotReadyOf("scratch")
}

func whyNotReadyOf(name string) string {
	GinkgoHelper()
	c := meta.FindStatusCondition(fileSystemNamed(name).Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status == "True" {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// podOn names the pod of a component on a node, empty when there is none.
func podOn(component, node string) string {
	GinkgoHelper()
	return strings.TrimSpace(kubectl("-n", namespace, "get", "pods", "-l", "parallelfs.dev/filesystem=scratch,parallelfs.dev/component="+component,
		"--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[*].metadata.name}"))
}

// inClient runs a command in the pod that mounts the filesystem on a node.
func inClient(node string, command ...string) string {
	GinkgoHelper()
	args := append([]string{"-n", namespace, "exec", podOn("client", node), "-c", "client", "--"}, command...)
	return strings.TrimSpace(kubectl(args...))
}

// keepKilling ends every process of that name on a node as soon as it starts, until the returned function is called:
// the kubelet would have the daemon back within a second otherwise.
func keepKilling(node, process string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_, _ = shell(node, "for i in 1 2 3 4 5 6 7 8 9 10; do pkill -9 -x "+process+"; sleep 0.3; done; true")
			}
		}
	}()
	return func() { close(done); <-ended }
}

func fileSystemRuns(version string) {
	It("becomes Ready when the filesystem itself says so", func() {
		kubectl("label", "--overwrite", "nodes", workers[0], workers[1], workers[2], "e2e.parallelfs.dev/storage=", "e2e.parallelfs.dev/client=")
		kubectl("label", "--overwrite", "nodes", workers[0], "e2e.parallelfs.dev/metadata=")
		kubectl("label", "--overwrite", "nodes", workers[1], "e2e.parallelfs.dev/metalogger=")
		apply(fileSystemManifest(version))
		Eventually(ready, long).Should(BeTrue(), whyNotReady)
		status := fileSystem().Status
		Expect(status.Summary.Servers).To(Equal("8/8"), "a master, a metalogger and three chunkservers for each of two pools")
		Expect(status.Summary.Targets).To(Equal("9/9"))
		Expect(status.Summary.Clients).To(Equal("3/3"))
		Expect(status.Management.Version).To(Equal(version))
		report("kubectl get filesystems -o wide", kubectl("-n", namespace, "get", "filesystems", "-o", "wide"))
	})

	It("shows what one client writes to the others, with as many copies as the pool says", func() {
		inClient(workers[0], "sh", "-c", fmt.Sprintf("printf '%s' > %s/ssd/hello && head -c 1M /dev/urandom > %s/ssd/data", greeting, mountPath, mountPath))
		Expect(inClient(workers[1], "cat", mountPath+"/ssd/hello")).To(Equal(greeting))
		Expect(inClient(workers[0], "mfsgetsclass", mountPath+"/ssd/data")).To(ContainSubstring("ssd"))
		Expect(inClient(workers[0], "mfsgetsclass", mountPath+"/bulk")).To(ContainSubstring("bulk"))
		Eventually(func() int {
			return strings.Count(inClient(workers[0], "mfsfileinfo", mountPath+"/ssd/data"), "copy ")
		}).Should(Equal(2))
	})

	It("lets nobody but itself change storage classes", func() {
		_, err := try("", "kubectl", "-n", namespace, "exec", podOn("client", workers[0]), "-c", "client", "--",
			"sh", "-c", "cd "+mountPath+" && "+makeClass(version))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).To(ContainSubstring("Operation not permitted"))
	})

	It("serves what Prometheus asks for", func() {
		metrics := onNode(workers[1], "curl -sf http://"+strings.TrimSuffix(fileSystem().Status.Management.Address, ":9421")+":9427/metrics")
		Expect(metrics).To(ContainSubstring(`parallelfs_`))
		Expect(metrics).To(ContainSubstring(`filesystem="scratch"`))
	})

	It("names the target that is missing within 30 s of the death of its chunkserver, and sees it return", func() {
		started := time.Now()
		stop := keepKilling(workers[2], "mfschunkserver")
		defer func() {
			if stop != nil {
				stop()
			}
		}()
		missing := workers[2] + ":" + dataRoot + "/" + version + "/ssd0"
		Eventually(whyNotReady, 30*time.Second).Should(And(HavePrefix(v1alpha1.ReasonTargetsMissing), ContainSubstring(missing)))
		report("a killed chunkserver", fmt.Sprintf("named after %s:\n%s", time.Since(started).Round(time.Second), whyNotReady()))
		Expect(inClient(workers[0], "cat", mountPath+"/ssd/hello")).To(Equal(greeting), "the other copy is there")
		stop()
		stop = nil
		Eventually(ready, long).Should(BeTrue(), whyNotReady)
	})

	It("recovers a crashed master by itself, with all that was in it", func() {
		initialised := fileSystem().Status.Metadata.Initialised
		inClient(workers[0], "sh", "-c", "for i in $(seq 50); do echo $i > "+mountPath+"/ssd/before-crash-$i; done; sync")
		killed := onNode(workers[0], "pidof mfsmaster; pkill -9 -x mfsmaster")
		Eventually(func() (string, error) { return shell(workers[0], "pidof mfsmaster") }, long).ShouldNot(Or(BeEmpty(), ContainSubstring(killed)))
		Eventually(func() (string, error) {
			return try("", "kubectl", "-n", namespace, "exec", podOn("client", workers[1]), "-c", "client", "--", "ls", mountPath+"/ssd")
		}, long).Should(ContainSubstring("before-crash-50"))
		Eventually(ready, long).Should(BeTrue(), whyNotReady)
		Expect(inClient(workers[1], "sh", "-c", "cat "+mountPath+"/ssd/before-crash-* | wc -l")).To(Equal("50"))
		Expect(fileSystem().Status.Metadata.Initialised).To(Equal(initialised))
	})

	if version != newest {
		return // what follows is the operator's own, whatever the version
	}
	It("mounts again where the mount has died, also for pods that use it", func() {
		apply(consumer("consumer", workers[1]))
		kubectl("-n", namespace, "wait", "pod/consumer", "--for=condition=Ready", "--timeout=60s")
		Expect(kubectl("-n", namespace, "exec", "consumer", "--", "cat", mountPath+"/ssd/hello")).To(Equal(greeting))
		onNode(workers[1], "pkill -9 -x mfsmount")
		Eventually(func() (string, error) {
			return try("", "kubectl", "-n", namespace, "exec", "consumer", "--", "cat", mountPath+"/ssd/hello")
		}, long).Should(Equal(greeting))
		Eventually(ready, long).Should(BeTrue(), whyNotReady)
	})

	It("lets no pod write under the mount while nothing is mounted", func() {
		kubectl("label", "nodes", workers[1], "e2e.parallelfs.dev/client-")
		Eventually(func() string { return podOn("client", workers[1]) }, long).Should(BeEmpty())
		Eventually(func() string { return fileSystem().Status.Summary.Clients }).Should(Equal("2/2"))
		Expect(onNode(workers[1], "grep -c ' "+mountPath+" ' /proc/self/mountinfo || true")).To(Equal("0"))
		_, err := try("", "kubectl", "-n", namespace, "exec", "consumer", "--", "sh", "-c", "echo lost > "+mountPath+"/lost")
		Expect(err).To(HaveOccurred())
		_, err = shell(workers[1], "echo lost > "+mountPath+"/lost")
		Expect(err).To(HaveOccurred(), "not even root on the node itself")
		kubectl("label", "nodes", workers[1], "e2e.parallelfs.dev/client=")
		Eventually(func() string { return fileSystem().Status.Summary.Clients }, long).Should(Equal("3/3"))
		Eventually(ready).Should(BeTrue(), whyNotReady)
		Expect(inClient(workers[1], "ls", mountPath)).NotTo(ContainSubstring("lost"))
		kubectl("-n", namespace, "delete", "pod", "consumer", "--grace-period=0", "--force")
	})

	It("gives a changed option to the daemons, one restart at a time, and refuses its own by name", func() {
		before := daemonPods()
		kubectl("-n", namespace, "patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"config":{"storage":{"WORKERS_MAX":"77"}}}}`)
		Eventually(func() int {
			told := 0
			for _, w := range workers {
				for pod := range strings.FieldsSeq(podOn("chunkserver", w)) {
					out, _ := try("", "kubectl", "-n", namespace, "exec", pod, "--", "grep", "-c", "^WORKERS_MAX = 77$", "/run/parallelfs/mfschunkserver.cfg")
					told += strings.Count(out, "1")
				}
			}
			return told
		}, 2*long).Should(Equal(6))
		Eventually(ready, long).Should(BeTrue(), whyNotReady)
		Expect(daemonPods()).NotTo(Equal(before))
		Expect(daemonPods()).To(ContainSubstring(podOn("master", workers[0])), "the master has no new option, and was not restarted")

		kubectl("-n", namespace, "patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"config":{"storage":{"DATA_PATH":"/elsewhere"}}}}`)
		stalled := func() *metav1.Condition {
			return meta.FindStatusCondition(fileSystemNamed("scratch").Status.Conditions, v1alpha1.ConditionStalled)
		}
		Eventually(stalled).Should(HaveValue(And(HaveField("Reason", v1alpha1.ReasonOptionRefused),
			HaveField("Message", ContainSubstring("spec.config.storage.DATA_PATH")))))
		Expect(ready()).To(BeTrue(), "what runs goes on to serve")
		kubectl("-n", namespace, "patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"config":{"storage":{"DATA_PATH":null}}}}`)
		Eventually(stalled).Should(BeNil())
		Eventually(ready).Should(BeTrue(), whyNotReady)
	})
}

// makeClass is the command of an administrator of MooseFS.
func makeClass(version string) string {
	if strings.HasPrefix(version, "3.") {
		return "mfsscadmin create 2B mine"
	}
	return "mfscreatesclass -K 2B mine"
}

func consumer(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s}
spec:
  nodeName: %s
  terminationGracePeriodSeconds: 0
  containers:
  - name: consumer
    image: localhost/parallelfs/benchmarks:dev
    imagePullPolicy: Never
    command: [sleep, infinity]
    volumeMounts: [{name: mounts, mountPath: /mnt/e2e, mountPropagation: HostToContainer}]
  volumes:
  - {name: mounts, hostPath: {path: /mnt/e2e}}
`, name, namespace, node)
}

// fileSystemIsDeleted needs the FileSystem that runs.
func fileSystemIsDeleted() {
	var version string
	It("stops its daemons and unmounts, and keeps the data", func() {
		version = fileSystem().Spec.Version
		kubectl("-n", namespace, "delete", "filesystem", "scratch", "--timeout=300s")
		Eventually(func() string {
			return kubectl("-n", namespace, "get", "pods", "-l", "parallelfs.dev/filesystem=scratch", "-o", "name")
		}, long).Should(BeEmpty())
		for _, node := range workers {
			Expect(onNode(node, "grep -c ' "+mountPath+" ' /proc/self/mountinfo || true")).To(Equal("0"), node)
			Expect(onNode(node, "find "+dataRoot+"/"+version+"/ssd0 "+dataRoot+"/"+version+"/ssd1 -name 'chunk_*' | head -1")).NotTo(BeEmpty(), node)
		}
		Expect(onNode(workers[0], "ls "+dataRoot+"/"+version+"/metadata/data")).To(ContainSubstring("metadata.mfs"))
	})
	It("has its data refused to a FileSystem of another name", func() {
		before := onNode(workers[0], "sha256sum "+dataRoot+"/"+version+"/metadata/data/metadata.mfs")
		apply(strings.ReplaceAll(fileSystemManifest(version), "name: scratch", "name: thief"))
		Eventually(func() string { return whyNotReadyOf("thief") }, long).
			Should(And(HavePrefix(v1alpha1.ReasonDaemonRefused), ContainSubstring("belongs to the FileSystem "+namespace+"/scratch")))
		report("a FileSystem over the data of another", whyNotReadyOf("thief"))
		kubectl("-n", namespace, "delete", "filesystem", "thief", "--timeout=300s")
		Expect(onNode(workers[0], "sha256sum "+dataRoot+"/"+version+"/metadata/data/metadata.mfs")).To(Equal(before))
	})
	It("has its data again when it is made again", func() {
		apply(fileSystemManifest(version))
		Eventually(ready, long).Should(BeTrue(), whyNotReady)
		Expect(inClient(workers[1], "cat", mountPath+"/ssd/hello")).To(Equal(greeting))
		kubectl("-n", namespace, "delete", "filesystem", "scratch", "--timeout=300s")
	})
}
