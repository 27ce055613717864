//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// disruption is done to a filesystem while programs use it.
type disruption struct {
	name string
	// master is true if the master restarts. A master that has just started reports all chunks as missing whose chunkservers have not
	// connected yet.
	master bool
	// unreachable is true if the last worker can't be reached meanwhile, so that programs run on the others.
	unreachable bool
	// operator causes it with the operator's help, and byHand as a person does without it, in the vendor's order. byHand is nil for unplanned
	// disruptions, from which the kubelet and the filesystem recover themselves.
	operator, byHand func(s *story, turn int)
}

// MooseFS's documents describe the order for an update, which applies to every restart: the master first, then one chunkserver after the
// other, each after the former is connected again and no chunk is endangered (MooseFS 4 Documentation, "Upgrading MooseFS").
var disruptions = []disruption{
	optionChanges("chunkserver", func(turn int) string { return fmt.Sprintf(`{"config":{"storage":{"WORKERS_MAX":"%d"}}}`, 50+turn) }),
	optionChanges("master", func(turn int) string {
		return fmt.Sprintf(`{"config":{"metadata":{"SESSION_SUSTAIN_TIME":"%d"}}}`, 80000+turn)
	}),
	{name: "a node is drained, its chunkserver is stopped, and it is back", operator: (*story).drainsAndReturns, byHand: (*story).maintainsByHand},
	{name: "the process of a chunkserver is killed", operator: func(s *story, _ int) { s.dies(workers[2], "mfschunkserver") }},
	{name: "the process of the master is killed", master: true, operator: func(s *story, _ int) { s.dies(workers[0], "mfsmaster( -a)? -f") }},
	{name: "the pod of a chunkserver is deleted", operator: func(s *story, _ int) { s.losesPod("chunkserver", workers[2]) }},
	{name: "the pod of the master is deleted", master: true, operator: func(s *story, _ int) { s.losesPod("master", workers[0]) }},
	{name: "a node is without its chunkserver for half a minute", operator: func(s *story, _ int) {
		stop := s.keepKilling(workers[2], "mfschunkserver")
		<-time.After(30 * time.Second)
		stop()
		s.isWhole()
	}},
	{name: "a node is cut off the network until all have noticed", unreachable: true, operator: (*story).isCutOff},
	{name: "the operator's managers are killed", operator: func(s *story, _ int) {
		before := s.daemonPods()
		kubectl("-n", systemNamespace, "delete", "pods", "-l", "app.kubernetes.io/component=manager", "--grace-period=0", "--force")
		Eventually(managers, long).Should(HaveLen(2))
		Consistently(s.daemonPods, "15s").Should(Equal(before))
	}},
	{name: "a node reboots, and asked nobody", unreachable: true, operator: (*story).reboots},
}

// optionChanges is the restart of a component for an option. By hand, the operator only distributes the configuration.
func optionChanges(component string, option func(turn int) string) disruption {
	ask := func(s *story, turn int, paused bool) {
		s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"updates":{"paused":%t},"moosefs":%s}}`, paused, option(turn)))
	}
	return disruption{
		name: "an option of the " + component + " changes", master: component == "master",
		operator: func(s *story, turn int) {
			before := s.serving([]string{component})
			ask(s, turn, false)
			Eventually(func() bool { return s.ready() && disjoint(before, s.serving([]string{component})) }, 2*long).Should(BeTrue(), s.whyNotReady)
		},
		byHand: func(s *story, turn int) {
			ask(s, turn, true)
			Eventually(func() bool { return s.outdated(component) }).Should(BeTrue())
			for _, pod := range s.serving([]string{component}) {
				s.kubectl("delete", "pod", pod)
				Eventually(func() bool { return !slices.Contains(s.serving([]string{component}), pod) && s.everythingServes() }, long).Should(BeTrue())
			}
			s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"updates":{"paused":false}}}`)
		},
	}
}

const upgradeRow = "an upgrade from " + oldest + " to " + newest

