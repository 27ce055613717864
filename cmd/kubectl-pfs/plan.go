package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/config/crd"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/internal/preview"
)

func (a *app) planCommand() *cobra.Command {
	var file, from string
	cmd := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show what a FileSystem's manifest would do before it is applied",
		Long: `plan reads a manifest, and shows for each FileSystem in it, new or changed: what is refused and why, the values that the operator
would choose, the nodes of each role, the ports, the disks with their names, serial numbers and sizes, what would happen to each of them,
the servers that would restart, and the daemons that would stop. It writes nothing.

It first sends the manifest to the API server as a dry run (kubectl apply --dry-run=server), which checks its rules and fills in its
defaults. That needs the right to create and update FileSystems. Then it follows the operator's own decisions with the NodeInventories and
the live objects. The file counts as the whole spec: a field that it leaves out is absent afterwards. Use the plugin of the operator's
release, because another release may decide otherwise.

It can't know what only an agent sees: the mark on a disk, data that no inventory recognizes, or what a kernel refuses. Agents look at each
disk again before they write to it. It also does not ask the filesystem itself, a running benchmark, or a maintenance window.

With --from, the objects are those of a support bundle. The API server's rules are not checked then, and versions that only the operator's
images decide must be in the manifest. A bundle has the nodes of its own FileSystem only, no labels of nodes, and no volumes that
Kubernetes has attached.

Exit code 1 means that a FileSystem is refused.`,
		Example: `  kubectl pfs plan -f scratch.yaml
  helm template storage | kubectl pfs plan -f -
  kubectl pfs plan -f scratch.yaml --from ticket-1234.tar.gz`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usage(errors.New("-f FILE is required"))
			}
			return a.plan(cmd, file, from)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the manifest, or - for standard input")
	fromFlag(cmd, &from)
	return cmd
}

// plan prints a preview of each FileSystem of a file.
func (a *app) plan(cmd *cobra.Command, file, from string) error {
	text, err := a.readManifest(file)
	if err != nil {
		return err
	}
	reader, namespace, err := a.reader(from)
	if err != nil {
		return err
	}
	wanted, err := fileSystemsOf(text, namespace)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if len(wanted) == 0 {
		return fmt.Errorf("%s has no FileSystem", file)
	}
	c, err := a.clusterOf(cmd.Context(), reader, from != "", cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	refused := 0
	for i := range wanted {
		fs := &wanted[i]
		if writer, is := reader.(client.Client); is {
			if err := asServer(cmd.Context(), writer, fs); apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
				refused++
				cmd.Print(planHead(fs, "") + wrapped("Refused by the API server: ", "  ", err.Error()))
				continue
			} else if err != nil {
				return fmt.Errorf("ask the API server about FileSystem %s/%s: %w", fs.Namespace, fs.Name, err)
			}
		}
		would, err := c.Of(fs)
		if err != nil {
			return err
		}
		if would.Refused != nil {
			refused++
		}
		if _, err := io.WriteString(cmd.OutOrStdout(), previewText(would)); err != nil {
			return err
		}
	}
	if refused > 0 {
		return &exitError{exitFailed, fmt.Sprintf("%d of %d FileSystems are refused", refused, len(wanted))}
	}
	return nil
}

func (a *app) readManifest(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.stdin)
	}
	return os.ReadFile(file)
}

// fileSystemsOf returns the FileSystems of a manifest, with the defaults of the API.
func fileSystemsOf(text []byte, namespace string) ([]v1alpha1.FileSystem, error) {
	fields, err := schemaOfFileSystems()
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.FileSystem
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		if kind.Kind != "FileSystem" || kind.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
			continue
		}
		var fs v1alpha1.FileSystem
		if err := yaml.UnmarshalStrict(document, &fs); err != nil {
			return nil, err
		}
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		fields.fill(object)
		data, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		fs = v1alpha1.FileSystem{}
		if err := json.Unmarshal(data, &fs); err != nil {
			return nil, err
		}
		if fs.Namespace == "" {
			fs.Namespace = namespace
		}
		fs.Status = v1alpha1.FileSystemStatus{}
		out = append(out, fs)
	}
}

// fieldSchema is the part of an OpenAPI schema that has defaults.
type fieldSchema struct {
	Default    any                    `json:"default"`
	Properties map[string]fieldSchema `json:"properties"`
	Items      *fieldSchema           `json:"items"`
}

// fill sets the defaults of absent fields, as an API server does: those within an object only if the object is there, or has a default.
func (s fieldSchema) fill(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range s.Properties {
			if _, there := value[name]; !there && field.Default != nil {
				value[name] = runtime.DeepCopyJSONValue(field.Default)
			}
			field.fill(value[name])
		}
	case []any:
		for i := range value {
			if s.Items != nil {
				s.Items.fill(value[i])
			}
		}
	}
}

// schemaOfFileSystems returns the schema of the API.
func schemaOfFileSystems() (fieldSchema, error) {
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema fieldSchema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(crd.FileSystems, &definition); err != nil {
		return fieldSchema{}, fmt.Errorf("read the definition of FileSystems: %w", err)
	}
	if len(definition.Spec.Versions) != 1 {
		return fieldSchema{}, fmt.Errorf("the definition of FileSystems has %d versions", len(definition.Spec.Versions))
	}
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema, nil
}

