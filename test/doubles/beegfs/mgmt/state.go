// Package mgmt is the double of the management service, beegfs-mgmtd 7 and 8: registrations, contact times, pools and buddy groups.
package mgmt

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// Errors with the service's texts.
var (
	errUnknownTarget = errors.New("Unknown storage target")               //nolint:staticcheck // the service's own text
	errUnknownNode   = errors.New("Unknown node")                         //nolint:staticcheck // the service's own text
	errUnknownPool   = errors.New("Unknown storage pool")                 //nolint:staticcheck // the service's own text
	errConflict      = errors.New("ID conflict")                          //nolint:staticcheck // the service's own text
	errRegistration  = errors.New("Registration of new servers disabled") //nolint:staticcheck // the service's own text
)

// Limits determines the capacity pool of a target, in bytes and inodes.
type Limits struct{ SpaceLow, SpaceEmergency, InodesLow, InodesEmergency uint64 }

// pool returns Normal, Low or Emergency.
func (l Limits) pool(space *wire.Space) string {
	switch {
	case space == nil:
		return "Emergency"
	case space.Free >= l.SpaceLow && space.FreeInodes >= l.InodesLow:
		return "Normal"
	case space.Free >= l.SpaceEmergency && space.FreeInodes >= l.InodesEmergency:
		return "Low"
	}
	return "Emergency"
}

// Rules holds the configuration.
type Rules struct {
	Major                   int
	OfflineTimeout          time.Duration
	NewServers, NewTargets  bool
	MetaLimits, TargetLimit Limits
}

// stored is the persistent state.
type stored struct {
	Version      int               `json:"version"`
	FsUUID       string            `json:"fsUUID"`
	LastUID      int               `json:"lastUID"`
	Nodes        []wire.NodeView   `json:"nodes"`
	Targets      []wire.TargetView `json:"targets"`
	Pools        []wire.Pool       `json:"pools"`
	Groups       []wire.Group      `json:"groups"`
	Root         int               `json:"root"`
	RootMirrored bool              `json:"rootMirrored,omitempty"`
	// Reserved holds the text ids of targets by number, including removed ones: 7 never assigns a number to another directory.
	Reserved map[int]string `json:"reserved"`
}

// State is the service's state in memory.
type State struct {
	mutex   sync.Mutex
	rules   Rules
	content stored
	contact map[contactKey]time.Time
	// resyncs holds targets that need a resync and have come back: they are good again after their next report.
	resyncs map[contactKey]bool
	license func() (bool, string)
	save    func(stored) error
	now     func() time.Time
}

type contactKey struct {
	kind string
	id   int
}

// fresh returns the state of a new filesystem: the default pool with the version's name for it.
func fresh(uuid, pool string) stored {
	return stored{Version: 1, FsUUID: uuid, LastUID: 2, Pools: []wire.Pool{{ID: 1, Name: pool, UID: 2}}, Reserved: map[int]string{}}
}

func newState(rules Rules, content stored, save func(stored) error, license func() (bool, string)) *State {
	if content.Reserved == nil {
		content.Reserved = map[int]string{}
	}
	return &State{
		rules: rules, content: content, contact: map[contactKey]time.Time{}, resyncs: map[contactKey]bool{}, save: save, license: license,
		now: time.Now,
	}
}

// reachability returns the meaning of a silence of this length: Probably-offline after half of the timeout
// (mgmtd/components/InternodeSyncer.cpp, 7.4.6; mgmtd/bee_msg/common.rs, 8.3.1). A target without a report since the start is
// Probably-offline too.
func reachability(known bool, silence, timeout time.Duration) string {
	switch {
	case known && silence > timeout:
		return wire.Offline
	case !known || silence > timeout/2:
		return wire.ProbablyOffline
	}
	return wire.Online
}

// View returns a copy of the whole state.
func (s *State) View() wire.View {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	view := s.view()
	if switchOver(&view) {
		s.content.Targets, s.content.Groups = slices.Clone(view.Targets), slices.Clone(view.Groups)
		_ = s.save(s.content) // it is decided again after the next start
	}
	return view
}

// switchOver makes the secondary target of a buddy group the primary if the primary is offline and the secondary is good. It reports
// whether anything changed.
func switchOver(view *wire.View) bool {
	changed := false
	for i := range view.Groups {
		group := &view.Groups[i]
		primary, secondary := view.Target(group.Type, group.Primary), view.Target(group.Type, group.Secondary)
		if primary == nil || secondary == nil || primary.Reachability != wire.Offline {
			continue
		}
		if secondary.Reachability == wire.Online && secondary.Consistency == wire.Good {
			group.Primary, group.Secondary = group.Secondary, group.Primary
			changed = true
		}
	}
	return changed
}

func (s *State) view() wire.View {
	view := wire.View{
		FsUUID: s.content.FsUUID, Nodes: slices.Clone(s.content.Nodes), Targets: slices.Clone(s.content.Targets),
		Pools: slices.Clone(s.content.Pools), Groups: slices.Clone(s.content.Groups), Root: s.content.Root,
		RootMirrored: s.content.RootMirrored,
	}
	for i := range view.Targets {
		target := &view.Targets[i]
		at, known := s.contact[contactKey{target.Type, target.ID}]
		target.LastContact = -1
		if known {
			target.LastContact = int64(s.now().Sub(at).Seconds())
		}
		target.Reachability = reachability(known, s.now().Sub(at), s.rules.OfflineTimeout)
		limits := s.rules.TargetLimit
		if target.Type == "meta" {
			limits = s.rules.MetaLimits
		}
		target.Capacity = limits.pool(target.Space)
	}
	slices.SortFunc(view.Nodes, func(a, b wire.NodeView) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(view.Targets, func(a, b wire.TargetView) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(view.Pools, func(a, b wire.Pool) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(view.Groups, func(a, b wire.Group) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID)) })
	if s.license != nil {
		view.License, view.LicenseText = s.license()
	}
	return view
}

