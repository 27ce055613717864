package filesystem

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/disruption"
	"parallelfs.dev/operator/internal/plan"
)

// A target that two nodes may serve is at its holder (StorageTarget.status.holder). A pass sets the node that should serve it
// (spec.serveOn), and the agents move it, so nothing in this file can make both nodes mount it. A pass writes the holder itself only if a
// person has confirmed that the holder's machine is off (docs/adr/0096).

// moveTargets moves targets to the other one of their nodes as the backend decides. A failback waits until nothing else is disturbed and
// until programs may be made to wait.
func (p *pass) moveTargets(ctx context.Context) error {
	pairer, can := p.backend.(backend.Pairer)
	if !can || !p.observed {
		return nil
	}
	var errs []error
	back := ""
	for _, m := range pairer.Moves(p.in) {
		if m.Waits != "" || m.Back && back != "" && m.To != back {
			continue
		}
		if m.Back && back == "" {
			may, err := p.mayMoveBack(ctx, &m)
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			if !may {
				continue
			}
			back = m.To
		}
		err := p.move(ctx, &m)
		if err != nil {
			err = fmt.Errorf("move %s to node %s: %w", m.Target, m.To, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// mayMoveBack reports whether a target may go back to its own node, although its present node serves it.
func (p *pass) mayMoveBack(ctx context.Context, m *backend.Move) (bool, error) {
	closed, err := disruption.Closed(p.fs.Spec.Updates.Windows, p.Clock.Now())
	if err != nil {
		return false, nil //nolint:nilerr // chooseRestarts says it
	}
	queue := []disruption.Disruption{{
		Place: disruption.Place{Component: "target " + m.Target, Node: m.To}, Why: m.Why, Costs: "it is stored nowhere else",
	}}
	decision := disruption.Decide(queue, worldOf(p.backend.Order(), p.in, backend.Maintained(p.fs), p.observation, closed))
	if len(decision.Now) == 0 {
		return false, nil
	}
	return p.hold.may(ctx, fmt.Sprintf("targets go back to node %s", m.To))
}

// move takes the next step of a move. Each write fails if the object has changed since it was read.
func (p *pass) move(ctx context.Context, m *backend.Move) error {
	t := p.in.TargetNamed(m.Target)
	if t == nil {
		return nil
	}
	if plan.WantedOn(t) != m.To {
		before := t.DeepCopy()
		now := t.DeepCopy()
		if now.Spec.ServeOn = m.To; m.To == t.Spec.Node {
			now.Spec.ServeOn = ""
		}
		lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := p.targetChanges.conflict(p.Client.Patch(ctx, now, lock)); err != nil {
			return fmt.Errorf("record where it is to be served: %w", err)
		}
		p.sayMove(ctx, m)
		p.after = stopInterval // the next pass configures the agents
		return nil
	}
	if m.Off == nil {
		return nil
	}
	return p.takeOver(ctx, m)
}

// sayMove reports that the other node of a target should serve it.
func (p *pass) sayMove(ctx context.Context, m *backend.Move) {
	note := fmt.Sprintf("%s goes to node %s, because %s; programs wait until that serves it", m.Target, m.To, m.Why)
	p.Recorder.Eventf(p.fs, nil, corev1.EventTypeNormal, v1alpha1.ReasonTargetMoves, "Move", "%s", v1alpha1.Cut(note, conditions.MaxNote))
	log.FromContext(ctx).Info("Moving a target to the other one of its nodes", "target", m.Target, "node", m.To, "why", m.Why)
}

// takeOver makes a node the holder although the former holder has not handed the target over. It first reads everything that justifies this
// from the API server again. A person's confirmation must be valid for this holder, and the Node must be down and marked as out of service.
func (p *pass) takeOver(ctx context.Context, m *backend.Move) error {
	now := &v1alpha1.StorageTarget{}
	if err := p.Reader.Get(ctx, client.ObjectKey{Namespace: p.fs.Namespace, Name: m.Target}, now); err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	node := &corev1.Node{}
	if err := p.Reader.Get(ctx, client.ObjectKey{Name: m.Off.Node}, node); err != nil {
		return fmt.Errorf("read Node %s again: %w", m.Off.Node, err)
	}
	holder, facts := plan.HolderOf(now), nodefacts.FactsOfNode(node)
	switch {
	case now.Spec.FileSystem.UID != string(p.fs.UID) || !plan.IsOfPair(now) || plan.WantedOn(now) != m.To,
		holder.Node != m.Off.Node || holder.Number != m.Off.Number || plan.OtherOf(now, holder.Node) != m.To:
		return errors.New("it has changed since it was looked at; the next pass looks again")
	case now.Annotations[v1alpha1.AnnotationMachineIsOff] != now.OffWord(), !facts.OutOfService, facts.Ready:
		return fmt.Errorf("node %s is no longer marked as off; the next pass looks again", holder.Node)
	}
	before := now.DeepCopy()
	now.Status.Holder = &v1alpha1.TargetHolder{Node: m.To, Number: holder.Number + 1, TakenOver: holder.Number + 1}
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := p.targetChanges.conflict(p.Client.Status().Patch(ctx, now, lock)); err != nil {
		return fmt.Errorf("write its holder: %w", err)
	}
	note := fmt.Sprintf("Node %s takes %s over, because %s (%s)", m.To, m.Target, m.Why, p.Clock.Now().UTC().Format(time.RFC3339))
	p.Recorder.Eventf(p.fs, nil, corev1.EventTypeWarning, v1alpha1.ReasonTargetMoves, "TakeOver", "%s", v1alpha1.Cut(note, conditions.MaxNote))
	log.FromContext(ctx).Info("A node takes a target over whose holder is off", "target", m.Target, "node", m.To, "holder", holder.Node,
		"number", holder.Number)
	p.after = stopInterval // the next pass configures the agents
	return nil
}
