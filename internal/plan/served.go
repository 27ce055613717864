package plan

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
)

// What is particular to targets that only their own server mounts (format.Served): the agent makes them and proves them by what their
// programs read, and never mounts them.

// NewOf is the filesystem that a target gets, with this UUID.
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

// mark is the marker of a target as one line.
func mark(t *v1alpha1.StorageTarget, uuid string) string {
	s := t.Spec
	// A struct of strings and a number can't fail to encode.
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

// servedRefusals are why a target that only its own server mounts can't be made so; none for any other.
func servedRefusals(t *v1alpha1.StorageTarget, l Look, uuid string) []string {
	f, is := registry.Served(t.Spec.Format)
	if !is {
		return nil
	}
	return f.Problems(NewOf(t, l, uuid))
}

// notAsGiven are why what a disk says of itself is not the target that only its own server mounts; none for any other, and for one that is
// mounted: the kernel then says which it is (Look.Mount).
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
	for _, s := range l.Device.Signatures {
		seen := format.Seen{Type: s.Type, UUID: s.UUID, Label: s.Label, Answer: *l.Device.Answer}
		if why := f.Refusal(NewOf(t, l, uuid), seen); s.Device == l.Device.KernelName && why != "" {
			return []string{l.Device.KernelName + " is not what the target was given: " + why}
		}
	}
	return nil
}

// cannotBeTakenOver refuses the disk of a target that only its own server mounts, when its mark is that of an earlier FileSystem or of
// another cluster: nothing changes the mark yet. It is nil for any other.
func cannotBeTakenOver(t *v1alpha1.StorageTarget, m *Marker) *Decision {
	f, is := registry.Served(t.Spec.Format)
	switch {
	case !is || m == nil || !sameTarget(*m, t) || m.FileSystemUID == t.Spec.FileSystem.UID && m.Cluster == t.Spec.Cluster:
		return nil
	case m.Cluster != t.Spec.Cluster:
		d := refused(t, v1alpha1.ReasonOtherCluster, fmt.Sprintf("%s; a target of %s can't be taken over from another cluster yet",
			IsOfThisCluster(*m, t, ""), f.Name()))
		return &d
	}
	d := refused(t, v1alpha1.ReasonDeviceRefused, fmt.Sprintf("the disk carries this target of an earlier FileSystem %s/%s (uid %s, and this one has %s); a target of %s can't be taken over "+
		"by another one yet: wipe the disk by hand if nobody needs what is on it", m.Namespace, m.FileSystem, m.FileSystemUID, t.Spec.FileSystem.UID, f.Name()))
	return &d
}

// serveByServer decides on a finished target that only its own server mounts, whose disk is there and says that it is this one.
func serveByServer(t *v1alpha1.StorageTarget, l Look) Decision {
	how := "is proven by its UUID, its mark and what it says of itself; its server mounts it"
	if l.Mount.Mounted {
		how = "is mounted by its server; the UUID and the name agree"
	}
	d := working(t, None, v1alpha1.ReasonProven, fmt.Sprintf("%s %s", l.Device.KernelName, how))
	d.Progress, d.Ready.Status = Settled, metav1.ConditionTrue
	return d
}
