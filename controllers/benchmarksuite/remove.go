package benchmarksuite

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// decideRemoving removes the FileSystem of a variant that is over. Wiping takes three steps, each proven before the next. First, the policy
// is set without the confirmation, and the FileSystem is deleted, which stops its daemons and does not touch its disks. Second, once it
// waits for the confirmation and can get no new disk, its disks are checked. Third, if it has formatted every one of them itself, the
// confirmation is set.
func (w *world) decideRemoving(variant *v1alpha1.SuiteVariantStatus) decision {
	fs := w.live(variant)
	if fs == nil || !made(w.suite, fs) {
		d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "variant %s is over", variant.Name)
		if fs != nil {
			d.message = fmt.Sprintf("variant %s is over; FileSystem %s stays, because its annotation %s was taken away", variant.Name, fs.Name, v1alpha1.AnnotationSuite)
		}
		w.finish(variant, "")
		d.next, d.after = variant, soon
		return d
	}
	destroys := w.suite.Spec.AfterVariant == v1alpha1.AfterVariantDestroy
	if !fs.DeletionTimestamp.IsZero() {
		return w.decideLeaving(variant, fs, destroys)
	}
	if w.suite.Spec.Suspend {
		return suspended()
	}
	if users := w.usersOf(fs); len(users) > 0 {
		return w.reconciling(v1alpha1.ReasonWaitingForVariant, "FileSystem %s is also measured by another BenchmarkRun, and is removed after it: %s", fs.Name, backend.List(users))
	}
	if destroys {
		for _, refused := range []*decision{w.unconfirmed(), w.notItsOwn(variant)} {
			if refused != nil {
				return *refused
			}
		}
	}
	d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "FileSystem %s is being deleted", fs.Name)
	d.after = soon
	// Whatever the FileSystem has now, this decides about the disks.
	switch confirmed := fs.Spec.ConfirmDestroy != ""; {
	case destroys && (fs.Spec.DeletionPolicy != v1alpha1.DeletionDestroy || confirmed):
		d.action = setDestroy
	case !destroys && (fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy || confirmed):
		d.action = setRetain
	default:
		d.action = deleteFileSystem
	}
	return d
}

// decideLeaving waits until a FileSystem that is being deleted no longer exists, and confirms the wipe of its disks.
func (w *world) decideLeaving(variant *v1alpha1.SuiteVariantStatus, fs *v1alpha1.FileSystem, destroys bool) decision {
	ready := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)
	asks := ready != nil && ready.Reason == v1alpha1.ReasonDestroyUnconfirmed &&
		fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy && fs.Spec.ConfirmDestroy != string(fs.UID)
	if !destroys || !asks {
		why, stalls := waitsFor(fs)
		d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "waiting until FileSystem %s is gone: %s", fs.Name, why)
		if stalls {
			d.status, d.progress = metav1.ConditionFalse, conditions.Stalled
		}
		variant.Message = v1alpha1.Cut(why, maxMessage)
		d.next = variant
		return d
	}
	for _, refused := range []*decision{w.unconfirmed(), w.notItsOwn(variant), w.unknown(variant)} {
		if refused != nil {
			return *refused
		}
	}
	d := w.reconciling(v1alpha1.ReasonWaitingForVariant, "the disks of FileSystem %s are wiped: %s", fs.Name, strings.Join(w.disks(), ", "))
	d.action, d.after = confirm, soon
	return d
}

// disks returns the disks of the FileSystem of the current variant.
func (w *world) disks() []string {
	var out []string
	for i := range w.targets {
		out = append(out, fmt.Sprintf("%s on %s", w.targets[i].Spec.Device.ID, w.targets[i].Spec.Node))
	}
	return out
}

// unknown refuses to wipe while a disk was never inspected: it could hold data that the FileSystem would take over, and then wipe.
func (w *world) unknown(variant *v1alpha1.SuiteVariantStatus) *decision {
	var names []string
	for i := range w.targets {
		if s := w.targets[i].Status; s.Provisioned == nil && s.Plan == nil {
			names = append(names, fmt.Sprintf("%s on %s", w.targets[i].Spec.Device.ID, w.targets[i].Spec.Node))
		}
	}
	if len(names) == 0 {
		return nil
	}
	d := stalled(v1alpha1.ReasonDestroyRefused,
		"FileSystem %s is not wiped yet, because no agent has scanned these disks: %s. The suite continues when one has. Or keep the data on "+
			`all its disks: kubectl patch filesystem %s -n %s --type merge -p '{"spec":{"deletionPolicy":"Retain"}}'`,
		variant.FileSystem, backend.List(names), variant.FileSystem, w.suite.Namespace)
	return &d
}

// usersOf returns other users' BenchmarkRuns that measure a FileSystem, or wait to.
func (w *world) usersOf(fs *v1alpha1.FileSystem) []string {
	var out []string
	for name, run := range w.runs {
		if run.Spec.Target.FileSystem.Name == fs.Name && run.Labels[v1alpha1.LabelBenchmarkSuite] != w.suite.Name &&
			run.Status.CompletionTime == nil &&
			!run.Spec.Suspend && run.DeletionTimestamp.IsZero() && !meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// staying returns the FileSystems that the suite made and that exist when it is deleted, sorted.
func (w *world) staying() []string {
	var out []string
	for i := range w.suite.Status.Variants {
		v := &w.suite.Status.Variants[i]
		if fs := w.fileSystems[v.FileSystem]; fs != nil && made(w.suite, fs) && (v.FileSystemUID == "" || v.FileSystemUID == string(fs.UID)) {
			out = append(out, fs.Name)
		}
	}
	slices.Sort(out)
	return out
}

// condemned is the FileSystem that is about to be wiped, nil when there is none: a deleted suite destroys nothing more.
func (w *world) condemned() *v1alpha1.FileSystem {
	v, under := w.current()
	if !under {
		return nil
	}
	variant := w.variant(v)
	fs := w.live(&variant)
	if variant.State != v1alpha1.VariantRemoving || fs == nil || !made(w.suite, fs) || fs.Spec.DeletionPolicy != v1alpha1.DeletionDestroy {
		return nil
	}
	return fs
}
