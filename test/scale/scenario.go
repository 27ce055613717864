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
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
)

const privateFile = 0o600

// run is the measurement of one size.
type run struct {
	out     io.Writer
	begun   time.Time
	cluster *cluster
	world   *world
	// person reads and writes as a person does, seen reads from a cache.
	person client.Client
	seen   client.Reader
	result *Result
	// basePort is the first port of every filesystem: each has an address of its own.
	basePort int32
	// applied is when the FileSystem was made.
	applied time.Time
	// pace is how long each part is measured.
	pace pace
	// fileSystems is how many FileSystems there are.
	fileSystems int
	// profile is the prefix of the names of the manager's profiles; empty for none.
	profile string
}

// measure measures one size. The result lacks the parts that could not be measured, and Result.Stopped has the reason.
func measure(ctx context.Context, out io.Writer, nodes int, o options) (result *Result, err error) {
	r := &run{out: out, begun: time.Now(), world: newWorld(nodes), result: newResult(nodes), pace: paceOf(nodes), fileSystems: 1}
	if o.runs >= 0 {
		r.pace.runs = o.runs
	}
	r.result.Runs = r.pace.runs
	log := filepath.Join(o.reports, fmt.Sprintf("scale-manager-%d.log", nodes))
	if o.profile {
		r.profile = filepath.Join(o.reports, fmt.Sprintf("scale-manager-%d", nodes))
	}
	directory, err := os.MkdirTemp("", "parallelfs-scale-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the servers: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	r.cluster, err = startCluster(directory)
	defer func() { err = errors.Join(err, r.cluster.Stop()) }()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var background sync.WaitGroup
	defer func() { cancel(); background.Wait() }()
	fs, err := r.prepare(ctx, &background, o.manager, log)
	if err != nil {
		return nil, err
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"from apply to Ready", func(ctx context.Context) error { return r.untilReady(ctx, fs) }},
		{"until nothing is written", r.settle},
		{"an idle minute", r.idle},
		{"sizes of objects", r.idleSizes},
		{fmt.Sprintf("%d benchmarks run", r.pace.runs), func(ctx context.Context) error { return r.benchmarks(ctx, &background, r.pace.runs) }},
		{"until nothing is written", r.quiet},
		{"a rolling restart", r.restart},
		{"a disk dies", r.lose},
		{"programs write", r.write},
		{"the manager is started anew", r.startAnew},
		{"sizes of objects", r.sizes},
	} {
		r.say("%s", phase.name)
		if err := phase.do(ctx); err != nil {
			r.result.Stopped = phase.name + ": " + err.Error()
			r.say("STOPPED: %s", r.result.Stopped)
			break
		}
	}
	if err := r.cluster.audit.read(); err != nil {
		return r.result, err
	}
	if words := refusal(r.cluster.audit.all); words != "" && r.result.Stopped == "" {
		r.result.Stopped = words
	}
	r.result.Requests = writes(r.cluster.audit.all)
	r.say("it is over")
	return r.result, nil
}

func (r *run) say(format string, arguments ...any) {
	fmt.Fprintf(r.out, "%4d nodes, %4.0f s: %s\n", r.world.nodes, time.Since(r.begun).Seconds(), fmt.Sprintf(format, arguments...))
}

// prepare makes the cluster before a person applies a filesystem: nodes, agents with their inventories, and the manager.
func (r *run) prepare(ctx context.Context, background *sync.WaitGroup, binary, log string) (*v1alpha1.FileSystem, error) {
	var err error
	if r.person, err = r.cluster.client(userPerson); err != nil {
		return nil, err
	}
	logs, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve logs: %w", err)
	}
	r.say("making %d nodes", len(r.world.machines))
	if err := r.makeNodes(ctx, logs); err != nil {
		return nil, err
	}
	agents, err := playAgents(r.cluster, r.world)
	if err != nil {
		return nil, err
	}
	kubelets, err := playKubelets(r.cluster, r.world)
	if err != nil {
		return nil, err
	}
	serveLogs(ctx, background, logs, kubelets.GetClient())
	r.seen = agents.GetClient()
	for _, mgr := range []manager.Manager{agents, kubelets} {
		background.Go(func() {
			if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
				r.say("what plays the cluster has ended: %v", err)
			}
		})
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return nil, fmt.Errorf("what plays the cluster does not come up: %w", ctx.Err())
		}
	}
	if err := r.person.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, fmt.Errorf("make a namespace: %w", err)
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	r.basePort = int32(ports[0] - probeOffset)
	if err := r.serveProbe(ctx, background, fileSystemName); err != nil {
		return nil, err
	}
	if err := r.cluster.prepareManager(ctx, binary, log); err != nil {
		return nil, err
	}
	if err := r.cluster.startManager(ctx); err != nil {
		return nil, err
	}
	return fileSystem(r.basePort), r.quiet(ctx)
}

// makeNodes makes the nodes as their kubelets do. One server has the logs of all of them.
func (r *run) makeNodes(ctx context.Context, logs net.Listener) error {
	port := int32(logs.Addr().(*net.TCPAddr).Port)
	kubelets, err := r.cluster.client(userKubelets)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, m := range r.world.machines {
		group.Go(func() error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: m.labels}}
			node.Labels[corev1.LabelHostname] = m.name
			node.Status.Addresses = []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.ip}, {Type: corev1.NodeHostName, Address: m.name}, {Type: logAddress, Address: "127.0.0.1"},
			}
			node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
			node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64")}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
			if err := kubelets.Create(ctx, node); err != nil {
				return fmt.Errorf("make a node: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// serveProbe serves the answers of a filesystem's probe until ctx ends.
func (r *run) serveProbe(ctx context.Context, background *sync.WaitGroup, name string) error {
	address := fmt.Sprintf("%s:%d", r.world.machine(masterNode(name)).ip, r.basePort+probeOffset)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve the probe: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, request *http.Request) {
		body, signature, err := r.answer(request.Context(), name, request.URL.Query().Get(exchange.NonceParameter))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(exchange.SignatureHeader, signature)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	background.Go(func() { _ = server.Serve(listener) })
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// answer is the probe's answer to a question, signed with the key that the operator made.
func (r *run) answer(ctx context.Context, name, nonce string) (body []byte, signature string, err error) {
	fs, err := r.fileSystem(ctx, name)
	if err != nil {
		return nil, "", err
	}
	var secret corev1.Secret
	if err := r.seen.Get(ctx, client.ObjectKey{Namespace: namespace, Name: exchange.ProbeSecretName(fs)}, &secret); err != nil {
		return nil, "", fmt.Errorf("read the key of the probe: %w", err)
	}
	answer := exchange.Answer{Nonce: nonce, FileSystemUID: string(fs.UID), State: r.world.state(fs)}
	if answer.State == nil {
		answer.Problem = "the filesystem has not answered yet"
	}
	return answer.Sign(secret.Data[exchange.ProbeKey])
}

// fileSystem is a FileSystem from the cache.
func (r *run) fileSystem(ctx context.Context, name string) (*v1alpha1.FileSystem, error) {
	fs := &v1alpha1.FileSystem{}
	err := r.seen.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, fs)
	if err != nil {
		return nil, fmt.Errorf("read FileSystem %s: %w", name, err)
	}
	return fs, nil
}
