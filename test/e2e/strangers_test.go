//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// hostileRun is a run of a tenant who may create BenchmarkRuns alone. Each of its two attempts prints 15 MB of brackets.
const hostileRun = `
apiVersion: parallelfs.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: hostile, namespace: e2e-$STORY}
spec:
  target: {fileSystem: {name: scratch, storagePool: ssd}}
  clients: {nodeSelector: {e2e.parallelfs.dev/$STORY-client: ""}, oversubscribe: true, count: 1}
  limits: {pointTimeout: 2m, retries: 1}
  tool: custom
  custom:
    command: [sh, -c, "head -c 15000000 /dev/zero | tr '\\0' '['"]
    metrics: [{name: found, unit: s, jsonPath: "{..a}"}]
`

const hostileProgram, hostileStop, hostileOut = "/run/e2e-hostile", "/run/e2e-hostile-stop", "/run/e2e-hostile-out"

// disturbed starts the program test/e2e/hostile on a storage node, against the probe of the filesystem. The returned function ends it.
func (s *story) disturbed(node string) (end func()) {
	GinkgoHelper()
	program, err := os.ReadFile(filepath.Join(root, "bin", "hostile"))
	Expect(err).NotTo(HaveOccurred(), "test/e2e/run.sh builds it")
	run(string(program), "kubectl", "-n", "e2e-shell", "exec", "-i", shells[node], "--", "nsenter", "-t", "1", "-m", "-p", "--", "sh", "-c",
		fmt.Sprintf("rm -f %s %s; cat > %s && chmod 0755 %[3]s", hostileStop, hostileOut, hostileProgram))
	host, _ := s.management()
	onNode(node, fmt.Sprintf("%s --mount /run/e2e-hostile-mount --connect %s:%d --connections 1000 --stop %s > %s 2>&1 &",
		hostileProgram, host, s.port+8, hostileStop, hostileOut))
	Eventually(func() (string, error) { return shell(node, "cat "+hostileOut) }).Should(ContainSubstring("ready"))
	return func() { onNode(node, "touch "+hostileStop) }
}

// restartsAChunkserver deletes the pod of a chunkserver, and waits until everything is well again.
func (s *story) restartsAChunkserver(node string) {
	GinkgoHelper()
	pod := strings.Fields(s.podOn("chunkserver", node))[0]
	s.kubectl("delete", "pod", pod)
	Eventually(func() bool { return s.ready() && !strings.Contains(s.podOn("chunkserver", node), pod) }, long).Should(BeTrue(), s.whyNotReady)
}

// endsOfManagers returns why the managers' containers ended before, in one line.
func endsOfManagers() string {
	GinkgoHelper()
	return kubectl("-n", systemNamespace, "get", "pods", "-l", "app.kubernetes.io/component=manager", "-o",
		`jsonpath={.items[*].status.containerStatuses[*].lastState.terminated.reason}`)
}

// strangersStopNothing restarts a chunkserver beside strangers. The longest operation is only reported: on a busy test machine, the run of
// the strangers takes CPU time from the programs.
func (s *story) strangersStopNothing() {
	It("goes through the restart of a chunkserver beside a hostile tenant and a hostile process", func() {
		end := s.disturbed(workers[2])
		defer func() { end() }()
		beside := s.use("ssd", func() {
			s.apply(hostileRun)
			s.restartsAChunkserver(workers[2])
			Eventually(s.ended("hostile"), long).Should(BeTrue(), func() string { return s.succeeded("hostile") })
			Eventually(s.ready, long).Should(BeTrue(), s.whyNotReady)
		})
		end()
		Expect(s.kubectl("get", "benchmarkrun", "hostile", "-o", "yaml")).To(ContainSubstring("a jsonPath reads at most 1 MiB"))
		Expect(endsOfManagers()).NotTo(ContainSubstring("OOMKilled"))
		s.kubectl("delete", "benchmarkrun", "hostile", "--wait=false")
		wasFelt("a chunkserver restarts beside strangers", beside, false)
	})
}
