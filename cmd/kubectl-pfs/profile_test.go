package main

import (
	"encoding/base64"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

// compared returns a node with settings of which two differ, and one without a server.
func compared() []client.Object {
	return []client.Object{
		&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: "oss1"}, Status: v1alpha1.NodeInventoryStatus{Settings: []v1alpha1.HostSetting{
			{Name: "cStates", Found: "C1", Expected: "C1", AsExpected: true, Source: "the BIOS"},
			{Name: "cpuGovernor", Found: "powersave", Expected: "performance", Source: "the BIOS"},
			{Name: "smt", Found: "off", Expected: "off", AsExpected: true, Source: "the master"},
			{Name: "transparentHugePages", Found: "always", Expected: "always", AsExpected: true, Source: "the guide"},
			{Name: "vm.dirty_ratio", Found: "40", Expected: "20", Source: "the guide"},
			{Name: "vm.overcommit_memory", Found: "1", Expected: "1", AsExpected: true, Source: "the practices"},
		}}},
		&v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
	}
}

const sysctls = "# the guide\nvm.dirty_ratio = 20\n# the practices\nvm.overcommit_memory = 1\n"

func TestTheSettingsOfANodeAreATunedProfile(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, compared())
	got := pfs("node", "profile", "oss1")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stdout).To(Equal("[main]\nsummary=Settings that the filesystems of ParallelFS Operator on node oss1 ask for\n\n" +
		"[cpu]\ngovernor=performance\n\n[vm]\ntransparent_hugepages=always\n\n[sysctl]\n" + sysctls +
		"\n[bootloader]\n# These take effect when the node starts again.\ncmdline_parallelfs=processor.max_cstate=1 intel_idle.max_cstate=0 nosmt\n"))
	g.Expect(got.stderr).To(Equal("cpuGovernor is powersave instead of performance (the BIOS)\nvm.dirty_ratio is 40 instead of 20 (the guide)\n" +
		"2 of the 6 settings that the servers of node oss1 ask for differ.\n"))
	none := pfs("node", "profile", "c1")
	g.Expect(none.stdout).To(BeEmpty())
	g.Expect(none.stderr).To(Equal("0 of the 0 settings that the servers of node c1 ask for differ.\n"))
	g.Expect(pfs("node", "profile", "nowhere").code).To(Equal(exitFailed))
}

func TestTheSettingsOfANodeAreAMachineConfigForARole(t *testing.T) {
	g := NewWithT(t)
	got := on(t, compared())("node", "profile", "oss1", "-o", "machineconfig", "--role", "storage")
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	var config struct {
		Metadata struct {
			Name   string
			Labels map[string]string
		}
		Spec struct {
			KernelArguments []string
			Config          struct {
				Storage struct {
					Files []struct {
						Path     string
						Mode     int
						Contents struct{ Source string }
					}
				}
			}
		}
	}
	g.Expect(yaml.Unmarshal([]byte(got.stdout), &config)).To(Succeed())
	g.Expect(config.Metadata.Name).To(Equal("90-storage-parallelfs"))
	g.Expect(config.Metadata.Labels).To(HaveKeyWithValue("machineconfiguration.openshift.io/role", "storage"))
	g.Expect(config.Spec.KernelArguments).To(Equal([]string{
		"processor.max_cstate=1", "intel_idle.max_cstate=0", "nosmt", "cpufreq.default_governor=performance", "transparent_hugepage=always",
	}))
	g.Expect(config.Spec.Config.Storage.Files).To(HaveLen(1))
	file := config.Spec.Config.Storage.Files[0]
	g.Expect(file.Path).To(Equal("/etc/sysctl.d/90-parallelfs.conf"))
	g.Expect(file.Mode).To(Equal(0o644))
	content, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(file.Contents.Source, "data:text/plain;charset=utf-8;base64,"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(Equal(sysctls))
}
