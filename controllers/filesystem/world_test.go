//go:build envtest

package filesystem_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.RunWithMemory(m, &server) }

// world is a cluster with three nodes of its own and one FileSystem. The test simulates its kubelet, its DaemonSet controller and its
// MooseFS.
type world struct {
	Gomega
	t         *testing.T
	ctx       context.Context
	namespace string
	// namespaces holds those of all FileSystems of the cluster.
	namespaces *[]string
	nodes      []string
	// alive is false while the master of the filesystem does not answer.
	alive bool
	// lost holds the targets ("node:directory") that MooseFS does not see.
	lost   []string
	events *events.FakeRecorder
	// board holds what the passes have found about targets and servers.
	board *views.Board
	// disks holds the disks of the nodes. took holds the disks that each daemon uses, by the uid of its pod, and whether it moves their data
	// away.
	disks []*fakeDisk
	took  map[string]map[string]bool
	// hive is the state of a BeeGFS, nil for a MooseFS.
	hive *hive
	// replays is true while a program between the operator and the probe repeats the answer to an earlier question, which is in recorded.
	replays  bool
	recorded *httptest.ResponseRecorder
	// forges is true while another program has the probe's port. It has everything but the secret.
	forges bool
	// meanwhile runs once, during a query of the filesystem.
	meanwhile func()
	// predecessor is the uid of the FileSystem that the probe belongs to, if it is another one.
	predecessor string
	// cluster is the identity of this cluster; if empty, that of the tests.
	cluster string
	// pullPolicy of the operator's images; empty is IfNotPresent.
	pullPolicy string
	// moved is true if MooseFS has moved all data away that it should.
	moved bool
	// look is what a double has read in a pass during which nothing changes; nil outside of one.
	look *look
	// reported holds the agents' last writes, by the uid of the StorageTarget.
	reported map[types.UID]report
	// files holds the node files that the agents have written, by node. mute holds the nodes whose agents write nothing.
	files map[string]spec.NodeFile
	mute  map[string]bool
	// eachLook, if set, runs after every operator that was killed.
	eachLook func()
	// masters holds the node of the master in the configuration of each pod when it started, by the uid of the pod.
	masters map[types.UID]string
	// dead holds the nodes without power. data holds MooseFS's counts of its chunks; nil means that all are healthy.
	dead map[string]bool
	data *backend.DataHealth
	// modes holds the chunkservers that jobs have switched to maintenance mode or back. deaf is true for a master that ignores jobs.
	modes map[string]bool
	// forgotten holds the chunkservers that a job made the master forget, by address and port. The master lists the others on dead nodes as
	// absent.
	forgotten map[string]bool
	deaf      bool
	// started, if set, runs after each round of the kubelets.
	started func()
	// pulls holds the pods that bring images to nodes, and unpullable why a node can't pull any.
	pulls      map[string]*corev1.Pod
	unpullable map[string]string
	// startsOwn reports whether a daemon runs that belongs neither to MooseFS nor to BeeGFS; nil if there is none.
	startsOwn func(pod *corev1.Pod) bool
	// actsOwn simulates the agent for a format whose mounts the kernel serves; nil if there is none.
	actsOwn func(t *v1alpha1.StorageTarget, d *fakeDisk) v1alpha1.StorageTargetStatus
	// worksOwn simulates Jobs that belong neither to MooseFS nor to BeeGFS, and reports whether anything changed; nil if there are none.
	worksOwn func() bool
	// alter changes an operator before it begins; nil leaves it as cmd/manager makes it.
	alter func(operator *filesystem.Reconciler)
}

// look is what was read in one pass.
type look struct {
	fs   *v1alpha1.FileSystem
	pods []corev1.Pod
}

