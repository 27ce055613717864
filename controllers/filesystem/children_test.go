package filesystem

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// planless is a backend that can't return its members.
type planless struct{ backend.Backend }

func (planless) Members(backend.Input) ([]client.Object, error) {
	return nil, errors.New("n2 has no address")
}

func TestAFailedPlanIsReportedAlsoWhileServersWaitToJoin(t *testing.T) {
	fs := &v1alpha1.FileSystem{}
	for name, joins := range map[string]bool{"servers wait": false, "servers join": true} {
		t.Run(name, func(t *testing.T) {
			p := &pass{fs: fs, wanted: fs, backend: planless{}, joins: joins}
			NewWithT(t).Expect(p.makeChildren(t.Context())).To(MatchError("n2 has no address"))
		})
	}
}
