package beegfs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// transport summarizes the interfaces of servers and clients that BeeGFS lists; nil if RDMA is disabled, or if BeeGFS lists none. A server
// that could not open the devices of its node registers no interface with RDMA, and uses TCP. The management service uses TCP only.
func (o *observer) transport() *backend.Transport {
	mode := rdmaOf(o.fs)
	switch {
	case mode == v1alpha1.RDMADisabled || o.fs.Status.Metadata == nil:
		return nil
	case o.in.State == nil:
		return &backend.Transport{Problem: backend.Problem{Reason: v1alpha1.ReasonTransportUnknown,
			Message: "the management service does not answer, so it is unknown which servers and clients use RDMA: " + o.in.StateError}}
	}
	var out backend.Transport
	var byTCP []string
	count := func(what, node, transport string, all, rdma *int) {
		switch transport {
		case backend.TransportRDMA:
			*rdma++
		case backend.TransportTCP:
			if mode == v1alpha1.RDMARequired || activeAdapter(o.in.Inventories[node]) {
				byTCP = append(byTCP, what)
			}
		default:
			return
		}
		*all++
	}
	for i := range o.seen.Servers {
		server := &o.seen.Servers[i]
		if s := serverOf(o.in, server.Role, server.ID); s != nil && server.Online && server.Role != v1alpha1.RoleManagement {
			count(server.Name, server.Node, s.Transport, &out.Servers, &out.ServersRDMA)
		}
	}
	nodes := o.nodesAt()
	for _, s := range o.in.State.Sessions {
		count("the client on "+cmp.Or(nodes[s.IP], s.IP), nodes[s.IP], s.Transport, &out.Clients, &out.ClientsRDMA)
	}
	known := out.Servers + out.Clients
	counts := fmt.Sprintf("%d of %d servers and %d of %d clients offer RDMA, as BeeGFS lists them",
		out.ServersRDMA, out.Servers, out.ClientsRDMA, out.Clients)
	switch {
	case known == 0 && mode == v1alpha1.RDMAAuto:
		return nil
	case out.Servers == 0:
		out.Problem = backend.Problem{Reason: v1alpha1.ReasonTransportUnknown, Message: "no server is online that says whether it uses RDMA"}
	case len(byTCP) > 0:
		slices.Sort(byTCP)
		out.Problem = backend.Problem{Reason: v1alpha1.ReasonTCPInUse, Message: fmt.Sprintf(
			"TCP only, although %s: %s; look at the first lines of the pod's log, the adapter's driver, and spec.network.interfaces; %s",
			map[bool]string{true: "RDMA is required", false: "the node has an active adapter"}[mode == v1alpha1.RDMARequired],
			backend.List(byTCP), counts)}
	default:
		out.Problem = backend.Problem{Reason: v1alpha1.ReasonAsAsked, Message: counts}
	}
	if note := largeChunks(o.fs); note != "" && out.ClientsRDMA > 0 {
		out.Problem.Message += "; " + note
	}
	return &out
}

// largeChunks names the pools whose chunks are not smaller than the RDMA buffers of a connection, empty for none. "Ideally, the largest,
// commonly used filesystem chunksize should be < connRDMABufNum * connRDMABufSize to achieve the best performance"
// (beegfs-client.conf of 7.4.6 and 8.3.1).
func largeChunks(fs *v1alpha1.FileSystem) string {
	buffers := bufferOption(fs, "connRDMABufNum", 70) * bufferOption(fs, "connRDMABufSize", 8192)
	var pools []string
	for _, pool := range fs.Spec.StoragePools {
		if striping := ownPool(pool).Striping; striping == nil || striping.ChunkSize.Value() < buffers {
			continue
		}
		pools = append(pools, pool.Name)
	}
	if len(pools) == 0 {
		return ""
	}
	return fmt.Sprintf("chunks of pool %s are not smaller than the RDMA buffers of a connection (%d KiB), which costs throughput; "+
		"raise connRDMABufSize in spec.beegfs.config.client", backend.List(pools), buffers>>10)
}

// bufferOption returns a number of beegfs-client.conf, whose value BeeGFS ships with both versions.
func bufferOption(fs *v1alpha1.FileSystem, name string, shipped int64) int64 {
	if n, err := strconv.ParseInt(string(own(fs).Config.Client[name]), 10, 64); err == nil {
		return n
	}
	return shipped
}

// activeAdapter is true for a node with an adapter whose first port carries data.
func activeAdapter(inventory v1alpha1.NodeInventoryStatus) bool {
	return slices.ContainsFunc(inventory.RDMADevices, func(d v1alpha1.RDMADevice) bool { return d.State == "ACTIVE" })
}

// nodesAt maps each address to the nodes of the cluster that have it.
func (o *observer) nodesAt() map[string]string {
	out := map[string]string{}
	for i := range o.in.Nodes {
		n := &o.in.Nodes[i]
		for _, found := range o.in.Inventories[n.Name].NetworkInterfaces {
			for _, address := range found.Addresses {
				ip, _, _ := strings.Cut(address, "/")
				out[ip] = n.Name
			}
		}
		for _, ip := range n.InternalIPs {
			out[ip] = n.Name
		}
		if n.IP != "" {
			out[n.IP] = n.Name
		}
	}
	return out
}
