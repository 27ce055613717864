package backendtest_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

var example = backendtest.Example{Kind: "Example"}

// fresh is a filesystem of two pools on three nodes, of which the first answers, with clients on all.
func fresh(version string) backend.Input {
	directory := func(name string) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{v1alpha1.DirectoryPath("/data/" + name)}}
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
				Metadata: v1alpha1.MetadataSpec{NodeSelector: v1alpha1.NodeSelector{"first": ""}},
				StoragePools: []v1alpha1.StoragePoolSpec{
					{Name: "ssd", NodeSelector: v1alpha1.NodeSelector{"fast": ""}, Copies: 1, Targets: directory("ssd")},
					{Name: "hdd", NodeSelector: v1alpha1.NodeSelector{"big": ""}, Copies: 1, Targets: directory("hdd")},
				},
				Clients: &v1alpha1.ClientsSpec{NodeSelector: v1alpha1.NodeSelector{"big": ""}, MountPath: "/mnt/scratch"},
			},
		},
		Nodes:    []backend.Node{node("n1", "10.0.0.1", "first", "fast", "big"), node("n2", "10.0.0.2", "fast", "big"), node("n3", "10.0.0.3", "big")},
		Password: "nobody-needs-it", ProbeKey: "what-answers-are-signed-with",
		Images: backend.Images{Node: "node:1", PullPolicy: "IfNotPresent"},
	}
}

func TestTheExampleKeepsTheContractOfBackends(t *testing.T) {
	backendtest.Contract(t, example, fresh, nil)
}

func TestTheExampleIsHealthyWhenEveryProcessServesAndEveryMountIsThere(t *testing.T) {
	g := NewWithT(t)
	in := fresh("1.0")
	backendtest.Remember(t, example, &in)
	started := time.Now()
	in.State = &backend.State{Asked: started.Add(time.Second)}
	for _, n := range in.Nodes {
		in.State.Servers = append(in.State.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: n.IP, Online: true})
		for _, pool := range []string{"ssd", "hdd"} {
			in.Pods = append(in.Pods, backend.Pod{Component: backendtest.ComponentServer, StoragePool: pool, Node: n.Name, Ready: true, Seen: started})
		}
		in.Pods = append(in.Pods, backend.Pod{Component: backendtest.ComponentClient, Node: n.Name, Ready: true, Seen: started})
	}
	seen := example.Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect([]string{seen.Summary.Servers, seen.Summary.Targets, seen.Summary.Clients}).To(Equal([]string{"5/5", "5/5", "3/3"}))

	in.State.Servers[2].Online = false
	in.Pods[len(in.Pods)-1].Ready = false
	g.Expect(example.Observe(in).Problems).To(HaveExactElements(
		And(HaveField("Reason", v1alpha1.ReasonServersMissing), HaveField("Message", Equal("server-hdd.n3: the filesystem does not list it"))),
		And(HaveField("Reason", v1alpha1.ReasonStarting), HaveField("Message", Equal("not mounted on n3")))))
}

func TestTheExampleIsAskedByAProgramThatPrintsAState(t *testing.T) {
	g := NewWithT(t)
	questions := example.Questions("1.0", "10.0.0.1:7000")
	g.Expect(questions.Commands()).To(Equal([][]string{{"example-state", "10.0.0.1:7000"}}))
	g.Expect(questions.Parse([][]byte{[]byte(`{"version": "1.0", "servers": [{"ip": "10.0.0.1", "online": true}]}`)})).To(HaveField("Servers", HaveLen(1)))
	_, err := questions.Parse([][]byte{[]byte(`{"servers": [`)})
	g.Expect(err).To(MatchError(HavePrefix("example-state 10.0.0.1:7000: ")))
}
