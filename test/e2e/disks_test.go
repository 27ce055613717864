//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

const thesis = "the only copy of a thesis"

// disk returns the serial number of a disk of a node: "ssd0" of parallelfs-e2e-worker2 in the story disks is E2E-disks-worker2-ssd0.
func (s *story) disk(node, name string) string {
	return "E2E-" + s.name + "-" + strings.TrimPrefix(node, os.Getenv("CLUSTER")+"-") + "-" + name
}

// deviceID returns the name of a disk's link in /dev/disk/by-id.
func (s *story) deviceID(node, name string) string { return "ata-E2E_DISK_" + s.disk(node, name) }

// disks runs test/cluster/disks.sh.
func disks(args ...string) string {
	GinkgoHelper()
	out, err := exec.Command(filepath.Join(root, "test", "cluster", "disks.sh"), args...).Output()
	Expect(err).NotTo(HaveOccurred(), "disks.sh %v", args)
	return strings.TrimSpace(string(out))
}

// content returns a hash of everything on a disk.
func (s *story) content(node, name string) string {
	GinkgoHelper()
	file, err := os.Open(disks("file", node, s.disk(node, name)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// tieredManifest returns a FileSystem with its metadata on a disk of the first node, and two pools on two disks of each of two nodes.
func (s *story) tieredManifest() string {
	var bulk []string
	for _, node := range workers[:2] {
		for _, name := range []string{"hdd0", "hdd1"} {
			bulk = append(bulk, fmt.Sprintf("{node: %s, id: %s}", node, s.deviceID(node, name)))
		}
	}
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: tiered, namespace: e2e-$STORY}
spec:
  type: MooseFS
  version: 4.57.5
  moosefs:
    basePort: $PORT
    config:
      metadata: {CHUNKS_LOOP_MIN_TIME: "60", NICE_LEVEL: "0"} # a disk is empty when a whole loop has said so
      storage: {HDD_LEAVE_SPACE_DEFAULT: 64MiB, NICE_LEVEL: "0"}
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[1]s}
    targets:
      devices: [{node: %[1]s, id: %[2]s}]
      format: {fsType: ext4, mkfsOptions: ["-i", "2048", "-I", "512"], mountOptions: [noatime, nodiratime]}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-disks: ""}
    copies: 2
    cpuPinning: {mode: CPUSet, cpuSets: ["0"], memoryPolicy: Bind}
    targets:
      select: {mediaType: SSD, minSize: 900Mi, idGlobs: ["ata-E2E_DISK_E2E-$STORY-*"], countPerNode: 2}
      format: {fsType: xfs, mkfsOptions: ["-i", "size=512"], mountOptions: [noatime, inode64]}
      queue: {readAheadKB: 4096, scheduler: none}
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/$STORY-bulk: ""}
    copies: 2
    cpuPinning: {mode: CPUSet, cpuSets: ["1"]}
    targets:
      devices: [%[3]s]
      format: {fsType: xfs, mountOptions: [noatime]}
  clients:
    nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}
    mountPath: /mnt/e2e/$STORY/fs
  provisioning: {formatPolicy: Approved}
`, workers[0], s.deviceID(workers[0], "meta"), strings.Join(bulk, ", "))
}

func (s *story) targets() []v1alpha1.StorageTarget {
	GinkgoHelper()
	var list v1alpha1.StorageTargetList
	Expect(api.List(context.Background(), &list, client.InNamespace(s.namespace))).To(Succeed())
	return list.Items
}

// targetOn returns the target on a disk.
func (s *story) targetOn(node, name string) *v1alpha1.StorageTarget {
	GinkgoHelper()
	for _, t := range s.targets() {
		if t.Spec.Node == node && t.Spec.Device.Serial == s.disk(node, name) {
			return &t
		}
	}
	return nil
}

// said returns the reason and the message of a condition of the target on a disk.
func (s *story) said(node, name, condition string) func() string {
	return func() string {
		GinkgoHelper()
		t := s.targetOn(node, name)
		if t == nil {
			return ""
		}
		c := meta.FindStatusCondition(t.Status.Conditions, condition)
		if c == nil {
			return ""
		}
		return c.Reason + ": " + c.Message
	}
}

func (s *story) isTrue(node, name, condition string) func() bool {
	return func() bool {
		GinkgoHelper()
		t := s.targetOn(node, name)
		return t != nil && meta.IsStatusConditionTrue(t.Status.Conditions, condition)
	}
}

// provenTargets counts the targets that are mounted and proven.
func (s *story) provenTargets() int {
	GinkgoHelper()
	n := 0
	for _, t := range s.targets() {
		if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady) {
			n++
		}
	}
	return n
}

func (s *story) whyTieredIsNotReady() string {
	GinkgoHelper()
	return s.whyNotReadyOf("tiered")
}

func (s *story) tieredIsReady() bool {
	GinkgoHelper()
	return isWhole(s.fileSystemNamed("tiered"))
}

func (s *story) approve(t *v1alpha1.StorageTarget, hash string) {
	GinkgoHelper()
	s.kubectl("patch", "storagetarget", t.Name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"approvedPlan":%q}}`, hash))
}

