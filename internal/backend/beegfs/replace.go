package beegfs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// BeeGFS takes no target out of a buddy group. A lost disk of a group is replaced by an empty one with the same number and the same
// registration, to which the other side then copies everything. The steps are on record one after another, so that an operator that is
// killed goes on with the next one:
//
//  1. A person asks for the plan (AnnotationReplaceDisk), adds a disk, and approves the plan by its hash.
//  2. The number of the lost disk becomes that of the new one (MemberTarget.Replaces). The new one is not used yet.
//  3. A Job orders a full resync. The server of the other side keeps that order on its disk until a resync has succeeded.
//  4. The order is on record (MemberTarget.FullResync). The new disk is initialized, and its server restarts with it.
//  5. BeeGFS lists the target as online, and as Needs-resync until everything is copied.
//
// The order has to come first: the resync that BeeGFS starts by itself copies only what has changed since both sides were in touch. It then
// calls the target Good.

const (
	// registrationFile holds the name with which a storage target registers. If the number belongs to another registration, BeeGFS 7 refuses
	// the whole server, and BeeGFS 8 the target (RegisterTargetMsgEx of 7.4.6, register_target.rs of 8.3.1).
	registrationFile = "targetID"
	// resyncPrefix is in the names of the Jobs that order a full resync.
	resyncPrefix = "resync-"
)

// replacement is the state of a replacement of a lost disk that a person has asked for.
type replacement struct {
	// lost is the target of the lost disk, and by is the disk that replaces it; nil while there is none.
	lost target
	by   *v1alpha1.StorageTarget
	// why is the reason why nothing can be approved, and what to do; empty when there is a plan.
	why string
	// hash is that of the plan, and approved is true when the person has approved it.
	hash     string
	approved bool
	buddy    int32
}

// replacements returns the replacements that a person has asked for, in the order of the targets.
func (v *view) replacements() []replacement {
	var out []replacement
	for _, t := range v.targets {
		if t.replacing() {
			out = append(out, v.replacement(t))
		}
	}
	return out
}

// replacing is true for a target whose disk a person has asked to replace.
func (t target) replacing() bool {
	return t.disk != nil && t.id != 0 && t.disk.Annotations[v1alpha1.AnnotationReplaceDisk] != ""
}

// metadataStays refuses the replacement of a disk of a metadata server. BeeGFS orders a resync of metadata at the server of the secondary
// only (docs/adr/0135). That server would have to serve the empty disk first, and BeeGFS would call it Good until then.
const metadataStays = "the disk of a metadata server can't be replaced with its number yet: bring it back, and remove the annotation " +
	v1alpha1.AnnotationReplaceDisk

// asksForReplacement is true if a person has asked for another disk in the place of one of these.
func asksForReplacement(disks []*v1alpha1.StorageTarget) bool {
	return slices.ContainsFunc(disks, func(d *v1alpha1.StorageTarget) bool { return d.Annotations[v1alpha1.AnnotationReplaceDisk] != "" })
}

// replacement decides about one lost disk.
func (v *view) replacement(t target) replacement {
	r := replacement{lost: t}
	var buddy *backend.Target
	if buddy, r.why = v.wholeBuddy(t); r.why != "" {
		return r
	}
	if r.buddy, r.why = buddy.ID, v.isLost(t); r.why != "" {
		return r
	}
	if r.by = v.successor(t); r.by == nil {
		r.why = fmt.Sprintf("add an empty disk of node %s to pool %s; it is formatted as any other, and then a plan names it", t.node, t.pool.Name)
		return r
	}
	if size := r.by.Spec.Device.SizeBytes; size < buddy.UsedBytes {
		r.why = fmt.Sprintf("disk %s has %s, and %s are in use on target %d; remove it, and add a larger one",
			r.by.Name, v1alpha1.Bytes(size), v1alpha1.Bytes(buddy.UsedBytes), buddy.ID)
		return r
	}
	r.hash = r.planHash(v.in.FileSystem)
	r.approved = t.disk.Annotations[v1alpha1.AnnotationReplaceDisk] == r.hash
	return r
}

