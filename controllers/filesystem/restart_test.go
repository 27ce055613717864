package filesystem

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

var order = []string{"master", "metalogger", "chunkserver"}

func pod(component, node string, ready, outdated bool) backend.Pod {
	return backend.Pod{
		Name: types.NamespacedName{Namespace: "storage", Name: component + "-" + node}, Component: component, Node: node, Ready: ready, Outdated: outdated,
		Seen: asked.Add(-time.Hour),
	}
}

// asked is when the manager queried the filesystem.
var asked = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// observedAfter returns a pod that the manager first saw running this long after it had queried the filesystem.
func observedAfter(p backend.Pod, after time.Duration) backend.Pod {
	p.Seen = asked.Add(after)
	return p
}

// reportedAfter returns a pod that, by the clock of its node, started this long after the filesystem was queried.
func reportedAfter(p backend.Pod, after time.Duration) backend.Pod {
	p.Started = asked.Add(after)
	return p
}

// stopping returns a pod that was deleted and still exists.
func stopping(p backend.Pod) backend.Pod {
	p.Terminating, p.Ready = true, false
	return p
}

// servers returns the servers of these pods.
func servers(pods []backend.Pod) (out []backend.ServerStatus) {
	for _, p := range pods {
		if p.Component != "client" {
			out = append(out, backend.ServerStatus{Name: p.Server()})
		}
	}
	return out
}

// made returns a pod that was made with a node image.
func made(p backend.Pod, image string) backend.Pod {
	p.NodeImage = image
	return p
}

