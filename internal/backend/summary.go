package backend

import (
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Count fills in the summary of the observation.
func (o *Observation) Count() {
	servers, targets, clients := 0, 0, 0
	for _, i := range o.Servers {
		if i.Online {
			servers++
		}
	}
	for _, t := range o.Targets {
		if t.Online {
			targets++
		}
	}
	for _, c := range o.Clients {
		if c.Mounted {
			clients++
		}
	}
	var capacity, used int64
	for _, p := range o.StoragePools {
		capacity += p.CapacityBytes
		used += p.UsedBytes
	}
	o.Summary = v1alpha1.FileSystemSummary{
		Servers: Ratio(servers, len(o.Servers)), Targets: Ratio(targets, len(o.Targets)), Clients: Ratio(clients, len(o.Clients)),
		Capacity: v1alpha1.Bytes(capacity), Used: v1alpha1.Bytes(used),
	}
	if t := o.Transport; t != nil && t.Servers+t.Clients > 0 {
		o.Summary.RDMA = Ratio(t.ServersRDMA, t.Servers) + ", clients " + Ratio(t.ClientsRDMA, t.Clients)
	}
}

// NameAway adds a problem for servers that are away if there is no other problem, for example a server whose targets are not needed,
// because without a problem everything counts as online. It skips servers that leave the filesystem.
func (o *Observation) NameAway(leaves func(ServerStatus) bool) {
	if len(o.Problems) > 0 {
		return
	}
	var away []string
	for _, i := range o.Servers {
		if !i.Online && !leaves(i) {
			away = append(away, fmt.Sprintf("%s (%s)", i.Name, i.Message))
		}
	}
	if len(away) > 0 {
		o.Problems = []Problem{{Reason: v1alpha1.ReasonServersMissing, Message: "servers are not online: " + List(away)}}
	}
}

// Reachable reports whether some node has mounted the filesystem, or none should.
func (o *Observation) Reachable() bool {
	return len(o.Clients) == 0 || slices.ContainsFunc(o.Clients, func(c Client) bool { return c.Mounted })
}

// Online counts the targets of a pool that are online.
func (o *Observation) Online(pool string) int {
	count := 0
	for _, t := range o.Targets {
		if t.StoragePool == pool && t.Online {
			count++
		}
	}
	return count
}
