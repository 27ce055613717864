//go:build e2e

// Package e2e tests the operator as its users install it: by its chart on a real cluster, with real MooseFS daemons, FUSE mounts and MPI
// launches. Each Ordered container is a story with a filesystem of its own. The stories run in parallel on one cluster; those that stop the
// operator itself run after all others.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/patience"
)

const (
	systemNamespace = "parallelfs-system"
	release         = "parallelfs-operator"
)

// soon is for what needs only a few passes of the operator, long for what waits for images, processes or back-offs.
var soon, long = patience.Bound(2 * time.Minute), patience.Bound(8 * time.Minute)

var (
	kube    *rest.Config
	api     client.Client
	workers []string
	// shells holds the pods by which shell reaches the nodes.
	shells = map[string]string{}
	root   = filepath.Join("..", "..")
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(soon)
	SetDefaultEventuallyPollingInterval(time.Second)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 6 * time.Hour // run.sh sets the limit
	RunSpecs(t, "ParallelFS Operator", suite, reporter)
}

// The first process prepares the cluster for all: it starts shells on the nodes, and installs the operator by its chart.
var _ = SynchronizedBeforeSuite(prepareCluster, func() {
	connect()
	findShells()
})

func prepareCluster() {
	connect()
	startShells()
	apply(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: privileged}}}", systemNamespace))
	if os.Getenv("UPDATE") != "" {
		installBefore()
	} else {
		install()
	}
	kubectl("label", "--overwrite", "nodes", workers[0], workers[1], workers[2], v1alpha1.LabelAgent+"=")
	kubectl("-n", systemNamespace, "rollout", "status", "daemonset/"+release+"-agent", patience.Flag(3*time.Minute))
}

