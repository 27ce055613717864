package filesystem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

// observe determines the health of the filesystem. It also runs after the pass has failed.
func (p *pass) observe(context.Context) error {
	if p.in.FileSystem == nil {
		return nil // nothing was read
	}
	p.observation, p.observed = p.backend.Observe(p.in), true
	p.observation.Problems = p.hold.mended(p.observation.Problems)
	return nil
}

// show passes what the filesystem reports about each target and each server to the controllers that write it. The FileSystem's own status
// is written before.
func (p *pass) show() {
	if !p.observed {
		return
	}
	_, asks := p.backend.(backend.Asker)
	silent := func(node string) bool { return asks && (p.in.State == nil || p.in.Unanswered[node] != "") }
	view := views.FileSystem{
		Targets: targetViews(p.backend, p.fs, p.disks.own, p.observation, silent),
		Nodes:   nodeViews(p.in, p.observation, silent),
	}
	if p.grows(growthLimit) {
		withoutNews(view, p.disks.own, p.in.FileSystemNodes)
	}
	p.leavePauses(view)
	p.showUnconfirmed(view)
	p.showRequests(view)
	p.showMaintenance(view)
	p.Views.Show(client.ObjectKeyFromObject(p.fs), p.fs.UID, view)
}

// growthLimit is how long a filesystem counts as growing after a disk was made for it, or one of its targets, servers and clients came
// online.
const growthLimit = 30 * time.Second

// grows reports whether something is still to be done, and within the limit disks were made, or targets, servers or clients have come
// online.
func (p *pass) grows(limit time.Duration) bool {
	so := len(p.disks.own)
	for i := range p.disks.own {
		if assign.Finished(&p.disks.own[i]) {
			so++
		}
	}
	for i := range p.observation.Targets {
		if p.observation.Targets[i].Online {
			so++
		}
	}
	for i := range p.observation.Servers {
		if p.observation.Servers[i].Online {
			so++
		}
	}
	for i := range p.observation.Clients {
		if p.observation.Clients[i].Mounted {
			so++
		}
	}
	now, what := p.Order.Now(), observedGroup{client.ObjectKeyFromObject(p.fs), "growth"}
	since := p.observations.see(what, maps.All(map[types.UID]how{p.fs.UID: {number: int64(so)}}), now)[p.fs.UID]
	return meta.IsStatusConditionTrue(p.fs.Status.Conditions, v1alpha1.ConditionReconciling) && now.Sub(since) < limit
}

// withoutNews removes from a view the targets and nodes that have no status yet. While a filesystem grows, the FileSystem shows the
// progress, and no one waits for a single one of thousands. To write each of them at once, and again when it is online, would delay the
// disks that are still being made. A problem that keeps a server from starting is always written.
func withoutNews(view views.FileSystem, own []v1alpha1.StorageTarget, nodes []v1alpha1.FileSystemNode) {
	for i := range own {
		t := &own[i]
		if meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionOnline) == nil && view.Targets[t.Name].Removal == nil {
			delete(view.Targets, t.Name)
		}
	}
	for i := range nodes {
		ready := meta.FindStatusCondition(nodes[i].Status.Conditions, v1alpha1.ConditionReady)
		if shown := view.Nodes[nodes[i].Name]; !shown.Troubled && (ready == nil || ready.Reason == v1alpha1.ReasonStarting) {
			delete(view.Nodes, nodes[i].Name)
		}
	}
}

// pauseLimit is how long a server is away before the status of each of its targets shows it.
const pauseLimit = 30 * time.Second

// leavePauses removes from a view the targets of servers that have just gone away, so that their status stays unchanged. Otherwise a
// restart of a server with 24 disks would write 48 StorageTargets, although the FileSystem and the FileSystemNode show at once that the
// server is away.
func (p *pass) leavePauses(view views.FileSystem) {
	type place struct {
		role       v1alpha1.Role
		node, pool string
		slot       int32
	}
	away, at := map[types.UID]how{}, map[types.UID]place{}
	for i := range p.observation.Servers {
		if s := &p.observation.Servers[i]; !s.Online {
			away[types.UID(s.Name)], at[types.UID(s.Name)] = how{}, place{s.Role, s.Node, s.StoragePool, s.Slot}
		}
	}
	now := p.Order.Now()
	since := p.observations.see(observedGroup{client.ObjectKeyFromObject(p.fs), "away"}, maps.All(away), now)
	pauses := map[place]bool{}
	for name, where := range at {
		pauses[where] = now.Sub(since[name]) < pauseLimit
	}
	if len(pauses) == 0 {
		return
	}
	for i := range p.disks.own {
		t := &p.disks.own[i]
		if pauses[place{t.Spec.Role, t.Spec.Node, t.Spec.StoragePool, t.Spec.Slot}] && view.Targets[t.Name].Removal == nil {
			delete(view.Targets, t.Name)
		}
	}
}

