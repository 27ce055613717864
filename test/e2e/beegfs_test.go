//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

const (
	beeGFS7 = "7.4.6"
	beeGFS8 = "8.3.1"
	// beeControl is the program that queries the management service of BeeGFS 7, in the container of the probe.
	beeControl = "/opt/beegfs/sbin/beegfs-ctl --cfgFile=/etc/parallelfs/beegfs-client.conf"
	// instances is the number of metadata servers on each of two nodes.
	instances = 4
)

// realBeeGFS reports whether BEEGFS_IMAGES names real daemons, of version 7.4.6, which replace the doubles.
func realBeeGFS() bool { return os.Getenv("BEEGFS_IMAGES") != "" }

// hive returns a filesystem with four metadata servers on each of two nodes, each on a disk of its own and bound to a NUMA node, and two
// pools. bulk lists the disks of the second pool.
func (s *story) hive(bulk ...string) string {
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: hive, namespace: e2e-$STORY}
spec:
  type: BeeGFS
  version: %[1]s
  beegfs:
    targetChooser: RandomRobin
    basePort: $PORT
    management:
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      targets: {directories: [/var/lib/parallelfs-e2e/$STORY/management]}
    config:
      management: {sysTargetOfflineTimeoutSecs: "30"}
      metadata: {sysTargetOfflineTimeoutSecs: "30"}
      storage: {sysTargetOfflineTimeoutSecs: "30"}
  metadataServers:
    nodeSelector: {e2e.parallelfs.dev/$STORY-metadata: ""}
    instancesPerNode: %[3]d
    beegfs: {workerThreads: 5}
    cpuPinning: {mode: NUMANode, numaNodes: [0], memoryPolicy: Bind}
    targets:
      select: {mediaType: SSD, idGlobs: ["ata-E2E_DISK_E2E-$STORY-*"], maxSize: 320Mi, countPerNode: %[3]d}
      format: {fsType: ext4, mkfsOptions: ["-i", "2048", "-I", "512"], mountOptions: [noatime, nodiratime]}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets:
      select: {mediaType: SSD, idGlobs: ["ata-E2E_DISK_E2E-$STORY-*"], minSize: 350Mi, countPerNode: 1}
      format: {fsType: xfs, mountOptions: [noatime]}
    beegfs: {workerThreads: 3, striping: {chunkSize: 256Ki, targetsPerFile: 2}}
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets:
      devices: [%[4]s]
      format: {fsType: xfs, mountOptions: [noatime]}
    beegfs: {workerThreads: 3}
  provisioning: {formatPolicy: IfBlank}