func findShells() {
	for _, node := range workers {
		shells[node] = strings.TrimSpace(kubectl("-n", "e2e-shell", "get", "pods", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}"))
	}
}

// connect finds the cluster and its workers.
func connect() {
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	var err error
	kube, err = ctrl.GetConfig()
	Expect(err).NotTo(HaveOccurred(), "run these tests by `make test-e2e`, which brings up the cluster")
	kube.Wrap(patience.Reads) // also for inPod, whose command begins only after the API server has answered
	api, err = client.New(kube, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	workers = strings.Fields(kubectl("get", "nodes", "-l", "!node-role.kubernetes.io/control-plane", "-o", "jsonpath={.items[*].metadata.name}"))
	Expect(len(workers)).To(BeNumerically(">=", 3))
}

// The failures and their reasons go to the file that run.sh prints last, where people read first. The state of the cluster at that time is
// in the report of the spec.
var _ = ReportAfterSuite("failures", func(all Report) {
	var text strings.Builder
	for _, spec := range all.SpecReports.WithState(types.SpecStateFailureStates) {
		fmt.Fprintf(&text, "--- FAILED: %s\n%s\n%s\n", spec.FullText(), spec.Failure.Location, v1alpha1.Cut(spec.Failure.Message, 1500))
	}
	Expect(os.WriteFile(filepath.Join(root, "test", "cluster", ".work", "failures"), []byte(text.String()), 0o644)).To(Succeed())
})

// more labels stories and specs whose behaviors other stories or lower tiers show as well. run.sh leaves them out of the gate.
var more = Label("more")

// A story gets the first of its ports. The published experiments use the ports in their manifests, which are BeeGFS's own.
var _ = Describe("ParallelFS Operator", func() {
	tell := func(text string, s *story, args ...any) {
		decorators := []any{Ordered, ContinueOnFailure}
		var specs []func()
		for _, arg := range args {
			if spec, ok := arg.(func()); ok {
				specs = append(specs, spec)
			} else {
				decorators = append(decorators, arg)
			}
		}
		Describe(text, append(decorators, func() {
			AfterEach(func() {
				if CurrentSpecReport().Failed() {
					describeCluster(s.namespace)
				}
			})
			for _, spec := range specs {
				spec()
			}
			AfterAll(func() {
				if s.port > 0 && s.name != kept {
					s.kubectl("delete", "benchmarkruns", "--all", patience.Flag(5*time.Minute))
					s.deleteFileSystem("--all", patience.Flag(5*time.Minute)) // an idle daemon takes CPU time from the others
				}
			})
		})...)
	}
	if os.Getenv("OVERHEAD") != "" {
		s := newStory("overhead", 9419)
		tell("the operator, compared with a person", s, s.operatorIsCompared)
		return
	}
	if os.Getenv("LIFE") != "" {
		s := newStory("years", 9419)
		tell("the life of a filesystem, compared with one by hand", s, s.lifeIsCompared)
		manual := newStory("manual", 19500)
		tell("an upgrade by hand", manual, manual.upgradeByHandIsMeasured)
		gone := newStory("gone", 19700)
		tell("a node that never comes back", gone, gone.nodeIsReplaced)
		standIn := newStory("standin", 19800)
		tell("a node that never comes back, by hand", standIn, standIn.nodeIsReplacedByHand)
		failing := newStory("failing", 19900)
		tell("a disk that dies", failing, failing.diskDies)
		rotting := newStory("rotting", 19300)
		tell("a copy that rots", rotting, rotting.copyRots)
		lost := newStory("lost", 19600)
		tell("lost metadata", lost, func() { It("has a filesystem", func() { lost.isReady(newest, twoCopies) }) }, lost.metadataIsRecovered)
		return
	}
	if times := os.Getenv("RECOVERIES"); times != "" {
		n, err := strconv.Atoi(times)
		Expect(err).NotTo(HaveOccurred(), "RECOVERIES is how often metadata is lost and recovered in both ways")
		for i := range n {
			lost := newStory(fmt.Sprintf("lost-%d", i+1), 19600+100*i)
			tell(fmt.Sprintf("lost metadata, %d of %d", i+1, n), lost, func() { It("has a filesystem", func() { lost.isReady(newest, twoCopies) }) }, lost.metadataIsRecovered)
		}
		return
	}
	if os.Getenv("UPDATE") != "" {
		s := newStory("update", 9419)
		tell("the operator, updated from "+os.Getenv("UPDATE"), s, s.operatorIsUpdated)
		return
	}
	// The longest stories come first; those that compute run beside those that wait.
	tools := newStory("tools", 20400)
	tell("BenchmarkRuns of other tools", tools, more, tools.everyToolMeasures)
	disks := newStory("disks", 20000)
	tell("a FileSystem on disks", disks, disks.disksAreTargets)
	runs := newStory("runs", 20200)
	tell("a BenchmarkRun of iozone", runs, more, runs.benchmarksRun)
	lives := newStory("life", 9419)
	tell("a FileSystem of MooseFS "+newest, lives, func() { lives.fileSystemRuns(newest) }, lives.strangersStopNothing, lives.fileSystemIsBackedUp, lives.fileSystemIsKept, lives.fileSystemIsDeleted)
	sweeps := newStory(kept, 20300)
	tell("a BenchmarkRun that sweeps", sweeps, sweeps.sweepsAreMeasured)
	hive := newStory("hive", 20100)
	tell("a FileSystem of BeeGFS "+beeGFS7, hive, more, hive.beeGFSRuns)
	tell("the published experiments, reduced", newStory("experiments", 0), more, experimentsRun)
	variants := newStory("variants", 20500)
	tell("a BenchmarkSuite", variants, more, variants.variantsAreMeasured)
	older := newStory("older", 20700)
	tell("a FileSystem of MooseFS "+oldest, older, more, func() { older.fileSystemRuns(oldest) })
	upgrades := newStory("upgrades", 20900)
	tell("an upgrade of MooseFS from "+oldest+" to "+newest, upgrades, upgrades.fileSystemIsUpgraded)
	if to := os.Getenv("UPGRADE_TO"); to != "" {
		later := newStory("later", 21200)
		tell("an upgrade of MooseFS from "+newest+" to "+to, later, func() { later.fileSystemGoesTo(to) })
	}
	if !realBeeGFS() {
		comb := newStory("comb", 20600)
		tell("a FileSystem of BeeGFS "+beeGFS8, comb, more, comb.beeGFS8Runs)
		swarm := newStory("swarm", 21300)
		tell("an upgrade of BeeGFS from "+beeGFS7Older+" to "+beeGFS7, swarm, more, swarm.beeGFSIsUpgraded)
	}
	lake := newStory("lake", 21400)
	tell("a FileSystem of Lustre "+lustre, lake, lake.lustreRuns)
	tell("its chart, installed", newStory("chart", 0), chartIsInstalled)
})

// kept is the story whose filesystem exists when the chart is upgraded and removed, last, when nothing else runs.
const kept = "sweeps"

// They run in this order, because Ginkgo shuffles containers side by side. The last one creates another cluster.
var _ = Describe("ParallelFS Operator, when nothing else runs,", Serial, Ordered, ContinueOnFailure, func() {
	if os.Getenv("OVERHEAD")+os.Getenv("LIFE")+os.Getenv("RECOVERIES")+os.Getenv("UPDATE") != "" {
		return // they are alone
	}
	Describe("a FileSystem whose nodes are drained, and whose metadata is lost", func() {
		s := newStory("maintenance", 21000)
		AfterEach(func() {
			if CurrentSpecReport().Failed() {
				describeCluster(s.namespace)
			}
		})
		s.nodesAreDrained()
		s.metadataIsRecovered()
		s.guardsAreGone()
	})
	Describe("its chart upgraded and uninstalled", func() { newStory(kept, 20300).chartKeepsEverything() })
	Describe("whose cluster is lost", func() { newStory("rebuilt", 20800).clusterIsRebuilt() })
})

// run runs a program of bin/ and returns its standard output; a failure ends the spec with the program's error output.
func run(input, program string, args ...string) string {
	GinkgoHelper()
	out, err := try(input, program, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// try is run for a program that may fail. kubectl is repeated while the API server is busy.
func try(input, program string, args ...string) (string, error) {
	if program != "kubectl" {
		return once(input, program, args)
	}
	if out, isExec, err := inPod(input, args); err != nil {
		return out, fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	} else if isExec {
		return out, nil
	}
	return patience.Kubectl(args, func() (string, error) { return once(input, program, args) })
}

func once(input, program string, args []string) (string, error) {
	command := exec.Command(filepath.Join(root, "bin", program), args...)
	command.Stdin = strings.NewReader(input)
	var complaint strings.Builder
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s%s", program, strings.Join(args, " "), err, out, complaint.String())
	}
	return string(out), nil
}

func kubectl(args ...string) string {
	GinkgoHelper()
	return run("", "kubectl", args...)
}

// apply applies a manifest.
func apply(manifest string) {
	GinkgoHelper()
	run(manifest, "kubectl", "apply", "-f", "-")
}

// helm runs Helm with the values of the test cluster.
func helm(args ...string) {
	GinkgoHelper()
	run("", "helm", append(args, "--namespace", systemNamespace)...)
}

// startShells runs a pod on each node that can do everything an administrator can do there: see shell.
func startShells() {
	GinkgoHelper()
	apply(`
apiVersion: v1
kind: Namespace
metadata: {name: e2e-shell, labels: {pod-security.kubernetes.io/enforce: privileged}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: shell, namespace: e2e-shell}
spec:
  selector: {matchLabels: {app: shell}}
  template:
    metadata: {labels: {app: shell}}
    spec:
      hostPID: true
      terminationGracePeriodSeconds: 0
      containers:
      - name: shell
        image: localhost/parallelfs/benchmarks:dev
        imagePullPolicy: Never
        command: [sleep, infinity]
        securityContext: {privileged: true}
`)
	kubectl("-n", "e2e-shell", "rollout", "status", "daemonset/shell", patience.Flag(2*time.Minute))
}

// shell runs a script on a node itself, as root.
func shell(node, script string) (string, error) {
	return try("", "kubectl", "-n", "e2e-shell", "exec", shells[node], "--", "nsenter", "-t", "1", "-m", "-p", "--", "sh", "-c", script)
}

// onNode is shell for a script that must succeed.
func onNode(node, script string) string {
	GinkgoHelper()
	out, err := shell(node, script)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(out)
}

// describeCluster prints what a person would read first.
func describeCluster(namespace string) {
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"-n", namespace, "get", "filesystems,benchmarkruns,storagetargets", "-o", "wide"},
		{"-n", namespace, "get", "filesystems,benchmarkruns,storagetargets", "-o", "yaml"},
		{"get", "nodeinventories", "-o", "wide"},
		{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", systemNamespace, "logs", "-l", "app.kubernetes.io/component in (manager,agent)", "--tail=40", "--prefix", "--max-log-requests=20"},
		{"-n", namespace, "logs", "-l", v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedBy, "--all-containers", "--tail=8", "--prefix", "--max-log-requests=60"},
	} {
		out, err := try("", "kubectl", args...)
		fmt.Fprintf(GinkgoWriter, "\n$ kubectl %s\n%s", strings.Join(args, " "), out)
		if err != nil {
			fmt.Fprintln(GinkgoWriter, err)
		}
	}
}

// report prints something in the output of a passing run.
func report(title, text string) {
	AddReportEntry(title, text)
}
