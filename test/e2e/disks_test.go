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
)

const (
	tieredMount = "/mnt/e2e/tiered"
	// awayFromHome keeps the ports of this FileSystem away from those of the other one.
	awayFromHome = 9519
	thesis       = "the only copy of a thesis"
)

// disk is the serial number of a disk of a node: "ssd0" of parallelfs-e2e-worker2 is E2E-worker2-ssd0.
func disk(node, name string) string {
	return "E2E-" + strings.TrimPrefix(node, os.Getenv("CLUSTER")+"-") + "-" + name
}

// deviceID is the name of a disk's link in /dev/disk/by-id.
func deviceID(node, name string) string { return "ata-E2E_DISK_" + disk(node, name) }

// disks runs test/cluster/disks.sh.
func disks(args ...string) string {
	GinkgoHelper()
	out, err := exec.Command(filepath.Join(root, "test", "cluster", "disks.sh"), args...).Output()
	Expect(err).NotTo(HaveOccurred(), "disks.sh %v", args)
	return strings.TrimSpace(string(out))
}

// content is a hash of all that is on a disk.
func content(node, name string) string {
	GinkgoHelper()
	file, err := os.Open(disks("file", node, disk(node, name)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// tieredManifest has its metadata on a disk of the first node, and two pools on two disks of each of two nodes.
func tieredManifest() string {
	var bulk []string
	for _, node := range workers[:2] {
		for _, name := range []string{"hdd0", "hdd1"} {
			bulk = append(bulk, fmt.Sprintf("{node: %s, id: %s}", node, deviceID(node, name)))
		}
	}
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: tiered, namespace: %[1]s}
spec:
  type: MooseFS
  version: 4.57.5
  moosefs: {basePort: %[2]d}
  metadata:
    nodeSelector: {kubernetes.io/hostname: %[3]s}
    targets:
      devices: [{node: %[3]s, id: %[4]s}]
      format: {fsType: ext4, mkfsOptions: ["-i", "2048", "-I", "512"], mountOptions: [noatime, nodiratime]}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/disks: ""}
    copies: 2
    cpuPinning: {mode: CPUSet, cpuSets: ["0"], memoryPolicy: Bind}
    targets:
      select: {mediaType: SSD, minSize: 900Mi, idGlobs: ["ata-E2E_DISK_*"], countPerNode: 2}
      format: {fsType: xfs, mkfsOptions: ["-i", "size=512"], mountOptions: [noatime, inode64]}
      queue: {readAheadKB: 4096, scheduler: none}
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/disks: ""}
    copies: 2
    cpuPinning: {mode: CPUSet, cpuSets: ["1"]}
    targets:
      devices: [%[5]s]
      format: {fsType: xfs, mountOptions: [noatime]}
  clients:
    nodeSelector: {e2e.parallelfs.dev/client: ""}
    mountPath: %[6]s
  config:
    metadata: {CHUNKS_LOOP_MIN_TIME: "60"} # a disk is empty when a whole loop has said so
    storage: {HDD_LEAVE_SPACE_DEFAULT: 64MiB}
  provisioning: {format: Approved}
`, namespace, awayFromHome, workers[0], deviceID(workers[0], "meta"), strings.Join(bulk, ", "), tieredMount)
}

func targets() []v1alpha1.StorageTarget {
	GinkgoHelper()
	var list v1alpha1.StorageTargetList
	Expect(api.List(context.Background(), &list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// targetOn is the target on a disk.
func targetOn(node, name string) *v1alpha1.StorageTarget {
	GinkgoHelper()
	for _, t := range targets() {
		if t.Spec.Node == node && t.Spec.Device.Serial == disk(node, name) {
			return &t
		}
	}
	return nil
}

// said is the reason and the message of a condition of the target on a disk.
func said(node, name, condition string) func() string {
	return func() string {
		GinkgoHelper()
		t := targetOn(node, name)
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

func isTrue(node, name, condition string) func() bool {
	return func() bool {
		GinkgoHelper()
		t := targetOn(node, name)
		return t != nil && meta.IsStatusConditionTrue(t.Status.Conditions, condition)
	}
}

// provenTargets counts the targets that are mounted and proven.
func provenTargets() int {
	GinkgoHelper()
	n := 0
	for _, t := range targets() {
		if meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady) {
			n++
		}
	}
	return n
}

func whyTieredIsNotReady() string {
	GinkgoHelper()
	return whyNotReadyOf("tiered")
}

func tieredIsReady() bool {
	GinkgoHelper()
	fs := fileSystemNamed("tiered")
	return fs.Status.ObservedGeneration == fs.Generation && meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionReady)
}

func approve(t *v1alpha1.StorageTarget, hash string) {
	GinkgoHelper()
	kubectl("-n", namespace, "patch", "storagetarget", t.Name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"approvedPlan":%q}}`, hash))
}

