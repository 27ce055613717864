package moosefs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

const (
	// topologyFile assigns addresses to racks (mfstopology.cfg(5)). The kubelet updates it in the running pod.
	topologyFile = podspec.ToldDirectory + "/" + topologyKey
	topologyKey  = "mfstopology.cfg"
	// differentRacks in a storage class of 4.x keeps each copy in another rack (mfsscadmin(1)).
	differentRacks = "/[RACK]"
)

// topology places the nodes that hold data in racks, which are the failure domains: the name of a rack is any word (since 3.0.104). A
// node without the label has a rack of its own. Clients are in none, so that all chunkservers are equally far from them.
func topology(in backend.Input, domains nodefacts.Domains) string {
	if domains.Label == "" {
		return "# each node is a failure domain of its own\n"
	}
	holds := map[string]bool{}
	for _, server := range in.Given() {
		holds[server.Node] = holds[server.Node] || server.Role == v1alpha1.RoleStorage
	}
	var out strings.Builder
	for _, n := range in.Nodes {
		if !holds[n.Name] || n.IP == "" {
			continue
		}
		rack := "node/" + shortRack(n.Name) // no value of a label has a slash
		if domain, _ := domains.Of(n.Name); domain.Labeled {
			rack = shortRack(domain.Name)
		}
		out.WriteString(n.IP + " " + rack + "\n")
	}
	return out.String()
}

// longestRack is how many characters of a failure domain's name the topology contains. rackHash is how many characters of a hash follow a
// longer name. With these limits, the Secret with the racks of 1000 nodes stays below 64 KiB.
const (
	longestRack = 16
	rackHash    = 12
)

// shortRack returns the name of a rack: that of its failure domain or, if that is too long, its beginning and a hash. With 48 bits, two of
// 1000 names have the same hash once in 500 million filesystems.
func shortRack(name string) string {
	if len(name) <= longestRack {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longestRack/2] + "/" + hex.EncodeToString(sum[:])[:rackHash]
}

// spreads reports whether the copies of a pool's chunks can all be in different failure domains. MooseFS makes no copy that would break
// that rule, so a pool with fewer domains than copies would permanently have too few copies.
func spreads(in backend.Input, domains nodefacts.Domains, pool v1alpha1.StoragePoolSpec) bool {
	copies := int(backend.Copies(pool))
	record, recorded := in.Pool(pool.Name)
	return recorded && domains.Label != "" && copies > 1 && domains.Count(record.Nodes) >= copies
}

// uniqueMode returns CHUNKS_UNIQUE_MODE of 3.x, whose storage classes can't name racks. 2 keeps at most one copy of a chunk in a rack, for
// all pools alike; 0 sets no rule.
func uniqueMode(in backend.Input, domains nodefacts.Domains) int {
	if major(backend.VersionOf(in.FileSystem, componentMaster)) != "3" {
		return 0
	}
	for _, pool := range in.FileSystem.Spec.StoragePools {
		if backend.Copies(pool) > 1 && !spreads(in, domains, pool) {
			return 0
		}
	}
	return 2
}

// spread returns the condition Spread. MooseFS does not report in which racks the copies of a chunk are, so the condition describes the
// configuration of MooseFS.
func (o *observer) spread() *backend.Problem {
	domains := o.domains
	if domains.Label == "" {
		return nil
	}
	var nodes, narrow []string
	for _, pool := range o.fs.Spec.StoragePools {
		record, recorded := o.in.Pool(pool.Name)
		if !recorded {
			continue
		}
		nodes = append(nodes, record.Nodes...)
		if copies := backend.Copies(pool); copies > 1 && !spreads(o.in, domains, pool) {
			narrow = append(narrow, fmt.Sprintf("pool %s keeps %d copies, and its nodes are in %d failure domains", pool.Name, copies, domains.Count(record.Nodes)))
		}
	}
	unlabeled := domains.Unlabeled(nodes)
	switch {
	case len(narrow) > 0:
		message := backend.List(narrow) + "; all copies of a chunk may be in one of them, until the pool has nodes in more failure domains"
		if len(o.fs.Spec.StoragePools) > len(narrow) && major(backend.VersionOf(o.fs, componentMaster)) == "3" {
			message += "; MooseFS 3 has one rule for all pools, so the same holds for the others"
		}
		if unlabeled != nil {
			message += "; " + unlabeled.Message
		}
		return &backend.Problem{Reason: v1alpha1.ReasonCopiesTogether, Message: message}
	case unlabeled != nil:
		return unlabeled
	default:
		return &backend.Problem{Reason: v1alpha1.ReasonAsAsked, Message: fmt.Sprintf(
			"the nodes are in %s, and MooseFS keeps the copies of a chunk in different ones", v1alpha1.Count(domains.Count(nodes), "failure domain", "failure domains"))}
	}
}

// together sets how many chunkservers may restart together. A chunkserver holds at most one copy of a chunk. If every chunk has n copies,
// n−1 chunkservers can be down without loss. A larger number is not provable, because MooseFS does not report in which racks the copies
// are. While there is no data, the desired copies of the pools count.
func (o *observer) together() {
	o.seen.Together = map[string]int{}
	if o.in.State == nil || !o.in.State.Data.Whole() {
		return
	}
	copies := []int64{}
	for _, pool := range o.fs.Spec.StoragePools {
		copies = append(copies, int64(backend.Copies(pool)))
	}
	if fewest := o.in.State.Data.Fewest; fewest > 0 {
		copies = append(copies, fewest)
	} else if o.in.State.Data.Stable > 0 {
		return
	}
	for _, p := range o.in.Pods {
		if p.Component == componentChunkserver && len(copies) > 0 {
			o.seen.Together[p.Name.Name] = max(1, int(slices.Min(copies))-1)
		}
	}
}
