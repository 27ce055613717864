package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/spec"
)

// Ground checks a server's prerequisites: modules and programs of one version, and the network.
type Ground struct {
	Config spec.Serve
	// Software returns the version on the node, and what is missing (inventory.Collector.ForServers).
	Software func(ctx context.Context) (version, missing string)
	Network  network.Node
}

// Ready returns nil if targets may be mounted.
func (g *Ground) Ready(ctx context.Context, variables map[string]string) error {
	lookup := func(name string) (string, bool) {
		if value, set := variables[name]; set {
			return value, true
		}
		return g.Network.Lookup(name)
	}
	version, missing := g.Software(ctx)
	switch {
	case missing != "":
		return errors.New(missing)
	case version == "":
		return errors.New("neither the modules nor the programs of this node say which version of the filesystem they are, so nothing is mounted; " +
			"look at its NodeInventory (status.software and status.problems)")
	case Minor(version) != Minor(g.Config.Version):
		return fmt.Errorf("this node has version %s of the filesystem's modules and programs, and spec.version asks for %s: a disk that a newer version "+
			"has mounted may be of no use to an older one; install a %s on the node, or change spec.version", version, g.Config.Version, Minor(g.Config.Version))
	}
	net := g.Network
	net.Lookup = lookup
	return net.Up(ctx, g.Config.Network)
}

// Minor returns the minor version of a version: 2.15 for 2.15.5.
func Minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}
