package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// words are annotations that a person sets, or removes if the value is nil.
type words map[string]*string

// say sets only the annotations. With dry it prints the patch instead.
func (c connection) say(cmd *cobra.Command, object client.Object, kind string, said words, dry bool) error {
	return c.patch(cmd, object, kind, said, map[string]any{"annotations": said}, dry)
}

// sayOfExactly is say for an object that must not have changed since it was read.
func (c connection) sayOfExactly(cmd *cobra.Command, object client.Object, kind string, said words, dry bool) error {
	return c.patch(cmd, object, kind, said, map[string]any{"annotations": said, "resourceVersion": object.GetResourceVersion()}, dry)
}

func (c connection) patch(cmd *cobra.Command, object client.Object, kind string, said words, metadata map[string]any, dry bool) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("encode the annotations: %w", err)
	}
	if dry {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", patch)
		cmd.PrintErrf("Nothing was changed. To do the same by hand: kubectl -n %s annotate --overwrite %s %s%s\n",
			c.namespace, strings.ToLower(kind), object.GetName(), said)
		return err
	}
	if err := c.Patch(cmd.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("annotate the %s %s/%s: %w", kind, c.namespace, object.GetName(), err)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s/%s annotated:%s\n", strings.ToLower(kind), object.GetName(), said)
	return err
}

// String returns the arguments of kubectl annotate, each after a space.
func (w words) String() string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if value := w[key]; value != nil {
			out.WriteString(" " + key + "=" + *value)
		} else {
			out.WriteString(" " + key + "-")
		}
	}
	return out.String()
}

// dryRun is the flag of every command that writes.
func dryRun(cmd *cobra.Command, dry *bool) {
	cmd.Flags().BoolVar(dry, "dry-run", false, "print the patch, and change nothing")
}

// fileSystem reads a FileSystem.
func (c connection) fileSystem(ctx context.Context, name string) (*v1alpha1.FileSystem, error) {
	fs := &v1alpha1.FileSystem{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, fs)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no FileSystem %s in the namespace %s; name another with --namespace", name, c.namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read the FileSystem %s/%s: %w", c.namespace, name, err)
	}
	return fs, nil
}

// fileSystemNode reads the FileSystemNode of a FileSystem on a node.
func (c connection) fileSystemNode(ctx context.Context, fileSystem, node string) (*v1alpha1.FileSystemNode, error) {
	if _, err := c.fileSystem(ctx, fileSystem); err != nil {
		return nil, err
	}
	var all v1alpha1.FileSystemNodeList
	if err := c.List(ctx, &all, client.InNamespace(c.namespace)); err != nil {
		return nil, fmt.Errorf("list FileSystemNodes in the namespace %s: %w", c.namespace, err)
	}
	var others []string
	for i := range all.Items {
		n := &all.Items[i]
		switch {
		case n.Spec.FileSystem.Name != fileSystem:
		case n.Spec.Node == node:
			return n, nil
		default:
			others = append(others, n.Spec.Node)
		}
	}
	if len(others) == 0 {
		return nil, fmt.Errorf("the FileSystem %s has servers on no node", fileSystem)
	}
	slices.Sort(others)
	return nil, fmt.Errorf("the FileSystem %s has no servers on a node %q; it has some on %s", fileSystem, node, listed(others))
}

// listed returns the first of many names.
func listed(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// saying returns the message of a condition, with its reason; empty when there is no such condition.
func saying(all []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(all, kind); c != nil {
		return fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	return ""
}

// wordOf returns the value of an annotation that a condition asks a person for; empty when it asks for none.
func wordOf(all []metav1.Condition, kind, annotation string) string {
	c := meta.FindStatusCondition(all, kind)
	if c == nil {
		return ""
	}
	found := regexp.MustCompile(regexp.QuoteMeta(annotation) + `=((?:sha256:)?[0-9a-f]+)`).FindStringSubmatch(c.Message)
	if found == nil {
		return ""
	}
	return found[1]
}