// lifeIsCompared measures how each disruption affects programs, when the operator causes it and by hand: `make life`.
func (s *story) lifeIsCompared() {
	turns := 0
	It("has a filesystem of the older version that programs use", func() {
		var err error
		turns, err = strconv.Atoi(os.Getenv("LIFE"))
		Expect(err).NotTo(HaveOccurred(), "LIFE is how often each disruption is made by each")
		s.isReadyForLife(workers, oldest, twoCopies)
	})
	It("is upgraded while programs use it", func() {
		out := s.use("ssd", func() {
			s.asksFor(newest, newest)
			Eventually(func() bool {
				status := s.fileSystem().Status
				return status.Upgrade == nil && status.Version == newest && s.ready()
			}, 2*long).Should(BeTrue(), s.whyNotReady)
		})
		lifeRows = append(lifeRows, lifeRow{upgradeRow, "operator", 1, out})
		report("an upgrade", out.String())
		nothingWasLost(out, true)
		noLongerThanByHand(upgradeRow)
		for _, pod := range s.serving([]string{"client"}) {
			s.kubectl("delete", "pod", pod)
		}
		Eventually(func() string { return s.saysOf(v1alpha1.ConditionUpgrading) }, long).Should(BeEmpty())
		s.isWhole()
	})
	for _, d := range disruptions {
		It("serves while "+d.name, func() {
			who := []struct {
				name string
				do   func(*story, int)
			}{{"operator", d.operator}, {byHandRow, d.byHand}}
			if d.byHand == nil {
				who = who[:1]
			}
			worst := make([]felt, len(who))
			var all []string
			for turn := range len(who) * turns {
				i := (turn + turn/2) % len(who) // each is first in half of the turns
				second := workers[2]
				if d.unreachable {
					second = workers[0]
				}
				out := s.useOn("ssd", workers[1], second, func() { who[i].do(s, turn) })
				all = append(all, fmt.Sprintf("%-8s  %s", who[i].name, out))
				worst[i].atWorst(out)
				if i == 0 {
					nothingWasLost(out, d.master)
				}
			}
			for i := range who {
				lifeRows = append(lifeRows, lifeRow{d.name, who[i].name, turns, worst[i]})
			}
			report(d.name, strings.Join(all, "\n"))
			noLongerThanByHand(d.name)
		})
	}
	It("is undamaged after all disruptions, according to MooseFS itself", func() {
		found := s.isLookedAt("after-all")
		report("what the look says", string(found.Result)+": "+found.Message)
		Expect(found.Result).NotTo(Equal(v1alpha1.CheckDamaged), found.Message)
		Expect(s.hasItsCopies()).To(BeTrue())
	})
}