// registration is the name with which another disk must register in the place of the target; empty when it is unknown. If a disk was lost
// before its server used it, the name is that of the disk that it replaced.
func (t target) registration() string {
	return cmp.Or(t.disk.Status.Registration, strings.TrimSpace(string(t.files[registrationFile])))
}

// wholeBuddy is the other side of the buddy group of a target. It must be the primary, online and Good: it then has all data of the group.
func (v *view) wholeBuddy(t target) (buddy *backend.Target, why string) {
	if v.in.State == nil {
		return nil, "nothing is replaced while the management service does not answer: " + v.in.StateError
	}
	m := v.in.MirrorWith(v1alpha1.RoleStorage, t.id)
	if m == nil {
		return nil, fmt.Sprintf("target %d is in no buddy group, so what was on its disk is nowhere else: with another disk in its place, its files would "+
			"look whole and read as empty. Decommission the target instead (docs/disks.md)", t.id)
	}
	if m.Secondary != t.id {
		return nil, fmt.Sprintf("BeeGFS lists target %d as the primary side of buddy group %d; the other side takes over when it is online and Good and BeeGFS "+
			"has missed this one for some minutes", t.id, m.ID)
	}
	buddy = listed(v.in, v1alpha1.RoleStorage, m.Primary)
	const lost = "nothing is replaced: target %d, the other side of buddy group %d, is %s, so the lost disk may have files that no other disk has. %s"
	i := slices.IndexFunc(v.targets, func(o target) bool { return o.id == m.Primary })
	switch {
	case buddy == nil || i < 0:
		return nil, fmt.Sprintf(lost, m.Primary, m.ID, "unknown", "Bring its server back first")
	case !buddy.Online:
		return nil, fmt.Sprintf(lost, m.Primary, m.ID, cmp.Or(buddy.Status, "offline"), "Bring its server back first")
	case buddy.Consistency != cli.Good:
		return nil, fmt.Sprintf(lost, m.Primary, m.ID, cmp.Or(buddy.Consistency, "in an unknown state"),
			"Bring the lost disk back, if it can still be read")
	}
	if away := v.in.Away(componentStorage, v.targets[i].pool.Name, "", v.targets[i].node); away != "" {
		return nil, fmt.Sprintf(lost, m.Primary, m.ID, "away ("+away+")", "Wait until its server is back")
	}
	return buddy, ""
}

// isLost returns the reason why the disk of a target may not be lost; empty when it is, and all facts that another disk needs are known.
func (v *view) isLost(t target) string {
	inventory, looked := v.in.Inventories[t.node]
	shown := plan.ShownOn(v.in.Inventories, t.disk)
	_, unproven := assign.Proven(t.disk)
	switch {
	case unproven == "":
		return "nothing is replaced: the agent has the disk mounted and proven. If it is broken, pull it first"
	case !looked || !isComplete(inventory):
		return fmt.Sprintf("nothing is replaced: the agent of node %s has not listed all of its disks, so the lost disk may be there", t.node)
	case v.in.Unconfirmed[t.node] != "":
		return "nothing is replaced: " + v.in.Unconfirmed[t.node]
	case len(shown) > 0:
		return fmt.Sprintf("nothing is replaced: node %s still has the disk, with the only copy of what BeeGFS has not copied. Pull it, or wipe it yourself", backend.List(shown))
	case t.said == nil:
		return fmt.Sprintf("nothing is replaced: BeeGFS does not list target %d", t.id)
	case t.said.Online:
		return fmt.Sprintf("nothing is replaced: BeeGFS still reaches target %d. Wait some minutes; if that does not change, delete the pod of storage server %s: "+
			"it then starts without the disk", t.id, storageName(t.pool.Name, t.node))
	case t.usurped() != "":
		return "nothing is replaced: " + t.usurped()
	case t.registration() == "":
		return fmt.Sprintf("another disk can't register as target %d: its registration was never read from the lost disk (status.registration is empty). "+
			"Bring the lost disk back once, so that the agent reads it; without that, this target can't be replaced", t.id)
	}
	return ""
}

