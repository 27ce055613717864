package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
)

// Action is the next thing that the agent does with a target. After every action but None the agent reads the disk again and decides again.
type Action string

// Every action.
const (
	// None leaves everything as it is.
	None Action = "None"
	// Record writes Decision.Provisioned and Decision.Plan to the status, and nothing else. The status holds the intent before the first byte
	// is written.
	Record Action = "Record"
	// Format carries out Decision.Steps in order. The intent was recorded before.
	Format Action = "Format"
	// Mark writes the marker on the mounted filesystem, with its UUID and the current uid of the FileSystem.
	Mark Action = "Mark"
	// Mount carries out Decision.Steps, which is one mount. A failed mount is reported as MountFailed.
	Mount Action = "Mount"
	// Adopt writes a finished Decision.Provisioned to the status, because the disk already carries this target.
	Adopt Action = "Adopt"
	// Unmount unmounts the target, and removes the mountpoint if the target is deleted.
	Unmount Action = "Unmount"
	// Wipe carries out Decision.Steps: it wipes the disk of a deleted target.
	Wipe Action = "Wipe"
)

// Progress shows whether work on the target goes on.
type Progress string

// Every value of Progress.
const (
	// Settled: the target is as it should be, and there is nothing to do.
	Settled Progress = "Settled"
	// Reconciling: the agent is at work or will try again.
	Reconciling Progress = "Reconciling"
	// Stalled: the agent waits until a person or a disk changes something.
	Stalled Progress = "Stalled"
)

// Outcome is one condition.
type Outcome struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Decision is the next action for a target, and its new status.
type Decision struct {
	Action Action
	// Steps holds the steps of the actions Format, Mount and Wipe.
	Steps []Step
	// Plan is the new status.plan; nil removes it.
	Plan *v1alpha1.TargetPlan
	// Provisioned is the new status.provisioned, written before the action is carried out; nil only if the target was never provisioned.
	Provisioned *v1alpha1.TargetProvisioned
	// Ready is the condition Ready; Progress makes Reconciling or Stalled true, with the same reason and message.
	Ready    Outcome
	Progress Progress
	// NewDevice is the new status.newDevice; nil removes it.
	NewDevice *v1alpha1.NewDevice
	// FormerOwner is the new status.formerOwner; nil removes it.
	FormerOwner *v1alpha1.FormerTarget
	// Released and Destroyed are the conditions of these names; nil leaves them out.
	Released, Destroyed *Outcome
}

// Decide returns the next action for one target, from a fresh look at its disk. A target passes through these states:
//
//   - Nothing is recorded. A disk with this target's own label and marker is adopted: it comes from an earlier FileSystem of the same name,
//     in this cluster or in one that spec.takeOver names. For any other disk Make makes a plan. The plan is recorded if it has no
//     refusals and the policy allows it: IfBlank for blank devices, Approved if spec.approvedPlan is the hash of the current plan.
//     A disk with another target is taken over as it is, if spec.takeOverFrom names that target and a person has approved the plan.
//   - The intent is recorded (status.provisioned, without finished). That alone proves nothing, because the record may be old, for
//     example after a restore of etcd. If a filesystem has the recorded UUID, mkfs has finished: it is mounted and marked, and never made
//     again. The plan starts from the beginning while the devices are blank, or hold a part of what the recorded plan destroys by
//     approval. Anything else needs a new approval, including what an interrupted mkfs may have left.
//   - It is finished: the marker was on the disk. From now on the disk is mounted and proven, and never formatted again. A disk that is
//     blank, foreign or gone is TargetMissing, and a failed mount is MountFailed.
//   - It is finished, and only its own server mounts it (format.Served): the data on the disk proves it, and it is left alone.
//   - The other node of a pair holds it: this node leaves the disk alone.
//   - It is deleted: it is unmounted, and wiped if spec.destroyFor asks for it and the disk proves to be the target's.
//
// The first record uses the approval up: a recorded target is never planned again, except for an interrupted plan, whose new hash needs
// a new approval.
func Decide(t *v1alpha1.StorageTarget, l Look, now time.Time, newUUID func() string) Decision {
	switch p := t.Status.Provisioned; {
	case HolderOf(t).Node != t.Spec.Node:
		return held(t, l)
	case !t.DeletionTimestamp.IsZero():
		return release(t, l)
	case p != nil && p.Finished != nil:
		return serve(t, l)
	case t.Spec.Conflict != "":
		d := refused(t, v1alpha1.ReasonDeviceConflict, t.Spec.Conflict)
		d.Plan = begunPlan(t)
		return d
	case p != nil:
		return resume(t, l, now, newUUID)
	default:
		return begin(t, l, now, newUUID)
	}
}

