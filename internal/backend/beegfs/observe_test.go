package beegfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
)

// noon is when the tests observe the filesystem; its pods started an hour before.
var noon = time.Date(2026, 11, 1, 14, 0, 0, 0, time.UTC)

// healthy is the cluster of the golden files with all servers and targets online, and no work left.
func healthy(t *testing.T, version string) backend.Input {
	t.Helper()
	in := recorded(t, cluster(version))
	in.State = wholeState(in)
	in = recorded(t, in) // the numbers of the targets are in use from now on
	in.FileSystem.Status.Metadata.Initialized = new(metav1.NewTime(noon.Add(-time.Hour)))
	in.Pods = podsOf(in)
	for _, p := range workOf(in).pools {
		in.Jobs = append(in.Jobs, backend.Job{Name: p.name, Component: componentConfigure, Succeeded: true, Ended: noon.Add(-30 * time.Minute)})
	}
	return in
}

// wholeState is the answer of the management service when every recorded server and target is online.
func wholeState(in backend.Input) *backend.State {
	in = in.Indexed()
	fs, p := in.FileSystem, portsOf(in.FileSystem)
	state := &backend.State{
		Asked: noon, Version: fs.Spec.Version, RootID: 1,
		Servers: []backend.Server{{Role: v1alpha1.RoleManagement, ID: 1, IP: "10.0.0.1", Port: p.management(), Online: true}},
	}
	if cli.Is8(fs.Spec.Version) {
		state.License = &backend.License{Valid: true, Features: []string{featureMirrors, featurePools}}
	}
	for _, pool := range fs.Status.StoragePools {
		state.Pools = append(state.Pools, backend.Pool{ID: poolID(pool.Slot), Name: pool.Name})
	}
	for _, a := range in.Given() {
		node, _ := in.Node(a.Node)
		server := backend.Server{Role: a.Role, ID: a.ID, Name: a.Server(), IP: node.IP, Port: p.meta(a.Slot), Online: true, Version: fs.Spec.Version}
		if a.Role == v1alpha1.RoleStorage {
			server.Port = p.storage(a.Slot)
		} else {
			state.Targets = append(state.Targets, backend.Target{
				Role: a.Role, ID: a.ID, ServerID: a.ID, Online: true, Status: cli.Reachable, Consistency: cli.Good, CapacityPool: "Normal",
			})
		}
		state.Servers = append(state.Servers, server)
		for _, target := range a.Targets {
			if a.Role == v1alpha1.RoleStorage {
				state.Targets = append(state.Targets, backend.Target{
					Role: a.Role, ID: target.ID, ServerID: a.ID, PoolID: poolID(a.Slot), Online: true, Status: cli.Reachable, Consistency: cli.Good,
					CapacityPool: "Normal", UsedBytes: 1 << 30, CapacityBytes: 1 << 40,
				})
			}
		}
	}
	return state
}

// podsOf returns the pods of all daemons, all Ready.
func podsOf(in backend.Input) []backend.Pod {
	var out []backend.Pod
	add := func(component, pool, instance, node string) {
		out = append(out, backend.Pod{
			Name:      types.NamespacedName{Namespace: "storage", Name: strings.Join([]string{component, pool, instance, node}, "-")},
			Component: component, StoragePool: pool, Slot: instance, Node: node, Ready: true,
			Started: noon.Add(-time.Hour), Seen: noon.Add(-time.Hour),
		})
	}
	add(componentManagement, "", "", in.FileSystem.Status.Metadata.Node)
	for _, a := range in.Given() {
		if a.Role == v1alpha1.RoleMetadata {
			add(componentMeta, "", fmt.Sprint(a.Slot), a.Node)
		} else {
			add(componentStorage, a.StoragePool, "", a.Node)
		}
	}
	for _, n := range backend.Matching(in.Nodes, in.FileSystem.Spec.Clients.NodeSelector) {
		add(componentClient, "", "", n.Name)
	}
	return out
}

