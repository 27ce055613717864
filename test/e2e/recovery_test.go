//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
)

// metadataIsRecovered destroys the directory of the master twice while a program writes. It is recovered first from the metalogger on
// another node, and then from a backup on a third node. Programs wait from the loss until a person has approved the plan, so the test sets
// no limit to that time. Every file must be there that was on the servers before the last change that the plan names. It needs a running
// filesystem with its metadata on the first worker and a metalogger on the second one.
func (s *story) metadataIsRecovered() {
	It("recovers lost metadata from the metalogger on another node", func() {
		kept := s.keepsWriting("kept")
		lost := time.Now()
		recovered := s.losesAndRecovers(workers[0], workers[1], "metalogger-"+workers[1], kept)
		Expect(recovered.DataTime.Time).To(BeTemporally(">", lost.Add(-5*time.Second)))
	})
	It("recovers lost metadata from a backup if that is the only usable copy", more, func() {
		kept := s.keepsWriting("kept-too")
		s.backsUpOn(workers[2])
		backup := s.isBackedUp(func(b v1alpha1.BackupStatus) bool { return b.Node == workers[2] })
		written := kept.files()
		Eventually(kept.files).Should(BeNumerically(">", written+20), "what the backup does not have")
		recovered := s.losesAndRecovers(workers[1], workers[2], "backup-at-"+workers[2]+"-"+backup.Name, kept)
		Expect(recovered.Version).To(BeNumerically(">=", backup.Version))
		Expect(recovered.DataTime.Time).To(BeTemporally("==", backup.Time.Time))
	})
}

// backsUpOn requests backups on a node: one at once, and none by the schedule.
func (s *story) backsUpOn(node string) {
	GinkgoHelper()
	s.backsUpOf("scratch", node)
}

func (s *story) backsUpOf(name, node string) {
	GinkgoHelper()
	s.kubectl("patch", "filesystem", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"backups":{"schedule":"0 3 29 2 *",
		"nodes":{"nodeSelector":{"kubernetes.io/hostname":%q},"count":1,"directory":%q}}}}`, node, s.dataRoot+"/backups"))
}

// isBackedUp waits for a verified backup of that kind, and returns it.
func (s *story) isBackedUp(which func(v1alpha1.BackupStatus) bool) (found v1alpha1.BackupStatus) {
	GinkgoHelper()
	Eventually(func() v1alpha1.BackupResult {
		for _, b := range s.fileSystem().Status.Backups {
			if which(b) {
				found = b
				break // the newest comes first
			}
		}
		return found.Result
	}, long).Should(Equal(v1alpha1.BackupVerified), func() string { return found.Message })
	return found
}

// acknowledged describes the files that a program has written and synced, on the node where the program runs.
type acknowledged struct{ node, directory, list string }

// files returns their number.
func (a acknowledged) files() int {
	GinkgoHelper()
	return len(strings.Split(onNode(a.node, "cat "+a.list), "\n"))
}

// missing returns those from before a time that differ from what was written.
func (a acknowledged) missing(before time.Time) string {
	GinkgoHelper()
	return onNode(a.node, fmt.Sprintf(`while read -r at i; do
  if [ "$at" -lt %d ] && [ "$(cat %s/$i)" != "$i" ]; then echo "$i of $at"; fi
done < %s`, before.Unix(), a.directory, a.list))
}

// keepsWriting starts a program that writes files until it can't. It runs on the node itself, because a recovery replaces the mounts, and
// it records which files were acknowledged, and when.
func (s *story) keepsWriting(name string) acknowledged {
	GinkgoHelper()
	a := acknowledged{node: workers[2], directory: s.mountPath + "/ssd/" + name, list: "/run/" + s.namespace + "-" + name}
	// The list exists before the program starts, because the first file may take longer than the first look at the list.
	onNode(a.node, fmt.Sprintf(`: > %[1]s; mkdir -p %[2]s
nohup sh -c 'i=0; while i=$((i+1)); do
  echo $i > %[2]s/$i && sync %[2]s/$i && echo "$(date +%%s) $i" >> %[1]s || break; sleep 0.1
done' >/dev/null 2>&1 &`, a.list, a.directory))
	Eventually(a.files).Should(BeNumerically(">", 40))
	return a
}

// losesAndRecovers destroys the directory of the master on a node, and recovers the metadata on another one like a person who approves the
// proposed plan.
func (s *story) losesAndRecovers(node, onto, from string, kept acknowledged) v1alpha1.MetadataRecovered {
	GinkgoHelper()
	lost := time.Now()
	onNode(node, "find "+s.dataRoot+"/metadata -mindepth 1 -delete; kill -9 $("+s.processes(node, "mfsmaster( -a)? -f")+")")
	written := kept.files()
	s.label(node, "metadata-")
	s.label(onto, "metadata")
	asks := func(word string) {
		s.kubectl("annotate", "--overwrite", "filesystem", "scratch", v1alpha1.AnnotationRecoverMetadata+word)
	}
	asks("=" + v1alpha1.RecoverPlan)
	hash := ""
	Eventually(func() string {
		if r := s.fileSystem().Status.Recovery; r != nil {
			hash = r.PlanHash
		}
		return hash
	}, long).ShouldNot(BeEmpty(), s.saysOfRecovery)
	plan, planned := s.saysOfRecovery(), time.Now()
	Expect(plan).To(And(HavePrefix(v1alpha1.ReasonRecoveryApproval), ContainSubstring("made again from "+from+" ")))
	asks("=" + hash)
	Eventually(func() bool {
		m := s.fileSystem().Status.Metadata
		return m.Recovered != nil && m.Node == onto && s.ready()
	}, long).Should(BeTrue(), s.whyNotReady)
	recovered := *s.fileSystem().Status.Metadata.Recovered
	report("metadata is lost and recovered", fmt.Sprintf("%s\n\nfrom the loss to the plan %s, from the approval to a filesystem that is whole %s; %s, version %d of %s; "+
		"%d files were acknowledged before the loss", plan, planned.Sub(lost).Round(time.Second), time.Since(planned).Round(time.Second), recovered.From,
		recovered.Version, recovered.DataTime.UTC().Format(time.RFC3339), written))
	Expect(recovered.PlanHash).To(Equal(hash))
	asks("-")
	// The time of the last change is in seconds.
	Expect(kept.missing(recovered.DataTime.Time)).To(BeEmpty(), "files that were acknowledged before the last change of the plan")
	return recovered
}

// saysOfRecovery returns the reason and the message of Recovering.
func (s *story) saysOfRecovery() string {
	GinkgoHelper()
	c := meta.FindStatusCondition(s.fileSystem().Status.Conditions, v1alpha1.ConditionRecovering)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}
