package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/spec"
)

// Ground is what a server stands on: modules and programs of one version, what modules are loaded with, and the network.
type Ground struct {
	Told spec.Serve
	// Software says which version the node has, and what is missing (inventory.Collector.ForServers).
	Software func(ctx context.Context) (version, missing string)
	Network  network.Node
	// Root is the root directory of the node, Sys its /sys.
	Root, Sys string
	Writer    durable.Writer
	Log       *slog.Logger
	// said is what was said of what modules are loaded with.
	said string
}

// Ready returns nil when targets may be mounted.
func (g *Ground) Ready(ctx context.Context, variables map[string]string) error {
	lookup := func(name string) (string, bool) {
		if value, set := variables[name]; set {
			return value, true
		}
		return g.Network.Lookup(name)
	}
	if err := g.options(lookup); err != nil {
		return err
	}
	version, missing := g.Software(ctx)
	switch {
	case missing != "":
		return errors.New(missing)
	case version == "":
		return errors.New("neither the modules nor the programs of this node say which version of the filesystem they are, so nothing is mounted; " +
			"look at its NodeInventory (status.software and status.problems)")
	case Minor(version) != Minor(g.Told.Version):
		return fmt.Errorf("this node has version %s of the filesystem's modules and programs, and spec.version asks for %s: a disk that a newer version "+
			"has mounted may be of no use to an older one; install a %s on the node, or change spec.version", version, g.Told.Version, Minor(g.Told.Version))
	}
	net := g.Network
	net.Lookup = lookup
	return net.Up(ctx, g.Told.Network)
}

// Minor is the minor version that a version belongs to: 2.15 of 2.15.5.
func Minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// modprobe is the directory of files that say what modules are loaded with (modprobe.d(5)).
const modprobe = "/etc/modprobe.d"

// options writes what modules are loaded with where that is allowed, and says what differs of those that are loaded.
func (g *Ground) options(lookup environment.Lookup) error {
	asked := g.Told.ModuleOptions
	if asked == nil {
		return nil
	}
	lines, err := environment.Expand(asked.Lines, lookup)
	if err != nil {
		return fmt.Errorf("what modules are loaded with: %w", err)
	}
	if drift := g.drift(lines); drift != g.said {
		if g.said = drift; drift != "" {
			g.Log.Warn("modules are loaded with other options than were asked for; they read them when they are loaded: unmount everything of the filesystem "+
				"on the node, unload its modules, and mount it again", "differ", drift)
		}
	}
	if asked.File == "" {
		return nil
	}
	if filepath.Dir(asked.File) != modprobe || filepath.Ext(asked.File) != ".conf" {
		return fmt.Errorf("%q is no file of modprobe.d(5); the operator and its node image must be of the same version", asked.File)
	}
	path := filepath.Join(g.Root, asked.File)
	content := fmt.Sprintf("# Written by ParallelFS Operator for FileSystem %s in namespace %s.\n%s\n",
		g.Told.Owner.Name, g.Told.Owner.Namespace, strings.TrimSpace(lines))
	if there, err := os.ReadFile(path); err == nil && string(there) == content {
		return nil
	}
	return g.Writer.File(path, []byte(content), durable.Ownership{Mode: fs.FileMode(0o644)})
}

// drift are the options with which loaded modules run otherwise, such as `libcfs cpu_pattern is "" instead of "0[0-3]"`.
func (g *Ground) drift(lines string) string {
	var all []string
	for line := range strings.Lines(lines) {
		rest, is := strings.CutPrefix(strings.TrimSpace(line), "options ")
		if !is {
			continue
		}
		module, rest, _ := strings.Cut(rest, " ")
		for name, wanted := range assignments(rest) {
			has, err := os.ReadFile(filepath.Join(g.Sys, "module", module, "parameters", name))
			if value := strings.TrimSpace(string(has)); err == nil && value != wanted {
				all = append(all, fmt.Sprintf("%s %s is %q instead of %q", module, name, value, wanted))
			}
		}
	}
	return strings.Join(all, ", ")
}

// assignments are the NAME=VALUE of a line, of which a value may stand in quotes, with spaces.
func assignments(line string) func(yield func(name, value string) bool) {
	return func(yield func(name, value string) bool) {
		for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
			name, rest, has := strings.Cut(line, "=")
			if !has {
				return
			}
			var value string
			if quoted, is := strings.CutPrefix(rest, `"`); is {
				value, line, _ = strings.Cut(quoted, `"`)
			} else {
				value, line, _ = strings.Cut(rest, " ")
			}
			if !yield(name, value) {
				return
			}
		}
	}
}
