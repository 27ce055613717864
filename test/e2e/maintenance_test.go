//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

// nodesAreDrained drains nodes of a MooseFS with two copies, by kubectl. Every filesystem of the cluster reacts to a cordon, so nothing
// else runs meanwhile. Another filesystem of the same name in another namespace keeps its guards.
func (s *story) nodesAreDrained() {
	It("has a filesystem whose nodes have guards", func() {
		s.isReady(newest, twoCopies)
		for _, node := range workers {
			Eventually(func() string { return s.guardOn(node) }, long).ShouldNot(BeEmpty(), node)
		}
	})

	It("keeps the node of the master until a person allows its absence", more, func() {
		DeferCleanup(func() { kubectl("uncordon", workers[0]) })
		said, err := s.drains(workers[0], 20*time.Second)
		Expect(err).To(HaveOccurred(), said)
		Expect(said + err.Error()).To(ContainSubstring("disruption budget"))
		Eventually(func() string { return s.maintenance(workers[0]) }).Should(And(HavePrefix(v1alpha1.ReasonMaintenanceNotAllowed),
			ContainSubstring("there is one master")))
		_, word, _ := strings.Cut(s.maintenance(workers[0]), v1alpha1.AnnotationAllowMaintenance+"=")
		s.kubectl("annotate", "--overwrite", "filesystemnode", s.recordOf(workers[0]), v1alpha1.AnnotationAllowMaintenance+"="+word)
		said, err = s.drains(workers[0], 2*time.Minute)
		Expect(err).NotTo(HaveOccurred(), said)
		kubectl("uncordon", workers[0])
		Eventually(func() []v1alpha1.NodeMaintenance { return s.fileSystem().Status.Maintenance }, long).Should(BeEmpty())
		Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
	})

	It("allows the absence of a node with copies elsewhere while programs run, and of no other node meanwhile", func() {
		DeferCleanup(func() { kubectl("uncordon", workers[1], workers[2]) })
		out := s.use("ssd", func() {
			said, err := s.drains(workers[2], 3*time.Minute)
			Expect(err).NotTo(HaveOccurred(), said)
			Expect(s.maintenance(workers[2])).To(HavePrefix(v1alpha1.ReasonInMaintenance))
			Expect(s.chunkserverOf(workers[2]).Maintenance).To(Equal("on"), "MooseFS itself says so")
			s.kubectl("delete", "pod", s.podOn("chunkserver", workers[2])) // as a reboot would end it

			_, err = s.drains(workers[1], 20*time.Second)
			Expect(err).To(HaveOccurred())
			Eventually(func() string { return s.maintenance(workers[1]) }).Should(HavePrefix(v1alpha1.ReasonMaintenanceWaits))
			kubectl("uncordon", workers[1])

			kubectl("uncordon", workers[2])
			Eventually(func() []v1alpha1.NodeMaintenance { return s.fileSystem().Status.Maintenance }, long).Should(BeEmpty())
			Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		})
		wasFelt("a node is drained and comes back", out, false)
		Expect(s.chunkserverOf(workers[2]).Maintenance).To(Equal("off"))
		Eventually(func() string { return s.guardOn(workers[2]) }).ShouldNot(BeEmpty())
	})
}

// guardsAreGone deletes the filesystem whose nodes had guards.
func (s *story) guardsAreGone() {
	It("is deleted, and no guard is left", func() {
		s.deleteFileSystem("scratch", patience.Flag(5*time.Minute))
		Expect(s.kubectl("get", "deployments,pdb", "-l", v1alpha1.LabelGuard+"=scratch", "-o", "name")).To(BeEmpty())
	})
}

// drains evicts the guards of a node as `kubectl drain` does, and leaves the pods of other tests alone.
func (s *story) drains(node string, limit time.Duration) (string, error) {
	return try("", "kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data",
		"--pod-selector="+v1alpha1.LabelGuardOwner+"="+s.namespace+".scratch", patience.Flag(limit))
}

// guardOn returns the guard of a node that runs there, empty while none does.
func (s *story) guardOn(node string) string {
	GinkgoHelper()
	return strings.TrimSpace(s.kubectl("get", "pods", "-l", v1alpha1.LabelGuard+"=scratch", "--field-selector", "status.phase=Running,spec.nodeName="+node,
		"-o", "jsonpath={.items[*].metadata.name}"))
}

func (s *story) recordOf(node string) string {
	GinkgoHelper()
	return strings.TrimSpace(s.kubectl("get", "filesystemnodes", "--field-selector", "spec.node="+node+",spec.fileSystem.name=scratch", "-o", "jsonpath={.items[0].metadata.name}"))
}

// maintenance returns the reason and the message of the condition Maintenance of a node.
func (s *story) maintenance(node string) string {
	GinkgoHelper()
	return s.nodeSays(node, v1alpha1.ConditionMaintenance)
}

// nodeSays returns the reason and the message of a condition of a node's FileSystemNode.
func (s *story) nodeSays(node, kind string) string {
	GinkgoHelper()
	condition := fmt.Sprintf(`status.conditions[?(@.type==%q)]`, kind)
	return strings.TrimSpace(s.kubectl("get", "filesystemnode", s.recordOf(node), "-o", "jsonpath={."+condition+".reason}: {."+condition+".message}"))
}

// listed is a chunkserver as the master lists it.
type listed struct {
	IP          string
	Port        int
	Connected   bool
	Maintenance string `json:"maintenance_mode"`
}

// chunkserverOf returns the master's own entry for the chunkserver of a node; the zero value if there is none.
func (s *story) chunkserverOf(node string) listed {
	GinkgoHelper()
	ip := strings.TrimSpace(kubectl("get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`))
	var answer struct {
		Dataset struct{ Chunkservers []listed }
	}
	said := s.administers("-j", "-SCS")
	Expect(json.Unmarshal([]byte(said), &answer)).To(Succeed(), said)
	for _, c := range answer.Dataset.Chunkservers {
		if c.IP == ip {
			return c
		}
	}
	return listed{}
}

// administers runs mfscli beside the master, as an administrator of MooseFS.
func (s *story) administers(args ...string) string {
	GinkgoHelper()
	host, port := s.management()
	return s.kubectl(append([]string{"exec", s.podOn("master", workers[0]), "-c", "probe", "--", "mfscli", "-n", "-H", host, "-P", port}, args...)...)
}

// switchMaintenance switches the maintenance mode of a node's chunkserver, as an administrator of MooseFS.
func (s *story) switchMaintenance(node string, on bool) {
	GinkgoHelper()
	mode := 0
	if on {
		mode = 1
	}
	c := s.chunkserverOf(node)
	Expect(c.IP).NotTo(BeEmpty(), "the master lists no chunkserver of "+node)
	s.administers(fmt.Sprintf("-CM%d/%s/%d", mode, c.IP, c.Port))
}
