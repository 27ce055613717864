// Package hostprofile writes the settings that the servers of a node ask for as a profile of the host.
package hostprofile

import (
	"encoding/base64"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// Profile is what a node's settings need, by the place where they are set.
type Profile struct {
	// sysctl has lines of sysctl.d(5), each below its source.
	sysctl []string
	// kernel has arguments of the kernel, which need a restart of the node.
	kernel []string
	// governor and hugePages are empty if no server asks for them.
	governor, hugePages string
}

// Of returns the profile of the settings in an inventory, which are those that the servers of the node ask for.
func Of(settings []v1alpha1.HostSetting) Profile {
	var p Profile
	for _, s := range settings {
		switch s.Name {
		case spec.TransparentHugePages:
			p.hugePages = s.Expected
		case spec.CPUGovernor:
			p.governor = s.Expected
		case spec.CStates:
			// These arguments are those of NetApp TR-4782 for C1.
			p.kernel = append(p.kernel, "processor.max_cstate=1", "intel_idle.max_cstate=0")
		case spec.SMT:
			// kernel: Documentation/admin-guide/kernel-parameters.txt, nosmt
			p.kernel = append(p.kernel, "nosmt")
		default:
			p.sysctl = append(p.sysctl, "# "+s.Source, s.Name+" = "+s.Expected)
		}
	}
	return p
}

// Tuned returns the profile as tuned.conf(5).
func (p Profile) Tuned(node string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[main]\nsummary=Settings that the filesystems of ParallelFS Operator on node %s ask for\n", node)
	if p.governor != "" {
		fmt.Fprintf(&b, "\n[cpu]\ngovernor=%s\n", p.governor)
	}
	if p.hugePages != "" {
		fmt.Fprintf(&b, "\n[vm]\ntransparent_hugepages=%s\n", p.hugePages)
	}
	if len(p.sysctl) > 0 {
		b.WriteString("\n[sysctl]\n" + strings.Join(p.sysctl, "\n") + "\n")
	}
	if len(p.kernel) > 0 {
		b.WriteString("\n[bootloader]\n# These take effect when the node starts again.\ncmdline_parallelfs=" + strings.Join(p.kernel, " ") + "\n")
	}
	return b.String()
}

// MachineConfig returns the profile as a MachineConfig of OpenShift, for the machines of a role.
func (p Profile) MachineConfig(role string) (string, error) {
	kernel := p.kernel
	if p.governor != "" {
		// kernel: Documentation/admin-guide/kernel-parameters.txt, since 5.9
		kernel = append(kernel, "cpufreq.default_governor="+p.governor)
	}
	if p.hugePages != "" {
		kernel = append(kernel, "transparent_hugepage="+p.hugePages)
	}
	config := map[string]any{}
	if len(p.sysctl) > 0 {
		content := base64.StdEncoding.EncodeToString([]byte(strings.Join(p.sysctl, "\n") + "\n"))
		config["storage"] = map[string]any{"files": []any{map[string]any{
			"path": "/etc/sysctl.d/90-parallelfs.conf", "mode": 0o644, "overwrite": true,
			"contents": map[string]any{"source": "data:text/plain;charset=utf-8;base64," + content},
		}}}
	}
	config["ignition"] = map[string]any{"version": "3.2.0"}
	inside := map[string]any{"config": config}
	if len(kernel) > 0 {
		inside["kernelArguments"] = kernel
	}
	out, err := yaml.Marshal(map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
		"metadata": map[string]any{
			"name": "90-" + role + "-parallelfs", "labels": map[string]any{"machineconfiguration.openshift.io/role": role},
		},
		"spec": inside,
	})
	return string(out), err
}
