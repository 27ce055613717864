package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// A disk may carry the target of a FileSystem of another name or namespace, of another node, or of another cluster. A person may let this
// target take it over with its data (docs/adr/0121). Nothing is formatted or wiped: only the markers get a new owner.

// formerOwner returns the other target that the disk of a target carries, if its marker and its record agree. It is nil for any other disk,
// and for one that only its own server mounts, because that server has written its name and node to the disk as well.
func formerOwner(t *v1alpha1.StorageTarget, l Look) *v1alpha1.FormerTarget {
	m, r := l.Device.Marker, l.Device.Record
	if _, served := registry.Served(t.Spec.Format); served || l.Mount.Mounted || m == nil || r == nil || sameTarget(*m, t) {
		return nil
	}
	if r.FileSystem.Namespace != m.Namespace || r.FileSystem.Name != m.FileSystem || r.Target != m.Target || r.Node == "" || r.Type == "" ||
		m.Cluster == "" || m.FileSystemUID == "" || m.UUID == "" {
		return nil
	}
	return &v1alpha1.FormerTarget{
		Owner:         v1alpha1.FormerOwner{Cluster: m.Cluster, Namespace: m.Namespace, FileSystem: m.FileSystem, Node: r.Node},
		FileSystemUID: m.FileSystemUID, Type: v1alpha1.FileSystemType(r.Type), Target: m.Target, UUID: m.UUID,
		ServerID: r.Member.ID, TargetID: r.TargetID,
	}
}

// isFormer reports whether a marker belongs to the owner from which a target is taken over.
func isFormer(m Marker, t *v1alpha1.StorageTarget) bool {
	if p := t.Status.Provisioned; p == nil || p.FormerOwner == nil {
		return false
	}
	former := t.Status.Provisioned.FormerOwner
	return m.Cluster == former.Owner.Cluster && m.Namespace == former.Owner.Namespace && m.FileSystem == former.Owner.FileSystem &&
		m.FileSystemUID == former.FileSystemUID && m.Target == former.Target && m.UUID == former.UUID &&
		m.Role == string(t.Spec.Role) && m.StoragePool == t.Spec.StoragePool
}

// takeOver decides on a target without a record whose disk carries another target.
func takeOver(t *v1alpha1.StorageTarget, l Look, former v1alpha1.FormerTarget, now time.Time) Decision {
	taken := t.DeepCopy()
	taken.Status.Provisioned = &v1alpha1.TargetProvisioned{UUID: former.UUID, Label: labelOn(t, l), FormerOwner: &former}
	plan := takeOverPlan(taken, l, former)
	say := func(reason, format string, args ...any) Decision {
		d := refused(t, reason, fmt.Sprintf(format, args...))
		d.Plan, d.FormerOwner = &plan, &former
		return d
	}
	disk, owner := l.Device.KernelName, describeOwner(former)
	switch allowed := t.Spec.TakeOverFrom; {
	case allowed == nil:
		plan.Refusals = append([]string{IsNoOthersTarget(l.Device, t)}, plan.Refusals...)
		return say(v1alpha1.ReasonDeviceRefused, "%s. To take it over with its data, name its owner in spec.provisioning.takeOverFrom of FileSystem %s: %s",
			IsNoOthersTarget(l.Device, t), t.Spec.FileSystem.Name, describeNames(former.Owner))
	case *allowed != former:
		other := "the disk carries " + owner + ", and spec.takeOverFrom names " + describeOwner(*allowed)
		plan.Refusals = append([]string{other}, plan.Refusals...)
		return say(v1alpha1.ReasonDeviceRefused, "%s is not taken over: it carries %s, and another target was to be taken over, %s; compare the disks",
			disk, owner, describeOwner(*allowed))
	case len(plan.Refusals) > 0:
		return say(v1alpha1.ReasonDeviceRefused, "%s can't be taken over: %s", disk, strings.Join(plan.Refusals, "; "))
	case t.Spec.ApprovedPlan == "":
		return say(v1alpha1.ReasonAwaitingApproval, "the plan must be approved: %s is taken over with its data from %s. It destroys nothing. "+
			`To approve it: kubectl patch storagetarget %s -n %s --type merge -p '{"spec":{"approvedPlan":%q}}'`, disk, owner,
			t.Name, t.Namespace, plan.Hash)
	case t.Spec.ApprovedPlan != plan.Hash:
		return say(v1alpha1.ReasonApprovalRefused, "spec.approvedPlan approves the plan %s, but the plan is now %s: %s is taken over with its data from %s",
			t.Spec.ApprovedPlan, plan.Hash, disk, owner)
	}
	d := working(t, Adopt, v1alpha1.ReasonProvisioning, "the device is taken over from "+owner)
	finished := metav1.NewTime(now)
	d.Provisioned, d.FormerOwner = taken.Status.Provisioned, &former
	d.Provisioned.Finished = &finished
	return d
}

