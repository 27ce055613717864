//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

const (
	greeting = "hello from another node"
	// newest is the version of MooseFS with which everything is tested; oldest is used for what differs.
	newest = "4.57.5"
	oldest = "3.0.117"
)

// fileSystemManifest returns a MooseFS in directories. Its daemons run at the priority of all other programs. MooseFS's own priority is the
// highest, and the daemons of several filesystems would starve kubelets and tests.
func (s *story) fileSystemManifest(version string, pools ...string) string {
	return s.text(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: scratch, namespace: e2e-$STORY}
spec:
  type: MooseFS
  version: ` + version + `
  moosefs:
    basePort: $PORT
    metaloggers: {nodeSelector: {e2e.parallelfs.dev/$STORY-metalogger: ""}}
    config:
      metadata: {NICE_LEVEL: "0"}
      storage: {HDD_LEAVE_SPACE_DEFAULT: 256MiB, NICE_LEVEL: "0"}
  metadataServers:
    nodeSelector: {e2e.parallelfs.dev/$STORY-metadata: ""}
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/metadata]}
  storagePools:` + strings.Join(pools, "") + `
  clients:
    nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}
    mountPath: /mnt/e2e/$STORY/fs
`)
}

const (
	// oneCopy is a pool for benchmarks: each chunkserver uses about 4 % of a CPU, even while idle.
	oneCopy = `
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/ssd0]}
    copies: 1`
	twoCopies = `
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/ssd0, /var/lib/parallelfs-e2e/$STORY/ssd1]}
    copies: 2`
	bulk = `
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/hdd0]}`
)

func (s *story) fileSystem() *v1alpha1.FileSystem {
	GinkgoHelper()
	return s.fileSystemNamed("scratch")
}

func (s *story) fileSystemNamed(name string) *v1alpha1.FileSystem {
	GinkgoHelper()
	fs := &v1alpha1.FileSystem{}
	Expect(api.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: name}, fs)).To(Succeed())
	return fs
}

func (s *story) ready() bool {
	GinkgoHelper()
	return isWhole(s.fileSystem())
}

// isWhole reports whether a filesystem serves, misses nothing, and has no daemon that waits to be restarted.
func isWhole(fs *v1alpha1.FileSystem) bool {
	return fs.Status.ObservedGeneration == fs.Generation && meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionReady) &&
		!meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionDegraded) && !isRestarting(fs)
}

func isRestarting(fs *v1alpha1.FileSystem) bool {
	c := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReconciling)
	return c != nil && c.Reason == v1alpha1.ReasonRestarting
}

// whyNotReady returns the message of Degraded, or of Ready; empty if nothing is missing.
func (s *story) whyNotReady() string {
	GinkgoHelper()
	return s.whyNotReadyOf("scratch")
}

func (s *story) whyNotReadyOf(name string) string {
	GinkgoHelper()
	all := s.fileSystemNamed(name).Status.Conditions
	c := meta.FindStatusCondition(all, v1alpha1.ConditionReady)
	if c == nil {
		return ""
	}
	if c.Status == "True" {
		if c = meta.FindStatusCondition(all, v1alpha1.ConditionDegraded); c == nil {
			return ""
		}
	}
	return c.Reason + ": " + c.Message
}

// isReady creates a filesystem of the story on all workers, and waits until it serves.
func (s *story) isReady(version string, pools ...string) {
	GinkgoHelper()
	s.isReadyOn(workers, version, pools...)
}

// isReadyOn creates a filesystem of the story with data on some nodes, and waits until it serves.
func (s *story) isReadyOn(storage []string, version string, pools ...string) {
	GinkgoHelper()
	s.begin()
	for _, node := range storage {
		s.label(node, "storage")
	}
	for _, node := range workers {
		s.label(node, "client")
	}
	s.label(workers[0], "metadata")
	s.label(workers[1], "metalogger")
	apply(s.fileSystemManifest(version, pools...))
	Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
}

// isMeasurable creates the smallest filesystem for a benchmark: one chunkserver, on the last worker, and two clients.
func (s *story) isMeasurable() {
	It("has a filesystem to measure", func() {
		s.begin()
		s.label(workers[0], "metadata", "client")
		s.label(workers[1], "client")
		s.label(workers[2], "storage")
		apply(s.fileSystemManifest(newest, oneCopy))
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
	})
}

// podOn returns the pod of a component on a node, empty if there is none.
func (s *story) podOn(component, node string) string {
	GinkgoHelper()
	return strings.TrimSpace(s.kubectl("get", "pods", "-l", "parallelfs.dev/filesystem=scratch,parallelfs.dev/component="+component,
		"--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[*].metadata.name}"))
}

// inClient runs a command in the pod that mounts the filesystem on a node.
func (s *story) inClient(node string, command ...string) string {
	GinkgoHelper()
	args := append([]string{"-n", s.namespace, "exec", s.podOn("client", node), "-c", "client", "--"}, command...)
	return strings.TrimSpace(kubectl(args...))
}

// keepKilling kills every process of that name on a node as soon as it starts, until the returned function is called. Otherwise the kubelet
// would restart the daemon within a second.
func (s *story) keepKilling(node, process string) (stop func()) {
	GinkgoHelper()
	processes := s.processes(node, process)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				_, _ = shell(node, "for i in 1 2 3 4 5 6 7 8 9 10; do kill -9 $("+processes+"); sleep 0.3; done; true")
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (s *story) fileSystemRuns(version string) {
	It("becomes Ready when the filesystem itself reports it", func() {
		s.isReady(version, twoCopies, bulk)
		status := s.fileSystem().Status
		Expect(status.Summary.Servers).To(Equal("8/8"), "a master, a metalogger and three chunkservers for each of two pools")
		Expect(status.Summary.Targets).To(Equal("9/9"))
		Expect(status.Summary.Clients).To(Equal("3/3"))
		Expect(status.Management.Version).To(Equal(version))
		report("kubectl get filesystems -o wide", s.kubectl("get", "filesystems", "-o", "wide"))
	})

	It("shows the files of one client to the others, with the pool's number of copies", func() {
		s.inClient(workers[0], "sh", "-c", fmt.Sprintf("printf '%s' > %s/ssd/hello && head -c 1M /dev/urandom > %s/ssd/data", greeting, s.mountPath, s.mountPath))
		Expect(s.inClient(workers[1], "cat", s.mountPath+"/ssd/hello")).To(Equal(greeting))
		Expect(s.inClient(workers[0], "mfsgetsclass", s.mountPath+"/ssd/data")).To(ContainSubstring("ssd"))
		Expect(s.inClient(workers[0], "mfsgetsclass", s.mountPath+"/bulk")).To(ContainSubstring("bulk"))
		Eventually(func() int {
			return strings.Count(s.inClient(workers[0], "mfsfileinfo", s.mountPath+"/ssd/data"), "copy ")
		}).Should(Equal(2))
	})

	It("lets no other administrator change storage classes", func() {
		_, err := try("", "kubectl", "-n", s.namespace, "exec", s.podOn("client", workers[0]), "-c", "client", "--",
			"sh", "-c", "cd "+s.mountPath+" && "+makeClass(version))
		Expect(err).To(HaveOccurred())
		Expect(err.Error()).To(ContainSubstring("Operation not permitted"))
	})

	It("serves its metrics to Prometheus", func() {
		metrics := onNode(workers[1], "curl -sf http://"+strings.TrimSuffix(s.fileSystem().Status.Management.Address, fmt.Sprintf(":%d", s.port+2))+fmt.Sprintf(":%d/metrics", s.port+8))
		Expect(metrics).To(ContainSubstring(`parallelfs_`))
		Expect(metrics).To(ContainSubstring(`filesystem="scratch"`))
	})

	It("names the target that is missing after the death of its chunkserver, and reports its return", func() {
		started := time.Now()
		stop := s.keepKilling(workers[2], "mfschunkserver")
		defer func() {
			if stop != nil {
				stop()
			}
		}()
		missing := workers[2] + ":" + s.dataRoot + "/ssd0"
		Eventually(s.whyNotReady).Should(And(HavePrefix(v1alpha1.ReasonTargetsMissing), ContainSubstring(missing)))
		report("a killed chunkserver", fmt.Sprintf("named after %s:\n%s", time.Since(started).Round(time.Second), s.whyNotReady()))
		Expect(s.inClient(workers[0], "cat", s.mountPath+"/ssd/hello")).To(Equal(greeting), "the other copy is there")
		stop()
		stop = nil
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
	})

	It("recovers a crashed master by itself, with all of its metadata", func() {
		initialized := s.fileSystem().Status.Metadata.Initialized
		s.inClient(workers[0], "sh", "-c", "for i in $(seq 50); do echo $i > "+s.mountPath+"/ssd/before-crash-$i; done; sync")
		// Its data writer, a child of the same name, ends with it.
		master := s.processes(workers[0], "mfsmaster( -a)? -f")
		killed := onNode(workers[0], master)
		onNode(workers[0], "kill -9 "+killed)
		Eventually(func() ([]string, error) {
			running, err := shell(workers[0], master)
			return strings.Fields(running), err
		}, long).ShouldNot(Or(BeEmpty(), ContainElements(strings.Fields(killed))))
		Eventually(func() (string, error) {
			return try("", "kubectl", "-n", s.namespace, "exec", s.podOn("client", workers[1]), "-c", "client", "--", "ls", s.mountPath+"/ssd")
		}, long).Should(ContainSubstring("before-crash-50"))
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		Expect(s.inClient(workers[1], "sh", "-c", "cat "+s.mountPath+"/ssd/before-crash-* | wc -l")).To(Equal("50"))
		Expect(s.fileSystem().Status.Metadata.Initialized).To(Equal(initialized))
	})
}

// fileSystemIsKept shows the operator's own behavior, whatever the version.
func (s *story) fileSystemIsKept() {
	It("mounts again where the mount has died, also for pods that use it", func() {
		apply(s.consumer("consumer", workers[1]))
		s.kubectl("wait", "pod/consumer", "--for=condition=Ready", patience.Flag(time.Minute))
		Expect(s.kubectl("exec", "consumer", "--", "cat", s.mountPath+"/ssd/hello")).To(Equal(greeting))
		onNode(workers[1], "kill -9 $("+s.processes(workers[1], "mfsmount")+")")
		Eventually(func() (string, error) {
			return try("", "kubectl", "-n", s.namespace, "exec", "consumer", "--", "cat", s.mountPath+"/ssd/hello")
		}, long).Should(Equal(greeting))
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
	})

	It("lets no pod write below the mountpoint while nothing is mounted", func() {
		s.label(workers[1], "client-")
		Eventually(func() string { return s.podOn("client", workers[1]) }, long).Should(BeEmpty())
		Eventually(func() string { return s.fileSystem().Status.Summary.Clients }).Should(Equal("2/2"))
		Expect(onNode(workers[1], "grep -c ' "+s.mountPath+" ' /proc/self/mountinfo || true")).To(Equal("0"))
		_, err := try("", "kubectl", "-n", s.namespace, "exec", "consumer", "--", "sh", "-c", "echo lost > "+s.mountPath+"/lost")
		Expect(err).To(HaveOccurred())
		_, err = shell(workers[1], "echo lost > "+s.mountPath+"/lost")
		Expect(err).To(HaveOccurred(), "not even root on the node itself")
		s.label(workers[1], "client")
		Eventually(func() string { return s.fileSystem().Status.Summary.Clients }, long).Should(Equal("3/3"))
		Eventually(s.ready).Should(BeTrue(), s.whyNotReady)
		Expect(s.inClient(workers[1], "ls", s.mountPath)).NotTo(ContainSubstring("lost"))
		s.kubectl("delete", "pod", "consumer", "--grace-period=0", "--force")
	})

	It("applies a changed option by one restart at a time while a program writes, and refuses its own options by name", func() {
		before := s.daemonPods()
		s.nothingIsLostWhile("an option of the chunkservers of two pools changes", "ssd", func() {
			s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"moosefs":{"config":{"storage":{"WORKERS_MAX":"77"}}}}}`)
			Eventually(func() int {
				told := 0
				for _, w := range workers {
					for pod := range strings.FieldsSeq(s.podOn("chunkserver", w)) {
						out, _ := try("", "kubectl", "-n", s.namespace, "exec", pod, "--", "grep", "-c", "^WORKERS_MAX = 77$", "/run/parallelfs/mfschunkserver.cfg")
						told += strings.Count(out, "1")
					}
				}
				return told
			}, 2*long).Should(Equal(6))
			Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		})
		Expect(s.daemonPods()).NotTo(Equal(before))
		Expect(s.daemonPods()).To(ContainSubstring(s.podOn("master", workers[0])), "the master has no new option, and was not restarted")

		s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"moosefs":{"config":{"storage":{"DATA_PATH":"/elsewhere"}}}}}`)
		stalled := func() *metav1.Condition {
			return meta.FindStatusCondition(s.fileSystem().Status.Conditions, v1alpha1.ConditionStalled)
		}
		Eventually(stalled).Should(HaveValue(And(HaveField("Reason", v1alpha1.ReasonOptionRefused),
			HaveField("Message", ContainSubstring("spec.moosefs.config.storage.DATA_PATH")))))
		Eventually(s.ready).Should(BeTrue(), s.whyNotReady)
		s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"moosefs":{"config":{"storage":{"DATA_PATH":null}}}}}`)
		Eventually(stalled).Should(BeNil())
		Eventually(s.ready).Should(BeTrue(), s.whyNotReady)
	})
}