`, beeGFS7, workers[0], instances, strings.Join(bulk, ", "))
}

// bulkDisk names a disk for hive.
func (s *story) bulkDisk(node, name string) string {
	return fmt.Sprintf("{node: %s, id: %s}", node, s.deviceID(node, name))
}

func (s *story) readyNamed(name string) bool {
	GinkgoHelper()
	fs := s.fileSystemNamed(name)
	return isWhole(fs)
}

func (s *story) whyHiveIsNotReady() string { return s.whyNotReadyOf("hive") }

// beePod returns the pod of a component of a filesystem on a node; more holds further labels.
func (s *story) beePod(fs, component, node, more string) string {
	GinkgoHelper()
	return strings.TrimSpace(s.kubectl("get", "pods", "-l",
		"parallelfs.dev/filesystem="+fs+",parallelfs.dev/component="+component+more, "--field-selector", "spec.nodeName="+node,
		"-o", "jsonpath={.items[*].metadata.name}"))
}

// askHive runs a mode of beegfs-ctl in the container of the probe.
func (s *story) askHive(mode string) string {
	GinkgoHelper()
	// The image of the doubles has no shell.
	return kubectl(slices.Concat([]string{"-n", s.namespace, "exec", s.beePod("hive", "management", workers[0], ""), "-c", "probe", "--"},
		strings.Fields(beeControl+" "+mode))...)
}

// written returns a file that the node binary has written for a daemon before it started, read on the node.
func written(inNamespace, pod, name string) string {
	GinkgoHelper()
	found := strings.Fields(kubectl("-n", inNamespace, "get", "pod", pod, "-o", "jsonpath={.metadata.uid} {.spec.nodeName}"))
	return onNode(found[1], "cat /var/lib/kubelet/pods/"+found[0]+"/volumes/kubernetes.io~empty-dir/run/"+name) + "\n"
}

func (s *story) beeGFSRuns() {
	It("assigns every daemon its own ids, ports and disks, and is Ready when the management service reports it", func() {
		s.begin()
		for _, node := range workers[:2] {
			for slot := range instances {
				disks("attach", node, s.disk(node, fmt.Sprintf("mds%d", slot)), "300M", "SSD")
			}
			disks("attach", node, s.disk(node, "fast"), "400M", "SSD")
			disks("attach", node, s.disk(node, "slow0"), "400M", "HDD")
		}
		disks("attach", workers[0], s.disk(workers[0], "slow1"), "400M", "HDD")
		for _, node := range workers[:2] {
			s.label(node, "metadata", "storage")
		}
		begun := time.Now()
		s.apply(s.hive(s.bulkDisk(workers[0], "slow0"), s.bulkDisk(workers[0], "slow1"), s.bulkDisk(workers[1], "slow0")))
		Eventually(s.readyNamed, long).WithArguments("hive").Should(BeTrue(), s.whyHiveIsNotReady)
		report("a BeeGFS of 8 metadata servers and 5 targets, from apply to Ready", time.Since(begun).Round(time.Second).String())

		status := s.fileSystemNamed("hive").Status
		Expect(status.Summary.Servers).To(Equal("13/13"), "a management service, eight metadata servers, and a storage server for each of two pools on two nodes")
		Expect(status.Summary.Targets).To(Equal("5/5"))
		Expect(status.Management.Version).To(Equal(beeGFS7))
		ids, places := map[int32]bool{}, map[string]bool{}
		Eventually(func() map[string]bool { // each node reports it when it is up
			addresses := map[string]bool{}
			for _, i := range s.servers("hive", v1alpha1.RoleMetadata) {
				ids[i.told.ID], addresses[i.seen.Address], places[i.told.Targets[0].Name] = true, true, true
			}
			return addresses
		}, soon).Should(And(HaveLen(2*instances), Not(HaveKey(""))))
		Expect(ids).To(HaveLen(2 * instances))
		Expect(places).To(HaveLen(2 * instances))
		report("kubectl get filesystems,storagetargets -o wide", s.kubectl("get", "filesystems,storagetargets", "-o", "wide"))
		report("kubectl get filesystemnodes", s.kubectl("get", "filesystemnodes", "-o", "wide"))
		report("status.members", s.kubectl("get", "filesystemnodes", "-o", "go-template={{range .items}}{{.spec.node}}:{{\"\\n\"}}{{range .status.members}}"+
			"{{.name}} at {{.address}}{{with .placement}} CPUs {{.cpus}} of {{.wantedCPUs}}, memory {{.memoryPolicy}}{{end}}{{\"\\n\"}}{{end}}{{end}}"))
		report("beegfs-ctl --listnodes --nodetype=meta", s.askHive("--listnodes --nodetype=meta --nicdetails"))
	})

	It("publishes neither an address of the pods' network nor the shared secret", func() {
		nics := s.askHive("--listnodes --nodetype=meta --nicdetails") + s.askHive("--listnodes --nodetype=storage --nicdetails")
		Expect(strings.Count(nics, "ip addr: ")).To(Equal(12), nics)
		for _, node := range workers[:2] {
			address := kubectl("get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
			Expect(strings.Count(nics, "ip addr: "+address+";")).To(Equal(6), nics)
		}
		secret := s.kubectl("get", "secret", "hive-beegfs", "-o", `go-template={{index .data "conn.auth" | base64decode}}`)
		Expect(len(secret)).To(BeNumerically(">=", 16))
		for _, what := range []string{"filesystems,storagetargets,configmaps,daemonsets,pods,jobs,events", "nodeinventories"} {
			Expect(strings.Contains(s.kubectl("get", what, "-o", "yaml"), secret)).To(BeFalse(), what)
		}
		logs := s.kubectl("logs", "-l", "parallelfs.dev/filesystem=hive", "--all-containers", "--tail=-1", "--max-log-requests=60")
		Expect(strings.Contains(logs, secret)).To(BeFalse(), "logs")
	})

	It("creates the pools, each with its directory and its striping", func() {
		pools := s.askHive("--liststoragepools")
		report("beegfs-ctl --liststoragepools", pools)
		for _, pool := range []string{"ssd", "bulk"} {
			var want []string
			for _, i := range s.servers("hive", v1alpha1.RoleStorage) {
				for _, t := range i.told.Targets {
					if i.told.StoragePool == pool {
						want = append(want, strconv.Itoa(int(t.ID)))
					}
				}
			}
			slices.Sort(want)
			Expect(pools).To(MatchRegexp(`(?m)^ *\d+ +%s +%s *$`, pool, strings.Join(want, ", *")))
		}
		Eventually(func() string { return s.askHive("--getentryinfo --unmounted /ssd") }, soon).
			Should(And(ContainSubstring("256K"), ContainSubstring("desired: 2"), MatchRegexp(`Storage Pool: +1`)))
		Expect(s.askHive("--getentryinfo --unmounted /bulk")).To(And(ContainSubstring("512K"), ContainSubstring("desired: 4"), MatchRegexp(`Storage Pool: +2`)))
	})

	It("binds each metadata server as requested, according to the kernel", func() {
		Eventually(func() []string {
			var placed []string
			for _, i := range s.servers("hive", v1alpha1.RoleMetadata) {
				if p := i.seen.Placement; p != nil && p.CPUs == p.WantedCPUs && p.Drift == "" && p.MemoryPolicy == "bind:0" {
					placed = append(placed, i.node+" "+i.told.Name)
				}
			}
			return placed
		}, 2*soon).Should(HaveLen(2 * instances))
		for _, node := range workers[:2] {
			report("the metadata servers on "+node, onNode(node, `for p in $(`+s.processes(node, "beegfs-meta")+`); do `+
				`tr '\0' '\n' < /proc/$p/environ | grep PARALLELFS_DAEMON; grep -h -e Cpus_allowed_list -e Mems_allowed_list /proc/$p/status; `+
				`grep -m1 -o ' bind:[0-9]*' /proc/$p/numa_maps; done`))
		}
		for slot := range instances {
			pod := s.beePod("hive", "meta", workers[0], ",parallelfs.dev/slot="+strconv.Itoa(slot))
			Expect(written(s.namespace, pod, "beegfs-meta.conf")).
				To(And(MatchRegexp(`(?m)^tuneNumWorkers *= *5$`), MatchRegexp(`(?m)^storeAllowFirstRunInit *= *false$`)))
		}
	})

	It("reports a storage server that no longer answers, and its return", func() {
		daemon := onNode(workers[1], s.processes(workers[1], "beegfs-storage")+" | head -1")
		onNode(workers[1], "kill -STOP "+daemon)
		Eventually(s.whyHiveIsNotReady, long).Should(HavePrefix(v1alpha1.ReasonTargetsMissing))
		report("a storage server that hangs", s.whyHiveIsNotReady())
		onNode(workers[1], "kill -CONT "+daemon)
		Eventually(s.readyNamed, long).WithArguments("hive").Should(BeTrue(), s.whyHiveIsNotReady)
	})

	It("grows from two to three storage nodes", func() {
		disks("attach", workers[2], s.disk(workers[2], "fast"), "400M", "SSD")
		disks("attach", workers[2], s.disk(workers[2], "slow0"), "400M", "HDD")
		before := s.given()
		s.label(workers[2], "storage")
		s.apply(s.hive(s.bulkDisk(workers[0], "slow0"), s.bulkDisk(workers[0], "slow1"), s.bulkDisk(workers[1], "slow0"), s.bulkDisk(workers[2], "slow0")))
		Eventually(func() string { return s.fileSystemNamed("hive").Status.Summary.Targets }, long).Should(Equal("7/7"), s.whyHiveIsNotReady)
		Eventually(s.readyNamed, long).WithArguments("hive").Should(BeTrue(), s.whyHiveIsNotReady)
		after := s.given()
		for _, a := range before {
			Expect(after).To(ContainElement(a), "numbers that were given stay")
		}
		Expect(after).To(HaveLen(len(before)+1), "one more node has some")
		report("three storage nodes", s.askHive("--listtargets --nodetype=storage --state")+s.askHive("--liststoragepools"))
	})

	It("refuses to remove a metadata server's disk", func() {
		s.kubectl("patch", "storagetarget", s.targetOn(workers[1], "mds2").Name, "--type=merge", "-p", `{"spec":{"remove":true}}`)
		Eventually(s.said(workers[1], "mds2", v1alpha1.ConditionSafeToRemove)).Should(And(HavePrefix(v1alpha1.ReasonNotRemovable), ContainSubstring("BeeGFS")))
		report("a metadata target that is to be removed", s.said(workers[1], "mds2", v1alpha1.ConditionSafeToRemove)())
		s.kubectl("patch", "storagetarget", s.targetOn(workers[1], "mds2").Name, "--type=merge", "-p", `{"spec":{"remove":false}}`)
		Eventually(s.said(workers[1], "mds2", v1alpha1.ConditionSafeToRemove)).Should(BeEmpty())
	})

	It("uses a storage target again whose drain is withdrawn half way, as after growth, to spread its data", func() {
		home := s.numberOf("hive", s.targetOn(workers[0], "slow1").Name)
		inPool := func(pool string) string { return fmt.Sprintf(`(?m)^ *\d+ +%s +(\d+, *)*%d(, *\d+)* *$`, pool, home) }
		chunk := s.spareChunk(workers[0], "slow1")
		asks := func(half string) {
			s.kubectl("patch", "storagetarget", s.targetOn(workers[0], "slow1").Name, "--type=merge", "-p", half)
		}
		asks(`{"spec":{"remove":true,"writersStopped":true}}`)
		Eventually(func() string { return s.askHive("--liststoragepools") }, long).Should(MatchRegexp(inPool("draining")))
		asks(`{"spec":{"remove":false,"writersStopped":false}}`)
		Eventually(func() string { return s.askHive("--liststoragepools") }, long).Should(MatchRegexp(inPool("bulk")))
		Eventually(func() string {
			return s.kubectl("get", "jobs", "-l", "parallelfs.dev/filesystem=hive,parallelfs.dev/component=drain", "-o", "name")
		}, long).Should(BeEmpty())
		Eventually(s.readyNamed, long).WithArguments("hive").Should(BeTrue(), s.whyHiveIsNotReady)
		Eventually(s.said(workers[0], "slow1", v1alpha1.ConditionSafeToRemove)).Should(BeEmpty())
		Expect(onNode(workers[0], "cat "+chunk)).To(Equal("a piece of somebody's file"), "what was not moved is where it was")
		onNode(workers[0], "rm "+chunk)
	})

	It("drains a storage target: it gets no new files, is proven empty, and is removed and forgotten", func() {
		drained := s.numberOf("hive", s.targetOn(workers[0], "slow1").Name)
		chunk := s.spareChunk(workers[0], "slow1")
		s.kubectl("patch", "storagetarget", s.targetOn(workers[0], "slow1").Name, "--type=merge", "-p",
			`{"spec":{"remove":true,"writersStopped":true}}`)
		Eventually(func() string { return s.askHive("--liststoragepools") }, long).Should(MatchRegexp(`(?m)^ *\d+ +draining +%d *$`, drained))
		Eventually(func() string {
			said, _ := try("", "kubectl", "-n", s.namespace, "logs", "-l", "parallelfs.dev/filesystem=hive,parallelfs.dev/component=drain", "--tail=-1")
			return said // there are none while the pod starts
		}, long).Should(ContainSubstring("1 file"))
		Eventually(s.said(workers[0], "slow1", v1alpha1.ConditionSafeToRemove)).Should(And(HavePrefix(v1alpha1.ReasonMovingData), ContainSubstring("spec.clients")))
		report("a target that is drained and holds a file", s.said(workers[0], "slow1", v1alpha1.ConditionSafeToRemove)())
		onNode(workers[0], "rm "+chunk)
		Eventually(s.isTrue(workers[0], "slow1", v1alpha1.ConditionSafeToRemove), long).Should(BeTrue(), s.said(workers[0], "slow1", v1alpha1.ConditionSafeToRemove))
		report("a target that is drained", s.said(workers[0], "slow1", v1alpha1.ConditionSafeToRemove)())
		name := s.targetOn(workers[0], "slow1").Name
		s.apply(s.hive(s.bulkDisk(workers[0], "slow0"), s.bulkDisk(workers[1], "slow0"), s.bulkDisk(workers[2], "slow0")))
		Eventually(func() any { return s.targetOn(workers[0], "slow1") }, long).Should(BeNil())
		Expect(onNode(workers[0], "grep -c "+name+" /proc/self/mountinfo || true")).To(Equal("0"))
		Eventually(func() string { return s.askHive("--listtargets --nodetype=storage") }, long).ShouldNot(MatchRegexp(`(?m)^ *%d +`, drained))
		Eventually(s.readyNamed, long).WithArguments("hive").Should(BeTrue(), s.whyHiveIsNotReady)
		Expect(s.fileSystemNamed("hive").Status.Summary.Targets).To(Equal("6/6"))
	})

	It("keeps the data on its disks when it is deleted, and finds it again", func() {
		is := func(t *v1alpha1.StorageTarget) string {
			if t.Spec.Role != v1alpha1.RoleStorage {
				return t.Status.Provisioned.UUID
			}
			return fmt.Sprint(t.Status.Provisioned.UUID, " has the number ", s.numberOf("hive", t.Name))
		}
		before := map[string]string{}
		for _, t := range s.targets() {
			before[t.Spec.Device.Serial] = is(&t)
		}
		s.deleteFileSystem("hive", patience.Flag(5*time.Minute))
		Expect(s.targets()).To(BeEmpty())
		Eventually(func() []string { return s.given() }, long).Should(BeEmpty(), "what was given goes with the FileSystem")
		s.apply(s.hive(s.bulkDisk(workers[0], "slow0"), s.bulkDisk(workers[1], "slow0"), s.bulkDisk(workers[2], "slow0")))
		Eventually(s.readyNamed, long).WithArguments("hive").Should(BeTrue(), s.whyHiveIsNotReady)
		for _, t := range s.targets() {
			Expect(is(&t)).To(Equal(before[t.Spec.Device.Serial]), t.Name)
		}
		Expect(s.askHive("--getentryinfo --unmounted /ssd")).To(ContainSubstring("256K"), "the directories are there")
		s.deleteFileSystem("hive", patience.Flag(5*time.Minute))
	})
}

// spareChunk writes a file where a storage target of hive keeps the pieces of files, and returns its path.
func (s *story) spareChunk(node, name string) string {
	GinkgoHelper()
	chunk := s.targetOn(node, name).Status.MountPath + "/storage/data/chunks/spare"
	onNode(node, "echo a piece of somebody\\'s file > "+chunk)
	return chunk
}

// comb returns a BeeGFS 8 in directories; beegfs is the end of its member beegfs, and pools that of the manifest.
func (s *story) comb(beegfs, pools string) string {
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: comb, namespace: e2e-$STORY}
spec:
  type: BeeGFS
  version: %[1]s
  beegfs:
    basePort: $PORT
    management:
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      targets: {directories: [/var/lib/parallelfs-e2e/$STORY/management]}
%[3]s
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[2]s}
    instancesPerNode: 2
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/meta0, /var/lib/parallelfs-e2e/$STORY/meta1]}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/ssd]}
%[4]s
`, beeGFS8, workers[0], beegfs, pools)
}

