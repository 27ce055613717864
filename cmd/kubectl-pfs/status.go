package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// overview is the state of one FileSystem for the command status.
type overview struct {
	judgment
	Type    v1alpha1.FileSystemType    `json:"type"`
	Version string                     `json:"version,omitempty"`
	Counts  v1alpha1.FileSystemSummary `json:"counts"`
	Pools   []poolLevel                `json:"pools,omitempty"`
	Disks   []diskTrouble              `json:"disks,omitempty"`
	// Chosen lists the values that the operator chose because the spec has none.
	Chosen  []string `json:"chosen,omitempty"`
	Missing []string `json:"missing,omitempty"`
	Now     []string `json:"now,omitempty"`
	Waits   []errand `json:"waits,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// poolLevel is the usage of a storage pool.
type poolLevel struct {
	Name     string `json:"name"`
	Targets  string `json:"targets"`
	Used     string `json:"used"`
	Capacity string `json:"capacity"`
	// Percent is the used part; nil while its capacity is unknown.
	Percent *int64 `json:"percent,omitempty"`
	// Spread is the usage of the emptiest and the fullest target.
	Spread string `json:"spread,omitempty"`
}

// diskTrouble is a StorageTarget that does not serve.
type diskTrouble struct {
	Name   string        `json:"name"`
	Node   string        `json:"node"`
	Device string        `json:"device"`
	Role   v1alpha1.Role `json:"role"`
	State  string        `json:"state"`
	Why    string        `json:"why"`
}

// errand is a task that only a person can do, with the command to type.
type errand struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty"`
}

// reportOf computes the state of a FileSystem from its objects.
func reportOf(fs *v1alpha1.FileSystem, targets []v1alpha1.StorageTarget, nodes []v1alpha1.FileSystemNode, now time.Time) overview {
	out := overview{judgment: judge(fs), Type: fs.Spec.Type, Version: cmp.Or(fs.Status.Version, fs.Spec.Version)}
	if s := fs.Status.Summary; s != nil {
		out.Counts = *s
	}
	for _, p := range fs.Status.StoragePools {
		out.Pools = append(out.Pools, levelOf(p))
	}
	targets = slices.Clone(targets)
	slices.SortFunc(targets, func(a, b v1alpha1.StorageTarget) int { return cmp.Compare(a.Name, b.Name) })
	for i := range targets {
		if trouble := troubleOf(&targets[i]); trouble != nil {
			out.Disks = append(out.Disks, *trouble)
		}
	}
	for _, m := range fs.Status.Missing {
		if m.Kind != v1alpha1.TargetMember || !slices.ContainsFunc(out.Disks, func(d diskTrouble) bool { return d.Name == m.Name }) {
			out.Missing = append(out.Missing, strings.TrimSpace(strings.ToLower(string(m.Kind))+" "+m.Name)+" on node "+m.Node+": "+m.Message)
		}
	}
	out.Now = happening(fs, targets, now)
	out.Waits = waiting(fs, targets, nodes)
	out.Remarks = remarks(fs)
	out.Chosen = chosen(fs)
	return out
}

// chosen lists the values that the operator chose because the spec has none, each with its field.
func chosen(fs *v1alpha1.FileSystem) []string {
	var out []string
	if c := fs.Status.Chosen; c != nil {
		say := func(chose bool, field string, value any) {
			if chose {
				out = append(out, fmt.Sprintf("%s: %v", field, value))
			}
		}
		say(c.Version != "", "version", c.Version)
		say(c.Copies != 0, "storagePools[].copies", c.Copies)
		say(c.DefaultStoragePool != "", "defaultStoragePool", c.DefaultStoragePool)
		own := strings.ToLower(string(fs.Spec.Type)) // the member of the spec for this type
		say(c.BasePort != 0, own+".basePort", c.BasePort)
		say(len(c.Metaloggers) > 0, own+".metaloggers", strings.Join(c.Metaloggers, ", "))
		say(c.MetadataWorkersPerCore != 0, "worker threads for each core of a metadata server", c.MetadataWorkersPerCore)
	}
	if fs.Status.MountPath != "" && (fs.Spec.Clients == nil || fs.Spec.Clients.MountPath == "") {
		out = append(out, "clients.mountPath: "+fs.Status.MountPath)
	}
	return out
}

// levelOf returns the usage of a pool.
func levelOf(p v1alpha1.StoragePoolStatus) poolLevel {
	out := poolLevel{Name: p.Name, Targets: p.Targets, Used: p.Used, Capacity: p.Capacity}
	if p.CapacityBytes > 0 {
		percent := int64(float64(p.UsedBytes)/float64(p.CapacityBytes)*100 + 0.5)
		out.Percent = &percent
	}
	if f := p.Fullness; f != nil {
		out.Spread = fmt.Sprintf("%d to %d %%", f.EmptiestPercent, f.FullestPercent)
	}
	return out
}