// takeOverPlan returns the steps that take a disk over, and the reasons to refuse them. The target already records the former owner.
func takeOverPlan(taken *v1alpha1.StorageTarget, l Look, former v1alpha1.FormerTarget) v1alpha1.TargetPlan {
	m := *l.Device.Marker
	p := v1alpha1.TargetPlan{UUID: former.UUID, Steps: []string{
		"take over, with all data on it, " + describeOwner(former),
		strings.Join(mountStep(taken, l).Argv, " "),
		"write the new owner into the markers on the disk",
	}}
	if m.Role != string(taken.Spec.Role) || m.StoragePool != taken.Spec.StoragePool {
		p.Refusals = append(p.Refusals, fmt.Sprintf("it was a disk with the role %s and pool %q, and the target has the role %s and pool %q; name it in the same place",
			m.Role, m.StoragePool, taken.Spec.Role, taken.Spec.StoragePool))
	} else if r := l.Device.Record; taken.Spec.Role == v1alpha1.RoleMetadata && r.Member.Slot != taken.Spec.Slot {
		p.Refusals = append(p.Refusals, fmt.Sprintf("it was the disk of metadata server %d of its node, and the target is that of server %d; name the disks in the same order",
			r.Member.Slot, taken.Spec.Slot))
	}
	if taken.Spec.LogDevice != nil {
		p.Refusals = append(p.Refusals, "a disk with an external log is not taken over from another owner: the log carries no marker")
	}
	p.Refusals = append(p.Refusals, notOurs(taken, l, former.UUID)...)
	p.Refusals = append(p.Refusals, sentences(OpensExclusively(l.Device), IsMountedNowhereElse(l.Device), mountpointIsFree(l.Mount))...)
	p.Refusals = append(p.Refusals, kernelRefusals(taken, l.Kernel)...)
	if m.UUID != former.UUID || !slices.ContainsFunc(l.Device.Signatures, func(s v1alpha1.Signature) bool { return s.UUID == m.UUID }) {
		p.Refusals = append(p.Refusals, "the UUID in its marker is not that of its filesystem: the marker was copied")
	}
	for i, line := range p.Refusals {
		p.Refusals[i] = v1alpha1.Cut(line, 2*maxLine)
	}
	p.Refusals = p.Refusals[:min(len(p.Refusals), maxRefusals-1)]
	p.Hash = takeOverHash(taken, l, former, p)
	return p
}