func TestTheNextRestart(t *testing.T) {
	const ready, down, old, current = true, false, true, false
	unused := []backend.Problem{{Reason: "TargetsMissing"}}
	disk := func(component, node string, safe bool) backend.Restart {
		return backend.Restart{Pod: pod(component, node, ready, current).Name, Why: "the disk d1 is not used yet", Safe: safe}
	}
	cases := map[string]struct {
		pods     []backend.Pod
		problems []backend.Problem
		disks    []backend.Restart
		// missing is the number of servers that have no pod.
		missing int
		// observe changes the rest of the observation.
		observe func(o *backend.Observation)
		// paused is spec.updates.paused.
		paused bool
		// closed is when the next window opens, silent the pod whose server was away for a while, and image the value of the annotation.
		closed, silent, image string
		// unconfigured lists the nodes whose agents have not written the node file yet.
		unconfigured []string
		picks        string
		message      string
	}{
		"nothing is restarted when nothing is outdated": {
			pods: []backend.Pod{pod("master", "n1", ready, current), pod("chunkserver", "n1", down, current)},
		},
		"the master goes first": {
			pods:  []backend.Pod{pod("chunkserver", "n1", ready, old), pod("master", "n1", ready, old)},
			picks: "master-n1", message: "2 pods are to be restarted",
		},
		"a running pod waits while restarts are paused": {
			pods:   []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", ready, old)},
			paused: true, message: "2 pods are to be restarted when spec.updates.paused is false again; first chunkserver on node n1",
		},
		"a pod that is down is restarted though restarts are paused": {
			pods:   []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", down, old)},
			paused: true, picks: "chunkserver-n2", message: "now chunkserver on node n2",
		},
		"a running pod waits while the filesystem is not healthy": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", ready, current)},
			problems: unused, message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"a running pod waits while another one is not ready": {
			pods:    []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", down, current)},
			message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"a running pod waits while another one is deleted and not made again": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, old)}, missing: 1,
			message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"a pod that is down already never waits, because its restart may be the repair": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", down, old)},
			problems: unused, picks: "chunkserver-n2",
		},
		"a client is never restarted": {
			pods: []backend.Pod{pod("client", "n1", ready, old)},
		},
		"a client that is down does not hold up the servers": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, old), pod("client", "n2", down, current)}, picks: "chunkserver-n1",
		},
		"a disk that waits to be used is no reason to wait with the restart that takes it up": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, current), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)},
			picks: "chunkserver-n2", message: "the disk d1 is not used yet",
		},
		"a disk is taken up although its server also has an older configuration": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, current), pod("chunkserver", "n2", ready, old)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, picks: "chunkserver-n2",
		},
		"a disk waits while the filesystem has problems that the restart does not solve": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, current), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", false)},
			message: "when the filesystem is healthy; first chunkserver on node n2: the disk d1 is not used yet",
		},
		"a disk waits while another server is not ready": {
			pods:     []backend.Pod{pod("chunkserver", "n1", down, current), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, message: "when the filesystem is healthy",
		},
		"a disk waits while another server has no pod": {
			pods:     []backend.Pod{pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, missing: 1, message: "when the filesystem is healthy",
		},
		"a running pod waits until the filesystem was asked after the start of the one before it": {
			pods:    []backend.Pod{observedAfter(pod("chunkserver", "n1", ready, current), time.Nanosecond), pod("chunkserver", "n2", ready, old)},
			message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"an answer that was asked in the same moment is too old": {
			pods:    []backend.Pod{observedAfter(pod("chunkserver", "n1", ready, current), 0), pod("chunkserver", "n2", ready, old)},
			message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"the clock of a node that says it was long ago does not count, because the clocks of two nodes differ": {
			pods:    []backend.Pod{reportedAfter(observedAfter(pod("chunkserver", "n1", ready, current), time.Nanosecond), -time.Hour), pod("chunkserver", "n2", ready, old)},
			message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"the next one follows when the filesystem was asked after that start": {
			pods:  []backend.Pod{observedAfter(pod("chunkserver", "n1", ready, current), -time.Nanosecond), pod("chunkserver", "n2", ready, old)},
			picks: "chunkserver-n2",
		},
		"the clock of a node that is ahead holds nothing up": {
			pods:  []backend.Pod{reportedAfter(observedAfter(pod("chunkserver", "n1", ready, current), -time.Nanosecond), time.Hour), pod("chunkserver", "n2", ready, old)},
			picks: "chunkserver-n2",
		},
		"a disk waits as well until the filesystem was asked after the last start": {
			pods:     []backend.Pod{observedAfter(pod("chunkserver", "n1", ready, current), 0), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, message: "when the filesystem is healthy",
		},
		"a pod whose start is not known counts as just started": {
			pods:    []backend.Pod{{Component: "chunkserver", Node: "n1", Ready: true}, pod("chunkserver", "n2", ready, old)},
			message: "when the filesystem is healthy",
		},
		"a running pod waits while a server could be listed only because nobody has missed it yet": {
			pods:    []backend.Pod{pod("chunkserver", "n1", ready, current), pod("chunkserver", "n2", ready, old)},
			observe: func(o *backend.Observation) { o.Unconfirmed = []string{"storage-ssd.n1"} },
			message: "when it is certain that these are there: storage-ssd.n1",
		},
		"a pod that is being deleted is not deleted again": {
			pods: []backend.Pod{stopping(pod("chunkserver", "n1", down, old)), pod("chunkserver", "n2", ready, current)},
		},
		"a pod that ends on a dead node for ever does not hold up the repair of another": {
			pods:  []backend.Pod{stopping(pod("chunkserver", "dead", down, old)), pod("chunkserver", "n2", down, old)},
			picks: "chunkserver-n2",
		},
		"a pod on a dead node is left alone, because no kubelet there would stop it": {
			pods: []backend.Pod{pod("chunkserver", "dead", down, old), pod("chunkserver", "n2", down, old)}, picks: "chunkserver-n2",
		},
		"a running pod waits while another one can't be stopped": {
			pods:    []backend.Pod{stopping(pod("chunkserver", "dead", down, old)), pod("chunkserver", "n2", ready, old)},
			message: "1 pod is to be restarted when the filesystem is healthy",
		},
		"it says when programs wait for the restart": {
			pods: []backend.Pod{pod("master", "n1", ready, old)},
			observe: func(o *backend.Observation) {
				o.Sole = map[string]string{pod("master", "n1", ready, old).Name.Name: "there is one master"}
			},
			picks: "master-n1", message: "programs wait until it is back, because there is one master",
		},
		"a pod waits until the agent of its node has written its configuration": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, old)}, unconfigured: []string{"n1"},
			message: "1 pod is to be restarted when the agent of its node has written its configuration; first chunkserver on node n1",
		},
		"a disk waits as well until the node file can have it": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, current), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, unconfigured: []string{"n2"},
			message: "when the agent of its node has written its configuration",
		},
		"a pod that is down waits as well: it would start with the old configuration": {
			pods: []backend.Pod{pod("chunkserver", "n1", down, old)}, unconfigured: []string{"n1"}, message: "when the agent of its node has written",
		},
		"a pod does not wait for the agent of another node": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", ready, old)}, unconfigured: []string{"n1"}, picks: "chunkserver-n2",
		},
		"but the order of the components stays": {
			pods: []backend.Pod{pod("master", "n1", ready, old), pod("chunkserver", "n2", ready, old)}, unconfigured: []string{"n1"},
			message: "2 pods are to be restarted when the agent of its node has written its configuration; first master on node n1",
		},
		"a disk is taken up though a server before it waits for its agent": {
			pods:     []backend.Pod{pod("master", "n1", ready, old), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, unconfigured: []string{"n1"}, picks: "chunkserver-n2",
		},
		"a newer node image restarts nothing": {
			pods: []backend.Pod{made(pod("master", "n1", ready, current), "node:1"), made(pod("chunkserver", "n2", ready, current), "node:1")},
		},
		"nor what is down, because the filesystem may know better": {
			pods: []backend.Pod{made(pod("master", "n1", down, current), "node:1")},
		},
		"a newer node image is taken up when a person asks for it": {
			pods:  []backend.Pod{made(pod("master", "n1", ready, current), "node:2"), made(pod("chunkserver", "n2", ready, current), "node:1")},
			image: "node:2", picks: "chunkserver-n2", message: "asks for the operator's node image",
		},
		"asking for another node image than the operator has asks for nothing": {
			pods: []backend.Pod{made(pod("chunkserver", "n2", ready, current), "node:1")}, image: "node:1",
		},
		"a server with an older node image that was away for a while gets a new pod": {
			pods:     []backend.Pod{made(pod("chunkserver", "n1", ready, current), "node:1"), pod("chunkserver", "n2", down, current)},
			problems: unused, silent: "chunkserver-n1", picks: "chunkserver-n1", message: "its node image is older than the operator",
		},
		"also when it is outdated, because its own problem would hold it up for ever": {
			pods:     []backend.Pod{made(pod("chunkserver", "n1", ready, old), "node:1"), pod("chunkserver", "n2", ready, current)},
			problems: unused, silent: "chunkserver-n1", picks: "chunkserver-n1",
		},
		"a pod that programs wait for waits for its window": {
			pods: []backend.Pod{pod("master", "n1", ready, old), pod("chunkserver", "n1", ready, old)}, closed: "it opens at two",
			observe: func(o *backend.Observation) {
				o.Sole = map[string]string{pod("master", "n1", ready, old).Name.Name: "there is one master"}
			},
			message: "2 pods are to be restarted when it opens at two; first master on node n1",
		},
		"a pod that programs wait for already does not wait for its window": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, current)}, closed: "it opens at two",
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n1", true)},
			observe: func(o *backend.Observation) {
				o.Serves, o.Sole = false, map[string]string{pod("chunkserver", "n1", ready, old).Name.Name: "pool bulk keeps one copy"}
			},
			picks: "chunkserver-n1",
		},
		"nor does one that brings back a copy that data lacks": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, current)}, closed: "it opens at two",
			problems: []backend.Problem{{Reason: v1alpha1.ReasonChunksEndangered}}, disks: []backend.Restart{disk("chunkserver", "n1", true)},
			observe: func(o *backend.Observation) {
				o.Sole = map[string]string{pod("chunkserver", "n1", ready, old).Name.Name: "there are chunks with one copy"}
			},
			picks: "chunkserver-n1",
		},
		"a disk that nothing is missing for waits for the window of a pod that programs wait for": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, current)}, closed: "it opens at two",
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n1", true)},
			observe: func(o *backend.Observation) {
				o.Sole = map[string]string{pod("chunkserver", "n1", ready, old).Name.Name: "pool bulk keeps one copy"}
			},
			message: "when it opens at two",
		},
		"a server that is away is not made up for by a pod that belongs to none": {
			pods: []backend.Pod{pod("chunkserver", "n1", ready, old), pod("metalogger", "n2", ready, current)},
			observe: func(o *backend.Observation) {
				o.Servers = []backend.ServerStatus{{Name: "chunkserver.n1"}, {Name: "chunkserver.n2"}}
			},
			message: "when the filesystem is healthy, and these have a pod: chunkserver.n2",
		},
		"what is safe is done before what has to wait": {
			pods:     []backend.Pod{pod("chunkserver", "n1", ready, old), pod("chunkserver", "n2", ready, current)},
			problems: unused, disks: []backend.Restart{disk("chunkserver", "n2", true)}, picks: "chunkserver-n2",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			configured := map[string]bool{"n1": true, "n2": true, "dead": true}
			for _, node := range c.unconfigured {
				configured[node] = false
			}
			observation := backend.Observation{
				Problems: c.problems, Restarts: c.disks, Servers: append(servers(c.pods), make([]backend.ServerStatus, c.missing)...), Serves: true,
			}
			if c.observe != nil {
				c.observe(&observation)
			}
			fs := &v1alpha1.FileSystem{}
			fs.Spec.Updates.Paused = c.paused
			fs.Annotations = map[string]string{v1alpha1.AnnotationTakeUpNodeImage: c.image}
			picked, message, _ := nextRestarts(order, backend.Input{
				FileSystem: fs, Pods: c.pods, State: &backend.State{Asked: asked}, Configured: configured,
				Nodes:  []backend.Node{{Name: "n1", Ready: true}, {Name: "n2", Ready: true}, {Name: "dead"}},
				Images: backend.Images{Node: "node:2"},
			}, observation, circumstances{closed: c.closed, silent: map[types.NamespacedName]bool{{Namespace: "storage", Name: c.silent}: true}})
			if c.picks == "" {
				g.Expect(picked).To(BeEmpty())
			} else {
				g.Expect(picked).To(HaveLen(1))
				g.Expect(picked[0].pod.Name).To(Equal(c.picks))
			}
			g.Expect(message).To(ContainSubstring(c.message))
		})
	}
}