func (s *story) setTiered(patch string) {
	GinkgoHelper()
	s.kubectl("patch", "filesystem", "tiered", "--type=merge", "-p", patch)
}

// inTiered runs a script in the pod that mounts the filesystem on the first node.
func (s *story) inTiered(script string) string {
	GinkgoHelper()
	pod := s.kubectl("get", "pods", "-l", "parallelfs.dev/filesystem=tiered,parallelfs.dev/component=client",
		"--field-selector", "spec.nodeName="+workers[0], "-o", "jsonpath={.items[0].metadata.name}")
	return strings.TrimSpace(s.kubectl("exec", pod, "-c", "client", "--", "sh", "-c", script))
}

// agentOn runs a script in the agent of a node.
func agentOn(node, script string) (string, error) {
	pod, err := try("", "kubectl", "-n", systemNamespace, "get", "pods", "-l", "app.kubernetes.io/component=agent",
		"--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}")
	if err != nil {
		return "", err
	}
	return try("", "kubectl", "-n", systemNamespace, "exec", pod, "--", "sh", "-c", script)
}

// plugIn attaches the disks of the nodes. One of those that the FileSystem asks for holds foreign data.
func (s *story) plugIn() {
	GinkgoHelper()
	disks("attach", workers[0], s.disk(workers[0], "meta"), "512M", "SSD")
	for _, node := range workers[:2] {
		for _, name := range []string{"ssd0", "ssd1"} {
			disks("attach", node, s.disk(node, name), "1G", "SSD")
		}
		for _, name := range []string{"hdd0", "hdd1"} {
			disks("attach", node, s.disk(node, name), "1G", "HDD")
		}
	}
	device := onNode(workers[1], "readlink -f /dev/disk/by-id/"+s.deviceID(workers[1], "hdd0"))
	onNode(workers[1], fmt.Sprintf("mkfs.ext4 -q -L precious %[1]s && mkdir -p /tmp/precious && mount %[1]s /tmp/precious && "+
		"printf '%[2]s' > /tmp/precious/thesis.tex && umount /tmp/precious", device, thesis))
}

