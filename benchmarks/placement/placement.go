// Package placement decides how many processes of a benchmark run on each client.
package placement

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Node is a client for processes.
type Node struct {
	Name string
	// CPUs is the capacity of the node (node.status.capacity), not its allocatable CPUs. The CPUs that the kubelet reserves are mostly idle,
	// and a published experiment counts cores. 0 means unknown, and limits nothing.
	CPUs int
}

// Wanted is the requirement of a point.
type Wanted struct {
	// Processes is the number over all clients.
	Processes int
	// Clients is the number of clients to use; 0 leaves it open.
	Clients int
	// EachClient starts one process on each client, whatever Processes says.
	EachClient bool
	// Spread, MaxPerNode (0 for none) and Oversubscribe are the fields of spec.clients.
	Spread        v1alpha1.ProcessSpread
	MaxPerNode    int
	Oversubscribe bool
}

// Placed is one client with its processes.
type Placed struct {
	Node      string
	Processes int
}

// Place distributes the processes over the first nodes, in their order. The scheduler decides which pod gets which of these nodes, so every
// node must accept the largest number: among nodes of different size, the smallest is the limit. If there are fewer processes than clients,
// each process gets a client of its own, and the other clients get none. The error is a sentence with the setting to change.
func Place(w Wanted, nodes []Node) ([]Placed, error) {
	if w.Clients > len(nodes) {
		return nil, fmt.Errorf("%d clients are wanted, and %d nodes match spec.clients.nodeSelector and have mounted the filesystem; "+
			"label more nodes, or lower spec.clients.count", w.Clients, len(nodes))
	}
	if len(nodes) == 0 {
		return nil, fmt.Errorf("no node matches spec.clients.nodeSelector and has mounted the filesystem; label one, or correct the selector")
	}
	if w.Clients > 0 {
		nodes = nodes[:w.Clients]
	}
	if w.EachClient {
		out := make([]Placed, 0, len(nodes))
		for _, n := range nodes {
			out = append(out, Placed{Node: n.Name, Processes: 1})
		}
		return out, nil
	}
	if w.Spread == v1alpha1.SpreadPacked {
		return packed(w, nodes)
	}
	return even(w, nodes)
}

// even gives all clients the same number of processes, give or take one.
func even(w Wanted, nodes []Node) ([]Placed, error) {
	used := min(len(nodes), max(w.Processes, 1))
	out := make([]Placed, 0, used)
	largest := (w.Processes + used - 1) / used
	for i, n := range nodes[:used] {
		if most := w.most(n); most > 0 && largest > most {
			return nil, w.tooMany(n, largest, nodes)
		}
		out = append(out, Placed{Node: n.Name, Processes: (w.Processes + used - 1 - i) / used})
	}
	return out, nil
}

// packed fills one client before the next gets a process. Each client takes as many as the smallest client can.
func packed(w Wanted, nodes []Node) ([]Placed, error) {
	full := w.MaxPerNode
	for _, n := range nodes {
		if n.CPUs > 0 && (full == 0 || !w.Oversubscribe && n.CPUs < full || w.MaxPerNode == 0 && n.CPUs < full) {
			full = n.CPUs
		}
	}
	if full == 0 {
		return nil, fmt.Errorf("the CPUs of node %s are not known, so it can't be packed; set spec.clients.maxProcessesPerNode", nodes[0].Name)
	}
	var out []Placed
	left := w.Processes
	for _, n := range nodes {
		if left == 0 {
			break
		}
		count := min(left, full)
		out = append(out, Placed{Node: n.Name, Processes: count})
		left -= count
	}
	if left > 0 {
		if w.MaxPerNode == 0 && w.Oversubscribe {
			return nil, fmt.Errorf("%d processes are more than the CPUs of %s; set spec.clients.maxProcessesPerNode to say how many "+
				"processes a client takes", w.Processes, names(nodes))
		}
		return nil, w.tooManyInAll(nodes)
	}
	return out, nil
}

// most returns the largest number of processes for a node, or 0 for no limit.
func (w Wanted) most(n Node) int {
	most := w.MaxPerNode
	if !w.Oversubscribe && n.CPUs > 0 && (most == 0 || n.CPUs < most) {
		most = n.CPUs
	}
	return most
}

func (w Wanted) tooMany(n Node, count int, nodes []Node) error {
	if w.MaxPerNode > 0 && count > w.MaxPerNode {
		return w.tooManyInAll(nodes)
	}
	return fmt.Errorf("%d of %d processes may run on node %s, which has %d CPUs: processes that wait for a CPU measure the client; "+
		"use more clients or fewer processes, or set spec.clients.oversubscribe", count, w.Processes, n.Name, n.CPUs)
}

func (w Wanted) tooManyInAll(nodes []Node) error {
	if w.MaxPerNode > 0 && w.Processes > w.MaxPerNode*len(nodes) {
		return fmt.Errorf("%d processes are more than %d clients take with spec.clients.maxProcessesPerNode %d; use more clients, or raise it",
			w.Processes, len(nodes), w.MaxPerNode)
	}
	return fmt.Errorf("%d processes are more than the CPUs of %s, as many on each as the smallest has: processes that wait for a CPU measure "+
		"the client; use more clients or fewer processes, or set spec.clients.oversubscribe", w.Processes, names(nodes))
}

// mostNames bounds the nodes in a sentence.
const mostNames = 8

func names(nodes []Node) string {
	var out []string
	for _, n := range nodes[:min(len(nodes), mostNames)] {
		out = append(out, fmt.Sprintf("%s (%d)", n.Name, n.CPUs))
	}
	if len(nodes) > mostNames {
		out = append(out, fmt.Sprintf("%d more", len(nodes)-mostNames))
	}
	return strings.Join(out, ", ")
}

// Counts returns only the numbers of processes.
func Counts(placed []Placed) []int {
	out := make([]int, 0, len(placed))
	for _, p := range placed {
		out = append(out, p.Processes)
	}
	return out
}

// Nodes returns only the names of the nodes.
func Nodes(placed []Placed) []string {
	out := make([]string, 0, len(placed))
	for _, p := range placed {
		out = append(out, p.Node)
	}
	return out
}

// Describe summarizes a placement, such as "32 on 4 clients (8 each)" or "5 on 2 clients (2 to 3 each)".
func Describe(placed []Placed) string {
	counts := Counts(placed)
	if len(counts) == 0 {
		return ""
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if len(counts) == 1 {
		return fmt.Sprintf("%d on 1 client", sum)
	}
	least, most := slices.Min(counts), slices.Max(counts)
	if least == most {
		return fmt.Sprintf("%d on %d clients (%d each)", sum, len(counts), most)
	}
	return fmt.Sprintf("%d on %d clients (%d to %d each)", sum, len(counts), least, most)
}
