package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) upgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "upgrade", Short: "Upgrades of a FileSystem: plan, pause, resume",
		Long: `A change of spec.version of a FileSystem upgrades it, one component after the other. The commands show how far that is, and hold it
or let it go on.`,
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	plan := &cobra.Command{
		Use:     "plan FILESYSTEM",
		Short:   "What runs, what is asked for, and what the upgrade waits for",
		Example: `  kubectl pfs upgrade plan scratch`,
		Args:    exactly("FILESYSTEM"),
		RunE:    a.prints(upgradeText),
	}
	cmd.AddCommand(plan, a.pauseCommand("pause", true), a.pauseCommand("resume", false))
	return cmd
}

// prints returns a command that reads the named FileSystem and prints a text about it.
func (a *app) prints(text func(fs *v1alpha1.FileSystem) string) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.connect(a.cluster)
		if err != nil {
			return err
		}
		fs, err := c.fileSystem(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text(fs))
		return err
	}
}

// upgradeText shows the progress of an upgrade, and what it waits for.
func upgradeText(fs *v1alpha1.FileSystem) string {
	var out strings.Builder
	runs := cmp.Or(fs.Status.Version, "nothing yet")
	fmt.Fprintf(&out, "%s/%s runs %s; spec.version is %s.\n", fs.Namespace, fs.Name, runs, fs.Spec.Version)
	for _, v := range fs.Status.Versions {
		fmt.Fprintf(&out, "  servers that report version %s: %d\n", printable(v.Version), v.Servers)
	}
	said := saying(fs.Status.Conditions, v1alpha1.ConditionUpgrading)
	switch u := fs.Status.Upgrade; {
	case u != nil:
		out.WriteString(wrapped("", "  ", fmt.Sprintf("The upgrade to %s is under way. Components with the new version, in order: %s.", u.Version, strings.Join(u.Components, ", "))))
	case fs.Status.UpgradeAsked != nil:
		asked := fs.Status.UpgradeAsked
		fmt.Fprintf(&out, "The upgrade to %s was asked for at %s, and has not begun.\n", asked.Version, asked.Since.UTC().Format(time.RFC3339))
	case said == "":
		out.WriteString("No upgrade is asked for. To ask for one, set spec.version.\n")
	}
	if said != "" {
		out.WriteString(wrapped("  ", "  ", said))
	}
	if backed := saying(fs.Status.Conditions, v1alpha1.ConditionBackedUp); backed != "" {
		out.WriteString(wrapped("Backups: ", "  ", backed))
	}
	for _, w := range fs.Spec.Updates.Windows {
		fmt.Fprintf(&out, "Window: %s for %s (%s).\n", w.Schedule, w.Duration.Duration, cmp.Or(w.TimeZone, "UTC"))
	}
	if fs.Spec.Updates.Paused {
		out.WriteString(wrapped("", "  ", "Changes are paused. To let them go on: kubectl pfs -n "+fs.Namespace+" upgrade resume "+fs.Name))
	}
	return out.String()
}

// pauseCommand sets spec.updates.paused.
func (a *app) pauseCommand(name string, paused bool) *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:   name + " FILESYSTEM",
		Short: "Hold an upgrade, restarts and releases of nodes (spec.updates.paused)",
		Long: name + ` sets spec.updates.paused. While it is true, no running daemon is restarted, no node is released for maintenance, and an
upgrade neither starts nor continues. Daemons that are down are started nevertheless. If a GitOps tool writes the FileSystem, change its
source instead: it would set the field back.`,
		Example: "  kubectl pfs upgrade " + name + " scratch --dry-run\n  kubectl pfs upgrade " + name + " scratch",
		Args:    exactly("FILESYSTEM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			fs, err := c.fileSystem(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if fs.Spec.Updates.Paused == paused {
				cmd.PrintErrf("spec.updates.paused of FileSystem %s is %t already.\n", fs.Name, paused)
				return nil
			}
			err = c.setSpec(cmd, fs, map[string]any{"updates": map[string]any{"paused": paused}}, dry)
			if apierrors.IsConflict(err) {
				return fmt.Errorf("the FileSystem %s has changed since it was read, and was not patched: run the command again", fs.Name)
			}
			return err
		},
	}
	if !paused {
		cmd.Short = "Let an upgrade, restarts and releases of nodes go on (spec.updates.paused)"
	}
	dryRun(cmd, &dry)
	return cmd
}
