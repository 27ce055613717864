package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/images"
)

// templatesOf reads the pods that the objects of a rendered chart make.
func templatesOf(manifest []byte) ([]corev1.PodSpec, error) {
	var out []corev1.PodSpec
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		var one struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
			Kind string `json:"kind"`
		}
		err := documents.Decode(&one)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		if slices.Contains([]string{"Deployment", "DaemonSet", "Job"}, one.Kind) {
			out = append(out, one.Spec.Template.Spec)
		}
	}
}

// imagesIn lists the images of a cluster or a bundle: those of the operator, of its agents, and of all pods of filesystems.
func imagesIn(ctx context.Context, r client.Reader) ([]images.Image, error) {
	var templates []corev1.PodSpec
	var pods []corev1.Pod
	var selectors []klabels.Selector
	versions := map[string]bool{}
	err := errors.Join(
		pages(ctx, r, "Deployments", func() *appsv1.DeploymentList { return &appsv1.DeploymentList{} }, func(l *appsv1.DeploymentList) {
			for i := range l.Items {
				if strings.HasPrefix(l.Items[i].Labels["helm.sh/chart"], "parallelfs-operator-") {
					templates = append(templates, l.Items[i].Spec.Template.Spec)
					selectors = append(selectors, klabels.SelectorFromSet(l.Items[i].Spec.Selector.MatchLabels))
				}
			}
		}, client.HasLabels{"helm.sh/chart"}),
		pages(ctx, r, "pods", func() *corev1.PodList { return &corev1.PodList{} }, func(l *corev1.PodList) {
			for i := range l.Items {
				labels := klabels.Set(l.Items[i].Labels)
				if labels["app.kubernetes.io/managed-by"] == "parallelfs-operator" ||
					slices.ContainsFunc(selectors, func(s klabels.Selector) bool { return s.Matches(labels) }) {
					pods = append(pods, l.Items[i])
				}
			}
		}),
		pages(ctx, r, "FileSystems", func() *v1alpha1.FileSystemList { return &v1alpha1.FileSystemList{} }, func(l *v1alpha1.FileSystemList) {
			for i := range l.Items {
				if fs := &l.Items[i]; fs.Spec.Type == v1alpha1.BeeGFS && backend.Version(fs) != "" {
					versions[backend.Version(fs)] = true
				}
			}
		}))
	return images.Of(templates, pods, slices.Sorted(maps.Keys(versions))), err
}

func (a *app) imagesCommand() *cobra.Command {
	var format, from, file string
	var names bool
	cmd := &cobra.Command{
		Use:   "images",
		Short: "All images that the installation needs, with their digests",
		Long: `images lists the images of the manager, the agents, the daemons, the benchmarks and the MPI operator. With --file, it reads a
rendered chart, so that a registry can be filled before the installation; no cluster is needed. Otherwise it reads the cluster: then the
images of the pods of all filesystems are among them, and digests that the nodes report.

--names prints one reference in each line, with its digest where that is known. An image of a BeeGFS without a tag has one for each
version.`,
		Example: `  helm template pfs charts/parallelfs-operator -f values.yaml | kubectl pfs images -f - --names
  kubectl pfs images
  kubectl pfs images -o json
  kubectl pfs images --from dump.tar.gz`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			if file != "" && from != "" {
				return usage(errors.New("--file and --from exclude each other"))
			}
			all, err := a.listImages(cmd.Context(), from, file)
			if err != nil {
				return err
			}
			if format != "" {
				return encode(cmd.OutOrStdout(), format, all)
			}
			var lines strings.Builder
			var rows [][]string
			for _, i := range all {
				lines.WriteString(i.Pinned() + "\n")
				digest := "-"
				if i.Digest != "" {
					digest = cut(strings.TrimPrefix(i.Digest, "sha256:"), 13)
				}
				rows = append(rows, []string{i.Name, digest, strings.Join(i.For, ", ")})
			}
			if !names {
				lines.Reset()
				lines.WriteString(table([]column{{"IMAGE", 72}, {"SHA256", 14}, {"FOR", 0}}, rows))
			}
			_, err = io.WriteString(cmd.OutOrStdout(), lines.String())
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "a rendered chart; - is standard input")
	cmd.Flags().BoolVar(&names, "names", false, "one reference in each line, with its digest")
	outputFlag(cmd, &format)
	fromFlag(cmd, &from)
	return cmd
}

// listImages lists the images of a rendered chart if file names one, and else of a cluster or a bundle.
func (a *app) listImages(ctx context.Context, from, file string) ([]images.Image, error) {
	if file != "" {
		manifest, err := a.read(file)
		if err != nil {
			return nil, err
		}
		templates, err := templatesOf(manifest)
		return images.Of(templates, nil, nil), err
	}
	r, _, err := a.reader(from)
	if err != nil {
		return nil, err
	}
	return imagesIn(ctx, r)
}
