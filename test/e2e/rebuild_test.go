//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

// onDisks returns a MooseFS and a BeeGFS whose data is all on disks. The first node has the metadata of both.
func (s *story) onDisks() string {
	var data []string
	for _, node := range workers[:2] {
		data = append(data, fmt.Sprintf("{node: %s, id: %s}", node, s.deviceID(node, "moose")))
	}
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: moose, namespace: e2e-$STORY}
spec:
  type: MooseFS
  version: 4.57.5
  moosefs:
    basePort: $PORT
    config: {storage: {HDD_LEAVE_SPACE_DEFAULT: 64MiB}}
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    targets: {devices: [{node: %[1]s, id: %[2]s}], format: {fsType: ext4}}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 2
    targets: {devices: [%[3]s], format: {fsType: xfs}}
  clients:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    mountPath: /mnt/e2e/$STORY/fs
  provisioning: {formatPolicy: IfBlank}
---
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: hive, namespace: e2e-$STORY}
spec:
  type: BeeGFS
  version: %[4]s
  beegfs:
    management:
      nodeSelector: {kubernetes.io/hostname: %[1]s}
      targets: {devices: [{node: %[1]s, id: %[5]s}], format: {fsType: ext4}}
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    targets: {devices: [{node: %[1]s, id: %[6]s}], format: {fsType: ext4}}
  storagePools:
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets: {select: {mediaType: HDD, idGlobs: ["ata-E2E_DISK_E2E-$STORY-*"], countPerNode: 2}, format: {fsType: xfs}}
  provisioning: {formatPolicy: IfBlank}
