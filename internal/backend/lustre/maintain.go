package lustre

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/internal/backend"
)

// Absence says what becomes of the filesystem while a node is away: programs wait for what lies on its targets, because that lies nowhere
// else. Clients wait by themselves, and go on when the targets have recovered, so Lustre needs not to be told.
func (Backend) Absence(in backend.Input, seen backend.Observation, node string) backend.Absence {
	out := backend.Absence{Together: backend.Most}
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Node != node || !slices.Contains(Backend{}.Order(), p.Component) {
			continue
		}
		out.Together = 1
		if why := seen.Sole[p.Name.Name]; why != "" {
			out.Costs = why
		}
	}
	return out
}

// TellMaintenance is nothing: see Absence.
func (Backend) TellMaintenance(backend.Input) ([]client.Object, error) { return nil, nil }
