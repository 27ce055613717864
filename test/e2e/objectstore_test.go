//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

// The key of the object store, as in its Secret.
const (
	storeKey    = "lab"
	storeSecret = "hush-of-the-object-store"
)

// fileSystemIsBackedUp backs the metadata up to an object store. The store is test/e2e/objectstore, which checks signatures. The filesystem
// must not have been upgraded just before: see docs/backups.md.
func (s *story) fileSystemIsBackedUp() {
	It("is backed up to an object store without showing the secret", s.isBackedUpToAnObjectStore)
}

func (s *story) isBackedUpToAnObjectStore() {
	endpoint := s.serveObjects(workers[1], s.port+40)
	s.kubectl("create", "secret", "generic", "s3", "--from-literal=accessKey="+storeKey, "--from-literal=secretKey="+storeSecret)
	s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"backups":{"schedule":"0 3 29 2 *","objectStore":{"endpoint":%q,"bucket":"vault","prefix":"pfs","secretName":"s3"}}}}`, endpoint))
	DeferCleanup(func() { s.kubectl("patch", "filesystem", "scratch", "--type=merge", "-p", `{"spec":{"backups":null}}`) })
	stored := s.isBackedUp(func(b v1alpha1.BackupStatus) bool { return b.ObjectStore == endpoint+"/vault" })
	Expect(stored).To(And(HaveField("Directory", HavePrefix("pfs/"+s.namespace+".scratch-")), HaveField("SizeBytes", BeNumerically(">", 0)),
		HaveField("Version", BeNumerically(">", 0))))
	report("a backup in an object store", s.kubectl("get", "filesystem", "scratch", "-o", "jsonpath={.status.backups}"))
	for _, what := range []string{"filesystems", "configmaps", "jobs", "pods", "events"} {
		Expect(strings.Contains(s.kubectl("get", what, "-o", "yaml"), storeSecret)).To(BeFalse(), what)
	}
}

// serveObjects runs an object store on a node until the end of the spec, and returns its endpoint.
func (s *story) serveObjects(node string, port int) (endpoint string) {
	GinkgoHelper()
	program, err := os.ReadFile(filepath.Join(root, "bin", "objectstore"))
	Expect(err).NotTo(HaveOccurred(), "test/e2e/run.sh builds it")
	s.apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: objects, namespace: e2e-$STORY}
spec:
  nodeName: %s
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers: [{name: objects, image: localhost/parallelfs/benchmarks:dev, imagePullPolicy: Never, command: [sleep, infinity]}]
`, node))
	DeferCleanup(func() { s.kubectl("delete", "pod", "objects", "--grace-period=0", "--force") })
	s.kubectl("wait", "pod/objects", "--for=condition=Ready", patience.Flag(time.Minute))
	run(string(program), "kubectl", "-n", s.namespace, "exec", "-i", "objects", "--", "sh", "-c", "cat > /tmp/objectstore && chmod 0755 /tmp/objectstore")
	s.kubectl("exec", "objects", "--", "sh", "-c", fmt.Sprintf("/tmp/objectstore --listen :%d --bucket vault --access-key %s --secret-key %s > /tmp/said 2>&1 &",
		port, storeKey, storeSecret))
	address := kubectl("get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
	endpoint = fmt.Sprintf("http://%s:%d", address, port)
	Eventually(func() error {
		_, err := shell(node, "curl -s -o /dev/null "+endpoint)
		return err
	}).Should(Succeed())
	return endpoint
}
