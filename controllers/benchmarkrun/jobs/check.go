package jobs

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/spec"
)

// sshd is the daemon of a worker, as a full path, because it executes itself again for each session.
const sshd = "/usr/sbin/sshd"

// contract returns what the image must contain: the programs and users of all steps of all points, sorted.
func contract(w *scope.Scope) (programs, users []string) {
	for _, plan := range w.Plans {
		for _, step := range plan.Steps {
			c := step.Command
			if c.Launch == benchmarks.OnManagement {
				continue
			}
			if len(c.Argv) > 0 {
				programs = append(programs, c.Argv[0])
			}
			programs = append(programs, c.Programs...)
			if scope.Distributed(c.Launch) {
				programs, users = append(programs, "ssh", sshd), append(users, "root", "sshd")
			}
			if scope.Distributed(c.Launch) && c.Launch != benchmarks.OnLauncher {
				programs = append(programs, "mpirun")
			}
		}
	}
	// The name of a program with a placeholder is known only in the pod.
	programs = slices.DeleteFunc(programs, func(p string) bool { return strings.Contains(p, "$(") })
	slices.Sort(programs)
	slices.Sort(users)
	return slices.Compact(programs), slices.Compact(users)
}

// Checker returns the Job that checks the tool's image and the filesystem, on a client.
func (r Renderer) Checker() client.Object { return r.job(r.checkTask()) }

func (r Renderer) checkTask() task {
	programs, users := contract(r.Scope)
	directory := path.Join(r.Scope.Roots(r.Scope.Directory())[0], "none")
	config := spec.Benchmark{
		Mount: r.mount(), Root: path.Dir(directory), Directory: directory, Argv: []string{}, TimeoutSeconds: seconds(scope.CheckTimeout),
		Programs: programs, Users: users,
	}
	if custom := r.Scope.Run.Spec.Custom; custom != nil {
		for _, argument := range custom.VersionCommand {
			config.VersionArgv = append(config.VersionArgv, string(argument))
		}
	}
	var nodes []string
	for _, n := range r.Scope.Clients {
		if r.Scope.Volume == nil {
			nodes = append(nodes, n.Name)
		}
	}
	return task{
		name: turns.CheckName(r.Scope.Run.Name), role: children.RoleChecker, verb: "check", image: r.Scope.Image,
		nodes: anyOf(r.Scope, nodes), config: config,
		deadline: scope.CheckTimeout + deadlineMargin,
	}
}
