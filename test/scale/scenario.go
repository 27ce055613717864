//go:build scale

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

const (
	privateFile = 0o600
	// pollEvery is how often it is looked whether something has come about.
	pollEvery = 250 * time.Millisecond
	// quietFor is how long nothing is written before it is believed that nothing follows, quietLimit how long that is waited for.
	quietFor, quietLimit = 15 * time.Second, 10 * time.Minute
	// settledFor is the same after a filesystem was made: an agent tells where servers run when its node was at rest for a minute.
	settledFor = 75 * time.Second
	// window is the minute that is measured; programs write for a while before theirs begins.
	window, warmUp = time.Minute, 30 * time.Second
	// brokenLimit is how long the loss of a disk may stay unseen.
	brokenLimit = 3 * time.Minute
	// restartWindow is how long servers are restarted.
	restartWindow = time.Minute
)

// run is the measurement of one size.
type run struct {
	out     io.Writer
	begun   time.Time
	cluster *cluster
	world   *world
	// person reads and writes as a person does, seen reads what was seen last.
	person client.Client
	seen   client.Reader
	result *Result
	// basePort is the first port of every filesystem: each has an address of its own.
	basePort int32
	// applied is when the FileSystem was made.
	applied time.Time
	// profile is how the names of the files begin for what the manager computes in the idle minute, and keeps; empty for none.
	profile string
}

// measure measures one size. What could not be measured stays out of the result, and Result.Stopped says why.
func measure(ctx context.Context, out io.Writer, nodes int, o options) (result *Result, err error) {
	r := &run{out: out, begun: time.Now(), world: newWorld(nodes), result: newResult(nodes)}
	r.result.Targets, r.result.Runs = r.world.targets(), o.runs
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
		{"sizes of objects", r.sizes},
		{fmt.Sprintf("%d benchmarks run", o.runs), func(ctx context.Context) error { return r.benchmarks(ctx, &background, o.runs) }},
		{"until nothing is written", r.quiet},
		{"a rolling restart", r.restart},
		{"a disk dies", r.lose},
		{"programs write for a minute", r.write},
	} {
		r.say("%s", phase.name)
		if err := phase.do(ctx); err != nil {
			r.result.Stopped = phase.name + ": " + err.Error()
			r.say("STOPPED: %s", r.result.Stopped)
			break
		}
	}
	r.result.Requests = writes(r.cluster.audit.all)
	return r.result, nil
}

func (r *run) say(format string, arguments ...any) {
	fmt.Fprintf(r.out, "%4d nodes, %4.0f s: %s\n", r.world.nodes, time.Since(r.begun).Seconds(), fmt.Sprintf(format, arguments...))
}

// prepare makes what a cluster has before a person asks for a filesystem: nodes, agents with their inventories, and the manager.
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
	if err := r.cluster.startManager(ctx, binary, log); err != nil {
		return nil, err
	}
	return fileSystem(r.basePort), r.quiet(ctx)
}

// makeNodes makes the nodes as their kubelets do. The logs of all of them are read at one place.
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
		body, signature, err := r.answer(request.Context(), name, request.URL.Query().Get(backend.NonceParameter))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(backend.SignatureHeader, signature)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	background.Go(func() { _ = server.Serve(listener) })
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// answer is what the probe answers to a question, signed with the key that the operator made.
func (r *run) answer(ctx context.Context, name, nonce string) (body []byte, signature string, err error) {
	fs, err := r.fileSystem(ctx, name)
	if err != nil {
		return nil, "", err
	}
	var secret corev1.Secret
	if err := r.seen.Get(ctx, client.ObjectKey{Namespace: namespace, Name: backend.ProbeSecretName(fs)}, &secret); err != nil {
		return nil, "", fmt.Errorf("read the key of the probe: %w", err)
	}
	answer := backend.Answer{Nonce: nonce, FileSystemUID: string(fs.UID), State: r.world.state(fs)}
	if answer.State == nil {
		answer.Problem = "the filesystem has not answered yet"
	}
	return answer.Sign(secret.Data[backend.ProbeKey])
}

// fileSystem is a FileSystem as it was seen last.
func (r *run) fileSystem(ctx context.Context, name string) (*v1alpha1.FileSystem, error) {
	fs := &v1alpha1.FileSystem{}
	err := r.seen.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, fs)
	if err != nil {
		return nil, fmt.Errorf("read FileSystem %s: %w", name, err)
	}
	return fs, nil
}

// until looks again and again until something holds, the operator's writes are refused for good, or the time is over. why says what is
// missing.
func (r *run) until(ctx context.Context, limit time.Duration, holds func() (why string, err error)) error {
	begun, refusals := time.Now(), time.Now()
	for {
		why, err := holds()
		if err != nil || why == "" {
			return err
		}
		if time.Since(refusals) > time.Second {
			refusals = time.Now()
			if err := r.cluster.audit.read(); err != nil {
				return err
			}
			if words := refusal(r.cluster.audit.between(begun, time.Now())); words != "" {
				return errors.New(words)
			}
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("not after %s: %s", limit, v1alpha1.Cut(why, 300))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the time of the whole run is over: %s", v1alpha1.Cut(why, 300))
		case <-r.cluster.ended:
			return fmt.Errorf("the manager has ended, its log says why: %s", v1alpha1.Cut(why, 300))
		case <-time.After(pollEvery):
		}
	}
}