// RoundTrip simulates the connection to the probe, which has the secret that the kubelet has brought.
func (w *world) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.replays && w.recorded != nil {
		again := *w.recorded // a result is read once
		return again.Result(), nil
	}
	fs := w.get()
	var secret corev1.Secret
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scratch-probe"}, &secret)).To(Succeed())
	probe := filesystem.ProbeDouble{UID: cmp.Or(w.predecessor, string(fs.UID)), Key: string(secret.Data["key"]), Ask: w.state}
	if w.forges {
		probe.Key = "guessed"
	}
	w.recorded = httptest.NewRecorder()
	probe.ServeHTTP(w.recorded, request)
	if w.meanwhile != nil {
		w.meanwhile()
		w.meanwhile = nil
	}
	answer := *w.recorded
	return answer.Result(), nil
}

// order is a clock on which 20 minutes pass between two reads, so that everything that was seen was seen long before the filesystem is
// queried.
type order struct{ now time.Time }

// Now implements clock.PassiveClock.
func (o *order) Now() time.Time {
	o.now = o.now.Add(20 * time.Minute)
	return o.now
}

// Since implements clock.PassiveClock.
func (o *order) Since(then time.Time) time.Duration { return o.now.Sub(then) }

// state returns the answer of a MooseFS that runs as the FileSystem's children configure it.
func (w *world) state() (*backend.State, error) {
	w.look = &look{}
	defer func() { w.look = nil }()
	if w.hive != nil {
		return w.beeState()
	}
	if !w.alive {
		return nil, errors.New("nobody listens")
	}
	fs, modes := w.get(), w.modesNow()
	fs.Complete()
	if _, runs := w.runs("master", "", fs.Status.Metadata.Node); !runs {
		return nil, errors.New("nobody listens")
	}
	ports := int32(9435) // of the chunkservers of the first pool
	if m := fs.Spec.MooseFS; m != nil && m.BasePort != 0 {
		ports = m.BasePort + 16
	}
	state := backend.State{Version: w.software("master", fs.Status.Metadata.Node), Data: backend.DataHealth{Known: true}, StorageClasses: map[string]string{}}
	for _, pool := range fs.Status.StoragePools {
		letter := string('A' + pool.Slot)
		for _, p := range fs.Spec.StoragePools {
			if p.Name != pool.Name {
				continue
			}
			state.StorageClasses[p.Name] = fmt.Sprintf("%d%s", p.Copies, letter)
			for _, node := range w.poolNodes(pool.Name) {
				took, runs := w.runs("chunkserver", p.Name, node)
				maintained := modes[fmt.Sprintf("%s/%d", w.ip(node), ports+pool.Slot)]
				if !runs {
					if maintained { // the master keeps an entry for one that is away
						state.Servers = append(state.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: w.ip(node), Port: ports + pool.Slot, Maintained: true})
					}
					continue
				}
				state.Targets = append(state.Targets, w.diskTargets(node, ports+pool.Slot, took)...)
				state.Servers = append(state.Servers, backend.Server{
					Role: v1alpha1.RoleStorage, IP: w.ip(node), Port: ports + pool.Slot, Online: true, CapacityBytes: 1 << 40,
					Version: w.software("chunkserver", node), Maintained: maintained,
				})
				for _, d := range p.Targets.Directories {
					if !slices.Contains(w.lost, node+":"+string(d)) {
						state.Targets = append(state.Targets, backend.Target{
							IP: w.ip(node), Port: ports + pool.Slot, Path: string(d) + "/data/", Online: true, CapacityBytes: 1 << 40,
						})
					}
				}
			}
		}
	}
	for node, n := range w.fileSystemNodes() {
		for _, pool := range fs.Status.StoragePools {
			at := fmt.Sprintf("%s/%d", w.ip(node), ports+pool.Slot)
			had := func(m v1alpha1.NodeMember) bool { return m.StoragePool == pool.Name }
			if w.dead[node] && slices.ContainsFunc(n.Spec.Members, had) && !w.forgotten[at] && !modes[at] {
				state.Servers = append(state.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: w.ip(node), Port: ports + pool.Slot})
			}
		}
	}
	if w.data != nil {
		state.Data = *w.data
	}
	for _, node := range w.nodes {
		if w.dead[node] {
			continue
		}
		if _, runs := w.runs("metalogger", "", node); runs {
			state.Servers = append(state.Servers, backend.Server{
				Role: v1alpha1.RoleMetadataBackup, IP: w.ip(node), Online: true, Version: w.software("metalogger", node),
			})
		}
		if slices.ContainsFunc(w.pods(), func(p corev1.Pod) bool { return component(&p) == "client" && p.Spec.NodeName == node && !w.finds(&p) }) {
			continue
		}
		state.Sessions = append(state.Sessions, backend.Session{IP: w.ip(node), Path: "/mnt/scratch", Connected: true})
	}
	return &state, nil
}

