package apply

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestAConflictIsAnotherPassAndAnyOtherErrorIsAnError(t *testing.T) {
	g := NewWithT(t)
	conflict := fmt.Errorf("write the status: %w", apierrors.NewConflict(schema.GroupResource{}, "scratch", errors.New("modified")))
	result, err := Again(ctrl.Result{}, conflict)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(BeNumerically(">", 0))

	broken := errors.New("broken")
	_, err = Again(ctrl.Result{}, broken)
	g.Expect(err).To(MatchError(broken))

	result, err = Again(ctrl.Result{RequeueAfter: time.Minute}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(time.Minute))
}