// quiet waits until the operator writes nothing, for a while at most.
func (r *run) quiet(ctx context.Context) error { return r.quietFor(ctx, quietFor) }

// quietFor waits until it has written nothing for so long.
func (r *run) quietFor(ctx context.Context, enough time.Duration) error {
	begun := time.Now()
	err := r.until(ctx, math.MaxInt64, func() (string, error) {
		if err := r.cluster.audit.read(); err != nil {
			return "", err
		}
		now := time.Now()
		if now.Sub(begun) > quietLimit || now.Sub(begun) > enough && count(r.cluster.audit.between(now.Add(-enough), now), all) == 0 {
			return "", nil
		}
		return "the operator writes", nil
	})
	if err == nil && time.Since(begun) > quietLimit {
		r.say("the operator still writes after %s", quietLimit)
	}
	return err
}

// usage is what the processes have used until now.
type usage struct {
	at                       time.Time
	manager, apiServer, etcd time.Duration
	work, answer             histogram
}

func (r *run) usage(ctx context.Context) (usage, error) {
	u := usage{}
	var errs [4]error
	_, _, u.manager, errs[0] = processStat(r.cluster.manager)
	_, _, u.apiServer, errs[1] = processStat(r.cluster.apiServer)
	_, _, u.etcd, errs[2] = processStat(r.cluster.etcd)
	u.work, u.answer, errs[3] = r.cluster.passesOver(ctx)
	u.at = time.Now()
	return u, errors.Join(errs[:]...)
}

// since is what was used and written since an earlier look.
func (r *run) since(ctx context.Context, before usage) (used usage, seconds float64, written []request, err error) {
	now, err := r.usage(ctx)
	if err != nil {
		return used, 0, nil, err
	}
	if err := r.cluster.audit.read(); err != nil {
		return used, 0, nil, err
	}
	used = usage{
		at: now.at, manager: now.manager - before.manager, apiServer: now.apiServer - before.apiServer, etcd: now.etcd - before.etcd,
		work: now.work.since(before.work), answer: now.answer.since(before.answer),
	}
	return used, now.at.Sub(before.at).Seconds(), r.cluster.audit.between(before.at, now.at), nil
}

// untilReady makes the FileSystem, and measures what it takes until all of it is there.
func (r *run) untilReady(ctx context.Context, fs *v1alpha1.FileSystem) error {
	before, err := r.usage(ctx)
	if err != nil {
		return err
	}
	r.applied = before.at
	if err := r.person.Create(ctx, fs); err != nil {
		return fmt.Errorf("make the FileSystem: %w", err)
	}
	said := time.Now()
	ended := r.until(ctx, math.MaxInt64, func() (string, error) {
		why, err := r.unwell(ctx, fs.Name)
		if err != nil {
			return "", err
		}
		if time.Since(said) > warmUp {
			said = time.Now()
			r.say("%s", v1alpha1.Cut(why, 200))
		}
		return why, nil
	})
	// Also of what was cut off it is worth knowing what it has cost so far.
	used, seconds, written, err := r.since(context.WithoutCancel(ctx), before)
	if err != nil {
		return errors.Join(ended, err)
	}
	set := r.result.set
	set(managerSeconds, used.manager.Seconds())
	set(apiServerSeconds, used.apiServer.Seconds())
	set(etcdSeconds, used.etcd.Seconds())
	set(readyP99, used.work.quantile(0.99)*1000)
	if ended != nil {
		set(stoppedSeconds, seconds)
		return ended
	}
	ready := lastWord(written)
	if ready.IsZero() {
		return errors.New("the FileSystem is Ready, and nobody has written that")
	}
	written = r.cluster.audit.between(before.at, ready)
	set(readySeconds, ready.Sub(before.at).Seconds())
	set(writesPerTarget, r.perTarget(written))
	set(eventsPerTarget, float64(count(written, ofEvents))/float64(r.result.Targets))
	set(writesPerNode, r.perNode(written))
	r.result.UntilReady = writes(written)
	return nil
}

// lastWord is when the status of the large FileSystem was written last; the zero time when it never was.
func lastWord(written []request) (at time.Time) {
	for _, w := range written {
		if w.accepted() && w.resource == "filesystems" && w.subresource == "status" && w.object == namespace+"/"+fileSystemName {
			at = w.at
		}
	}
	return at
}

func ofTargets(w request) bool { return w.resource == targetResource }
func ofEvents(w request) bool  { return w.resource == "events" }

// perTarget counts the writes of StorageTargets for each of them, and perNode all others, besides events, for each storage node.
func (r *run) perTarget(written []request) float64 {
	return float64(count(written, ofTargets)) / float64(r.result.Targets)
}