func (s *story) beeGFS8Runs() {
	slow := `
  - name: bulk
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/bulk]}
`

	It("runs without a license while it has one pool", func() {
		s.begin()
		for _, node := range workers[:2] {
			s.label(node, "storage")
		}
		s.apply(s.comb("", ""))
		Eventually(s.readyNamed, long).WithArguments("comb").Should(BeTrue(), func() string { return s.whyNotReadyOf("comb") })
		Expect(s.fileSystemNamed("comb").Status.Summary.Servers).To(Equal("5/5"))
	})

	It("reports the consequences of a second pool without a license, and creates it with one", func() {
		s.apply(s.comb("", slow))
		Eventually(func() string { return s.whyNotReadyOf("comb") }, long).Should(HavePrefix(v1alpha1.ReasonLicenseMissing))
		Expect(meta.IsStatusConditionFalse(s.fileSystemNamed("comb").Status.Conditions, v1alpha1.ConditionLicensed)).To(BeTrue())
		report("a pool without a license", s.whyNotReadyOf("comb"))
		s.kubectl("create", "secret", "generic", "bee-license", "--from-literal=license.pem="+doubleLicense)
		s.apply(s.comb("    license: {name: bee-license}", slow))
		Eventually(s.readyNamed, long).WithArguments("comb").Should(BeTrue(), func() string { return s.whyNotReadyOf("comb") })
		Expect(meta.IsStatusConditionTrue(s.fileSystemNamed("comb").Status.Conditions, v1alpha1.ConditionLicensed)).To(BeTrue())
		s.deleteFileSystem("comb", patience.Flag(5*time.Minute))
	})
}

// doubleLicense is a license that the double of beegfs-mgmtd 8 accepts: its word, BEEGFS-DOUBLE-LICENSE, in base64.
const doubleLicense = "-----BEGIN CERTIFICATE-----\nQkVFR0ZTLURPVUJMRS1MSUNFTlNF\n-----END CERTIFICATE-----\n"
