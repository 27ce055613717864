package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) targetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "target", Short: "Disks of a FileSystem: plan, approve, remove",
		Long: `A disk of a FileSystem is a StorageTarget. Before its disk is formatted, the agent of the node writes a plan: the commands, and all
that they destroy. A person approves exactly this plan.`,
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(a.targetPlanCommand(), a.targetApproveCommand(), a.targetRemoveCommand())
	return cmd
}

// waitingPlan is the plan of a target that waits for an approval, nil if none does.
func waitingPlan(t *v1alpha1.StorageTarget) *v1alpha1.TargetPlan {
	is, plan := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady), t.Status.Plan
	if is == nil || plan == nil || plan.Hash == "" || len(plan.Refusals) > 0 || t.DeletionTimestamp != nil ||
		t.Spec.FormatPolicy != v1alpha1.FormatApproved ||
		is.Reason != v1alpha1.ReasonAwaitingApproval && is.Reason != v1alpha1.ReasonApprovalRefused {
		return nil
	}
	return plan
}

// choice selects the targets of a command.
type choice struct {
	names    []string
	selector string
	all      bool
}

// targetsOf reads the targets of a FileSystem that were chosen, in the order of their names. A name that no target has is an error.
func (c connection) targetsOf(cmd *cobra.Command, fileSystem string, which choice) ([]v1alpha1.StorageTarget, error) {
	fs, err := c.fileSystem(cmd.Context(), fileSystem)
	if err != nil {
		return nil, err
	}
	selected, err := klabels.Parse(which.selector)
	if err != nil {
		return nil, usage(fmt.Errorf("--selector: %w", err))
	}
	var seen snapshot
	if err := seen.readTargets(cmd.Context(), c, ofFileSystem(c.namespace, fileSystem)...); err != nil {
		return nil, err
	}
	var out []v1alpha1.StorageTarget
	for _, t := range seen.targets {
		named := slices.Contains(which.names, t.Name)
		switch {
		case t.Spec.FileSystem.Name != fs.Name || t.Spec.FileSystem.UID != string(fs.UID):
		case len(which.names) > 0 && !named, !selected.Matches(klabels.Set(t.Labels)):
		default:
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.StorageTarget) int { return cmp.Compare(a.Name, b.Name) })
	for _, name := range which.names {
		if !slices.ContainsFunc(out, func(t v1alpha1.StorageTarget) bool { return t.Name == name }) {
			return nil, fmt.Errorf("the FileSystem %s has no StorageTarget %q that was selected. Nothing was changed", fileSystem, name)
		}
	}
	return out, nil
}

// planText describes the changes to a disk, and all that is lost.
func planText(t *v1alpha1.StorageTarget, plan *v1alpha1.TargetPlan, steps bool) string {
	var out strings.Builder
	d := t.Spec.Device
	out.WriteString(wrapped("", "    ", fmt.Sprintf("%s: %s on node %s, %s, serial number %s, now %s", t.Name, d.ID, t.Spec.Node,
		bytesText(d.SizeBytes), cmp.Or(d.Serial, "none"), cmp.Or(t.Status.KernelName, "?"))))
	if len(plan.Destroys) == 0 {
		out.WriteString("  loses    nothing: the disk is blank\n")
	}
	for _, lost := range plan.Destroys {
		out.WriteString(wrapped("  LOSES    ", "           ", lost))
	}
	if steps {
		for _, step := range plan.Steps {
			out.WriteString(wrapped("  does     ", "           ", step))
		}
	}
	out.WriteString("  plan     " + printable(plan.Hash) + "\n")
	return out.String()
}

