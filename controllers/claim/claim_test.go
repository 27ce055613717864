//go:build envtest

package claim_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parallelfs.dev/operator/controllers/claim"
	"parallelfs.dev/operator/test/envtest/apiserver"
	"parallelfs.dev/operator/test/patience"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.Run(m, &server) }

// short are times for a test.
var short = claim.Times{Valid: 3 * time.Second, Deadline: 2 * time.Second, Retry: 200 * time.Millisecond}

// installation is one that has been started.
type installation struct {
	*claim.Claim
	stop func()
}

// soon bounds each wait for a claim.
var soon = patience.Bound(20 * time.Second)

// begin starts an installation of the operator.
func begin(t *testing.T, namespace, operator string) installation {
	t.Helper()
	g := NewWithT(t)
	c, err := claim.New(server.Config, namespace, operator, short)
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	stop := func() {
		cancel()
		g.Eventually(ended).WithTimeout(soon).Should(Receive(BeNil()))
	}
	return installation{c, stop}
}

// leads is true when the gate of an installation lets its managers elect a leader.
func (i installation) leads(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Bound(50*time.Millisecond))
	defer cancel()
	_, _, err := i.Gate(open{}).Get(ctx)
	return err == nil
}

// open is a lock that answers at once.
type open struct{ resourcelock.Interface }

func (open) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return nil, nil, nil
}

func TestASecondInstallationNamesTheFirstOneAndDoesNothing(t *testing.T) {
	g, namespace := NewWithT(t), server.Namespace(t.Context(), t)
	first := begin(t, namespace, "storage-system/parallelfs")
	g.Eventually(func() bool { return first.leads(t) }).WithTimeout(soon).Should(BeTrue())
	g.Expect(first.Ready(nil)).To(Succeed())

	second := begin(t, namespace, "argo/parallelfs")
	g.Eventually(func() error { return second.Ready(nil) }).WithTimeout(soon).Should(MatchError(And(
		ContainSubstring("operator parallelfs in namespace storage-system works in this cluster already, so this one does nothing"))))
	g.Expect(second.leads(t)).To(BeFalse())
	g.Expect(gathered(g)).To(HaveKeyWithValue("storage-system/parallelfs", 0.0))

	// Another manager of the first installation has the same claim, and a restart of the first changes nothing.
	sibling := begin(t, namespace, "storage-system/parallelfs")
	g.Eventually(func() bool { return sibling.leads(t) }).WithTimeout(soon).Should(BeTrue())
	first.stop()
	var lease coordinationv1.Lease
	g.Expect(server.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: claim.Name}, &lease)).To(Succeed())
	g.Expect(lease.Spec.HolderIdentity).To(HaveValue(Equal("storage-system/parallelfs")), "a claim is not given back by a pod that ends")
	g.Expect(second.leads(t)).To(BeFalse())

	// The first installation is removed. Nobody renews its claim, and the second one takes it.
	sibling.stop()
	g.Eventually(func() bool { return second.leads(t) }).WithTimeout(soon).Should(BeTrue())
	g.Expect(second.Ready(nil)).To(Succeed())
	g.Expect(gathered(g)).To(Equal(map[string]float64{"argo/parallelfs": 1}))
	second.stop()
}

func TestAManagerEndsWhenItsClaimWasTaken(t *testing.T) {
	g, namespace := NewWithT(t), server.Namespace(t.Context(), t)
	c, err := claim.New(server.Config, namespace, "storage-system/parallelfs", short)
	g.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(t.Context()) }()
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: claim.Name}}
	g.Eventually(func() error {
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(&lease), &lease)
	}).WithTimeout(soon).Should(Succeed())
	g.Eventually(func() error { // its holder renews it meanwhile
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(&lease), &lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("argo/parallelfs"), new(int32(60))
		return server.Client.Update(t.Context(), &lease)
	}).WithTimeout(soon).Should(Succeed())
	g.Eventually(ended).WithTimeout(soon).Should(Receive(MatchError(claim.ErrLost)))
}

// gathered is the metric, by holder.
func gathered(g *WithT) map[string]float64 {
	families, err := metrics.Registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "parallelfs_operator_holds_cluster" {
				out[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}
