// The manager runs the operator's controllers. It has no privilege on any node.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/controllers/agents"
	"parallelfs.dev/operator/controllers/benchmarkrun"
	"parallelfs.dev/operator/controllers/benchmarksuite"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/controllers/claim"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/controllers/filesystemnode"
	exported "parallelfs.dev/operator/controllers/metrics"
	"parallelfs.dev/operator/controllers/storagetarget"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == readVerb {
		if err := serveReading(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// garbagePercent limits the garbage relative to the live memory (GOGC). Most of a manager's memory holds objects of its cache, which do not
// change, so a value below the default saves memory and costs little time. A pass over 24,000 targets makes 100 MB of garbage beside 200 MB
// of live memory. With less than 75 percent, the runtime would collect in the middle of the pass, and again after it, when the pass itself
// returns the garbage.
const garbagePercent = 75

// The times of the leader's lease, unless flags set others. A busy API server, which for example creates the objects of a thousand nodes,
// may not answer for ten seconds, after which a manager would by default give up. A manager that ends releases its lease. Another manager
// replaces a killed one within half a minute.
const leaseDuration, renewDeadline, retryPeriod = 30 * time.Second, 25 * time.Second, 4 * time.Second

// leaderElectionID is the name of that lease.
const leaderElectionID = "parallelfs-operator"

// passPause is the least time between two passes over one FileSystem. It is short for a person, and long enough for the hundreds of events
// of a node with 24 disks that joins.
const passPause = 500 * time.Millisecond

// readMoment is how long a pass over a BenchmarkRun waits for the reader of an output before other passes continue.
const readMoment = time.Second

// reread is how long passes reuse objects without a watch. For example, the change or deletion of a Secret is noticed after this time.
const reread = time.Minute

type options struct {
	metricsAddress, healthAddress string
	pprofAddress                  string
	leaderElect                   bool
	leaderElectionNamespace       string
	probeTimeout                  time.Duration
	operator                      types.NamespacedName
	agents                        types.NamespacedName
	telemetryPort                 int
	telemetryTimeout              time.Duration
	pollInterval, runPollInterval time.Duration
	tellTime                      time.Duration
	runMaxPriority                int32
	fileSystems                   bool
	logLevel                      slog.Level
	logFormat                     string
	leaseDuration, renewDeadline  time.Duration
	retryPeriod                   time.Duration
	images                        backend.Images
}

// runMaxPriority is the highest value of a PriorityClass that a BenchmarkRun may name, unless a flag sets another one.
const runMaxPriority = 1000000

func parse(args []string) (options, error) {
	o := options{runMaxPriority: runMaxPriority, images: backend.Images{Daemons: map[string]string{}, Benchmarks: map[string]string{}}}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), `manager runs the controllers of ParallelFS Operator: it turns FileSystems into running parallel filesystems,
and BenchmarkRuns and BenchmarkSuites into results. It is installed by the Helm chart parallelfs-operator, which sets these flags:

`)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "`address` that serves Prometheus metrics over HTTP; 0 for none")
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", ":8081", "`address` that serves /healthz and /readyz")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "0", "`address` that serves profiles of this program (net/http/pprof) to whoever asks, so one of this machine only; 0 for none")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "let one of several managers work; the others wait")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "`namespace` of the lease; the pod's own if empty")
	flags.DurationVar(&o.probeTimeout, "probe-timeout", 25*time.Second,
		"`time` that a filesystem's probe has to ask the filesystem and to answer; one that waits for a server that hangs may take 10 s, and the question before may be under way")
	flags.Func("operator", "`<namespace>/<name>` of this installation of the operator, by which one of several works in a cluster; without it, this one works in any case",
		namespacedName(&o.operator))
	flags.Func("agents", "`<namespace>/<name>` of the DaemonSet of the agents, whose pods the API server may refuse", namespacedName(&o.agents))
	flags.IntVar(&o.telemetryPort, "telemetry-port", 0, "`port` on which the agents of the nodes say what servers did during a benchmark; 0 asks nobody")
	flags.DurationVar(&o.telemetryTimeout, "telemetry-timeout", 5*time.Second, "`time` that an agent has to answer")
	flags.DurationVar(&o.pollInterval, "poll-interval", 12*time.Second, "`time` between two questions to a filesystem, and two looks at a BenchmarkSuite")
	flags.DurationVar(&o.runPollInterval, "run-poll-interval", 3*time.Second, "`time` between two looks at a running benchmark")
	flags.Func("run-max-priority", "highest `value` that the PriorityClass of a BenchmarkRun may have (default 1000000)", func(text string) error {
		value, err := strconv.ParseInt(text, 10, 32)
		o.runMaxPriority = int32(value)
		return err //nolint:wrapcheck // package flag names the flag
	})
	flags.DurationVar(&o.tellTime, "tell-time", backend.DefaultTellTime,
		"`time` that a change, such as a new disk, may take until the agent of the node has written it for the servers")
	flags.BoolVar(&o.fileSystems, "file-systems", true, "run the controllers of FileSystems and BenchmarkSuites; without them, BenchmarkRuns measure volumes alone")
	flags.TextVar(&o.logLevel, "log-level", slog.LevelInfo, "`level` of the log: DEBUG, INFO, WARN or ERROR")
	flags.StringVar(&o.logFormat, "log-format", "json", "`form` of the log: json or text")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", leaseDuration, "`time` after which another manager takes over from one that was killed")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", renewDeadline, "`time` for which the manager that leads tries to renew its lease")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", retryPeriod, "`time` between two attempts to get or renew the lease")
	flags.StringVar(&o.images.Node, "node-image", "", "`image` with the node binary (required)")
	flags.Func("daemon-image", "`<name>=<image>` with the daemons of a filesystem; repeatable. The name is <type>-<version>, or "+
		"<type>-<role>-<version>, or <type>-<role>, whose image is a repository with the versions for tags; the chart's values list them",
		keyValue(o.images.Daemons))
	flags.Func("benchmark-image", "`<tool>=<image>` with a benchmark, such as iozone=…; repeatable", keyValue(o.images.Benchmarks))
	flags.StringVar(&o.images.PullPolicy, "image-pull-policy", string(corev1.PullIfNotPresent), "pull `policy` of those images: Always, IfNotPresent or Never")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.images.Node == "" {
		return o, errors.New("--node-image is required: without the node binary no daemon can be started")
	}
	for name, interval := range map[string]time.Duration{
		"poll-interval": o.pollInterval, "run-poll-interval": o.runPollInterval, "tell-time": o.tellTime,
	} {
		if interval <= 0 {
			return o, fmt.Errorf("--%s is %s: it must be longer than 0", name, interval)
		}
	}
	if o.logFormat != "json" && o.logFormat != "text" {
		return o, fmt.Errorf("--log-format is %q: it must be json or text", o.logFormat)
	}
	// The leader election panics at its start if the times are invalid.
	lease, renew := o.leaseDuration, o.renewDeadline
	if renew >= lease || o.retryPeriod <= 0 || float64(renew) <= leaderelection.JitterFactor*float64(o.retryPeriod) {
		return o, fmt.Errorf("the lease lasts %s, is renewed for %s and tried each %s: renew for less than it lasts, and for more than %g attempts",
			lease, renew, o.retryPeriod, leaderelection.JitterFactor)
	}
	return o, nil
}

