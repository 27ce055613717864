//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

func install(values ...string) {
	GinkgoHelper()
	installFrom(root, values...)
}

// installFrom installs or updates the operator by the chart and the values of a tree of the project.
func installFrom(tree string, values ...string) {
	GinkgoHelper()
	args := []string{"upgrade", "--install", release, tree + "/charts/parallelfs-operator", "--create-namespace",
		"--values", tree + "/test/cluster/values.yaml", "--wait", patience.Flag(5 * time.Minute)}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	if to := os.Getenv("UPGRADE_TO"); to != "" {
		key := "images.daemons.moosefs-" + strings.ReplaceAll(to, ".", `\.`)
		args = append(args, "--set-string", key+".repository=localhost/parallelfs/moosefs,"+key+".tag="+to)
	}
	// Real daemons of BeeGFS replace the doubles if BEEGFS_IMAGES names them.
	run(run("", "../test/cluster/real-values.sh"), "helm", append(args, "--values", "-", "--namespace", systemNamespace)...)
}

func chartIsInstalled() {
	It("runs two managers, of which one leads", func() {
		Expect(managers()).To(HaveLen(2))
		Eventually(func() string {
			return kubectl("-n", systemNamespace, "get", "lease", "parallelfs-operator", "-o", "jsonpath={.spec.holderIdentity}")
		}).ShouldNot(BeEmpty())
	})
	It("keeps all pods except its agents within the restricted pod security standard", func() {
		// A dry run of a stricter label names the pods that would violate it.
		out, err := exec.Command(filepath.Join(root, "bin", "kubectl"), "label", "--dry-run=server", "--overwrite", "namespace", systemNamespace,
			"pod-security.kubernetes.io/enforce=restricted").CombinedOutput()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(ContainSubstring(release + "-agent-"))
		Expect(string(out)).NotTo(Or(ContainSubstring(release+"-manager"), ContainSubstring(release+"-mpi-operator")))
	})
	It("serves its kinds, explained field by field", func() {
		explain := func(path string) string { return strings.Join(strings.Fields(kubectl("explain", path)), " ") } // it breaks lines
		Expect(explain("filesystem.spec.metadataServers")).To(ContainSubstring("instancesPerNode"))
		Expect(explain("benchmarkrun.spec.sweep")).To(ContainSubstring("All its dimensions together make at most 256 points"))
		Expect(explain("benchmarksuite.spec.afterVariant")).To(ContainSubstring("Destroy deletes it and wipes"))
		Expect(explain("storagetarget.spec.approvedPlan")).To(ContainSubstring("hash of the plan that a person approves"))
		Expect(explain("nodeinventory.status.blockDevices")).To(ContainSubstring("in any mount namespace"))
	})
	It("installs the MPI operator and its API", func() {
		Expect(kubectl("get", "crd", "mpijobs.kubeflow.org", "-o", "name")).NotTo(BeEmpty())
		kubectl("-n", systemNamespace, "rollout", "status", "deployment/"+release+"-mpi-operator", patience.Flag(2*time.Minute))
	})
}

func managers() []string {
	GinkgoHelper()
	return strings.Fields(kubectl("-n", systemNamespace, "get", "pods", "-l", "app.kubernetes.io/component=manager",
		"--field-selector", "status.phase=Running", "-o", "jsonpath={.items[*].metadata.name}"))
}

// chartKeepsEverything needs the running FileSystem.
func (s *story) chartKeepsEverything() {
	var before string
	It("upgrades without a restart of any daemon", func() {
		s.inClient(workers[1], "sh", "-c", fmt.Sprintf("printf '%s' > %s/ssd/hello", greeting, s.mountPath))
		before = s.daemonPods()
		install("logLevel=debug")
		Eventually(managers, long).Should(HaveLen(2))
		Expect(s.daemonPods()).To(Equal(before))
	})
	It("leaves the API, the FileSystem, its daemons and its data when it is uninstalled", func() {
		helm("uninstall", release, "--wait")
		Eventually(managers).Should(BeEmpty())
		Expect(kubectl("get", "crd", "-o", "name")).To(And(ContainSubstring("filesystems.parallelfs.dev"), ContainSubstring("benchmarkruns.parallelfs.dev")))
		Consistently(s.daemonPods, "5s").Should(Equal(before))
		Expect(s.inClient(workers[1], "cat", s.mountPath+"/ssd/hello")).To(Equal(greeting))
	})
	It("takes over the existing objects when it is installed again", func() {
		install()
		Eventually(s.ready, soon).Should(BeTrue())
		Expect(s.daemonPods()).To(Equal(before))
	})
}

// daemonPods returns the pods of the FileSystem with their identities and restarts.
func (s *story) daemonPods() string {
	GinkgoHelper()
	return s.kubectl("get", "pods", "-l", "parallelfs.dev/filesystem=scratch", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}