// change runs a change of the stored content; a failed change or a dry run leaves no trace.
func (s *State) change(execute bool, how func(*wire.View) error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	view := s.view()
	before := s.content.LastUID
	if err := how(&view); err != nil || !execute {
		s.content.LastUID = before
		return err
	}
	next := s.content
	next.Nodes, next.Targets, next.Pools, next.Groups = view.Nodes, view.Targets, view.Pools, view.Groups
	next.Root, next.RootMirrored = view.Root, view.RootMirrored
	if err := s.save(next); err != nil {
		return err
	}
	s.content = next
	return nil
}

func (s *State) uid() int {
	s.content.LastUID++
	return s.content.LastUID
}

// Registered is the response to a server's registration.
type Registered struct {
	Root int `json:"root"`
}

// registerNode registers a server, or updates its registration. In 7, any directory with the id of a known metadata server is accepted; 8.3
// refuses another directory. Both doubles refuse a second server with the same number while the first is in contact.
func (s *State) registerNode(node wire.Node) (Registered, error) {
	var root int
	err := s.change(true, func(view *wire.View) error {
		known := view.Node(node.Type, node.ID)
		if s.rules.Major >= 8 {
			// Servers of 8 have no text id of their own: the service assigns an alias, which an administrator may change.
			node.Alias = "node_" + node.Type + "_" + strconv.Itoa(node.ID)
			if known != nil {
				node.Alias = known.Alias
			}
		}
		switch {
		case known == nil && !s.rules.NewServers:
			return errRegistration
		case known == nil:
			view.Nodes = append(view.Nodes, wire.NodeView{Node: node, UID: s.uid()})
		default:
			if err := s.sameServer(view, known, node); err != nil {
				return err
			}
			known.Node = node
		}
		if node.Type == "meta" && view.Target("meta", node.ID) == nil {
			view.Targets = append(view.Targets, wire.TargetView{
				Type: "meta", ID: node.ID, Node: node.ID, Alias: targetAlias("meta", node.ID), Consistency: wire.Good, UID: s.uid(),
			})
		}
		if node.Type == "meta" && view.Root == 0 {
			view.Root = node.ID
		}
		root = view.Root
		return nil
	})
	return Registered{Root: root}, err
}

func (s *State) sameServer(view *wire.View, known *wire.NodeView, node wire.Node) error {
	if s.rules.Major >= 8 && known.Token != "" && known.Token != node.Token {
		return errToken("Node", known.Alias, node.Type, node.ID, node.Token, known.Token)
	}
	alive := false
	for i := range view.Targets {
		target := &view.Targets[i]
		alive = alive || target.Node == node.ID && target.Type == node.Type && target.Reachability == wire.Online
	}
	moved := known.TCP != node.TCP || !slices.Equal(known.Interfaces, node.Interfaces)
	if alive && (moved || known.Alias != node.Alias) {
		return errConflict
	}
	return nil
}

// reserveTarget assigns a number to a storage target before it may register (7): a number belongs to one directory forever.
func (s *State) reserveTarget(target wire.Target) error {
	return s.change(true, func(*wire.View) error {
		owner, taken := s.content.Reserved[target.ID]
		if taken && owner != target.Token {
			return errConflict
		}
		s.content.Reserved[target.ID] = target.Token
		return nil
	})
}

// registerTarget registers a storage target in its pool.
func (s *State) registerTarget(target wire.Target) error {
	return s.change(true, func(view *wire.View) error {
		if known := view.Target("storage", target.ID); known != nil {
			if s.rules.Major >= 8 && known.Token != target.Token {
				return errToken("Storage target", known.Alias, "storage", target.ID, target.Token, known.Token)
			}
			known.Node = target.Node
			return nil
		}
		if !s.rules.NewTargets {
			return errors.New("Registration of new targets is not allowed") //nolint:staticcheck // the service's own text
		}
		pool := 1
		if s.rules.Major == 7 && target.Pool != 0 {
			pool = target.Pool
		}
		if view.Pool(pool) == nil {
			return errUnknownPool
		}
		view.Targets = append(view.Targets, wire.TargetView{
			Type: "storage", ID: target.ID, Node: target.Node, Pool: pool, Token: target.Token, Consistency: wire.Good,
			Alias: targetAlias("storage", target.ID), UID: s.uid(),
		})
		return nil
	})
}

// report records that a server is online. Reports about unknown targets are ignored. 8 stores each report.
func (s *State) report(report wire.Report) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for id, space := range report.Targets {
		for i := range s.content.Targets {
			if target := &s.content.Targets[i]; target.Type == report.Type && target.ID == id && target.Node == report.Node {
				key := contactKey{report.Type, id}
				view := s.view()
				group := view.GroupOf(report.Type, id)
				switch before := view.Target(report.Type, id); {
				case group != nil && group.Secondary == id && (before.Reachability == wire.Offline || slices.Contains(report.Unclean, id)):
					target.Consistency = wire.NeedsResync
				case report.Type == "meta" && target.Consistency == wire.NeedsResync && s.resyncs[key]: // storage servers copy and say so
					target.Consistency = wire.Good
				}
				target.Space = &space
				s.contact[key] = s.now()
				s.resyncs[key] = target.Consistency == wire.NeedsResync
			}
		}
	}
	if s.rules.Major >= 8 {
		return s.save(s.content)
	}
	return nil
}