func (s *story) disksAreTargets() {
	var started time.Time

	It("lists the disks of each node by their stable names, and no other node's", func() {
		s.begin()
		s.plugIn()
		for _, node := range workers[:2] {
			s.label(node, "disks", "bulk", "client")
		}
		serials := func(node string) []string {
			var found []string
			inventory := &v1alpha1.NodeInventory{}
			if err := api.Get(context.Background(), client.ObjectKey{Name: node}, inventory); err != nil {
				return nil
			}
			for _, d := range inventory.Status.BlockDevices {
				if strings.HasPrefix(d.Serial, "E2E-"+s.name+"-") {
					found = append(found, strings.TrimPrefix(d.Serial, s.disk(node, "")))
				}
			}
			return found
		}
		Eventually(serials).WithArguments(workers[0]).Should(ConsistOf("meta", "ssd0", "ssd1", "hdd0", "hdd1"))
		Eventually(serials).WithArguments(workers[1]).Should(ConsistOf("ssd0", "ssd1", "hdd0", "hdd1"))
		Eventually(func() error {
			return api.Get(context.Background(), client.ObjectKey{Name: workers[2]}, &v1alpha1.NodeInventory{})
		}).Should(Succeed())
		Consistently(serials, "3s").WithArguments(workers[2]).Should(BeEmpty())
		report("kubectl get nodeinventories -o wide", kubectl("get", "nodeinventories", "-o", "wide"))
		report("a NodeInventory", kubectl("get", "nodeinventory", workers[1], "-o", "yaml"))
	})

	It("formats nothing before its plan is approved, and refuses the approval of another plan", func() {
		before := s.content(workers[1], "hdd0")
		s.apply(s.tieredManifest())
		Eventually(s.targets, soon).Should(HaveLen(9))
		for _, t := range s.targets() {
			Eventually(s.said(t.Spec.Node, strings.TrimPrefix(t.Spec.Device.Serial, s.disk(t.Spec.Node, "")), v1alpha1.ConditionReady)).
				Should(HavePrefix(v1alpha1.ReasonAwaitingApproval), t.Name)
		}
		theirs, blank := s.targetOn(workers[1], "hdd0"), s.targetOn(workers[1], "hdd1")
		Expect(theirs.Status.Plan.Destroys).To(ContainElement(And(ContainSubstring("ext4"), ContainSubstring("precious"))))
		Expect(blank.Status.Plan.Destroys).To(BeEmpty())
		s.approve(theirs, blank.Status.Plan.Hash)
		Eventually(s.said(workers[1], "hdd0", v1alpha1.ConditionReady)).Should(And(
			HavePrefix(v1alpha1.ReasonApprovalRefused), ContainSubstring(theirs.Status.Plan.Hash), ContainSubstring(blank.Status.Plan.Hash)))
		report("a wrong approval", s.said(workers[1], "hdd0", v1alpha1.ConditionReady)())
		Expect(s.content(workers[1], "hdd0")).To(Equal(before))
		Expect(s.provenTargets()).To(BeZero())
		Eventually(s.whyTieredIsNotReady).Should(ContainSubstring(v1alpha1.ReasonAwaitingApproval))
		Expect(s.kubectl("get", "pods", "-l", "parallelfs.dev/filesystem=tiered,parallelfs.dev/component=master",
			"-o", "jsonpath={.items[*].status.containerStatuses[?(@.name==\"probe\")].ready}")).NotTo(ContainSubstring("true"))
	})

	It("formats approved disks, mounts them as in the manifest, and becomes Ready", func() {
		started = time.Now()
		for _, t := range s.targets() {
			s.approve(&t, t.Status.Plan.Hash)
		}
		Eventually(s.provenTargets, long).Should(Equal(9), func() string {
			return s.kubectl("get", "storagetargets", "-o", "wide")
		})
		provisioned := time.Since(started)
		Eventually(s.tieredIsReady, long).Should(BeTrue(), s.whyTieredIsNotReady)
		report("from approval to Ready", time.Since(started).Round(time.Second).String())
		if os.Getenv("OVERHEAD") != "" {
			s.compareWithByHand(provisioned)
		}
		fs := s.fileSystemNamed("tiered")
		Expect(fs.Status.Summary.Targets).To(Equal("8/8"))
		Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionEvaluationOnly)).To(BeNil(), "disks are proven, directories are not")
		ssd := s.targetOn(workers[0], "ssd0")
		Expect(onNode(workers[0], "grep ' "+ssd.Status.MountPath+" ' /proc/self/mountinfo")).To(And(ContainSubstring("noatime"), ContainSubstring("inode64"), ContainSubstring(" xfs ")))
		Expect(onNode(workers[0], "cat /sys/block/"+ssd.Status.KernelName+"/queue/read_ahead_kb")).To(Equal("4096"))
		Expect(ssd.Status.Queue.ReadAheadKB).To(Equal(int32(4096)))
		report("kubectl get storagetargets -o wide", s.kubectl("get", "storagetargets", "-o", "wide"))
		report("a StorageTarget", s.kubectl("get", "storagetarget", ssd.Name, "-o", "yaml"))
	})

	It("shows where its daemons run according to the kernel", func() {
		placed := func() map[string]string {
			out := map[string]string{}
			for _, i := range s.servers("tiered", v1alpha1.RoleStorage) {
				if p := i.seen.Placement; p != nil {
					out[i.told.StoragePool+" on "+i.node] = strings.TrimSpace(p.CPUs + " " + p.Drift)
				}
			}
			return out
		}
		Eventually(placed, 2*soon).Should(Equal(map[string]string{
			"ssd on " + workers[0]: "0", "ssd on " + workers[1]: "0", "bulk on " + workers[0]: "1", "bulk on " + workers[1]: "1",
		}))
		for _, node := range workers[:2] {
			threads := onNode(node, "for p in $("+s.processes(node, "mfschunkserver")+`); do grep -h Cpus_allowed_list /proc/$p/task/*/status | sort | uniq -c; done`)
			report("threads of the chunkservers on "+node, threads)
		}
		Eventually(func() bool {
			return meta.IsStatusConditionTrue(s.fileSystemNamed("tiered").Status.Conditions, v1alpha1.ConditionPinned)
		}).Should(BeTrue())
		onNode(workers[0], "for p in $("+s.processes(workers[0], "mfschunkserver")+"); do taskset -acp 0,1 $p; done")
		Eventually(func() string {
			c := meta.FindStatusCondition(s.fileSystemNamed("tiered").Status.Conditions, v1alpha1.ConditionPinned)
			return c.Reason + ": " + c.Message
		}, 2*soon).Should(And(HavePrefix(v1alpha1.ReasonDrifted), ContainSubstring(workers[0])))
		report("drift", meta.FindStatusCondition(s.fileSystemNamed("tiered").Status.Conditions, v1alpha1.ConditionPinned).Message)
	})

	if os.Getenv("OVERHEAD") != "" {
		It("costs little while nothing happens", s.agentsAreIdle)
	}

	It("continues without a missing disk, never formats another disk in its place, and uses the disk again", func() {
		s.inTiered("mkdir -p " + s.mountPath + "/bulk/kept && head -c 20M /dev/urandom > " + s.mountPath + "/bulk/kept/data && sha256sum " + s.mountPath + "/bulk/kept/data > /tmp/sum")
		lost := s.targetOn(workers[1], "hdd1")
		s.pullOut(lost, "hdd1")
		Eventually(s.said(workers[1], "hdd1", v1alpha1.ConditionReady), 2*soon).Should(HavePrefix(v1alpha1.ReasonTargetMissing))
		Eventually(s.whyTieredIsNotReady, 2*soon).Should(ContainSubstring(lost.Name))
		report("a missing disk", s.whyTieredIsNotReady())
		Expect(s.inTiered("sha256sum -c /tmp/sum")).To(ContainSubstring("OK"), "the other copy is there")
		disks("attach", workers[1], s.disk(workers[1], "hdd1"), "1G", "HDD")
		Eventually(s.isTrue(workers[1], "hdd1", v1alpha1.ConditionReady), 2*soon).Should(BeTrue())
		Eventually(s.tieredIsReady, long).Should(BeTrue(), s.whyTieredIsNotReady)
		Expect(s.targetOn(workers[1], "hdd1").Status.Provisioned).To(Equal(lost.Status.Provisioned))
	})

	It("drains a marked disk, reports when it may be removed, and uses another in its place", func() {
		old := s.targetOn(workers[0], "hdd1")
		s.kubectl("patch", "storagetarget", old.Name, "--type=merge", "-p", `{"spec":{"remove":true}}`)
		// MooseFS keeps one copy of a chunk on a server. The other server has the second copy, so only a third one can take the data that leaves.
		disks("attach", workers[2], s.disk(workers[2], "hdd2"), "1G", "HDD")
		s.label(workers[2], "bulk")
		written := strings.TrimSpace(onNode(workers[0], "find "+old.Status.MountPath+"/chunkserver/data -name 'chunk_*' | wc -l"))
		report("chunks on the disk that leaves", written)
		s.setTiered(fmt.Sprintf(`{"spec":{"provisioning":{"formatPolicy":"IfBlank"},"storagePools":%s}}`, s.poolsWith(s.deviceID(workers[2], "hdd2"), "")))
		Eventually(s.isTrue(workers[2], "hdd2", v1alpha1.ConditionReady), 2*soon).Should(BeTrue())
		Eventually(s.isTrue(workers[0], "hdd1", v1alpha1.ConditionSafeToRemove), 2*long).Should(BeTrue(), s.said(workers[0], "hdd1", v1alpha1.ConditionSafeToRemove))
		s.setTiered(fmt.Sprintf(`{"spec":{"storagePools":%s}}`, s.poolsWith(s.deviceID(workers[2], "hdd2"), s.deviceID(workers[0], "hdd1"))))
		Eventually(func() any { return s.targetOn(workers[0], "hdd1") }, 2*soon).Should(BeNil())
		Expect(onNode(workers[0], "grep -c "+old.Name+" /proc/self/mountinfo || true")).To(Equal("0"))
		disks("detach", workers[0], s.disk(workers[0], "hdd1"))
		Eventually(s.tieredIsReady, long).Should(BeTrue(), s.whyTieredIsNotReady)
		// The server that leaves a disk may start again only now.
		Eventually(func() string { return s.fileSystemNamed("tiered").Status.Summary.Targets }, long).Should(Equal("8/8"))
		Expect(s.inTiered("sha256sum -c /tmp/sum")).To(ContainSubstring("OK"))
	})

	It("keeps every disk when it is deleted, and finds them again under other kernel names", func() {
		names := func() map[string]string {
			out := map[string]string{}
			for _, t := range s.targets() {
				out[t.Spec.Device.Serial] = t.Status.KernelName + " " + t.Status.Provisioned.UUID
			}
			return out
		}
		uuid := s.targetOn(workers[0], "ssd0").Status.Provisioned.UUID
		report("kernel names before", fmt.Sprint(names()))
		manifest := s.kubectl("get", "filesystem", "tiered", "-o", "jsonpath={.spec}")
		var mounted []string
		for _, t := range s.targets() {
			mounted = append(mounted, t.Status.MountPath)
		}
		s.deleteFileSystem("tiered", patience.Flag(5*time.Minute))
		Expect(s.targets()).To(BeEmpty())
		for _, node := range workers {
			table := onNode(node, "cat /proc/self/mountinfo")
			for _, path := range mounted {
				Expect(table).NotTo(ContainSubstring(path), node)
			}
		}
		for _, name := range []string{"ssd0", "ssd1"} {
			disks("detach", workers[0], s.disk(workers[0], name))
		}
		for _, name := range []string{"ssd1", "ssd0"} {
			disks("attach", workers[0], s.disk(workers[0], name), "1G", "SSD")
		}
		s.apply(fmt.Sprintf(`{"apiVersion":"parallelfs.dev/v1alpha1","kind":"FileSystem","metadata":{"name":"tiered","namespace":%q},"spec":%s}`, s.namespace, manifest))
		Eventually(func() string {
			_, err := try("", "kubectl", "-n", s.namespace, "get", "filesystem", "tiered")
			Expect(err).NotTo(HaveOccurred())
			if s.tieredIsReady() {
				return ""
			}
			return s.whyTieredIsNotReady() + "not ready"
		}, long).Should(BeEmpty())
		report("kernel names after", fmt.Sprint(names()))
		Expect(s.targetOn(workers[0], "ssd0").Status.Provisioned.UUID).To(Equal(uuid))
		Expect(s.inTiered("ls " + s.mountPath + "/bulk/kept")).To(Equal("data"))
	})

	It("destroys nothing without a confirmation, then wipes only disks with its marker", func() {
		s.setTiered(`{"spec":{"deletionPolicy":"Destroy","confirmDestroy":"yes"}}`)
		uid := string(s.fileSystemNamed("tiered").UID)
		s.kubectl("annotate", "filesystem", "tiered", v1alpha1.AnnotationConfirmDelete+"=tiered")
		out, err := try("", "kubectl", "-n", s.namespace, "delete", "filesystem", "tiered", "--wait=false")
		Expect(err).To(HaveOccurred(), out)
		Expect(out + err.Error()).To(And(ContainSubstring("nobody has confirmed it"), ContainSubstring(uid)))
		report("an unconfirmed destruction", out+err.Error())
		Expect(s.fileSystemNamed("tiered").DeletionTimestamp).To(BeNil(), "no daemon has stopped")
		Expect(s.targets()).To(HaveLen(9))

		stranger := s.content(workers[0], "hdd1")
		s.setTiered(fmt.Sprintf(`{"spec":{"confirmDestroy":%q}}`, uid))
		s.deleteFileSystem("tiered", "--wait=false")
		Eventually(func() error {
			_, err := try("", "kubectl", "-n", s.namespace, "get", "filesystem", "tiered")
			return err
		}, long).Should(MatchError(ContainSubstring("NotFound")))
		for _, node := range workers[:2] {
			for _, name := range []string{"ssd0", "ssd1", "hdd0"} {
				device := onNode(node, "readlink -f /dev/disk/by-id/"+s.deviceID(node, name))
				out, err := agentOn(node, "blkid -p "+device+"; echo ended with $?")
				Expect(err).NotTo(HaveOccurred())
				Expect(out).To(Equal("ended with 2\n"), "%s of %s is blank", name, node)
			}
		}
		Expect(s.content(workers[0], "hdd1")).To(Equal(stranger), "a disk that was taken out before is none of its targets")
	})
}

