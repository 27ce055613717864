//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

const (
	// lustre is the version of the doubles, which are the nodes' own programs (test/cluster/lustre.sh).
	lustre = "2.17.57"
	// lakePath is where clients mount. The doubles keep files beside it, in a directory that all nodes have.
	lakePath = "/mnt/lake"
	// mdts is the number of MDTs on each of two nodes.
	mdts = 2
)

// noLustre returns why Lustre is not available here, empty if it is.
func noLustre() string {
	GinkgoHelper()
	for _, node := range workers {
		if missing := onNode(node, "for p in mkfs.lustre lctl lnetctl mke2fs debugfs; do command -v $p >/dev/null || echo $p; done"); missing != "" {
			return node + " has no " + strings.Join(strings.Fields(missing), ", ") + " (test/cluster/lustre.sh)"
		}
	}
	return ""
}

// lake returns a Lustre with two MDTs on each of two nodes, and one pool of these OSTs.
func (s *story) lake(osts ...string) string {
	var metadata []string
	for _, node := range workers[:2] {
		for slot := range mdts {
			metadata = append(metadata, s.named(node, fmt.Sprintf("mdt%d", slot)))
		}
	}
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: lake, namespace: e2e-$STORY}
spec:
  type: Lustre
  version: %[1]s
  lustre: {fsName: lake, basePort: $PORT, projects: [{id: 42, directory: ssd/small, space: 2Mi}]}
  metadataServers:
    nodeSelector: {e2e.parallelfs.dev/$STORY-metadata: ""}
    instancesPerNode: %[2]d
    targets:
      devices: [%[3]s]
      format: {fsType: ldiskfs}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets:
      devices: [%[4]s]
      format: {fsType: ldiskfs}
  clients:
    nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}
    mountPath: %[5]s
  provisioning: {formatPolicy: IfBlank}
