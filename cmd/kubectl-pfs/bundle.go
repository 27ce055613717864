package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The names of files in a support bundle.
const (
	bundleManifest = "manifest.json"
	bundleObjects  = "objects"
)

// manifest describes a bundle.
type manifest struct {
	Format    string `json:"format"`
	Namespace string `json:"namespace"`
	// FileSystem is the FileSystem of the bundle.
	FileSystem string `json:"fileSystem"`
	Taken      string `json:"taken"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// LeftOut lists what is missing from the bundle, and why.
	LeftOut []string `json:"leftOut,omitempty"`
}

// bundleFormat is the version of the form of a bundle.
const bundleFormat = "parallelfs.dev/dump-v1"

// mostUnpacked bounds the bytes that are read from a bundle, which may come from an untrusted source.
const mostUnpacked = 512 << 20

// bundle is a support bundle, which is read like a cluster.
type bundle struct {
	namespace string
	taken     time.Time
	scheme    *runtime.Scheme
	objects   map[schema.GroupVersionKind][]client.Object
}

var _ client.Reader = &bundle{}

// readKinds lists the kinds that commands read from a bundle. It holds other kinds for people.
var readKinds = map[string]func() client.Object{
	"FileSystem":     func() client.Object { return &v1alpha1.FileSystem{} },
	"StorageTarget":  func() client.Object { return &v1alpha1.StorageTarget{} },
	"FileSystemNode": func() client.Object { return &v1alpha1.FileSystemNode{} },
	"NodeInventory":  func() client.Object { return &v1alpha1.NodeInventory{} },
	"BenchmarkRun":   func() client.Object { return &v1alpha1.BenchmarkRun{} },
	"BenchmarkSuite": func() client.Object { return &v1alpha1.BenchmarkSuite{} },
	"Pod":            func() client.Object { return &corev1.Pod{} },
	"Event":          func() client.Object { return &corev1.Event{} },
}

// openBundle reads a support bundle.
func openBundle(name string) (*bundle, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the file was only read
	b, err := readBundle(file)
	if err != nil {
		return nil, fmt.Errorf("read the support bundle %s: %w", name, err)
	}
	return b, nil
}

func readBundle(r io.Reader) (*bundle, error) {
	known, err := scheme()
	if err != nil {
		return nil, err
	}
	b := &bundle{scheme: known, objects: map[schema.GroupVersionKind][]client.Object{}}
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: unpacked, N: mostUnpacked}
	archive, found := tar.NewReader(bounded), false
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch dir, file := path.Split(path.Clean(header.Name)); {
		case file == bundleManifest:
			var m manifest
			if err := json.NewDecoder(archive).Decode(&m); err != nil {
				return nil, fmt.Errorf("%s: %w", header.Name, err)
			}
			if m.Format != bundleFormat {
				return nil, fmt.Errorf("its format is %q, and this command reads %s", m.Format, bundleFormat)
			}
			if b.taken, err = time.Parse(time.RFC3339, m.Taken); err != nil {
				return nil, fmt.Errorf("%s: %w", header.Name, err)
			}
			b.namespace, found = m.Namespace, true
		case path.Base(dir) == bundleObjects:
			if err := b.take(strings.TrimSuffix(file, ".json"), archive); err != nil {
				return nil, fmt.Errorf("%s: %w", header.Name, err)
			}
		}
	}
	if bounded.N <= 0 {
		return nil, fmt.Errorf("it is larger than %d MiB when unpacked", mostUnpacked>>20)
	}
	if !found {
		return nil, errors.New("it has no " + bundleManifest + ", so it is not of kubectl pfs dump, or is cut off")
	}
	return b, nil
}

// take reads the objects of a kind.
func (b *bundle) take(kind string, r io.Reader) error {
	empty := readKinds[kind]
	if empty == nil {
		return nil
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.NewDecoder(r).Decode(&list); err != nil {
		return err
	}
	for _, item := range list.Items {
		object := empty()
		if err := json.Unmarshal(item, object); err != nil {
			return err
		}
		gvk, err := apiutil.GVKForObject(object, b.scheme)
		if err != nil {
			return err
		}
		b.objects[gvk] = append(b.objects[gvk], object)
	}
	return nil
}

// Get finds an object of the bundle.
func (b *bundle) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, b.scheme)
	if err != nil {
		return err
	}
	for _, object := range b.objects[gvk] {
		if client.ObjectKeyFromObject(object) == key {
			data, err := json.Marshal(object)
			if err != nil {
				return err
			}
			return json.Unmarshal(data, into)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

// List finds objects of the bundle by namespace and labels.
func (b *bundle) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(into, b.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	var which client.ListOptions
	which.ApplyOptions(options)
	if which.LabelSelector == nil {
		which.LabelSelector = klabels.Everything()
	}
	var found []runtime.Object
	for _, object := range b.objects[gvk] {
		if (which.Namespace == "" || which.Namespace == object.GetNamespace()) && which.LabelSelector.Matches(klabels.Set(object.GetLabels())) {
			found = append(found, object)
		}
	}
	return meta.SetList(into, found)
}

// fromFlag adds --from to a command that can read a support bundle.
func fromFlag(cmd *cobra.Command, from *string) {
	cmd.Flags().StringVar(from, "from", "", "read a support bundle (kubectl pfs dump) instead of a cluster")
}

// reader reads a cluster, or a support bundle if from names one.
func (a *app) reader(from string) (client.Reader, string, error) {
	if from != "" {
		b, err := openBundle(from)
		if err != nil {
			return nil, "", err
		}
		a.now = func() time.Time { return b.taken } // ages are relative to the time of the bundle
		if a.cluster.namespace != "" {
			return b, a.cluster.namespace, nil
		}
		return b, b.namespace, nil
	}
	c, err := a.connect(a.cluster)
	return c.Client, c.namespace, err
}
