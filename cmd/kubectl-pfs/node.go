package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) nodeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "node", Short: "Nodes with servers of a FileSystem: give-up, take-back, accept-loss, maintenance, allow-maintenance, machine-is-off, profile",
		Long: `A FileSystem has servers on nodes. Some facts about a node only a person knows, and the operator waits for them: that a
node never comes back, that what is lost with it is accepted, that it may go although programs will wait, that its machine is off.

Each command first shows the status, then sets one annotation of the FileSystemNode, or of each StorageTarget. The operator asks
the filesystem itself after that, and the conditions GivenUp and Maintenance of the FileSystemNode, or the condition Online of the
StorageTarget, say what became of it.`,
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(a.giveUpCommand(), a.takeBackCommand(), a.acceptLossCommand(), a.maintenanceCommand(), a.allowMaintenanceCommand(),
		a.machineIsOffCommand(), a.profileCommand())
	return cmd
}

// onNode is a command about one node of a FileSystem.
func (a *app) onNode(act func(*cobra.Command, connection, *v1alpha1.FileSystemNode) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(a.cluster)
		if err != nil {
			return err
		}
		n, err := c.fileSystemNode(cmd.Context(), args[0], args[1])
		if err != nil {
			return err
		}
		return act(cmd, c, n)
	}
}

// holds prints on stderr the servers and targets of a FileSystem on a node.
func holds(cmd *cobra.Command, n *v1alpha1.FileSystemNode) {
	var members []string
	for _, m := range n.Status.Members {
		members = append(members, fmt.Sprintf("%s (%s)", m.Name, m.State))
	}
	s := n.Status.Summary
	cmd.PrintErrf("FileSystem %s has on node %s: %s; %s servers and %s targets are online.\n", n.Spec.FileSystem.Name, n.Spec.Node,
		cmp.Or(listed(members), "nothing that its status names"), cmp.Or(s.Servers, "?"), cmp.Or(s.Targets, "?"))
}

func (a *app) giveUpCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:   "give-up FILESYSTEM NODE",
		Short: "Say that a node never comes back",
		Long: `give-up says that a node never comes back, so that the filesystem goes on without it (annotation
` + v1alpha1.AnnotationGiveUp + `).

The operator queries the filesystem first. Nothing is removed while the node is there, or while its state is unknown. Where data has no
other copy, the condition GivenUp names it, and waits for accept-loss. Then the servers and targets of the node leave the FileSystem. No
disk is touched.

To empty a node that is there, use spec.remove of its StorageTargets instead. take-back withdraws it.`,
		Example: `  kubectl pfs node give-up archive oss3 --dry-run
  kubectl pfs node give-up archive oss3`,
		Args: exactly("FILESYSTEM", "NODE"),
		RunE: a.onNode(func(cmd *cobra.Command, c connection, n *v1alpha1.FileSystemNode) error {
			holds(cmd, n)
			if gone := n.Spec.GivenUp; gone != nil {
				cmd.PrintErrf("It was decommissioned at %s: the filesystem goes on without it.\n", gone.Time.UTC().Format(time.RFC3339))
				return nil
			}
			if said := saying(n.Status.Conditions, v1alpha1.ConditionGivenUp); said != "" {
				cmd.PrintErrln("State so far: " + said)
			}
			cmd.PrintErrln("All of its servers will retire, and its disks will be left alone. What has no other copy is named before, and is lost only after accept-loss.")
			if err := c.say(cmd, n, "FileSystemNode", words{v1alpha1.AnnotationGiveUp: &n.Spec.Node}, dry); err != nil || dry {
				return err
			}
			cmd.PrintErrf("See what becomes of it: kubectl -n %s get filesystemnode %s -o yaml, condition GivenUp.\n", c.namespace, n.Name)
			return nil
		}),
	}
	dryRun(cmd, &dry)
	return cmd
}

func (a *app) takeBackCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:   "take-back FILESYSTEM NODE",
		Short: "Take back that a node never comes back",
		Long: `take-back withdraws give-up. A node that was not decommissioned yet stays as it is. The servers of a decommissioned one are
started again, with what is on its disks, once the node is there.`,
		Example: `  kubectl pfs node take-back archive oss3`,
		Args:    exactly("FILESYSTEM", "NODE"),
		RunE: a.onNode(func(cmd *cobra.Command, c connection, n *v1alpha1.FileSystemNode) error {
			holds(cmd, n)
			if _, said := n.Annotations[v1alpha1.AnnotationGiveUp]; !said {
				cmd.PrintErrln("Nobody has said that it never comes back.")
				return nil
			}
			if gone := n.Spec.GivenUp; gone != nil && gone.Lost != "" {
				cmd.PrintErrln("When it was decommissioned, this was accepted as lost: " + gone.Lost)
			}
			return c.say(cmd, n, "FileSystemNode", words{v1alpha1.AnnotationGiveUp: nil, v1alpha1.AnnotationAcceptLoss: nil}, dry)
		}),
	}
	dryRun(cmd, &dry)
	return cmd
}

