package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/hostprofile"
)

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
			p := hostprofile.Of(inventory.Status.Settings)
			text := p.Tuned(args[0])
			if format == "machineconfig" {
				if text, err = p.MachineConfig(role); err != nil {
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
