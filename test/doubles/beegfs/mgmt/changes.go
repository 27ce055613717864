package mgmt

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// Errors of the administrators' operations that beegfs-ctl distinguishes.
var (
	ErrPoolExists = errors.New("A storage pool with this ID exists already") //nolint:staticcheck // the service's own text
	errInGroup    = errors.New("target is part of a buddy group")
)

func errToken(what, alias, kind string, id int, given, stored string) error {
	return fmt.Errorf("%s %s[%c:%d] has already been registered and its registration token (%s) does not match the stored token (%s)",
		what, alias, kind[0], id, given, stored)
}

func targetAlias(kind string, id int) string { return "target_" + kind + "_" + strconv.Itoa(id) }

// addPool creates a pool and moves targets and groups into it. In 7, what can't be moved is left out and reported; in 8, nothing happens.
func (s *State) addPool(change wire.Change) (wire.Changed, error) {
	result := wire.Changed{Complete: true, Name: change.Name}
	err := s.change(true, func(view *wire.View) error {
		id := change.ID
		if id == 0 {
			for id = 2; view.Pool(id) != nil; id++ {
			}
		}
		if view.Pool(id) != nil {
			return ErrPoolExists
		}
		if s.rules.Major >= 8 && slices.ContainsFunc(view.Pools, func(pool wire.Pool) bool { return pool.Name == change.Name }) {
			return fmt.Errorf("Alias %q is already in use", change.Name) //nolint:staticcheck // the service's own text
		}
		result.ID, result.UID = id, s.uid()
		view.Pools = append(view.Pools, wire.Pool{ID: id, Name: change.Name, UID: result.UID})
		err := assign(view, id, change)
		if s.rules.Major >= 8 {
			return err
		}
		result.Complete = err == nil
		return nil
	})
	return result, err
}

// assign moves what it can into a pool, and returns the first error.
func assign(view *wire.View, pool int, change wire.Change) error {
	var failed []error
	for _, id := range change.Targets {
		target := view.Target("storage", id)
		switch {
		case target == nil:
			failed = append(failed, fmt.Errorf("%w: %d", errUnknownTarget, id))
		case view.GroupOf("storage", id) != nil:
			//nolint:staticcheck // the service's own text
			failed = append(failed, fmt.Errorf("Target s:%d can't be assigned directly as it's part of a buddy group", id))
		default:
			target.Pool = pool
		}
	}
	for _, id := range change.Groups {
		group := view.Group("storage", id)
		if group == nil {
			failed = append(failed, fmt.Errorf("unknown buddy group %d", id))
			continue
		}
		group.Pool = pool
		view.Target("storage", group.Primary).Pool, view.Target("storage", group.Secondary).Pool = pool, pool
	}
	return errors.Join(failed...)
}

// modifyPool renames a pool, or moves targets and groups into it or, with Away, from it to the default pool.
func (s *State) modifyPool(change wire.Change) (wire.Changed, error) {
	result := wire.Changed{Complete: true}
	err := s.change(true, func(view *wire.View) error {
		pool := view.Pool(change.ID)
		if pool == nil {
			return errUnknownPool
		}
		if change.Name != "" {
			pool.Name = change.Name
		}
		result.ID, result.Name, result.UID = pool.ID, pool.Name, pool.UID
		err := assign(view, change.ID, change)
		for _, id := range change.Away {
			if target := view.Target("storage", id); target == nil || target.Pool != change.ID {
				err = errors.Join(err, errUnknownTarget)
			} else {
				target.Pool = 1
			}
		}
		if s.rules.Major >= 8 {
			return err
		}
		result.Complete = err == nil
		return nil
	})
	return result, err
}

// removePool removes a pool. 7 moves its content to the default pool; 8 refuses a pool that is not empty.
func (s *State) removePool(change wire.Change) (wire.Changed, error) {
	var result wire.Changed
	err := s.change(change.Execute, func(view *wire.View) error {
		pool := view.Pool(change.ID)
		if pool == nil {
			return errUnknownPool
		}
		if change.ID == 1 {
			return errors.New("The default pool can not be removed") //nolint:staticcheck // as the service says it
		}
		result = wire.Changed{ID: pool.ID, Name: pool.Name, UID: pool.UID, Complete: true}
		targets, groups := 0, 0
		for i := range view.Targets {
			if view.Targets[i].Pool == change.ID {
				targets++
				view.Targets[i].Pool = 1
			}
		}
		for i := range view.Groups {
			if view.Groups[i].Pool == change.ID {
				groups++
				view.Groups[i].Pool = 1
			}
		}
		if s.rules.Major >= 8 && targets+groups > 0 {
			return fmt.Errorf("%d targets and %d buddy groups are still assigned to this pool", targets, groups)
		}
		view.Pools = slices.DeleteFunc(view.Pools, func(pool wire.Pool) bool { return pool.ID == change.ID })
		return nil
	})
	return result, err
}

// removeTarget removes a storage target. 7 does so whatever data it has.
func (s *State) removeTarget(change wire.Change) (wire.Changed, error) {
	var result wire.Changed
	err := s.change(change.Execute, func(view *wire.View) error {
		target := view.Target("storage", change.ID)
		if target == nil {
			return errUnknownTarget
		}
		result = wire.Changed{ID: target.ID, Name: target.Alias, UID: target.UID, Complete: true}
		if view.GroupOf("storage", change.ID) != nil {
			if s.rules.Major >= 8 {
				//nolint:staticcheck // the service's own text
				return fmt.Errorf("Target %s[s:%d, uid:%d] is part of a buddy group", target.Alias, target.ID, target.UID)
			}
			return errInGroup
		}
		view.Targets = slices.DeleteFunc(view.Targets, func(t wire.TargetView) bool { return t.Type == "storage" && t.ID == change.ID })
		return nil
	})
	return result, err
}