func TestAServerThatIsAwayIsNotOnlineWhateverBeeGFSLists(t *testing.T) {
	for _, version := range versions {
		for name, change := range map[string]func(p *backend.Pod){
			"it_starts":  func(p *backend.Pod) { p.Ready = false },
			"it_stops":   func(p *backend.Pod) { p.Ready, p.Terminating = false, true },
			"it_is_anew": func(p *backend.Pod) { p.Seen = noon },
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				g := NewWithT(t)
				in := healthy(t, version)
				whole := New().Observe(in)
				g.Expect(whole.Problems).To(BeEmpty())
				change(podOf(&in, componentStorage, "oss1"))
				seen := New().Observe(in)
				g.Expect(seen.Problems).To(ContainElement(HaveField("Reason", v1alpha1.ReasonTargetsMissing)))
				g.Expect(seen.Summary.Servers).NotTo(Equal(whole.Summary.Servers))
				g.Expect(seen.Summary.Targets).NotTo(Equal(whole.Summary.Targets))
				change(podOf(&in, componentMeta, "oss2"))
				g.Expect(New().Observe(in).Problems).To(ContainElement(HaveField("Reason", v1alpha1.ReasonServersMissing)))
			})
		}
	}
}

func TestAServerIsConfirmedByItsAnswerOrByTheTimeAfterWhichBeeGFSMissesIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(in *backend.Input, pod *backend.Pod)
		waits  bool
	}{
		"it has started long ago":                   {func(*backend.Input, *backend.Pod) {}, false},
		"it has started within the offline timeout": {func(_ *backend.Input, p *backend.Pod) { p.Seen = noon.Add(-2 * time.Minute) }, true},
		"it has answered itself since": {func(in *backend.Input, p *backend.Pod) {
			p.Seen = noon.Add(-2 * time.Minute)
			for i := range in.State.Targets {
				in.State.Targets[i].Contacted = true
			}
		}, false},
		"no node has mounted the filesystem": {func(in *backend.Input, p *backend.Pod) {
			p.Seen = noon.Add(-2 * time.Minute)
			in.Pods = slices.DeleteFunc(in.Pods, func(p backend.Pod) bool { return p.Component == componentClient })
		}, false},
		"the offline timeout is longer": {func(in *backend.Input, p *backend.Pod) {
			p.Seen = noon.Add(-10 * time.Minute)
			in.FileSystem.Spec.BeeGFS.Config = v1alpha1.BeeGFSConfig{Management: v1alpha1.Options{"sysTargetOfflineTimeoutSecs": "900"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := healthy(t, "7.4.6")
			c.change(&in, podOf(&in, componentStorage, "oss1"))
			waits := New().Observe(in).Unconfirmed
			if c.waits {
				NewWithT(t).Expect(waits).To(ConsistOf(ContainSubstring("oss1")))
			} else {
				NewWithT(t).Expect(waits).To(BeEmpty())
			}
		})
	}
}

func TestProgramsWaitForWhatHasNoBuddyInStep(t *testing.T) {
	management := "management---oss1"
	one := map[string]string{management: "there is one management service", "storage-bulk--oss1": "pool bulk keeps one copy", "storage-bulk--oss2": "pool bulk keeps one copy"}
	first := func(in *backend.Input) backend.Mirror {
		return in.State.Mirrors[slices.IndexFunc(in.State.Mirrors, func(m backend.Mirror) bool { return m.Role == v1alpha1.RoleStorage })]
	}
	without := func(server, what string) map[string]string {
		out := maps.Clone(one)
		out[server] = what + " has no buddy that is online and has all of its data"
		return out
	}
	for name, c := range map[string]struct {
		change func(in *backend.Input)
		sole   map[string]string
	}{
		"not for what is mirrored": {func(*backend.Input) {}, one},
		"for the one whose buddy is behind": {func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in).Secondary).Consistency = cli.Behind
		}, without("storage-ssd--oss1", "target 1")},
		"for the one whose buddy is bad, as after a resync that was aborted or had errors": {func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in).Secondary).Consistency = cli.Bad
		}, without("storage-ssd--oss1", "target 1")},
		"for the one whose buddy is in a state that nobody reports": {func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in).Secondary).Consistency = ""
		}, without("storage-ssd--oss1", "target 1")},
		"for the one whose buddy is offline": {func(in *backend.Input) {
			listed(*in, v1alpha1.RoleStorage, first(in).Secondary).Online = false
		}, without("storage-ssd--oss1", "target 1")},
		"for the metadata server whose buddy is offline": {func(in *backend.Input) { silent(in, "meta-0.oss2") }, without("meta--0-oss1", "it")},
	} {
		t.Run(name, func(t *testing.T) {
			in := mirrored(t, nil)
			c.change(&in)
			NewWithT(t).Expect(New().Observe(in).Sole).To(Equal(c.sole))
		})
	}
	g, in := NewWithT(t), mirrored(t, nil)
	in.State.MetadataMirrored = false
	g.Expect(New().Observe(in).Sole).To(HaveKeyWithValue("meta--0-oss1", "the metadata is not mirrored"))
}