func (r *run) perNode(written []request) float64 {
	return float64(count(written, func(w request) bool { return !ofTargets(w) && !ofEvents(w) })) / float64(r.world.nodes)
}

// settle waits until nothing is written, and counts what was written since the FileSystem was applied.
func (r *run) settle(ctx context.Context) error {
	if err := r.quietFor(ctx, settledFor); err != nil {
		return err
	}
	written := r.cluster.audit.between(r.applied, time.Now())
	r.result.set(quietPerTarget, r.perTarget(written))
	r.result.set(quietPerNode, r.perNode(written))
	return nil
}

// unwell says what a FileSystem has against it.
func (r *run) unwell(ctx context.Context, name string) (string, error) {
	now, err := r.fileSystem(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return "it is not seen yet", nil
	case err != nil:
		return "", err
	default:
		return unwell(now), nil
	}
}

// idle measures a minute in which nothing changes.
func (r *run) idle(ctx context.Context) error {
	before, err := r.usage(ctx)
	if err != nil {
		return err
	}
	if err := r.minute(ctx); err != nil {
		return err
	}
	used, seconds, written, err := r.since(ctx, before)
	if err != nil {
		return err
	}
	resident, err := residentMiB(r.cluster.manager)
	if err != nil {
		return err
	}
	set := r.result.set
	set(idleWrites, float64(count(written, all))/seconds)
	set(idleManager, used.manager.Seconds()/seconds*100)
	set(idleControlPlane, (used.apiServer+used.etcd).Seconds()/seconds*100)
	set(idleResident, resident)
	set(idleP50, used.work.quantile(0.5)*1000)
	set(idleP99, used.work.quantile(0.99)*1000)
	set(idleAnswer, used.answer.quantile(0.99)*1000)
	return nil
}

// minute lets a minute go by, in which a profile of the manager is made where one was asked for.
func (r *run) minute(ctx context.Context) error {
	if r.profile != "" {
		return r.cluster.saveProfiles(ctx, window, r.profile)
	}
	return sleep(ctx, window)
}

// restart measures how storage servers come by another configuration. After a while a person pauses it.
func (r *run) restart(ctx context.Context) error {
	begun := time.Now()
	if err := r.change(ctx, askForRestarts); err != nil {
		return err
	}
	if err := sleep(ctx, restartWindow); err != nil {
		return err
	}
	if err := r.change(ctx, pauseRestarts); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	r.result.set(restarted, float64(r.world.restarts))
	r.result.set(restartServers, float64(r.world.awayMost))
	r.result.set(restartDomains, float64(r.world.domainsMost))
	r.result.set(restartWrites, float64(count(r.cluster.audit.between(begun, time.Now()), all))/float64(max(1, r.world.restarts)))
	return nil
}

// change changes the large FileSystem as a person does.
func (r *run) change(ctx context.Context, change func(*v1alpha1.FileSystem)) error {
	fs, err := r.fileSystem(ctx, fileSystemName)
	if err != nil {
		return err
	}
	changed := fs.DeepCopy()
	change(changed)
	if err := r.person.Patch(ctx, changed, client.MergeFrom(fs)); err != nil {
		return fmt.Errorf("change the FileSystem: %w", err)
	}
	return nil
}

// write measures a minute in which programs write.
func (r *run) write(ctx context.Context) error {
	r.world.write()
	defer r.world.rest()
	if err := sleep(ctx, warmUp); err != nil {
		return err
	}
	before, err := r.usage(ctx)
	if err != nil {
		return err
	}
	if err := sleep(ctx, window); err != nil {
		return err
	}
	_, seconds, written, err := r.since(ctx, before)
	if err != nil {
		return err
	}
	r.result.set(usedWrites, float64(count(written, all))/seconds)
	return nil
}

// lose measures what the loss of a disk takes.
func (r *run) lose(ctx context.Context) error {
	begun := time.Now()
	m, d := r.world.breakDisk()
	namespace, name, _ := strings.Cut(d.target, "/")
	key := client.ObjectKey{Namespace: namespace, Name: name}
	m.agent.wake(ctx, key) // the kernel says that a device has gone
	err := r.until(ctx, brokenLimit, func() (string, error) {
		fs, err := r.fileSystem(ctx, fileSystemName)
		if err != nil {
			return "", err
		}
		var target v1alpha1.StorageTarget
		if err := r.seen.Get(ctx, key, &target); err != nil {
			return "", fmt.Errorf("read the StorageTarget: %w", err)
		}
		if shows(fs, &target) {
			return "", nil
		}
		return "the status does not show it", nil
	})
	if err != nil {
		return err
	}
	r.result.set(lossSeconds, time.Since(begun).Seconds())
	if err := r.quiet(ctx); err != nil {
		return err
	}
	written := r.cluster.audit.between(begun, time.Now())
	events := count(written, ofEvents)
	r.result.set(lossWrites, float64(count(written, all)-events))
	r.result.set(lossEvents, float64(events))
	r.result.Loss = writes(written)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.New("the time of the whole run is over")
	case <-time.After(d):
		return nil
	}
}