// isReadyForLife creates a filesystem with data on some nodes. MooseFS looks at each chunk once in five minutes, and only then copies a
// chunk that was being written when its server left. Here it does so once a minute, or the tests would mostly wait, whatever the cause of
// the disruption.
func (s *story) isReadyForLife(storage []string, version, pool string) {
	GinkgoHelper()
	s.isReadyOn(storage, version, pool)
	s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"moosefs":{"config":{"metadata":{"CHUNKS_LOOP_MIN_TIME":"60"}}}}}`)
	before := s.serving([]string{"master"})
	Eventually(func() bool { return s.ready() && disjoint(before, s.serving([]string{"master"})) }, long).Should(BeTrue(), s.whyNotReady)
}

// upgradeByHandIsMeasured does by hand what the operator does in an upgrade, while no manager runs: it replaces the images of the pods, and
// deletes the pods in the vendor's order.
func (s *story) upgradeByHandIsMeasured() {
	It("is upgraded by hand while programs use it", func() {
		s.isReadyForLife(workers, oldest, twoCopies)
		withoutManagers(func() {
			out := s.use("ssd", func() {
				for _, component := range []string{"master", "metalogger", "chunkserver"} {
					sets := s.kubectl("get", "daemonsets", "-l", v1alpha1.LabelComponent+"="+component, "-o", "json")
					run(strings.ReplaceAll(sets, "moosefs:"+oldest, "moosefs:"+newest), "kubectl", "replace", "-f", "-")
					for _, pod := range s.serving([]string{component}) {
						s.kubectl("delete", "pod", pod)
						Eventually(func() bool { return !slices.Contains(s.serving([]string{component}), pod) && s.everythingServes() }, long).Should(BeTrue())
					}
				}
			})
			lifeRows = append(lifeRows, lifeRow{upgradeRow, byHandRow, 1, out})
			report("the same upgrade by hand", out.String())
			noLongerThanByHand(upgradeRow)
			s.deleteFileSystem("scratch", "--wait=false") // the operator would restore what its spec still asks for
		})
	})
}

// withoutManagers does something while the operator does not run. It restores the operator before the end of the spec, which Ginkgo runs
// before its own deferred functions.
func withoutManagers(do func()) {
	GinkgoHelper()
	scale := func(replicas int) {
		kubectl("-n", systemNamespace, "scale", "deployment", "-l", "app.kubernetes.io/component=manager", fmt.Sprintf("--replicas=%d", replicas))
	}
	scale(0)
	defer scale(2)
	Eventually(managers).Should(BeEmpty())
	do()
}

// network runs test/cluster/network.sh, which disconnects or reconnects a node.
func network(verb, node string) {
	GinkgoHelper()
	out, err := exec.Command(filepath.Join(root, "test", "cluster", "network.sh"), verb, node).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "network.sh %s %s: %s", verb, node, out)
}

// isCutOff disconnects a node until Kubernetes, MooseFS and the operator have noticed, and a pod there is Terminating. Then it reconnects
// the node.
func (s *story) isCutOff(int) {
	GinkgoHelper()
	lost := workers[2]
	defer network("join", lost)
	gone := s.podOn("chunkserver", lost)
	network("cut", lost)
	Eventually(func() string { return s.saysOf(v1alpha1.ConditionDegraded) }, long).Should(ContainSubstring("1 node is away: " + lost + " (not Ready)"))
	s.kubectl("delete", "pod", gone, "--wait=false")
	Consistently(s.ready, "20s").Should(BeFalse())
	network("join", lost)
	Eventually(func() bool { return !slices.Contains(s.serving([]string{"chunkserver"}), gone) && s.everythingServes() }, long).Should(BeTrue())
	s.isWhole()
}

// power runs test/cluster/power.sh, which switches a node off or on.
func power(verb, node string) {
	GinkgoHelper()
	out, err := exec.Command(filepath.Join(root, "test", "cluster", "power.sh"), verb, node).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "power.sh %s %s: %s", verb, node, out)
}

// reboots switches a node off until Kubernetes and the operator have noticed, which is longer than a machine needs to start.
func (s *story) reboots(int) {
	GinkgoHelper()
	down := workers[2]
	defer power("on", down)
	power("off", down)
	Eventually(func() string { return s.saysOf(v1alpha1.ConditionDegraded) }, long).Should(ContainSubstring("1 node is away: " + down))
	power("on", down)
	Eventually(func() string { return s.maintenance(down) }, long).Should(HavePrefix(v1alpha1.ReasonRebooted))
	s.isWhole()
	report("what a node says that has rebooted", s.maintenance(down))
}

const replacementRow = "a node never comes back, and another one takes its place"

// nodeIsReplaced permanently loses a node of a filesystem with two copies on two nodes. A person adds another node, and decommissions the
// lost one.
func (s *story) nodeIsReplaced() {
	It("continues on another node while programs use it", func() {
		s.isReadyForLife(workers[1:], newest, twoCopies)
		s.keepsNoTrash()
		lost := workers[2]
		defer network("join", lost)
		var said []string
		out := s.useOn("ssd", workers[0], workers[1], func() {
			network("cut", lost)
			Eventually(func() string { return s.saysOf(v1alpha1.ConditionDegraded) }, long).Should(ContainSubstring(v1alpha1.AnnotationGiveUp + "=" + lost))
			s.label(workers[0], "storage")
			s.kubectl("annotate", "filesystemnode", s.recordOf(lost), v1alpha1.AnnotationGiveUp+"="+lost)
			Eventually(func() string {
				now := s.nodeSays(lost, v1alpha1.ConditionGivenUp)
				if len(said) == 0 || said[len(said)-1] != now {
					said = append(said, now)
				}
				return now
			}, 2*long).Should(HavePrefix(v1alpha1.ReasonNodeGivenUp))
			Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		})
		lifeRows = append(lifeRows, lifeRow{replacementRow, "operator", 1, out})
		report(replacementRow, out.String()+"\n"+strings.Join(said, "\n"))
		nothingWasLost(out, false)
		noLongerThanByHand(replacementRow)
		Expect(s.fileSystem().Status.Summary.Servers).To(Equal("4/4"), "a master, a metalogger, and the chunkservers of two nodes")
		Expect(s.chunkserverOf(workers[0]).Connected).To(BeTrue())
		Eventually(func() listed { return s.chunkserverOf(lost) }).Should(BeZero(), "the master has forgotten the one that was given up")

		network("join", lost)
		Eventually(func() string { return s.nodeSays(lost, v1alpha1.ConditionGivenUp) }, long).Should(ContainSubstring("it is back, and none of its servers is started"))
		Eventually(func() string { return s.podOn("chunkserver", lost) }, long).Should(BeEmpty())
		Eventually(s.ready).Should(BeTrue(), s.whyNotReady)
	})
}

// keepsNoTrash deletes overwritten files at once. Otherwise a day's trash would be copied to the new node as well.
func (s *story) keepsNoTrash() {
	GinkgoHelper()
	s.inClient(workers[0], "mfssettrashretention", "0", s.mountPath+"/ssd")
}

// nodeIsReplacedByHand does the same without any manager: it starts a chunkserver on another node and, when all data has its copies again,
// removes the lost one from the master's list.
func (s *story) nodeIsReplacedByHand() {
	It("continues on another node while programs use it", func() {
		s.isReadyForLife(workers[1:], newest, twoCopies)
		s.keepsNoTrash()
		lost := workers[2]
		defer network("join", lost)
		was := s.chunkserverOf(lost)
		withoutManagers(func() {
			out := s.useOn("ssd", workers[0], workers[1], func() {
				network("cut", lost)
				Eventually(func() bool { return s.chunkserverOf(lost).Connected }).Should(BeFalse())
				s.apply(s.chunkserverByHand(was.Port))
				Eventually(func() bool { return s.chunkserverOf(workers[0]).Connected }).Should(BeTrue())
				Eventually(s.hasItsCopies, long).Should(BeTrue())
				s.administers(fmt.Sprintf("-CRC/%s/%d", was.IP, was.Port))
				Eventually(func() string { return s.chunkserverOf(lost).IP }).Should(BeEmpty())
			})
			lifeRows = append(lifeRows, lifeRow{replacementRow, byHandRow, 1, out})
			report(replacementRow+", by hand", out.String())
			noLongerThanByHand(replacementRow)
			s.kubectl("delete", "pod", "by-hand")
		})
	})
}

// chunkserverByHand returns a chunkserver of the first pool on the node of the master, as a person starts one from the packages.
func (s *story) chunkserverByHand(port int) string {
	GinkgoHelper()
	host, clients := s.management()
	master, err := strconv.Atoi(clients)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: by-hand, namespace: e2e-$STORY}
spec:
  nodeName: %s
  hostNetwork: true
  terminationGracePeriodSeconds: 10
  volumes: [{name: data, hostPath: {path: /var/lib/parallelfs-e2e/$STORY/by-hand, type: DirectoryOrCreate}}]
  containers:
  - name: chunkserver
    image: localhost/parallelfs/moosefs:%s
    imagePullPolicy: Never
    volumeMounts: [{name: data, mountPath: /data}]
    command:
    - sh
    - -ec
    - |
      mkdir -p /data/state /data/chunks
      chown mfs:mfs /data/state /data/chunks
      echo /data/chunks > /data/mfshdd.cfg
      cat > /data/mfschunkserver.cfg <<CONFIG
      WORKING_USER = mfs
      WORKING_GROUP = mfs
      NICE_LEVEL = 0
      DATA_PATH = /data/state
      HDD_CONF_FILENAME = /data/mfshdd.cfg
      HDD_LEAVE_SPACE_DEFAULT = 256MiB
      LABELS = A
      MASTER_HOST = %s
      MASTER_PORT = %d
      CSSERV_LISTEN_PORT = %d
      CONFIG
      exec mfschunkserver -f -c /data/mfschunkserver.cfg start
`, workers[0], newest, host, master-1, port)
}

