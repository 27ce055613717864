package moosefs

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

// healthy returns a filesystem that the master reports as healthy.
func healthy(t *testing.T) backend.Input {
	t.Helper()
	in := everything("4.57.5")
	backendtest.Remember(t, New(), &in)
	state := &backend.State{
		Asked:          noon,
		Version:        "4.57.5",
		StorageClasses: map[string]string{"ssd": "2A", "bulk": "1B"},
		Data:           backend.DataHealth{Known: true, Stable: 7, Fewest: 1},
	}
	for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
		state.Servers = append(state.Servers,
			backend.Server{Role: v1alpha1.RoleMetadataBackup, IP: ip, Online: true, Version: "4.57.5"},
			backend.Server{Role: v1alpha1.RoleStorage, IP: ip, Port: 9435, Online: true, Version: "4.57.5", CapacityBytes: 2 << 40, UsedBytes: 1 << 40},
			backend.Server{Role: v1alpha1.RoleStorage, IP: ip, Port: 9436, Online: true, Version: "4.57.5", CapacityBytes: 8 << 40, UsedBytes: 0})
		state.Targets = append(state.Targets,
			backend.Target{IP: ip, Port: 9435, Path: "/data/ssd0/data/", Online: true, Status: "ok", CapacityBytes: 1 << 40, UsedBytes: 1 << 39},
			backend.Target{IP: ip, Port: 9435, Path: "/data/ssd1/data/", Online: true, Status: "ok", CapacityBytes: 1 << 40, UsedBytes: 1 << 39},
			backend.Target{IP: ip, Port: 9436, Path: "/data/hdd0/data/", Online: true, Status: "ok", CapacityBytes: 8 << 40})
		state.Sessions = append(state.Sessions, backend.Session{IP: ip, Path: "/mnt/scratch", Connected: true})
	}
	in.State = state
	for _, node := range []string{"n1", "n2"} {
		in.Pods = append(in.Pods,
			backend.Pod{Component: componentChunkserver, StoragePool: "ssd", Node: node, Ready: true},
			backend.Pod{Component: componentChunkserver, StoragePool: "bulk", Node: node, Ready: true},
			backend.Pod{Component: componentMetalogger, Node: node, Ready: true},
			backend.Pod{Component: componentClient, Node: node, Ready: true})
	}
	in.Pods = append(in.Pods, backend.Pod{Component: componentMaster, Node: "n1", Ready: true})
	for i := range in.Pods {
		in.Pods[i].Started, in.Pods[i].Seen = noon.Add(-time.Hour), noon.Add(-time.Hour)
	}
	return in
}

// chunkserver returns the pod of the chunkserver on node n1.
func chunkserver(in *backend.Input) *backend.Pod {
	i := slices.IndexFunc(in.Pods, func(p backend.Pod) bool { return p.Component == componentChunkserver && p.Node == "n1" })
	return &in.Pods[i]
}

func TestADaemonThatIsAwayIsNotOnlineWhateverTheMasterLists(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *backend.Input)
		says   string
	}{
		"its pod starts": {func(in *backend.Input) {
			chunkserver(in).Ready, chunkserver(in).Seen = false, time.Time{}
		}, "it is starting"},
		"its pod was deleted": {func(in *backend.Input) {
			chunkserver(in).Ready, chunkserver(in).Terminating = false, true
		}, "it is being stopped"},
		"its pod is gone": {func(in *backend.Input) {
			in.Pods = slices.DeleteFunc(in.Pods, func(p backend.Pod) bool { return p.StoragePool == "ssd" && p.Node == "n1" })
		}, "there is no pod of it on the node"},
		"it has started after the master was asked": {func(in *backend.Input) {
			chunkserver(in).Seen = noon
		}, "it has started, and the filesystem was not asked since"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t)
			c.change(&in)
			seen := New().Observe(in)
			g.Expect(seen.Summary.Servers).To(Equal("6/7"))
			g.Expect(seen.Summary.Targets).To(Equal("4/6"))
			g.Expect(seen.Problems).To(ConsistOf(And(
				HaveField("Reason", v1alpha1.ReasonTargetsMissing), HaveField("Message", ContainSubstring("n1:/data/ssd0 in pool ssd ("+c.says+")")))))
		})
	}
}