func (w *world) ip(node string) string {
	return fmt.Sprintf("10.9.0.%d", slices.Index(w.nodes, node)+1)
}

// newWorld creates a world for a test, which then runs in parallel with others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return anotherWorld(t)
}

// anotherWorld creates one more world for the same test.
func anotherWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		Gomega: NewWithT(t), t: t, ctx: t.Context(), events: events.NewFakeRecorder(10000), reported: map[types.UID]report{},
		files: map[string]spec.NodeFile{}, mute: map[string]bool{}, dead: map[string]bool{}, masters: map[types.UID]string{}, board: &views.Board{},
	}
	w.namespace = server.Namespace(w.ctx, t)
	w.namespaces = &[]string{w.namespace}
	for i := range 3 {
		name := fmt.Sprintf("%s-n%d", w.namespace, i+1)
		w.nodes = append(w.nodes, name)
		labels := map[string]string{"storage-of": w.namespace}
		if i == 0 {
			labels["master-of"] = w.namespace
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		w.Expect(server.Client.Create(w.ctx, node)).To(Succeed())
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), node) })
		w.nodeIs(name, corev1.ConditionTrue)
	}
	return w
}

func (w *world) nodeIs(name string, ready corev1.ConditionStatus) {
	w.t.Helper()
	var node corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: w.ip(name)}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Test"}}
	w.Expect(server.Client.Status().Update(w.ctx, &node)).To(Succeed())
}

func (w *world) fileSystem(change func(fs *v1alpha1.FileSystem)) {
	w.t.Helper()
	fs := &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: w.namespace},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: "4.57.5", MooseFS: &v1alpha1.MooseFSSpec{BasePort: 9419},
			MetadataServers: v1alpha1.MetadataSpec{
				NodeSelector: v1alpha1.NodeSelector{"master-of": w.namespace}, InstancesPerNode: 1,
				Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta"}},
			},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: "ssd", NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}, Copies: 2,
				Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/ssd0"}},
			}},
			Clients: &v1alpha1.ClientsSpec{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}, MountPath: "/mnt/scratch"},
		},
	}
	if change != nil {
		change(fs)
	}
	w.Expect(server.Client.Create(w.ctx, fs)).To(Succeed())
	w.t.Cleanup(func() { w.forget() })
}

func (w *world) forget() {
	var targets v1alpha1.StorageTargetList
	_ = server.Client.List(context.Background(), &targets, client.InNamespace(w.namespace))
	for i := range targets.Items {
		targets.Items[i].Finalizers = nil
		_ = server.Client.Update(context.Background(), &targets.Items[i])
		_ = server.Client.Delete(context.Background(), &targets.Items[i])
	}
	fs := &v1alpha1.FileSystem{}
	if err := server.Client.Get(context.Background(), w.key(), fs); err == nil {
		fs.Finalizers = nil
		_ = server.Client.Update(context.Background(), fs)
		_ = server.Client.Delete(context.Background(), fs)
	}
}

func (w *world) key() client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: "scratch"}
}

