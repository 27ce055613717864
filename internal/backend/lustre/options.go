package lustre

import (
	"fmt"
	"path"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// Reasons to refuse an option: it changes what is mounted, where, or the identity of a target, or it discards data or clients. Each
// constant is one reason.
const (
	isOwned   = "the operator sets it itself"
	isPersons = "it throws away what clients have not written yet, which only a person may do, by hand"
	isAnswer  = "it does something at once, and is no setting"
)

// refusedTargetOptions are options of mount.lustre(8) and of the kernel (the table of lmd_parse) for targets, by name.
var refusedTargetOptions = map[string]string{
	"abort_recov": isPersons, "abort_recovery": isPersons, "abort_recov_mdt": isPersons, "abort_recovery_mdt": isPersons,
	"nosvc": isOwned, "nomgs": isOwned, "mgs": isOwned, "mgsnode": isOwned, "mgssec": isOwned, "svname": isOwned, "osd": isOwned,
	"param": isOwned, "network": isOwned, "device": isOwned, "noprimnode": isOwned, "virgin": isOwned, "nolocallogs": isOwned,
	"writeconf": isOwned, "update": isOwned, "no_create": isOwned, "no_precreate": isOwned, "exclude": isOwned,
	"bind": isOwned, "remount": isOwned, "ro": isOwned, "loop": isOwned, "noauto": isOwned, "nofail": isOwned, "_netdev": isOwned,
	"rdonly_dev": "what is written would be thrown away without a word",
	"skip_lfsck": "a check that was begun would not go on", "noscrub": "an index that is wrong would stay wrong",
}

// refusedClientOptions are options of mount.lustre(8) for clients, by name.
var refusedClientOptions = map[string]string{
	"exclude": "it hides OSTs, and programs find their files cut off", "bind": isOwned, "rbind": isOwned, "remount": isOwned, "move": isOwned,
	"loop": isOwned, "user": isOwned, "users": isOwned, "owner": isOwned, "nofail": isOwned, "noauto": isOwned, "_netdev": isOwned,
}

// RefusedTargetOptions returns the mount options of targets that a user may not set, each as a sentence with the field.
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

// refusedParameters has patterns (path.Match) of the last part of parameters that a user may not set permanently, each with the reason.
var refusedParameters = []struct{ pattern, why string }{
	{"max_create_count", isOwned}, {"active", isOwned}, {"no_create", isOwned}, {"no_precreate", isOwned}, {"degraded", isOwned},
	{"readonly", isOwned}, {"recovery_time_*", isOwned}, {"evict_client", isPersons}, {"abort_recovery*", isPersons},
	{"identity_flush", isAnswer}, {"force_sync", isAnswer}, {"lfsck_*", isAnswer}, {"*stats", isAnswer},
}

// RefusedParameters returns the parameters that a user may not set, by name, each as a sentence.
func RefusedParameters(asked v1alpha1.LustreParameters) []string {
	var out []string
	for _, name := range backend.SortedKeys(asked) {
		last := name[strings.LastIndex(name, ".")+1:]
		for _, refused := range refusedParameters {
			if is, err := path.Match(refused.pattern, last); is || err != nil {
				out = append(out, fmt.Sprintf("spec.lustre.parameters: %s is refused, because %s; remove it", name, refused.why))
				break
			}
		}
	}
	return out
}

// ParameterCommands set the requested parameters, in the order of their names; they run on the MGS.
func ParameterCommands(asked v1alpha1.LustreParameters) [][]string {
	var out [][]string
	for _, name := range backend.SortedKeys(asked) {
		out = append(out, cli.SetParameter(name, string(asked[name])))
	}
	return out
}
