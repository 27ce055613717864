package filesystem

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"parallelfs.dev/operator/internal/backend"
)

// everybody simulates nodes that answer for themselves, each after a second; how is by the URL.
type everybody struct {
	backend.NodeProber
	how             map[string]error
	asks, at, peaks atomic.Int32
	refuses         error
}

func (e *everybody) State(_ context.Context, q Question) (*backend.State, error) {
	e.asks.Add(1)
	for now := e.at.Add(1); ; {
		if peak := e.peaks.Load(); peak >= now || e.peaks.CompareAndSwap(peak, now) {
			break
		}
	}
	defer e.at.Add(-1)
	<-time.After(time.Second) // on the clock of synctest
	return &backend.State{Version: q.URL + " " + q.Key}, e.how[q.URL]
}

func (e *everybody) Together(_ backend.Input, answers map[string]*backend.State) (backend.State, error) {
	var out backend.State
	for _, node := range backend.SortedKeys(answers) {
		out.Servers = append(out.Servers, backend.Server{Name: node, Version: answers[node].Version})
	}
	return out, e.refuses
}

// askEach queries the given number of nodes.
func askEach(e *everybody, nodes int) (in backend.Input, took time.Duration) {
	urls := map[string]string{}
	for i := range nodes {
		urls[fmt.Sprintf("node-%04d", i)] = fmt.Sprintf("http://%04d", i)
	}
	r := &Reconciler{States: e, Order: clock.RealClock{}}
	begun := time.Now()
	r.askNodes(context.Background(), e, urls, &in, Question{Key: "tr0ub4dor"})()
	return in, time.Since(begun)
}

func TestNodesAreAskedSoManyAtATimeAndOneThatIsSilentConcernsOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		e := &everybody{how: map[string]error{"http://0007": errors.New("nobody listens"), "http://0900": errors.New("it is signed by another")}}
		begun := time.Now()
		in, took := askEach(e, 1000)
		g.Expect(took).To(Equal(16*time.Second), "64 at a time")
		g.Expect([]int32{e.asks.Load(), e.peaks.Load()}).To(Equal([]int32{1000, nodesAtOnce}))
		g.Expect(in.Unanswered).To(Equal(map[string]string{"node-0007": "nobody listens", "node-0900": "it is signed by another"}))
		g.Expect(in.StateError).To(BeEmpty())
		g.Expect(in.State).To(HaveValue(And(HaveField("Servers", HaveLen(998)), HaveField("Asked", Equal(begun)))), "what was asked last is no newer")
		g.Expect(in.State.Servers[7]).To(Equal(backend.Server{Name: "node-0008", Version: "http://0008 tr0ub4dor"}))
	})
}

func TestNothingIsKnownWhenNoNodeAnswersOrTheirAnswersContradict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		in, _ := askEach(&everybody{how: map[string]error{"http://0000": errors.New("nobody listens"), "http://0001": errors.New("it is down")}}, 2)
		g.Expect(in.State).To(BeNil())
		g.Expect(in.StateError).To(Equal("none of the 2 nodes with servers answers: node-0000: nobody listens"))
		g.Expect(in.Unanswered).To(HaveLen(2))
		in, _ = askEach(&everybody{refuses: errors.New("two nodes have pfs-OST0000 mounted")}, 2)
		g.Expect(in.State).To(BeNil())
		g.Expect(in.StateError).To(Equal("two nodes have pfs-OST0000 mounted"))
		g.Expect(in.Unanswered).To(BeEmpty())
	})
}