func (w *world) get() *v1alpha1.FileSystem {
	w.t.Helper()
	if w.look != nil && w.look.fs != nil {
		return w.look.fs.DeepCopy()
	}
	fs := &v1alpha1.FileSystem{}
	w.Expect(server.Client.Get(w.ctx, w.key(), fs)).To(Succeed())
	if w.look != nil {
		w.look.fs = fs.DeepCopy()
	}
	return fs
}

// change updates the spec as a user would.
func (w *world) change(how func(fs *v1alpha1.FileSystem)) {
	w.t.Helper()
	fs := w.get()
	how(fs)
	w.Expect(server.Client.Update(w.ctx, fs)).To(Succeed())
}

// cluster is the identity of the tests' cluster.
const cluster = "c1c1c1c1-0000-0000-0000-000000000001"

// operator returns a new operator with a client of its own.
func (w *world) operator(c client.Client) *filesystem.Reconciler {
	c = apiserver.Tenant(c, *w.namespaces...)
	operator := &filesystem.Reconciler{
		Client: c, Reader: c, Backends: all.Backends(backend.DefaultTellTime),
		Images: backend.Images{Node: "node:1", PullPolicy: cmp.Or(w.pullPolicy, "IfNotPresent"), Daemons: map[string]string{
			"moosefs-3.0.117": "moosefs:3.0.117", "moosefs-4.57.5": "moosefs:4.57.5", "beegfs-mgmtd": "mgmtd", "beegfs-meta": "meta", "beegfs-storage": "storage", "beegfs-tools": "tools",
		}},
		Cluster: cmp.Or(w.cluster, cluster), States: &filesystem.HTTPStateReader{Client: &http.Client{Transport: w}}, Recorder: w.events, Clock: clock.RealClock{},
		Order: &order{time.Now()}, PollInterval: 10 * time.Second, Views: w.board,
		Applier: &apply.Applier{Client: c, Kinds: filesystem.ChildKinds()}, Agents: agentSet,
	}
	if w.alter != nil {
		w.alter(operator)
	}
	return operator
}

func (w *world) reconcile(c client.Client) error {
	operator := w.operator(c)
	_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
	w.Expect(apiserver.Unchanged(operator.Client)).To(Succeed())
	return err
}

// settle runs an operator until nothing more is written.
func (w *world) settle() {
	w.t.Helper()
	w.Expect(w.settleWith(server.Killable(w.t, -1))).To(Succeed())
}

// settleWith reconciles and simulates agents and kubelets until nothing more is written, or the client fails.
func (w *world) settleWith(c *apiserver.Killable) error {
	w.t.Helper()
	for range 40 {
		before := len(c.Writes())
		if err := errors.Join(w.reconcile(c), w.reconcileTargets(c), w.reconcileNodes(c)); err != nil {
			return err
		}
		changed := w.agents()
		changed = w.runPods() || changed
		if w.hive != nil {
			changed = w.workJobs() || changed
		}
		if w.worksOwn != nil {
			changed = w.worksOwn() || changed
		}
		if len(c.Writes()) == before && !changed {
			return nil
		}
	}
	w.t.Fatalf("the operator goes on writing: %v", c.Writes())
	return nil
}

// inEach holds after how many writes each operator of a story is killed. With one, an operator is killed after every single write, and the
// next one begins from there. With more, an operator also continues for some writes.
var inEach = []int{1, 3}

// settleByDying runs operators one after the other, each of which is killed after the given number of writes, until one has nothing left to
// write. It returns how many were killed; meanwhile, if set, runs after each of them.
func (w *world) settleByDying(writes int, meanwhile func()) (killed int) {
	w.t.Helper()
	for ; killed < 200; killed++ {
		err := w.settleWith(server.Killable(w.t, writes))
		if meanwhile != nil {
			meanwhile()
		}
		if err == nil {
			return killed
		}
		w.Expect(err).To(MatchError(apiserver.ErrKilled))
	}
	w.t.Fatal("operators that are killed do not get on")
	return killed
}