// bytesText formats a size as for disks: in powers of 1000.
func bytesText(n int64) string {
	const step, units = 1000, "kMGTP"
	value, unit := float64(n), ""
	for i := 0; value >= step && i < len(units); i++ {
		value, unit = value/step, string(units[i])
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + unit + "B"
}

func (a *app) targetPlanCommand() *cobra.Command {
	var which choice
	cmd := &cobra.Command{
		Use:   "plan FILESYSTEM [TARGET…]",
		Short: "Show what would be done to each disk that waits for an approval",
		Long: `plan prints, for each disk that waits, what is lost, the commands, and the hash of the plan. It changes nothing. Disks that
can't be approved are listed with the reason.`,
		Example: `  kubectl pfs target plan archive
  kubectl pfs target plan archive -l parallelfs.dev/node=oss3`,
		Args: atLeastFileSystem,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			which.names = args[1:]
			targets, err := c.targetsOf(cmd, args[0], which)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), plansText(c.namespace, args[0], targets))
			return err
		},
	}
	cmd.Flags().StringVarP(&which.selector, "selector", "l", "", "only targets with these labels")
	return cmd
}

// atLeastFileSystem takes the name of a FileSystem, and names of its targets.
func atLeastFileSystem(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(errors.New("name the FileSystem"))
	}
	return nil
}

// plansText shows the plans of all targets that wait, and why others can't be approved.
func plansText(namespace, fileSystem string, targets []v1alpha1.StorageTarget) string {
	var out strings.Builder
	blank, lossy, refused := 0, 0, 0
	for i := range targets {
		t := &targets[i]
		if plan := waitingPlan(t); plan != nil {
			out.WriteString(planText(t, plan, true))
			if len(plan.Destroys) > 0 {
				lossy++
			} else {
				blank++
			}
		} else if t.Status.Plan != nil && t.Status.Provisioned == nil {
			refused++
			out.WriteString(wrapped("", "    ", t.Name+" can't be approved: "+saying(t.Status.Conditions, v1alpha1.ConditionReady)))
		}
	}
	fmt.Fprintf(&out, "Disks that wait for an approval: %d blank, %d with data. Disks that can't be approved: %d.\n", blank, lossy, refused)
	approve := "kubectl pfs -n " + namespace + " target approve " + fileSystem
	if blank > 0 {
		out.WriteString("To approve all blank ones: " + approve + " --all-blank\n")
	}
	if lossy > 0 {
		out.WriteString("To approve one whose data is lost then: " + approve + " TARGET\n")
	}
	return out.String()
}

type approveFlags struct {
	which    choice
	plan     string
	yes, dry bool
}