const (
	deadDiskRow = "a disk dies, and its data is copied to others"
	// onDisks is a pool with two copies on two disks of each node, and the permission to format them.
	onDisks = `
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 2
    targets:
      select: {mediaType: SSD, idGlobs: ["ata-E2E_DISK_E2E-$STORY-*"], countPerNode: 2}
      format: {fsType: xfs}
  provisioning: {formatPolicy: IfBlank}`
)

// copyRots changes some bytes of chunks on disks of chunkservers. Here each chunkserver reads all its chunks, as 4.57.5 does by itself only
// without an interval (docs/checks.md), and faster than the default 1 MB/s (mfschunkserver.cfg(5), HDD_TEST_SPEED).
func (s *story) copyRots() {
	It("has disks that nothing reads", func() {
		for _, node := range workers {
			for _, name := range []string{"ssd0", "ssd1"} {
				disks("attach", node, s.disk(node, name), "1G", "SSD")
			}
		}
		s.isReadyForLife(workers, newest, onDisks)
		before := s.serving([]string{"chunkserver"})
		s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p",
			`{"spec":{"moosefs":{"config":{"storage":{"HDD_MIN_TEST_INTERVAL":"0","HDD_TEST_SPEED":"20"}}}}}`)
		Eventually(func() bool { return s.ready() && disjoint(before, s.serving([]string{"chunkserver"})) }, 2*long).Should(BeTrue(), s.whyNotReady)
	})
	It("is checked for damage, which finds rotted copies, and they are copied again from the others", func() {
		directory := s.mountPath + "/ssd/seldom-read"
		s.inClient(workers[0], "sh", "-c", "mkdir "+directory+" && cd "+directory+" && for i in $(seq 24); do head -c 2M /dev/urandom > $i; done && sync")
		sums := func() string { return s.inClient(workers[0], "sh", "-c", "cd "+directory+" && sha256sum *") }
		written := sums()
		Eventually(s.hasItsCopies, long).Should(BeTrue())
		before := s.isLookedAt("before")
		Expect(before.Result).NotTo(Equal(v1alpha1.CheckDamaged), before.Message)

		s.rot()
		word, damaged := 0, v1alpha1.CheckStatus{}
		Eventually(func() v1alpha1.CheckResult {
			word++
			damaged = s.isLookedAt(fmt.Sprintf("rotten-%d", word))
			return damaged.Result
		}, 2*long).Should(Equal(v1alpha1.CheckDamaged))
		report("what the look says", fmt.Sprintf("%s: %s\n%s: %+v\n%s", before.Result, before.Message, damaged.Result, damaged.Findings, damaged.Message))
		Expect(damaged.Findings).To(ContainElement(HaveField("What", ContainSubstring("errors of disks, of the chunkserver at"))))
		Eventually(s.hasItsCopies, long).Should(BeTrue())
		Expect(sums()).To(Equal(written))
	})
}

