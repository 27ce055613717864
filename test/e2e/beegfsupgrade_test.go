//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// beeGFS7Older is the release of BeeGFS that is upgraded to beeGFS7, both as doubles.
const beeGFS7Older = "7.4.5"

// swarm returns a BeeGFS 7 in directories, with two metadata servers, two storage servers and a client.
func (s *story) swarm(version string) string {
	return fmt.Sprintf(`
apiVersion: parallelfs.dev/v1alpha1
kind: FileSystem
metadata: {name: swarm, namespace: e2e-$STORY}
spec:
  type: BeeGFS
  version: %[1]s
  beegfs:
    basePort: $PORT
    management:
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      targets: {directories: [/var/lib/parallelfs-e2e/$STORY/management]}
    config:
      management: {sysTargetOfflineTimeoutSecs: "30"}
      metadata: {sysTargetOfflineTimeoutSecs: "30"}
      storage: {sysTargetOfflineTimeoutSecs: "30"}
  metadataServers:
    nodeSelector: {kubernetes.io/hostname: %[2]s}
    instancesPerNode: 2
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/meta0, /var/lib/parallelfs-e2e/$STORY/meta1]}
  storagePools:
  - name: ssd
    nodeSelector: {e2e.parallelfs.dev/$STORY-storage: ""}
    copies: 1
    targets: {directories: [/var/lib/parallelfs-e2e/$STORY/ssd]}
  clients:
    nodeSelector: {kubernetes.io/hostname: %[3]s}
    mountPath: /mnt/e2e/$STORY/fs
`, version, workers[0], workers[1])
}

// beeGFSIsUpgraded upgrades a BeeGFS of doubles to a later release of 7.4, after its store was backed up. Doubles show nothing about data,
// because their files reach no target.
func (s *story) beeGFSIsUpgraded() {
	fs := func() *v1alpha1.FileSystem { return s.fileSystemNamed("swarm") }
	says := func(kind string) string { return conditionText(fs(), kind) }
	asks := func(version string) {
		s.kubectl("patch", "filesystem", "swarm", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"version":%q}}`, version))
	}
	daemons := []string{"management", "meta", "storage"}
	var asked time.Time

	It("has a filesystem of the older release, which a client has mounted", func() {
		s.begin()
		s.label(workers[0], "storage")
		s.label(workers[1], "storage")
		s.apply(s.swarm(beeGFS7Older))
		Eventually(s.readyNamed, long).WithArguments("swarm").Should(BeTrue(), func() string { return s.whyNotReadyOf("swarm") })
		Expect(fs().Status.Version).To(Equal(beeGFS7Older))
		onNode(workers[1], "echo '"+greeting+"' > "+s.mountPath+"/greeting")
	})

	It("refuses a version without an upgrade path, and waits for a backup of the store for one with a path", func() {
		before := s.serving(daemons)
		asks(beeGFS8)
		Eventually(func() string { return says(v1alpha1.ConditionStalled) }).Should(And(HavePrefix(v1alpha1.ReasonUpgradeRefused),
			ContainSubstring("its upgrade guide stops the whole filesystem")))
		asks(beeGFS7)
		Eventually(func() string { return says(v1alpha1.ConditionUpgrading) }).Should(HavePrefix(v1alpha1.ReasonBackupMissing))
		asked = fs().Status.UpgradeAsked.Since.Time
		Consistently(func() []string { return s.serving(daemons) }, 10*time.Second).Should(ConsistOf(before))
	})

	It("is upgraded server by server, the management service first, when its store was read back", func() {
		mounts, before := s.serving([]string{"client"}), s.serving(daemons)
		stop := s.watchVersions("swarm", "management", beeGFS7Older)
		begun := time.Now()
		s.backsUpOf("swarm", workers[2])
		Eventually(func() string {
			status := fs().Status
			if status.Upgrade != nil || !s.readyNamed("swarm") {
				return says(v1alpha1.ConditionUpgrading)
			}
			return status.Version
		}, 2*long).Should(Equal(beeGFS7), func() string { return s.whyNotReadyOf("swarm") })
		said, wrong := stop()
		report("an upgrade of a BeeGFS of doubles from "+beeGFS7Older+" to "+beeGFS7,
			fmt.Sprintf("%s\n%s", time.Since(begun).Round(time.Second), strings.Join(said, "\n")))
		Expect(wrong).To(BeEmpty())
		Expect(fs().Status.Backups).To(ContainElement(And(HaveField("Node", workers[2]), HaveField("Result", v1alpha1.BackupVerified),
			HaveField("Name", asked.UTC().Format(spec.BackupNameLayout)), HaveField("SizeBytes", BeNumerically(">", 0)))), "made for this upgrade")
		Expect(disjoint(before, s.serving(daemons))).To(BeTrue(), "every server was made anew")
		Expect(fs().Status.Versions).To(HaveExactElements(HaveField("Version", beeGFS7)))
		Expect(s.serving([]string{"client"})).To(ConsistOf(mounts), "no mount was touched")
		Expect(onNode(workers[1], "cat "+s.mountPath+"/greeting")).To(Equal(greeting))
	})

	It("does not go back", func() {
		asks(beeGFS7Older)
		Eventually(func() string { return says(v1alpha1.ConditionStalled) }).Should(
			ContainSubstring("BeeGFS documents no way back from " + beeGFS7 + " to " + beeGFS7Older))
		Expect(fs().Status.Version).To(Equal(beeGFS7))
	})
}
