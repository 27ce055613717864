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
		Use: "target", Short: "Disks of a FileSystem: plan, approve, replace, remove",
		Long: `A disk of a FileSystem is a StorageTarget. Before its disk is formatted, the agent of the node writes a plan: the commands, and all
that they destroy. A person approves exactly this plan.`,
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	cmd.AddCommand(a.targetPlanCommand(), a.targetApproveCommand(), a.targetReplaceCommand(), a.targetRemoveCommand())
	return cmd
}

// waitingPlan is the plan of a target that waits for an approval, nil if none does.
func waitingPlan(t *v1alpha1.StorageTarget) *v1alpha1.TargetPlan {
	is, plan := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady), t.Status.Plan
	if is == nil || plan == nil || plan.Hash == "" || len(plan.Refusals) > 0 || t.DeletionTimestamp != nil ||
		t.Spec.FormatPolicy != v1alpha1.FormatApproved && !takesOver(t) ||
		is.Reason != v1alpha1.ReasonAwaitingApproval && is.Reason != v1alpha1.ReasonApprovalRefused {
		return nil
	}
	return plan
}

// takesOver is true for a target whose plan takes a disk over with its data from an owner that a person has named.
func takesOver(t *v1alpha1.StorageTarget) bool {
	named, found := t.Spec.TakeOverFrom, t.Status.FormerOwner
	return t.Status.Provisioned == nil && named != nil && found != nil && *named == *found
}

// approval is one decision about the disk of a target that waits for a person.
type approval struct {
	target *v1alpha1.StorageTarget
	hash   string
	// annotation takes the hash; empty for a plan that spec.approvedPlan approves.
	annotation string
	// loses lists what is lost, and does the steps.
	loses, does []string
	// keeps describes the result when nothing on the disk is destroyed.
	keeps string
	// asks is the question to the person, and isBlank is true for the format of a blank disk, which needs no name.
	asks    string
	isBlank bool
}

// isLossy is true for an approval that destroys data on a disk.
func (a *approval) isLossy() bool { return a.annotation == "" && len(a.loses) > 0 }

// approvalOf returns the decision that waits for a person; nil if none does.
func approvalOf(t *v1alpha1.StorageTarget) *approval {
	if plan := waitingPlan(t); plan != nil {
		out := &approval{target: t, hash: plan.Hash, loses: plan.Destroys, does: plan.Steps}
		switch {
		case takesOver(t):
			out.keeps, out.asks = "the disk is taken over with all of its data", "Take over the disk of "+t.Name+" with its data?"
		case len(plan.Destroys) == 0:
			out.keeps, out.isBlank = "the disk is blank", true
		}
		return out
	}
	hash := wordOf(t.Status.Conditions, v1alpha1.ConditionOnline, v1alpha1.AnnotationReplaceDisk)
	if hash != "" && isReplaced(t) && t.Annotations[v1alpha1.AnnotationReplaceDisk] != hash {
		does, _, _ := strings.Cut(messageOf(t.Status.Conditions, v1alpha1.ConditionOnline), ". Approve: ")
		return &approval{
			target: t, hash: hash, annotation: v1alpha1.AnnotationReplaceDisk, does: []string{does},
			loses: []string{"the lost disk: its number goes to another disk, and it is never used again, even if it comes back"},
			asks:  "Replace the disk of " + t.Name + "?",
		}
	}
	if is := t.Status.NewDevice; is != nil && t.Annotations[v1alpha1.AnnotationAcceptDevice] != is.Hash {
		return &approval{
			target: t, hash: is.Hash, annotation: v1alpha1.AnnotationAcceptDevice,
			does: []string{fmt.Sprintf("accept %s, %s, serial number %s, as the disk of this target from now on", is.Device.ID,
				bytesText(is.Device.SizeBytes), cmp.Or(is.Device.Serial, "none"))},
			keeps: "the UUID and the marker on the disk agree", asks: "Is it the same disk of " + t.Name + ", and not a copy?",
		}
	}
	return nil
}

