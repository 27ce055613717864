package serve

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/inventory"
	"parallelfs.dev/operator/internal/node/network"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	period   = 5 * time.Second
	patience = 30 * time.Second
	// nodeVariable is the environment variable with the name of this node in the cluster.
	nodeVariable = "NODE_NAME"
)

// New returns the keeper of a server's targets on the node that this program runs on. known lists the filesystems with known needs.
func New(config spec.Serve, known []spec.HostSoftware, lookup environment.Lookup, log *slog.Logger) (*Keeper, error) {
	node, named := lookup(nodeVariable)
	if !named {
		return nil, fmt.Errorf("the environment variable %s, the name of this node, is not set; it comes from the pod (spec.nodeName)", nodeVariable)
	}
	ground := &Ground{
		Config: config, Network: network.ThisNode(lookup),
	}
	for _, s := range known {
		if s.Name == config.Backend {
			collector := inventory.ThisHost(nil, nil, nil)
			ground.Software = func(ctx context.Context) (version, missing string) { return collector.ForServers(ctx, s) }
		}
	}
	if ground.Software == nil {
		return nil, fmt.Errorf("this binary knows no filesystem of type %q whose servers are mounts; use the node image of the operator's version", config.Backend)
	}
	if config.GraceSeconds < 1 {
		return nil, fmt.Errorf("graceSeconds is %d; it must be at least 1", config.GraceSeconds)
	}
	return &Keeper{
		Node: ThisHost(), Config: ConfigBy(config, node), Before: ground.Ready, BootID: host.BootID, Log: log,
		Period: period, Patience: patience, Grace: time.Duration(config.GraceSeconds) * time.Second,
	}, nil
}
