package beegfs

import (
	"sync"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// view holds the observed state of a filesystem in one pass and its consequences, computed once for all users.
type view struct {
	in backend.Input
	// targets has the storage targets that the filesystem should have, by pool, node and name; ofServer has those of one server.
	targets  []target
	ofServer map[serverPlace][]target
	// departures has the targets that are to be taken out, and departureOf maps the ids to them.
	departures  []departure
	departureOf map[int32]*departure
	// leftovers has the disks that were taken out, and leftOn those of one server, by its name in the status.
	leftovers []leftover
	leftOn    map[string][]leftover
	// mounted calls mountedBy, and movers calls migrateNodes: only a drain needs them.
	mounted, movers func() []string
}

// serverPlace is where a storage server runs: there is one of a pool on each node.
type serverPlace struct{ pool, node string }

// viewOf returns the view of an Indexed Input.
func viewOf(in backend.Input) *view {
	v := &view{in: in, targets: targetsOf(in), leftovers: leftovers(in)}
	v.ofServer = map[serverPlace][]target{}
	for first := 0; first < len(v.targets); {
		place, end := v.targets[first].place(), first+1
		for end < len(v.targets) && v.targets[end].place() == place {
			end++
		}
		v.ofServer[place], first = v.targets[first:end], end
	}
	v.leftOn = map[string][]leftover{}
	for _, l := range v.leftovers {
		v.leftOn[l.server.Server()] = append(v.leftOn[l.server.Server()], l)
	}
	v.mounted = sync.OnceValue(func() []string { return mountedBy(in) })
	v.movers = sync.OnceValue(func() []string { return migrateNodes(in) })
	v.departures, v.departureOf = departuresOf(v), map[int32]*departure{}
	for i := range v.departures {
		v.departureOf[v.departures[i].id] = &v.departures[i]
	}
	return v
}

// names has the names of all servers with an assigned number, and of the server of each storage target.
type names struct {
	servers map[place]string
	targets map[int32]string
}

// namesOf reads them from the record.
func namesOf(in backend.Input) names {
	out := names{servers: map[place]string{}, targets: make(map[int32]string, len(in.Targets))}
	for _, a := range in.Given() {
		name := a.Server()
		out.servers[place{a.Role, a.ID}] = name
		if a.Role == v1alpha1.RoleStorage {
			for i := range a.Targets {
				out.targets[a.Targets[i].ID] = name
			}
		}
	}
	return out
}
