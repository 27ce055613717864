package lustre

import (
	"cmp"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// questions query one node for its targets.
type questions struct{ commands cli.Commands }

var (
	_ backend.TolerantQuestions = questions{}
	_ backend.StoreCopier       = questions{}
)

// Commands implements backend.Questions.
func (q questions) Commands() [][]string { return q.commands.AskServer() }

// Parse implements backend.Questions.
func (q questions) Parse(outputs [][]byte) (backend.State, error) {
	server, err := q.commands.ParseServer(outputs)
	if err != nil {
		return backend.State{}, err //nolint:wrapcheck // it names the command
	}
	return stateOf(server), nil
}

// Limit implements backend.TolerantQuestions: only the kernel of the node answers them, so they need no limit.
func (questions) Limit(int) time.Duration { return 0 }

// Tolerates implements backend.TolerantQuestions: lctl get_param fails for a name that does not exist, such as an OST on a node with MDTs
// only. Only its output counts.
func (q questions) Tolerates(command, code int, _ string) bool {
	return code > 0 && q.commands.MayLack(command)
}

// stateOf converts a node's answer to the common form of all backends: the number of a target is its index plus one.
func stateOf(server cli.Server) backend.State {
	state := backend.State{Version: server.Version}
	if len(server.Partitions) > 0 {
		state.Modules = &backend.LoadedModules{Partitions: server.Partitions, Parameters: server.Modules}
	}
	for target, serving := range server.Targets {
		state.Targets = append(state.Targets, targetState(target, serving))
	}
	for _, name := range backend.SortedKeys(server.Pools) {
		pool := backend.Pool{Name: name}
		for _, index := range server.Pools[name] {
			pool.Targets = append(pool.Targets, index+1)
		}
		state.Pools = append(state.Pools, pool)
	}
	for link, is := range server.Links {
		state.Links = append(state.Links, backend.Link{From: link.MDT + 1, To: link.OST + 1, Closed: is.Closed})
	}
	slices.SortFunc(state.Links, func(x, y backend.Link) int { return cmp.Or(cmp.Compare(x.To, y.To), cmp.Compare(x.From, y.From)) })
	slices.SortFunc(state.Targets, func(x, y backend.Target) int {
		return cmp.Or(cmp.Compare(x.Role, y.Role), cmp.Compare(x.ID, y.ID))
	})
	return state
}

// targetState converts one target. Its status is empty while it serves.
func targetState(target cli.Target, serving cli.Serving) backend.Target {
	out := backend.Target{
		Role: roles[target.Kind], Contacted: true, UsedBytes: serving.UsedBytes, CapacityBytes: serving.CapacityBytes,
		UsedInodes: serving.UsedInodes, Inodes: serving.Inodes,
		Status: statusOf(target, serving),
	}
	if out.Online = out.Status == ""; target.Kind != cli.MGT {
		out.ID = target.Index + 1
	}
	return out
}

// roles maps the kinds of targets to their roles.
var roles = map[cli.Kind]v1alpha1.Role{
	cli.MGT: v1alpha1.RoleManagement, cli.MDT: v1alpha1.RoleMetadata, cli.OST: v1alpha1.RoleStorage,
}
