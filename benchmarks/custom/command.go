package custom

import (
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

// reference matches $(name) in an argument.
var reference = regexp.MustCompile(`\$\(([^()]*)\)`)

// launches maps the ways to start a program.
var launches = map[v1alpha1.CustomLaunch]benchmarks.Launch{
	v1alpha1.CustomSingle:     benchmarks.OnClient,
	v1alpha1.CustomMPI:        benchmarks.OnProcesses,
	v1alpha1.CustomPerProcess: benchmarks.OnEachProcess,
}

// Plan returns the command of the spec with the values of the point.
func (Tool) Plan(spec *v1alpha1.BenchmarkRunSpec, point benchmarks.Point) (benchmarks.Plan, error) {
	s, err := check(spec, point)
	if err != nil {
		return benchmarks.Plan{}, err
	}
	o := options(spec)
	launch, known := launches[s.launch]
	if !known {
		return benchmarks.Plan{}, benchmarks.InvalidPoint("custom.launch: %q is none of Single, MPI, PerProcess", s.launch)
	}
	if len(o.Command) == 0 {
		return benchmarks.Plan{}, benchmarks.InvalidPoint("custom.command: there is none")
	}
	command := benchmarks.Command{Launch: launch}
	for _, argument := range o.Command {
		text, err := s.expand(string(argument))
		if err != nil {
			return benchmarks.Plan{}, err
		}
		command.Argv = append(command.Argv, text)
	}
	var space int64
	if o.SpaceBytes != "" {
		if space, err = benchmarks.ParseBytes(string(o.SpaceBytes)); err != nil {
			return benchmarks.Plan{}, benchmarks.InvalidPoint("custom.spaceBytes: %v", err)
		}
	}
	return benchmarks.Plan{
		Steps:   []benchmarks.Step{{Command: command}},
		Clients: int(s.clients), Processes: int(s.processes),
		Demand: benchmarks.Demand{Bytes: space},
	}, nil
}

// expand replaces the references in an argument.
func (s settings) expand(argument string) (string, error) {
	var err error
	out := reference.ReplaceAllStringFunc(argument, func(text string) string {
		name := text[2 : len(text)-1]
		value, found := s.values[name]
		switch {
		case found || err != nil:
		case name == string(clients):
			err = benchmarks.InvalidPoint("custom.command: how many clients there are is not known before they are counted; set spec.clients.count for $(clients)")
		default:
			names := make([]string, 0, len(s.values))
			for known := range s.values {
				names = append(names, "$("+known+")")
			}
			slices.Sort(names)
			err = benchmarks.InvalidPoint("custom.command: %q is not known in %q; there are %s", text, argument, strings.Join(names, ", "))
		}
		return value
	})
	return out, err
}