// begin decides on a target without a record.
func begin(t *v1alpha1.StorageTarget, l Look, now time.Time, newUUID func() string) Decision {
	if m := marker(l); m != nil && sameTarget(*m, t) {
		record := v1alpha1.TargetProvisioned{UUID: m.UUID, Label: labelOn(t, l)}
		if m.Cluster != t.Spec.Cluster {
			if foreign := IsOfThisCluster(*m, t, t.Spec.TakeOver); foreign != "" {
				return refused(t, v1alpha1.ReasonOtherCluster, fmt.Sprintf("%s. If that cluster is gone for good, or this cluster was built in its place, "+
					"set spec.provisioning.takeOver of FileSystem %s to %q", foreign, t.Spec.FileSystem.Name, m.Cluster))
			}
			record.TakenFrom = m.Cluster
		}
		return adopt(t, l, *m, record, now)
	}
	if former := formerOwner(t, l); former != nil {
		return takeOver(t, l, *former, now)
	}
	plan := Make(t, l, planUUID(t, l, newUUID))
	d := permit(t, l, plan)
	if d.Action == Record {
		started := metav1.NewTime(now)
		d.Provisioned = &v1alpha1.TargetProvisioned{PlanHash: plan.Hash, UUID: plan.UUID, Label: Label(t), Started: &started}
	}
	return d
}

// permit decides whether a plan may be recorded: it has no refusals, and the policy or an approval of exactly this plan allows it.
func permit(t *v1alpha1.StorageTarget, l Look, plan v1alpha1.TargetPlan) Decision {
	say := func(reason, message string) Decision {
		d := refused(t, reason, message)
		d.Plan = &plan
		return d
	}
	if len(plan.Refusals) > 0 {
		return say(v1alpha1.ReasonDeviceRefused, strings.Join(plan.Refusals, "; "))
	}
	blank := isBlank(l)
	switch policy := t.Spec.FormatPolicy; policy {
	case v1alpha1.FormatIfBlank:
		if !blank {
			return say(v1alpha1.ReasonDeviceRefused, fmt.Sprintf("the device is not blank, and the policy IfBlank formats only blank devices; it holds: %s. "+
				"If all of it may be destroyed, set spec.provisioning.formatPolicy of FileSystem %s to Approved and approve the plan %s",
				strings.Join(plan.Destroys, "; "), t.Spec.FileSystem.Name, plan.Hash))
		}
	case v1alpha1.FormatApproved:
		switch t.Spec.ApprovedPlan {
		case plan.Hash:
		case "":
			return say(v1alpha1.ReasonAwaitingApproval, "the plan must be approved; "+howToApprove(t, plan))
		default:
			return say(v1alpha1.ReasonApprovalRefused, fmt.Sprintf("spec.approvedPlan approves the plan %s, but the plan is now %s, because the device or the spec has changed; %s",
				t.Spec.ApprovedPlan, plan.Hash, howToApprove(t, plan)))
		}
	case v1alpha1.FormatNever:
		return say(v1alpha1.ReasonFormatForbidden, fmt.Sprintf("the device is no target yet, and the policy Never formats nothing; "+
			"set spec.provisioning.formatPolicy of FileSystem %s to IfBlank or Approved, or name a disk that carries this target", t.Spec.FileSystem.Name))
	default:
		return say(v1alpha1.ReasonFormatForbidden, fmt.Sprintf("the format policy %q is unknown, so that nothing is formatted", policy))
	}
	return Decision{
		Action: Record, Plan: &plan, Progress: Reconciling,
		Ready: Outcome{metav1.ConditionFalse, v1alpha1.ReasonProvisioning, "the plan " + plan.Hash + " is being carried out"},
	}
}