func TestWithoutTheManagementServiceItIsUnknownWhetherProgramsContinue(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "8.3.1")
	g.Expect(New().Observe(in).Unknown).To(BeFalse())
	in.State, in.StateError = nil, "connection refused"
	g.Expect(New().Observe(in).Unknown).To(BeTrue())
	in.FileSystem.Status.Metadata.Initialized = nil
	g.Expect(New().Observe(in).Unknown).To(BeFalse(), "one that never answered has served nobody")
}

func podOf(in *backend.Input, component, node string) *backend.Pod {
	i := slices.IndexFunc(in.Pods, func(p backend.Pod) bool { return p.Component == component && p.Node == node })
	return &in.Pods[i]
}

func diskOf(in *backend.Input, name string) *v1alpha1.StorageTarget {
	i := slices.IndexFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Name == name })
	return &in.Targets[i]
}

// idOf is the number of a storage target.
func idOf(in backend.Input, name string) int32 {
	for _, a := range in.Given() {
		if target, ok := a.Target(name); ok {
			return target.ID
		}
	}
	return 0
}

// toldOf returns a storage target from BeeGFS's answer.
func toldOf(in *backend.Input, name string) *backend.Target {
	return listed(*in, v1alpha1.RoleStorage, idOf(*in, name))
}

// silent removes a server and its targets from BeeGFS's answer.
func silent(in *backend.Input, name string) {
	a := recordOf(*in, name)
	serverOf(*in, a.Role, a.ID).Online = false
	for i := range in.State.Targets {
		if target := &in.State.Targets[i]; target.Role == a.Role && target.ServerID == a.ID {
			target.Online, target.Status = false, cli.Unreachable
		}
	}
}

func unready(disk *v1alpha1.StorageTarget, reason, message string) {
	disk.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute)),
	}}
}

const (
	ssd0 = "scratch-oss1-ssd-s0"
	ssd1 = "scratch-oss1-ssd-s1"
	ssd2 = "scratch-oss2-ssd-s0"
	hdd0 = "scratch-oss1-hdd-0"
	hdd1 = "scratch-oss2-hdd-0"
)

func TestAHealthyFilesystemIsReadyInBothVersions(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t, version)
			seen := New().Observe(in)
			g.Expect(seen.Problems).To(BeEmpty())
			g.Expect(seen.Restarts).To(BeEmpty())
			g.Expect(seen.Repeat).To(BeEmpty())
			g.Expect(seen.MetadataInitialized).To(BeTrue())
			g.Expect(seen.Management).To(Equal(&v1alpha1.ManagementStatus{Address: "10.0.0.1:8008", Version: version}))
			g.Expect(seen.Summary.Servers).To(Equal("13/13"))
			g.Expect(seen.Summary.Targets).To(Equal("6/6"))
			g.Expect(seen.Summary.Clients).To(Equal("1/1"))
			g.Expect(seen.Summary.Capacity).To(Equal("6TiB"))
			g.Expect(seen.StoragePools).To(HaveExactElements(
				And(HaveField("Name", "ssd"), HaveField("Targets", "4/4"), HaveField("Capacity", "4TiB")),
				And(HaveField("Name", "bulk"), HaveField("Targets", "2/2"), HaveField("Capacity", "2TiB"))))
			toldOf(&in, ssd1).UsedBytes = toldOf(&in, ssd1).CapacityBytes * 3 / 4
			g.Expect(New().Observe(in).StoragePools[0].Fullness.FullestPercent).To(Equal(int32(75)))
			g.Expect(seen.Servers[0]).To(And(HaveField("Name", "management.oss1"), HaveField("Role", v1alpha1.RoleManagement),
				HaveField("Target", "scratch-oss1-ssd-mgmt"), HaveField("ID", int32(1)), HaveField("Online", true)))
			g.Expect(seen.Servers[2]).To(And(HaveField("Name", "meta-1.oss1"), HaveField("Slot", int32(1)), HaveField("ID", int32(2)),
				HaveField("Target", "scratch-oss1-ssd-m1"), HaveField("Address", "10.0.0.1:8017"), HaveField("Placement.WantedCPUs", "16-31")))
			g.Expect(seen.Servers[9]).To(And(HaveField("Name", "storage-ssd.oss1"), HaveField("StoragePool", "ssd"), HaveField("Address", "10.0.0.1:8032")))
			g.Expect(seen.Targets).To(HaveEach(And(HaveField("Online", true), HaveField("Message", ""), HaveField("ID", BeNumerically(">", 0)))))
			if cli.Is8(version) {
				g.Expect(seen.Licensed).To(HaveField("Reason", v1alpha1.ReasonLicenseValid))
			} else {
				g.Expect(seen.Licensed).To(BeNil(), "7.4 asks for no license")
			}
		})
	}
}

