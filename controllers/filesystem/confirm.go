package filesystem

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/controllers/views"
)

// restartTime is how long the reports of an agent still count after this manager has last seen its pod Ready. The restart of an agent
// takes less time.
const restartTime = 5 * time.Minute

// confirmations records when this manager has last seen the agent of each node Ready, by its own clock. It is in memory only: a manager
// that has just started relies on no agent that is not Ready.
type confirmations struct {
	mutex sync.Mutex
	// began is when this manager first looked at the agents.
	began time.Time
	last  map[string]time.Time
}

// see records the agents that are Ready now, and returns the nodes among these whose agent was not Ready for restartTime.
func (c *confirmations) see(ready map[string]bool, nodes iter.Seq[string], now time.Time) (silent []string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.last == nil {
		c.began, c.last = now, map[string]time.Time{}
	}
	for node := range nodes {
		if ready[node] {
			c.last[node] = now
		} else if at, noticed := c.last[node]; !noticed || now.Sub(at) >= restartTime {
			delete(c.last, node)
			silent = append(silent, node)
		}
	}
	return silent
}

// lasting reports whether this manager has looked at the agents for restartTime. Before that, an agent that is not Ready may just restart
// with the manager, for a release.
func (c *confirmations) lasting(now time.Time) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.last != nil && now.Sub(c.began) >= restartTime
}

// namesAgents reports whether a pod claims to be the pod of an agent. It selects events, and proves nothing: readyAgents decides.
func (r *Reconciler) namesAgents(pod client.Object) bool {
	owner := metav1.GetControllerOf(pod)
	return r.Agents.Name != "" && pod.GetNamespace() == r.Agents.Namespace &&
		owner != nil && owner.Kind == "DaemonSet" && owner.Name == r.Agents.Name
}

// readyAgents returns the nodes whose agent is Ready. A pod is an agent only if its controller has the UID of the agents' DaemonSet. An
// agent is Ready only while a recent scan has confirmed its NodeInventory (package agent). While a node is not Ready, Kubernetes shows its
// pods as not Ready.
func (r *Reconciler) readyAgents(ctx context.Context) (map[string]bool, error) {
	if r.Agents.Name == "" {
		return nil, nil //nolint:nilnil // no agent is known
	}
	return r.allAgents.get(&r.agentChanges, func() (map[string]bool, error) {
		// The DaemonSet is not in the cache, which has only the operator's own objects. A DaemonSet that is created again gets new pods, whose
		// events lead to the next read.
		var set appsv1.DaemonSet
		if err := r.Reader.Get(ctx, r.Agents, &set); apierrors.IsNotFound(err) {
			return map[string]bool{}, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the DaemonSet of the agents: %w", err)
		}
		var pods corev1.PodList
		if err := r.Client.List(ctx, &pods, client.InNamespace(r.Agents.Namespace), client.MatchingLabels{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, labelComponent: agentComponent,
		}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the pods of agents: %w", err)
		}
		out := make(map[string]bool, len(pods.Items))
		for i := range pods.Items {
			if pod := &pods.Items[i]; owned.IsOf(pod, &set) && podFacts(pod, nil).Ready {
				out[pod.Spec.NodeName] = true
			}
		}
		return out, nil
	})
}

// The label of the pods of agents (the chart's agent/daemonset.yaml).
const labelComponent, agentComponent = "app.kubernetes.io/component", "agent"

// unconfirmedReports returns the nodes whose agent does not confirm its reports now, each with the reason.
func (r *Reconciler) unconfirmedReports(ctx context.Context, found map[string]v1alpha1.NodeInventoryStatus) (map[string]string, error) {
	ready, err := r.readyAgents(ctx)
	if err != nil {
		return nil, err
	}
	silent := r.confirmations.see(ready, maps.Keys(found), r.Order.Now())
	out := make(map[string]string, len(silent))
	for _, node := range silent {
		out[node] = fmt.Sprintf("the agent of node %s is not Ready, so that its reports may be outdated; look at its pod and log", node)
	}
	return out, nil
}

// showUnconfirmed adds the agents that do not confirm their reports to a view. It waits until this manager has looked for a while, because
// each change of a view writes one object for each target.
func (p *pass) showUnconfirmed(view views.FileSystem) {
	if !p.confirmations.lasting(p.Order.Now()) {
		return
	}
	for i := range p.disks.own {
		t := &p.disks.own[i]
		if target, shown := view.Targets[t.Name]; shown && p.in.Unconfirmed[t.Spec.Node] != "" {
			target.Unconfirmed = p.in.Unconfirmed[t.Spec.Node]
			view.Targets[t.Name] = target
		}
	}
}