// targetViews returns how the filesystem reports each of its StorageTargets, by name. It has nothing for the targets on a silent node.
func targetViews(
	b backend.Backend, fs *v1alpha1.FileSystem, own []v1alpha1.StorageTarget, observation backend.Observation, silent func(node string) bool,
) map[string]views.Target {
	files := make(map[string]*backend.TargetStatus, len(observation.Targets))
	for i := range observation.Targets {
		if name := observation.Targets[i].StorageTarget; name != "" {
			files[name] = &observation.Targets[i]
		}
	}
	type place struct {
		role v1alpha1.Role
		node string
		slot int32
	}
	servers := map[place]*backend.ServerStatus{}
	for i := range observation.Servers {
		if s := &observation.Servers[i]; s.Role != v1alpha1.RoleStorage { // nodes may be thousands
			servers[place{s.Role, s.Node, s.Slot}] = s
		}
	}
	var mounted []string
	for _, c := range observation.Clients {
		if c.Mounted {
			mounted = append(mounted, c.Node)
		}
	}
	out := make(map[string]views.Target, len(own))
	for i := range own {
		t := &own[i]
		view := views.Target{Generation: t.Generation, Silent: silent(plan.HolderOf(t).Node)}
		if t.Spec.Role == v1alpha1.RoleStorage {
			view.Service = serviceOf(files[t.Name])
		} else if s := servers[place{t.Spec.Role, t.Spec.Node, t.Spec.Slot}]; s != nil {
			view.Service = &v1alpha1.TargetService{State: v1alpha1.StateOf(s.Online), Message: v1alpha1.Cut(s.Message, maxMessage)}
		}
		if t.Spec.Remove {
			view.Removal = new(removal(b, fs, t, mounted))
		}
		out[t.Name] = view
	}
	return out
}

// removal describes how the data on a target moves elsewhere.
func removal(b backend.Backend, fs *v1alpha1.FileSystem, t *v1alpha1.StorageTarget, mounted []string) backend.Removal {
	if drainer, ok := b.(backend.Drainer); ok {
		return drainer.Removal(fs, t, mounted)
	}
	return backend.Removal{Never: fmt.Sprintf("a filesystem of type %s can't move what is on one target to others", fs.Spec.Type)}
}

// serviceOf returns what the filesystem reports about a target with files, nil if it does not list it.
func serviceOf(t *backend.TargetStatus) *v1alpha1.TargetService {
	if t == nil {
		return nil
	}
	return &v1alpha1.TargetService{
		State: v1alpha1.StateOf(t.Online), CapacityBytes: t.CapacityBytes, UsedBytes: used(t),
		Removal: v1alpha1.RemovalOf(t.Removing, t.Removable), Message: v1alpha1.Cut(t.Message, maxMessage),
	}
}

// spaceSteps is the number of steps in which a target's used space is reported. Otherwise programs that write to thousands of targets would
// cause a write for each of them in every pass. The probe's metrics are exact.
const spaceSteps = 20

// used returns the used space of a target, rounded down to a step. While its data is moved away, it returns the exact value, because a
// person watches the progress.
func used(t *backend.TargetStatus) int64 {
	if step := t.CapacityBytes / spaceSteps; step > 0 && !t.Removing {
		return t.UsedBytes - t.UsedBytes%step
	}
	return t.UsedBytes
}