// logger returns a logger with the given format and level.
func logger(format string, level slog.Level) logr.Logger {
	settings := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, settings))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, settings))
}

// version returns the version of this program, as the Go toolchain has recorded it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}

func namespacedName(into *types.NamespacedName) func(string) error {
	return func(text string) error {
		var ok bool
		if into.Namespace, into.Name, ok = strings.Cut(text, "/"); !ok || into.Namespace == "" || into.Name == "" {
			return fmt.Errorf("%q is not <namespace>/<name>", text)
		}
		return nil
	}
}

// claimCluster returns the claim of this installation on the cluster, and the lock of the leader election; nil for an installation without
// a name. The lock is valid while the installation holds the claim.
func claimCluster(o options, config *rest.Config) (*claim.Claim, resourcelock.Interface, error) {
	if o.operator.Name == "" || !o.leaderElect {
		return nil, nil, nil
	}
	cluster, err := claim.New(config, claim.Namespace, o.operator.String(), claim.DefaultTimes)
	if err != nil {
		return nil, nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, fmt.Errorf("read the name of this pod: %w", err)
	}
	namespace := cmp.Or(o.leaderElectionNamespace, o.operator.Namespace)
	own, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, leaderElectionID,
		resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}, config, o.renewDeadline)
	if err != nil {
		return nil, nil, fmt.Errorf("make the lock of the leader: %w", err)
	}
	lock := cluster.Gate(own)
	return cluster, lock, nil
}

func keyValue(into map[string]string) func(string) error {
	return func(text string) error {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" {
			return fmt.Errorf("%q is not <name>=<image>", text)
		}
		into[key] = value
		return nil
	}
}

