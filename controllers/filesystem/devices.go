package filesystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/decisions"
	"parallelfs.dev/operator/internal/plan"
)

// disks holds the StorageTargets that the choice of disks depends on, including those that are being deleted.
type disks struct {
	// own holds those of the FileSystem, sorted by node and name, and others those of all other FileSystems.
	own    []v1alpha1.StorageTarget
	others [][]v1alpha1.StorageTarget
	// versions holds the versions of the NodeInventories, by node.
	versions map[string]string
}

// usesDevices reports whether a role of the FileSystem keeps its data on disks.
func usesDevices(fs *v1alpha1.FileSystem) bool {
	return slices.ContainsFunc(decisions.RoleTargets(fs), func(t v1alpha1.TargetsSpec) bool { return len(t.Directories) == 0 })
}

// usesDirectories reports whether a role of the FileSystem keeps its data in directories.
func usesDirectories(fs *v1alpha1.FileSystem) bool {
	return slices.ContainsFunc(decisions.RoleTargets(fs), func(t v1alpha1.TargetsSpec) bool { return len(t.Directories) > 0 })
}

// asksForCPUs reports whether a role of the FileSystem asks for CPUs.
func asksForCPUs(fs *v1alpha1.FileSystem) bool {
	return fs.Spec.MetadataServers.CPUPinning != nil ||
		slices.ContainsFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.CPUPinning != nil })
}

// chooseDisks creates, changes and deletes StorageTargets as the spec asks, and adds what a person has to change. New disks, released
// disks, and new settings of disks in use wait for the lease. Input.Chosen is true afterwards if there was nothing to do.
func (p *pass) chooseDisks(ctx context.Context) error {
	fs, d := p.fs, p.disks
	if p.in.Chosen || !p.joins || !usesDevices(fs) && len(d.own) == 0 {
		return nil
	}
	question := decisions.DiskQuestion(p.backend, p.in, p.Cluster, p.allocation.TargetNodes)
	if usesDevices(fs) {
		var err error
		if question.Attachments, err = p.attachments(ctx, nodesOf(fs, p.allocation.TargetNodes)); err != nil {
			return err
		}
	}
	name := client.ObjectKeyFromObject(fs)
	from := p.choices.dependsOn(fs, d, p.allocation.TargetNodes, question.FilesIn, question.Attachments)
	teller, tells := p.backend.(backend.TargetTeller)
	assigns := tells && teller.Unassigned(p.in)
	if problems, ok := p.choices.find(name, from); ok && !assigns {
		p.problems = slices.Concat(problems, p.problems)
		p.in.Chosen = true
		return nil
	}
	question.Others = slices.Concat(d.others...)
	var there map[string]*v1alpha1.StorageTarget
	question.Existing, there = plan.Existing(d.own, question.GaveUp)
	selection := plan.Select(question)
	if tells {
		teller.TellTargets(p.in, selection.Targets)
	}
	problems := problemsOf(selection.Problems)
	// Of everything that a person has to change, the disks come first.
	defer func() { p.problems = slices.Concat(problems, p.problems) }()

	var wanted, missing []client.Object
	keep := map[string]bool{}
	for i := range selection.Targets {
		t := &selection.Targets[i]
		keep[t.Name] = true
		switch live := there[t.Name]; {
		case live == nil:
			missing = append(missing, t)
			continue
		case live.DeletionTimestamp.IsZero():
			wanted = append(wanted, t)
			continue
		}
		problems = append(problems, backend.Problem{Reason: v1alpha1.ReasonTargetsNotReady, Message: fmt.Sprintf(
			"StorageTarget %s was deleted, and may hold data: its disk on node %s is unmounted when nothing uses it any more, what is on it is "+
				"kept, and where the spec still asks for the disk, it is taken up again with that", t.Name, t.Spec.Node)})
	}
	leaving, unsaid := p.leavingTargets(keep, question.GaveUp)
	problems = append(problems, unsaid...)
	mine := map[string]string{v1alpha1.LabelFileSystem: fs.Name}
	taken, more := takenUp(missing, len(selection.Targets))
	targets := p.Applier.Compare(ctx, fs, mine, slices.Concat(taken, wanted))
	differences := targets.Differences()
	if len(differences)+len(leaving)+len(unsaid)+more == 0 {
		p.choices.keep(name, from, problems)
		p.in.Chosen = true
	}
	changes, held := diskChanges(selection.Targets, there, leaving, differences)
	if may, err := p.hold.may(ctx, changes...); err != nil {
		return err
	} else if !may {
		targets.Hold(held...)
		leaving = nil
	}
	if more > 0 {
		problems = append(problems, backend.Problem{Reason: v1alpha1.ReasonTargetsNotReady, Message: fmt.Sprintf(
			"%s taken up, %s after that", v1alpha1.Count(len(taken), "disk is", "disks are"), v1alpha1.Count(more, "other", "others"))})
	}
	result, err := targets.ApplyTogether(ctx)
	errs := []error{err}
	deleted := 0
	for _, t := range leaving {
		// The delete names the version that was read, so it conflicts if an agent begins with the disk meanwhile.
		err := p.targetChanges.conflict(p.Client.Delete(ctx, t, client.Preconditions{UID: &t.UID, ResourceVersion: &t.ResourceVersion}))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete StorageTarget %s: %w", t.Name, err))
			continue
		}
		deleted++
	}
	if result.Applied+deleted > 0 {
		log.FromContext(ctx).Info("Applied StorageTargets", "applied", result.Applied, "deleted", deleted)
	}
	return errors.Join(errs...)
}

