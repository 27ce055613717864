package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/agent"
	"parallelfs.dev/operator/internal/node/command"
	"parallelfs.dev/operator/internal/node/devices"
)

func inventoryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "inventory [-o yaml|json]",
		Short: "Print what this node has: disks, processors, networks, kernel and settings",
		Long: `Print what this node has, as the NodeInventory that the agent publishes: disks with their stable names and what is on them,
processors and NUMA nodes, networks, kernel, and the host's settings beside those that published setups ask for.

It only reads, and needs no cluster. Of filesystems in the kernel, it asks the node's own programs for their versions, in
the node's root directory; a node without them runs none. Run it as root, on the node itself or in a container with the node's /dev,
/run/udev, network and process ids: what it is not allowed to see stands under problems, and a disk of which not all is known is never
usable. It fails when the block devices could not be listed.

A disk is usable when nothing stands under unusable. To name it in a FileSystem, take one of its ids, never its
kernelName, which is another disk's after the next start:

  agent inventory                 # everything
  agent inventory -o json | jq -r '.status.blockDevices[] | select(has("unusable") | not) | .ids[0]'   # usable disks`,
		Args: cobra.NoArgs, Annotations: map[string]string{command.Asked: "true"},
	}
	output := c.Flags().StringP("output", "o", "yaml", "`FORMAT` of the output: yaml or json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		encode := map[string]func(any) ([]byte, error){
			"yaml": yaml.Marshal,
			"json": func(v any) ([]byte, error) { return json.MarshalIndent(v, "", "  ") },
		}[*output]
		if encode == nil {
			return fmt.Errorf("there is no output format %q; use -o yaml or -o json", *output)
		}
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("can't read the name of this node: %w", err)
		}
		found := v1alpha1.NodeInventory{Status: thisInventory().Collect(c.Context())}
		for i := range found.Status.BlockDevices {
			disk := &found.Status.BlockDevices[i]
			if !agent.Reports(*disk) {
				continue
			}
			report, err := devices.ThisHost().Health(c.Context(), disk.KernelName)
			if err != nil {
				found.Status.Problems = append(found.Status.Problems, "the health of a disk can't be read: "+err.Error())
			}
			disk.Health = agent.Published(report)
		}
		found.APIVersion, found.Kind, found.Name = v1alpha1.GroupVersion.String(), "NodeInventory", name
		text, err := encode(found)
		if err != nil {
			return fmt.Errorf("can't print the inventory: %w", err)
		}
		if _, err = fmt.Fprintf(c.OutOrStdout(), "%s\n", text); err != nil {
			return err
		}
		if i := slices.IndexFunc(found.Status.Problems, func(p string) bool { return strings.HasPrefix(p, devices.Unlisted) }); i >= 0 {
			return fmt.Errorf("the disks are missing above: %s", found.Status.Problems[i])
		}
		return nil
	}
	return c
}
