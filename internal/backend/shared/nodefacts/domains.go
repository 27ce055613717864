package nodefacts

import (
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Domain is a failure domain: nodes that fail together.
type Domain struct {
	// Name is the value of the label spec.failureDomains.label, or the name of the only node.
	Name string
	// Labeled is false for a node that is a domain of its own.
	Labeled bool
}

// String names a domain in a sentence.
func (d Domain) String() string {
	if d.Labeled {
		return "failure domain " + d.Name
	}
	return "node " + d.Name
}

// Domains holds the failure domains of all nodes.
type Domains struct {
	// Label is spec.failureDomains.label; without it, each node is a domain of its own.
	Label string
	nodes map[string]Domain
}

// NewDomains reads the labels of the nodes.
func NewDomains(in backend.Input) Domains {
	d := Domains{Label: string(in.FileSystem.Spec.FailureDomains.Label)}
	if d.Label == "" {
		return d
	}
	d.nodes = make(map[string]Domain, len(in.Nodes))
	for _, n := range in.Nodes {
		if value := n.Labels[d.Label]; value != "" {
			d.nodes[n.Name] = Domain{Name: value, Labeled: true}
		} else {
			d.nodes[n.Name] = Domain{Name: n.Name}
		}
	}
	return d
}

// Of returns the domain of a node. If a label decides and the node is not in the cluster, its domain is unknown.
func (d Domains) Of(node string) (domain Domain, known bool) {
	if d.Label == "" {
		return Domain{Name: node}, true
	}
	domain, known = d.nodes[node]
	return domain, known
}

// Apart reports whether two nodes are known to be in different domains.
func (d Domains) Apart(a, b string) bool {
	of, known := d.Of(a)
	other, there := d.Of(b)
	return known && there && of != other
}

// Count returns the smallest number of domains that these nodes can be in. A node whose domain is unknown adds none.
func (d Domains) Count(nodes []string) int {
	in := map[Domain]bool{}
	for _, n := range nodes {
		if domain, known := d.Of(n); known {
			in[domain] = true
		}
	}
	return len(in)
}

// Unlabeled names the nodes without a domain label, nil if all have one or no label is configured.
func (d Domains) Unlabeled(nodes []string) *backend.Problem {
	if d.Label == "" {
		return nil
	}
	var without []string
	for _, n := range slices.Compact(slices.Sorted(slices.Values(nodes))) {
		if domain, known := d.Of(n); known && !domain.Labeled {
			without = append(without, n)
		}
	}
	if len(without) == 0 {
		return nil
	}
	return &backend.Problem{Reason: v1alpha1.ReasonNodesUnlabeled, Message: fmt.Sprintf(
		"%s no label %s, so each is a failure domain of its own: %s; label them: kubectl label node NODE %s=DOMAIN",
		v1alpha1.Count(len(without), "node has", "nodes have"), d.Label, backend.List(without), d.Label)}
}
