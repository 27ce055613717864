//go:build scale

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The users of the API server, which identify the writers in the audit log.
const (
	userManager  = "manager"
	userAgents   = "agents"
	userKubelets = "kubelets"
	userPerson   = "person"
)

// operatorNamespace is where the manager has its lease.
const operatorNamespace = "parallelfs-system"

// startLimit is how long a program may take until it answers. It limits a start on a busy machine, and decides nothing else.
const startLimit = 3 * time.Minute

// auditPolicy logs every write, without its content.
const auditPolicy = `apiVersion: audit.k8s.io/v1

kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  userGroups: ["system:apiserver"]
- level: Metadata
`

// cluster is an API server with etcd, and the manager.
type cluster struct {
	directory   string
	environment *envtest.Environment
	scheme      *runtime.Scheme
	audit       *auditLog
	users       map[string]*envtest.AuthenticatedUser
	// apiServer, etcd and manager are the processes' ids.
	apiServer, etcd, manager int
	// command returns a manager that was not started yet, person reads its lease, and leader is the holder of that. endManager ends the
	// running manager, and ended is closed when it has ended.
	command    func() *exec.Cmd
	person     client.Client
	leader     string
	endManager func()
	ended      <-chan struct{}
	// metrics is the address of the manager's metrics, profile that of its profiles.
	metrics, profile string
	stop             []func() error
}

// startCluster starts an API server with the operator's CRDs in a directory, as the control-plane tier does, and with an audit log.
// The caller stops it, also after an error.
func startCluster(directory string) (*cluster, error) {
	c := &cluster{directory: directory, scheme: runtime.NewScheme(), users: map[string]*envtest.AuthenticatedUser{}, endManager: func() {}}
	if err := errors.Join(clientgoscheme.AddToScheme(c.scheme), v1alpha1.AddToScheme(c.scheme)); err != nil {
		return c, fmt.Errorf("register kinds: %w", err)
	}
	policy, log := filepath.Join(directory, "audit-policy.yaml"), filepath.Join(directory, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), privateFile); err != nil {
		return c, fmt.Errorf("write the audit policy: %w", err)
	}
	c.audit = &auditLog{path: log}
	c.environment = &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join("config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: startLimit}, ControlPlaneStartTimeout: startLimit,
	}
	server := c.environment.ControlPlane.GetAPIServer().Configure()
	server.Set("endpoint-reconciler-type", "none") // no Service leads to it
	server.Set("kubelet-preferred-address-types", string(logAddress))
	server.Set("audit-policy-file", policy)
	server.Set("audit-log-path", log)
	server.Set("audit-log-maxsize", "16384") // MiB: one file, however long the run is
	c.environment.ControlPlane.Etcd = &envtest.Etcd{}
	// This is the maximum that etcd advises (etcd.io, "Storage size limit"). The limit for one request stays at its default.
	c.environment.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", fmt.Sprint(int64(8)<<30))
	c.stop = append(c.stop, c.environment.Stop)
	if _, err := c.environment.Start(); err != nil {
		return c, fmt.Errorf("start the API server: %w", err)
	}
	var err error
	if c.apiServer, err = child("kube-apiserver"); err != nil {
		return c, err
	}
	if c.etcd, err = child("etcd"); err != nil {
		return c, err
	}
	for _, name := range []string{userManager, userAgents, userKubelets, userPerson} {
		user, err := c.environment.AddUser(envtest.User{Name: name, Groups: []string{"system:masters"}}, &rest.Config{QPS: -1})
		if err != nil {
			return c, fmt.Errorf("make user %s: %w", name, err)
		}
		c.users[name] = user
	}
	return c, nil
}

// Stop ends everything, the newest first.
func (c *cluster) Stop() error {
	var errs []error
	for _, stop := range slices.Backward(c.stop) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

// config reaches the API server as a user.
func (c *cluster) config(user string) *rest.Config { return c.users[user].Config() }

// client reads and writes directly, as a user.
func (c *cluster) client(user string) (client.Client, error) {
	out, err := client.New(c.config(user), client.Options{Scheme: c.scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return out, nil
}

// freePorts returns unused ports of 127.0.0.1.
func freePorts(count int) ([]int, error) {
	var ports []int
	var open []net.Listener
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		open = append(open, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	// All are closed only now, so that no port is found twice.
	var errs []error
	for _, listener := range open {
		errs = append(errs, listener.Close())
	}
	return ports, errors.Join(errs...)
}