func TestServersOfOneFailureDomainAreRestartedTogether(t *testing.T) {
	const ready, down, old, current = true, false, true, false
	outdated := func(nodes ...string) (pods []backend.Pod) {
		for _, n := range nodes {
			pods = append(pods, pod("chunkserver", n, ready, old))
		}
		return pods
	}
	all := outdated("a1", "a2", "a3", "b1", "b2", "c1", "c2")
	cases := map[string]struct {
		pods []backend.Pod
		most int32
		// apart is how many of each may be away; alone lists the nodes of pods that restart alone.
		apart int
		alone []string
		// change changes the input.
		change  func(in *backend.Input, observation *backend.Observation)
		picks   []string
		message string
	}{
		"as many as the spec allows": {
			pods: all, most: 2, apart: 9, picks: []string{"a1", "a2"},
			message: "7 pods are to be restarted, at most 2 of one failure domain at a time; now 2 servers (chunkserver on node a1, chunkserver on node a2) in failure domain a: its configuration has changed",
		},
		"none of the next failure domain, however many are allowed": {pods: all, most: 64, apart: 9, picks: []string{"a1", "a2", "a3"}},
		"as many as leave a copy of all that they hold":             {pods: all, most: 64, apart: 2, picks: []string{"a1", "a2"}},
		"one when the spec says nothing": {
			pods: all, apart: 9, picks: []string{"a1"},
			message: "7 pods are to be restarted, one at a time; now chunkserver on node a1 in failure domain a: its",
		},
		"one where nothing is proven":                      {pods: all, most: 64, picks: []string{"a1"}},
		"one that holds what is nowhere else is left out":  {pods: all, most: 64, apart: 9, alone: []string{"a2"}, picks: []string{"a1", "a3"}},
		"one that holds what is nowhere else goes alone":   {pods: all, most: 64, apart: 9, alone: []string{"a1"}, picks: []string{"a1"}},
		"nodes without the label are domains of their own": {pods: outdated("c1", "c2"), most: 64, apart: 9, picks: []string{"c1"}},
		"one component after the other":                    {pods: append(outdated("a1"), pod("metalogger", "a2", ready, old)), most: 64, apart: 9, picks: []string{"a2"}},
		"a pod that runs what it should is no part of it":  {pods: append(outdated("a1", "a3"), pod("chunkserver", "a2", ready, current)), most: 64, apart: 9, picks: []string{"a1", "a3"}},
		"no node, while one of another failure domain is away": {
			pods: append(outdated("a1", "a2"), pod("chunkserver", "b1", down, current)), most: 64, apart: 9,
			message: "2 pods are to be restarted when the filesystem is healthy, and chunkserver on node b1 in failure domain b is back; first chunkserver on node a1",
		},
		"no node, while one of the same failure domain is away": {
			pods: append(outdated("a2"), pod("chunkserver", "a1", down, current), pod("chunkserver", "a3", down, current)), most: 64, apart: 9,
			message: "and 2 servers (chunkserver on node a1, chunkserver on node a3) in failure domain a are back",
		},
		"no node, while the filesystem has problems": {
			pods: all, most: 64, apart: 9, message: "when the filesystem is healthy",
			change: func(_ *backend.Input, observation *backend.Observation) {
				observation.Problems = []backend.Problem{{Reason: "TargetsMissing"}}
			},
		},
		"no node, while the filesystem does not answer": {
			pods: all, most: 64, apart: 9, message: "when the filesystem is healthy",
			change: func(in *backend.Input, _ *backend.Observation) { in.State = nil },
		},
		"one that takes up a disk though there are problems goes alone": {
			pods: all, most: 64, apart: 9, picks: []string{"a2"},
			change: func(_ *backend.Input, observation *backend.Observation) {
				observation.Problems = []backend.Problem{{Reason: "TargetsMissing"}}
				observation.Restarts = []backend.Restart{{Pod: pod("chunkserver", "a2", ready, old).Name, Why: "a disk", Safe: true}}
			},
		},
		"not the one whose agent has not written yet": {
			pods: all, most: 64, apart: 9, picks: []string{"a1", "a3"},
			change: func(in *backend.Input, _ *backend.Observation) { in.Configured["a2"] = false },
		},
		"one while its node is not in the cluster, because its failure domain is not known": {
			pods: outdated("gone1", "gone2"), most: 64, apart: 9, picks: []string{"gone1"},
			change: func(in *backend.Input, _ *backend.Observation) {
				in.Configured["gone1"], in.Configured["gone2"] = true, true
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{}
			fs.Spec.FailureDomains.Label, fs.Spec.Updates.MaxUnavailable = "rack", c.most
			in := backend.Input{FileSystem: fs, Pods: c.pods, State: &backend.State{Asked: asked}, Configured: map[string]bool{}}
			for _, n := range []string{"a1", "a2", "a3", "b1", "b2", "c1", "c2"} {
				labels := map[string]string{"rack": n[:1]}
				if n[:1] == "c" {
					labels = nil
				}
				in.Nodes, in.Configured[n] = append(in.Nodes, backend.Node{Name: n, Ready: true, Labels: labels}), true
			}
			observed := backend.Observation{Servers: servers(c.pods), Together: map[string]int{}}
			for _, p := range c.pods {
				if !slices.Contains(c.alone, p.Node) && c.apart > 0 {
					observed.Together[p.Name.Name] = c.apart
				}
			}
			if c.change != nil {
				c.change(&in, &observed)
			}
			picked, message, _ := nextRestarts(order, in, observed, circumstances{})
			var nodes []string
			for _, p := range picked {
				nodes = append(nodes, p.Node)
			}
			g.Expect(nodes).To(Equal(c.picks))
			g.Expect(message).To(ContainSubstring(c.message))
		})
	}
}

