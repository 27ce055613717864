//go:build envtest

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/test/envtest/apiserver"
	"parallelfs.dev/operator/test/patience"
)

// publisher is the part of an agent that writes the rest of the inventory.
func (w *world) publisher() *Inventory {
	return &Inventory{Client: server.Client, NodeName: w.node.Name, Confirmed: func(time.Time) {}, last: v1alpha1.NodeInventoryStatus{Kernel: v1alpha1.KernelStatus{Release: "6.12"}}}
}

func (w *world) inventory() *v1alpha1.NodeInventory {
	w.t.Helper()
	live := &v1alpha1.NodeInventory{}
	w.Expect(server.Client.Get(w.t.Context(), client.ObjectKey{Name: w.node.Name}, live)).To(Succeed())
	return live
}

// askFor requests a drop of the caches, as the operator does.
func (w *world) askFor(request string) {
	w.t.Helper()
	live := w.inventory()
	before := live.DeepCopy()
	metav1.SetMetaDataAnnotation(&live.ObjectMeta, v1alpha1.AnnotationDropCaches, request)
	w.Expect(server.Client.Patch(w.t.Context(), live, client.MergeFrom(before))).To(Succeed())
}

// kernel counts how often its caches were dropped.
type kernel struct {
	dropped int
	fails   error
}

func (k *kernel) drop(context.Context) error {
	k.dropped++
	return k.fails
}

func (w *world) caches(k *kernel, c client.Client) *Caches {
	return &Caches{Client: c, Drop: k.drop, Now: func() time.Time { return time.Unix(1700000000, 0) }}
}

func (w *world) look(r *Caches) error {
	_, err := r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: w.node.Name}})
	return err
}

// dying is a client whose agent is killed before its first answer.
func dying(t *testing.T) client.Client {
	t.Helper()
	return interceptor.NewClient(server.Killable(t, -1).WithWatch, interceptor.Funcs{
		SubResourceApply: func(context.Context, client.Client, string, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
			return apiserver.ErrKilled
		},
	})
}

func TestEachRequestIsCarriedOutOnceAndAnswered(t *testing.T) {
	w, k := newWorld(t), &kernel{}
	w.Expect(w.publisher().publish(t.Context())).To(Succeed())
	r := w.caches(k, server.Client)
	w.Expect(w.look(r)).To(Succeed())
	w.Expect(k.dropped).To(BeZero(), "nobody has asked")

	w.askFor("run/1")
	for range 3 {
		w.Expect(w.look(r)).To(Succeed())
	}
	w.Expect(k.dropped).To(Equal(1))
	w.Expect(w.inventory().Status.DroppedCaches).To(HaveValue(And(HaveField("Request", "run/1"), HaveField("Error", ""))))
	w.Expect(w.inventory().Status.DroppedCaches.Time.Unix()).To(BeEquivalentTo(1700000000))

	k.fails = errors.New("read-only file system")
	w.askFor("run/2")
	w.Expect(w.look(r)).To(Succeed())
	w.Expect(w.look(w.caches(k, server.Client))).To(Succeed(), "an agent that was started anew knows it from the status")
	w.Expect(k.dropped).To(Equal(2))
	w.Expect(w.inventory().Status.DroppedCaches).To(HaveValue(And(HaveField("Request", "run/2"), HaveField("Error", "read-only file system"))))
}

func TestAnAgentThatIsKilledBetweenDropsAgainAndAnswers(t *testing.T) {
	w, k := newWorld(t), &kernel{}
	w.Expect(w.publisher().publish(t.Context())).To(Succeed())
	w.askFor("run/1")
	r := w.caches(k, dying(t))
	w.Expect(w.look(r)).To(MatchError(apiserver.ErrKilled))
	w.Expect(k.dropped).To(Equal(1))
	w.Expect(w.inventory().Status.DroppedCaches).To(BeNil())

	r.Client = server.Client
	w.Expect(w.look(r)).To(Succeed(), "an API server that was away is told later")
	w.Expect(k.dropped).To(Equal(1))
	w.Expect(w.inventory().Status.DroppedCaches.Request).To(Equal("run/1"))

	w.askFor("run/2")
	w.Expect(w.look(w.caches(k, dying(t)))).To(MatchError(apiserver.ErrKilled))
	w.Expect(w.look(w.caches(k, server.Client))).To(Succeed())
	w.Expect(k.dropped).To(Equal(3))
	w.Expect(w.inventory().Status.DroppedCaches.Request).To(Equal("run/2"))
}

func TestTheAnswerAndTheRestOfTheInventoryLeaveEachOtherAlone(t *testing.T) {
	w, k := newWorld(t), &kernel{}
	i := w.publisher()
	w.Expect(i.publish(t.Context())).To(Succeed())
	w.askFor("run/1")
	w.Expect(w.look(w.caches(k, server.Client))).To(Succeed())
	w.Expect(w.inventory().Status.Kernel.Release).To(Equal("6.12"), "the answer has removed nothing")

	version := w.inventory().ResourceVersion
	w.Expect(i.publish(t.Context())).To(Succeed())
	w.Expect(w.inventory().ResourceVersion).To(Equal(version), "the answer is no reason to publish")
	i.last.Kernel.Release = "6.18"
	w.Expect(i.publish(t.Context())).To(Succeed())
	w.Expect(w.inventory().Status.Kernel.Release).To(Equal("6.18"))
	w.Expect(w.inventory().Status.DroppedCaches).To(HaveValue(HaveField("Request", "run/1")))
}

// dropsAndServes checks that a running agent drops caches on request and serves samples of its daemons.
func (w *world) dropsAndServes(dropped <-chan struct{}, address string) {
	w.t.Helper()
	w.askFor("run/1")
	w.Eventually(dropped, patience.Bound(2*time.Minute)).Should(Receive())
	w.Eventually(func() *v1alpha1.DroppedCaches { return w.inventory().Status.DroppedCaches }, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(HaveValue(HaveField("Request", "run/1")))

	question := "http://" + address + "/telemetry?" + url.Values{
		"from": {time.Now().Add(-time.Minute).Format(time.RFC3339)}, "to": {time.Now().Add(time.Hour).Format(time.RFC3339)},
		"fileSystem": {w.namespace + "/scratch"},
	}.Encode()
	w.Eventually(func() ([]telemetry.Summary, error) {
		response, err := http.Get(question)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		var answer telemetry.Answer
		err = json.NewDecoder(response.Body).Decode(&answer)
		return answer.Summaries, err
	}, patience.Bound(2*time.Minute), 100*time.Millisecond).Should(ContainElement(And(
		HaveField("Daemon", "meta/0"), HaveField("Node", w.node.Name), HaveField("Samples", BeNumerically(">", 0)))))
}

// freeAddress returns an address that no process listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(listener.Close()).To(Succeed())
	return listener.Addr().String()
}
