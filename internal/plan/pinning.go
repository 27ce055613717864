package plan

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// PinDaemon is one daemon of a FileSystem on each of some nodes.
type PinDaemon struct {
	// Instance is its name in spec.Run.Instance, such as "master" or "chunkserver/ssd".
	Instance string
	// Index is the number of the instance on its node, from 0: which entry of a list it takes.
	Index int
	// Field is where its pinning is asked for, such as "spec.storagePools[ssd].cpuPinning", for sentences.
	Field string
	// Pinning asked for; nil for none.
	Pinning *v1alpha1.CPUPinning
	// Nodes that it runs on.
	Nodes []string
}

// PinInput is what the choice of CPUs depends on.
type PinInput struct {
	// FileSystem is namespace/name, for sentences.
	FileSystem string
	Daemons    []PinDaemon
	// Inventories by node; a node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Others are the daemons of the other FileSystems, by FileSystem (namespace/name).
	Others map[string][]PinDaemon
}

// Pin says which CPUs and memory every daemon gets, by node and instance, and what of it contradicts itself or the node. A daemon with a problem has no pinning.
func Pin(in PinInput) (map[string]map[string]spec.Pinning, []Problem) { return nil, nil }

// Drift says how a daemon runs otherwise than it should; empty when it runs as it should.
func Drift(wanted spec.Pinning, found v1alpha1.DaemonPlacement) string { return "" }