func setTiered(patch string) {
	GinkgoHelper()
	kubectl("-n", namespace, "patch", "filesystem", "tiered", "--type=merge", "-p", patch)
}

// inTiered runs a script in the pod that mounts the filesystem on the first node.
func inTiered(script string) string {
	GinkgoHelper()
	pod := kubectl("-n", namespace, "get", "pods", "-l", "parallelfs.dev/filesystem=tiered,parallelfs.dev/component=client",
		"--field-selector", "spec.nodeName="+workers[0], "-o", "jsonpath={.items[0].metadata.name}")
	return strings.TrimSpace(kubectl("-n", namespace, "exec", pod, "-c", "client", "--", "sh", "-c", script))
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

// plugIn gives the nodes their disks. One of those that the FileSystem asks for holds somebody's data.
func plugIn() {
	GinkgoHelper()
	disks("attach", workers[0], disk(workers[0], "meta"), "512M", "SSD")
	for _, node := range workers[:2] {
		for _, name := range []string{"ssd0", "ssd1"} {
			disks("attach", node, disk(node, name), "1G", "SSD")
		}
		for _, name := range []string{"hdd0", "hdd1"} {
			disks("attach", node, disk(node, name), "1G", "HDD")
		}
	}
	device := onNode(workers[1], "readlink -f /dev/disk/by-id/"+deviceID(workers[1], "hdd0"))
	onNode(workers[1], fmt.Sprintf("mkfs.ext4 -q -L precious %[1]s && mkdir -p /tmp/precious && mount %[1]s /tmp/precious && "+
		"printf '%[2]s' > /tmp/precious/thesis.tex && umount /tmp/precious", device, thesis))
}

func disksAreTargets() {
	var started time.Time

	It("lists the disks of each node by their stable names, and no other node's", func() {
		apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: privileged}}}", namespace))
		plugIn()
		kubectl("label", "--overwrite", "nodes", workers[0], workers[1], workers[2], v1alpha1.LabelAgent+"=")
		kubectl("label", "--overwrite", "nodes", workers[0], workers[1], "e2e.parallelfs.dev/disks=", "e2e.parallelfs.dev/client=")
		kubectl("-n", systemNamespace, "rollout", "status", "daemonset/"+release+"-agent", "--timeout=180s")
		serials := func(node string) []string {
			var found []string
			inventory := &v1alpha1.NodeInventory{}
			if err := api.Get(context.Background(), client.ObjectKey{Name: node}, inventory); err != nil {
				return nil
			}
			for _, d := range inventory.Status.BlockDevices {
				if strings.HasPrefix(d.Serial, "E2E-") {
					found = append(found, strings.TrimPrefix(d.Serial, disk(node, "")))
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
		before := content(workers[1], "hdd0")
		apply(tieredManifest())
		Eventually(targets, soon).Should(HaveLen(9))
		for _, t := range targets() {
			Eventually(said(t.Spec.Node, strings.TrimPrefix(t.Spec.Device.Serial, disk(t.Spec.Node, "")), v1alpha1.ConditionReady)).
				Should(HavePrefix(v1alpha1.ReasonAwaitingApproval), t.Name)
		}
		theirs, blank := targetOn(workers[1], "hdd0"), targetOn(workers[1], "hdd1")
		Expect(theirs.Status.Plan.Destroys).To(ContainElement(And(ContainSubstring("ext4"), ContainSubstring("precious"))))
		Expect(blank.Status.Plan.Destroys).To(BeEmpty())
		approve(theirs, blank.Status.Plan.Hash)
		Eventually(said(workers[1], "hdd0", v1alpha1.ConditionReady)).Should(And(
			HavePrefix(v1alpha1.ReasonApprovalRefused), ContainSubstring(theirs.Status.Plan.Hash), ContainSubstring(blank.Status.Plan.Hash)))
		report("a wrong approval", said(workers[1], "hdd0", v1alpha1.ConditionReady)())
		Expect(content(workers[1], "hdd0")).To(Equal(before))
		Expect(provenTargets()).To(BeZero())
		Eventually(whyTieredIsNotReady).Should(ContainSubstring(v1alpha1.ReasonAwaitingApproval))
		Expect(kubectl("-n", namespace, "get", "pods", "-l", "parallelfs.dev/filesystem=tiered,parallelfs.dev/component=master",
			"-o", "jsonpath={.items[*].status.containerStatuses[?(@.name==\"probe\")].ready}")).NotTo(ContainSubstring("true"))
	})

	It("formats what is approved, mounts it as the manifest says, and becomes Ready", func() {
		started = time.Now()
		for _, t := range targets() {
			approve(&t, t.Status.Plan.Hash)
		}
		Eventually(provenTargets, long).Should(Equal(9), func() string {
			return kubectl("-n", namespace, "get", "storagetargets", "-o", "wide")
		})
		provisioned := time.Since(started)
		Eventually(tieredIsReady, long).Should(BeTrue(), whyTieredIsNotReady)
		report("from approval to Ready", time.Since(started).Round(time.Second).String())
		compareWithByHand(provisioned)
		fs := fileSystemNamed("tiered")
		Expect(fs.Status.Summary.Targets).To(Equal("8/8"))
		Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionEvaluationOnly)).To(BeNil(), "disks are proven, directories are not")
		ssd := targetOn(workers[0], "ssd0")
		Expect(onNode(workers[0], "grep ' "+ssd.Status.MountPath+" ' /proc/self/mountinfo")).To(And(ContainSubstring("noatime"), ContainSubstring("inode64"), ContainSubstring(" xfs ")))
		Expect(onNode(workers[0], "cat /sys/block/"+ssd.Status.KernelName+"/queue/read_ahead_kb")).To(Equal("4096"))
		Expect(ssd.Status.Queue.ReadAheadKB).To(Equal(int32(4096)))
		report("kubectl get storagetargets -o wide", kubectl("-n", namespace, "get", "storagetargets", "-o", "wide"))
		report("a StorageTarget", kubectl("-n", namespace, "get", "storagetarget", ssd.Name, "-o", "yaml"))
	})

	It("shows where its daemons run, as the kernel says", func() {
		placed := func() map[string]string {
			out := map[string]string{}
			for _, i := range fileSystemNamed("tiered").Status.Instances {
				if i.Placement != nil && i.StoragePool != "" {
					out[i.StoragePool+" on "+i.Node] = strings.TrimSpace(i.Placement.CPUs + " " + i.Placement.Drift)
				}
			}
			return out
		}
		Eventually(placed, 2*soon).Should(Equal(map[string]string{
			"ssd on " + workers[0]: "0", "ssd on " + workers[1]: "0", "bulk on " + workers[0]: "1", "bulk on " + workers[1]: "1",
		}))
		for _, node := range workers[:2] {
			threads := onNode(node, `for p in $(pgrep -x mfschunkserver); do grep -h Cpus_allowed_list /proc/$p/task/*/status | sort | uniq -c; done`)
			report("threads of the chunkservers on "+node, threads)
		}
		Eventually(func() bool {
			return meta.IsStatusConditionTrue(fileSystemNamed("tiered").Status.Conditions, v1alpha1.ConditionPinned)
		}).Should(BeTrue())
		onNode(workers[0], `for p in $(pgrep -x mfschunkserver); do taskset -acp 0,1 $p; done`)
		Eventually(func() string {
			c := meta.FindStatusCondition(fileSystemNamed("tiered").Status.Conditions, v1alpha1.ConditionPinned)
			return c.Reason + ": " + c.Message
		}, 2*soon).Should(And(HavePrefix(v1alpha1.ReasonDrifted), ContainSubstring(workers[0])))
		report("drift", meta.FindStatusCondition(fileSystemNamed("tiered").Status.Conditions, v1alpha1.ConditionPinned).Message)
	})

	It("costs little while nothing happens", func() {
		versions := func() string {
			return kubectl("get", "nodeinventories,storagetargets", "-A", "-o", "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{\"\\n\"}{end}")
		}
		ticks := func(node string) float64 {
			out := onNode(node, `cat /proc/$(pgrep -fo '^/node agent')/stat`)
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
	})

	It("goes on without a disk that is missing, never formats what stands in its place, and takes the disk back", func() {
		inTiered("mkdir -p " + tieredMount + "/bulk/kept && head -c 20M /dev/urandom > " + tieredMount + "/bulk/kept/data && sha256sum " + tieredMount + "/bulk/kept/data > /tmp/sum")
		lost := targetOn(workers[1], "hdd1")
		kubectl("-n", namespace, "delete", "pod", "--wait=true", strings.TrimSpace(kubectl("-n", namespace, "get", "pods", "-l",
			"parallelfs.dev/filesystem=tiered,parallelfs.dev/storage-pool=bulk", "--field-selector", "spec.nodeName="+workers[1], "-o", "jsonpath={.items[0].metadata.name}")))
		pullOut(lost, "hdd1")
		Eventually(said(workers[1], "hdd1", v1alpha1.ConditionReady), 2*soon).Should(HavePrefix(v1alpha1.ReasonTargetMissing))
		Eventually(whyTieredIsNotReady, 2*soon).Should(ContainSubstring(lost.Name))
		report("a missing disk", whyTieredIsNotReady())
		Expect(inTiered("sha256sum -c /tmp/sum")).To(ContainSubstring("OK"), "the other copy is there")
		disks("attach", workers[1], disk(workers[1], "hdd1"), "1G", "HDD")
		Eventually(isTrue(workers[1], "hdd1", v1alpha1.ConditionReady), 2*soon).Should(BeTrue())
		Eventually(tieredIsReady, long).Should(BeTrue(), whyTieredIsNotReady)
		Expect(targetOn(workers[1], "hdd1").Status.Provisioned).To(Equal(lost.Status.Provisioned))
	})

	It("empties a disk that is marked, says when it may be taken out, and takes another in its place", func() {
		old := targetOn(workers[0], "hdd1")
		kubectl("-n", namespace, "patch", "storagetarget", old.Name, "--type=merge", "-p", `{"spec":{"remove":true}}`)
		disks("attach", workers[0], disk(workers[0], "hdd2"), "1G", "HDD")
		setTiered(fmt.Sprintf(`{"spec":{"provisioning":{"format":"IfBlank"},"storagePools":%s}}`, poolsWith(deviceID(workers[0], "hdd2"), "")))
		Eventually(isTrue(workers[0], "hdd2", v1alpha1.ConditionReady), 2*soon).Should(BeTrue())
		Eventually(isTrue(workers[0], "hdd1", v1alpha1.ConditionSafeToRemove), 2*long).Should(BeTrue(), said(workers[0], "hdd1", v1alpha1.ConditionSafeToRemove))
		setTiered(fmt.Sprintf(`{"spec":{"storagePools":%s}}`, poolsWith(deviceID(workers[0], "hdd2"), deviceID(workers[0], "hdd1"))))
		Eventually(func() any { return targetOn(workers[0], "hdd1") }, 2*soon).Should(BeNil())
		Expect(onNode(workers[0], "grep -c "+old.Name+" /proc/self/mountinfo || true")).To(Equal("0"))
		disks("detach", workers[0], disk(workers[0], "hdd1"))
		Eventually(tieredIsReady, long).Should(BeTrue(), whyTieredIsNotReady)
		Expect(fileSystemNamed("tiered").Status.Summary.Targets).To(Equal("8/8"))
		Expect(inTiered("sha256sum -c /tmp/sum")).To(ContainSubstring("OK"))
	})

	It("keeps every disk when it is deleted, and finds them again when the kernel has given them other names", func() {
		names := func() map[string]string {
			out := map[string]string{}
			for _, t := range targets() {
				out[t.Spec.Device.Serial] = t.Status.KernelName + " " + t.Status.Provisioned.UUID
			}
			return out
		}
		uuid := targetOn(workers[0], "ssd0").Status.Provisioned.UUID
		report("kernel names before", fmt.Sprint(names()))
		manifest := kubectl("-n", namespace, "get", "filesystem", "tiered", "-o", "jsonpath={.spec}")
		kubectl("-n", namespace, "delete", "filesystem", "tiered", "--timeout=300s")
		Expect(targets()).To(BeEmpty())
		for _, node := range workers[:2] {
			Expect(onNode(node, "grep -c "+"/var/lib/parallelfs/targets/ /proc/self/mountinfo || true")).To(Equal("0"))
		}
		for _, name := range []string{"ssd0", "ssd1"} {
			disks("detach", workers[0], disk(workers[0], name))
		}
		for _, name := range []string{"ssd1", "ssd0"} {
			disks("attach", workers[0], disk(workers[0], name), "1G", "SSD")
		}
		apply(fmt.Sprintf(`{"apiVersion":"parallelfs.dev/v1alpha1","kind":"FileSystem","metadata":{"name":"tiered","namespace":%q},"spec":%s}`, namespace, manifest))
		Eventually(func() string {
			_, err := try("", "kubectl", "-n", namespace, "get", "filesystem", "tiered")
			Expect(err).NotTo(HaveOccurred())
			if tieredIsReady() {
				return ""
			}
			return whyTieredIsNotReady() + "not ready"
		}, long).Should(BeEmpty())
		report("kernel names after", fmt.Sprint(names()))
		Expect(targetOn(workers[0], "ssd0").Status.Provisioned.UUID).To(Equal(uuid))
		Expect(inTiered("ls " + tieredMount + "/bulk/kept")).To(Equal("data"))
	})

	It("destroys nothing without a confirmation, then wipes what carries its marker and nothing else", func() {
		setTiered(`{"spec":{"deletionPolicy":"Destroy","confirmDestroy":"yes"}}`)
		uid := string(fileSystemNamed("tiered").UID)
		kubectl("-n", namespace, "delete", "filesystem", "tiered", "--wait=false")
		Eventually(whyTieredIsNotReady, long).Should(And(HavePrefix(v1alpha1.ReasonDestroyUnconfirmed), ContainSubstring(uid)))
		report("an unconfirmed destruction", whyTieredIsNotReady())
		Expect(targets()).To(HaveLen(9))

		stranger := content(workers[0], "hdd1")
		setTiered(fmt.Sprintf(`{"spec":{"confirmDestroy":%q}}`, uid))
		Eventually(func() error {
			_, err := try("", "kubectl", "-n", namespace, "get", "filesystem", "tiered")
			return err
		}, long).Should(MatchError(ContainSubstring("NotFound")))
		for _, node := range workers[:2] {
			for _, name := range []string{"ssd0", "ssd1", "hdd0"} {
				device := onNode(node, "readlink -f /dev/disk/by-id/"+deviceID(node, name))
				out, err := agentOn(node, "blkid -p "+device+"; echo ended with $?")
				Expect(err).NotTo(HaveOccurred())
				Expect(out).To(Equal("ended with 2\n"), "%s of %s is blank", name, node)
			}
		}
		Expect(content(workers[0], "hdd1")).To(Equal(stranger), "a disk that was taken out before is none of its targets")
	})
}

