package filesystem

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/internal/backend"
)

// plannedLimit bounds how long after a planned step an unknown state leaves Ready unchanged. A restart takes less.
const plannedLimit = 3 * time.Minute

// plan records that the operator restarts a pod, so that its server is away as planned.
func (p *pass) plan(pod types.NamespacedName) {
	i := slices.IndexFunc(p.in.Pods, func(is backend.Pod) bool { return is.Name == pod })
	if i < 0 {
		return
	}
	m := p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID)
	if m.planned == nil {
		m.planned = map[string]time.Time{}
	}
	m.planned[p.in.Pods[i].Server()] = p.Order.Now()
}

// isPlanned reports whether everything that is away is so because of a recent planned step, and it has not been unknown for long whether
// the filesystem serves.
func (p *pass) isPlanned() bool {
	m, now := p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID), p.Order.Now()
	for server, when := range m.planned {
		if now.Sub(when) > plannedLimit {
			delete(m.planned, server)
		}
	}
	switch {
	case !p.observation.Pending && !p.observation.Unknown:
		m.unsure = time.Time{}
		return false
	case m.unsure.IsZero():
		m.unsure = now
	}
	return now.Sub(m.unsure) <= plannedLimit && plannedAll(p.in, p.observation, m.planned)
}

// plannedAll reports whether some servers and targets are away, and all of them because of planned steps: restarts by the operator, by
// name, and maintenance of nodes. A server that can't be queried, and whose pod runs, is not away.
func plannedAll(in backend.Input, observation backend.Observation, restarted map[string]time.Time) bool {
	runs := map[string]bool{}
	for i := range in.Pods {
		runs[in.Pods[i].Server()] = in.Pods[i].Ready
	}
	type place struct{ node, pool string }
	maintained, planned, unasked := backend.Maintained(in.FileSystem), map[place]bool{}, map[place]bool{}
	some := false
	for i := range observation.Servers {
		s := &observation.Servers[i]
		_, is := restarted[s.Name]
		is = is || slices.Contains(maintained, s.Node)
		at := place{s.Node, s.StoragePool}
		switch {
		case is:
			some, planned[at] = some || !s.Online, true
		case s.Online:
		case runs[s.Name] && (in.State == nil || in.Unanswered[s.Node] != ""):
			unasked[at] = true
		default:
			return false
		}
	}
	for i := range observation.Targets {
		t := &observation.Targets[i]
		at := place{t.Node, t.StoragePool}
		switch {
		case t.Online || t.Removable || unasked[at]:
		case planned[at]:
			some = true
		default:
			return false
		}
	}
	return some
}
