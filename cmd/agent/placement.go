package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/internal/node/affinity"
	"parallelfs.dev/operator/internal/node/command"
	"parallelfs.dev/operator/internal/node/spec"
)

func placementCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "placement [--output yaml|json]",
		Short: "Print on which CPUs and with which memory policy the daemons of this node run",
		Long: `Print on which CPUs and with which memory policy the daemons of this node run, as the kernel says it of all their threads.
It is what status.daemons of the NodeInventory shows.

A daemon is a process that "node run" has started (its environment has ` + spec.EnvDaemon + `=NAMESPACE/FILESYSTEM/COMPONENT), and that
sees the node's own directory /var/lib/parallelfs/NAMESPACE.FILESYSTEM, or the one in /var/lib/parallelfs/targets, at this
path. It needs root, and in a pod hostPID and that directory of the node.`,
		Args: cobra.NoArgs, Annotations: map[string]string{command.Asked: "true"},
	}
	output := c.Flags().StringP("output", "o", "yaml", "`FORMAT`: yaml or json.")
	c.RunE = func(c *cobra.Command, _ []string) error {
		encode := map[string]func(any) ([]byte, error){"yaml": yaml.Marshal, "json": indented}[*output]
		if encode == nil {
			return fmt.Errorf("--output is yaml or json, not %q", *output)
		}
		placements, err := affinity.ThisNode().Placements()
		if err != nil {
			return err
		}
		content, err := encode(placements)
		if err != nil {
			return fmt.Errorf("can't encode the placements: %w", err)
		}
		_, err = c.OutOrStdout().Write(content)
		return err
	}
	return c
}

func indented(v any) ([]byte, error) {
	content, err := json.MarshalIndent(v, "", "  ")
	return append(content, '\n'), err
}