func TestOnANodeThatIsNotReadyTheMastersAnswerCounts(t *testing.T) {
	in := healthy(t)
	in.Nodes[0].Ready = false // its kubelet is silent, so Kubernetes marks its pods as not Ready
	for i := range in.Pods {
		in.Pods[i].Ready = in.Pods[i].Node != "n1"
	}
	NewWithT(t).Expect(New().Observe(in).Summary.Servers).To(Equal("7/7"))
}

func TestOnlyTheChunksThatThereAreAreNamed(t *testing.T) {
	for says, data := range map[string]backend.DataHealth{
		"3 chunks have only one copy left; MooseFS":                                                {Known: true, Endangered: 3},
		"4 chunks have fewer copies than asked for; MooseFS":                                       {Known: true, Undergoal: 4},
		"3 chunks have only one copy left, and 4 chunks have fewer copies than asked for; MooseFS": {Known: true, Endangered: 3, Undergoal: 4},
	} {
		in := healthy(t)
		in.State.Data = data
		seen := New().Observe(in)
		NewWithT(t).Expect(seen.Problems).To(HaveExactElements(HaveField("Message", HavePrefix(says))))
		backendtest.Readable(t, seen)
	}
}

func TestUncountedDataIsNotHealthy(t *testing.T) {
	in := healthy(t)
	in.State.Data = backend.DataHealth{}
	NewWithT(t).Expect(New().Observe(in).Problems).To(ConsistOf(HaveField("Reason", v1alpha1.ReasonDataUnknown)))
}

func TestUncountedDataIsPendingWhileNothingElseIsMissing(t *testing.T) {
	gone := func(in *backend.Input, port int32, ips ...string) {
		in.State.Data = backend.DataHealth{}
		in.State.Servers = slices.DeleteFunc(in.State.Servers, func(s backend.Server) bool { return s.Port == port && slices.Contains(ips, s.IP) })
	}
	for name, c := range map[string]struct {
		change  func(in *backend.Input)
		pending bool
	}{
		"a chunkserver has gone":                         {func(in *backend.Input) { gone(in, 9435, "10.0.0.1") }, true},
		"a chunkserver has gone, and copies are counted": {func(in *backend.Input) { gone(in, 9435, "10.0.0.1"); in.State.Data.Known = true }, false},
		"all chunkservers of a pool have gone":           {func(in *backend.Input) { gone(in, 9435, "10.0.0.1", "10.0.0.2", "10.0.0.3") }, false},
		"nobody has mounted it": {func(in *backend.Input) {
			gone(in, 9435, "10.0.0.1")
			in.State.Sessions = nil
		}, false},
		"the master does not answer": {func(in *backend.Input) { in.State, in.StateError = nil, "connection refused" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy(t)
			c.change(&in)
			seen := New().Observe(in)
			g := NewWithT(t)
			g.Expect(seen.Pending).To(Equal(c.pending))
			g.Expect(seen.Unknown).To(BeFalse())
			g.Expect(seen.Pending && seen.Serves).To(BeFalse())
		})
	}
}

func TestProgramsWaitForTheMasterAndForPoolsWithOneCopy(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t)
	for i := range in.Pods {
		in.Pods[i].Name.Name = in.Pods[i].Component + in.Pods[i].StoragePool + in.Pods[i].Node
	}
	seen := New().Observe(in)
	g.Expect(seen.Sole).To(HaveKeyWithValue("mastern1", "there is one master"))
	g.Expect(seen.Sole).To(HaveKeyWithValue("chunkserverbulkn2", "pool bulk keeps one copy"))
	g.Expect(seen.Sole).NotTo(HaveKey("chunkserverssdn2"), "a pool with one copy explains chunks with one copy")
	in.FileSystem.Spec.StoragePools[1].Copies = 2
	g.Expect(New().Observe(in).Sole).To(HaveKeyWithValue("chunkserverssdn2", "there are chunks with one copy"), "a user may have a class of his own")
	in.State.Data.Fewest = 0
	g.Expect(New().Observe(in).Sole).To(HaveKeyWithValue("chunkserverssdn2", "MooseFS does not report how many copies each chunk has"))
	in.State.Data.Fewest = 2
	g.Expect(New().Observe(in).Sole).To(HaveLen(1), "each chunk has a copy elsewhere, and there is one master")
}