// isComplete is true for an inventory with disks, all of which could be inspected.
func isComplete(inventory v1alpha1.NodeInventoryStatus) bool {
	return len(inventory.BlockDevices) > 0 && !slices.ContainsFunc(inventory.BlockDevices, func(b v1alpha1.BlockDevice) bool {
		return !plan.IsLookedAtCompletely(b)
	})
}

// successor returns the first disk of a node that has no number yet, was formatted by this cluster, and is proven; nil when there is none.
func (v *view) successor(t target) *v1alpha1.StorageTarget {
	for _, o := range v.ofServer[t.place()] {
		if o.disk == nil || o.id != 0 || o.disk.Spec.Remove || !o.disk.DeletionTimestamp.IsZero() {
			continue
		}
		p := o.disk.Status.Provisioned
		if _, unproven := assign.Proven(o.disk); unproven == "" && assign.Finished(o.disk) && p.PlanHash != "" && o.disk.Status.Record == nil {
			return o.disk
		}
	}
	return nil
}

// planHash covers the filesystem, the group, and the identities of both disks, so that an approval is valid for nothing else.
func (r *replacement) planHash(fs *v1alpha1.FileSystem) string {
	sum := sha256.Sum256(backend.Encode([]any{
		string(fs.UID), r.lost.id, r.lost.mirror, r.buddy, r.lost.name, r.lost.disk.Spec.Device,
		r.by.Name, r.by.Spec.Device, r.by.Status.Provisioned.UUID,
	}))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// String describes what a person can do.
func (r *replacement) String() string {
	if r.why != "" {
		return r.why
	}
	word := ""
	if said := r.lost.disk.Annotations[v1alpha1.AnnotationReplaceDisk]; said != v1alpha1.ReplacePlan && !r.approved {
		word = "the plan has changed; "
	}
	return fmt.Sprintf("%sdisk %s can replace the lost one as target %d, and BeeGFS copies all of target %d to it. Approve: kubectl -n %s annotate --overwrite storagetarget %s %s=%s",
		word, r.by.Name, r.lost.id, r.buddy, r.lost.disk.Namespace, r.lost.name, v1alpha1.AnnotationReplaceDisk, r.hash)
}

// replaced returns the StorageTargets of lost disks whose numbers other disks have.
func replaced(nodes []v1alpha1.FileSystemNode) map[string]bool {
	out := map[string]bool{}
	for _, g := range backend.GivenOn(nodes) {
		for i := range g.Targets {
			if old := g.Targets[i].Replaces; old != "" {
				out[old] = true
			}
		}
	}
	return out
}

// replace records approved replacements: the new disk gets the number of the lost one. It notes the lost disks that a selector no longer
// counts. It also notes the servers on which a person has asked for a replacement, because their new disks get no numbers of their own.
func (a *allocator) replace() {
	a.gone, a.held = replaced(a.in.FileSystemNodes), map[serverPlace]bool{}
	a.notCounted = maps.Clone(a.gone)
	if !slices.ContainsFunc(a.in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Annotations[v1alpha1.AnnotationReplaceDisk] != "" }) {
		return
	}
	used := map[string]bool{}
	for _, r := range viewOf(a.in).replacements() {
		a.notCounted[r.lost.name], a.held[r.lost.place()] = true, true
		given, ok := a.records.Find(r.lost.node, storageMemberName(r.lost.pool.Name))
		if !r.approved || !ok || used[r.by.Name] {
			continue
		}
		used[r.by.Name], a.gone[r.lost.name] = true, true
		targets := slices.Clone(given.Targets)
		for i := range targets {
			if targets[i].Name == r.lost.name {
				targets[i] = v1alpha1.MemberTarget{
					Name: r.by.Name, ID: r.lost.id, Replaces: r.lost.name,
					Files: map[string]v1alpha1.VariableValue{registrationFile: v1alpha1.VariableValue(r.lost.registration() + "\n")},
				}
			}
		}
		slices.SortFunc(targets, func(x, y v1alpha1.MemberTarget) int { return strings.Compare(x.Name, y.Name) })
		a.records.Change(r.lost.node, given.NodeMember).Targets = targets
	}
}

// isReplacement is true for a disk that replaces a lost one and was not used yet.
func isReplacement(t *v1alpha1.MemberTarget) bool { return t.Replaces != "" && t.Initialized == nil }