// poolsWith is spec.storagePools of tiered with a device more in pool bulk, and one less.
func poolsWith(more, less string) string {
	GinkgoHelper()
	pools := kubectl("-n", namespace, "get", "filesystem", "tiered", "-o", "jsonpath={.spec.storagePools}")
	if less == "" {
		return strings.Replace(pools, `"devices":[`, fmt.Sprintf(`"devices":[{"node":%q,"id":%q},`, workers[0], more), 1)
	}
	for _, entry := range []string{fmt.Sprintf(`{"id":%q,"node":%q},`, less, workers[0]), fmt.Sprintf(`{"node":%q,"id":%q},`, workers[0], less)} {
		pools = strings.Replace(pools, entry, "", 1)
	}
	Expect(pools).NotTo(ContainSubstring(less))
	return pools
}

// pullOut takes a disk out of the second node as if somebody had pulled it: what is mounted from it goes with it.
func pullOut(t *v1alpha1.StorageTarget, name string) {
	GinkgoHelper()
	onNode(t.Spec.Node, "umount -l "+t.Status.MountPath)
	disks("detach", t.Spec.Node, disk(t.Spec.Node, name))
}

// compareWithByHand reports how long the same mkfs and mount commands take by hand, in parallel, on as many disks of the
// same size on the same nodes.
func compareWithByHand(provisioned time.Duration) {
	GinkgoHelper()
	for _, node := range workers[:2] {
		for _, name := range []string{"hand0", "hand1", "hand2", "hand3"} {
			disks("attach", node, disk(node, name), "1G", "SSD")
		}
	}
	begun := time.Now()
	done := make(chan error, 2)
	for _, node := range workers[:2] {
		go func() {
			_, err := agentOn(node, fmt.Sprintf("cd /dev/disk/by-id; for n in 0 1 2 3; do (mkfs.xfs -q ata-E2E_DISK_%[1]s$n && mkdir -p /tmp/hand$n && "+
				"mount ata-E2E_DISK_%[1]s$n /tmp/hand$n && sync -f /tmp/hand$n) & done; wait; grep -c /tmp/hand /proc/self/mountinfo | grep -x 4", disk(node, "hand")))
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
			disks("detach", node, disk(node, name))
		}
	}
}