// rot changes a copy of a chunk on each node, of three different chunks. MooseFS moves copies between disks, and a copy that it has moved
// away shows nothing.
func (s *story) rot() {
	GinkgoHelper()
	rotten := map[string]bool{}
	for _, node := range workers {
		found, err := agentOn(node, "find "+s.targetOn(node, "ssd0").Status.MountPath+" -name 'chunk_*' -size +1M")
		Expect(err).NotTo(HaveOccurred())
		for file := range strings.FieldsSeq(found) {
			if chunk := filepath.Base(file); !rotten[chunk] {
				rotten[chunk] = true
				_, err := agentOn(node, "printf rotten | dd of="+file+" bs=1 seek=1000000 conv=notrunc && sync "+file)
				Expect(err).NotTo(HaveOccurred())
				break
			}
		}
	}
	Expect(len(rotten)).To(BeNumerically(">", 1), "disks have copies")
}

// isLookedAt requests a check for damage, and waits for its result. The check fails until MooseFS has scanned all files since its master
// started, which takes up to an hour, unless it has found damage.
func (s *story) isLookedAt(request string) (out v1alpha1.CheckStatus) {
	GinkgoHelper()
	s.kubectl("annotate", "--overwrite", "filesystem", "scratch", v1alpha1.AnnotationCheck+"="+request)
	Eventually(func() bool {
		now := s.fileSystem().Status.Check
		if now == nil || now.Request != request || now.Result == v1alpha1.CheckRunning {
			return false
		}
		out = *now
		return true
	}, long).Should(BeTrue())
	return out
}

