//go:build envtest

// Package apiserver starts a real kube-apiserver and etcd that serve the operator's CRDs, for tests of admission and of controllers.
// Nothing else runs: no scheduler, no kubelet and no controller of Kubernetes. Therefore a DaemonSet makes no pods, and the children of a
// deleted object stay.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

// Kubeconfig is the environment variable with the path of a kubeconfig for a server that all packages of a run share, started by
// test/envtest/serve. If it is empty, a package starts its own server.
const Kubeconfig = "PARALLELFS_TEST_KUBECONFIG"

// startTimeout bounds the start of etcd, the API server and the CRDs, each. It is only for busy machines and affects nothing else.
var startTimeout = patience.Bound(3 * time.Minute)

// Server is a running API server.
type Server struct {
	// Config connects to the server as an administrator.
	Config *rest.Config
	// Scheme contains the operator's kinds, Kubernetes' own and MPIJob.
	Scheme *k8sruntime.Scheme
	// Client reads and writes directly, without a cache; after RunWithMemory it reads through the memory.
	Client client.Client

	http        *http.Client
	environment *envtest.Environment // nil if another process has started it
	memory      *memory              // nil if each read goes to the server
}

// Option changes what a Server serves.
type Option func(*envtest.Environment) error

// WithMPIJob also serves the CRD of MPIJob from the MPI operator's module in go.mod.
func WithMPIJob() Option {
	return func(e *envtest.Environment) error {
		list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubeflow/mpi-operator")
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
	project, err := root()
	if err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(project, "config", "crd", "bases")},
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: startTimeout},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: startTimeout,
	}
	configure(environment.ControlPlane.GetAPIServer().Configure())
	for _, option := range options {
		if err := option(environment); err != nil {
			return nil, err
		}
	}
	restore, err := spareCollector()
	if err != nil {
		return nil, err
	}
	config, err := environment.Start()
	if err := restore(); err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("can't start the API server with the operator's CRDs: %w", err), environment.Stop())
	}
	server, err := connect(config)
	if err != nil {
		return nil, errors.Join(err, environment.Stop())
	}
	server.environment = environment
	return server, nil
}

// configure disables features that only a cluster needs. Everything that decides on a request stays enabled: admission, validation and
// authorization.
func configure(flags *envtest.Arguments) {
	flags.Set("enable-priority-and-fairness", "false") // requests must not wait for each other
	flags.Set("endpoint-reconciler-type", "none")      // no client uses a Service to reach it
	flags.Set("profiling", "false")
}

// spareCollector makes the programs that are started next collect garbage less often: they run for minutes, and would otherwise spend a
// fifth of their time on it. restore undoes it.
func spareCollector() (restore func() error, err error) {
	const variable, seldom = "GOGC", "400"
	if was, set := os.LookupEnv(variable); set {
		restore = func() error { return os.Setenv(variable, was) }
	} else {
		restore = func() error { return os.Unsetenv(variable) }
	}
	return restore, os.Setenv(variable, seldom)
}

// connect returns a Server for a running one.
func connect(config *rest.Config) (*Server, error) {
	config.QPS = -1 // a test waits only for the server
	scheme := k8sruntime.NewScheme()
	kinds := []func(*k8sruntime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, mpi.AddToScheme,
	}
	for _, add := range kinds {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("can't register kinds: %w", err)
		}
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("can't make an HTTP client of the API server: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, HTTPClient: connections})
	if err != nil {
		return nil, fmt.Errorf("can't make a client of the API server: %w", err)
	}
	return &Server{Config: config, Scheme: scheme, Client: c, http: connections}, nil
}

// shared connects to the server that all packages share.
func shared(kubeconfig string) (*Server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s is set, and can't be used; unset it, and the package starts a server of its own: %w", Kubeconfig, err)
	}
	return connect(config)
}

// WriteKubeconfig writes a kubeconfig for the server's administrator.
func (s *Server) WriteKubeconfig(path string) error {
	const private = 0o600
	if err := os.WriteFile(path, s.environment.KubeConfig, private); err != nil {
		return fmt.Errorf("can't tell tests how to reach the API server: %w", err)
	}
	return nil
}

// Stop stops a server that this process has started, and removes its files.
func (s *Server) Stop() error {
	if s.environment == nil {
		return nil
	}
	return s.environment.Stop()
}

// Run is the body of a TestMain: it provides a server in *server while the package's tests run. This is the shared server of all packages,
// or otherwise one that is started for them. In both cases tests see each other's objects, so each works in its own namespace and names
// nodes after it.
func Run(m *testing.M, server **Server, options ...Option) {
	run(m, server, starter(options))
}

// RunWithMemory is Run for a package whose tests reach the server only by Client and Killable, and often read the same objects. Both return
// the last answer until one of them writes an object of that kind.
func RunWithMemory(m *testing.M, server **Server, options ...Option) {
	start := starter(options)
	run(m, server, func() (*Server, error) {
		s, err := start()
		if err != nil {
			return nil, err
		}
		s.memory = newMemory()
		c, err := s.direct()
		if err != nil {
			return nil, errors.Join(err, s.Stop())
		}
		s.Client = c
		return s, nil
	})
}

// starter connects to the shared server of all packages, or starts one if there is none.
func starter(options []Option) func() (*Server, error) {
	if kubeconfig := os.Getenv(Kubeconfig); kubeconfig != "" {
		return func() (*Server, error) { return shared(kubeconfig) }
	}
	return func() (*Server, error) { return Start(options...) }
}

// direct returns a client with the server's existing connections and kinds. A new client would discover them again, which takes longer than
// the writes of a test.
func (s *Server) direct() (client.WithWatch, error) {
	c, err := client.NewWithWatch(s.Config, client.Options{Scheme: s.Scheme, HTTPClient: s.http, Mapper: s.Client.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("can't make a client of the API server: %w", err)
	}
	if s.memory == nil {
		return c, nil
	}
	return s.memory.over(c), nil
}

// RunAlone is Run for a package whose tests change permissions: it has a server of its own.
func RunAlone(m *testing.M, server **Server, options ...Option) {
	run(m, server, func() (*Server, error) { return Start(options...) })
}

func run(m *testing.M, server **Server, start func() (*Server, error)) {
	log.SetLogger(logr.Discard()) // tests check the state, not the log
	started, err := start()
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

// Namespace creates a namespace for a test. It is not deleted, because nothing in this server could empty it.
func (s *Server) Namespace(ctx context.Context, t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := s.Client.Create(ctx, namespace); err != nil {
		t.Fatalf("can't make a namespace: %v", err)
	}
	return namespace.Name
}

// root returns the folder of the project. Tests run in the folder of their package, and paths from the compiler may be trimmed.
func root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("can't tell the working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", errors.New("there is no go.mod in the working directory nor above it: run this in the project's folder")
		}
		folder = above
	}
}
