package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/disruption"
)

// remountTogether is how many clients are remounted at the same time, after a first one has succeeded. It allows a thousand clients in half
// an hour, and does not overload the server that they all reconnect to.
const remountTogether = 16

// chooseRemounts selects clients to remount with the version of an upgrade, if the spec asks for that. First it selects one and, after that
// one has mounted with the new version, several at a time. The programs on such a client fail, so the rules for restarts that make programs
// wait apply. A window must be open, the filesystem healthy, no benchmark running, and the image already on the node.
func (p *pass) chooseRemounts(ctx context.Context) error {
	fs := p.fs
	older, component := olderClients(fs, p.backend.Order(), p.in.Pods)
	if len(older) == 0 || fs.Spec.Updates.Clients != v1alpha1.ClientsNow || p.upgrading != nil {
		return nil
	}
	in := p.in
	in.FileSystem = p.wantedOrOwn()
	members, err := p.backend.Members(in)
	if err != nil {
		p.clientsWait = "all that the spec asks for is made"
		return nil //nolint:nilerr // makeChildren reports it, unless a pool has to wait
	}
	missing, err := p.unpulled(ctx, members, []string{component}, onReadyNodes(p.in))
	if err != nil {
		return err
	}
	if missing != "" {
		p.clientsWait = "their nodes have the new image; " + missing
		return nil
	}
	const costs = "its programs have files open"
	if p.clientsWait = p.waitsBehind(p.in, component, costs); p.clientsWait != "" {
		return nil
	}
	// The cache may not show earlier remounts yet.
	if in.Pods, err = p.pods(ctx, p.Reader, fs); err != nil {
		return err
	}
	next := nextRemounts(fs, p.backend.Order(), in.Remaining().Indexed())
	if len(next) == 0 {
		p.clientsWait = "those before them are mounted, and their own nodes are Ready"
		return nil
	}
	may, err := p.hold.may(ctx, fmt.Sprintf("clients are remounted with version %s", fs.Status.Version))
	if err != nil {
		return err
	}
	if !may {
		p.clientsWait = p.hold.by + " has ended"
		return nil
	}
	p.remounts = next
	return nil
}

// onReadyNodes returns the pods on nodes that are Ready. A client whose node is down does not block the others.
func onReadyNodes(in backend.Input) []backend.Pod {
	return slices.DeleteFunc(slices.Clone(in.Pods), func(p backend.Pod) bool {
		node, there := in.Node(p.Node)
		return !there || !node.Ready
	})
}

// olderClients returns the pods of clients that were made with an older version than the servers run, and their component.
func olderClients(fs *v1alpha1.FileSystem, order []string, pods []backend.Pod) (older []*backend.Pod, component string) {
	for i := range pods {
		if p := &pods[i]; isClient(p, order) && p.Version != fs.Status.Version {
			older, component = append(older, p), p.Component
		}
	}
	return older, component
}

// isClient reports whether a pod mounts the filesystem: it has a version, and is no server.
func isClient(p *backend.Pod, order []string) bool {
	return p.Version != "" && !slices.Contains(order, p.Component)
}

// nextRemounts returns the clients to remount now. It returns none while an earlier one is not finished. A client whose node is not Ready
// is left alone.
func nextRemounts(fs *v1alpha1.FileSystem, order []string, in backend.Input) []pendingPod {
	follows := false
	in.Pods = onReadyNodes(in)
	for i := range in.Pods {
		p := &in.Pods[i]
		if !isClient(p, order) {
			continue
		}
		if p.Terminating || p.Version == fs.Status.Version && (!p.Ready || !in.AskedSince(*p)) {
			return nil
		}
		follows = follows || p.Version == fs.Status.Version
	}
	most := 1
	if follows {
		most = remountTogether
	}
	older, _ := olderClients(fs, order, in.Pods)
	slices.SortFunc(older, func(a, b *backend.Pod) int { return cmp.Compare(a.Node, b.Node) })
	var out []pendingPod
	for _, p := range older[:min(most, len(older))] {
		out = append(out, pendingPod{pod: p.Name, Disruption: disruption.Disruption{
			Place: disruption.Place{Component: p.Component, Node: p.Node},
			Why:   fmt.Sprintf("it follows the upgrade to %s (spec.updates.clients is %s)", fs.Status.Version, fs.Spec.Updates.Clients),
		}})
	}
	return out
}

// clientsOlder describes how many clients run which version, and what the older ones wait for; nil if no client is older than the servers.
func clientsOlder(fs *v1alpha1.FileSystem, order []string, pods []backend.Pod, waits string) *upgrading {
	older, _ := olderClients(fs, order, pods)
	if len(older) == 0 {
		return nil
	}
	nodes, run := make([]string, len(older)), map[string]int{}
	for i, p := range older {
		nodes[i] = p.Node
	}
	for i := range pods {
		if p := &pods[i]; isClient(p, order) {
			run[p.Version]++
		}
	}
	var versions []string
	for _, version := range backend.SortedKeys(run) {
		versions = append(versions, fmt.Sprintf("%d run %s", run[version], version))
	}
	message := fmt.Sprintf("all servers run %s, and of the clients %s. An older version is allowed; these have one: %s. ",
		fs.Status.Version, backend.List(versions), backend.List(nodes))
	switch {
	case fs.Spec.Updates.Clients != v1alpha1.ClientsNow:
		message += fmt.Sprintf("The operator remounts none, because every program with an open file would fail (spec.updates.clients is %s). "+
			"When no program on a node uses it, delete the client's pod there, such as: kubectl delete pod %s -n %s",
			cmp.Or(fs.Spec.Updates.Clients, v1alpha1.ClientsManual), older[len(older)-1].Name.Name, fs.Namespace)
	case waits != "":
		message += "They are remounted when " + waits
	default:
		message += fmt.Sprintf("They are remounted, up to %d at a time", remountTogether)
	}
	return &upgrading{reason: v1alpha1.ReasonClientsOlder, message: message}
}
