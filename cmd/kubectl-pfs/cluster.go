package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
)

// clusterFlags select the cluster and the namespace.
type clusterFlags struct{ kubeconfig, context, namespace string }

// connection is a connection to one namespace of a cluster. Only say and setSpec write.
type connection struct {
	client.Client
	namespace string
	live      live
}

// scheme has the types of the objects that the commands read.
func scheme() (*runtime.Scheme, error) {
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, storagev1.AddToScheme} {
		if err := add(out); err != nil {
			return nil, err
		}
	}
	return out, v1alpha1.AddToScheme(out)
}

// connect follows the rules of kubectl: --kubeconfig, $KUBECONFIG, ~/.kube/config, and in a pod its own account.
func connect(flags clusterFlags) (connection, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = flags.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: flags.context}
	overrides.Context.Namespace = flags.namespace
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	namespace, _, err := config.Namespace()
	if err != nil {
		return connection{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return connection{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	// Client-go sends 5 requests a second by default. A list of many pages would wait for that longer than for the API server.
	rest.QPS, rest.Burst = 100, 200
	known, err := scheme()
	if err != nil {
		return connection{}, err
	}
	c, err := client.New(rest, client.Options{Scheme: known})
	if err != nil {
		return connection{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	asked, err := requestsTo(rest, known)
	if err != nil {
		return connection{}, fmt.Errorf("connect to the cluster: %w", err)
	}
	return connection{c, namespace, asked}, nil
}

// document is a run or a suite, with notes on its source.
type document struct {
	// name is the name that the user typed.
	name  string
	run   *results.Run
	suite *results.Suite
	notes []string
}

// named reads the document of a BenchmarkRun, or else of a BenchmarkSuite.
func (c connection) named(ctx context.Context, name string, suite bool) (document, error) {
	if !suite {
		run := &v1alpha1.BenchmarkRun{}
		err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, run)
		if err == nil {
			read, notes, err := c.ofRun(ctx, run)
			return document{name: name, run: &read, notes: notes}, err
		}
		if !apierrors.IsNotFound(err) {
			return document{}, fmt.Errorf("read the BenchmarkRun %s/%s: %w", c.namespace, name, err)
		}
	}
	one := &v1alpha1.BenchmarkSuite{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, one)
	switch {
	case err == nil:
		read, notes, err := c.ofSuite(ctx, one)
		return document{name: name, suite: &read, notes: notes}, err
	case apierrors.IsNotFound(err) && suite:
		return document{}, fmt.Errorf("there is no BenchmarkSuite %s in the namespace %s; name another with --namespace", name, c.namespace)
	case apierrors.IsNotFound(err):
		return document{}, fmt.Errorf("there is no BenchmarkRun or BenchmarkSuite %s in the namespace %s; name another with --namespace", name, c.namespace)
	}
	return document{}, fmt.Errorf("read the BenchmarkSuite %s/%s: %w", c.namespace, name, err)
}

// errNoResults means that the ConfigMap of the results does not exist, or belongs to another object.
var errNoResults = errors.New("not there")

// packed reads results.FileJSON of a ConfigMap.
func (c connection) packed(ctx context.Context, name string) ([]byte, error) {
	object := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the ConfigMap %s is %w", name, errNoResults)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap %s/%s: %w", c.namespace, name, err)
	}
	data := object.BinaryData[results.FileJSON]
	if len(data) == 0 {
		return nil, fmt.Errorf("%s of the ConfigMap %s is %w", results.FileJSON, name, errNoResults)
	}
	return data, nil
}

// ofRun reads the complete results of a run, or those in its status.
func (c connection) ofRun(ctx context.Context, run *v1alpha1.BenchmarkRun) (results.Run, []string, error) {
	data, err := c.packed(ctx, cmp.Or(run.Status.Results, results.ConfigMapOfRun(run.Name)))
	if errors.Is(err, errNoResults) {
		return results.FromStatus(run), []string{fmt.Sprintf("%s: %s; these are the rounded numbers of the status", run.Name, err)}, nil
	}
	if err != nil {
		return results.Run{}, nil, err
	}
	read, err := results.Decode(data)
	if err != nil {
		return results.Run{}, nil, fmt.Errorf("read the results of %s: %w", run.Name, err)
	}
	if read.UID != "" && read.UID != string(run.UID) {
		return results.FromStatus(run), []string{fmt.Sprintf(
			"%s: the complete results are of another run of the same name, which is gone; these are the rounded numbers of the status", run.Name)}, nil
	}
	return read, nil, nil
}

// ofSuite reads the complete results of a suite, or combines those of its runs.
func (c connection) ofSuite(ctx context.Context, suite *v1alpha1.BenchmarkSuite) (results.Suite, []string, error) {
	data, err := c.packed(ctx, cmp.Or(suite.Status.Results, results.ConfigMapOfSuite(suite.Name)))
	if err != nil && !errors.Is(err, errNoResults) {
		return results.Suite{}, nil, err
	}
	if err == nil {
		read, err := results.DecodeSuite(data)
		if err != nil {
			return results.Suite{}, nil, fmt.Errorf("read the results of %s: %w", suite.Name, err)
		}
		if read.UID == "" || read.UID == string(suite.UID) {
			return read, nil, nil
		}
	}
	notes := []string{suite.Name + ": the suite has no complete results yet; these are put together from its runs"}
	out := results.Suite{Format: results.Format, Name: suite.Name, Namespace: suite.Namespace, UID: string(suite.UID)}
	for _, v := range suite.Status.Variants {
		variant := results.Variant{Name: v.Name}
		for _, spec := range suite.Spec.Variants {
			if spec.Name == v.Name {
				variant.Scale = spec.Scale
			}
		}
		for _, r := range v.Runs {
			run := &v1alpha1.BenchmarkRun{}
			err := c.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: r.BenchmarkRun}, run)
			if apierrors.IsNotFound(err) {
				notes = append(notes, fmt.Sprintf("%s: the BenchmarkRun %s is gone", suite.Name, r.BenchmarkRun))
				continue
			}
			if err != nil {
				return results.Suite{}, nil, fmt.Errorf("read the BenchmarkRun %s/%s: %w", c.namespace, r.BenchmarkRun, err)
			}
			read, more, err := c.ofRun(ctx, run)
			if err != nil {
				return results.Suite{}, nil, err
			}
			notes = append(notes, more...)
			variant.Runs = append(variant.Runs, results.SuiteRun{Name: r.Name, Run: read})
		}
		out.Variants = append(out.Variants, variant)
	}
	return out, notes, nil
}