// howToApprove returns the sentence with which a person approves a plan, with everything that the plan destroys.
func howToApprove(t *v1alpha1.StorageTarget, plan v1alpha1.TargetPlan) string {
	destroys := "It destroys nothing: the device is blank"
	if len(plan.Destroys) > 0 {
		destroys = "It destroys: " + strings.Join(plan.Destroys, "; ")
	}
	return fmt.Sprintf(`%s. To approve it: kubectl patch storagetarget %s -n %s --type merge -p '{"spec":{"approvedPlan":%q}}'`,
		destroys, t.Name, t.Namespace, plan.Hash)
}

// resume decides on a target whose plan has begun.
func resume(t *v1alpha1.StorageTarget, l Look, now time.Time, newUUID func() string) Decision {
	p := *t.Status.Provisioned
	if m := marker(l); m != nil && sameTarget(*m, t) && m.UUID == p.UUID {
		if foreign := IsOfThisCluster(*m, t, ""); foreign != "" {
			return refused(t, v1alpha1.ReasonOtherCluster, foreign)
		}
		return adopt(t, l, *m, p, now)
	}
	if d := resumeMounted(t, l, p.UUID); d != nil {
		return *d
	}
	plan := Make(t, l, planUUID(t, l, newUUID))
	again := t.Spec.FormatPolicy == v1alpha1.FormatApproved && t.Spec.ApprovedPlan == plan.Hash
	if isMade(t, l, p.UUID) && !again {
		return finish(t, l, plan)
	}
	blank, approved := isBlank(l), isPartOfApproved(t, l, plan)
	say := func(reason, message string) Decision {
		d := refused(t, reason, message)
		if d.Plan = &plan; blank || approved {
			// The plan that has begun is carried out once the reason is gone, so it stays in the status.
			d.Plan = t.Status.Plan
		}
		return d
	}
	switch {
	case len(plan.Refusals) > 0:
		return say(v1alpha1.ReasonDeviceRefused, strings.Join(plan.Refusals, "; "))
	case t.Spec.FormatPolicy != v1alpha1.FormatIfBlank && t.Spec.FormatPolicy != v1alpha1.FormatApproved:
		return say(v1alpha1.ReasonFormatForbidden, "the plan was begun, but the policy is now Never; set it back to finish the plan")
	case p.Label != Label(t):
		return say(v1alpha1.ReasonDeviceRefused, fmt.Sprintf("the plan was begun with the label %q, and this target's is %q", p.Label, Label(t)))
	case blank || approved:
		d := working(t, Format, v1alpha1.ReasonProvisioning, "the plan "+p.PlanHash+" is being carried out")
		d.Plan = t.Status.Plan
		d.Steps = Steps(t, l, p.UUID)
		return d
	case t.Spec.FormatPolicy == v1alpha1.FormatApproved:
		d := permit(t, l, plan)
		if d.Action == Record {
			started := metav1.NewTime(now)
			d.Provisioned = &v1alpha1.TargetProvisioned{PlanHash: plan.Hash, UUID: plan.UUID, Label: Label(t), Started: &started}
			return d
		}
		d.Provisioned = t.Status.Provisioned
		return d
	}
	return say(v1alpha1.ReasonDeviceRefused, fmt.Sprintf("the plan %s was begun, but the device has changed since then, or mkfs was interrupted: %s. "+
		"If all of it may be destroyed, set spec.provisioning.formatPolicy of FileSystem %s to Approved and approve the plan %s",
		p.PlanHash, strings.Join(plan.Destroys, "; "), t.Spec.FileSystem.Name, plan.Hash))
}

