package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// targetVariable is the variable in files for the data directory of a target.
	targetVariable = "TARGET"
	// targetsVariable is the variable in files for the data directories of all targets, joined by commas.
	targetsVariable = "TARGETS"
)

// usedTarget is a target that the daemon starts with.
type usedTarget struct {
	spec.Target
	// data is the data directory.
	data string
}

// distinct refuses two targets with the same identity in the filesystem.
func distinct(targets []spec.Target, use *spec.OnTargets, lookup environment.Lookup) error {
	taken := map[string]string{}
	for _, t := range targets {
		identity, err := directory.Identity(use.Initialize, first(t.Variables, lookup))
		if err != nil || identity == "" {
			continue // its own proof reports the fault
		}
		if other := taken[identity]; other != "" {
			return fmt.Errorf("the targets %s and %s would both be %s, so none is used; each needs an id of its own: compare the ids in the "+
				"status of the FileSystem, and restart the pod when they are mended", other, t.Name, identity)
		}
		taken[identity] = t.Name
	}
	return nil
}

// directoryOf returns the directory that a daemon uses on a target, with the target's permission to initialize.
func directoryOf(t spec.Target, use spec.OnTargets) spec.Directory {
	d := spec.Directory{Path: filepath.Join(t.Path, use.Directory), Data: use.Data, Initialize: use.Initialize}
	if t.Directory {
		d.Path = t.Path
	}
	if use.Initialize != nil {
		initialize := *use.Initialize
		initialize.Granted = initialize.Granted || t.Granted
		initialize.Expected = initialize.Expected || t.Expected
		initialize.Files = slices.Concat(own(t.Files), initialize.Files) // the last file of all makes the directory one of the filesystem
		d.Initialize = &initialize
	}
	return d
}

// own returns the files of one target, in the order of their names.
func own(files map[string]string) []spec.InitialFile {
	var out []spec.InitialFile
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, spec.InitialFile{Name: name, Content: files[name]})
	}
	return out
}

// prove proves the directories in the spec and on the targets. If the daemon does not need all targets, one whose directory is refused is
// left out, like one that is not mounted.
func prove(
	ctx context.Context, config spec.Run, targets []spec.Target, prover directory.Prover, lookup environment.Lookup, log *slog.Logger,
) ([]usedTarget, error) {
	onTargets := make([]spec.Directory, len(targets))
	for i, t := range targets {
		onTargets[i] = directoryOf(t, *config.OnTargets)
	}
	if err := apart(slices.Concat(config.Directories, onTargets)); err != nil {
		return nil, err
	}
	for _, d := range config.Directories {
		action, err := prover.Prove(ctx, d, lookup)
		if err != nil {
			return nil, err
		}
		log.Info("proved the directory", "path", d.Path, "action", action)
	}
	var used []usedTarget
	var last error
	for i, d := range onTargets {
		action, err := prover.Prove(ctx, d, first(targets[i].Variables, lookup))
		switch {
		case err == nil:
			log.Info("proved the target", "target", targets[i].Name, "path", d.Path, "action", action)
			used = append(used, usedTarget{Target: targets[i], data: filepath.Join(d.Path, d.Data)})
		case config.OnTargets.All:
			return nil, fmt.Errorf("target %s: %w", targets[i].Name, err)
		default:
			last = fmt.Errorf("target %s: %w", targets[i].Name, err)
			log.Warn("starting without a target", "target", targets[i].Name, "reason", err)
		}
	}
	if len(used) == 0 && last != nil {
		return nil, last
	}
	return used, nil
}

// first looks up a name in variables before it calls lookup.
func first(variables map[string]string, lookup environment.Lookup) environment.Lookup {
	return func(name string) (string, bool) {
		if value, set := variables[name]; set {
			return value, true
		}
		return lookup(name)
	}
}

// withTargets adds the variable for all targets and, if there is only one target, the variable for it. With several targets, the variable
// for one would be ambiguous.
func withTargets(lookup environment.Lookup, all []spec.Target, used []usedTarget) environment.Lookup {
	if len(used) == 0 {
		return lookup
	}
	data := make([]string, len(used))
	for i, t := range used {
		data[i] = t.data
	}
	variables := map[string]string{targetsVariable: strings.Join(data, ",")}
	if len(all) == 1 {
		variables[targetVariable] = used[0].data
	}
	return first(variables, lookup)
}

func only(lookup environment.Lookup, t usedTarget) environment.Lookup {
	return first(map[string]string{targetVariable: t.data}, lookup)
}