// nodeViews returns how the filesystem reports its servers on each node, by the name of the FileSystemNode. silent is true for a node that
// can't be queried.
func nodeViews(in backend.Input, observation backend.Observation, silent func(node string) bool) map[string]views.Node {
	names := map[string]string{}
	for i := range in.FileSystemNodes {
		names[in.FileSystemNodes[i].Spec.Node] = in.FileSystemNodes[i].Name
	}
	trouble := troubled(in)
	type place struct{ node, pool string }
	disks := map[place][]*backend.TargetStatus{}
	for i := range observation.Targets {
		t := &observation.Targets[i]
		disks[place{t.Node, t.StoragePool}] = append(disks[place{t.Node, t.StoragePool}], t)
	}
	out := make(map[string]views.Node, len(names))
	for i := range observation.Servers {
		s := &observation.Servers[i]
		name := names[s.Node]
		if name == "" {
			continue // its FileSystemNode was created in this pass
		}
		node := out[name]
		node.Troubled, node.Silent = trouble[s.Node], silent(s.Node)
		if on, there := in.Node(s.Node); there {
			node.BootID = on.BootID
		}
		member := v1alpha1.MemberStatus{
			Name: memberName(s), Address: s.Address, Version: s.Version, State: v1alpha1.StateOf(s.Online),
			Message: v1alpha1.Cut(s.Message, maxMessage),
		}
		// An empty placement would be encoded as null, and the API server would refuse the whole status.
		if s.Placement != nil && !equality.Semantic.DeepEqual(*s.Placement, v1alpha1.Placement{}) {
			member.Placement = s.Placement
		}
		if s.Role == v1alpha1.RoleStorage {
			for _, t := range disks[place{s.Node, s.StoragePool}] {
				node.Wanted++
				if t.Online {
					node.Online++
				}
				if t.StorageTarget == "" {
					member.Directories = append(member.Directories, v1alpha1.DirectoryStatus{Name: t.Directory, TargetService: *serviceOf(t)})
				}
			}
		}
		node.Members = append(node.Members, member)
		out[name] = node
	}
	for name, node := range out {
		slices.SortFunc(node.Members, func(a, b v1alpha1.MemberStatus) int { return strings.Compare(a.Name, b.Name) })
		out[name] = node
	}
	return out
}

// troubled returns the nodes on which something keeps a server from starting: the node itself, a pod with a message, or a disk that waits
// for a person.
func troubled(in backend.Input) map[string]bool {
	out := map[string]bool{}
	for i := range in.FileSystemNodes {
		name := in.FileSystemNodes[i].Spec.Node
		if node, there := in.Node(name); !there || !node.Ready {
			out[name] = true
		}
	}
	for i := range in.Pods {
		if in.Pods[i].Message != "" {
			out[in.Pods[i].Node] = true
		}
	}
	for i := range in.Targets {
		if meta.IsStatusConditionTrue(in.Targets[i].Status.Conditions, v1alpha1.ConditionStalled) {
			out[in.Targets[i].Spec.Node] = true
		}
	}
	return out
}

// memberName is the name of a server on its node.
func memberName(s *backend.ServerStatus) string { return strings.TrimSuffix(s.Name, "."+s.Node) }

const (
	// maxMissing bounds the length of status.missing, and maxWhy its messages, in bytes, so that a status stays small at any size.
	maxMissing = 32
	maxWhy     = 512
)

// missing returns the members that are not online, servers first.
func missing(observation backend.Observation) []v1alpha1.MissingMember {
	var out []v1alpha1.MissingMember
	add := func(kind v1alpha1.MemberKind, name, node, message string) {
		if len(out) < maxMissing {
			out = append(out, v1alpha1.MissingMember{Kind: kind, Name: name, Node: node, Message: v1alpha1.Cut(message, maxWhy)})
		}
	}
	for i := range observation.Servers {
		if s := &observation.Servers[i]; !s.Online {
			add(v1alpha1.ServerMember, memberName(s), s.Node, s.Message)
		}
	}
	for i := range observation.Targets {
		if t := &observation.Targets[i]; !t.Online && !t.Removable {
			name := t.StorageTarget
			if name == "" {
				name = t.Directory
			}
			add(v1alpha1.TargetMember, name, t.Node, t.Message)
		}
	}
	for _, c := range observation.Clients {
		if !c.Mounted {
			add(v1alpha1.ClientMember, "", c.Node, c.Message)
		}
	}
	return out
}

// versions counts the servers by the version that they report. Older statuses held at most 16.
func versions(observation backend.Observation) []v1alpha1.VersionCount {
	const most = 16
	count := map[string]int32{}
	for i := range observation.Servers {
		if v := observation.Servers[i].Version; v != "" {
			count[v]++
		}
	}
	var out []v1alpha1.VersionCount
	for version, servers := range count {
		out = append(out, v1alpha1.VersionCount{Version: version, Servers: servers})
	}
	slices.SortFunc(out, func(a, b v1alpha1.VersionCount) int { return strings.Compare(a.Version, b.Version) })
	return out[:min(len(out), most)]
}