// resumeMounted decides on a target whose plan has begun and that is mounted without a usable marker; nil for any other target.
func resumeMounted(t *v1alpha1.StorageTarget, l Look, uuid string) *Decision {
	if !l.Mount.Mounted {
		return nil
	}
	_, served := registry.Served(t.Spec.Format)
	var d Decision
	switch {
	case l.Mount.MarkerError != "":
		// The owner of the data is unknown, so the existing marker is not overwritten.
		d = refused(t, v1alpha1.ReasonDeviceRefused, "the marker of what is mounted can't be used, and stays as it is: "+l.Mount.MarkerError)
	case served || l.Mount.Problem != "" || l.Mount.Marker != nil || l.Mount.UUID != uuid:
		return nil
	default:
		// The filesystem could be mounted, so mkfs had finished. Only the marker is missing.
		d = working(t, Mark, v1alpha1.ReasonProvisioning, "the marker is being written")
		if reasons := notOurs(t, l, uuid); len(reasons) > 0 {
			d = refused(t, v1alpha1.ReasonDeviceRefused, strings.Join(reasons, "; "))
		}
	}
	d.Plan = begunPlan(t)
	return &d
}

// isMade reports whether mkfs has finished with this UUID: the devices carry one whole filesystem with it. Daemons may have used the
// filesystem, whatever the record says.
func isMade(t *v1alpha1.StorageTarget, l Look, uuid string) bool {
	return !l.Mount.Mounted && l.Device.Found && l.Device.Marker == nil && l.Device.Unknown == "" && len(notOurs(t, l, uuid)) == 0
}

// finish decides on a target whose mkfs has finished and whose marker could not be read: the filesystem is mounted. The plan in the
// decision would make it again, and needs a new approval.
func finish(t *v1alpha1.StorageTarget, l Look, plan v1alpha1.TargetPlan) Decision {
	d := working(t, Mount, v1alpha1.ReasonProvisioning, "the filesystem is there and is being mounted; it is not made again")
	if reasons := sentences(OpensExclusively(l.Device)); len(reasons) > 0 {
		d = refused(t, v1alpha1.ReasonDeviceRefused, strings.Join(reasons, "; "))
	} else if reasons := append(kernelRefusals(t, l.Kernel), sentences(mountpointIsFree(l.Mount))...); len(reasons) > 0 {
		d = refused(t, v1alpha1.ReasonMountFailed, strings.Join(reasons, "; "))
	} else {
		d.Steps = []Step{mountStep(t, l)}
	}
	d.Plan = &plan
	return d
}

// adopt decides on a disk that carries this target's own marker: the record describes the disk as it is, and takes the remaining fields
// from the argument.
func adopt(t *v1alpha1.StorageTarget, l Look, m Marker, record v1alpha1.TargetProvisioned, now time.Time) Decision {
	if reasons := notOurs(t, l, m.UUID); len(reasons) > 0 {
		d := refused(t, v1alpha1.ReasonDeviceRefused, "the device carries this target, and can't be used: "+strings.Join(reasons, "; "))
		d.Plan = begunPlan(t)
		return d
	}
	finished := metav1.NewTime(now)
	record.Finished = &finished
	d := working(t, Adopt, v1alpha1.ReasonProvisioning, "the device carries this target with uuid "+m.UUID)
	d.Provisioned = &record
	return d
}

