package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// health is the health of a FileSystem. The numbers are the exit codes of the command health, and those of a Nagios plugin.
type health int

// The kinds of health.
const (
	healthWell health = iota
	healthDegraded
	healthDown
	healthUnknown
)

// String is the word on a screen.
func (h health) String() string { return [...]string{"Well", "Degraded", "Down", "Unknown"}[h] }

// MarshalText returns the same word for a document.
func (h health) MarshalText() ([]byte, error) { return []byte(h.String()), nil } //nolint:unparam // encoding.TextMarshaler

// worse orders several FileSystems: one that is down is worse than one that is unknown.
func (h health) worse() int { return [...]int{0, 1, 3, 2}[h] }

// judgment is the health of a FileSystem with its reasons.
type judgment struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Health    health `json:"health"`
	// Sentence is the reason, in the words of the conditions.
	Sentence string `json:"sentence"`
	// Problems are the conditions that are bad, with the reason and message of each.
	Problems []string `json:"problems,omitempty"`
}

// badWhile lists the conditions that make a FileSystem degraded while they have this status, in the order of their weight.
var badWhile = []struct {
	kind   string
	status metav1.ConditionStatus
}{
	{v1alpha1.ConditionDegraded, metav1.ConditionTrue},
	{v1alpha1.ConditionPoolNearlyFull, metav1.ConditionTrue},
	{v1alpha1.ConditionStalled, metav1.ConditionTrue},
	{v1alpha1.ConditionReconciled, metav1.ConditionFalse},
	{v1alpha1.ConditionBackedUp, metav1.ConditionFalse},
	{v1alpha1.ConditionMetadataCopies, metav1.ConditionFalse},
	{v1alpha1.ConditionLicensed, metav1.ConditionFalse},
	{v1alpha1.ConditionUpgrading, metav1.ConditionFalse},
	{v1alpha1.ConditionNodesSelected, metav1.ConditionFalse},
	{v1alpha1.ConditionPodsAsAsked, metav1.ConditionFalse},
	{v1alpha1.ConditionCopiesLast, metav1.ConditionFalse},
	{v1alpha1.ConditionMountsShared, metav1.ConditionFalse},
	{v1alpha1.ConditionPartnersProven, metav1.ConditionFalse},
	{v1alpha1.ConditionCertificateLasts, metav1.ConditionFalse},
	{v1alpha1.ConditionPinned, metav1.ConditionFalse},
	{v1alpha1.ConditionSpread, metav1.ConditionFalse},
}

// judge computes the health of a FileSystem from its conditions.
func judge(fs *v1alpha1.FileSystem) judgment {
	out := judgment{Namespace: fs.Namespace, Name: fs.Name}
	conditions := fs.Status.Conditions
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		out.Health, out.Sentence = healthUnknown, "the operator has not reported anything about it yet; look whether the manager runs"
		return out
	case ready.Status == metav1.ConditionUnknown || ready.Status == metav1.ConditionFalse && ready.Reason == v1alpha1.ReasonProbeUnreachable:
		out.Health = healthUnknown
	case ready.Status == metav1.ConditionFalse:
		out.Health = healthDown
	}
	if out.Health != healthWell {
		out.Problems = append(out.Problems, ready.Reason+": "+ready.Message)
	}
	for _, bad := range badWhile {
		is := meta.FindStatusCondition(conditions, bad.kind)
		if is == nil || is.Status != bad.status || is.Reason == v1alpha1.ReasonBackupsNotConfigured || is.Reason == v1alpha1.ReasonBackupPending {
			continue
		}
		if said := is.Reason + ": " + is.Message; !slices.Contains(out.Problems, said) {
			out.Problems = append(out.Problems, said)
		}
		if out.Health == healthWell {
			out.Health = healthDegraded
		}
		if is.Reason == v1alpha1.ReasonPoolFull && out.Health != healthUnknown {
			out.Health = healthDown
		}
	}
	if check := fs.Status.Check; check != nil && check.Result == v1alpha1.CheckDamaged {
		when := check.Started.UTC().Format("2006-01-02 15:04")
		out.Problems = append(out.Problems, "Damaged: the check of "+when+" found damage. "+check.Message)
		if out.Health == healthWell {
			out.Health = healthDegraded
		}
	}
	out.Sentence = ready.Message
	if len(out.Problems) > 0 {
		out.Sentence = out.Problems[0]
	}
	return out
}

// unreadable is the error of a command whose requests failed; its exit code is that of an unknown health.
func unreadable(err error) error {
	return &exitError{int(healthUnknown), strings.TrimSuffix(err.Error(), "; see --help")}
}

func (a *app) healthCommand() *cobra.Command {
	var format, from string
	cmd := &cobra.Command{
		Use:   "health [FILESYSTEM]",
		Short: "The health of one FileSystem, or of all, as an exit code",
		Long: `health prints one line for each FileSystem, with the reason if it is not well. Its exit code is that of the worst one:

  0  well: programs can read and write all of their data, and nothing is missing
  1  degraded: programs can work, but something is missing, waits for a person, or soon will be bad
  2  down: programs can't read or write all of their data, or a pool is full
  3  unknown: the cluster, the FileSystem or its state can't be read, or the command line is wrong

These are the codes of a Nagios plugin. They are those of the conditions that the operator has written: if no manager runs, they are old.`,
		Example: `  kubectl pfs health scratch
  kubectl pfs health -n storage || mail -s "storage needs you" admin@example.org
  kubectl pfs health scratch -o json
  kubectl pfs health --from dump.tar.gz`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return unreadable(fmt.Errorf("there are %d arguments, and at most one FileSystem can be named; see --help", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(format); err != nil {
				return unreadable(err)
			}
			r, namespace, err := a.reader(from)
			if err != nil {
				return unreadable(err)
			}
			var seen snapshot
			if err := seen.readFileSystems(cmd.Context(), r, namespace, strings.Join(args, "")); err != nil {
				return unreadable(err)
			}
			return printHealth(cmd, &seen, namespace, format)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return unreadable(err) })
	outputFlag(cmd, &format)
	fromFlag(cmd, &from)
	return cmd
}

func printHealth(cmd *cobra.Command, seen *snapshot, namespace, format string) error {
	if len(seen.fileSystems) == 0 {
		return unreadable(fmt.Errorf("there is no FileSystem in the namespace %s; name another with --namespace", namespace))
	}
	judgments, worst := []judgment{}, healthWell
	for i := range seen.fileSystems {
		v := judge(&seen.fileSystems[i])
		judgments = append(judgments, v)
		if v.Health.worse() > worst.worse() {
			worst = v.Health
		}
	}
	slices.SortFunc(judgments, func(a, b judgment) int { return cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	if format != "" {
		if err := encode(cmd.OutOrStdout(), format, judgments); err != nil {
			return err
		}
	} else {
		for _, v := range judgments {
			_, err := fmt.Fprint(cmd.OutOrStdout(), wrapped("", "  ", fmt.Sprintf("%s/%s: %s. %s", v.Namespace, v.Name, v.Health, v.Sentence)))
			if err != nil {
				return err
			}
		}
	}
	if worst == healthWell {
		return nil
	}
	return &exitError{code: int(worst)}
}
