package placement_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/placement"
)

// nodes returns nodes with these numbers of CPUs, named n0, n1 and so on.
func nodes(cpus ...int) []placement.Node {
	var out []placement.Node
	for i, n := range cpus {
		out = append(out, placement.Node{Name: fmt.Sprintf("n%d", i), CPUs: n})
	}
	return out
}

func TestProcessesArePlaced(t *testing.T) {
	packed := v1alpha1.SpreadPacked
	for name, c := range map[string]struct {
		wanted placement.Wanted
		nodes  []placement.Node
		want   []int
		says   string
	}{
		"evenly, as many on each":                       {placement.Wanted{Processes: 32}, nodes(8, 8, 8, 8), []int{8, 8, 8, 8}, "32 on 4 clients (8 each)"},
		"evenly, or one less":                           {placement.Wanted{Processes: 5}, nodes(8, 8), []int{3, 2}, "5 on 2 clients (2 to 3 each)"},
		"on the first of the clients, when fewer count": {placement.Wanted{Processes: 4, Clients: 2}, nodes(8, 8, 8), []int{2, 2}, "4 on 2 clients (2 each)"},
		"on fewer clients, when there are fewer processes": {
			placement.Wanted{Processes: 2, Clients: 3}, nodes(8, 8, 8), []int{1, 1}, "2 on 2 clients (1 each)"},
		"packed, one client after the other":                             {placement.Wanted{Processes: 12, Spread: packed}, nodes(8, 8, 8), []int{8, 4}, "12 on 2 clients (4 to 8 each)"},
		"packed up to the number that is asked for":                      {placement.Wanted{Processes: 12, Spread: packed, MaxPerNode: 6}, nodes(8, 8, 8), []int{6, 6}, "12 on 2 clients (6 each)"},
		"packed up to the CPUs, though more were asked for":              {placement.Wanted{Processes: 12, Spread: packed, MaxPerNode: 10}, nodes(8, 8), []int{8, 4}, "12 on 2 clients (4 to 8 each)"},
		"packed beyond the CPUs, when that is asked for":                 {placement.Wanted{Processes: 12, Spread: packed, MaxPerNode: 10, Oversubscribe: true}, nodes(8, 8), []int{10, 2}, ""},
		"evenly beyond the CPUs, when that is asked for":                 {placement.Wanted{Processes: 32, Oversubscribe: true}, nodes(8, 8), []int{16, 16}, ""},
		"on nodes of unlike size, as many on each as the smallest takes": {placement.Wanted{Processes: 5, Spread: packed}, nodes(8, 2, 4), []int{2, 2, 1}, "5 on 3 clients (1 to 2 each)"},
		"one on each client, for a tool that counts by itself":           {placement.Wanted{Processes: 64, EachClient: true}, nodes(8, 8), []int{1, 1}, "2 on 2 clients (1 each)"},
		"alone":                            {placement.Wanted{Processes: 1}, nodes(8, 8), []int{1}, "1 on 1 client"},
		"on nodes whose CPUs nobody knows": {placement.Wanted{Processes: 9}, nodes(0, 0), []int{5, 4}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			placed, err := placement.Place(c.wanted, c.nodes)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(placement.Counts(placed)).To(Equal(c.want))
			for i, name := range placement.Nodes(placed) {
				g.Expect(name).To(Equal(fmt.Sprintf("n%d", i)))
			}
			if c.says != "" {
				g.Expect(placement.Describe(placed)).To(Equal(c.says))
			}
		})
	}
}

func TestAnImpossiblePlacementIsRefusedWithTheSettingToChange(t *testing.T) {
	packed := v1alpha1.SpreadPacked
	for name, c := range map[string]struct {
		wanted placement.Wanted
		nodes  []placement.Node
		says   []string
	}{
		"more clients than there are": {placement.Wanted{Processes: 8, Clients: 3}, nodes(8, 8), []string{"3 clients are wanted, and 2 nodes", "spec.clients.count"}},
		"no client at all":            {placement.Wanted{Processes: 1}, nil, []string{"no node matches spec.clients.nodeSelector"}},
		"more processes than CPUs": {
			placement.Wanted{Processes: 20}, nodes(8, 8), []string{"10 of 20 processes may run on node n0, which has 8 CPUs", "set spec.clients.oversubscribe"}},
		"more processes than the CPUs of one small node": {
			placement.Wanted{Processes: 8}, nodes(8, 2), []string{"4 of 8 processes may run on node n1, which has 2 CPUs"}},
		"an uneven share on a small node, which any of them may get": {
			placement.Wanted{Processes: 5}, nodes(8, 2), []string{"3 of 5 processes may run on node n1, which has 2 CPUs"}},
		"more than maxProcessesPerNode": {
			placement.Wanted{Processes: 20, MaxPerNode: 4, Oversubscribe: true}, nodes(8, 8), []string{"spec.clients.maxProcessesPerNode 4", "use more clients, or raise it"}},
		"more than maxProcessesPerNode, packed": {
			placement.Wanted{Processes: 20, MaxPerNode: 4, Spread: packed}, nodes(8, 8), []string{"20 processes are more than 2 clients take"}},
		"more than all CPUs, packed": {
			placement.Wanted{Processes: 20, Spread: packed}, nodes(8, 8), []string{"more than the CPUs of n0 (8), n1 (8)", "set spec.clients.oversubscribe"}},
		"packed beyond the CPUs without a number": {
			placement.Wanted{Processes: 20, Spread: packed, Oversubscribe: true}, nodes(8, 8), []string{"set spec.clients.maxProcessesPerNode"}},
		"packed on nodes whose CPUs nobody knows": {
			placement.Wanted{Processes: 2, Spread: packed}, nodes(0), []string{"the CPUs of node n0 are not known", "spec.clients.maxProcessesPerNode"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := placement.Place(c.wanted, c.nodes)
			for _, text := range c.says {
				g.Expect(err).To(MatchError(ContainSubstring(text)))
			}
		})
	}
}