`, workers[0], s.deviceID(workers[0], "master"), strings.Join(data, ", "), beeGFS7, s.deviceID(workers[0], "mgmtd"), s.deviceID(workers[0], "mds"))
}

// plugInOnDisks attaches the disks of onDisks to the nodes, new ones or those that they had.
func (s *story) plugInOnDisks() {
	GinkgoHelper()
	for _, name := range []string{"master", "mgmtd", "mds"} {
		disks("attach", workers[0], s.disk(workers[0], name), "350M", "SSD")
	}
	for _, node := range workers[:2] {
		disks("attach", node, s.disk(node, "moose"), "1G", "SSD")
		for _, name := range []string{"bee0", "bee1"} {
			disks("attach", node, s.disk(node, name), "400M", "HDD")
		}
		s.label(node, "storage")
	}
}

// inMoose runs a script where the MooseFS is mounted.
func (s *story) inMoose(script string) string {
	GinkgoHelper()
	pod := s.kubectl("get", "pods", "-l", "parallelfs.dev/filesystem=moose,parallelfs.dev/component=client", "-o", "jsonpath={.items[0].metadata.name}")
	return strings.TrimSpace(s.kubectl("exec", pod, "-c", "client", "--", "sh", "-c", script))
}

// identity returns the identity of the cluster.
func identity() string {
	GinkgoHelper()
	return kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
}

// newCluster replaces the cluster by another one over the same disks.
func newCluster() {
	GinkgoHelper()
	script("down.sh")
	script("prepare.sh")
	connect()
}

// script runs a script of test/cluster, leaves the disks as they are, and returns what it printed.
func script(name string) string {
	GinkgoHelper()
	var printed strings.Builder
	command := exec.Command(filepath.Join(root, "test", "cluster", name))
	command.Env = append(os.Environ(), "KEEP_DISKS=1")
	command.Stdout, command.Stderr = io.MultiWriter(GinkgoWriter, &printed), GinkgoWriter
	Expect(command.Run()).To(Succeed(), name)
	return printed.String()
}

// pageIsFollowed runs the commands of docs/install.md on a cluster that has no operator yet. Its filesystem is deleted afterwards.
func pageIsFollowed() {
	GinkgoHelper()
	report("docs/install.md", script("guide.sh"))
	ready := `{.status.conditions[?(@.type=="Ready")].reason}`
	Eventually(func() string {
		return kubectl("-n", "storage", "get", "filesystem", "scratch", "-o", "jsonpath="+ready)
	}, soon).Should(Equal(v1alpha1.ReasonHealthy))
	images := kubectl("get", "pods", "-n", "storage", "-o", `jsonpath={range .items[*].spec.containers[*]}{.image}{"\n"}{end}`) +
		kubectl("get", "pods", "-n", systemNamespace, "-o", `jsonpath={range .items[*].spec.containers[*]}{.image}{"\n"}{end}`)
	for image := range strings.FieldsSeq(images) {
		Expect(image).To(MatchRegexp(`^localhost:\d+/team/parallelfs/[a-z-]+@sha256:[0-9a-f]{64}$`), "each pod runs what was pushed, by its digest")
	}
	deleteFileSystems("storage", "scratch", patience.Flag(5*time.Minute))
	kubectl("delete", "namespace", "storage", patience.Flag(2*time.Minute))
}

func (s *story) clusterIsRebuilt() {
	var lost, sum string
	var given []string
	numbers := func() []string {
		GinkgoHelper()
		return append(s.given(), s.kubectl("get", "filesystem", "hive", "-o", "jsonpath={.status.beegfs.basePort} {.status.metadata.target} {.status.storagePools[*].slot}"))
	}
	made := map[string]string{}

	It("has filesystems with ids and files on its disks", func() {
		s.begin()
		s.plugInOnDisks()
		s.apply(s.onDisks())
		for _, name := range []string{"moose", "hive"} {
			Eventually(s.readyNamed, long).WithArguments(name).Should(BeTrue(), func() string { return s.whyNotReadyOf(name) })
		}
		s.inMoose("dd if=/dev/urandom of=" + s.mountPath + "/thesis bs=1M count=32 conv=fsync 2>/dev/null; sync")
		sum = s.inMoose("sha256sum " + s.mountPath + "/thesis")
		s.spareChunk(workers[1], "bee1")
		onNode(workers[1], "sync")
		given, lost = numbers(), identity()
		for _, t := range s.targets() {
			made[t.Name] = t.Status.Provisioned.UUID
		}
		Expect(made).To(HaveLen(9))
		report("what was given", strings.Join(given, "\n"))
	})

	It("has a new cluster, whose namespaces are restricted by default, where the commands of docs/install.md make a filesystem that is healthy", func() {
		newCluster()
		Expect(kubectl("create", "namespace", "e2e-unlabeled", "-o", "jsonpath={.metadata.labels}")).NotTo(ContainSubstring("pod-security"))
		_, err := try("", "kubectl", "-n", "e2e-unlabeled", "run", "plain", "--image=localhost/parallelfs/benchmarks:dev")
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted`)))
		begun := time.Now()
		pageIsFollowed()
		report("the operator and a filesystem by the page", time.Since(begun).Round(time.Second).String())
	})

	It("is rebuilt from its disks in a new cluster, with one approval for each filesystem", func() {
		begun := time.Now()
		prepareCluster()
		findShells()
		report("the operator of the tests in the new cluster", time.Since(begun).Round(time.Second).String())
		Expect(identity()).NotTo(Equal(lost))
		s.begin()
		s.plugInOnDisks()
		s.apply(s.onDisks())
		for _, name := range []string{"moose", "hive"} {
			Eventually(func() string {
				c := meta.FindStatusCondition(s.fileSystemNamed(name).Status.Conditions, v1alpha1.ConditionStalled)
				if c == nil {
					return ""
				}
				return c.Reason + ": " + c.Message
			}, soon).Should(And(HavePrefix(v1alpha1.ReasonRecordsUnread), ContainSubstring(v1alpha1.ReasonOtherCluster), ContainSubstring(lost)))
		}
		Expect(s.given()).To(BeEmpty())
		Expect(s.provenTargets()).To(BeZero(), "nothing of another cluster is mounted")

		approved := time.Now()
		for _, name := range []string{"moose", "hive"} {
			s.kubectl("patch", "filesystem", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"provisioning":{"takeOver":%q}}}`, lost))
		}
		for _, name := range []string{"moose", "hive"} {
			Eventually(s.readyNamed, long).WithArguments(name).Should(BeTrue(), func() string { return s.whyNotReadyOf(name) })
		}
		report("from the approval to Ready", time.Since(approved).Round(time.Second).String())
		Expect(numbers()).To(Equal(given))
		now := map[string]string{}
		for _, t := range s.targets() {
			now[t.Name] = t.Status.Provisioned.UUID
			Expect(t.Status.Provisioned.PlanHash).To(BeEmpty(), "%s was taken over as it was", t.Name)
		}
		Expect(now).To(Equal(made))
		Expect(s.inMoose("sha256sum " + s.mountPath + "/thesis")).To(Equal(sum))
		Expect(onNode(workers[1], "cat "+s.targetOn(workers[1], "bee1").Status.MountPath+"/storage/data/chunks/spare")).To(ContainSubstring("somebody's file"))
		report("kubectl get storagetarget -o yaml", s.kubectl("get", "storagetarget", s.targetOn(workers[1], "bee1").Name, "-o", "yaml"))
	})
}