// troubleOf returns why a target does not serve, or what its disk reports about itself. It is nil for a healthy target.
func troubleOf(t *v1alpha1.StorageTarget) *diskTrouble {
	out := &diskTrouble{Name: t.Name, Node: t.Spec.Node, Device: string(t.Spec.Device.ID), Role: t.Spec.Role}
	ready := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady)
	online := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionOnline)
	health := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionDiskHealthy)
	switch {
	case ready == nil:
		out.State, out.Why = "New", "the agent of the node has not looked at the disk yet"
	case ready.Status != metav1.ConditionTrue:
		out.State, out.Why = ready.Reason, ready.Message
	case online != nil && online.Status != metav1.ConditionTrue:
		out.State, out.Why = cmp.Or(online.Reason, "Offline"), online.Message
	case t.Status.Service != nil && t.Status.Service.Message != "":
		out.State, out.Why = string(t.Status.Service.State), t.Status.Service.Message
	case health != nil && health.Status == metav1.ConditionFalse:
		out.State, out.Why = health.Reason, health.Message
	default:
		return nil
	}
	return out
}

// happening lists the changes that are in progress, with their start if it is recorded.
func happening(fs *v1alpha1.FileSystem, targets []v1alpha1.StorageTarget, now time.Time) []string {
	var out []string
	since := func(t metav1.Time) string { return " (since " + duration.HumanDuration(now.Sub(t.Time)) + ")" }
	if fs.DeletionTimestamp != nil {
		out = append(out, "The FileSystem is being deleted"+since(*fs.DeletionTimestamp)+".")
	}
	for _, kind := range []string{
		v1alpha1.ConditionReconciling, v1alpha1.ConditionUpgrading, v1alpha1.ConditionRecovering, v1alpha1.ConditionChangesHeld,
	} {
		is := meta.FindStatusCondition(fs.Status.Conditions, kind)
		if is == nil || is.Status != metav1.ConditionTrue {
			continue
		}
		if said := is.Reason + ": " + is.Message; !slices.ContainsFunc(out, func(s string) bool { return strings.HasPrefix(s, said) }) {
			out = append(out, said+since(is.LastTransitionTime))
		}
	}
	for _, m := range fs.Status.Maintenance {
		switch {
		case m.LimitPassed:
			out = append(out, "The maintenance of node "+m.Node+" has lasted longer than its limit"+since(m.Since)+".")
		case m.Ended != nil:
			out = append(out, "The maintenance of node "+m.Node+" has ended; the node is still cordoned, or its servers are coming back.")
		default:
			out = append(out, "Node "+m.Node+" is in maintenance"+since(m.Since)+".")
		}
	}
	for i := range targets {
		t := &targets[i]
		safe := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
		if t.Spec.Remove && !safe {
			left := ""
			if s := t.Status.Service; s != nil && s.CapacityBytes > 0 {
				left = fmt.Sprintf(", %d %% full", s.UsedBytes*100/s.CapacityBytes)
			}
			out = append(out, "Target "+t.Name+" is being emptied"+left+". "+messageOf(t.Status.Conditions, v1alpha1.ConditionSafeToRemove))
		}
	}
	if check := fs.Status.Check; check != nil && check.Result == v1alpha1.CheckRunning {
		out = append(out, "A check for damage runs"+since(check.Started)+". "+check.Message)
	}
	if asked := fs.Status.BackupAsked; asked != nil {
		out = append(out, "A backup was asked for ("+asked.Request+")"+since(asked.Since)+".")
	}
	return out
}

// messageOf is the message of a condition, empty without it.
func messageOf(all []metav1.Condition, kind string) string {
	if is := meta.FindStatusCondition(all, kind); is != nil {
		return is.Message
	}
	return ""
}

