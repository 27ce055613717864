package backendtest_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

var example = backendtest.Example{Kind: "Example"}

// fresh is a filesystem of two pools on three nodes, one on disks and one in directories. Its metadata is on a disk of the first node, and
// all nodes are clients.
func fresh(version string) backend.Input {
	onDisks := v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}}
	inDirectories := v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/hdd"}}
	disk := func(name, node string, role v1alpha1.Role, pool string) v1alpha1.StorageTarget {
		return v1alpha1.StorageTarget{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.StorageTargetSpec{Node: node, Role: role, StoragePool: pool},
			Status: v1alpha1.StorageTargetStatus{
				Provisioned: &v1alpha1.TargetProvisioned{PlanHash: "sha256:0a", UUID: "uuid-" + name, Finished: &metav1.Time{Time: time.Unix(1, 0)}},
				Conditions:  []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven}},
			},
		}
	}
	node := func(name, ip string, labels ...string) backend.Node {
		n := backend.Node{Name: name, IP: ip, Ready: true, Labels: map[string]string{}}
		for _, l := range labels {
			n.Labels[l] = ""
		}
		return n
	}
	return backend.Input{
		FileSystem: &v1alpha1.FileSystem{
			ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "1-2-3",
				Annotations: map[string]string{backendtest.ExampleOption + "threads": "4"}},
			Spec: v1alpha1.FileSystemSpec{
				Type: example.Kind, Version: version,
				MetadataServers: v1alpha1.MetadataSpec{NodeSelector: v1alpha1.NodeSelector{"first": ""}, Targets: onDisks},
				StoragePools: []v1alpha1.StoragePoolSpec{
					{Name: "ssd", NodeSelector: v1alpha1.NodeSelector{"fast": ""}, Copies: 1, Targets: onDisks},
					{Name: "hdd", NodeSelector: v1alpha1.NodeSelector{"big": ""}, Copies: 1, Targets: inDirectories},
				},
				Clients: &v1alpha1.ClientsSpec{NodeSelector: v1alpha1.NodeSelector{"big": ""}, MountPath: "/mnt/scratch"},
			},
		},
		Targets: []v1alpha1.StorageTarget{
			disk("scratch-metadata-1", "n1", v1alpha1.RoleMetadata, ""),
			disk("scratch-ssd-1", "n1", v1alpha1.RoleStorage, "ssd"), disk("scratch-ssd-2", "n2", v1alpha1.RoleStorage, "ssd"),
		},
		Chosen:   true,
		Nodes:    []backend.Node{node("n1", "10.0.0.1", "first", "fast", "big"), node("n2", "10.0.0.2", "fast", "big"), node("n3", "10.0.0.3", "big")},
		Password: "nobody-needs-it", ProbeKey: "what-answers-are-signed-with",
		Images: backend.Images{Node: "node:1", PullPolicy: "IfNotPresent"},
	}
}

func TestTheExampleKeepsTheContractOfBackends(t *testing.T) {
	backendtest.Contract(t, example, fresh, nil)
}

func TestTheExampleIsHealthyWhenItsMountAndEveryProcessServeAllDisks(t *testing.T) {
	g := NewWithT(t)
	in := fresh("1.0")
	backendtest.Remember(t, example, &in)
	started := time.Now()
	in.State = &backend.State{Asked: started.Add(time.Second), Servers: []backend.Server{{Role: v1alpha1.RoleMetadata, IP: "10.0.0.1", Online: true}}}
	runs := func(component, pool, node string) {
		in.Pods = append(in.Pods, backend.Pod{Component: component, StoragePool: pool, Node: node, Ready: true, Seen: started})
	}
	runs(backendtest.ComponentMount, "", "n1")
	for _, n := range in.Nodes {
		in.State.Servers = append(in.State.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: n.IP, Online: true})
		runs(backendtest.ComponentServer, "ssd", n.Name)
		runs(backendtest.ComponentServer, "hdd", n.Name)
		runs(backendtest.ComponentClient, "", n.Name)
	}
	for _, name := range []string{"scratch-ssd-1", "scratch-ssd-2"} {
		in.State.Targets = append(in.State.Targets, backend.Target{Path: assign.TargetPath(in.FileSystem, name), Online: true})
	}
	seen := example.Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect([]string{seen.Summary.Servers, seen.Summary.Targets, seen.Summary.Clients}).To(Equal([]string{"6/6", "5/5", "3/3"}))

	in.State.Servers[0].Online, in.State.Servers[3].Online = false, false
	in.State.Targets[0].Online, in.State.Targets[0].Status = false, "it can't be read"
	in.Targets[2].Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTargetMissing}
	in.Pods[len(in.Pods)-1].Ready = false
	is := func(reason, message string) types.GomegaMatcher {
		return And(HaveField("Reason", reason), HaveField("Message", ContainSubstring(message)))
	}
	g.Expect(example.Observe(in).Problems).To(HaveExactElements(
		is(v1alpha1.ReasonTargetsNotReady, "scratch-ssd-2 (its disk: TargetMissing"),
		is(v1alpha1.ReasonServersMissing, "mount.n1: the filesystem does not list it, server-hdd.n3: the filesystem does not list it"),
		is(v1alpha1.ReasonTargetsMissing, "scratch-ssd-1 (it can't be read)"),
		is(v1alpha1.ReasonStarting, "not mounted on n3")))
}

func TestTheExampleIsAskedByAProgramThatPrintsAState(t *testing.T) {
	g := NewWithT(t)
	questions := example.Questions("1.0", "10.0.0.1:7000")
	g.Expect(questions.Commands()).To(Equal([][]string{{"example-state", "10.0.0.1:7000"}}))
	g.Expect(questions.Parse([][]byte{[]byte(`{"version": "1.0", "servers": [{"ip": "10.0.0.1", "online": true}]}`)})).To(HaveField("Servers", HaveLen(1)))
	_, err := questions.Parse([][]byte{[]byte(`{"servers": [`)})
	g.Expect(err).To(MatchError(HavePrefix("example-state 10.0.0.1:7000: ")))
}