`, lustre, mdts, strings.Join(metadata, ", "), strings.Join(osts, ", "), lakePath)
}

// named returns a disk of a node for a manifest.
func (s *story) named(node, name string) string {
	return fmt.Sprintf("{node: %s, id: %s}", node, s.deviceID(node, name))
}

func (s *story) whyLakeIsNotReady() string { return s.whyNotReadyOf("lake") }

// lakeIsReady waits until it serves.
func (s *story) lakeIsReady() {
	GinkgoHelper()
	Eventually(s.readyNamed, long).WithArguments("lake").Should(BeTrue(), s.whyLakeIsNotReady)
}

// serves returns the targets of Lustre that a node's kernel serves, such as lake-OST0000.
func serves(node string) []string {
	GinkgoHelper()
	return strings.Fields(onNode(node, `lctl dl | awk '$2 == "UP" && ($3 == "mdt" || $3 == "obdfilter") {print $4}' | sort`))
}

// ostPods returns the pods that keep OSTs mounted, each with the name of its node, and the number of nodes with such a pod but no Ready
// one.
func (s *story) ostPods() (pods []string, away int) {
	GinkgoHelper()
	// The ending pod and its successor may exist at the same time. They count as one server.
	up := map[string]bool{}
	for _, p := range s.componentPods("ost") {
		ready := slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Ready })
		up[p.Spec.NodeName] = up[p.Spec.NodeName] || ready && p.DeletionTimestamp == nil
		pods = append(pods, p.Spec.NodeName+" "+string(p.UID))
	}
	for _, isUp := range up {
		if !isUp {
			away++
		}
	}
	slices.Sort(pods)
	return pods, away
}

func (s *story) lustreRuns() {
	var osts []string
	// The identity of a target is on its disk, and is the same afterwards.
	is := func() map[string]string {
		GinkgoHelper()
		out := map[string]string{}
		for _, t := range s.targets() {
			l := t.Spec.Lustre
			out[t.Spec.Device.Serial] = fmt.Sprintf("%s %s index %d", t.Status.Provisioned.UUID, l.Kind, *l.Index)
		}
		return out
	}
	BeforeAll(func() {
		if why := noLustre(); why != "" {
			Skip(why)
		}
	})

	It("formats its disks, mounts them on their nodes, and is Ready when the nodes report that they serve", func() {
		s.begin()
		for _, node := range workers[:2] {
			for slot := range mdts {
				disks("attach", node, s.disk(node, fmt.Sprintf("mdt%d", slot)), "300M", "SSD")
			}
			disks("attach", node, s.disk(node, "ost0"), "400M", "HDD")
			osts = append(osts, s.named(node, "ost0"))
			s.label(node, "metadata", "storage")
		}
		for _, node := range workers {
			s.label(node, "client")
		}
		begun := time.Now()
		s.apply(s.lake(osts...))
		s.lakeIsReady()
		report("a Lustre of four MDTs and two OSTs, from apply to Ready", time.Since(begun).Round(time.Second).String())
		Expect(s.fileSystemNamed("lake").Status.Summary).To(And(HaveField("Servers", "6/6"), HaveField("Targets", "2/2")), "four MDTs, and a pool on two nodes")
		served := append(serves(workers[0]), serves(workers[1])...)
		slices.Sort(served)
		Expect(served).To(Equal([]string{"lake-MDT0000", "lake-MDT0001", "lake-MDT0002", "lake-MDT0003", "lake-OST0000", "lake-OST0001"}))
		// The agent reports where a target is mounted in its next pass.
		Eventually(s.targets, long).Should(HaveEach(HaveField("Status.MountPath", Not(BeEmpty()))))
		for _, t := range s.targets() {
			Expect(onNode(t.Spec.Node, "findmnt -rno FSTYPE "+t.Status.MountPath)).To(HaveSuffix("lustre_tgt"), "the mount of %s is the node's", t.Name)
		}
		report("kubectl get filesystems,storagetargets -o wide", s.kubectl("get", "filesystems,storagetargets", "-o", "wide"))
		report("kubectl get filesystemnodes", s.kubectl("get", "filesystemnodes", "-o", "wide"))
		report("lctl dl", onNode(workers[0], "lctl dl"))
	})

	It("is mounted on its clients, which see the same files", func() {
		onNode(workers[1], "echo '"+greeting+"' > "+lakePath+"/ssd/greeting")
		for _, node := range workers {
			Expect(onNode(node, "cat "+lakePath+"/ssd/greeting")).To(Equal(greeting))
		}
		Expect(onNode(workers[0], "lctl pool_list lake.ssd")).To(And(ContainSubstring("lake-OST0000"), ContainSubstring("lake-OST0001")))
		report("lfs df", onNode(workers[2], "lfs df "+lakePath))
	})

	It("keeps programs within the limit of a directory", more, func() {
		small := lakePath + "/ssd/small"
		onNode(workers[1], "chown 1000:1000 "+small)
		write := "cd / && setpriv --reuid 1000 --regid 1000 --clear-groups dd if=/dev/zero bs=256k of="
		onNode(workers[1], write+small+"/fits count=4")
		said, err := shell(workers[1], write+small+"/does-not count=16 2>&1")
		Expect(err).To(HaveOccurred())
		Expect(said).To(ContainSubstring("Disk quota exceeded"))
		report("lfs quota", onNode(workers[0], "lfs quota -p 42 "+lakePath))
	})

	It("measures itself with fio on its clients", more, func() {
		s.apply(`
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: streams, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: lake, storagePool: ssd}}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, oversubscribe: true, count: 2}
  tool: fio
  fio: {mode: write, blockSize: 64Ki, fileSize: 4Mi}
  processes: 2
  limits: {pointTimeout: 5m, retries: 2, invalidRetries: 3}
`)
		s.finish("streams")
		s.results("streams")
	})

	It("measures its MDTs and its OSTs on their own nodes", more, func() {
		s.apply(`
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: mdts, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: lake}}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}}
  tool: mdsSurvey
  mdsSurvey: {threadsLow: 4, threadsHigh: 4, fileCount: 1000, dirCount: 4, tests: [create, destroy]}
  limits: {pointTimeout: 5m, retries: 2, invalidRetries: 3}
---
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: osts, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: lake}}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}}
  tool: obdfilterSurvey
  obdfilterSurvey: {threadsLow: 1, threadsHigh: 1, objectsHigh: 1, sizeMiB: 256}
  limits: {pointTimeout: 5m, retries: 2, invalidRetries: 3}
