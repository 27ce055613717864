package lustre

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// withRecords gives the disks of an earlier Lustre the same records that disks of other filesystems have: the index is from Lustre's own
// mountdata, and the rest from the StorageTarget. It uses no disk before the disk of MDT0000 is known, because all records refer to that.
func withRecords(in backend.Input) backend.Input {
	says := func(t *v1alpha1.StorageTarget) *v1alpha1.LustreTarget {
		if t.Status.Record == nil {
			return nil
		}
		return t.Status.Record.Lustre
	}
	facts := &v1alpha1.FileSystemFacts{Type: v1alpha1.Lustre}
	if m := in.FileSystem.Status.Metadata; m != nil {
		facts.MetadataNode, facts.MetadataTarget = m.Node, m.Target
	}
	found := false
	for i := range in.Targets {
		t := &in.Targets[i]
		said := says(t)
		found = found || said != nil
		if said != nil && said.Kind == v1alpha1.LustreMDT && *said.Index == 0 && facts.MetadataNode == "" {
			facts.MetadataNode, facts.MetadataTarget = t.Spec.Node, t.Name
		}
	}
	if !found || facts.MetadataNode == "" {
		return in
	}
	in.Targets = slices.Clone(in.Targets)
	for i := range in.Targets {
		t := &in.Targets[i]
		if said := says(t); said != nil && t.Status.Record.Facts == nil {
			record := *t.Status.Record
			record.Facts, record.Member = facts, memberOn(in.FileSystem, t, said)
			t.Status.Record = &record
		}
	}
	return in.Indexed()
}

// memberOn is the member to which a disk belongs according to its own record. The slot of a pool is on no disk: it is the recorded one, or
// the place of the pool in the spec.
func memberOn(fs *v1alpha1.FileSystem, t *v1alpha1.StorageTarget, said *v1alpha1.LustreTarget) *v1alpha1.RecordedMember {
	m := &v1alpha1.RecordedMember{
		Name: spec.MemberName(daemonOf(&t.Spec)), Role: t.Spec.Role, StoragePool: t.Spec.StoragePool, Slot: t.Spec.Slot,
	}
	if said.Index != nil {
		m.TargetID = *said.Index + 1
	}
	switch t.Spec.Role {
	case v1alpha1.RoleMetadata:
		m.ID = m.TargetID
	case v1alpha1.RoleStorage:
		for i := range fs.Spec.StoragePools {
			if fs.Spec.StoragePools[i].Name == t.Spec.StoragePool {
				m.Slot = int32(i) // #nosec G115 -- there are at most 12
			}
		}
		for i := range fs.Status.StoragePools {
			if fs.Status.StoragePools[i].Name == t.Spec.StoragePool {
				m.Slot = fs.Status.StoragePools[i].Slot
			}
		}
	}
	return m
}

// checkRecords refuses disks that belong to another Lustre, or to one whose MGT is on another node.
func checkRecords(in backend.Input) error {
	fs := in.FileSystem
	for i := range in.Targets {
		t := &in.Targets[i]
		if t.Status.Record == nil || t.Status.Record.Lustre == nil {
			continue
		}
		switch said := t.Status.Record.Lustre; {
		case said.FSName != "" && said.FSName != own(fs).FSName:
			return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s (%s) is of the Lustre %q, and spec.lustre.fsName is %q; take the disk out of the spec, "+
				"or make the FileSystem with that name", t.Name, t.Spec.Node, said.FSName, own(fs).FSName)
		case said.WithMGT && hasMGT(fs):
			return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s (%s) has the MGT as well as MDT0000, and spec.lustre.management names another disk for it; "+
				"make the FileSystem without spec.lustre.management", t.Name, t.Spec.Node)
		}
	}
	return nil
}

// recordedNIDs returns the NIDs of the MGS that are on the disks, nil if no disk has any.
func recordedNIDs(in backend.Input) ([]string, error) {
	var nids []string
	from := ""
	for i := range in.Targets {
		t := &in.Targets[i]
		if t.Status.Record == nil || t.Status.Record.Lustre == nil || len(t.Status.Record.Lustre.ManagementNIDs) == 0 {
			continue
		}
		said := t.Status.Record.Lustre.ManagementNIDs
		if nids != nil && !slices.Equal(nids, said) {
			return nil, backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s records the MGS at %s, and that of %s at %s; find out which of them "+
				"belongs to this filesystem, and take the other one out of the spec", from, backend.List(nids), t.Name, backend.List(said))
		}
		nids, from = said, t.Name
	}
	return nids, nil
}