func TestNoPodRestartsInThePassThatBeginsAMaintenance(t *testing.T) {
	g := NewWithT(t)
	read := &v1alpha1.FileSystem{}
	read.Namespace, read.Name = "storage", "scratch"
	fs := read.DeepCopy()
	fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n1"}}
	clock, old := clocktesting.NewFakePassiveClock(asked), pod(backendtest.ComponentServer, "n2", true, true)
	p := &pass{
		Reconciler: &Reconciler{Order: clock, Clock: clock, Reader: fake.NewClientBuilder().Build()}, fs: fs, backend: backendtest.Example{},
		in: backend.Input{
			FileSystem: read, State: &backend.State{Asked: asked}, Configured: map[string]bool{"n2": true},
			Nodes: []backend.Node{{Name: "n1", Ready: true}, {Name: "n2", Ready: true}}, Pods: []backend.Pod{old},
		}.Indexed(),
		observation: backend.Observation{Serves: true, Servers: []backend.ServerStatus{{Name: old.Server(), Online: true}}},
		hold:        &hold{fs: fs},
	}
	g.Expect(p.chooseRestarts(t.Context())).To(Succeed())
	g.Expect(p.restarts).To(BeEmpty())
	g.Expect(p.observation.Problems).To(ConsistOf(HaveField("Message", ContainSubstring("the maintenance of these nodes is over: n1"))))
}

