// Command agent runs on every node with servers. It publishes the node's inventory, formats, mounts and proves the disks of the node's
// StorageTargets, and writes the node file for the servers. It is a separate program because a Kubernetes client makes a program large and
// slow to start. Command node starts in every pod and for every probe of a kubelet.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/node/affinity"
	"parallelfs.dev/operator/internal/node/agent"
	"parallelfs.dev/operator/internal/node/caches"
	"parallelfs.dev/operator/internal/node/command"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/inventory"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
)

// quiet is how long the agent waits for more changes of devices before it reads them.
const quiet = 2 * time.Second

func main() { command.Main(root()) }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent --node-name NAME",
		Short: "Publish what this node has, prove the disks of its StorageTargets, and tell its servers what to use",
		Long: `Publish what this node has, and format, mount and prove the disks of its StorageTargets, until this process is told to end.

Every node with servers of a FileSystem needs it. The chart runs it on every node with the label ` + v1alpha1.LabelAgent + `:
as root, privileged, with the network, the process ids and the /dev of the node, and with /var/lib/parallelfs of the node, into which
mounts propagate.

What it publishes is the NodeInventory named like the node, written only when something has changed:

  kubectl get nodeinventory NAME -o yaml       # disks with their stable ids, and why one can't be used
  agent inventory                              # the same on the node itself, without a cluster

What it does with a disk, it decides from a fresh look, never from an earlier one. It formats a disk once, as the plan in the
StorageTarget's status says, and only when spec.formatPolicy allows it; it records that in the status before the first byte.
A disk that is not blank needs the hash of its plan approved by a person:

  kubectl describe storagetarget TARGET        # the plan, what it would destroy, and its hash
  kubectl patch storagetarget TARGET --type=merge -p '{"spec":{"approvedPlan":"sha256:..."}}'

A proven disk is mounted at ` + spec.TargetsRoot + `/NAMESPACE.FILESYSTEM/TARGET, after a restart of the node as well. The
mountpoint is empty and immutable (chattr +i) while nothing is mounted.

What the servers on this node are told, such as their disks, ids and CPUs, it writes from the FileSystemNodes of this node into files, which
the servers read when they start: ` + spec.NodesRoot + `/NAMESPACE.FILESYSTEM/` + spec.NodeFileName + `.
Where a FileSystem lets it, it writes what modules of the kernel are to be loaded with: ` + spec.ModprobeDirectory + `/` +
			spec.ModuleOptionsFile("NAMESPACE", "FILESYSTEM") + `.

Once a second it reads what the kernel counts of those disks and of the filesystems' daemons, keeps that for two hours in memory, and
serves it, without asking who wants to know: names of filesystems, targets and daemons of this node, and counters, nothing else.

  curl 'http://ADDRESS:PORT/telemetry?from=2026-03-01T12:00:00Z&to=2026-03-01T12:10:00Z'    # what each did meanwhile
  curl 'http://ADDRESS:PORT/metrics'                                                       # the counters, for Prometheus

Once an hour it reads what each disk reports about itself, with smartctl(8): SMART, or the health log of NVMe. A disk that sleeps is
not woken. The NodeInventory has the state of each disk, and /metrics the values.

It drops the caches of the kernel (sync, then 3 to /proc/sys/vm/drop_caches) once for each new value of the annotation
` + v1alpha1.AnnotationDropCaches + ` of its NodeInventory, as a BenchmarkRun with spec.caches asks for.

One agent works on a node: it has locked ` + spec.AgentLock + `. Another one waits, says so in its log and in an event of the node,
and looks at no disk.

While the API server does not answer, everything stays as it is. It ends on SIGTERM, after the command that is
running: a mkfs may take up to 100 s then.`,
		Args: cobra.NoArgs,
	}
	o := agent.Options{NodesRoot: spec.NodesRoot, Modprobe: filepath.Join(host.Root, spec.ModprobeDirectory)}
	var level slog.Level
	var host string
	var port uint16
	flags := c.Flags()
	flags.StringVar(&o.NodeName, "node-name", os.Getenv("NODE_NAME"), "`NAME` of this node in the cluster; from the environment variable NODE_NAME if empty")
	flags.DurationVar(&o.Resync, "resync", 5*time.Minute, "`TIME` between two looks at everything without a cause, at least 10s")
	flags.StringVar(&o.HealthAddress, "health-probe-bind-address", "127.0.0.1:8086", "`ADDRESS` that serves /healthz, and /readyz once the inventory is published; 0 for none")
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", "0", "`ADDRESS` that serves Prometheus metrics over HTTP; 0 for none")
	flags.DurationVar(&o.TelemetryInterval, "telemetry-interval", 0, "`TIME` between two samples of disks and daemons, such as 1s, at least 100ms; 0 for none")
	flags.StringVar(&host, "telemetry-address", os.Getenv("POD_IP"), "`ADDRESS` of this node that telemetry is served on; from the environment variable POD_IP if empty")
	flags.Uint16Var(&port, "telemetry-port", 9440, "`PORT` that telemetry is served on")
	flags.DurationVar(&o.DiskHealthInterval, "disk-health-interval", time.Hour, "`TIME` between two reads of a disk's SMART or NVMe health, at least 1m; 0 for none")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "`LEVEL` of the log: DEBUG, INFO, WARN or ERROR")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case o.NodeName == "":
			return errors.New("--node-name is required: the agent works on the StorageTargets of one node; kubectl get nodes shows the names")
		case o.Resync < 10*time.Second:
			return fmt.Errorf("--resync %s is too short: every look opens every disk; use 10s or more", o.Resync)
		case o.TelemetryInterval != 0 && o.TelemetryInterval < 100*time.Millisecond:
			return fmt.Errorf("--telemetry-interval %s is too short: sampling would disturb what it measures; use 100ms or more, or 0 for none", o.TelemetryInterval)
		case o.DiskHealthInterval != 0 && o.DiskHealthInterval < time.Minute:
			return fmt.Errorf("--disk-health-interval %s is too short: a disk answers such a question between its other work; use 1m or more, or 0 for none", o.DiskHealthInterval)
		case o.TelemetryInterval != 0 && host == "":
			return errors.New("--telemetry-address is required with --telemetry-interval: name one address of this node, rather than all of them (0.0.0.0)")
		}
		o.TelemetryAddress = net.JoinHostPort(host, strconv.Itoa(int(port)))
		return runAgent(c.Context(), o, logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	}
	c.AddCommand(inventoryCommand(), placementCommand())
	return c
}