// clusterIdentity returns the uid of the namespace kube-system, which identifies a cluster during its whole life.
func clusterIdentity(ctx context.Context, reader client.Reader) (string, error) {
	var namespace corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("read the identity of the cluster, which is the uid of its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger(o.logFormat, o.logLevel))

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(mpiv2.AddToScheme(scheme))

	// Of these kinds, only the operator's own objects are watched, to save memory. Anyone who may write to a namespace can put that label on
	// other objects. Of those, only the owner is cached.
	own := cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}), Transform: cached.Own,
	}
	config := ctrl.GetConfigOrDie()
	claimed, lock, err := claimCluster(o, config)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  o.healthAddress,
		PprofBindAddress:        o.pprofAddress,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        leaderElectionID,
		LeaderElectionNamespace: o.leaderElectionNamespace,

		LeaderElectionResourceLockInterface: lock,

		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(o.leaseDuration),
		RenewDeadline:                 new(o.renewDeadline),
		RetryPeriod:                   new(o.retryPeriod),
		Cache: cache.Options{
			DefaultTransform: cached.Any,
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Pod{}: {Label: own.Label, Transform: cached.Pod}, &corev1.Node{}: {Transform: cached.Node},
				&appsv1.DaemonSet{}: own, &batchv1.Job{}: own, &appsv1.Deployment{}: own, &policyv1.PodDisruptionBudget{}: own,
				&corev1.ConfigMap{}: own,
			},
		},
		// Secrets are read one by one, by name, because a watch would need the right to read every Secret of the cluster. So are MPIJobs, because
		// the cluster may not serve them.
		Client: client.Options{
			FieldOwner: "parallelfs-operator",
			Cache:      &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &mpiv2.MPIJob{}}},
		},
	})
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}

	if err := cached.IndexAll(ctx, mgr.GetFieldIndexer(), o.fileSystems); err != nil {
		return err
	}
	backends, tools := all.Backends(o.tellTime), registry.Tools()
	runs := &benchmarkrun.Reconciler{
		Tools: tools, Backends: backends, Images: o.images, Clock: clock.RealClock{}, Published: reference.Baseline, Version: version(),
		MaxPriority: o.runMaxPriority, PollInterval: o.runPollInterval, NoFileSystems: !o.fileSystems,
		Read: newReaders().read, Moment: readMoment,
	}
	if o.fileSystems {
		runs.Telemetry = agents.NewReader(mgr.GetClient(), o.telemetryPort, o.telemetryTimeout)
		if err := setUpFileSystems(ctx, mgr, o, backends); err != nil {
			return err
		}
		if err := (&benchmarksuite.Reconciler{
			Tools: tools, Backends: backends, Clock: clock.RealClock{}, PollInterval: o.pollInterval,
		}).Setup(mgr); err != nil {
			return fmt.Errorf("set up the controller of BenchmarkSuites: %w", err)
		}
	}
	if err := runs.Setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of BenchmarkRuns: %w", err)
	}

	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return fmt.Errorf("add the health checks: %w", err)
	}
	if claimed != nil {
		if err := errors.Join(mgr.Add(claimed), mgr.AddReadyzCheck("cluster", claimed.Ready)); err != nil {
			return fmt.Errorf("claim the cluster: %w", err)
		}
	}
	return mgr.Start(ctx)
}

// setUpFileSystems sets up the controllers of FileSystems, and of the objects that they create.
func setUpFileSystems(ctx context.Context, mgr ctrl.Manager, o options, backends backend.Set) error {
	cluster, err := clusterIdentity(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	board := &views.Board{}
	if err := (&filesystem.Reconciler{
		Backends: backends, Images: o.images, Cluster: cluster, States: filesystem.NewHTTPStateReader(o.probeTimeout),
		Clock: clock.RealClock{}, Order: clock.RealClock{}, PollInterval: o.pollInterval, Pause: passPause,
		Reread: reread, Views: board, Agents: o.agents,
	}).Setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of FileSystems: %w", err)
	}
	if err := (&storagetarget.Reconciler{Views: board}).Setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of StorageTargets: %w", err)
	}
	if err := (&filesystemnode.Reconciler{Views: board, Clock: clock.RealClock{}}).Setup(mgr); err != nil {
		return fmt.Errorf("set up the controller of FileSystemNodes: %w", err)
	}
	if err := metrics.Registry.Register(&exported.Collector{Reader: mgr.GetClient(), Leads: mgr.Elected(), Version: version()}); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	return nil
}