// poolsWith returns spec.storagePools of tiered with one device more in pool bulk, and one less.
func (s *story) poolsWith(more, less string) string {
	GinkgoHelper()
	pools := s.kubectl("get", "filesystem", "tiered", "-o", "jsonpath={.spec.storagePools}")
	if less == "" {
		return strings.Replace(pools, `"devices":[`, fmt.Sprintf(`"devices":[{"node":%q,"id":%q},`, workers[2], more), 1)
	}
	for _, entry := range []string{fmt.Sprintf(`{"id":%q,"node":%q},`, less, workers[0]), fmt.Sprintf(`{"node":%q,"id":%q},`, workers[0], less)} {
		pools = strings.Replace(pools, entry, "", 1)
	}
	Expect(pools).NotTo(ContainSubstring(less))
	return pools
}

// pullOut removes a disk from the second node as if somebody had pulled it. Its mount goes with it, and so does the server with open files
// on it, which would keep the loop device.
func (s *story) pullOut(t *v1alpha1.StorageTarget, name string) {
	GinkgoHelper()
	onNode(t.Spec.Node, "users=; for p in $("+s.processes(t.Spec.Node, "mfschunkserver")+
		"); do if ls -l /proc/$p/fd | grep -q "+t.Name+"; then users=\"$users $p\"; fi; done; umount -l "+t.Status.MountPath+" && kill -9 $users")
	disks("detach", t.Spec.Node, s.disk(t.Spec.Node, name))
}

