package preview

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// places adds the nodes, the ports and the directories.
func (c Cluster) places(out *Preview, b backend.Backend, p *course) {
	fs, at := p.in.FileSystem, map[string][]string{}
	var order []string
	add := func(role, node string) {
		if at[role] == nil {
			order = append(order, role)
		}
		at[role] = append(at[role], node)
	}
	for i := range p.in.FileSystemNodes {
		n := &p.in.FileSystemNodes[i]
		for _, m := range n.Spec.Members {
			if !m.Retired {
				add(m.Name, n.Spec.Node)
			}
		}
	}
	slices.Sort(order)
	if fs.Status.Metadata == nil {
		for _, n := range p.nodes.Metadata {
			add("metadata", n)
		}
		for _, pool := range backend.SortedKeys(p.nodes.Pools) {
			for _, n := range p.nodes.Pools[pool] {
				add("storage pool "+pool, n)
			}
		}
	}
	if chosen := fs.Status.Chosen; chosen != nil {
		for _, n := range chosen.Metaloggers {
			add("metalogger", n)
		}
	}
	for _, n := range backend.ClientNodes(fs, p.in.Nodes) {
		add("clients", n.Name)
	}
	for _, role := range order {
		slices.Sort(at[role])
		out.Places = append(out.Places, Place{Role: role, Nodes: slices.Compact(at[role])})
	}
	claimer, is := b.(backend.Claimer)
	if !is {
		return
	}
	claims := claimer.Claims(fs, p.in.FileSystemNodes)
	out.Ports = claims.Ports
	for _, node := range backend.SortedKeys(claims.Directories) {
		for _, directory := range claims.Directories[node] {
			out.Directories = append(out.Directories, node+":"+directory)
		}
	}
	slices.Sort(out.Directories)
	out.Directories = slices.Compact(out.Directories)
}

// disks adds the disks that would be taken up and released.
func (c Cluster) disks(out *Preview, p *course) {
	wanted := map[string]bool{}
	for i := range p.in.Targets {
		t := &p.in.Targets[i]
		wanted[t.Name] = true
		if t.Status.Provisioned != nil {
			continue // its disk is never formatted again
		}
		inventory := p.in.Inventories[t.Spec.Node]
		d := Disk{
			Target: t.Name, Node: t.Spec.Node, Role: t.Spec.Role, Pool: t.Spec.StoragePool, Device: t.Spec.Device,
			Found: plan.DiskOf(inventory, t), Decision: plan.Foresee(t, inventory, c.Now),
		}
		if b := plan.Shown(inventory, t.Spec.Device.ID); b != nil {
			d.KernelName = b.KernelName
		}
		out.Disks = append(out.Disks, d)
	}
	for i := range p.own {
		if t := &p.own[i]; !wanted[t.Name] && t.DeletionTimestamp.IsZero() {
			out.Leaves = append(out.Leaves, fmt.Sprintf("%s (node %s, disk %s)", t.Name, t.Spec.Node, t.Spec.Device.ID))
		}
	}
}

// restarts compares what the servers are made of before and after.
func restarts(out *Preview, b backend.Backend, before, after *course) {
	order := b.Order()
	for _, name := range backend.SortedKeys(after.sets) {
		set := after.sets[name]
		component := set.Labels[v1alpha1.LabelComponent]
		if component == "" {
			component = set.Spec.Template.Labels[v1alpha1.LabelComponent]
		}
		old := before.sets[name]
		if old == nil || hashOf(old) == hashOf(set) {
			continue
		}
		r := Restart{Daemon: daemonOf(set, component), Why: changeOf(old, set)}
		for i := range before.in.FileSystemNodes {
			n := &before.in.FileSystemNodes[i]
			if slices.ContainsFunc(n.Spec.Members, func(m v1alpha1.NodeMember) bool { return m.Name == r.Daemon && !m.Retired }) {
				r.Nodes = append(r.Nodes, n.Spec.Node)
			}
		}
		if !slices.Contains(order, component) {
			r.Why += "; the operator does not restart it by itself"
		}
		out.Restarts = append(out.Restarts, r)
	}
	for _, name := range backend.SortedKeys(before.sets) {
		if after.sets[name] == nil {
			out.Stops = append(out.Stops, name)
		}
	}
}

// upgrade adds an upgrade. The operator carries it out component by component, so that a pass renders the running version at first.
func upgrade(out *Preview, b backend.Backend) {
	fs := out.FileSystem
	if runs := fs.Status.Version; runs != "" && fs.Spec.Version != "" && runs != fs.Spec.Version {
		out.Restarts = append(out.Restarts, Restart{
			Daemon: strings.Join(b.Order(), ", "),
			Why:    fmt.Sprintf("all of them are upgraded from version %s to %s, one after the other", runs, fs.Spec.Version),
		})
	}
}

func hashOf(set *appsv1.DaemonSet) string {
	return set.Spec.Template.Annotations[backend.TemplateHashAnnotation]
}

// daemonOf returns the name of a daemon as its node's record has it.
func daemonOf(set *appsv1.DaemonSet, component string) string {
	labels := set.Spec.Template.Labels
	for _, more := range []string{labels[v1alpha1.LabelStoragePool], labels[v1alpha1.LabelSlot]} {
		if more != "" {
			return component + "-" + more
		}
	}
	return component
}

// changeOf says what differs in a template whose hash has changed.
func changeOf(a, b *appsv1.DaemonSet) string {
	var what []string
	if x, y := a.Spec.Template.Annotations[backend.VersionAnnotation], b.Spec.Template.Annotations[backend.VersionAnnotation]; x != y {
		what = append(what, fmt.Sprintf("its version changes from %s to %s", x, y))
	}
	if images(a) != images(b) {
		what = append(what, "its image changes")
	}
	if len(what) == 0 {
		return "its configuration changes"
	}
	return strings.Join(what, ", and ")
}

func images(set *appsv1.DaemonSet) string {
	var out []string
	for _, list := range [][]corev1.Container{set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers} {
		for i := range list {
			out = append(out, list[i].Image)
		}
	}
	return strings.Join(out, " ")
}
