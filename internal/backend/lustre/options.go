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

// refusedClientOptions are options of mount.lustre(8) for clients, by name.
var refusedClientOptions = map[string]string{
	"exclude": "it hides OSTs, and programs find their files cut off", "bind": isOwned, "rbind": isOwned, "remount": isOwned, "move": isOwned,
	"loop": isOwned, "user": isOwned, "users": isOwned, "owner": isOwned, "nofail": isOwned, "noauto": isOwned, "_netdev": isOwned,
}

func refusedOptions(field string, options []v1alpha1.MountOption) []string {
	var out []string
	for _, o := range options {
		name, _, _ := strings.Cut(string(o), "=")
		if why, is := refusedClientOptions[name]; is {
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