func (w *world) mine() []client.ListOption {
	return []client.ListOption{client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: "scratch"}}
}

// runPods simulates the DaemonSet and Job controllers and the kubelet. Every DaemonSet has a Ready pod on each of its nodes, made from its
// present template. Every Job has a pod that has ended. There are no other pods. It reports whether anything changed.
func (w *world) runPods() bool {
	w.t.Helper()
	changed := false
	there, fs := map[string]*corev1.Pod{}, &look{}
	for _, pod := range w.pods() {
		switch {
		case w.dead[pod.Spec.NodeName]: // its kubelet ends nothing
		case pod.DeletionTimestamp.IsZero(), len(pod.Finalizers) > 0: // a pod with a finalizer is not removed
		default:
			w.Expect(server.Client.Delete(w.ctx, &pod, client.GracePeriodSeconds(0))).To(Succeed())
			changed = true
			continue
		}
		there[pod.Name] = &pod
	}
	wanted := map[string]bool{}
	for _, set := range w.sets() {
		for _, node := range w.nodesOf(set) {
			name := set.Name + "." + node
			wanted[name] = true
			pod := there[name]
			if w.dead[node] {
				continue
			}
			if pod == nil {
				pod = &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Name: name, Namespace: w.namespace, Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations,
						OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
					},
					Spec: *set.Spec.Template.Spec.DeepCopy(),
				}
				pod.Spec.NodeName, pod.Spec.PriorityClassName = node, ""
				w.Expect(server.Client.Create(w.ctx, pod)).To(Succeed())
			}
			w.look = fs
			started := len(pod.Status.Conditions) == 0 && w.starts(pod)
			if w.look = nil; !started {
				continue
			}
			if m := w.get().Status.Metadata; m != nil && m.Recovered == nil {
				w.masters[pod.UID] = m.Node
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: component(pod), Ready: true, State: corev1.ContainerState{
				Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
			w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
			changed = true
		}
	}
	for _, job := range w.jobs() {
		name := job.Name + ".pod"
		wanted[name] = true
		if there[name] == nil {
			w.Expect(server.Client.Create(w.ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: name, Namespace: w.namespace, Labels: job.Spec.Template.Labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&job, batchv1.SchemeGroupVersion.WithKind("Job"))},
				},
				Spec: corev1.PodSpec{NodeName: w.nodes[0], Containers: []corev1.Container{{Name: "ended", Image: "none"}}},
			})).To(Succeed())
			changed = true
		}
	}
	for name, pod := range there {
		if w.dead[pod.Spec.NodeName] {
			if !wanted[name] && pod.DeletionTimestamp.IsZero() {
				w.Expect(server.Client.Delete(w.ctx, pod)).To(Succeed()) // it stays Terminating
				changed = true
			}
			continue
		}
		if !wanted[name] {
			w.Expect(server.Client.Delete(w.ctx, pod, client.GracePeriodSeconds(0))).To(Succeed())
			changed = true
		}
	}
	if w.started != nil {
		w.started()
	}
	return w.runPulls() || changed
}

// software returns the version in the image of a daemon of MooseFS on a node, empty if there is no pod.
func (w *world) software(daemon, node string) string {
	for _, pod := range w.pods() {
		if component(&pod) == daemon && pod.Spec.NodeName == node {
			return softwareOf(&pod)
		}
	}
	return ""
}

// softwareOf returns the version that a pod runs: the tag of its image.
func softwareOf(pod *corev1.Pod) string {
	_, version, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
	return version
}

func component(pod *corev1.Pod) string { return pod.Labels[v1alpha1.LabelComponent] }