`)
		// A double creates 3200 files a second with four threads, and writes 100 MiB/s.
		for name, together := range map[string][2]string{"mdts": {"create thr 4", "12800"}, "osts": {"write obj 1 thr 1", "200"}} {
			run := s.finish(name)
			s.results(name)
			Expect(run.Status.Points[0].Metrics).To(ContainElement(And(HaveField("Name", together[0]), HaveField("Value", HavePrefix(together[1])))))
		}
	})

	It("grows by an OST on a third node while the others serve", more, func() {
		before, _ := s.ostPods()
		disks("attach", workers[2], s.disk(workers[2], "ost0"), "400M", "HDD")
		disks("attach", workers[1], s.disk(workers[1], "ost1"), "400M", "HDD")
		s.label(workers[2], "storage")
		osts = append(osts, s.named(workers[2], "ost0"), s.named(workers[1], "ost1"))
		s.apply(s.lake(osts...))
		Eventually(func() string { return s.fileSystemNamed("lake").Status.Summary.Targets }, long).Should(Equal("4/4"), s.whyLakeIsNotReady)
		s.lakeIsReady()
		after, _ := s.ostPods()
		Expect(after).To(ContainElements(before), "a disk that comes restarts no server")
		Eventually(func() string { return onNode(workers[0], "lfs osts "+lakePath) }, soon).Should(ContainSubstring("lake-OST0003"))
	})

	It("restarts its servers one after the other, the next when recovery is over", more, func() {
		before, _ := s.ostPods()
		s.kubectl("patch", "filesystem", "lake", "--type=merge", "-p", `{"spec":{"pods":{"resources":{"storage":{"requests":{"cpu":"20m","memory":"64Mi"}}}}}}`)
		most := 0
		Eventually(func() []string {
			now, away := s.ostPods()
			most = max(most, away)
			return slices.DeleteFunc(now, func(pod string) bool { return !slices.Contains(before, pod) })
		}, 2*long).Should(BeEmpty(), "every one has a new pod")
		Expect(most).To(BeNumerically("<=", 1))
		s.lakeIsReady()
		Expect(onNode(workers[2], "cat "+lakePath+"/ssd/greeting")).To(Equal(greeting))
	})

	It("continues when the pod of a server is killed", func() {
		before := serves(workers[1])
		onNode(workers[1], "kill -9 $(pgrep -f 'node serve --spec' | head -1)")
		Expect(serves(workers[1])).To(Equal(before), "the mounts are the node's")
		s.lakeIsReady()
	})

	It("drains an OST: it gets no new objects, its files move to others, and it leaves the configuration", more, func() {
		drained := s.numberOf("lake", s.targetOn(workers[1], "ost1").Name) - 1
		onNode(workers[0], fmt.Sprintf("mkdir -p %[1]s/ssd/drained && lfs setstripe -c 1 -i %[2]d %[1]s/ssd/drained && echo data > %[1]s/ssd/drained/file", lakePath, drained))
		Expect(onNode(workers[0], fmt.Sprintf("lfs find %s --ost %d", lakePath, drained))).NotTo(BeEmpty())
		s.kubectl("patch", "storagetarget", s.targetOn(workers[1], "ost1").Name, "--type=merge", "-p", `{"spec":{"remove":true}}`)
		Eventually(s.isTrue(workers[1], "ost1", v1alpha1.ConditionSafeToRemove), 2*long).Should(BeTrue(), s.said(workers[1], "ost1", v1alpha1.ConditionSafeToRemove))
		Expect(onNode(workers[0], fmt.Sprintf("lfs find %s --ost %d", lakePath, drained))).To(BeEmpty())
		report("an OST that is drained", s.said(workers[1], "ost1", v1alpha1.ConditionSafeToRemove)())
		osts = slices.DeleteFunc(osts, func(disk string) bool { return disk == s.named(workers[1], "ost1") })
		s.apply(s.lake(osts...))
		Eventually(func() any { return s.targetOn(workers[1], "ost1") }, long).Should(BeNil())
		Expect(serves(workers[1])).NotTo(ContainElement(fmt.Sprintf("lake-OST%04x", drained)))
		s.lakeIsReady()
		Expect(onNode(workers[0], "cat "+lakePath+"/ssd/drained/file")).To(Equal("data"))
	})

	It("keeps the data on its disks when it is deleted, and finds it again", func() {
		before := is()
		s.deleteFileSystem("lake", patience.Flag(5*time.Minute))
		Expect(s.targets()).To(BeEmpty())
		for _, node := range workers {
			Expect(serves(node)).To(BeEmpty(), "nothing is served any more")
		}
		s.apply(s.lake(osts...))
		s.lakeIsReady()
		Expect(is()).To(Equal(before))
		for _, t := range s.targets() {
			Expect(t.Status.Provisioned.PlanHash).To(BeEmpty(), "%s was taken over as it was", t.Name)
			Expect(t.Status.Record.Lustre).To(Equal(t.Spec.Lustre), "the disk of %s said so", t.Name)
		}
		Expect(onNode(workers[2], "cat "+lakePath+"/ssd/greeting")).To(Equal(greeting))
		s.deleteFileSystem("lake", patience.Flag(5*time.Minute))
	})
}