// compareWithByHand reports how long the same mkfs and mount commands take by hand, in parallel, on as many disks of the same size on the
// same nodes.
func (s *story) compareWithByHand(provisioned time.Duration) {
	GinkgoHelper()
	for _, node := range workers[:2] {
		for _, name := range []string{"hand0", "hand1", "hand2", "hand3"} {
			disks("attach", node, s.disk(node, name), "1G", "SSD")
		}
	}
	begun := time.Now()
	done := make(chan error, 2)
	for _, node := range workers[:2] {
		go func() {
			_, err := agentOn(node, fmt.Sprintf("cd /dev/disk/by-id; for n in 0 1 2 3; do (mkfs.xfs -q ata-E2E_DISK_%[1]s$n && mkdir -p /tmp/hand$n && "+
				"mount ata-E2E_DISK_%[1]s$n /tmp/hand$n && sync -f /tmp/hand$n) & done; wait; grep -c /tmp/hand /proc/self/mountinfo | grep -x 4", s.disk(node, "hand")))
			done <- err
		}()
	}
	for range 2 {
		Expect(<-done).To(Succeed())
	}
	byHand := time.Since(begun)
	report("provisioning", fmt.Sprintf("9 targets on 2 nodes, from the first approval to the last proof: %s; mkfs.xfs and mount of 8 by hand, in parallel: %s; ratio %.1f",
		provisioned.Round(100*time.Millisecond), byHand.Round(100*time.Millisecond), provisioned.Seconds()/byHand.Seconds()))
	for _, node := range workers[:2] {
		_, err := agentOn(node, "umount /tmp/hand0 /tmp/hand1 /tmp/hand2 /tmp/hand3")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"hand0", "hand1", "hand2", "hand3"} {
			disks("detach", node, s.disk(node, name))
		}
	}
}