const (
	// atOnce is the least number of disks that a pass adds. The API server may take half a minute for this number. A pass that added all disks
	// of a large filesystem would see nothing else for many minutes.
	atOnce = 1200
	// turns is the number of passes in which the disks of a larger filesystem are added. Each of these passes chooses from all disks, so if
	// the number of passes grew with the number of disks, the work would grow with its square.
	turns = 6
)

// takenUp returns the missing StorageTargets that this pass creates, node by node, so that the nodes can start one after the other. more is
// the number that is left to the next pass, which the new objects trigger. The argument wanted is the total number.
func takenUp(missing []client.Object, wanted int) (now []client.Object, more int) {
	slices.SortStableFunc(missing, func(a, b client.Object) int {
		return strings.Compare(a.(*v1alpha1.StorageTarget).Spec.Node, b.(*v1alpha1.StorageTarget).Spec.Node)
	})
	now = missing[:min(len(missing), max(atOnce, (wanted+turns-1)/turns))]
	return now, len(missing) - len(now)
}

// diskChanges names the disks that are added or released, and those whose settings change, and returns the differences that are not written
// while that waits. A conflict about a disk is always written, because it keeps the agent away from the disk.
func diskChanges(wanted []v1alpha1.StorageTarget, there map[string]*v1alpha1.StorageTarget, leaving []*v1alpha1.StorageTarget,
	differences []apply.Difference) (changes []string, held []apply.Difference) {
	differs := make(map[string]apply.Difference, len(differences))
	for _, d := range differences {
		differs[d.Name] = d
	}
	for i := range wanted {
		t := &wanted[i]
		d, is := differs[t.Name]
		if !is {
			continue
		}
		live := there[t.Name]
		switch {
		case live == nil:
			changes = append(changes, fmt.Sprintf("disk %s of node %s is taken up as %s", t.Spec.Device.ID, t.Spec.Node, t.Name))
		case live.Status.Provisioned != nil && live.Spec.Conflict == t.Spec.Conflict:
			changes = append(changes, fmt.Sprintf("the settings of %s on node %s change", t.Name, t.Spec.Node))
		default:
			continue
		}
		held = append(held, d)
	}
	for _, t := range leaving {
		changes = append(changes, fmt.Sprintf("%s on node %s is released", t.Name, t.Spec.Node))
	}
	return changes, held
}

// leavingTargets returns the targets to release: those that are not kept, and that hold nothing according to the filesystem's answer in
// this pass. The condition SafeToRemove may be an earlier manager's, and data may have reached the target since; unsaid names the targets
// that have only the condition.
func (p *pass) leavingTargets(keep, gaveUp map[string]bool) (leaving []*v1alpha1.StorageTarget, unsaid []backend.Problem) {
	var removable map[string]bool
	var names []string
	for i := range p.disks.own {
		t := &p.disks.own[i]
		if keep[t.Name] || !t.DeletionTimestamp.IsZero() || !plan.MayDelete(t) && !gaveUp[t.Spec.Node] {
			continue
		}
		written := t.Status.Provisioned != nil && !gaveUp[t.Spec.Node]
		if written && removable == nil {
			removable = map[string]bool{}
			for _, target := range p.backend.Observe(p.in).Targets {
				removable[target.StorageTarget] = target.Removable
			}
		}
		if written && !removable[t.Name] {
			names = append(names, t.Name)
		} else {
			leaving = append(leaving, t)
		}
	}
	if len(names) > 0 {
		unsaid = []backend.Problem{{Reason: v1alpha1.ReasonTargetsNotReady, Message: fmt.Sprintf(
			"targets are released when the filesystem reports again that nothing on them is needed: %s", backend.List(names))}}
	}
	return leaving, unsaid
}

func problemsOf(problems []plan.Problem) []backend.Problem {
	var out []backend.Problem
	for _, p := range problems {
		out = append(out, backend.Problem{Reason: p.Reason, Message: p.Message})
	}
	return out
}