func (a *app) acceptLossCommand() *cobra.Command {
	dry, word := false, ""
	cmd := &cobra.Command{
		Use:   "accept-loss FILESYSTEM NODE [--accept HASH]",
		Short: "See what is lost with a node that never comes back, and accept exactly that",
		Long: `accept-loss shows what would be lost with a node that is to be decommissioned, and the hash of exactly this loss. It
changes nothing until you repeat the hash with --accept (annotation ` + v1alpha1.AnnotationAcceptLoss + `). When anything else
would be lost by then, the hash is refused.

What is accepted can't be undone: the files stay broken.`,
		Example: `  kubectl pfs node accept-loss archive oss3
  kubectl pfs node accept-loss archive oss3 --accept 1a2b3c4d`,
		Args: exactly("FILESYSTEM", "NODE"),
		RunE: a.onNode(func(cmd *cobra.Command, c connection, n *v1alpha1.FileSystemNode) error {
			is := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionGivenUp)
			switch {
			case n.Spec.GivenUp != nil:
				return fmt.Errorf("node %s was decommissioned at %s; lost was: %s", n.Spec.Node,
					n.Spec.GivenUp.Time.UTC().Format(time.RFC3339), cmp.Or(n.Spec.GivenUp.Lost, "nothing"))
			case is == nil:
				return fmt.Errorf("no loss of node %s is known; say first that it never comes back: kubectl pfs node give-up %s %s",
					n.Spec.Node, n.Spec.FileSystem.Name, n.Spec.Node)
			case is.Reason != v1alpha1.ReasonLossNotAccepted:
				return fmt.Errorf("there is no loss to accept (%s): %s", is.Reason, is.Message)
			}
			now := wordOf(n.Status.Conditions, v1alpha1.ConditionGivenUp, v1alpha1.AnnotationAcceptLoss)
			if now == "" {
				return fmt.Errorf("the condition GivenUp names no hash: %s", is.Message)
			}
			lost, _, _ := strings.Cut(is.Message, " To accept exactly this:")
			if word == "" {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\nTo accept exactly this: kubectl pfs -n %s node accept-loss %s %s --accept %s\n",
					lost, c.namespace, n.Spec.FileSystem.Name, n.Spec.Node, now)
				return err
			}
			cmd.PrintErrln(lost)
			if word != now {
				return fmt.Errorf("%q is the hash of another loss, or of none; what would be lost now is above, and its hash is %s. Nothing was changed", word, now)
			}
			return c.say(cmd, n, "FileSystemNode", words{v1alpha1.AnnotationAcceptLoss: &word}, dry)
		}),
	}
	cmd.Flags().StringVar(&word, "accept", "", "the hash of the loss, as this command shows it without the flag")
	dryRun(cmd, &dry)
	return cmd
}

func (a *app) allowMaintenanceCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:   "allow-maintenance FILESYSTEM NODE",
		Short: "Release a cordoned node although the filesystem needs it",
		Long: `allow-maintenance releases a cordoned node at once, whatever its guard waits for (annotation
` + v1alpha1.AnnotationAllowMaintenance + `). It says first what
that is: programs may wait, or not find their data, while the node is away. Nothing is lost.

It is valid until the node restarts. Look at what the guard waits for with --dry-run.`,
		Example: `  kubectl pfs node allow-maintenance scratch mds1 --dry-run
  kubectl pfs node allow-maintenance scratch mds1`,
		Args: exactly("FILESYSTEM", "NODE"),
		RunE: a.onNode(func(cmd *cobra.Command, c connection, n *v1alpha1.FileSystemNode) error {
			holds(cmd, n)
			is := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionMaintenance)
			word := wordOf(n.Status.Conditions, v1alpha1.ConditionMaintenance, v1alpha1.AnnotationAllowMaintenance)
			switch {
			case is == nil:
				return fmt.Errorf("nobody asks for a maintenance of node %s; cordon it first (kubectl cordon %s), and look again in half a minute", n.Spec.Node, n.Spec.Node)
			case is.Reason == v1alpha1.ReasonInMaintenance:
				cmd.PrintErrln("It is released already: " + is.Message)
				return nil
			case word == "":
				return fmt.Errorf("node %s waits for no decision of a person (%s): %s", n.Spec.Node, is.Reason, is.Message)
			}
			waits, _, _ := strings.Cut(is.Message, " To release it anyway")
			cmd.PrintErrf("%s: %s\nIt is released anyway, and what it holds and no other does can't be had until it is back.\n", is.Reason, waits)
			return c.say(cmd, n, "FileSystemNode", words{v1alpha1.AnnotationAllowMaintenance: &word}, dry)
		}),
	}
	dryRun(cmd, &dry)
	return cmd
}