func TestAServerThatIsAwayIsAProblemAlsoWhenNothingOnItIsMissed(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	in.Since = map[types.UID]time.Time{}
	for i := range in.Targets {
		if t := &in.Targets[i]; t.Spec.Node == "n2" && t.Spec.StoragePool == "ssd" {
			askedToRemove(t, noon)
			unmet(t, v1alpha1.ConditionReady, v1alpha1.ReasonTargetMissing, "gone", noon)
			t.UID = types.UID(t.Name)
			in.Since[t.UID] = noon
			drop(&in, t.Name)
		}
	}
	g.Expect(New().Observe(in).Problems).To(BeEmpty(), "what is not needed is not missed")
	in.State.Servers = slices.DeleteFunc(in.State.Servers, func(s backend.Server) bool { return s.IP == "10.0.0.2" && s.Port == 9435 })
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(ConsistOf(And(HaveField("Reason", v1alpha1.ReasonServersMissing), HaveField("Message", ContainSubstring("chunkserver-ssd.n2 (")))))
}

func TestAHealthyFileSystemHasNoProblems(t *testing.T) {
	g := NewWithT(t)
	seen := New().Observe(healthy(t))
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.MetadataInitialized).To(BeTrue())
	g.Expect(seen.Management).To(Equal(&v1alpha1.ManagementStatus{Address: "10.0.0.1:9421", Version: "4.57.5"}))
	g.Expect(seen.Summary).To(Equal(v1alpha1.FileSystemSummary{
		Servers: "7/7", Targets: "6/6", Clients: "2/2", Capacity: "20TiB", Used: "2TiB",
	}))
	g.Expect(seen.StoragePools).To(HaveLen(2))
	g.Expect(seen.StoragePools[0].Capacity).To(Equal("4TiB"))
	g.Expect(seen.StoragePools[1].Targets).To(Equal("2/2"))
	g.Expect(seen.StoragePools[0].Fullness).NotTo(BeNil(), "it says how evenly data lies")
}