// isReplaced is true for a target whose lost disk a person has asked to replace.
func isReplaced(t *v1alpha1.StorageTarget) bool {
	return t.Annotations[v1alpha1.AnnotationReplaceDisk] != ""
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
func planText(is *approval, steps bool) string {
	var out strings.Builder
	t := is.target
	d := t.Spec.Device
	out.WriteString(wrapped("", "    ", fmt.Sprintf("%s: %s on node %s, %s, serial number %s, now %s", t.Name, d.ID, t.Spec.Node,
		bytesText(d.SizeBytes), cmp.Or(d.Serial, "none"), cmp.Or(t.Status.KernelName, "?"))))
	if len(is.loses) == 0 {
		out.WriteString(wrapped("  loses    ", "           ", "nothing: "+is.keeps))
	}
	for _, lost := range is.loses {
		out.WriteString(wrapped("  LOSES    ", "           ", lost))
	}
	if steps || is.annotation != "" {
		for _, step := range is.does {
			out.WriteString(wrapped("  does     ", "           ", step))
		}
	}
	out.WriteString("  plan     " + printable(is.hash) + "\n")
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
can't be approved are listed with the reason. It also shows disks that are taken over from another FileSystem, replacements of lost
disks ("target replace"), and disks whose identity has changed.`,
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
	blank, lossy, others, refused := 0, 0, 0, 0
	for i := range targets {
		t := &targets[i]
		is := approvalOf(t)
		switch {
		case is != nil && is.isBlank:
			blank++
		case is != nil && is.isLossy():
			lossy++
		case is != nil:
			others++
		case t.Status.Plan != nil && t.Status.Provisioned == nil:
			refused++
			out.WriteString(wrapped("", "    ", t.Name+" can't be approved: "+saying(t.Status.Conditions, v1alpha1.ConditionReady)))
		case isReplaced(t):
			out.WriteString(wrapped("", "    ", t.Name+" has no plan to approve: "+saying(t.Status.Conditions, v1alpha1.ConditionOnline)))
		}
		if is != nil {
			out.WriteString(planText(is, true))
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
	if others > 0 {
		fmt.Fprintf(&out, "Disks to take over, to replace or to accept: %d. To approve one: %s TARGET\n", others, approve)
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
		Long: `approve shows the plan of each disk, asks, and then approves exactly the plans that it has shown. If a plan changes meanwhile, it
is not approved, and the command says so. The agent looks at each disk once more before it writes.

--all-blank and --selector approve blank disks only. A disk with data must be named, and what is on it is lost: a wiped disk can't be
restored. A disk to take over, a replacement of a lost disk, and a changed identity must be named as well. --yes does not ask. Except
for a blank disk, --yes needs --plan with the hash that "target plan" has printed.

The approval is spec.approvedPlan, or for a lost disk and for a changed identity the annotation
` + v1alpha1.AnnotationReplaceDisk + ` or ` + v1alpha1.AnnotationAcceptDevice + `.`,
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
	for _, one := range chosen {
		cmd.PrintErr(planText(one, false))
	}
	if !flags.yes && !flags.dry {
		question, word := questionAbout(chosen, lossy)
		cmd.PrintErrf("%s Type %q: ", question, word)
		answer, _ := bufio.NewReader(a.stdin).ReadString('\n') // a missing answer is not an approval
		if strings.TrimSpace(answer) != word {
			return errors.New("not approved. Nothing was changed")
		}
	}
	failed := 0
	for _, one := range chosen {
		if err := c.approveOne(cmd, one, flags.dry); err != nil {
			failed++
			cmd.PrintErrln(err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d plans were not approved; the reasons are above", failed, len(chosen))
	}
	return nil
}

// questionAbout returns the question about approvals, and the word that answers it with yes.
func questionAbout(chosen []*approval, lossy int) (question, word string) {
	var asks []string
	formats := 0
	for _, one := range chosen {
		if one.asks != "" {
			asks = append(asks, one.asks)
		} else {
			formats++
		}
	}
	word = "yes"
	switch {
	case lossy > 0:
		word = "destroy"
		asks = append(asks, fmt.Sprintf("Format these %d disks? What %d of them hold is LOST, and can't be restored.", formats, lossy))
	case formats > 0:
		asks = append(asks, fmt.Sprintf("Format these %d disks, which are blank?", formats))
	}
	return strings.Join(asks, " "), word
}

// approvable returns the approvals that may be given, and how many of these plans destroy data.
func approvable(targets []v1alpha1.StorageTarget, flags approveFlags) (chosen []*approval, lossy int, err error) {
	named := len(flags.which.names) > 0
	for i := range targets {
		t := &targets[i]
		is := approvalOf(t)
		switch {
		case is == nil && named:
			return nil, 0, fmt.Errorf("no plan of %s waits for an approval (%s). Nothing was changed", t.Name, whyNoPlan(t))
		case is == nil || !is.isBlank && !named:
			continue
		case flags.plan != "" && flags.plan != is.hash:
			return nil, 0, fmt.Errorf("the plan of %s is %s now, and not %s. Look at it again. Nothing was changed", t.Name, is.hash, flags.plan)
		case is.isLossy() && flags.yes && flags.plan == "":
			return nil, 0, fmt.Errorf("%s has data that would be lost. With --yes, name the plan that you have read: --plan %s. Nothing was changed",
				t.Name, is.hash)
		case !is.isBlank && flags.yes && flags.plan == "":
			return nil, 0, fmt.Errorf("the plan of %s is not about a blank disk. With --yes, name the plan that you have read: --plan %s. "+
				"Nothing was changed", t.Name, is.hash)
		}
		if is.isLossy() {
			lossy++
		}
		chosen = append(chosen, is)
	}
	return chosen, lossy, nil
}

// whyNoPlan returns the reason why no plan of a target can be approved.
func whyNoPlan(t *v1alpha1.StorageTarget) string {
	if isReplaced(t) {
		return cmp.Or(saying(t.Status.Conditions, v1alpha1.ConditionOnline), "the operator has not answered yet")
	}
	return cmp.Or(saying(t.Status.Conditions, v1alpha1.ConditionReady), "its agent has not looked at the disk yet")
}

// approveOne approves a plan as it was shown. The API server refuses the patch of an object that has changed since it was read. If only
// another part of it has changed, such as a time, the same plan is approved at the new version.
func (c connection) approveOne(cmd *cobra.Command, shown *approval, dry bool) error {
	t, name := shown.target.DeepCopy(), shown.target.Name
	const attempts = 5
	for range attempts {
		err := c.giveApproval(cmd, t, shown, dry)
		if !apierrors.IsConflict(err) {
			return err
		}
		fresh := &v1alpha1.StorageTarget{}
		if err := c.Get(cmd.Context(), client.ObjectKeyFromObject(t), fresh); err != nil {
			return fmt.Errorf("read the StorageTarget %s again: %w", name, err)
		}
		is := approvalOf(fresh)
		if fresh.UID != shown.target.UID || is == nil || is.hash != shown.hash || is.annotation != shown.annotation ||
			!slices.Equal(is.loses, shown.loses) {
			return fmt.Errorf("%s: its plan has changed since it was shown, so it was not approved; look at it again", name)
		}
		t = fresh
	}
	return fmt.Errorf("%s: the object changes all the time, so its plan was not approved; try again", name)
}

// giveApproval writes an approval to an object that must not have changed since it was read.
func (c connection) giveApproval(cmd *cobra.Command, t *v1alpha1.StorageTarget, is *approval, dry bool) error {
	if is.annotation != "" {
		return c.sayOfExactly(cmd, t, "StorageTarget", words{is.annotation: &is.hash}, dry)
	}
	return c.setSpec(cmd, t, map[string]any{"approvedPlan": is.hash}, dry)
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

func (a *app) targetReplaceCommand() *cobra.Command {
	dry, back := false, false
	cmd := &cobra.Command{
		Use:   "replace FILESYSTEM TARGET [--withdraw]",
		Short: "Ask for the plan that puts another disk in the place of a lost one of a mirrored pool",
		Long: `replace is for a dead disk of a mirrored pool whose filesystem can't take a disk out. It asks the operator for a plan, and changes
nothing on a disk. By the plan, another disk of the same node gets the number of the lost one, and everything is copied to it. Pull the
dead disk, and put in an empty one. Then "target plan" shows the plan, and "target approve" approves it.

--withdraw withdraws the request before the approval; the new disk then becomes one more target.`,
		Example: `  kubectl pfs target replace scratch scratch-ssd-oss2-0f1e2d3c
  kubectl pfs target plan scratch scratch-ssd-oss2-0f1e2d3c
  kubectl pfs target approve scratch scratch-ssd-oss2-0f1e2d3c`,
		Args: exactly("FILESYSTEM", "TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			targets, err := c.targetsOf(cmd, args[0], choice{names: args[1:]})
			if err != nil {
				return err
			}
			word := v1alpha1.ReplacePlan
			said := words{v1alpha1.AnnotationReplaceDisk: &word}
			if back {
				said[v1alpha1.AnnotationReplaceDisk] = nil
			}
			err = c.sayOfExactly(cmd, &targets[0], "StorageTarget", said, dry)
			if apierrors.IsConflict(err) {
				return fmt.Errorf("the StorageTarget %s has changed since it was read, and was not patched: run the command again", targets[0].Name)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&back, "withdraw", false, "withdraw the request")
	dryRun(cmd, &dry)
	return cmd
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
