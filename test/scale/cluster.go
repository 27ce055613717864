//go:build scale

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The users of the API server, by which the audit log tells who wrote what.
const (
	userManager  = "manager"
	userAgents   = "agents"
	userKubelets = "kubelets"
	userPerson   = "person"
)

// operatorNamespace is where the manager has its lease.
const operatorNamespace = "parallelfs-system"

// startLimit is how long a program may take until it answers. It bounds a machine that does other things too, and decides nothing else.
const startLimit = 3 * time.Minute

// auditPolicy notes every write, without what was written.
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
	// apiServer, etcd and manager are the processes' ids; ended is closed when the manager has ended.
	apiServer, etcd, manager int
	ended                    chan struct{}
	// metrics is where the manager serves its metrics, profile where profiles of it.
	metrics, profile string
	stop             []func() error
}

// startCluster starts an API server with the operator's CRDs in a directory, as the control-plane tier does, and with an audit log.
// The caller stops it, also after an error.
func startCluster(directory string) (*cluster, error) {
	c := &cluster{directory: directory, scheme: runtime.NewScheme(), users: map[string]*envtest.AuthenticatedUser{}}
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
	server.Set("endpoint-reconciler-type", "none") // nobody reaches it by a Service
	server.Set("kubelet-preferred-address-types", string(logAddress))
	server.Set("audit-policy-file", policy)
	server.Set("audit-log-path", log)
	server.Set("audit-log-maxsize", "16384") // MiB: one file, however long the run is
	c.environment.ControlPlane.Etcd = &envtest.Etcd{}
	// What etcd advises as the most (etcd.io, "Storage size limit"). How large one request may be stays as it comes.
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

// startManager starts the manager as the chart does, and waits until it leads. Its log is written to a file.
func (c *cluster) startManager(ctx context.Context, binary, log string) error {
	kubeconfig, err := c.users[userManager].KubeConfig()
	if err != nil {
		return fmt.Errorf("make the manager's kubeconfig: %w", err)
	}
	path := filepath.Join(c.directory, "manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, privateFile); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	person, err := c.client(userPerson)
	if err != nil {
		return err
	}
	if err := person.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}); err != nil {
		return fmt.Errorf("make the manager's namespace: %w", err)
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[0])
	c.profile = fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", ports[2])
	out, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("make the manager's log: %w", err)
	}
	arguments := []string{
		"--leader-elect", "--leader-election-namespace=" + operatorNamespace, "--node-image=registry.example.com/parallelfs/node:1",
		"--image-pull-policy=IfNotPresent",
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[1]),
		fmt.Sprintf("--pprof-bind-address=127.0.0.1:%d", ports[2]),
	}
	command := exec.Command(binary, append(arguments, managerArguments()...)...)
	if os.Geteuid() == 0 {
		// It goes before the others: when the API server of a thousand nodes collects its garbage, that takes all of a small machine for seconds.
		command = exec.Command("nice", slices.Concat([]string{"-n", "-10"}, command.Args)...)
	}
	command.Env = append(os.Environ(), "KUBECONFIG="+path)
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the manager: %w", err), out.Close())
	}
	c.manager = command.Process.Pid
	ended := make(chan struct{})
	c.ended = ended
	go func() { _ = command.Wait(); close(ended) }()
	c.stop = append(c.stop, func() error {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = command.Process.Kill()
			<-ended
		}
		return out.Close()
	})
	return c.untilItLeads(ctx, person, ended, log)
}

func (c *cluster) untilItLeads(ctx context.Context, person client.Client, ended <-chan struct{}, log string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		var leases coordinationv1.LeaseList
		if err := person.List(ctx, &leases, client.InNamespace(operatorNamespace)); err != nil {
			return fmt.Errorf("look for the manager's lease: %w", err)
		}
		if len(leases.Items) > 0 && leases.Items[0].Spec.HolderIdentity != nil && *leases.Items[0].Spec.HolderIdentity != "" {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the manager has ended before it had its lease; %s says why", log)
		case <-ctx.Done():
			return fmt.Errorf("the manager did not get its lease in time; %s says why: %w", log, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// passes reads how long the manager's passes over one kind of object took.
func (c *cluster) passes(ctx context.Context, controller string) (histogram, error) {
	text, err := c.readMetrics(ctx)
	return readHistogram(text, "controller_runtime_reconcile_time_seconds", `controller="`+controller+`"`), err
}

// passesOver reads how long passes over FileSystems took: what they did themselves, and the wait for the filesystem's answer.
func (c *cluster) passesOver(ctx context.Context) (work, answer histogram, err error) {
	text, err := c.readMetrics(ctx)
	const name = "parallelfs_filesystem_pass_seconds"
	return readHistogram(text, name, `part="work"`), readHistogram(text, name, `part="answer"`), err
}

func (c *cluster) readMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask for the manager's metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	return string(text), nil
}

// saveProfiles writes to files what the manager computes in a while, and what it keeps in memory then.
func (c *cluster) saveProfiles(ctx context.Context, during time.Duration, path string) error {
	return errors.Join(c.saveProfile(ctx, fmt.Sprintf("profile?seconds=%.0f", during.Seconds()), path+".cpu.pprof"),
		c.saveProfile(ctx, "heap", path+".heap.pprof"))
}

func (c *cluster) saveProfile(ctx context.Context, which, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.profile+which, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for a profile of the manager: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read a profile of the manager: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read a profile of the manager: %w", err)
	}
	return os.WriteFile(path, content, privateFile)
}

// freePorts are ports of 127.0.0.1 that nobody listens on.
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
	// Only now, so that no port is found twice.
	var errs []error
	for _, listener := range open {
		errs = append(errs, listener.Close())
	}
	return ports, errors.Join(errs...)
}
