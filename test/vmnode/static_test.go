//go:build vmnode

package vmnode_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// It is the last test: with this policy, a kubelet updates each container every ten seconds, which is expensive on an emulated processor.
func TestTheKubeletAssignsCPUsToPodsAlone(t *testing.T) {
	g := NewWithT(t)
	onNode(t, "grep -q static /etc/default/kubelet || { sed -i '/^KUBELET_EXTRA_ARGS=/s/$/ --cpu-manager-policy=static --kube-reserved=cpu=500m/' /etc/default/kubelet; "+
		"systemctl stop kubelet; rm -f /var/lib/kubelet/cpu_manager_state; systemctl start kubelet; }")
	g.Eventually(func() (string, error) { return tryOnNode("cat /var/lib/kubelet/cpu_manager_state") }, long, 5*time.Second).
		Should(ContainSubstring(`"policyName":"static"`))
	kubectl(t, "wait", "--for=condition=Ready", "node/"+node, patience.Flag(10*time.Minute))
	g.Eventually(field("node/"+node, "{.status.allocatable.cpu}"), long, 5*time.Second).Should(Equal("1500m"), "which keeps the first processor for all that has none of its own")
	allowed := func(name string) func() (string, error) {
		return func() (string, error) {
			return run("", "kubectl", "-n", ours, "exec", name, "--", "sed", "-n", "s/^Cpus_allowed_list:\t//p", "/proc/self/status")
		}
	}
	apply(t, pod("exclusive", "{requests: {cpu: 1, memory: 32Mi}, limits: {cpu: 1, memory: 32Mi}}", "sleep 36000"))
	g.Eventually(allowed("exclusive"), long, 5*time.Second).Should(Equal("1\n"))
	apply(t, pod("shared", "{}", "sleep 36000"))
	g.Eventually(allowed("shared"), long, 5*time.Second).Should(Equal("0\n"))
	g.Eventually(field("nodeinventory/"+node, "{.status.cpu.kubeletCPUManagerPolicy}"), long, 5*time.Second).Should(Equal("static"))
	t.Log(onNode(t, "cat /var/lib/kubelet/cpu_manager_state"))
	kubectl(t, "-n", ours, "delete", "pod", "exclusive", "shared")
}