// thisInventory returns the collector of this node's inventory, which also compares the node with the recommendations in the filesystems'
// documentation.
func thisInventory() inventory.Collector {
	backends := all.Backends(backend.DefaultTellTime)
	return inventory.ThisHost(backends.HostSettings(), backends.Modules(), all.HostSoftware())
}

func runAgent(ctx context.Context, o agent.Options, log logr.Logger) error {
	ctrl.SetLogger(log)
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("can't find the API server: %w; outside of a pod, set KUBECONFIG", err)
	}
	// Nothing looks at a disk before this.
	lock, err := onlyAgent(ctx, config, o.NodeName, log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { _ = lock.Close() }()
	looker := devices.ThisHost()
	provisioner := provision.New(looker, func() string { return string(uuid.NewUUID()) })
	looker.Claim = provisioner.Claims.Ask(looker.Claim)
	changes, err := looker.Watch(ctx, quiet)
	if err != nil {
		// The resync finds changes as well, but later.
		log.Error(err, "Changes of devices are noticed late, at the resync")
	}
	placements := affinity.ThisNode().Placements
	dropper := caches.ThisNode()
	collector := thisInventory()
	collector.Devices = looker.All
	collector.Daemons = func(context.Context) ([]v1alpha1.DaemonPlacement, []string) {
		found, err := placements()
		if err != nil {
			return found, []string{err.Error()}
		}
		return found, nil
	}
	boot, err := host.BootID()
	if err != nil {
		log.Error(err, "Targets that two nodes may serve are not configured: the boot id of this node is unknown")
	}
	return agent.Run(ctx, config, agent.Node{
		Pass: provisioner.Pass, ProveUnmounted: provisioner.ProveUnmounted, TakeUp: provisioner.TakeUp, BootID: boot,
		Collect: collector.Collect, Settings: collector.Settings, Placements: placements, Changes: changes,
		Processes: affinity.ThisNode().Processes, DropCaches: dropper.Drop,
		DiskHealth: looker.Health,
	}, o, log)
}
