package beegfs

import (
	"fmt"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// adopt reads the ids of an earlier filesystem. No id of that filesystem is ever assigned to anything else, whether it is in use or not.
func (a *allocator) adopt() error {
	type key struct {
		kind v1alpha1.NumberKind
		id   int32
	}
	type owner struct {
		server
		target string
	}
	owners := map[key]owner{}
	claim := func(kind v1alpha1.NumberKind, id int32, by owner) error {
		if other, taken := owners[key{kind, id}]; taken && other != by {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"the %s id %d is that of %s and of %s; with one id for two, files are lost. Give in spec.beegfs.adopt what the FileSystemNodes of the earlier FileSystem said",
				assign.KindName(kind), id,
				strings.TrimSuffix(other.String()+"/"+other.target, "/"), strings.TrimSuffix(by.String()+"/"+by.target, "/"))
		}
		owners[key{kind, id}] = by
		return nil
	}
	for _, g := range a.in.Given() {
		who := server{g.Node, g.Name}
		if err := claim(numbering.Server[g.Role], g.ID, owner{server: who}); err != nil {
			return err
		}
		for _, t := range g.Targets {
			if g.Role == v1alpha1.RoleMetadata {
				continue // the server itself has the id
			}
			if err := claim(v1alpha1.NumberOfStorageTarget, t.ID, owner{who, t.Name}); err != nil {
				return err
			}
		}
	}
	for _, node := range a.in.FileSystem.Spec.BeeGFS.Adopt {
		for _, m := range node.Members {
			who := server{node.Node, m.Name}
			role, err := a.agrees(who, m)
			if err != nil {
				return err
			}
			if err := claim(numbering.Server[role], m.ID, owner{server: who}); err != nil {
				return err
			}
			a.numbers.Advance(numbering.Server[role], m.ID)
			for _, t := range m.Targets {
				if role == v1alpha1.RoleMetadata {
					continue
				}
				if err := claim(v1alpha1.NumberOfStorageTarget, t.ID, owner{who, t.Name}); err != nil {
					return err
				}
				a.numbers.Advance(v1alpha1.NumberOfStorageTarget, t.ID)
			}
			a.adopted[who] = m
		}
	}
	return nil
}

// agrees refuses an entry with another id than the recorded one, and an entry that contradicts itself. It returns the role of the server.
func (a *allocator) agrees(who server, m v1alpha1.GivenServerID) (v1alpha1.Role, error) {
	refuse := func(format string, args ...any) (v1alpha1.Role, error) {
		return "", backend.Invalid(v1alpha1.ReasonInvalidSpec, format, args...)
	}
	field := fmt.Sprintf("spec.beegfs.adopt[%s].members[%s]", who.node, who.member)
	role := v1alpha1.RoleStorage
	if number, ok := strings.CutPrefix(m.Name, componentMeta+"-"); ok {
		role = v1alpha1.RoleMetadata
		if slot, err := strconv.ParseInt(number, 10, 32); err != nil || slot < 0 || slot >= maxSlots || metaMemberName(int32(slot)) != m.Name {
			return refuse("%s: a metadata server is called %s-<slot>, with a slot from 0 to %d; correct the entry", field, componentMeta, maxSlots-1)
		}
		if len(m.Targets) > 1 || len(m.Targets) == 1 && m.Targets[0].ID != m.ID {
			return refuse("%s: a metadata server has one target, whose id is the server's own, %d; correct the entry", field, m.ID)
		}
	} else if !strings.HasPrefix(m.Name, componentStorage+"-") {
		return refuse("%s: a server with an id is called %s-<slot> or %s-<pool>; correct the entry", field, componentMeta, componentStorage)
	}
	given, ok := a.in.GivenTo(who.node, who.member)
	if !ok {
		return role, nil
	}
	if given.ID != m.ID {
		return refuse("spec.beegfs.adopt says that %s has the %s id %d, but %d was assigned to it already, and ids are never changed; remove the entry, or make the FileSystem again with it",
			who, assign.KindName(numbering.Server[role]), m.ID, given.ID)
	}
	for _, t := range m.Targets {
		if have, ok := given.Target(t.Name); ok && have.ID != t.ID {
			return refuse("spec.beegfs.adopt says that the target %s of %s has the id %d, but %d was assigned to it already, and ids are never changed; remove the entry, or make the FileSystem again with it",
				t.Name, who, t.ID, have.ID)
		}
	}
	return role, nil
}

// takeOver assigns servers and targets the ids that are on their disks. Numbers already holds these ids.
func (a *allocator) takeOver() error {
	for _, g := range a.disks.Given {
		who := server{g.Node, g.Name}
		m := v1alpha1.GivenServerID{Name: g.Name, ID: g.ID}
		have, known := a.in.GivenTo(g.Node, g.Name)
		if known && have.ID != g.ID {
			return contradicts(g, have.ID, g.ID)
		}
		for _, t := range g.Targets {
			if recorded, ok := have.Target(t.Name); known && ok && recorded.ID != t.ID {
				return contradicts(g, recorded.ID, t.ID)
			}
			m.Targets = append(m.Targets, v1alpha1.GivenTargetID{Name: t.Name, ID: t.ID})
		}
		if other, also := a.adopted[who]; also && other.ID != g.ID {
			return contradicts(g, other.ID, g.ID)
		}
		a.adopted[who] = m
	}
	return nil
}

// contradicts returns the error for a disk whose id differs from the recorded one, or from that in spec.beegfs.adopt.
func contradicts(g backend.Given, recorded, said int32) error {
	return backend.Invalid(v1alpha1.ReasonRecordsDisagree,
		"a disk of %s records the id %d, and %d was assigned to it in this FileSystem, or is in spec.beegfs.adopt; ids are never changed. Take the disk out of the spec, "+
			"or correct spec.beegfs.adopt, or, if the disks are right, delete the FileSystem with deletionPolicy Retain and make it again",
		g.Server(), said, recorded)
}