// removeNode removes a server. 7 does so whatever data it has, including the root directory; 8 refuses that, and servers with targets.
func (s *State) removeNode(change wire.Change) (wire.Changed, error) {
	var result wire.Changed
	err := s.change(change.Execute, func(view *wire.View) error {
		node := view.Node(change.Type, change.ID)
		if node == nil {
			return errUnknownNode
		}
		result = wire.Changed{ID: node.ID, Name: node.Alias, UID: node.UID, Complete: true}
		if s.rules.Major >= 8 {
			if err := removable(view, node); err != nil {
				return err
			}
		}
		view.Nodes = slices.DeleteFunc(view.Nodes, func(n wire.NodeView) bool { return n.Type == change.Type && n.ID == change.ID })
		view.Targets = slices.DeleteFunc(view.Targets, func(t wire.TargetView) bool { return t.Type == change.Type && t.Node == change.ID })
		return nil
	})
	return result, err
}

func removable(view *wire.View, node *wire.NodeView) error {
	name := fmt.Sprintf("%s[%c:%d, uid:%d]", node.Alias, node.Type[0], node.ID, node.UID)
	if node.Type == "management" {
		return errors.New("Management node can not be deleted") //nolint:staticcheck // the service's own text
	}
	if node.Type == "meta" {
		if view.GroupOf("meta", node.ID) != nil {
			return fmt.Errorf("The target belonging to meta node %s is part of a buddy group", name) //nolint:staticcheck // its own text
		}
		if view.Root == node.ID {
			return fmt.Errorf("The target belonging to meta node %s has the root inode", name) //nolint:staticcheck // its own text
		}
		return nil
	}
	if slices.ContainsFunc(view.Targets, func(t wire.TargetView) bool { return t.Type == node.Type && t.Node == node.ID }) {
		return fmt.Errorf("Node %s still has targets assigned", name) //nolint:staticcheck // the service's own text
	}
	return nil
}

// addGroup makes two targets a buddy group.
func (s *State) addGroup(change wire.Change) (wire.Changed, error) {
	result := wire.Changed{Complete: true}
	err := s.change(true, func(view *wire.View) error {
		primary, secondary := view.Target(change.Type, change.Primary), view.Target(change.Type, change.Secondary)
		if primary == nil || secondary == nil {
			return errUnknownTarget
		}
		if view.GroupOf(change.Type, change.Primary) != nil || view.GroupOf(change.Type, change.Secondary) != nil {
			return errInGroup
		}
		id := change.ID
		if id == 0 {
			for id = 1; view.Group(change.Type, id) != nil; id++ {
			}
		}
		if view.Group(change.Type, id) != nil {
			return errConflict
		}
		result.ID, result.UID, result.Name = id, s.uid(), change.Name
		if result.Name == "" {
			result.Name = fmt.Sprintf("buddy_group_%s_%d", change.Type, id)
		}
		view.Groups = append(view.Groups, wire.Group{
			Type: change.Type, ID: id, Alias: result.Name, Primary: change.Primary, Secondary: change.Secondary, Pool: primary.Pool,
			UID: result.UID,
		})
		return nil
	})
	return result, err
}

// removeGroup removes the buddy group of two storage targets.
func (s *State) removeGroup(change wire.Change) (wire.Changed, error) {
	var result wire.Changed
	err := s.change(change.Execute, func(view *wire.View) error {
		group := view.Group(change.Type, change.ID)
		if group == nil {
			return errors.New("Unknown buddy group") //nolint:staticcheck // as the service says it
		}
		result = wire.Changed{ID: group.ID, Name: group.Alias, UID: group.UID, Complete: true}
		view.Groups = slices.DeleteFunc(view.Groups, func(g wire.Group) bool { return g.Type == change.Type && g.ID == change.ID })
		return nil
	})
	return result, err
}

// mirrorRoot makes the metadata of the root directory mirrored permanently.
func (s *State) mirrorRoot() error {
	return s.change(true, func(view *wire.View) error {
		group := view.GroupOf("meta", view.Root)
		if group == nil {
			//nolint:staticcheck // the service's own text
			return errors.New("The meta target holding the root inode is not part of a buddy group")
		}
		view.RootMirrored = true
		return nil
	})
}

// setState sets the consistency of a target, for a resync or on request of a test.
func (s *State) setState(change wire.Change) error {
	return s.change(true, func(view *wire.View) error {
		target := view.Target(change.Type, change.ID)
		if target == nil {
			return errUnknownTarget
		}
		target.Consistency = change.State
		return nil
	})
}

// setAlias renames the pool or server in State (8).
func (s *State) setAlias(change wire.Change) error {
	return s.change(true, func(view *wire.View) error {
		for _, pool := range view.Pools {
			if pool.Name == change.Name {
				return fmt.Errorf("Alias %q is already in use", change.Name) //nolint:staticcheck // as the service says it
			}
		}
		pool, node := view.Pool(change.ID), view.Node(change.Type, change.ID)
		switch {
		case change.State == "pool" && pool != nil:
			pool.Name = change.Name
		case change.State == "node" && node != nil:
			node.Alias = change.Name
		default:
			return errUnknownNode
		}
		return nil
	})
}