// diskDies makes XFS shut down on a disk. From then on, every operation of a chunkserver there ends with an I/O error, as on a broken disk.
func (s *story) diskDies() {
	It("continues without it while programs use it", func() {
		for _, node := range workers {
			for _, name := range []string{"ssd0", "ssd1"} {
				disks("attach", node, s.disk(node, name), "1G", "SSD")
			}
		}
		s.isReadyForLife(workers, newest, onDisks)
		dead := s.targetOn(workers[2], "ssd0")
		said := ""
		out := s.useOn("ssd", workers[0], workers[1], func() {
			_, err := agentOn(workers[2], "xfs_io -x -c shutdown "+dead.Status.MountPath)
			Expect(err).NotTo(HaveOccurred())
			Eventually(s.whyNotReady, long).Should(ContainSubstring(dead.Name))
			said = s.whyNotReady()
			Eventually(s.hasItsCopies, long).Should(BeTrue())
		})
		lifeRows = append(lifeRows, lifeRow{deadDiskRow, "operator", 1, out})
		report(deadDiskRow, out.String()+"\n"+said+"\n"+s.said(workers[2], "ssd0", v1alpha1.ConditionReady)())
		nothingWasLost(out, false)
	})
}

// isWhole waits until the operator and MooseFS report that all is well.
func (s *story) isWhole() {
	GinkgoHelper()
	Eventually(func() bool { return s.ready() && s.everythingServes() }, long).Should(BeTrue(), s.whyNotReady)
}

// drainsAndReturns takes a node away as for a reboot: it drains the node through its guard, ends the pods there, and brings the node back.
func (s *story) drainsAndReturns(int) {
	GinkgoHelper()
	DeferCleanup(func() { kubectl("uncordon", workers[2]) })
	Eventually(func() string { return s.guardOn(workers[2]) }, long).ShouldNot(BeEmpty())
	said, err := s.drains(workers[2], 3*time.Minute)
	Expect(err).NotTo(HaveOccurred(), said)
	s.losesPod("chunkserver", workers[2])
	kubectl("uncordon", workers[2])
	Eventually(func() []v1alpha1.NodeMaintenance { return s.fileSystem().Status.Maintenance }, long).Should(BeEmpty())
	s.isWhole()
}

// maintainsByHand does the same as MooseFS's documents describe it: maintenance mode on, the chunkserver stopped and started, and
// maintenance mode off.
func (s *story) maintainsByHand(int) {
	GinkgoHelper()
	s.switchMaintenance(workers[2], true)
	Eventually(func() string { return s.chunkserverOf(workers[2]).Maintenance }).Should(Equal("on"))
	s.losesPod("chunkserver", workers[2])
	s.switchMaintenance(workers[2], false)
	s.isWhole()
}

