package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
)

type recoverFlags struct {
	plan, withdraw, dry bool
	from, approve       string
}

func (a *app) recoverCommand() *cobra.Command {
	var flags recoverFlags
	cmd := &cobra.Command{
		Use:   "recover FILESYSTEM [--plan | --approve HASH | --withdraw]",
		Short: "Lost metadata: ask for a plan, see it, approve exactly that",
		Long: `recover is for a FileSystem whose metadata is lost for good. It goes in three steps, and nothing happens by itself:

  1. --plan asks the operator what there is: each copy of the metadata, with its version, its time and what joined later.
     Nothing is changed by that.
  2. Without a flag, recover shows what was found, what would be used, what would be lost, and the hash of that plan.
  3. --approve HASH has exactly this plan carried out. A hash of another plan is refused.

--from names the candidate to use where it is not the newest one, together with --plan or alone; the hash is another one then.
--withdraw takes all words back, which stops a recovery until the new metadata is on record. What there is, is only read: no copy is
changed or removed.

The annotations are ` + v1alpha1.AnnotationRecoverMetadata + ` and ` + v1alpha1.AnnotationRecoverFrom + `.`,
		Example: `  kubectl pfs recover scratch --plan
  kubectl pfs recover scratch
  kubectl pfs recover scratch --from backup-in-vault-20261123-020000
  kubectl pfs recover scratch --approve 5d0c91e2 --dry-run
  kubectl pfs recover scratch --approve 5d0c91e2`,
		Args: exactly("FILESYSTEM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			plans := flags.plan || flags.from != ""
			if flags.approve != "" && (plans || flags.withdraw) || flags.withdraw && plans {
				return usage(errors.New("--plan, --approve and --withdraw exclude each other, and --from goes with --plan only"))
			}
			return a.recover(cmd, args[0], flags)
		},
	}
	cmd.Flags().BoolVar(&flags.plan, "plan", false, "ask for a plan, or for a new one")
	cmd.Flags().StringVar(&flags.from, "from", "", "the candidate to use")
	cmd.Flags().StringVar(&flags.approve, "approve", "", "the hash of the plan that is to be carried out")
	cmd.Flags().BoolVar(&flags.withdraw, "withdraw", false, "take back what was asked for")
	dryRun(cmd, &flags.dry)
	return cmd
}

func (a *app) recover(cmd *cobra.Command, name string, flags recoverFlags) error {
	c, err := a.connect(a.cluster)
	if err != nil {
		return err
	}
	fs, err := c.fileSystem(cmd.Context(), name)
	if err != nil {
		return err
	}
	said := words{}
	plan := v1alpha1.RecoverPlan
	r := fs.Status.Recovery
	switch {
	case flags.withdraw:
		said = words{v1alpha1.AnnotationRecoverMetadata: nil, v1alpha1.AnnotationRecoverFrom: nil}
	case flags.approve != "":
		if r == nil || r.PlanHash == "" {
			return errors.New("there is no plan to approve: ask for one with --plan, and look at it. Nothing was changed." + because(fs))
		}
		if flags.approve != r.PlanHash {
			return fmt.Errorf("%q is not the hash of the plan, which is %s now: look at it with kubectl pfs -n %s recover %s. Nothing was changed",
				flags.approve, r.PlanHash, c.namespace, name)
		}
		if err := showRecovery(cmd.ErrOrStderr(), fs); err != nil {
			return err
		}
		cmd.PrintErrln("Approved is exactly this. What was changed after the copy that is used is lost.")
		said[v1alpha1.AnnotationRecoverMetadata] = &flags.approve
	case flags.plan || flags.from != "":
		cmd.PrintErrln("Ready of the FileSystem: " + cmp.Or(saying(fs.Status.Conditions, v1alpha1.ConditionReady), "nothing yet"))
		cmd.PrintErrln("A plan is asked for: copies of the metadata are read, and nothing is changed. While the metadata is served, there is no plan.")
		said[v1alpha1.AnnotationRecoverMetadata] = &plan
		if flags.from != "" {
			said[v1alpha1.AnnotationRecoverFrom] = &flags.from
		}
	default:
		return showRecovery(cmd.OutOrStdout(), fs)
	}
	return c.say(cmd, fs, "FileSystem", said, flags.dry)
}

// because returns the status's message about the recovery, after a space.
func because(fs *v1alpha1.FileSystem) string {
	if said := saying(fs.Status.Conditions, v1alpha1.ConditionRecovering); said != "" {
		return " " + said
	}
	return ""
}

// showRecovery shows the findings, and the status's message about them.
func showRecovery(out io.Writer, fs *v1alpha1.FileSystem) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	said, r := saying(fs.Status.Conditions, v1alpha1.ConditionRecovering), fs.Status.Recovery
	if said == "" {
		said = "Nobody has asked for a recovery. Ready of the FileSystem: " + cmp.Or(saying(fs.Status.Conditions, v1alpha1.ConditionReady), "nothing yet")
	}
	_, _ = fmt.Fprintln(w, said) // the writer keeps the error for Flush
	if r != nil && len(r.Candidates) > 0 {
		showCandidates(w, r)
	}
	if r != nil && r.PlanHash != "" && r.Approved == "" {
		_, _ = fmt.Fprintf(w, "\nTo approve exactly this: kubectl pfs -n %s recover %s --approve %s\n", fs.Namespace, fs.Name, r.PlanHash) // as above
	}
	return w.Flush()
}

// showCandidates shows the sources from which the metadata could be recovered. Only some filesystems can show their content.
func showCandidates(w io.Writer, r *v1alpha1.RecoveryStatus) {
	has := slices.ContainsFunc(r.Candidates, func(c v1alpha1.RecoveryCandidate) bool { return c.Has != "" })
	row := func(name, version, at, used, what, lacks, whyNot string) {
		columns := []string{name, version, at, used, what, lacks, whyNot}
		if !has {
			columns = slices.Delete(columns, 4, 5)
		}
		_, _ = fmt.Fprintln(w, strings.Join(columns, "\t")) // the writer keeps the error for Flush
	}
	row("\nCANDIDATE", "VERSION", "TIME", "USED", "HAS", "LACKS", "WHY NOT")
	for _, candidate := range r.Candidates {
		version, at, used := "", "", ""
		if candidate.Version != 0 {
			version = fmt.Sprint(candidate.Version)
		}
		if candidate.Time != nil {
			at = candidate.Time.UTC().Format(time.RFC3339)
		}
		if candidate.Name == r.From {
			used = "yes"
		}
		row(candidate.Name, version, at, used, candidate.Has, candidate.Lacks, candidate.Message)
	}
}
