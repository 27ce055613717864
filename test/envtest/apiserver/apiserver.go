//go:build envtest

// Package apiserver starts a real kube-apiserver and etcd that serve the operator's CRDs, for tests of admission and of
// controllers. Nothing else runs: no scheduler, no kubelet, no controller of Kubernetes, so a DaemonSet makes no pods and
// a deleted object's children stay.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Server is a running API server.
type Server struct {
	// Config reaches the server as an administrator.
	Config *rest.Config
	// Scheme knows the operator's kinds, Kubernetes' own and MPIJob.
	Scheme *k8sruntime.Scheme
	// Client reads and writes directly, without a cache.
	Client client.Client

	http        *http.Client
	environment *envtest.Environment
}

// Option changes what a Server serves.
type Option func(*envtest.Environment) error

// WithMPIJob also serves the CRD of MPIJob, as the MPI operator's module in go.mod has it.
func WithMPIJob() Option {
	return func(e *envtest.Environment) error {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/mpi-operator")
		list.Dir = root()
		out, err := list.Output()
		if err != nil {
			return fmt.Errorf("can't find the module of the MPI operator; run `go mod download`: %w", err)
		}
		e.CRDDirectoryPaths = append(e.CRDDirectoryPaths,
			filepath.Join(strings.TrimSpace(string(out)), "manifests", "base", "kubeflow.org_mpijobs.yaml"))
		return nil
	}
}

// Start starts a server with the CRDs of config/crd/bases. The caller stops it.
func Start(options ...Option) (*Server, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: it names the directory with kube-apiserver and etcd. Run `make test-envtest`, which makes them and sets it")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(root(), "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	for _, option := range options {
		if err := option(environment); err != nil {
			return nil, err
		}
	}
	scheme := k8sruntime.NewScheme()
	kinds := []func(*k8sruntime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, mpi.AddToScheme,
	}
	for _, add := range kinds {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("can't register kinds: %w", err)
		}
	}
	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("can't start the API server with the operator's CRDs: %w", err), environment.Stop())
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("can't make an HTTP client of the API server: %w", err), environment.Stop())
	}
	c, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: connections})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("can't make a client of the API server: %w", err), environment.Stop())
	}
	return &Server{Config: config, Scheme: scheme, Client: c, http: connections, environment: environment}, nil
}

// Stop stops the server and removes its files.
func (s *Server) Stop() error { return s.environment.Stop() }

// Run is the body of a TestMain: it starts a server, keeps it in *server while the package's tests run, and stops it.
func Run(m *testing.M, server **Server, options ...Option) {
	log.SetLogger(logr.Discard()) // tests look at what is there, not at what is logged
	started, err := Start(options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*server = started
	code := m.Run()
	if err := started.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "can't stop the API server:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Namespace makes a namespace of its own for a test. It is left behind: nothing in this server could empty it.
func (s *Server) Namespace(ctx context.Context, t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Client.Create(ctx, namespace); err != nil {
		t.Fatalf("can't make a namespace: %v", err)
	}
	return namespace.Name
}

// root is the folder of the project, seen from this file.
func root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