func (a *app) targetApproveCommand() *cobra.Command {
	var flags approveFlags
	cmd := &cobra.Command{
		Use:   "approve FILESYSTEM (TARGET… | --all-blank | -l SELECTOR)",
		Short: "Approve the plans of disks, after showing what is lost",
		Long: `approve shows the plan of each disk, asks, and then approves exactly the plans that it has shown (spec.approvedPlan). If a plan
changes meanwhile, it is not approved, and the command says so. The agent looks at each disk once more before it writes.

--all-blank and --selector approve blank disks only. A disk with data must be named, and what is on it is lost: a wiped disk can't be
restored. --yes does not ask. For a disk with data, --yes needs --plan with the hash that "target plan" has printed.`,
		Example: `  kubectl pfs target approve archive --all-blank --dry-run
  kubectl pfs target approve archive --all-blank
  kubectl pfs target approve archive -l parallelfs.dev/node=oss3 --yes
  kubectl pfs target approve archive archive-oss3-0f1e2d3c --yes --plan sha256:…`,
		Args: func(cmd *cobra.Command, args []string) error {
			f := &flags
			switch {
			case len(args) == 0:
				return usage(errors.New("name the FileSystem"))
			case len(args) == 1 && !f.which.all && f.which.selector == "":
				return usage(errors.New("name targets, or use --all-blank or --selector"))
			case len(args) > 1 && (f.which.all || f.which.selector != ""):
				return usage(errors.New("names of targets, and --all-blank or --selector, exclude each other"))
			case f.plan != "" && len(args) != 2:
				return usage(errors.New("--plan goes with the name of one target"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.which.names = args[1:]
			return a.approve(cmd, args[0], flags)
		},
	}
	cmd.Flags().BoolVar(&flags.which.all, "all-blank", false, "all blank disks of the FileSystem that wait")
	cmd.Flags().StringVarP(&flags.which.selector, "selector", "l", "", "the blank disks whose StorageTargets have these labels")
	cmd.Flags().StringVar(&flags.plan, "plan", "", "the hash of the plan to approve; another one is refused")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "do not ask")
	dryRun(cmd, &flags.dry)
	return cmd
}

func (a *app) approve(cmd *cobra.Command, fileSystem string, flags approveFlags) error {
	c, err := a.connect(a.cluster)
	if err != nil {
		return err
	}
	targets, err := c.targetsOf(cmd, fileSystem, flags.which)
	if err != nil {
		return err
	}
	chosen, lossy, err := approvable(targets, flags)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return errors.New("no plan of these disks waits for an approval that this command may give; see kubectl pfs target plan. Nothing was changed")
	}
	for i := range chosen {
		cmd.PrintErr(planText(&chosen[i], chosen[i].Status.Plan, false))
	}
	word, question := "yes", fmt.Sprintf("Format these %d disks, which are blank?", len(chosen))
	if lossy > 0 {
		word, question = "destroy", fmt.Sprintf("Format these %d disks? What %d of them hold is LOST, and can't be restored.", len(chosen), lossy)
	}
	if !flags.yes && !flags.dry {
		cmd.PrintErrf("%s Type %q: ", question, word)
		answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // a missing answer is not an approval
		if strings.TrimSpace(answer) != word {
			return errors.New("not approved. Nothing was changed")
		}
	}
	failed := 0
	for i := range chosen {
		if err := c.approvePlan(cmd, &chosen[i], flags.dry); err != nil {
			failed++
			cmd.PrintErrln(err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d plans were not approved; the reasons are above", failed, len(chosen))
	}
	return nil
}

// approvable returns the targets whose shown plan may be approved, and how many of these plans destroy data.
func approvable(targets []v1alpha1.StorageTarget, flags approveFlags) (chosen []v1alpha1.StorageTarget, lossy int, err error) {
	named := len(flags.which.names) > 0
	for i := range targets {
		t := &targets[i]
		plan := waitingPlan(t)
		switch {
		case plan == nil && named:
			return nil, 0, fmt.Errorf("no plan of %s waits for an approval (%s). Nothing was changed", t.Name,
				cmp.Or(saying(t.Status.Conditions, v1alpha1.ConditionReady), "its agent has not looked at the disk yet"))
		case plan == nil || len(plan.Destroys) > 0 && !named:
			continue
		case flags.plan != "" && flags.plan != plan.Hash:
			return nil, 0, fmt.Errorf("the plan of %s is %s now, and not %s. Look at it again. Nothing was changed", t.Name, plan.Hash, flags.plan)
		case len(plan.Destroys) > 0 && flags.yes && flags.plan == "":
			return nil, 0, fmt.Errorf("%s has data that would be lost. With --yes, name the plan that you have read: --plan %s. Nothing was changed", t.Name, plan.Hash)
		}
		if len(plan.Destroys) > 0 {
			lossy++
		}
		chosen = append(chosen, *t)
	}
	return chosen, lossy, nil
}

// approvePlan approves the plan of a target as it was shown. The API server refuses the patch of an object that has changed since it was
// read. If only another part of it has changed, such as a time, the same plan is approved at the new version.
func (c connection) approvePlan(cmd *cobra.Command, shown *v1alpha1.StorageTarget, dry bool) error {
	hash := shown.Status.Plan.Hash
	t := shown.DeepCopy()
	const attempts = 5
	for range attempts {
		err := c.setSpec(cmd, t, map[string]any{"approvedPlan": hash}, dry)
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh := &v1alpha1.StorageTarget{}
		if err := c.Get(cmd.Context(), client.ObjectKeyFromObject(shown), fresh); err != nil {
			return fmt.Errorf("read the StorageTarget %s again: %w", shown.Name, err)
		}
		plan := waitingPlan(fresh)
		if fresh.UID != shown.UID || plan == nil || plan.Hash != hash || !slices.Equal(plan.Destroys, shown.Status.Plan.Destroys) {
			return fmt.Errorf("%s: its plan has changed since it was shown, so it was not approved; look at it again", shown.Name)
		}
		t = fresh
	}
	return fmt.Errorf("%s: the object changes all the time, so its plan was not approved; try again", shown.Name)
}

// setSpec sets fields of the spec of an object that must not have changed since it was read. With dry it prints the patch instead.
func (c connection) setSpec(cmd *cobra.Command, object client.Object, fields map[string]any, dry bool) error {
	kind := strings.ToLower(kindOf(object))
	asRead := map[string]any{"resourceVersion": object.GetResourceVersion(), "uid": object.GetUID()}
	patch, err := json.Marshal(map[string]any{"metadata": asRead, "spec": fields})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	said, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	if dry {
		cmd.PrintErrf("Nothing was changed. The patch of %s/%s would be:\n", kind, object.GetName())
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", patch)
		return err
	}
	if err := c.Patch(cmd.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("patch the %s %s/%s: %w", kind, c.namespace, object.GetName(), err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s/%s patched: %s\n", kind, object.GetName(), said)
	return err
}

// kindOf is the kind of an object that is patched; typed clients leave it empty.
func kindOf(object client.Object) string {
	if _, is := object.(*v1alpha1.StorageTarget); is {
		return "StorageTarget"
	}
	return "FileSystem"
}

func (a *app) targetRemoveCommand() *cobra.Command {
	dry, stopped, back := false, false, false
	cmd := &cobra.Command{
		Use:   "remove FILESYSTEM TARGET… [--writers-stopped | --withdraw]",
		Short: "Have the filesystem move the data of disks elsewhere, so that they can be taken out",
		Long: `remove asks the filesystem to move the data of disks elsewhere (spec.remove). No data is lost, and nothing is deleted. When a disk
is empty, its StorageTarget has the condition SafeToRemove, and "kubectl pfs status" says what to do next.

Some filesystems move files only while nothing writes to them: stop all programs that write, and promise it with --writers-stopped.
--withdraw sets both back, and the disk is used again.`,
		Example: `  kubectl pfs target remove archive archive-oss3-0f1e2d3c
  kubectl pfs target remove scratch scratch-oss1-4a5b6c7d --writers-stopped
  kubectl pfs target remove scratch scratch-oss1-4a5b6c7d --withdraw`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(errors.New("name the FileSystem and at least one of its targets"))
			}
			if stopped && back {
				return usage(errors.New("--writers-stopped and --withdraw exclude each other"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			targets, err := c.targetsOf(cmd, args[0], choice{names: args[1:]})
			if err != nil {
				return err
			}
			fields := map[string]any{"remove": !back}
			if back || stopped {
				fields["writersStopped"] = stopped
			}
			for i := range targets {
				t := &targets[i]
				used := "unknown"
				if s := t.Status.Service; s != nil && s.CapacityBytes > 0 {
					used = fmt.Sprintf("%s of %s", bytesText(s.UsedBytes), bytesText(s.CapacityBytes))
				}
				cmd.PrintErrf("%s: disk %s on node %s, used: %s. %s\n", t.Name, t.Spec.Device.ID, t.Spec.Node, used,
					messageOf(t.Status.Conditions, v1alpha1.ConditionSafeToRemove))
				err := c.setSpec(cmd, t, fields, dry)
				if apierrors.IsConflict(err) {
					return fmt.Errorf("the StorageTarget %s has changed since it was read, and was not patched: run the command again", t.Name)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&stopped, "writers-stopped", false, "promise that nothing writes to the filesystem until the disks are empty")
	cmd.Flags().BoolVar(&back, "withdraw", false, "use the disks again")
	dryRun(cmd, &dry)
	return cmd
}