// serve decides on a finished target. It never formats anything.
func serve(t *v1alpha1.StorageTarget, l Look) Decision {
	p := t.Status.Provisioned
	if l.Mount.Problem != "" {
		return refused(t, v1alpha1.ReasonMountFailed, "the mountpoint can't be used: "+l.Mount.Problem)
	}
	if isOnItsWay(t, l, p.UUID) {
		d := proven(t, l.Device.KernelName+" is proven by its UUID, its mark and what it says of itself; its server mounts or unmounts it just now, "+
			"as the kernel has it and no process shows a mount of it; if that lasts, look into the kernel's log of the node (dmesg)")
		d.Progress = Reconciling
		return d
	}
	if reasons := notOurs(t, l, p.UUID); len(reasons) > 0 {
		if d := otherIdentity(t, l, reasons); d != nil {
			return *d
		}
		return refused(t, v1alpha1.ReasonTargetMissing, fmt.Sprintf("%s. The target was made with uuid %s and is never formatted again: "+
			"bring its disk back, or remove the target (spec.remove) and name another disk", strings.Join(reasons, "; "), p.UUID))
	}
	m := marker(l)
	if m != nil && sameTarget(*m, t) {
		if foreign := IsOfThisCluster(*m, t, p.TakenFrom); foreign != "" {
			return refused(t, v1alpha1.ReasonOtherCluster, foreign+". That cluster has taken over the target since this one made it. Decide which of the two is to have the disk, and "+
				"take it away from the other. To take it back, delete the FileSystem with deletionPolicy Retain, and make it again with "+
				"spec.provisioning.takeOver: "+m.Cluster)
		}
	}
	if m != nil && !isFormer(*m, t) && (!sameTarget(*m, t) || m.UUID != p.UUID) {
		return refused(t, v1alpha1.ReasonTargetMissing, fmt.Sprintf("the marker on %s is that of StorageTarget %s/%s of FileSystem %s with uuid %s; "+
			"look at how the disk came here", l.Device.KernelName, m.Namespace, m.Target, m.FileSystem, m.UUID))
	}
	if _, is := registry.Served(t.Spec.Format); is {
		return serveByServer(t, l)
	}
	if l.Mount.Mounted {
		switch {
		case l.Mount.MarkerError != "":
			return refused(t, v1alpha1.ReasonTargetMissing, fmt.Sprintf("the marker on the filesystem with uuid %s can't be used, "+
				"so that nothing proves that it is this target: %s", p.UUID, l.Mount.MarkerError))
		case m == nil:
			return refused(t, v1alpha1.ReasonTargetMissing, fmt.Sprintf("the filesystem with uuid %s has lost its marker (%s), so that nothing proves that it is this target; "+
				"if it is, put the marker back from a backup", p.UUID, spec.TargetMarkerFile))
		case !sameTarget(*m, t):
			return working(t, Mark, v1alpha1.ReasonProvisioning, "the markers are being updated with the names of this target and of its FileSystem")
		case m.FileSystemUID != t.Spec.FileSystem.UID || m.Cluster != t.Spec.Cluster:
			return working(t, Mark, v1alpha1.ReasonProvisioning, "the marker is being updated with the uids of the new FileSystem and of this cluster")
		}
		return Decision{
			Action: None, Provisioned: withoutOrigin(t), Progress: Settled,
			Ready: Outcome{
				metav1.ConditionTrue, v1alpha1.ReasonProven, fmt.Sprintf("%s is mounted; uuid %s and marker agree%s%s",
					l.Device.KernelName, p.UUID, renamed(l), grown(t, l)),
			},
		}
	}
	if reasons := kernelRefusals(t, l.Kernel); len(reasons) > 0 {
		return refused(t, v1alpha1.ReasonMountFailed, strings.Join(reasons, "; "))
	}
	d := working(t, Mount, v1alpha1.ReasonProvisioning, "the disk is there and is being mounted")
	d.Steps = []Step{mountStep(t, l)}
	return d
}

// renamed names the devices of a target that have lost their recorded names, as the end of a sentence.
func renamed(l Look) string {
	all := l.Device.Renamed
	if l.Log != nil {
		all = strings.Join(sentences(all, l.Log.Renamed), "; ")
	}
	if all == "" {
		return ""
	}
	return "; " + all
}

// notThere returns why the devices are not the recorded ones, whatever their content.
func notThere(t *v1alpha1.StorageTarget, l Look) []string {
	has := HasIdentity
	if isFinished(t) {
		has = HasIdentityOrGrew
	}
	reasons := identityOf(l.Device, DeviceOf(t), IsWholeDisk, has)
	if t.Spec.LogDevice == nil {
		return reasons
	}
	log := l.Log
	if log == nil {
		log = &Facts{}
	}
	for _, r := range identityOf(*log, *t.Spec.LogDevice, IsWholeDiskOrPartition, has) {
		reasons = append(reasons, "log device: "+r)
	}
	return reasons
}