func TestProblemsAreNamedWorstFirst(t *testing.T) {
	cases := map[string]struct {
		change func(in *backend.Input)
		reason string
		says   string
		// serves is true if programs can read and write in spite of the problem.
		serves bool
	}{
		"a chunkserver that was killed": {
			serves: true,
			change: func(in *backend.Input) { in.State.Servers[1].Online = false },
			reason: v1alpha1.ReasonTargetsMissing,
			says: "2 of 6 targets are not online: n1:/data/ssd0 in pool ssd (the master has lost the connection to this chunkserver), " +
				"n1:/data/ssd1 in pool ssd (the master has lost the connection to this chunkserver)",
		},
		"a chunkserver that never came": {
			serves: true,
			change: func(in *backend.Input) { in.State.Servers[1].Port = 1 },
			reason: v1alpha1.ReasonTargetsMissing, says: "the chunkserver has not registered with the master",
		},
		"a chunkserver that refuses to start": {
			serves: true,
			change: func(in *backend.Input) {
				in.State.Servers[1].Online = false
				in.Pods[0].Ready, in.Pods[0].Message = false, "chunkserver: /data/ssd0 belongs to another FileSystem"
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "/data/ssd0 belongs to another FileSystem",
		},
		"a damaged disk": {
			serves: true,
			change: func(in *backend.Input) {
				in.State.Targets[0].Online, in.State.Targets[0].Status = false, "damaged"
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "n1:/data/ssd0 in pool ssd (MooseFS reports: damaged)",
		},
		"a chunkserver that does not tell its disks": {
			serves: true,
			change: func(in *backend.Input) {
				in.State.Targets = append(in.State.Targets[2:], backend.Target{IP: "10.0.0.1", Port: 9435, Status: "server unreachable"})
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "n1:/data/ssd0 in pool ssd (MooseFS reports: server unreachable)",
		},
		"chunks without a copy come before the targets that held them": {
			change: func(in *backend.Input) {
				in.State.Servers[1].Online, in.State.Data.Missing = false, 3
			},
			reason: v1alpha1.ReasonChunksEndangered, says: "3 chunks have no copy left",
		},
		"chunks with too few copies": {
			serves: true,
			change: func(in *backend.Input) { in.State.Data.Undergoal = 4 },
			reason: v1alpha1.ReasonChunksEndangered, says: "4 chunks have fewer copies than asked for",
		},
		"the only chunkserver of a pool": {
			change: func(in *backend.Input) {
				for i := range in.State.Targets {
					in.State.Targets[i].Online = in.State.Targets[i].Port != 9436
				}
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "in pool bulk",
		},
		"a chunkserver of a pool with two copies that has gone since the master was asked": {
			serves: true,
			change: func(in *backend.Input) { in.Pods[0].Ready = false },
			reason: v1alpha1.ReasonTargetsMissing, says: "2 of 6 targets are not online",
		},
		"all mounts": {
			change: func(in *backend.Input) { in.State.Sessions = nil },
			reason: v1alpha1.ReasonClientsMissing, says: "n1",
		},
		"a metalogger that is away": {
			serves: true,
			change: func(in *backend.Input) { in.State.Servers[0].Online = false },
			reason: v1alpha1.ReasonServersMissing, says: "metalogger.n1",
		},
		"a storage class that is not made": {
			change: func(in *backend.Input) { delete(in.State.StorageClasses, "bulk") },
			reason: v1alpha1.ReasonPoolsNotPlaced, says: `bulk is "" and should be "1B"`,
		},
		"a client whose mount is dead": {
			serves: true,
			change: func(in *backend.Input) { in.Pods[3].Ready = false },
			reason: v1alpha1.ReasonClientsMissing, says: "n1 (the mount does not answer)",
		},
		"a client that the master does not know": {
			serves: true,
			change: func(in *backend.Input) { in.State.Sessions[1].Connected = false },
			reason: v1alpha1.ReasonClientsMissing, says: "n2 (the master does not list a session of this node)",
		},
		"a client whose session is another mount's": {
			serves: true,
			change: func(in *backend.Input) { in.State.Sessions[1].Path = "/mnt/other" },
			reason: v1alpha1.ReasonClientsMissing, says: "n2 (the master lists mounts of this node, but none at /mnt/scratch)",
		},
		"a master that refuses to start": {
			change: func(in *backend.Input) {
				in.State, in.StateError = nil, "connection refused"
				in.Pods[8].Ready, in.Pods[8].Message = false, "master: /data/meta was initialized before and is empty now"
			},
			reason: v1alpha1.ReasonDaemonRefused, says: "the master on node n1 does not run: master: /data/meta was initialized before and is empty now",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t)
			c.change(&in)
			seen := New().Observe(in)
			g.Expect(seen.Problems).NotTo(BeEmpty())
			g.Expect(seen.Problems[0].Reason).To(Equal(c.reason))
			g.Expect(seen.Problems[0].Message).To(ContainSubstring(c.says))
			backendtest.Readable(t, seen)
			g.Expect(seen.Serves).To(Equal(c.serves))
		})
	}
}

func TestAClientNodeThatIsDownDoesNotMakeTheFileSystemUnready(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t)
	in.Nodes = append(in.Nodes, backend.Node{Name: "n4", IP: "10.0.0.4", Labels: map[string]string{clientLabel: ""}})
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Clients).To(ContainElement(And(HaveField("Node", "n4"), HaveField("Message", "the node is not Ready"))))
	g.Expect(seen.Summary.Clients).To(Equal("2/3"))
}