// waiting lists the tasks of a person, each with its command.
func waiting(fs *v1alpha1.FileSystem, targets []v1alpha1.StorageTarget, nodes []v1alpha1.FileSystemNode) []errand {
	var out []errand
	pfs := "kubectl pfs -n " + fs.Namespace + " "
	plans, lossy := 0, 0
	for i := range targets {
		if plan := waitingPlan(&targets[i]); plan != nil {
			plans++
			if len(plan.Destroys) > 0 {
				lossy++
			}
		}
	}
	if plans > 0 {
		out = append(out, errand{fmt.Sprintf("Plans of disks that wait for an approval: %d. Plans among them that destroy data: %d.", plans, lossy), pfs + "target plan " + fs.Name})
	}
	out = append(out, waitingTargets(fs, targets)...)
	for i := range nodes {
		out = append(out, waitingNode(fs, &nodes[i])...)
	}
	for _, rule := range []struct {
		kind    string
		reasons []string
		command string
	}{
		{v1alpha1.ConditionRecovering, []string{v1alpha1.ReasonRecoveryChoice, v1alpha1.ReasonRecoveryApproval, v1alpha1.ReasonRecoveryRefused,
			v1alpha1.ReasonRecoveryFailed}, pfs + "recover " + fs.Name},
		{v1alpha1.ConditionUpgrading, []string{v1alpha1.ReasonUpgradeRefused, v1alpha1.ReasonBackupMissing, v1alpha1.ReasonVersionSkew},
			pfs + "upgrade plan " + fs.Name},
	} {
		is := meta.FindStatusCondition(fs.Status.Conditions, rule.kind)
		if is != nil && is.Status != metav1.ConditionTrue && slices.Contains(rule.reasons, is.Reason) {
			out = append(out, errand{is.Reason + ": " + is.Message, rule.command})
		}
	}
	if is := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionStalled); is != nil && is.Status == metav1.ConditionTrue {
		out = append(out, errand{What: is.Reason + ": " + is.Message})
	}
	if fs.Spec.Updates.Paused {
		out = append(out, errand{"Changes are paused: no daemon is restarted, no node is released, and no upgrade goes on.", pfs + "upgrade resume " + fs.Name})
	}
	return out
}

// waitingTargets lists the tasks of a person for single disks.
func waitingTargets(fs *v1alpha1.FileSystem, targets []v1alpha1.StorageTarget) []errand {
	var out []errand
	for i := range targets {
		t := &targets[i]
		if is := t.Status.NewDevice; is != nil {
			out = append(out, errand{
				fmt.Sprintf("Target %s is on a disk with another identity: %s, serial number %q. Check that it is the same disk, and not a copy.",
					t.Name, is.Device.ID, is.Device.Serial),
				fmt.Sprintf("kubectl pfs -n %s target approve %s %s", fs.Namespace, fs.Name, t.Name),
			})
		}
		if is := approvalOf(t); is != nil && is.annotation == v1alpha1.AnnotationReplaceDisk {
			out = append(out, errand{
				fmt.Sprintf("Another disk can replace the lost one of target %s.", t.Name),
				fmt.Sprintf("kubectl pfs -n %s target approve %s %s", fs.Namespace, fs.Name, t.Name),
			})
		}
		is := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
		if is == nil || !t.Spec.Remove {
			continue
		}
		switch {
		case is.Status == metav1.ConditionTrue && t.DeletionTimestamp == nil:
			out = append(out, errand{
				fmt.Sprintf("Target %s is empty. Take its disk %s on node %s out of the spec of the FileSystem.", t.Name, t.Spec.Device.ID, t.Spec.Node),
				fmt.Sprintf("kubectl -n %s edit filesystem %s", fs.Namespace, fs.Name),
			})
		case is.Reason == v1alpha1.ReasonClientsMounted:
			out = append(out, errand{
				fmt.Sprintf("Target %s can be emptied only while nothing writes. Stop all programs that write, then promise it.", t.Name),
				fmt.Sprintf("kubectl pfs -n %s target remove %s %s --writers-stopped", fs.Namespace, fs.Name, t.Name),
			})
		}
	}
	return out
}

// waitingNode lists the tasks of a person for a node.
func waitingNode(fs *v1alpha1.FileSystem, n *v1alpha1.FileSystemNode) []errand {
	var out []errand
	pfs := "kubectl pfs -n " + fs.Namespace + " node "
	given := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionGivenUp)
	if given != nil && given.Reason == v1alpha1.ReasonLossNotAccepted {
		out = append(out, errand{"Node " + n.Spec.Node + " never comes back, and data is lost with it.",
			pfs + "accept-loss " + fs.Name + " " + n.Spec.Node})
	}
	is := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionMaintenance)
	switch {
	case is == nil:
	case is.Reason == v1alpha1.ReasonMaintenanceNotAllowed:
		waits, _, _ := strings.Cut(is.Message, " To release it anyway")
		out = append(out, errand{"Node " + n.Spec.Node + " is cordoned, and the filesystem needs it: " + waits,
			pfs + "allow-maintenance " + fs.Name + " " + n.Spec.Node})
	case is.Reason == v1alpha1.ReasonMaintenanceTooLong:
		out = append(out, errand{"The maintenance of node " + n.Spec.Node + " has lasted too long. Bring the node back.",
			"kubectl uncordon " + n.Spec.Node})
	}
	return out
}