func TestWhyAFilesystemIsNotReady(t *testing.T) {
	cases := map[string]struct {
		version string
		change  func(in *backend.Input)
		reason  string
		says    string
	}{
		"a management service that refuses to start shows why": {
			change: func(in *backend.Input) {
				in.State, in.StateError = nil, "connection refused"
				podOf(in, componentManagement, "oss1").Ready = false
				podOf(in, componentManagement, "oss1").Message = "management: the store is not there"
			},
			reason: v1alpha1.ReasonDaemonRefused, says: "management: the store is not there",
		},
		"a management service that never answered is waited for": {
			change: func(in *backend.Input) {
				in.State, in.StateError = nil, "connection refused"
				in.FileSystem.Status.Metadata.Initialized = nil
			},
			reason: v1alpha1.ReasonStarting, says: "connection refused",
		},
		"a management service that is away leaves everything unknown": {
			change: func(in *backend.Input) {
				in.State, in.StateError = nil, "connection refused"
				podOf(in, componentManagement, "oss1").Ready = false
			},
			reason: v1alpha1.ReasonMetadataOffline, says: "connection refused",
		},
		"the operator may not reach what runs": {
			change: func(in *backend.Input) { in.State, in.StateError = nil, "no route to host" },
			reason: v1alpha1.ReasonProbeUnreachable, says: "no route to host",
		},
		"the disk of the management service comes first": {
			change: func(in *backend.Input) {
				in.State, in.StateError = nil, "connection refused"
				unready(diskOf(in, "scratch-oss1-ssd-mgmt"), v1alpha1.ReasonAwaitingApproval, "approve plan 1234")
			},
			reason: v1alpha1.ReasonTargetsNotReady, says: "for the management service (its disk: AwaitingApproval: approve plan 1234)",
		},
		"a storage server that is away is named with its targets": {
			change: func(in *backend.Input) {
				silent(in, "storage-ssd.oss2")
				podOf(in, componentStorage, "oss2").Ready = true
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "2 of 6 targets are not online: oss2:/var/lib/parallelfs/targets/storage.scratch/" + ssd2,
		},
		"trap 3: a target that the management service has forgotten is reported as forgotten": {
			change: func(in *backend.Input) {
				in.State.Targets = slices.DeleteFunc(in.State.Targets, func(b backend.Target) bool {
					return b.Role == v1alpha1.RoleStorage && b.ID == idOf(*in, ssd2)
				})
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "any more, which it did at 2026-11-01 14:00; look whether the management service still has its store",
		},
		"a server that runs and was rejected is not online": {
			change: func(in *backend.Input) {
				in.State.Servers = slices.DeleteFunc(in.State.Servers, func(s backend.Server) bool { return s.Name == "meta-3.oss2" })
			},
			reason: v1alpha1.ReasonServersMissing, says: "meta-3.oss2 (it runs, and has not registered with the management service",
		},
		"a metadata server that is offline is not online": {
			change: func(in *backend.Input) { silent(in, "meta-0.oss1") },
			reason: v1alpha1.ReasonServersMissing, says: "meta-0.oss1 (BeeGFS can't reach it)",
		},
		"a target that is being copied to by its buddy is not good": {
			change: func(in *backend.Input) { toldOf(in, ssd0).Consistency = cli.Behind },
			reason: v1alpha1.ReasonDataInconsistent, says: "target 1 of storage-ssd.oss1 (BeeGFS reports Needs-resync",
		},
		"a bad metadata server is not good": {
			change: func(in *backend.Input) { listed(*in, v1alpha1.RoleMetadata, 3).Consistency = cli.Bad },
			reason: v1alpha1.ReasonDataInconsistent, says: "meta-2.oss1 (BeeGFS reports Bad",
		},
		"trap 4: a server whose number another one took is found by its address": {
			change: func(in *backend.Input) { serverOf(*in, v1alpha1.RoleMetadata, 2).IP = "10.0.0.2" },
			reason: v1alpha1.ReasonUnknownMembers, says: "meta-1.oss1: BeeGFS lists metadata server 2 at 10.0.0.2:8017, which is not on this node (10.0.0.1:8017)",
		},
		"trap 4: a target that another server serves has its number twice": {
			change: func(in *backend.Input) { toldOf(in, hdd0).ServerID = 4 },
			reason: v1alpha1.ReasonUnknownMembers, says: "another disk has the same number",
		},
		"trap 4: members without an assigned number are reported, and never removed": {
			change: func(in *backend.Input) {
				in.State.Servers = append(in.State.Servers, backend.Server{Role: v1alpha1.RoleStorage, ID: 77, IP: "10.0.0.7", Port: 8003, Online: false})
				in.State.Targets = append(in.State.Targets, backend.Target{Role: v1alpha1.RoleStorage, ID: 701, ServerID: 77, PoolID: 1})
			},
			reason: v1alpha1.ReasonUnknownMembers, says: "storage server 77 at 10.0.0.7:8003, storage target 701 of server 77",
		},
		"trap 11: a server that publishes the address of a pod network is reported": {
			change: func(in *backend.Input) { serverOf(*in, v1alpha1.RoleStorage, 1).IP = "10.244.3.7" },
			reason: v1alpha1.ReasonUnknownMembers, says: "10.244.3.7",
		},
		"trap 7: a BeeGFS 8 without a license has no tiers, which is reported": {
			version: "8.3.1",
			change: func(in *backend.Input) {
				in.State.License = &backend.License{Message: "no license certificate loaded"}
				in.State.Pools = in.State.Pools[:1]
			},
			reason: v1alpha1.ReasonLicenseMissing, says: "all files would go to the targets of all of them alike, SSD and HDD",
		},
		"a disk that waits for a person is reported with the reason": {
			change: func(in *backend.Input) {
				unready(diskOf(in, hdd0), v1alpha1.ReasonAwaitingApproval, "approve plan 1234")
				toldOf(in, hdd0).Online = false
			},
			reason: v1alpha1.ReasonTargetsNotReady, says: hdd0 + " on node oss1 in pool bulk (its disk: AwaitingApproval: approve plan 1234)",
		},
		"a pool that is not created is reported with its job": {
			change: func(in *backend.Input) {
				in.State.Pools = in.State.Pools[:1]
				toldOf(in, hdd0).PoolID, toldOf(in, hdd1).PoolID = 1, 1
				in.Jobs = append(in.Jobs, backend.Job{Name: workOf(*in).name, Failed: true, Message: "Communication with server failed"})
			},
			reason: v1alpha1.ReasonPoolsNotPlaced,
			says:   "pool bulk (2) is not made, pool 1 has targets (5, 6) that belong in pool bulk (2); job scratch-configure-",
		},
		"a pool's directory that is not created is reported": {
			change: func(in *backend.Input) { in.Jobs = in.Jobs[:1] },
			reason: v1alpha1.ReasonPoolsNotPlaced, says: "the directory of a pool is not made or its stripes not set",
		},
		"a client without the kernel module names what to install": {
			change: func(in *backend.Input) {
				podOf(in, componentClient, "c1").Ready = false
				in.Inventories["c1"] = v1alpha1.NodeInventoryStatus{Kernel: v1alpha1.KernelStatus{
					Modules: []v1alpha1.KernelModule{{Name: "beegfs", State: "Missing", Message: "install the headers of kernel 6.12.48, then run dkms"}},
				}}
			},
			reason: v1alpha1.ReasonClientsMissing, says: "c1 (install the headers of kernel 6.12.48, then run dkms)",
		},
		"a disk whose StorageTarget is gone before it was emptied is missed": {
			change: func(in *backend.Input) {
				in.Targets = slices.DeleteFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Name == hdd0 })
			},
			reason: v1alpha1.ReasonTargetsMissing, says: "which was never emptied and has no StorageTarget any more",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			version := c.version
			if version == "" {
				version = "7.4.6"
			}
			in := healthy(t, version)
			c.change(&in)
			seen := New().Observe(in)
			g.Expect(seen.Problems).NotTo(BeEmpty())
			g.Expect(seen.Problems[0].Reason).To(Equal(c.reason), "%v", seen.Problems)
			g.Expect(seen.Problems[0].Message).To(ContainSubstring(c.says))
			backendtest.Readable(t, seen)
		})
	}
}

