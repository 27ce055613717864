package filesystem

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// nodesAtOnce is how many nodes are queried at a time. A node that is down takes as long as a connection may (dialLimit), and one that
// hangs as long as an answer may. With this number, a whole rack among a thousand nodes delays the others no longer than one node does.
const nodesAtOnce = 64

// askNodes queries the probe of each node about its own servers, and returns a function that waits for the answers and puts them into the
// Input. All questions are sent after the same moment, which is the time of the combined answer. Each answer is verified separately
// (Question), and a missing answer does not affect the other nodes. The URLs are by node, at least one.
func (r *Reconciler) askNodes(
	ctx context.Context, prober backend.NodeProber, urls map[string]string, in *backend.Input, q Question,
) (answer func()) {
	nodes, asked := backend.SortedKeys(urls), r.Order.Now()
	states, errs, done := make([]*backend.State, len(nodes)), make([]error, len(nodes)), make(chan struct{})
	go func() {
		defer close(done)
		var group errgroup.Group
		group.SetLimit(nodesAtOnce)
		for i, node := range nodes {
			group.Go(func() error {
				question := q
				question.URL = urls[node]
				states[i], errs[i] = r.States.State(ctx, question)
				return nil
			})
		}
		_ = group.Wait() // each query stores its own error
	}()
	return func() {
		<-done
		answers := make(map[string]*backend.State, len(nodes))
		in.Unanswered = map[string]string{}
		for i, node := range nodes {
			if errs[i] != nil {
				in.Unanswered[node] = v1alpha1.Cut(errs[i].Error(), maxSaid)
			} else {
				answers[node] = states[i]
			}
		}
		if len(answers) == 0 {
			if r.secrets != nil {
				r.secrets.forget() // the key may have changed
			}
			first := nodes[0]
			why := fmt.Sprintf("none of the %d nodes with servers answers: %s: %s", len(nodes), first, in.Unanswered[first])
			in.StateError = v1alpha1.Cut(why, maxSaid)
			return
		}
		state, err := prober.Together(*in, answers)
		if err != nil {
			in.StateError = v1alpha1.Cut(err.Error(), maxSaid)
			return
		}
		state.Asked = asked
		in.State = &state
	}
}