// remarks lists facts that are not problems, but that a person should have.
func remarks(fs *v1alpha1.FileSystem) []string {
	var out []string
	for _, kind := range []string{v1alpha1.ConditionEvaluationOnly, v1alpha1.ConditionNodeImageWaits} {
		if is := meta.FindStatusCondition(fs.Status.Conditions, kind); is != nil && is.Status == metav1.ConditionTrue {
			out = append(out, is.Reason+": "+is.Message)
		}
	}
	is := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionBackedUp)
	if is != nil && (is.Reason == v1alpha1.ReasonBackupsNotConfigured || is.Reason == v1alpha1.ReasonBackupPending) {
		out = append(out, "Backups: "+is.Message)
	}
	if fs.Status.ObservedGeneration < fs.Generation {
		out = append(out, "The operator has not handled the newest change of the spec yet.")
	}
	return out
}

// render formats the report as one screen.
func (r *overview) render() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s   %s %s   %s\n", r.Namespace, r.Name, r.Type, cmp.Or(r.Version, "?"), r.Health)
	out.WriteString(wrapped("  ", "  ", r.Sentence))
	for _, problem := range r.Problems[min(1, len(r.Problems)):] {
		out.WriteString(wrapped("  also ", "       ", problem))
	}
	c := r.Counts
	fmt.Fprintf(&out, "\nServers %s online   targets %s online   clients %s mounted   used %s of %s\n",
		of(c.Servers), of(c.Targets), of(c.Clients), cmp.Or(c.Used, "?"), cmp.Or(c.Capacity, "?"))
	if len(r.Pools) > 0 {
		var rows [][]string
		for _, p := range r.Pools {
			rows = append(rows, []string{p.Name, cmp.Or(p.Targets, "?"), levelBar(p.Percent), cmp.Or(p.Used, "?"),
				cmp.Or(p.Capacity, "?"), cmp.Or(p.Spread, "-")})
		}
		out.WriteString("\n" + table([]column{{"POOL", 24}, {"TARGETS", 9}, {"FULL", 28}, {"USED", 10}, {"CAPACITY", 10},
			{"EACH TARGET", 12}}, rows))
	}
	r.renderDisks(&out)
	section(&out, "Not online", r.Missing)
	section(&out, "Now", r.Now)
	if len(r.Waits) > 0 {
		out.WriteString("\nWaits for a person\n")
		for i, w := range r.Waits {
			if i == mostItems {
				fmt.Fprintf(&out, "  and %d more; see -o yaml\n", len(r.Waits)-i)
				break
			}
			out.WriteString(wrapped("  - ", "    ", w.What))
			if w.Command != "" {
				out.WriteString("      " + w.Command + "\n") // a command is never wrapped, so that it can be copied
			}
		}
	}
	section(&out, "Remarks", r.Remarks)
	section(&out, "Chosen by the operator, because the spec says nothing", r.Chosen)
	return out.String()
}

// mostItems bounds each list of a screen; -o yaml has all.
const mostItems = 8

func (r *overview) renderDisks(out *strings.Builder) {
	if len(r.Disks) == 0 {
		return
	}
	var rows [][]string
	for _, d := range r.Disks[:min(mostItems, len(r.Disks))] {
		rows = append(rows, []string{d.Name, d.Node, string(d.Role), d.State, d.Why})
	}
	fmt.Fprintf(out, "\nDisks that do not serve: %d\n", len(r.Disks))
	out.WriteString(table([]column{{"TARGET", 36}, {"NODE", 20}, {"ROLE", 10}, {"STATE", 18}, {"WHY", 0}}, rows))
	if more := len(r.Disks) - mostItems; more > 0 {
		fmt.Fprintf(out, "and %d more; see kubectl pfs -n %s disks\n", more, r.Namespace)
	}
}

// section is a list with a title, nothing if it is empty.
func section(out *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	out.WriteString("\n" + title + "\n")
	for i, item := range items {
		if i == mostItems {
			fmt.Fprintf(out, "  and %d more; see -o yaml\n", len(items)-i)
			return
		}
		out.WriteString(wrapped("  - ", "    ", item))
	}
}

// of writes a count such as "3/4" in words.
func of(count string) string {
	if have, all, ok := strings.Cut(count, "/"); ok {
		return have + " of " + all
	}
	return cmp.Or(count, "?")
}