// noteOrder records that BeeGFS has accepted the order to copy everything to a disk.
func noteOrder(in backend.Input, t *v1alpha1.MemberTarget, now *metav1.Time) {
	if now != nil && isReplacement(t) && t.FullResync == nil && jobSucceeded(in, resyncJobName(in.FileSystem, t)) {
		t.FullResync = now
	}
}

// resyncJobName is that of the Job that orders the full resync of a disk.
func resyncJobName(fs *v1alpha1.FileSystem, t *v1alpha1.MemberTarget) string {
	return backend.ChildName(fs, fmt.Sprintf("%s%d-%s", resyncPrefix, t.ID, backend.Hash(t.Name)))
}

// resyncs returns the disks that replace lost ones, and for which no full resync is ordered yet.
func (v *view) resyncs() []v1alpha1.MemberTarget {
	var out []v1alpha1.MemberTarget
	for _, g := range v.in.Given() {
		for i := range g.Targets {
			if t := &g.Targets[i]; g.Role == v1alpha1.RoleStorage && !g.Retired && isReplacement(t) && t.FullResync == nil {
				out = append(out, *t)
			}
		}
	}
	return out
}

// resyncJobs returns the Jobs that order the full resync of disks that replace lost ones. While the other side is not whole, none begins.
func (b *builder) resyncJobs() ([]client.Object, error) {
	var out []client.Object
	for _, t := range b.resyncs() {
		name := resyncJobName(b.in.FileSystem, &t)
		if jobNamed(b.in, name) != nil {
			out = append(out, backend.Keep(b.in.FileSystem.Namespace, name))
			continue
		}
		i := slices.IndexFunc(b.targets, func(o target) bool { return o.id == t.ID })
		if i < 0 {
			continue
		}
		if _, why := b.wholeBuddy(b.targets[i]); why != "" {
			continue
		}
		argv, proof := toolOf(b.in).FullResync(t.ID, b.targets[i].mirror)
		job, err := b.configureJob(name, []spec.Command{{Argv: argv, Proof: proof}})
		if err != nil {
			return nil, err
		}
		out = append(out, job)
	}
	return out, nil
}

// replaceMessage describes the progress of the replacement of a target's disk; empty when nothing is replaced.
func (o *observer) replaceMessage(t target) string {
	switch {
	case t.replacing():
		r := o.replacement(t)
		return r.String()
	case t.id == 0 && t.disk != nil && slices.ContainsFunc(o.ofServer[t.place()], target.replacing):
		return "it gets no number while a lost disk of its node and pool is to be replaced: the plan is in the StorageTarget of the lost disk"
	case t.replaces == "" || o.in.State == nil:
		return ""
	case t.initialized == nil && t.fullResync == nil:
		_, why := o.wholeBuddy(t)
		if job := jobNamed(o.in, resyncJobName(o.fs, &v1alpha1.MemberTarget{Name: t.name, ID: t.id})); why == "" && job != nil {
			why = job.Message
		}
		return strings.TrimSuffix(fmt.Sprintf("it replaces %s as target %d, and is used when a full resync is ordered: %s", t.replaces, t.id, why), ": ")
	case t.initialized == nil:
		return fmt.Sprintf("it replaces %s as target %d: a full resync is ordered, and its server restarts with it", t.replaces, t.id)
	case t.said != nil && t.said.Online && t.said.Consistency == cli.Behind:
		return o.resyncMessage(t)
	}
	return ""
}

// resyncMessage describes how much of the other side was copied.
func (o *observer) resyncMessage(t target) string {
	m := o.in.MirrorWith(v1alpha1.RoleStorage, t.id)
	if m == nil {
		return ""
	}
	buddy := listed(o.in, v1alpha1.RoleStorage, m.Primary)
	if buddy == nil {
		return ""
	}
	return fmt.Sprintf("it replaces %s, and is no copy yet: everything is copied from target %d, and %s of about %s are there",
		t.replaces, m.Primary, v1alpha1.Bytes(t.said.UsedBytes), v1alpha1.Bytes(buddy.UsedBytes))
}