// asServer sends a FileSystem to the API server without storing it, and takes over the spec that the API server returns.
func asServer(ctx context.Context, c client.Client, fs *v1alpha1.FileSystem) error {
	var live v1alpha1.FileSystem
	err := c.Get(ctx, client.ObjectKeyFromObject(fs), &live)
	switch {
	case apierrors.IsNotFound(err):
		asked := fs.DeepCopy()
		if err := c.Create(ctx, asked, client.DryRunAll); apierrors.IsNotFound(err) {
			return nil // its namespace is still to be made
		} else if err != nil {
			return err
		}
		fs.Spec = asked.Spec
	case err != nil:
		return err
	default:
		live.Spec = *fs.Spec.DeepCopy()
		for name, value := range fs.Annotations {
			metav1.SetMetaDataAnnotation(&live.ObjectMeta, name, value)
		}
		if err := c.Update(ctx, &live, client.DryRunAll); err != nil {
			return err
		}
		fs.Spec = live.Spec
	}
	return nil
}

// clusterOf reads what a preview is made from.
func (a *app) clusterOf(ctx context.Context, r client.Reader, bundled bool, notes io.Writer) (preview.Cluster, error) {
	c := preview.Cluster{
		Backends: all.Backends(backend.DefaultTellTime), Now: a.now(), Inventories: map[string]v1alpha1.NodeInventoryStatus{},
		Images: backend.Images{Node: "node", Daemons: map[string]string{}},
	}
	var seen snapshot
	err := errors.Join(seen.readFileSystems(ctx, r, "", ""), seen.readTargets(ctx, r), seen.readNodes(ctx, r),
		seen.readInventories(ctx, r, ""))
	if err != nil {
		return c, err
	}
	c.FileSystems, c.Targets, c.Records = seen.fileSystems, seen.targets, seen.nodes
	for i := range seen.inventories {
		c.Inventories[seen.inventories[i].Name] = seen.inventories[i].Status
	}
	if len(c.Targets) > 0 {
		c.ID = c.Targets[0].Spec.Cluster
	}
	if bundled {
		c.Images.Assumed = true
		for _, node := range backend.SortedKeys(c.Inventories) {
			c.Nodes = append(c.Nodes, nodeOf(node, c.Inventories[node]))
		}
		return c, nil
	}
	var nodes corev1.NodeList
	if err := r.List(ctx, &nodes); err != nil {
		return c, fmt.Errorf("list Nodes: %w", err)
	}
	c.Nodes = nodefacts.NodeFacts(nodes.Items)
	var system corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err == nil {
		c.ID = string(system.UID)
	}
	if c.Attachments, err = attachmentsOf(ctx, r, c.Inventories); err != nil {
		_, _ = fmt.Fprintf(notes, "The volumes that Kubernetes has attached are unknown, and the operator selects no disk of one: %s\n", err) // a note
	}
	if err := imagesOf(ctx, r, &c.Images); err != nil {
		_, _ = fmt.Fprintf(notes, "The operator's images are unknown, so a spec without a version is refused here: %s\n", err) // a note
	}
	return c, nil
}

// nodeOf returns a node of a bundle, which has its inventory only: every address of its interfaces may be its InternalIP.
func nodeOf(name string, inventory v1alpha1.NodeInventoryStatus) backend.Node {
	out := backend.Node{Name: name, Ready: true, Labels: map[string]string{corev1.LabelHostname: name}}
	for _, i := range inventory.NetworkInterfaces {
		for _, text := range i.Addresses {
			text, _, _ = strings.Cut(text, "/")
			if address, err := netip.ParseAddr(text); err == nil && address.IsGlobalUnicast() {
				out.InternalIPs = append(out.InternalIPs, text)
			}
		}
	}
	return out
}

// attachmentsOf reads the volumes that Kubernetes has attached to nodes with an inventory.
func attachmentsOf(
	ctx context.Context, r client.Reader, inventories map[string]v1alpha1.NodeInventoryStatus,
) (map[string][]plan.Attachment, error) {
	out := map[string][]plan.Attachment{}
	var all []storagev1.VolumeAttachment
	if err := pages(ctx, r, "VolumeAttachments", func() *storagev1.VolumeAttachmentList { return &storagev1.VolumeAttachmentList{} },
		func(l *storagev1.VolumeAttachmentList) { all = append(all, l.Items...) }); err != nil {
		return nil, err
	}
	for i := range all {
		node := all[i].Spec.NodeName
		if _, there := inventories[node]; !there {
			continue
		}
		handle := ""
		if name := all[i].Spec.Source.PersistentVolumeName; name != nil {
			var volume corev1.PersistentVolume
			if err := r.Get(ctx, client.ObjectKey{Name: *name}, &volume); client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("read PersistentVolume %s: %w", *name, err)
			}
			if csi := volume.Spec.CSI; csi != nil {
				handle = csi.VolumeHandle
			}
		}
		out[node] = append(out[node], plan.AttachmentOf(&all[i], handle))
	}
	plan.SortAttachments(out)
	return out, nil
}

// imagesOf reads the images that the manager was started with.
func imagesOf(ctx context.Context, r client.Reader, images *backend.Images) error {
	var managers appsv1.DeploymentList
	if err := r.List(ctx, &managers, client.MatchingLabels{"app.kubernetes.io/component": "manager"}); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for i := range managers.Items {
		for _, container := range managers.Items[i].Spec.Template.Spec.Containers {
			for _, arg := range container.Args {
				if image, is := strings.CutPrefix(arg, "--node-image="); is {
					images.Node = image
				}
				if pair, is := strings.CutPrefix(arg, "--daemon-image="); is {
					name, image, _ := strings.Cut(pair, "=")
					images.Daemons[name] = image
				}
			}
		}
	}
	if len(images.Daemons) == 0 {
		return errors.New("no Deployment of a manager has images of daemons")
	}
	return nil
}