func TestANearlyFullTargetIsReportedAndIsNoProblem(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	toldOf(&in, ssd0).CapacityPool = "Emergency"
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Targets).To(ContainElement(And(HaveField("StorageTarget", ssd0), HaveField("Message", ContainSubstring("capacity pool Emergency")))))
}

func TestTrap11ServersAreFoundOnTheNetworkThatWasChosen(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	in.FileSystem.Spec.Network = &v1alpha1.NetworkSpec{Interfaces: []v1alpha1.InterfaceName{"ib0"}}
	inventory := in.Inventories["oss1"]
	inventory.NetworkInterfaces = append(inventory.NetworkInterfaces, v1alpha1.NetworkInterface{Name: "ib0", Addresses: []string{"172.16.0.1/16"}})
	in.Inventories["oss1"] = inventory
	serverOf(in, v1alpha1.RoleStorage, 1).IP = "172.16.0.1"
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Servers).To(ContainElement(HaveField("Address", HavePrefix("172.16.0.1:"))))
}

func TestTheLicenseConditionOutlivesASilentManagementService(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "8.3.1")
	in.FileSystem.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionLicensed, Reason: v1alpha1.ReasonLicenseValid, Message: "all of it"}}
	in.State = nil
	g.Expect(New().Observe(in).Licensed).To(Equal(&backend.Problem{Reason: v1alpha1.ReasonLicenseValid, Message: "all of it"}))
}

