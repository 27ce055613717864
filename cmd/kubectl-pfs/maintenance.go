package main

import (
	"cmp"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) maintenanceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "maintenance FILESYSTEM",
		Short: "The nodes that are away for maintenance, and why a drain of others waits",
		Long: `maintenance lists the nodes with servers of a FileSystem that are in maintenance, and those that somebody has cordoned and that the
filesystem does not release yet, with the reason. To begin a maintenance, drain the node (kubectl drain). To end it, uncordon the node.`,
		Example: `  kubectl pfs node maintenance scratch`,
		Args:    exactly("FILESYSTEM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			var seen snapshot
			if err := seen.readFileSystems(cmd.Context(), c, c.namespace, args[0]); err != nil {
				return err
			}
			if err := seen.readNodes(cmd.Context(), c, ofFileSystem(c.namespace, args[0])...); err != nil {
				return err
			}
			rows := a.maintenanceRows(&seen.fileSystems[0], seen.nodes)
			if len(rows) == 0 {
				cmd.PrintErrf("No node of FileSystem %s is in maintenance, and no drain waits.\n", args[0])
				return nil
			}
			_, err = io.WriteString(cmd.OutOrStdout(), table([]column{{"NODE", 24}, {"SINCE", 8}, {"STATE", 24}, {"WHY", 0}}, rows))
			return err
		},
	}
}

// maintenanceRows lists the nodes of a FileSystem that are away, or that wait for maintenance.
func (a *app) maintenanceRows(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) [][]string {
	since := map[string]string{}
	for _, m := range fs.Status.Maintenance {
		since[m.Node] = duration.HumanDuration(a.now().Sub(m.Since.Time))
	}
	var rows [][]string
	for i := range nodes {
		n := &nodes[i]
		is := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionMaintenance)
		if is == nil && since[n.Spec.Node] == "" {
			continue
		}
		state, why := v1alpha1.ReasonInMaintenance, ""
		if is != nil {
			state, why = is.Reason, is.Message
		}
		rows = append(rows, []string{n.Spec.Node, cmp.Or(since[n.Spec.Node], "-"), state, cmp.Or(why, "-")})
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return rows
}
