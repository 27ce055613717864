package plan

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
)

// The rules for targets that only their own server mounts (format.Served): the agent makes them, proves them with what their programs read,
// and never mounts them.

// NewOf describes the filesystem that a target gets, with this UUID.
func NewOf(t *v1alpha1.StorageTarget, l Look, uuid string) format.New {
	n := format.New{
		Options: t.Spec.Format.MkfsOptions, Label: Label(t), UUID: uuid, Device: devicePath(l.Device.KernelName), Given: format.GivenTo(t),
	}
	if l.Log != nil {
		n.LogDevice, n.LogBytes = devicePath(l.Log.KernelName), l.Log.SizeBytes
	}
	if _, is := registry.Served(t.Spec.Format); is {
		n.Mark = mark(t, uuid)
	}
	return n
}

// mark returns the marker of a target as one line.
func mark(t *v1alpha1.StorageTarget, uuid string) string {
	s := t.Spec
	// Encoding can't fail, because this is a struct of strings and a number.
	content, err := json.Marshal(spec.TargetMarker{
		Version: spec.TargetMarkerVersion,
		Owner:   spec.Owner{Namespace: t.Namespace, Name: s.FileSystem.Name, UID: s.FileSystem.UID}, Cluster: s.Cluster,
		Target: t.Name, Role: string(s.Role), StoragePool: s.StoragePool, Slot: s.Slot, UUID: uuid,
	})
	if err != nil {
		return ""
	}
	return string(content)
}

// servedRefusals returns why a target that only its own server mounts can't be made; none for any other target.
func servedRefusals(t *v1alpha1.StorageTarget, l Look, uuid string) []string {
	f, is := registry.Served(t.Spec.Format)
	if !is {
		return nil
	}
	return f.Problems(NewOf(t, l, uuid))
}

// notAsGiven returns why a disk's own data does not show the target that only its own server mounts. It returns none for any other target,
// and for a mounted one, because Look.Mount then identifies it. The mark of a disk that is taken over is rewritten later; the decision has
// already checked its owner.
func notAsGiven(t *v1alpha1.StorageTarget, l Look, uuid string) []string {
	f, is := registry.Served(t.Spec.Format)
	switch {
	case !is || l.Mount.Mounted:
		return nil
	case l.Device.MarkerError != "":
		return []string{"what it says of itself could not be read: " + l.Device.MarkerError}
	case l.Device.Answer == nil:
		return []string{fmt.Sprintf("%s has not the label of a target of %s", l.Device.KernelName, f.Name())}
	}
	wanted := NewOf(t, l, uuid)
	if m := l.Device.Marker; m != nil && sameTarget(*m, t) && m.UUID == uuid && isFromBefore(*m, t) {
		if found, err := f.Mark(*l.Device.Answer); err == nil {
			wanted.Mark = found
		}
	}
	for _, s := range l.Device.Signatures {
		seen := format.Seen{Type: s.Type, UUID: s.UUID, Label: s.Label, Answer: *l.Device.Answer}
		if why := f.Refusal(wanted, seen); s.Device == l.Device.KernelName && why != "" {
			return []string{l.Device.KernelName + " is not what the target was given: " + why}
		}
	}
	return nil
}

// isFromBefore reports whether a marker belongs to an earlier FileSystem of the same name, or to another cluster.
func isFromBefore(m Marker, t *v1alpha1.StorageTarget) bool {
	return m.FileSystemUID != t.Spec.FileSystem.UID || m.Cluster != t.Spec.Cluster
}

// Said returns the values assigned to a target as stored on its disk, if only its own server mounts it and the disk carries this target, of
// this cluster or of one that may be taken over; nil for any other. The result why is set if they can't be used.
func Said(t *v1alpha1.StorageTarget, l Look) (given *format.Given, why string) {
	f, is := registry.Served(t.Spec.Format)
	m := l.Device.Marker
	if !is || m == nil || l.Device.Answer == nil || !sameTarget(*m, t) || IsOfThisCluster(*m, t, t.Spec.TakeOver) != "" {
		return nil, ""
	}
	found, err := f.Says(*l.Device.Answer)
	if err != nil {
		return nil, err.Error()
	}
	return &found, ""
}

// serveByServer decides on a finished target that only its own server mounts, whose disk is present and proves to carry it.
func serveByServer(t *v1alpha1.StorageTarget, l Look) Decision {
	if m := marker(l); m != nil && isFromBefore(*m, t) {
		if l.Mount.Mounted {
			return refused(t, v1alpha1.ReasonMountFailed, fmt.Sprintf("%s is mounted with the mark of an earlier FileSystem, or of another cluster, which can be "+
				"written again only while nothing is mounted; unmount it: umount %s", l.Device.KernelName, spec.TargetPath(t.Namespace, t.Spec.FileSystem.Name, t.Name)))
		}
		if elsewhere := IsMountedNowhereElse(l.Device); elsewhere != "" {
			return refused(t, v1alpha1.ReasonMountFailed, "the mark of an earlier FileSystem, or of another cluster, is not written again: "+elsewhere)
		}
		return working(t, Mark, v1alpha1.ReasonProvisioning, "the mark is being updated with the uids of the new FileSystem and of this cluster")
	}
	how := "is proven by its UUID, its mark and what it says of itself; its server mounts it"
	if l.Mount.Mounted {
		how = "is mounted by its server; the UUID and the name agree"
	}
	return proven(t, l.Device.KernelName+" "+how+renamed(l)+grown(t, l))
}

// proven decides on a target that is proven and needs no action.
func proven(t *v1alpha1.StorageTarget, how string) Decision {
	d := working(t, None, v1alpha1.ReasonProven, how)
	d.Progress, d.Ready.Status = Settled, metav1.ConditionTrue
	d.Provisioned = withoutOrigin(t)
	return d
}

// isOnItsWay reports whether the server of a target is mounting or unmounting it, which takes seconds to minutes. Meanwhile the kernel
// keeps the disk's filesystem busy, and shows the mount only after all of it has started. The disk must carry the marker of this target.
func isOnItsWay(t *v1alpha1.StorageTarget, l Look, uuid string) bool {
	f, is := registry.Served(t.Spec.Format)
	if m := marker(l); !is || l.Mount.Mounted || m == nil || isFromBefore(*m, t) || !sameTarget(*m, t) || m.UUID != uuid ||
		!slices.Equal(l.Device.Mounts, []string{UnseenMount(string(f.Name()))}) {
		return false
	}
	l.Device.Mounts = nil
	return len(notOurs(t, l, uuid)) == 0
}

// withoutOrigin returns the record of a target without its former cluster, once the marker names this cluster. From then on the marker must
// name this cluster, because another one may take the disk over as well.
func withoutOrigin(t *v1alpha1.StorageTarget) *v1alpha1.TargetProvisioned {
	own := t.Status.Provisioned.DeepCopy()
	own.TakenFrom, own.FormerOwner = "", nil
	return own
}
