package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) machineIsOffCommand() *cobra.Command {
	dry, off := false, false
	cmd := &cobra.Command{
		Use:   "machine-is-off FILESYSTEM NODE [--it-is-off]",
		Short: "Say that the machine of a node is off, so that the other nodes of its pairs serve its targets",
		Long: `machine-is-off is for targets whose disk two nodes reach. It says that the machine of the node that holds them IS off, so that the
other node of each may mount them (annotation ` + v1alpha1.AnnotationMachineIsOff + ` of the StorageTargets).

Nothing fences the machine: neither this command nor the operator switches anything off. A machine that only does not answer may go
on to write, and destroys a target that another node has mounted. So switch it off, look that it IS off, and say so twice: by the taint
` + corev1.TaintNodeOutOfService + ` of the Node, and by this command with --it-is-off. Without that flag it names the targets, and
changes nothing.

The confirmation is valid for the present holder of each target only.`,
		Example: `  kubectl taint node oss1 ` + corev1.TaintNodeOutOfService + `=nodeshutdown:NoExecute
  kubectl pfs node machine-is-off scratch oss1
  kubectl pfs node machine-is-off scratch oss1 --it-is-off --dry-run
  kubectl pfs node machine-is-off scratch oss1 --it-is-off`,
		Args: exactly("FILESYSTEM", "NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			held, err := c.heldBy(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return c.machineIsOff(cmd, args[0], args[1], held, off, dry)
		},
	}
	cmd.Flags().BoolVar(&off, "it-is-off", false, "say that the machine IS off; without it, nothing is changed")
	dryRun(cmd, &dry)
	return cmd
}

// heldBy returns the targets of a FileSystem that two nodes may serve, and that a node holds.
func (c connection) heldBy(ctx context.Context, fileSystem, node string) ([]v1alpha1.StorageTarget, error) {
	fs, err := c.fileSystem(ctx, fileSystem)
	if err != nil {
		return nil, err
	}
	var all v1alpha1.StorageTargetList
	if err := c.List(ctx, &all, client.InNamespace(c.namespace)); err != nil {
		return nil, fmt.Errorf("list StorageTargets in the namespace %s: %w", c.namespace, err)
	}
	var held []v1alpha1.StorageTarget
	var others []string
	for _, t := range all.Items {
		holder := t.Holder().Node
		switch {
		case t.Spec.FileSystem.Name != fs.Name || t.Spec.FileSystem.UID != string(fs.UID) || t.Spec.SecondNode == "":
		case holder == node:
			held = append(held, t)
		default:
			others = append(others, holder)
		}
	}
	slices.Sort(others)
	switch others = slices.Compact(others); {
	case len(held) > 0:
		return held, nil
	case len(others) == 0:
		return nil, fmt.Errorf("the FileSystem %s has no target of two nodes, so no other node can serve what node %q has", fileSystem, node)
	}
	return nil, fmt.Errorf("node %q holds no target of two nodes of the FileSystem %s; such targets are held by %s", node, fileSystem, listed(others))
}

// machineIsOff confirms, for each target that a node holds, that its machine is off, once a person has confirmed it for the Node.
func (c connection) machineIsOff(cmd *cobra.Command, fileSystem, name string, held []v1alpha1.StorageTarget, off, dry bool) error {
	cmd.PrintErrf("Node %s holds %d targets of FileSystem %s that another node can serve:\n", name, len(held), fileSystem)
	for i := range held {
		t, other := &held[i], held[i].Spec.SecondNode
		if other == name {
			other = t.Spec.Node
		}
		said := ""
		if t.Annotations[v1alpha1.AnnotationMachineIsOff] == t.OffWord() {
			said = ", as was said already"
		}
		cmd.PrintErrf("  %s would go to node %s (%s%s)\n", t.Name, other, t.OffWord(), said)
	}
	cmd.PrintErrf("Nothing fences the machine of node %s: it must BE off. One that only does not answer may go on to write, and destroys a target that another "+
		"node has mounted.\n", name)
	if err := c.saidToBeOff(cmd.Context(), name); err != nil {
		return err
	}
	if !off {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Nothing was changed. When the machine IS off: kubectl pfs -n %s node machine-is-off %s %s --it-is-off\n",
			c.namespace, fileSystem, name)
		return err
	}
	for i := range held {
		t := &held[i]
		word := t.OffWord()
		err := c.sayOfExactly(cmd, t, "StorageTarget", words{v1alpha1.AnnotationMachineIsOff: &word}, dry)
		if apierrors.IsConflict(err) {
			return fmt.Errorf("the StorageTarget %s has changed since it was read, and nothing was said of it: look again with the same command", t.Name)
		}
		if err != nil {
			return err
		}
	}
	if !dry {
		cmd.PrintErrf("See who holds them: kubectl -n %s get storagetargets -o custom-columns=NAME:.metadata.name,HOLDER:.status.holder.node. The operator still waits "+
			"while the filesystem has an answer of node %s.\n", c.namespace, name)
	}
	return nil
}

// saidToBeOff returns an error while no person has confirmed that the machine of a Node is off, or while Kubernetes contradicts it.
func (c connection) saidToBeOff(ctx context.Context, name string) error {
	node := &corev1.Node{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("node %s is not in the cluster any more, so nobody can mark it there as off, and the operator would wait; bring back a machine of this name, "+
			"or a Node of this name to be marked. Nothing was changed", name)
	case err != nil:
		return fmt.Errorf("read the Node %s: %w", name, err)
	case slices.ContainsFunc(node.Status.Conditions, func(is corev1.NodeCondition) bool {
		return is.Type == corev1.NodeReady && is.Status == corev1.ConditionTrue
	}):
		return fmt.Errorf("node %s is Ready, so its machine is not off; switch it off, and say so when Kubernetes has seen that (kubectl get node %s). Nothing was changed",
			name, name)
	case !slices.ContainsFunc(node.Spec.Taints, func(has corev1.Taint) bool { return has.Key == corev1.TaintNodeOutOfService }):
		return fmt.Errorf("node %s does not have the taint that marks its machine as off; when it IS off: kubectl taint node %s %s=nodeshutdown:NoExecute. Nothing was changed",
			name, name, corev1.TaintNodeOutOfService)
	}
	return nil
}