// identityOf returns why one device is not the recorded one, or why that can't be determined.
func identityOf(
	f Facts, want v1alpha1.DeviceIdentity, kind func(Facts) string, has func(Facts, v1alpha1.DeviceIdentity) string,
) []string {
	if missing := Exists(f); missing != "" {
		return []string{fmt.Sprintf("%s: %s", want.ID, missing)}
	}
	return sentences(IsNamedStably(want.ID), has(f, want), kind(f), IsOneDisk(f), IsLookComplete(f))
}

// notOurs returns why the devices are not the disk and log of a target with this UUID, either ready to be mounted or mounted at the right
// place.
func notOurs(t *v1alpha1.StorageTarget, l Look, uuid string) []string {
	reasons := notThere(t, l)
	if len(reasons) > 0 {
		return reasons
	}
	f, err := registry.Of(t.Spec.Format)
	if err != nil {
		return []string{err.Error()}
	}
	reasons = append(reasons, wrongContent(l.Device, uuid, f.Signature())...)
	if len(reasons) == 0 {
		reasons = notAsGiven(t, l, uuid)
	}
	if l.Log != nil && t.Spec.LogDevice != nil {
		reasons = append(reasons, wrongLog(f, t, *l.Log, uuid)...)
	}
	reasons = append(reasons, sentences(IsNoOthersTarget(l.Device, t), HasNoHolders(l.Device), IsNoSwap(l.Device), IsWritable(l.Device))...)
	mountpoint := spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name)
	if m := l.Mount; !m.Mounted {
		// Another mount namespace may still have the target's own mount, below another root.
		elsewhere := l.Device
		elsewhere.Mounts = slices.DeleteFunc(slices.Clone(l.Device.Mounts), func(m string) bool { return strings.HasSuffix(m, mountpoint) })
		reasons = append(reasons, sentences(IsNotMounted(elsewhere))...)
	} else {
		if m.UUID != uuid {
			reasons = append(reasons, fmt.Sprintf("what is mounted at %s is %s with uuid %q; unmount it", mountpoint, m.KernelName, m.UUID))
		} else if m.KernelName != l.Device.KernelName {
			reasons = append(reasons, fmt.Sprintf("what is mounted at %s is %s, but the disk is now %s, because it was taken out and put back, or is a copy; unmount it",
				mountpoint, m.KernelName, l.Device.KernelName))
		}
	}
	return reasons
}

// wrongLog returns why the log device does not hold the log of the filesystem with this UUID.
func wrongLog(f format.Format, t *v1alpha1.StorageTarget, l Facts, uuid string) []string {
	log := f.Log()
	if log == nil {
		return []string{hasNoLog(t.Spec.Format)}
	}
	reasons := wrongContent(l, uuid, log.Signature)
	for i, r := range reasons {
		reasons[i] = "log device: " + r
	}
	return reasons
}

// wrongContent returns why a device does not hold exactly one filesystem, or one log, with this UUID.
func wrongContent(f Facts, uuid, kind string) []string {
	if len(f.Signatures) == 0 && len(f.Partitions) == 0 {
		return []string{f.KernelName + " is blank"}
	}
	if only := sentences(IsNotAmbivalent(f), HasNoPartitions(f)); len(only) > 0 {
		return only
	}
	var reasons []string
	for _, s := range sortedSignatures(f) {
		if s.Device != f.KernelName || s.UUID != uuid || uuid == "" || s.Type != kind {
			reasons = append(reasons, fmt.Sprintf("%s, where %s with uuid %s is expected", describe(s), kind, uuid))
		}
	}
	return reasons
}