// makeClass returns the command of an administrator of MooseFS.
func makeClass(version string) string {
	if strings.HasPrefix(version, "3.") {
		return "mfsscadmin create 2B mine"
	}
	return "mfscreatesclass -K 2B mine"
}

func (s *story) consumer(name, node string) string {
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
    volumeMounts: [{name: mounts, mountPath: %[4]s, mountPropagation: HostToContainer}]
  volumes:
  - {name: mounts, hostPath: {path: %[4]s}}
`, name, s.namespace, node, path.Dir(s.mountPath))
}

// fileSystemIsDeleted needs the running FileSystem.
func (s *story) fileSystemIsDeleted() {
	var version string
	It("stops its daemons and unmounts, and keeps the data", func() {
		version = s.fileSystem().Spec.Version
		s.deleteFileSystem("scratch", patience.Flag(5*time.Minute))
		Eventually(func() string {
			return s.kubectl("get", "pods", "-l", "parallelfs.dev/filesystem=scratch", "-o", "name")
		}, long).Should(BeEmpty())
		for _, node := range workers {
			Expect(onNode(node, "grep -c ' "+s.mountPath+" ' /proc/self/mountinfo || true")).To(Equal("0"), node)
			Expect(onNode(node, "find "+s.dataRoot+"/ssd0 "+s.dataRoot+"/ssd1 -name 'chunk_*' | head -1")).NotTo(BeEmpty(), node)
		}
		Expect(onNode(workers[0], "ls "+s.dataRoot+"/metadata/data")).To(ContainSubstring("metadata.mfs"))
	})
	It("refuses its data to a FileSystem of another name", more, func() {
		before := onNode(workers[0], "sha256sum "+s.dataRoot+"/metadata/data/metadata.mfs")
		apply(strings.ReplaceAll(s.fileSystemManifest(version, twoCopies, bulk), "name: scratch", "name: thief"))
		Eventually(func() string { return s.whyNotReadyOf("thief") }, long).
			Should(And(HavePrefix(v1alpha1.ReasonDaemonRefused), ContainSubstring("belongs to the FileSystem "+s.namespace+"/scratch")))
		report("a FileSystem over the data of another", s.whyNotReadyOf("thief"))
		s.deleteFileSystem("thief", patience.Flag(5*time.Minute))
		Expect(onNode(workers[0], "sha256sum "+s.dataRoot+"/metadata/data/metadata.mfs")).To(Equal(before))
	})
	It("has its data again when it is created again", func() {
		apply(s.fileSystemManifest(version, twoCopies, bulk))
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		Expect(s.inClient(workers[1], "cat", s.mountPath+"/ssd/hello")).To(Equal(greeting))
		s.deleteFileSystem("scratch", patience.Flag(5*time.Minute))
	})
}
