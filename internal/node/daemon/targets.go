package daemon

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/spec"
)

// targetVariable is the name by which files call the data directory of a target.
const targetVariable = "TARGET"

// usedTarget is a target that the daemon starts with.
type usedTarget struct {
	spec.Target
	// data is the data directory.
	data string
}

// prove proves the directories of the spec and those on the targets. Where the daemon needs not all targets, one whose
// directory is refused is left out like one that is not mounted.
func prove(told spec.Run, targets []spec.Target, prover directory.Prover, log *slog.Logger) ([]usedTarget, error) {
	onTargets := make([]spec.Directory, len(targets))
	for i, t := range targets {
		onTargets[i] = spec.Directory{
			Path: filepath.Join(t.Path, told.OnTargets.Directory), Data: told.OnTargets.Data, Initialise: told.OnTargets.Initialise,
		}
	}
	if err := apart(slices.Concat(told.Directories, onTargets)); err != nil {
		return nil, err
	}
	for _, d := range told.Directories {
		action, err := prover.Prove(d)
		if err != nil {
			return nil, err
		}
		log.Info("proved the directory", "path", d.Path, "action", action)
	}
	var used []usedTarget
	var last error
	for i, d := range onTargets {
		action, err := prover.Prove(d)
		switch {
		case err == nil:
			log.Info("proved the target", "target", targets[i].Name, "path", d.Path, "action", action)
			used = append(used, usedTarget{Target: targets[i], data: filepath.Join(d.Path, d.Data)})
		case told.OnTargets.All:
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

// withTarget adds the variable for a daemon that has one target. Of several, none would be the one that is meant.
func withTarget(lookup environment.Lookup, all []spec.Target, used []usedTarget) environment.Lookup {
	if len(all) != 1 || len(used) != 1 {
		return lookup
	}
	return only(lookup, used[0])
}

func only(lookup environment.Lookup, t usedTarget) environment.Lookup {
	return func(name string) (string, bool) {
		if name == targetVariable {
			return t.data, true
		}
		return lookup(name)
	}
}
