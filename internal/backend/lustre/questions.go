package lustre

import (
	"cmp"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// questions ask one node what it serves.
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

// Limit implements backend.TolerantQuestions: they are answered by the kernel of the node alone.
func (questions) Limit(int) time.Duration { return 0 }

// Tolerates implements backend.TolerantQuestions: lctl get_param fails where there is nothing of a name, such as an OST on a node with MDTs
// only. What it has printed counts.
func (q questions) Tolerates(command, code int, _ string) bool {
	return code > 0 && q.commands.MayLack(command)
}

// stateOf is what a node says that it serves, in the form that all backends have: the number of a target is one more than its index.
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

// targetState is one target. Its status is empty while it serves.
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

// roles are those of the kinds of targets.
var roles = map[cli.Kind]v1alpha1.Role{
	cli.MGT: v1alpha1.RoleManagement, cli.MDT: v1alpha1.RoleMetadata, cli.OST: v1alpha1.RoleStorage,
}