func TestABeeGFS8WithOnePoolAndOneCopyNeedsNoLicense(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "8.3.1")
	in.FileSystem.Spec.StoragePools = in.FileSystem.Spec.StoragePools[:1]
	in.State.License = &backend.License{}
	g.Expect(New().Observe(in).Licensed).To(BeNil())
}

func TestASpecThatAdmissionShouldHaveRefusedIsObservedAllTheSame(t *testing.T) {
	for _, version := range versions {
		in := healthy(t, version)
		in.FileSystem.Spec.BeeGFS, in.FileSystem.Spec.StoragePools[0].BeeGFS = nil, nil
		NewWithT(t).Expect(New().Observe(in).Problems).To(HaveEach(HaveField("Reason", v1alpha1.ReasonPoolsNotPlaced)), "the stripes went with the members")
		in.FileSystem.Status = v1alpha1.FileSystemStatus{}
		NewWithT(t).Expect(New().Observe(in).Problems).NotTo(BeEmpty())
		in.State = nil
		NewWithT(t).Expect(New().Observe(in).Problems).NotTo(BeEmpty())
	}
}

func TestTheManagementServiceRestartsToReadItsLicense(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "8.3.1")
	i := slices.IndexFunc(in.Pods, func(p backend.Pod) bool { return p.Component == componentManagement })
	in.Pods[i].Outdated = true
	g.Expect(New().Observe(in).Restarts).To(BeEmpty(), "a healthy filesystem restarts what is outdated anyway")
	in.State.License = &backend.License{Message: "no license loaded"}
	g.Expect(New().Observe(in).Problems).To(ContainElement(HaveField("Reason", v1alpha1.ReasonLicenseMissing)))
	g.Expect(New().Observe(in).Restarts).To(HaveExactElements(And(
		HaveField("Pod", in.Pods[i].Name), HaveField("Safe", true), HaveField("Why", ContainSubstring("no license")))))
}
