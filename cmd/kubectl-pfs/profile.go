package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// hostProfile is what a node's settings need, by the place where they are set.
type hostProfile struct {
	// sysctl has lines of sysctl.d(5), each below its source.
	sysctl []string
	// kernel has arguments of the kernel, which need a restart of the node.
	kernel []string
	// governor and hugePages are empty if no server asks for them.
	governor, hugePages string
}

// profileOf returns the profile of the settings in an inventory, which are those that the servers of the node ask for.
func profileOf(settings []v1alpha1.HostSetting) hostProfile {
	var p hostProfile
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

// tuned returns the profile as tuned.conf(5).
func (p hostProfile) tuned(node string) string {
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

// machineConfig returns the profile as a MachineConfig of OpenShift, for the machines of a role.
func (p hostProfile) machineConfig(role string) (string, error) {
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

func (a *app) profileCommand() *cobra.Command {
	format, role := "tuned", "worker"
	cmd := &cobra.Command{
		Use:   "profile NODE",
		Short: "Print the settings that the servers of a node ask for, as a tuned profile or a MachineConfig",
		Long: `profile prints the settings of the host that the servers of a node ask for, with the source of each: sysctls, transparent huge
pages, the governor of the CPUs, idle states and SMT. They are those of status.settings of the NodeInventory. The operator sets none of
them, and this command only reads.

tuned is the file tuned.conf of a profile (tuned.conf(5)). machineconfig is a MachineConfig of OpenShift, which restarts all machines of
the role, one after the other. Both hold the settings of this node only: compare the nodes of a role before you use one for all.`,
		Example: `  kubectl pfs node profile oss1 | sudo tee /etc/tuned/parallelfs/tuned.conf
  kubectl pfs node profile oss1 -o machineconfig --role storage`,
		Args: exactly("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "tuned" && format != "machineconfig" {
				return usage(fmt.Errorf("there is no output format %q; use -o tuned or -o machineconfig", format))
			}
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			inventory := &v1alpha1.NodeInventory{}
			if err := c.Get(cmd.Context(), client.ObjectKey{Name: args[0]}, inventory); err != nil {
				return fmt.Errorf("read the NodeInventory of node %s: %w", args[0], err)
			}
			differ := 0
			for _, s := range inventory.Status.Settings {
				if !s.AsExpected {
					differ++
					cmd.PrintErrf("%s is %s instead of %s (%s)\n", s.Name, s.Found, s.Expected, s.Source)
				}
			}
			cmd.PrintErrf("%d of the %d settings that the servers of node %s ask for differ.\n", differ, len(inventory.Status.Settings), args[0])
			if len(inventory.Status.Settings) == 0 {
				return nil
			}
			p := profileOf(inventory.Status.Settings)
			text := p.tuned(args[0])
			if format == "machineconfig" {
				if text, err = p.machineConfig(role); err != nil {
					return err
				}
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", format, "`FORMAT` of the output: tuned or machineconfig")
	cmd.Flags().StringVar(&role, "role", role, "`ROLE` of the machines that a MachineConfig is for")
	return cmd
}
