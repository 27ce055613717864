package beegfs

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// say adds a problem.
func (o *observer) say(reason, format string, args ...any) {
	o.seen.Problems = append(o.seen.Problems, backend.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// diagnose lists the problems that keep the filesystem from being Ready, worst first.
func (o *observer) diagnose() {
	unproven, missing, inconsistent := o.wrongTargets()
	servers, unready := o.unreadyDisks()
	unproven = slices.Concat(servers, unproven, o.unplaced)
	notReady := func() {
		if len(unproven) > 0 {
			o.say(v1alpha1.ReasonTargetsNotReady, "waiting for %s: %s", v1alpha1.Count(len(unproven), "disk", "disks"), backend.List(unproven))
		}
	}
	switch {
	case o.in.State == nil && unready:
		notReady()
		o.diagnoseManagement()
		return
	case o.in.State == nil:
		o.diagnoseManagement()
		notReady()
		return
	}
	if l := o.seen.Licensed; l != nil && l.Reason != v1alpha1.ReasonLicenseValid {
		o.seen.Problems = append(o.seen.Problems, *l)
	}
	if len(missing) > 0 {
		o.say(v1alpha1.ReasonTargetsMissing, "%s not online: %s", v1alpha1.CountOf(len(missing), len(o.seen.Targets), "target", "targets", "is", "are"), backend.List(missing))
	}
	if len(inconsistent) > 0 {
		o.say(v1alpha1.ReasonDataInconsistent, "mirrored data is not the same on both sides: %s", backend.List(inconsistent))
	}
	o.diagnoseMembers()
	o.diagnoseServers()
	if len(o.work.why) > 0 {
		o.say(v1alpha1.ReasonPoolsNotPlaced, "BeeGFS is not yet set up as the spec asks: %s; %s", backend.List(o.work.why), o.work.progress(o.in))
	}
	notReady()
	o.diagnoseClients()
}

// serves is true when every target and metadata server that ever held data is online, or its buddy is, and each pool takes new files.
func (o *observer) serves() bool {
	if o.in.State == nil || len(o.work.why) > 0 || !o.seen.Reachable() {
		return false
	}
	for _, i := range o.seen.Servers {
		if i.Role == v1alpha1.RoleMetadata && !i.Online && !o.buddies.serves(v1alpha1.RoleMetadata, i.ID) {
			return false
		}
	}
	initialized := map[int32]bool{}
	for _, t := range o.targets {
		initialized[t.id] = initialized[t.id] || t.initialized != nil
	}
	for _, t := range o.seen.Targets {
		known := listed(o.in, v1alpha1.RoleStorage, t.ID) != nil || initialized[t.ID]
		// A target that was never in the filesystem holds no data, and neither does one that was emptied.
		if known && !t.Online && !t.Removable && !o.buddies.serves(v1alpha1.RoleStorage, t.ID) {
			return false
		}
	}
	for _, l := range o.leftovers {
		if l.Initialized != nil && l.Drained == nil && l.said != nil && !l.said.Online && !o.buddies.serves(v1alpha1.RoleStorage, l.ID) {
			return false
		}
	}
	return !slices.ContainsFunc(o.fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return o.seen.Online(p.Name) == 0 })
}

// wrongTargets returns three lists of storage targets: those that wait for their disks, those that are offline, and those that are online
// with inconsistent data.
func (o *observer) wrongTargets() (unproven, missing, inconsistent []string) {
	waits := map[string]bool{}
	for _, t := range o.targets {
		if t.disk != nil {
			_, why := assign.Proven(t.disk)
			waits[t.name] = why != ""
		}
	}
	for _, t := range o.seen.Targets {
		switch {
		case t.Removable:
		case !t.Online && t.StorageTarget != "" && waits[t.StorageTarget]:
			unproven = append(unproven, fmt.Sprintf("%s on node %s in pool %s (%s)", t.StorageTarget, t.Node, t.StoragePool, t.Message))
		case !t.Online:
			missing = append(missing, fmt.Sprintf("%s in pool %s (%s)", t.Name(), t.StoragePool, t.Message))
		}
	}
	for _, l := range o.leftovers {
		// A target that a person has removed from BeeGFS by hand is not missing.
		if l.Initialized != nil && l.Drained == nil && l.said != nil && !l.server.GivenUp {
			missing = append(missing, fmt.Sprintf(
				"target %d (%s on node %s, which was never emptied and has no StorageTarget any more; name its disk again in the spec, or, "+
					"when it is lost with all that is on it, remove the target from BeeGFS by hand: beegfs-ctl --removetarget, or beegfs target delete)",
				l.ID, l.Name, l.server.Node))
		}
	}
	return unproven, missing, o.inconsistent()
}

// inconsistent names targets and metadata servers that are not in the state Good.
func (o *observer) inconsistent() []string {
	if o.in.State == nil {
		return nil
	}
	var out []string
	for _, t := range o.in.State.Targets {
		if message := consistencyMessage(t.Consistency); message != "" && o.isGiven(t) {
			out = append(out, fmt.Sprintf("%s (%s)", o.nameOf(t), message))
		}
	}
	return out
}

// isGiven is true for a target whose number the operator assigned.
func (o *observer) isGiven(t backend.Target) bool {
	_, storage := o.given.targets[t.ID]
	_, metadata := o.given.servers[place{v1alpha1.RoleMetadata, t.ID}]
	return t.Role == v1alpha1.RoleMetadata && metadata || t.Role != v1alpha1.RoleMetadata && storage
}

// nameOf returns the operator's name of a target that BeeGFS lists; empty for a foreign target.
func (o *observer) nameOf(t backend.Target) string {
	if t.Role == v1alpha1.RoleMetadata {
		return o.given.servers[place{t.Role, t.ID}]
	}
	if server, ok := o.given.targets[t.ID]; ok {
		return fmt.Sprintf("target %d of %s", t.ID, server)
	}
	return ""
}

// unreadyDisks lists the disks of the management service and of the metadata servers that are not proven; first is true when the management
// service waits for its own.
func (o *observer) unreadyDisks() (names []string, first bool) {
	record := o.fs.Status.Metadata
	wait := func(name, what, node string, targets v1alpha1.TargetsSpec) bool {
		if !assign.OnDevices(targets) || path.IsAbs(name) {
			return false
		}
		disks := o.disksNamed(name)
		switch {
		case name == "":
			names = append(names, fmt.Sprintf("one for %s on node %s", what, node))
			return true
		case len(disks) == 0:
			names = append(names, fmt.Sprintf("%s on node %s for %s (its StorageTarget is gone; the data is on that disk alone)", name, node, what))
			return true
		}
		if _, why := assign.Proven(disks[0]); why != "" {
			names = append(names, backend.Shorten(fmt.Sprintf("%s on node %s for %s (its disk: %s)", name, node, what, why)))
			return true
		}
		return false
	}
	if record != nil && o.fs.Spec.BeeGFS != nil {
		first = wait(record.Target, "the management service", record.Node, o.fs.Spec.BeeGFS.Management.Targets)
	}
	for _, a := range metadataServers(o.in) {
		name := ""
		if len(a.Targets) > 0 {
			name = a.Targets[0].Name
		}
		wait(name, "metadata server "+a.Server(), a.Node, o.fs.Spec.MetadataServers.Targets)
	}
	return names, first
}

// diagnoseManagement reports why the state of the filesystem is unknown.
func (o *observer) diagnoseManagement() {
	record, node := o.fs.Status.Metadata, ""
	if record != nil {
		node = record.Node
	}
	pod, there := o.pod(daemon{component: componentManagement}, node)
	switch {
	case there && !pod.Ready && pod.Message != "":
		o.say(v1alpha1.ReasonDaemonRefused, "the management service on node %s does not run: %s", pod.Node, pod.Message)
	case record == nil || record.Initialized == nil:
		o.say(v1alpha1.ReasonStarting, "waiting for the management service to answer for the first time: %s", o.in.StateError)
	case !there || !pod.Ready:
		o.say(v1alpha1.ReasonMetadataOffline, "the management service does not answer, so the state of the filesystem is unknown: %s", o.in.StateError)
	default:
		o.say(v1alpha1.ReasonProbeUnreachable, "the management service runs, but its probe gives no answer that counts: %s", o.in.StateError)
	}
}

// diagnoseMembers reports servers and targets that BeeGFS lists with a number that the operator did not assign. Such a target may hold data
// of another owner, or be a disk of this filesystem with the wrong number: it is never removed.
func (o *observer) diagnoseMembers() {
	unknown := slices.Clone(o.impostors)
	for _, t := range o.targets {
		if why := t.usurped(); why != "" {
			unknown = append(unknown, why)
		}
	}
	for _, s := range o.in.State.Servers {
		if s.Role != v1alpha1.RoleMetadata && s.Role != v1alpha1.RoleStorage {
			continue
		}
		if _, given := o.given.servers[place{s.Role, s.ID}]; !given {
			unknown = append(unknown, fmt.Sprintf("%s server %d at %s", strings.ToLower(string(s.Role)), s.ID, backend.Address(s.IP, s.Port)))
		}
	}
	for _, t := range o.in.State.Targets {
		if t.Role != v1alpha1.RoleMetadata && !o.isGiven(t) {
			unknown = append(unknown, fmt.Sprintf("storage target %d of server %d", t.ID, t.ServerID))
		}
	}
	if len(unknown) > 0 {
		o.say(v1alpha1.ReasonUnknownMembers, "BeeGFS lists what this filesystem has assigned no id to: %s; stop that daemon, and then "+
			"remove the number by hand if nothing was stored on it", backend.List(unknown))
	}
}

// diagnoseServers lists the servers that are offline: metadata servers, and storage servers without a target that could be listed instead.
func (o *observer) diagnoseServers() {
	var servers []string
	for _, i := range o.seen.Servers {
		hasTargets := i.Role == v1alpha1.RoleStorage && len(o.ofServer[serverPlace{i.StoragePool, i.Node}]) > 0
		if !i.Online && !hasTargets && !o.leaving(i) {
			servers = append(servers, fmt.Sprintf("%s (%s)", i.Name, i.Message))
		}
	}
	if len(servers) > 0 {
		o.say(v1alpha1.ReasonServersMissing, "servers are not online: %s", backend.List(servers))
	}
}

// leaving is true for a storage server all of whose targets were taken out: drained, or removed from BeeGFS by hand.
func (o *observer) leaving(i backend.ServerStatus) bool {
	all := o.leftOn[i.Name]
	return len(all) > 0 && !slices.ContainsFunc(all, func(l leftover) bool { return l.Drained == nil && l.said != nil })
}

func (o *observer) diagnoseClients() {
	var missing []string
	for _, c := range o.seen.Clients {
		if n, _ := o.in.Node(c.Node); !c.Mounted && n.Ready {
			missing = append(missing, fmt.Sprintf("%s (%s)", c.Node, c.Message))
		}
	}
	if len(missing) > 0 {
		o.say(v1alpha1.ReasonClientsMissing, "the filesystem is not mounted on %s", backend.List(missing))
	}
}

// The names of the licensed features (license.rs of the management service 8.3.1).
const (
	featurePools   = "io.beegfs.storagepool"
	featureMirrors = "io.beegfs.mirroring"
)

// has is true when BeeGFS lets this filesystem use a feature: 7.4 requires no license.
func has(in backend.Input, feature string) bool {
	if !cli.Is8(backend.Version(in.FileSystem)) {
		return true
	}
	return in.State != nil && in.State.License != nil && in.State.License.Valid && slices.Contains(in.State.License.Features, feature)
}

// licensed computes the condition Licensed: nil when the spec asks for no feature that BeeGFS 8 requires a license for.
func licensed(in backend.Input) *backend.Problem {
	needs := licenseNeeds(in)
	switch {
	case len(needs) == 0:
		return nil
	case in.State == nil:
		return lastLicensed(in.FileSystem)
	}
	var costs []string
	for _, n := range needs {
		if !has(in, n.feature) {
			costs = append(costs, n.cost)
		}
	}
	if len(costs) == 0 {
		return &backend.Problem{Reason: v1alpha1.ReasonLicenseValid, Message: "the license has all that the spec asks for"}
	}
	says := "it does not say whether it has one"
	if l := in.State.License; l != nil && l.Message != "" {
		says = "it says: " + backend.Shorten(l.Message)
	} else if l != nil {
		says = "it has none for this"
	}
	return &backend.Problem{Reason: v1alpha1.ReasonLicenseMissing, Message: fmt.Sprintf(
		"BeeGFS 8 needs a license (%s); without it %s; name the Secret with the license in spec.beegfs.license, or make a filesystem of version 7.4 or with one pool",
		says, strings.Join(costs, ", and "))}
}

// lastLicensed returns the condition from the status, while BeeGFS does not answer.
func lastLicensed(fs *v1alpha1.FileSystem) *backend.Problem {
	for _, c := range fs.Status.Conditions {
		if c.Type == v1alpha1.ConditionLicensed {
			return &backend.Problem{Reason: c.Reason, Message: c.Message}
		}
	}
	return nil
}

// need is a licensed feature that the spec asks for, and the cost of its absence, in words that follow "without it ".
type need struct{ feature, cost string }

func licenseNeeds(in backend.Input) []need {
	fs := in.FileSystem
	if !cli.Is8(backend.Version(fs)) {
		return nil
	}
	var out []need
	if pools := fs.Spec.StoragePools; len(pools) > 1 {
		names := make([]string, len(pools))
		for i, p := range pools {
			names[i] = p.Name
		}
		out = append(out, need{featurePools, fmt.Sprintf(
			"the storage pools %s can't be made: all files would go to the targets of all of them alike, SSD and HDD", strings.Join(names, ", "))})
	}
	var copies []string
	for _, p := range fs.Spec.StoragePools {
		if backend.Copies(p) > 1 {
			copies = append(copies, p.Name)
		}
	}
	if len(copies) > 0 {
		out = append(out, need{featureMirrors, "no file of " + strings.Join(copies, ", ") + " has a second copy"})
	}
	if mirrorsMetadata(fs) {
		out = append(out, need{featureMirrors, "the metadata has no second copy"})
	}
	for _, t := range in.Targets {
		if t.Spec.Remove && t.Spec.Role == v1alpha1.RoleStorage && len(fs.Spec.StoragePools) == 1 {
			out = append(out, need{featurePools, "target " + t.Name + " can't be kept free of new files, so that it can't be emptied"})
		}
	}
	slices.SortStableFunc(out, func(a, b need) int { return strings.Compare(a.cost, b.cost) })
	return out
}