// takeOverHash returns the sha256 of a target, of its former owner, and of everything found on the disk.
func takeOverHash(t *v1alpha1.StorageTarget, l Look, former v1alpha1.FormerTarget, p v1alpha1.TargetPlan) string {
	// Encoding can't fail, because these are structs of strings and numbers. Their fields have a fixed order.
	encoded, err := json.Marshal(struct {
		TakeOver             v1alpha1.FormerTarget
		Namespace, Name, UID string
		Device               v1alpha1.DeviceIdentity
		Found                Facts
		Steps                []string
	}{former, t.Namespace, t.Name, string(t.UID), t.Spec.Device, canonical(l.Device), p.Steps})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// labelOn returns the label of the filesystem on the disk of a target.
func labelOn(t *v1alpha1.StorageTarget, l Look) string {
	for _, s := range l.Device.Signatures {
		if s.Device == l.Device.KernelName && isTargetLabel(s) {
			return s.Label
		}
	}
	return Label(t)
}

// describeOwner lists everything that identifies a former target.
func describeOwner(f v1alpha1.FormerTarget) string {
	numbers := ""
	if f.ServerID != 0 || f.TargetID != 0 {
		numbers = fmt.Sprintf(", server id %d, target id %d", f.ServerID, f.TargetID)
	}
	return fmt.Sprintf("StorageTarget %s/%s of %s FileSystem %s/%s on node %s of cluster %s (uuid %s%s)",
		f.Owner.Namespace, f.Target, f.Type, f.Owner.Namespace, f.Owner.FileSystem, f.Owner.Node, f.Owner.Cluster, f.UUID, numbers)
}

// describeNames lists the names of an owner, in the form in which a person writes them into a spec.
func describeNames(o v1alpha1.FormerOwner) string {
	return fmt.Sprintf("{cluster: %s, namespace: %s, fileSystem: %s, node: %s}", o.Cluster, o.Namespace, o.FileSystem, o.Node)
}

// allowTakeOver returns the former owner whose disk a target may take over, for spec.takeOverFrom; nil for none. The result problem is set
// if a person named an owner and the takeover is not allowed.
func (s *selection) allowTakeOver(old *v1alpha1.StorageTarget) (allowed *v1alpha1.FormerTarget, problem string) {
	former, fs := old.Status.FormerOwner, s.in.FileSystem
	switch {
	case old.Status.Provisioned != nil:
		return old.Spec.TakeOverFrom, ""
	case former == nil || !slices.Contains(fs.Spec.Provisioning.TakeOverFrom, former.Owner):
		return nil, ""
	}
	owner := describeOwner(*former)
	if former.Type != fs.Spec.Type {
		return nil, fmt.Sprintf("%s is not taken over by StorageTarget %s, because FileSystem %s is a %s; take the disk out of the spec", owner, old.Name, fs.Name, fs.Spec.Type)
	}
	isHere := former.Owner.Cluster == s.in.Cluster
	if t := s.alive(former); isHere && t != nil {
		return nil, fmt.Sprintf("%s is not taken over by StorageTarget %s, because it still exists here and node %s serves it. Remove it there first: "+
			"delete its FileSystem, or take the disk out of its spec and decommission the target", owner, old.Name, cmp.Or(HolderOf(t).Node, t.Spec.Node))
	}
	isSelf := isHere && former.Owner.Namespace == fs.Namespace && former.Owner.FileSystem == fs.Name
	switch {
	case isSelf && (former.ServerID != 0 || former.TargetID != 0):
		return nil, fmt.Sprintf("%s is not taken over by StorageTarget %s: FileSystem %s has its numbers recorded for node %s, and numbers don't move. "+
			"Give the machine with the disk the name of that node", owner, old.Name, fs.Name, former.Owner.Node)
	case !isSelf && fs.Status.Metadata != nil && !s.tookOverFrom(former):
		return nil, fmt.Sprintf("%s is not taken over by StorageTarget %s, because FileSystem %s has files of its own, and two filesystems can't become one; "+
			"make another FileSystem for these disks", owner, old.Name, fs.Name)
	}
	return former.DeepCopy(), ""
}

// alive returns the StorageTarget of this cluster that the marker of a disk names, if it still exists.
func (s *selection) alive(former *v1alpha1.FormerTarget) *v1alpha1.StorageTarget {
	for _, all := range [][]v1alpha1.StorageTarget{s.in.Existing, s.in.Others} {
		for i := range all {
			if all[i].Namespace == former.Owner.Namespace && all[i].Name == former.Target {
				return &all[i]
			}
		}
	}
	return nil
}

// tookOverFrom reports whether this FileSystem has taken over another disk of the same earlier one.
func (s *selection) tookOverFrom(former *v1alpha1.FormerTarget) bool {
	return slices.ContainsFunc(s.in.Existing, func(t v1alpha1.StorageTarget) bool {
		before := t.Status.FormerOwner
		return isFinished(&t) && before != nil && before.FileSystemUID == former.FileSystemUID && before.Owner.Cluster == former.Owner.Cluster
	})
}
