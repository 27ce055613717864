package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// AskToDropCaches asks the agents of nodes to drop the caches of their kernels once. The request is a text of at most 128 characters that
// was never used before; asking again with the same one changes nothing. A node without a NodeInventory is an error, and then no agent is
// asked.
func AskToDropCaches(ctx context.Context, c client.Client, nodes []string, request string) error {
	inventories, err := inventoriesOf(ctx, c, nodes)
	if err != nil {
		return err
	}
	var errs []error
	for i := range inventories {
		if inventories[i].Annotations[v1alpha1.AnnotationDropCaches] == request {
			continue
		}
		before := inventories[i].DeepCopy()
		metav1.SetMetaDataAnnotation(&inventories[i].ObjectMeta, v1alpha1.AnnotationDropCaches, request)
		if err := c.Patch(ctx, &inventories[i], client.MergeFrom(before)); err != nil {
			errs = append(errs, fmt.Errorf("ask the agent of node %s to drop its caches: %w", inventories[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

// DroppedCaches returns the nodes that have not answered the request yet, and an error when one answered that it could not. A node without
// a NodeInventory is an error.
func DroppedCaches(ctx context.Context, reader client.Reader, nodes []string, request string) (waiting []string, err error) {
	inventories, err := inventoriesOf(ctx, reader, nodes)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range inventories {
		done := inventories[i].Status.DroppedCaches
		switch {
		case done == nil || done.Request != request:
			waiting = append(waiting, inventories[i].Name)
		case done.Error != "":
			errs = append(errs, fmt.Errorf("node %s could not drop its caches: %s", inventories[i].Name, done.Error))
		}
	}
	return waiting, errors.Join(errs...)
}

func inventoriesOf(ctx context.Context, reader client.Reader, nodes []string) ([]v1alpha1.NodeInventory, error) {
	out := make([]v1alpha1.NodeInventory, len(nodes))
	var without []string
	for i, node := range nodes {
		if err := reader.Get(ctx, client.ObjectKey{Name: node}, &out[i]); apierrors.IsNotFound(err) {
			without = append(without, node)
		} else if err != nil {
			return nil, fmt.Errorf("read the NodeInventory of %s: %w", node, err)
		}
	}
	if len(without) > 0 {
		return nil, fmt.Errorf("no agent runs on %s, so the caches there can't be dropped; label these nodes: kubectl label node %s %s=",
			backend.List(without), strings.Join(without, " "), v1alpha1.LabelAgent)
	}
	return out, nil
}