// nodesOf returns the nodes of a DaemonSet: those that its affinity names, or that its selector matches.
func (w *world) nodesOf(set appsv1.DaemonSet) []string {
	if a := set.Spec.Template.Spec.Affinity; a != nil {
		var names []string
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				names = append(names, field.Values...)
			}
			if len(term.MatchExpressions) > 0 {
				names = append(names, w.matching(term.MatchExpressions)...)
			}
		}
		return names
	}
	var nodes corev1.NodeList
	w.Expect(server.Client.List(w.ctx, &nodes, client.MatchingLabels(set.Spec.Template.Spec.NodeSelector))).To(Succeed())
	var names []string
	for _, n := range nodes.Items {
		names = append(names, n.Name)
	}
	return names
}

// matching returns the nodes whose labels match all expressions.
func (w *world) matching(expressions []corev1.NodeSelectorRequirement) []string {
	selector := labels.NewSelector()
	for _, e := range expressions {
		requirement, err := labels.NewRequirement(e.Key, selection.Operator(strings.ToLower(string(e.Operator))), e.Values)
		w.Expect(err).NotTo(HaveOccurred())
		selector = selector.Add(*requirement)
	}
	var nodes corev1.NodeList
	w.Expect(server.Client.List(w.ctx, &nodes, client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
	var names []string
	for _, n := range nodes.Items {
		names = append(names, n.Name)
	}
	return names
}

func (w *world) sets() []appsv1.DaemonSet {
	w.t.Helper()
	var list appsv1.DaemonSetList
	w.Expect(server.Client.List(w.ctx, &list, w.mine()...)).To(Succeed())
	return slices.DeleteFunc(list.Items, func(s appsv1.DaemonSet) bool { return !s.DeletionTimestamp.IsZero() })
}

func (w *world) pods() []corev1.Pod {
	w.t.Helper()
	if w.look != nil && w.look.pods != nil {
		return slices.Clone(w.look.pods)
	}
	var list corev1.PodList
	w.Expect(server.Client.List(w.ctx, &list, w.mine()...)).To(Succeed())
	if w.look != nil {
		w.look.pods = slices.Clone(list.Items)
	}
	return list.Items
}

func (w *world) jobs() []batchv1.Job {
	w.t.Helper()
	var list batchv1.JobList
	w.Expect(server.Client.List(w.ctx, &list, w.mine()...)).To(Succeed())
	return list.Items
}

// masterMayInitialize reports the permission in the configuration of the master's pod.
func (w *world) masterMayInitialize() bool {
	w.t.Helper()
	var secret corev1.Secret
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scratch-moosefs"}, &secret)).To(Succeed())
	line := string(secret.Data["master.json"])
	w.Expect(line).To(ContainSubstring(`"granted"`))
	return strings.Contains(line, `"granted": true`)
}

func (w *world) condition(kind string) metav1.Condition {
	w.t.Helper()
	for _, c := range w.get().Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func (w *world) ready() metav1.Condition { return w.condition(v1alpha1.ConditionReady) }

// hashes matches hashes of values that differ between two runs.
var hashes = regexp.MustCompile(`\b[0-9a-f]{8}(?:[0-9a-f]{8})?\b`)

// children describes all children, without what differs between two runs: identities, times and the password.
func (w *world) children() string {
	w.t.Helper()
	var b strings.Builder
	var maps corev1.ConfigMapList
	w.Expect(server.Client.List(w.ctx, &maps, w.mine()...)).To(Succeed())
	for _, m := range maps.Items {
		fmt.Fprintf(&b, "ConfigMap %s %v\n", m.Name, m.Data)
	}
	for _, s := range w.sets() {
		spec, err := json.Marshal(s.Spec)
		w.Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&b, "DaemonSet %s %v %s\n", s.Name, s.Labels, spec)
	}
	for _, j := range w.jobs() {
		fmt.Fprintf(&b, "Job %s\n", j.Name)
	}
	if w.hive == nil {
		fmt.Fprintf(&b, "may initialize %t\n", w.masterMayInitialize())
	}
	text := strings.ReplaceAll(b.String(), w.namespace, "NAMESPACE")
	text = strings.ReplaceAll(text, string(w.get().UID), "UID")
	return hashes.ReplaceAllString(text, "HASH")
}
