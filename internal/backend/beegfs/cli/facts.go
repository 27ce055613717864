package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// facts holds the answers of either version before they are checked against each other.
type facts struct {
	servers []backend.Server
	targets []backend.Target
	clients []backend.Session
	pools   []backend.Pool
	mirrors []backend.Mirror
	// rootID is the metadata server or the buddy group that owns the root directory, 0 when that is unknown.
	rootID int32
	// mirrored is true if the root directory is mirrored, nil when that is unknown.
	mirrored *bool
	license  *backend.License
}

// The words of BeeGFS for the states of a target (TargetStateStore of 7.4.6, pkg/ctl/target/list.go of 8.3.1).
const (
	Reachable   = "Online"
	Unreachable = "Offline"
	unsure      = "Probably-offline"
	Good        = "Good"
	Bad         = "Bad"
	Behind      = "Needs-resync"
)

// state combines the facts. The answers came one after another, so they may contradict each other just after a change; the next answers
// agree.
func (f facts) state() (backend.State, error) {
	if err := f.agree(); err != nil {
		return backend.State{}, err
	}
	state := backend.State{
		Servers: f.servers, Targets: f.targets, Sessions: f.clients, Pools: f.pools, Mirrors: f.mirrors, RootID: f.rootID, License: f.license,
		MetadataMirrored: f.mirrored != nil && *f.mirrored,
	}
	for i := range state.Servers {
		f.judge(&state.Servers[i])
	}
	for i := range state.Targets {
		t := &state.Targets[i]
		if s := f.server(t.Role, t.ServerID); s != nil {
			t.IP, t.Port = s.IP, s.Port
		}
	}
	return state, nil
}

// judge derives the state of a server from its targets: BeeGFS keeps the states of targets only. For the management service, the answer
// itself is the proof. A metadata server has one target, and the state of that target.
func (f facts) judge(s *backend.Server) {
	s.Online = s.Role == v1alpha1.RoleManagement
	for _, t := range f.targets {
		if t.Role == s.Role && t.ServerID == s.ID {
			s.Online = s.Online || t.Online
			s.UsedBytes += t.UsedBytes
			s.CapacityBytes += t.CapacityBytes
		}
	}
}

func (f facts) server(role v1alpha1.Role, id int32) *backend.Server {
	i := slices.IndexFunc(f.servers, func(s backend.Server) bool { return s.Role == role && s.ID == id })
	if i < 0 {
		return nil
	}
	return &f.servers[i]
}

// agree checks the answers against each other, so that nothing can vanish unnoticed from one of them: every storage target, and every buddy
// group of them, has its pool.
func (f facts) agree() error {
	var pooled, pooledGroups, groups []int32
	poolOf := map[int32]int32{}
	for _, p := range f.pools {
		pooled, pooledGroups = append(pooled, p.Targets...), append(pooledGroups, p.Mirrors...)
		for _, t := range p.Targets {
			poolOf[t] = p.ID
		}
	}
	for _, m := range f.mirrors {
		if m.Role == v1alpha1.RoleStorage {
			groups = append(groups, m.ID)
		}
	}
	metaTargets, metaServers := f.numbers(v1alpha1.RoleMetadata)
	storageTargets, storageServers := f.numbers(v1alpha1.RoleStorage)
	if err := cmp.Or(
		once("metadata servers", metaServers), once("metadata targets", metaTargets), once("storage servers", storageServers),
		once("storage targets", storageTargets), once("buddy groups of storage targets", groups),
		same("targets of the storage pools", pooled, "storage targets", storageTargets),
		same("buddy groups of the storage pools", pooledGroups, "buddy groups of storage targets", groups),
	); err != nil {
		return err
	}
	for _, t := range f.targets {
		if t.ServerID != 0 && f.server(t.Role, t.ServerID) == nil {
			return fmt.Errorf("BeeGFS says that target %d is on server %d, and does not list that server", t.ID, t.ServerID)
		}
		if t.Role == v1alpha1.RoleStorage && t.PoolID != poolOf[t.ID] {
			return fmt.Errorf("BeeGFS lists target %d in pool %d, and says that it is in pool %d", t.ID, poolOf[t.ID], t.PoolID)
		}
	}
	return nil
}

// numbers returns the numbers of the targets and of the servers of a role.
func (f facts) numbers(role v1alpha1.Role) (targets, servers []int32) {
	for _, t := range f.targets {
		if t.Role == role {
			targets = append(targets, t.ID)
		}
	}
	for _, s := range f.servers {
		if s.Role == role {
			servers = append(servers, s.ID)
		}
	}
	return targets, servers
}

// same returns an error unless two lists have the same numbers.
func same(aName string, a []int32, bName string, b []int32) error {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	if !slices.Equal(a, b) {
		return fmt.Errorf("BeeGFS lists the %s %d and the %s %d, which should be the same", aName, a, bName, b)
	}
	return nil
}

// once returns an error when a list has a number twice.
func once(name string, numbers []int32) error {
	seen := map[int32]bool{}
	for _, n := range numbers {
		if seen[n] {
			return fmt.Errorf("BeeGFS lists number %d twice among the %s", n, name)
		}
		seen[n] = true
	}
	return nil
}

// identifier reads a number of a server, a target, a group or a pool: 1 to 65535, and for a server of 8 up to 32 bits.
func identifier(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n > 0
}
