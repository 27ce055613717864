package beegfs

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

func TestAnEmptyTargetIsPreparedOnlyWhereTheManagementServiceRemembersNothing(t *testing.T) {
	var remembers backend.State
	for _, a := range recorded(t, cluster("7.4.6")).Given() {
		if a.Role == v1alpha1.RoleMetadata {
			remembers.Servers = append(remembers.Servers, backend.Server{Role: a.Role, ID: a.ID})
			continue
		}
		for _, target := range a.Targets {
			remembers.Targets = append(remembers.Targets, backend.Target{ID: target.ID, ServerID: a.ID})
		}
	}
	for name, test := range map[string]struct {
		state *backend.State
		// told is true when the daemon's configuration has its target, granted when it may prepare it.
		told, granted bool
	}{
		"before the management service has answered, a server waits":                                     {nil, false, false},
		"trap 5: a metadata disk whose server is listed is never prepared again, although it is offline": {&remembers, true, false},
		"one that nobody remembers is": {&backend.State{}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := recorded(t, cluster("7.4.6"))
			in.State = test.state
			daemons := backendtest.Configured(New(), in, "oss1")
			for _, instance := range []string{"meta-0", "storage-bulk"} {
				targets := daemons[instance].Targets
				g.Expect(len(targets) > 0).To(Equal(test.told), instance)
				g.Expect(daemons[instance].Waits == "").To(Equal(test.told), "%s: %s", instance, daemons[instance].Waits)
				if test.told {
					g.Expect(targets[0].Granted).To(Equal(test.granted), instance)
					g.Expect(targets[0].Expected).To(Equal(!test.granted), "%s: what is left there may be taken over", instance)
				}
			}
			g.Expect(daemons["management"].Targets[0].Granted).To(BeTrue(), "its own store is another matter")
		})
	}
}