// LeftByMkfs reports whether everything found on the devices may be left by a mkfs with this UUID that has just failed. The devices must be
// the target's and not in use, and no signature on them may have another UUID. It is also true for blank devices.
func LeftByMkfs(t *v1alpha1.StorageTarget, l Look, uuid string) bool {
	left := func(f Facts) bool {
		return len(atRest(f)) == 0 && f.Marker == nil && len(f.Partitions) == 0 && uuid != "" &&
			!slices.ContainsFunc(f.Signatures, func(s v1alpha1.Signature) bool {
				return s.Device != f.KernelName || s.UUID != uuid || s.Type == signatureAmbivalent
			})
	}
	return !l.Mount.Mounted && len(notThere(t, l)) == 0 && left(l.Device) && (l.Log == nil || left(*l.Log))
}

// ClearSteps returns the steps that make the devices of a target blank; none if they are blank.
func ClearSteps(l Look) []Step {
	steps := clearSteps(l.Device)
	if l.Log != nil {
		steps = append(steps, clearSteps(*l.Log)...)
	}
	return steps
}

// isPartOfApproved reports whether everything on the devices is listed in the plan that has begun, and that plan is still approved. An
// approved plan that was interrupted has wiped a part of it, and may continue.
func isPartOfApproved(t *v1alpha1.StorageTarget, l Look, fresh v1alpha1.TargetPlan) bool {
	p, begun := t.Status.Provisioned, t.Status.Plan
	if t.Spec.FormatPolicy != v1alpha1.FormatApproved || p.PlanHash == "" || t.Spec.ApprovedPlan != p.PlanHash ||
		begun == nil || begun.Hash != p.PlanHash || begun.UUID != p.UUID || len(begun.Refusals) > 0 || !l.Device.Found {
		return false
	}
	return isPart(fresh.Destroys, begun.Destroys) && isPart(fresh.Steps, begun.Steps)
}

// isPart reports whether all contains every line.
func isPart(lines, all []string) bool {
	return !slices.ContainsFunc(lines, func(line string) bool { return !slices.Contains(all, line) })
}

// begunPlan returns the plan that has begun. It stays in the status until the target is finished, because it shows what was approved.
func begunPlan(t *v1alpha1.StorageTarget) *v1alpha1.TargetPlan {
	if t.Status.Provisioned == nil {
		return nil
	}
	return t.Status.Plan
}

// isBlank reports whether the devices are empty and not in use.
func isBlank(l Look) bool {
	return len(Blank(l.Device)) == 0 && (l.Log == nil || len(Blank(*l.Log)) == 0)
}

// withoutUnknown returns the look without the data that no probe recognizes.
func withoutUnknown(l Look) Look {
	l.Device.Unknown = ""
	if l.Log != nil {
		log := *l.Log
		log.Unknown = ""
		l.Log = &log
	}
	return l
}

// marker returns the marker of the mounted filesystem; if none is mounted, that of the disk.
func marker(l Look) *Marker {
	if l.Mount.Mounted {
		return l.Mount.Marker
	}
	return l.Device.Marker
}

// uuidForm matches the UUIDs that the agent makes.
var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// planUUID returns the UUID of the plan that is already shown, so that the plan's hash stays the same while nothing changes, or a new one.
// It never returns a UUID that is on the devices, because the new filesystem must differ from the old one.
func planUUID(t *v1alpha1.StorageTarget, l Look, newUUID func() string) string {
	if t.Status.Plan == nil || !uuidForm.MatchString(t.Status.Plan.UUID) {
		return newUUID()
	}
	uuid := t.Status.Plan.UUID
	has := func(s v1alpha1.Signature) bool { return s.UUID == uuid }
	if slices.ContainsFunc(l.Device.Signatures, has) || l.Log != nil && slices.ContainsFunc(l.Log.Signatures, has) {
		return newUUID()
	}
	return uuid
}

// refused is a decision to do nothing until a person or a disk changes something.
func refused(t *v1alpha1.StorageTarget, reason, message string) Decision {
	return Decision{
		Action: None, Provisioned: t.Status.Provisioned, Progress: Stalled,
		Ready: Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: message},
	}
}

// working is a decision to do something now.
func working(t *v1alpha1.StorageTarget, action Action, reason, message string) Decision {
	return Decision{
		Action: action, Provisioned: t.Status.Provisioned, Progress: Reconciling,
		Ready: Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: message},
	}
}
