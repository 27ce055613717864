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

// metadataIsRecovered destroys the directory of the master while a program writes, and has the metadata made again from the metalogger on
// another node. Programs stand still from the loss until a person has approved the plan, so how long is up to that person; what counts is that
// every file is there that was on the servers before the last change that the plan names.
func (s *story) metadataIsRecovered() {
	It("has a filesystem", func() { s.isReady(newest, twoCopies) })
	It("has its metadata again after they were lost, from the metalogger on another node", s.losesAndRecovers)
}

func (s *story) losesAndRecovers() {
	GinkgoHelper()
	// The program runs on the node itself, because mounts of before are new afterwards. It writes down what was acknowledged, and when.
	writer, acknowledged := workers[2], "/run/"+s.namespace+"-acknowledged"
	onNode(writer, fmt.Sprintf(`rm -f %[1]s; mkdir -p %[2]s/ssd/kept
nohup sh -c 'i=0; while i=$((i+1)); do
  echo $i > %[2]s/ssd/kept/$i && sync %[2]s/ssd/kept/$i && echo "$(date +%%s) $i" >> %[1]s || break; sleep 0.1
done' >/dev/null 2>&1 &`, acknowledged, s.mountPath))
	files := func() int { return len(strings.Split(onNode(writer, "cat "+acknowledged), "\n")) }
	Eventually(files).Should(BeNumerically(">", 40))

	lost := time.Now()
	onNode(workers[0], "find "+s.dataRoot+"/metadata -mindepth 1 -delete; kill -9 $("+s.processes(workers[0], "mfsmaster( -a)? -f")+")")
	written := files()
	s.label(workers[0], "metadata-")
	s.label(workers[1], "metadata")
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
	Expect(plan).To(And(HavePrefix(v1alpha1.ReasonRecoveryApproval), ContainSubstring("metalogger-"+workers[1])))
	asks("=" + hash)
	Eventually(func() bool {
		m := s.fileSystem().Status.Metadata
		return m.Recovered != nil && m.Node == workers[1] && s.ready()
	}, long).Should(BeTrue(), s.whyNotReady)
	recovered := s.fileSystem().Status.Metadata.Recovered
	report("metadata is lost and recovered", fmt.Sprintf("%s\n\nfrom the loss to the plan %s, from the approval to a filesystem that is whole %s; %s, version %d of %s; "+
		"%d files were acknowledged before the loss", plan, planned.Sub(lost).Round(time.Second), time.Since(planned).Round(time.Second), recovered.From,
		recovered.Version, recovered.DataTime.UTC().Format(time.RFC3339), written))
	Expect(recovered.PlanHash).To(Equal(hash))
	asks("-")
	// The time of the last change is in seconds.
	Expect(onNode(writer, fmt.Sprintf(`while read -r at i; do
  if [ "$at" -lt %d ] && [ "$(cat %s/ssd/kept/$i)" != "$i" ]; then echo "$i of $at"; fi
done < %s`, recovered.DataTime.Unix(), s.mountPath, acknowledged))).To(BeEmpty(), "files that were acknowledged before the last change of the plan")
	Expect(recovered.DataTime.Time).To(BeTemporally(">", lost.Add(-5*time.Second)))
}

// saysOfRecovery is the reason and the message of Recovering.
func (s *story) saysOfRecovery() string {
	GinkgoHelper()
	c := meta.FindStatusCondition(s.fileSystem().Status.Conditions, v1alpha1.ConditionRecovering)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}
