package filesystem

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

const (
	// mostGuards is how many guards a pass creates or changes. The others follow in the next passes.
	mostGuards = 256
	// firstGuards is how long an incomplete new filesystem must have made no progress before it gets guards.
	firstGuards = 5 * time.Minute
)

// guards holds the existing guards of a FileSystem, by the name of the FileSystemNode, read-only.
type guards struct {
	deployments map[string]*appsv1.Deployment
	budgets     map[string]*policyv1.PodDisruptionBudget
}

// guardsNow returns the current guards. They are read again only after one has changed, because a namespace may hold thousands of guards of
// other filesystems.
func (p *pass) guardsNow(ctx context.Context) (guards, error) {
	m := p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID)
	return m.guards.get(&p.guardChanges, func() (guards, error) { return p.readGuards(ctx) })
}

// readGuards reads the guards from the cache.
func (p *pass) readGuards(ctx context.Context) (guards, error) {
	mine := []client.ListOption{
		client.InNamespace(p.fs.Namespace), client.MatchingLabels{v1alpha1.LabelGuard: p.fs.Name}, client.UnsafeDisableDeepCopy,
	}
	var deployments appsv1.DeploymentList
	if err := p.Client.List(ctx, &deployments, mine...); err != nil {
		return guards{}, fmt.Errorf("list Deployments: %w", err)
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := p.Client.List(ctx, &budgets, mine...); err != nil {
		return guards{}, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	g := guards{
		deployments: make(map[string]*appsv1.Deployment, len(deployments.Items)),
		budgets:     make(map[string]*policyv1.PodDisruptionBudget, len(budgets.Items)),
	}
	for i := range deployments.Items {
		g.deployments[deployments.Items[i].Name] = &deployments.Items[i]
	}
	for i := range budgets.Items {
		g.budgets[budgets.Items[i].Name] = &budgets.Items[i]
	}
	return g, nil
}

// guardNodes creates the guards of nodes, opens and closes them, and removes those of nodes that no longer need one. While a filesystem
// grows, it has none, because nothing needs them yet and they would delay its servers.
func (p *pass) guardNodes(ctx context.Context) error {
	if !p.observed || isNew(p.fs) {
		return nil
	}
	have, err := p.guardsNow(ctx)
	if err != nil {
		return err
	}
	limit := growthLimit
	if len(have.budgets) == 0 {
		limit = firstGuards
	}
	pods, grows := podspec.Pods{FileSystem: p.fs, Images: p.in.Images}, p.grows(limit)
	plain := pods.GuardHash(nil) // the hash for most nodes
	guarded := map[string]bool{}
	var wanted []client.Object
	opens := false
	for i := range p.in.FileSystemNodes {
		n := &p.in.FileSystemNodes[i]
		if !podspec.Guarded(n) {
			continue
		}
		guarded[n.Name] = true
		node, there := p.in.Node(n.Spec.Node)
		deployment, budget := have.deployments[n.Name], have.budgets[n.Name]
		if deployment == nil && budget == nil && (grows || !there) {
			continue
		}
		if len(wanted) >= 2*mostGuards {
			p.after = stopInterval // the others follow in the next pass
			continue
		}
		open := p.mayOpen(n.Spec.Node, budget)
		// The budget comes first, because a pod without one could be evicted.
		if budget == nil || podspec.IsOpen(budget) != open || !metav1.IsControlledBy(budget, p.fs) {
			wanted, opens = append(wanted, podspec.GuardBudget(p.fs, n, open)), opens || open && !p.vacant[n.Spec.Node]
		}
		hash := plain
		if len(node.Taints) > 0 {
			hash = pods.GuardHash(node.Taints)
		}
		if there && !isGuard(deployment, p.fs, hash) {
			wanted = append(wanted, pods.Guard(n, node))
		}
	}
	if opens {
		if err := p.proveMaintenance(ctx); err != nil {
			return err
		}
	}
	labels := map[string]string{v1alpha1.LabelGuard: p.fs.Name}
	_, err = p.Applier.Compare(ctx, p.fs, labels, wanted).ApplyTogether(ctx)
	return errors.Join(err, p.deleteGuards(ctx, have, func(o client.Object) bool {
		return !guarded[o.GetName()] && metav1.IsControlledBy(o, p.fs)
	}))
}

// isGuard reports whether a Deployment is the desired guard.
func isGuard(d *appsv1.Deployment, fs *v1alpha1.FileSystem, hash string) bool {
	return d != nil && metav1.IsControlledBy(d, fs) && d.Annotations[backend.TemplateHashAnnotation] == hash &&
		d.Spec.Replicas != nil && *d.Spec.Replicas == 1
}

// removeGuards removes all guards of a deleted FileSystem, including orphaned ones. Without an operator that opens them, no node could ever
// be drained.
func (p *pass) removeGuards(ctx context.Context) error {
	have, err := p.guardsNow(ctx)
	if err != nil {
		return err
	}
	return p.deleteGuards(ctx, have, func(o client.Object) bool {
		return metav1.IsControlledBy(o, p.fs) || metav1.GetControllerOf(o) == nil
	})
}

// deleteGuards deletes the guards for which the function which returns true.
func (p *pass) deleteGuards(ctx context.Context, have guards, which func(client.Object) bool) error {
	var gone []client.Object
	for _, d := range have.deployments {
		gone = append(gone, d)
	}
	for _, b := range have.budgets {
		gone = append(gone, b)
	}
	return apply.Together(len(gone), func(i int) error { //nolint:wrapcheck // the phase adds its name
		o := gone[i]
		if !which(o) || !o.GetDeletionTimestamp().IsZero() {
			return nil
		}
		uid := o.GetUID()
		err := p.Client.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the guard %s: %w", o.GetName(), err)
		}
		return nil
	})
}