// levelBar draws a usage.
func levelBar(percent *int64) string {
	if percent == nil {
		return "?"
	}
	const width = 20
	full := int(min(max(*percent, 0), 100) * width / 100)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "] " + fmt.Sprintf("%3d %%", *percent)
}

func (a *app) statusCommand() *cobra.Command {
	var format, from string
	everywhere, follow, interval := false, false, 5*time.Second
	cmd := &cobra.Command{
		Use:   "status [FILESYSTEM]",
		Short: "One screen: is it well, what is wrong, what goes on, what do I have to do",
		Long: `status shows the state of a FileSystem on one screen: how well it is and why, how many servers, targets and clients are there, how
full its pools are, the disks that do not serve, what goes on now, and what waits for a person, with the command to type.

Without a name, it prints one line for each FileSystem. --watch shows the screen again every few seconds.`,
		Example: `  kubectl pfs status
  kubectl pfs status scratch
  kubectl pfs status scratch --watch
  kubectl pfs status scratch -o yaml
  kubectl pfs status scratch --from dump.tar.gz`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			if interval <= 0 {
				return usage(errors.New("--interval must be more than 0"))
			}
			if everywhere && len(args) > 0 {
				return usage(errors.New("--all-namespaces goes without a name"))
			}
			r, namespace, err := a.reader(from)
			if err != nil {
				return err
			}
			if everywhere {
				namespace = ""
			}
			look := func() error { return a.status(cmd, r, namespace, strings.Join(args, ""), format) }
			if !follow {
				return look()
			}
			return a.again(cmd, interval, look)
		},
	}
	outputFlag(cmd, &format)
	fromFlag(cmd, &from)
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "the FileSystems of all namespaces")
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "show it again until you stop it")
	cmd.Flags().DurationVar(&interval, "interval", interval, "time between two looks of --watch")
	return cmd
}

// atMostOne takes the name of a FileSystem, or none.
func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(fmt.Errorf("there are %d arguments, and at most one FileSystem can be named", len(args)))
	}
	return nil
}

// again polls until the context ends. A failed poll is printed, and the next one follows.
func (a *app) again(cmd *cobra.Command, interval time.Duration, look func() error) error {
	for first := true; ; first = false {
		if a.terminal {
			control(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
		}
		if err := look(); err != nil {
			if first {
				return err
			}
			cmd.PrintErrln(err)
		}
		if !a.wait(cmd.Context(), interval) {
			return nil
		}
	}
}

func (a *app) status(cmd *cobra.Command, r client.Reader, namespace, name, format string) error {
	var seen snapshot
	if name == "" {
		if err := seen.readFileSystems(cmd.Context(), r, namespace, ""); err != nil {
			return err
		}
		return printOverview(cmd, seen.fileSystems, namespace, format)
	}
	if err := seen.readFileSystem(cmd.Context(), r, namespace, name); err != nil {
		return err
	}
	state := reportOf(&seen.fileSystems[0], seen.targets, seen.nodes, a.now())
	if format != "" {
		return encode(cmd.OutOrStdout(), format, state)
	}
	_, err := io.WriteString(cmd.OutOrStdout(), state.render())
	return err
}

// printOverview prints one line for each FileSystem.
func printOverview(cmd *cobra.Command, all []v1alpha1.FileSystem, namespace, format string) error {
	slices.SortFunc(all, func(a, b v1alpha1.FileSystem) int { return cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	if format != "" {
		judgments := []judgment{}
		for i := range all {
			judgments = append(judgments, judge(&all[i]))
		}
		return encode(cmd.OutOrStdout(), format, judgments)
	}
	if len(all) == 0 {
		where := "in the namespace " + namespace
		if namespace == "" {
			where = "in any namespace"
		}
		cmd.PrintErrln("There is no FileSystem " + where + ".")
		return nil
	}
	var rows [][]string
	for i := range all {
		v, s := judge(&all[i]), v1alpha1.FileSystemSummary{}
		if all[i].Status.Summary != nil {
			s = *all[i].Status.Summary
		}
		used := cmp.Or(s.Used, "?") + "/" + cmp.Or(s.Capacity, "?")
		rows = append(rows, []string{v.Namespace + "/" + v.Name, string(all[i].Spec.Type), v.Health.String(), cmp.Or(s.Servers, "?"), cmp.Or(s.Targets, "?"),
			cmp.Or(s.Clients, "?"), used, v.Sentence})
	}
	_, err := io.WriteString(cmd.OutOrStdout(), table([]column{{"FILESYSTEM", 36}, {"TYPE", 8}, {"HEALTH", 8}, {"SERVERS", 9}, {"TARGETS", 11},
		{"CLIENTS", 9}, {"USED", 17}, {"WHY", 0}}, rows))
	return err
}