func TestStopStep(t *testing.T) {
	nodes := []corev1.Node{node("n1", corev1.ConditionTrue), node("n2", corev1.ConditionTrue), node("dead", corev1.ConditionUnknown)}
	all := map[string]bool{"master": true, "metalogger": true, "chunkserver": true, "client": true}
	cases := map[string]struct {
		running map[string]bool
		pods    []backend.Pod
		step    string
		waiting []string
	}{
		"clients stop first, while the servers are there": {
			running: all, pods: []backend.Pod{pod("client", "n1", true, false), pod("master", "n1", true, false)},
			step: "client", waiting: []string{"client-n1 on n1"},
		},
		"a pod that is left is waited for after its DaemonSet has gone": {
			running: map[string]bool{"master": true}, pods: []backend.Pod{pod("chunkserver", "n2", false, false)},
			step: "chunkserver", waiting: []string{"chunkserver-n2 on n2"},
		},
		"the metadata server stops last": {
			running: map[string]bool{"master": true}, step: "master",
		},
		"a pod on a node that is down is not waited for": {
			running: map[string]bool{}, pods: []backend.Pod{pod("chunkserver", "dead", false, false)},
		},
		"a pod on a node that is gone is not waited for": {
			running: map[string]bool{}, pods: []backend.Pod{pod("master", "gone", false, false)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			step, waiting := stopStep(order, c.running, c.pods, nodes)
			g.Expect(step).To(Equal(c.step))
			g.Expect(waiting).To(Equal(c.waiting))
		})
	}
}

func node(name string, ready corev1.ConditionStatus) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
	}
}

func TestTheMessageOfAContainerThatDoesNotRun(t *testing.T) {
	cases := map[string]struct {
		status  corev1.ContainerStatus
		message string
	}{
		"nothing while it starts": {
			status: corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		},
		"why its image can't be pulled": {
			status:  corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}},
			message: "ErrImagePull: not found",
		},
		"its own last words, also while it waits for the next start": {
			status: corev1.ContainerStatus{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "loading\n/data/meta is foreign\n"}},
			},
			message: "/data/meta is foreign",
		},
		"that it ends by itself, in words that do not change at each start": {
			status: corev1.ContainerStatus{
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 1m20s"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}},
			},
			message: "ends soon after each start, with exit code 0; its log shows why",
		},
		"its exit code, when it said nothing": {
			status:  corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}},
			message: "ended with exit code 2 (Error)",
		},
		"the signal that killed it, whatever it said before": {
			status: corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "OOMKilled", Message: "connected to Master"}}},
			message: "was killed by signal 9 (OOMKilled)",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(containerMessage(c.status)).To(Equal(c.message))
		})
	}
}