// losesPod deletes the pod of a component on a node, and waits until its successor serves.
func (s *story) losesPod(component, node string) {
	GinkgoHelper()
	gone := s.podOn(component, node)
	s.kubectl("delete", "pod", gone)
	Eventually(func() bool { return !slices.Contains(s.serving([]string{component}), gone) && s.everythingServes() }, long).Should(BeTrue())
	Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
}

// dies kills a daemon on a node, and waits until its kubelet has restarted it and it serves.
func (s *story) dies(node, process string) {
	GinkgoHelper()
	processes := s.processes(node, process)
	killed := onNode(node, processes)
	Expect(killed).NotTo(BeEmpty())
	onNode(node, "kill -9 "+killed)
	Eventually(func() ([]string, error) {
		running, err := shell(node, processes)
		return strings.Fields(running), err
	}, long).ShouldNot(Or(BeEmpty(), ContainElements(strings.Fields(killed))))
	s.isWhole()
}

// serving returns the names of the pods of components, without those that are being stopped.
func (s *story) serving(components []string) (names []string) {
	for _, p := range s.componentPods(components...) {
		if p.DeletionTimestamp == nil {
			names = append(names, p.Name)
		}
	}
	return names
}

func (s *story) componentPods(components ...string) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	which, err := labels.NewRequirement(v1alpha1.LabelComponent, selection.In, components)
	Expect(err).NotTo(HaveOccurred())
	Expect(api.List(context.Background(), &list, client.InNamespace(s.namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*which)})).To(Succeed())
	return list.Items
}

// outdated reports whether a pod of a component was made from another template than the present one of its DaemonSet.
func (s *story) outdated(component string) bool {
	GinkgoHelper()
	var sets appsv1.DaemonSetList
	Expect(api.List(context.Background(), &sets, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelComponent: component})).To(Succeed())
	wanted := map[string]bool{}
	for i := range sets.Items {
		wanted[sets.Items[i].Spec.Template.Annotations[backend.TemplateHashAnnotation]] = true
	}
	return slices.ContainsFunc(s.componentPods(component), func(p corev1.Pod) bool { return !wanted[p.Annotations[backend.TemplateHashAnnotation]] })
}

// everythingServes reports whether a person would take the next step: all daemons are up, and MooseFS reports no endangered chunk. The
// operator's probe beside the master is not part of MooseFS.
func (s *story) everythingServes() bool {
	GinkgoHelper()
	for _, p := range s.componentPods("master", "metalogger", "chunkserver") {
		up := func(c corev1.ContainerStatus) bool { return c.Name == p.Labels[v1alpha1.LabelComponent] && c.Ready }
		if p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.ContainerStatuses, up) {
			return false
		}
	}
	return s.hasItsCopies()
}

// hasItsCopies reports whether MooseFS lists no endangered and no missing chunk.
func (s *story) hasItsCopies() bool {
	GinkgoHelper()
	f, answered := s.countsChunks()
	return answered && f.endangered+f.missing == 0
}

// missesChunks returns true unless MooseFS reports that no chunk is missing.
func (s *story) missesChunks() bool {
	GinkgoHelper()
	f, answered := s.countsChunks()
	return !answered || f.missing > 0
}

// countsChunks returns MooseFS's present counts of its chunks.
func (s *story) countsChunks() (f felt, answered bool) {
	GinkgoHelper()
	host, port := s.management()
	out, err := try("", "kubectl", "-n", s.namespace, "exec", s.podOn("master", workers[0]), "-c", "master", "--",
		"mfscli", "-n", "-j", "-H", host, "-P", port, "-SIC")
	f.count(out)
	return f, err == nil && f.samples == 1
}

func disjoint(a, b []string) bool {
	return !slices.ContainsFunc(a, func(one string) bool { return slices.Contains(b, one) })
}
