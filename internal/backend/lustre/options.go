package lustre

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// Options that say what is mounted where, who a target is, or that throw data or clients away. Each with why.
const (
	isOwned   = "the operator sets it itself"
	isPersons = "it throws away what clients have not written yet, which only a person may do, by hand"
	isAnswer  = "it does something at once, and is no setting"
)

// refusedTargetOptions are options of mount.lustre(8) for targets, by name.
var refusedTargetOptions = map[string]string{
	"abort_recov": isPersons, "abort_recovery": isPersons, "abort_recov_mdt": isPersons,
	"nosvc": isOwned, "nomgs": isOwned, "mgs": isOwned, "mgsnode": isOwned, "mgssec": isOwned, "svname": isOwned, "osd": isOwned,
	"writeconf": isOwned, "update": isOwned, "no_create": isOwned, "no_precreate": isOwned, "bind": isOwned, "remount": isOwned, "ro": isOwned,
	"loop": isOwned, "noauto": isOwned, "nofail": isOwned, "_netdev": isOwned,
	"skip_lfsck": "a check that was begun would not go on", "noscrub": "an index that is wrong would stay wrong",
}

// refusedClientOptions are options of mount.lustre(8) for clients, by name.
var refusedClientOptions = map[string]string{
	"exclude": "it hides OSTs, and programs find their files cut off", "bind": isOwned, "rbind": isOwned, "remount": isOwned, "move": isOwned,
	"loop": isOwned, "user": isOwned, "users": isOwned, "owner": isOwned, "nofail": isOwned, "noauto": isOwned, "_netdev": isOwned,
}

// RefusedTargetOptions are the mount options of targets that a person may not give, each as a sentence with the field.
func RefusedTargetOptions(field string, options []v1alpha1.LocalMountOption) []string {
	return refusedOptions(field, options, refusedTargetOptions)
}

func refusedOptions[T ~string](field string, options []T, refused map[string]string) []string {
	var out []string
	for _, o := range options {
		name, _, _ := strings.Cut(string(o), "=")
		if why, is := refused[name]; is {
			out = append(out, fmt.Sprintf("%s: %s is refused, because %s; remove it", field, name, why))
		}
	}
	return out
}

// refusedParameters are patterns of parameters (path.Match) that a person may not set for good, each with why.
var refusedParameters = []struct{ pattern, why string }{
	{"*.*.max_create_count", isOwned}, {"*.*.active", isOwned}, {"*.*.no_create", isOwned}, {"*.*.no_precreate", isOwned},
	{"*.*.degraded", isOwned},
	{"*.*.evict_client", isPersons}, {"*.*.abort_recovery", isPersons}, {"*.*.abort_recovery_mdt", isPersons},
	{"*.*.readonly", isOwned}, {"*.*.recovery_time_*", isOwned}, {"*.*.quota_slave*.enabled", isOwned}, {"*.*.identity_flush", isAnswer},
	{"*.*.force_sync", isAnswer}, {"*.*.lfsck_*", isAnswer}, {"*.*.*_stats", isAnswer}, {"*.*.stats", isAnswer},
}

// RefusedParameters are the parameters that a person may not set, by name, each as a sentence. A star of theirs stands for any device, so
// that it is refused when it could mean one that is.
func RefusedParameters(asked v1alpha1.LustreParameters) []string {
	var out []string
	for _, name := range backend.SortedKeys(asked) {
		for _, refused := range refusedParameters {
			if overlap(refused.pattern, name) {
				out = append(out, fmt.Sprintf("spec.lustre.parameters: %s is refused, because %s; remove it", name, refused.why))
				break
			}
		}
	}
	return out
}

// overlap is true when a pattern and a name that may have stars could mean the same parameter. They have as many parts.
func overlap(pattern, name string) bool {
	theirs, ours := strings.Split(name, "."), strings.Split(pattern, ".")
	if len(theirs) != len(ours) {
		return false
	}
	return !slices.ContainsFunc(ours, func(part string) bool {
		other := theirs[0]
		theirs = theirs[1:]
		return !meet(part, other)
	})
}

// meet is true when one of two parts of names matches the other, as lctl matches its stars; a refused part meets what has stars of its own.
func meet(one, other string) bool {
	for _, pair := range [][2]string{{one, other}, {other, one}} {
		if is, err := path.Match(pair[0], pair[1]); is || err != nil {
			return true
		}
	}
	before, _, starOne := strings.Cut(one, "*")
	also, _, starOther := strings.Cut(other, "*")
	return starOne && starOther && (strings.HasPrefix(before, also) || strings.HasPrefix(also, before))
}

// ParameterCommands set the parameters that are asked for, in the order of their names; they run on the MGS.
func ParameterCommands(asked v1alpha1.LustreParameters) [][]string {
	var out [][]string
	for _, name := range backend.SortedKeys(asked) {
		out = append(out, cli.SetParameter(name, string(asked[name])))
	}
	return out
}