// agentsAreIdle reports the CPU time of the agents while nothing happens.
func (s *story) agentsAreIdle() {
	versions := func() string {
		return kubectl("get", "nodeinventories,storagetargets", "-A", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}")
	}
	ticks := func(node string) float64 {
		out := onNode(node, `cat /proc/$(pgrep -xo agent)/stat`)
		fields := strings.Fields(out[strings.LastIndex(out, ")")+2:])
		user, err := strconv.ParseFloat(fields[11], 64)
		Expect(err).NotTo(HaveOccurred())
		system, err := strconv.ParseFloat(fields[12], 64)
		Expect(err).NotTo(HaveOccurred())
		return user + system
	}
	before, spent := versions(), ticks(workers[1])
	begun := time.Now()
	time.Sleep(40 * time.Second) //nolint:forbidigo // what is measured is that nothing happens
	used, lasted := (ticks(workers[1])-spent)/100, time.Since(begun)
	written := 0
	for line := range strings.SplitSeq(versions(), "\n") {
		if !strings.Contains(before, line) {
			written++
		}
	}
	report("the agent, idle", fmt.Sprintf("%.1f CPU seconds per hour; %.0f objects written per hour (%d in %s, all agents)",
		used*3600/lasted.Seconds(), float64(written)*3600/lasted.Seconds(), written, lasted.Round(time.Second)))
}
