package beegfs

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestWhetherATargetIsDrained(t *testing.T) {
	cases := map[string]struct {
		version string
		change  func(in *backend.Input)
		// waits is the reason why the target stays, empty when it leaves.
		waits string
	}{
		"it is, when another one of its pool stays": {},
		"the last one of a pool is not": {
			change: func(in *backend.Input) {
				for _, name := range []string{ssd1, ssd2, "scratch-oss2-ssd-s1"} {
					diskOf(in, name).Spec.Remove = true
					toldOf(in, name).PoolID = drain.Pool
				}
			},
			waits: "refused: pool ssd has no other target that is online, stays, and could take the files; add one first",
		},
		"not while all that stay are away": {
			change: func(in *backend.Input) {
				toldOf(in, ssd1).Online = false
				silent(in, "storage-ssd.oss2")
			},
			waits: "pool ssd has no other target that is online, stays, and could take the files",
		},
		"one side of a buddy group is not": {
			change: func(in *backend.Input) {
				in.State.Mirrors = []backend.Mirror{{Role: v1alpha1.RoleStorage, ID: 9, Primary: idOf(*in, ssd0), Secondary: idOf(*in, ssd2)}}
			},
			waits: "refused: target 1 is one side of buddy group 9",
		},
		"one of a mirrored pool is not": {
			change: func(in *backend.Input) { in.FileSystem.Spec.StoragePools[0].Copies = 2 },
			waits:  "refused: pool ssd is mirrored",
		},
		"trap 7: one of a BeeGFS 8 without a license is not, because nothing keeps new files off it": {
			version: "8.3.1",
			change:  func(in *backend.Input) { in.State.License = &backend.License{} },
			waits:   "refused: BeeGFS 8 can keep new files off a target only by a storage pool of its own, which needs a license",
		},
		"not while clients have it mounted, unless a person says that nothing writes": {
			change: func(in *backend.Input) {
				diskOf(in, ssd0).Spec.WritersStopped = false
				in.State.Sessions = []backend.Session{{IP: "10.9.9.9", Connected: true}}
			},
			waits: "refused: the filesystem is mounted by 10.9.9.9, ",
		},
		"one that is away is not yet": {
			change: func(in *backend.Input) { toldOf(in, ssd0).Online = false },
			waits:  "what is on it can be moved when it is online",
		},
		"one that has begun goes on, whatever becomes of the others": {
			change: func(in *backend.Input) {
				toldOf(in, ssd0).PoolID = drain.Pool
				silent(in, "storage-ssd.oss2")
				toldOf(in, ssd1).Online = false
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t, max(c.version, "7.4.6"))
			diskOf(&in, ssd0).Spec.Remove, diskOf(&in, ssd0).Spec.WritersStopped = true, true
			if c.change != nil {
				c.change(&in)
			}
			v := look(in)
			drains := v.departures
			i := slices.IndexFunc(drains, func(d departure) bool { return d.name == ssd0 })
			if c.waits == "" {
				g.Expect(drains[i].waits).To(BeEmpty())
				g.Expect(v.isDraining(idOf(in, ssd0))).To(BeTrue())
				return
			}
			g.Expect(drains[i].waits).To(ContainSubstring(c.waits))
			if _, why := assign.Proven(diskOf(&in, ssd0)); why == "" && toldOf(&in, ssd0).Online {
				g.Expect(New().Observe(in).Targets).To(ContainElement(And(HaveField("StorageTarget", ssd0),
					HaveField("Removing", false), HaveField("Message", ContainSubstring(c.waits)))))
			}
		})
	}
}

func TestOneOfTheTargetsOfAPoolStays(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	diskOf(&in, hdd0).Spec.Remove, diskOf(&in, hdd0).Spec.WritersStopped = true, true
	diskOf(&in, hdd1).Spec.Remove, diskOf(&in, hdd1).Spec.WritersStopped = true, true
	drains := look(in).departures
	g.Expect(drains).To(HaveLen(2))
	g.Expect(drains[0].waits).To(BeEmpty())
	g.Expect(drains[1].waits).To(ContainSubstring("refused: pool bulk has no other target"))
}

// draining is a filesystem in which one target of the SSD pool is in the pool draining.
func draining(t *testing.T) backend.Input {
	t.Helper()
	in := healthy(t, "7.4.6")
	diskOf(&in, ssd0).Spec.Remove, diskOf(&in, ssd0).Spec.WritersStopped = true, true
	in.State.Pools = append(in.State.Pools, backend.Pool{ID: drain.Pool, Name: drain.PoolName})
	toldOf(&in, ssd0).PoolID = drain.Pool
	return in
}

func TestTheJobsOfADrain(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	diskOf(&in, ssd0).Spec.Remove, diskOf(&in, ssd0).Spec.WritersStopped = true, true
	made, _ := jobsOf(t, in)
	g.Expect(made).To(HaveLen(1), "new files are kept off it first")
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements("--addstoragepool --id=100 --desc=draining", "--modifystoragepool --id=100 --addtargets=1"))

	in = draining(t)
	made, _ = jobsOf(t, in)
	g.Expect(made).To(HaveExactElements(HaveField("Name", "scratch-await-empty-1"), HaveField("Name", "scratch-migrate-1")))
	var await spec.AwaitEmpty
	g.Expect(json.Unmarshal([]byte(made[0].Spec.Template.Annotations[podspec.ToldAnnotation]), &await)).To(Succeed())
	g.Expect(await.Target).To(Equal(spec.Target{Name: ssd0, Path: "/var/lib/parallelfs/targets/storage.scratch/" + ssd0, UUID: "uuid-of-" + ssd0}))
	g.Expect(await.Directories).To(HaveExactElements(
		"/var/lib/parallelfs/targets/storage.scratch/"+ssd0+"/storage/data/chunks",
		"/var/lib/parallelfs/targets/storage.scratch/"+ssd0+"/storage/data/buddymir"))
	g.Expect(made[0].Spec.Template.Spec.Containers[0].SecurityContext.Privileged).To(BeNil())

	var migrate spec.Configure
	g.Expect(json.Unmarshal([]byte(made[1].Spec.Template.Annotations[podspec.ToldAnnotation]), &migrate)).To(Succeed())
	g.Expect(migrate.Mount).To(And(HaveField("FSType", "beegfs"), HaveField("Kernel", true)))
	g.Expect(lines(in, migrate.Commands)).To(HaveExactElements("--migrate --targetid=1 --destinationpoolid=1 " + migrate.Mount.Path))
	g.Expect(migrate.Commands[0].TimeoutSeconds).To(Equal(int64(-1)))
	g.Expect(migrate.Quiet).NotTo(BeNil(), "nothing is moved while a client has a file open")
	g.Expect(migrate.Quiet.Open[2:]).To(HaveExactElements("--genericdebug", "--nodetype=storage", "--nodeid=1", "listopenfiles"))
	g.Expect(migrate.Quiet.Also).To(HaveLen(8), "each metadata server says which files clients have opened")
	for i, also := range migrate.Quiet.Also {
		g.Expect(also.Server).To(Equal(fmt.Sprintf("metadata server %d", i+1)))
		g.Expect(also.Open[2:]).To(HaveExactElements("--genericdebug", "--nodetype=meta", fmt.Sprintf("--nodeid=%d", i+1), "listopenfiles"))
	}
	terms := made[1].Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	g.Expect(terms[0].MatchFields[0].Values).To(Equal([]string{"c1"}))

	in.FileSystem.Spec.Clients = nil
	made, _ = jobsOf(t, in)
	g.Expect(made).To(HaveLen(1), "without clients there is nothing to move files with")
}

func TestATargetIsDrainedWhenAllItsJobsHaveSucceeded(t *testing.T) {
	g := NewWithT(t)
	in := draining(t)
	g.Expect(look(in).drainedTargets()).To(BeEmpty())
	before := slices.Clone(in.Jobs)
	in.Jobs = append(in.Jobs,
		backend.Job{Name: "scratch-await-empty-1", Component: componentDrain}, backend.Job{Name: "scratch-migrate-1", Component: componentDrain})
	g.Expect(look(in).drainedTargets()).To(BeEmpty(), "its jobs go on")
	in.Jobs = slices.Concat(before, []backend.Job{{Name: "scratch-await-empty-1", Component: componentDrain, Succeeded: true, Ended: noon}})
	g.Expect(look(in).drainedTargets()).To(BeEmpty(), "files whose stripes name it, and that are shorter, are not moved yet")
	in.Jobs = append(in.Jobs, backend.Job{Name: "scratch-migrate-1", Component: componentDrain, Succeeded: true, Ended: noon.Add(time.Minute)})
	g.Expect(look(in).drainedTargets()).To(BeEmpty(), "jobs prove nothing by themselves")
	agentSaysEmpty(&in)
	g.Expect(look(in).drainedTargets()).To(Equal(map[int32]time.Time{1: noon.Add(time.Minute)}))

	seen := func() backend.TargetStatus {
		targets := New().Observe(in).Targets
		return targets[slices.IndexFunc(targets, func(s backend.TargetStatus) bool { return s.StorageTarget == ssd0 })]
	}
	g.Expect(seen()).To(And(HaveField("Removing", true), HaveField("Removable", false)), "it is not recorded yet")
	in = recorded(t, in)
	g.Expect(seen()).To(And(HaveField("Removing", true), HaveField("Removable", true)))
	toldOf(&in, ssd0).Online = false
	g.Expect(New().Observe(in).Problems).To(BeEmpty(), "nobody misses an empty target")
	toldOf(&in, ssd0).Online = true
	made, kept := jobsOf(t, in)
	g.Expect(made).To(BeEmpty())
	g.Expect(kept).NotTo(ContainElement("scratch-await-empty-1"), "what is recorded needs no job")

	toldOf(&in, ssd0).PoolID = 1
	g.Expect(seen()).To(And(HaveField("Removing", false), HaveField("Removable", false)), "somebody moved it back: it may hold data again")
	g.Expect(look(in).drainedTargets()).To(BeEmpty())
}

// agentSaysEmpty writes the status of an agent that has twice found no file on ssd0.
func agentSaysEmpty(in *backend.Input) {
	disk, since := diskOf(in, ssd0), metav1.NewTime(noon)
	disk.Spec.FilesIn = New().FilesIn(*in)[ssd0]
	disk.Status.Files = &v1alpha1.TargetFiles{ObservedGeneration: disk.Generation, NoneSince: &since, Empty: true}
}

// A user who may create Jobs in the namespace can forge these Jobs, or pods that Kubernetes counts as theirs.
func TestAForgedJobProvesNothing(t *testing.T) {
	g := NewWithT(t)
	in := draining(t)
	for _, name := range []string{"scratch-await-empty-1", "scratch-migrate-1"} {
		in.Jobs = append(in.Jobs, backend.Job{Name: name, Component: componentDrain, Succeeded: true, Ended: noon})
	}
	g.Expect(look(in).drainedTargets()).To(BeEmpty(), "the agent of the node has not said that no file is left")
	for name, change := range map[string]func(disk *v1alpha1.StorageTarget){
		"it was not asked":                     func(disk *v1alpha1.StorageTarget) { disk.Spec.FilesIn = nil },
		"it was asked about other directories": func(disk *v1alpha1.StorageTarget) { disk.Spec.FilesIn = []string{"storage"} },
		"it looked before the spec changed":    func(disk *v1alpha1.StorageTarget) { disk.Generation++ },
		"it looked once":                       func(disk *v1alpha1.StorageTarget) { disk.Status.Files.Empty = false },
		"files are left":                       func(disk *v1alpha1.StorageTarget) { disk.Status.Files.Left = 1 },
	} {
		agentSaysEmpty(&in)
		change(diskOf(&in, ssd0))
		g.Expect(look(in).drainedTargets()).To(BeEmpty(), name)
	}
	agentSaysEmpty(&in)
	in.Unconfirmed = map[string]string{diskOf(&in, ssd0).Spec.Node: "its agent is not Ready"}
	g.Expect(look(in).drainedTargets()).To(BeEmpty(), "the last report of a dead agent proves nothing")
	in.Unconfirmed = nil
	g.Expect(look(in).drainedTargets()).To(HaveLen(1))
}

func TestADrainThatIsTakenBackBringsTheTargetBack(t *testing.T) {
	g := NewWithT(t)
	in := draining(t)
	in.Jobs = append(in.Jobs, backend.Job{Name: "scratch-await-empty-1", Component: componentDrain})
	diskOf(&in, ssd0).Spec.Remove = false
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements("--modifystoragepool --id=100 --rmtargets=1"))
	_, kept := jobsOf(t, in)
	g.Expect(kept).NotTo(ContainElement("scratch-await-empty-1"))
}

func TestADrainShowsItsProgress(t *testing.T) {
	g := NewWithT(t)
	in := draining(t)
	in.Jobs = append(in.Jobs,
		backend.Job{Name: "scratch-await-empty-1", Component: componentDrain, Message: "412 files are left"},
		backend.Job{Name: "scratch-migrate-1", Component: componentDrain})
	message := func() string { return drainMessageOf(in, ssd0) }
	g.Expect(message()).To(And(ContainSubstring("files are moved by job scratch-migrate-1, while no client has a file open"),
		Not(ContainSubstring("its last try")), ContainSubstring("412 files are left")))
	jobNamed(in, "scratch-migrate-1").Message = "nothing is done: clients have files open on storage server 1"
	g.Expect(message()).To(ContainSubstring("; its last try: nothing is done: clients have files open on storage server 1; "))
	in.Jobs = in.Jobs[:2]
	in.Inventories["c1"] = v1alpha1.NodeInventoryStatus{Kernel: v1alpha1.KernelStatus{Modules: []v1alpha1.KernelModule{{Name: "beegfs", State: "Missing"}}}}
	g.Expect(message()).To(ContainSubstring("no client node can mount the filesystem to move its files"))
}

func drainMessageOf(in backend.Input, name string) string {
	for _, s := range New().Observe(in).Targets {
		if s.StorageTarget == name {
			return s.Message
		}
	}
	return ""
}

func TestJobsOfADrainAreRepeated(t *testing.T) {
	cases := map[string]struct {
		jobs    []backend.Job
		repeats []string
	}{
		"not while they go on": {jobs: []backend.Job{{Name: "scratch-await-empty-1"}, {Name: "scratch-migrate-1"}}},
		"when they failed": {
			jobs:    []backend.Job{{Name: "scratch-await-empty-1", Failed: true}, {Name: "scratch-migrate-1", Failed: true}},
			repeats: []string{"scratch-await-empty-1", "scratch-migrate-1"},
		},
		"when files are left long after those that were found were moved": {
			jobs:    []backend.Job{{Name: "scratch-await-empty-1"}, {Name: "scratch-migrate-1", Succeeded: true, Ended: noon.Add(-patience - time.Second)}},
			repeats: []string{"scratch-migrate-1"},
		},
		"not shortly after, because chunks go later than files": {
			jobs: []backend.Job{{Name: "scratch-await-empty-1"}, {Name: "scratch-migrate-1", Succeeded: true, Ended: noon.Add(-time.Minute)}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := draining(t)
			in.Jobs = append(in.Jobs, c.jobs...)
			g.Expect(New().Observe(in).Repeat).To(Equal(c.repeats))
		})
	}
}

// takenOut is a filesystem whose target was drained, and whose disk was then taken out of the spec.
func takenOut(t *testing.T) backend.Input {
	t.Helper()
	in := draining(t)
	for _, name := range drain.JobNames(in.FileSystem, 1) {
		in.Jobs = append(in.Jobs, backend.Job{Name: name, Component: componentDrain, Succeeded: true, Ended: noon})
	}
	agentSaysEmpty(&in)
	in = recorded(t, in)
	in.Targets = slices.DeleteFunc(in.Targets, func(d v1alpha1.StorageTarget) bool { return d.Name == ssd0 })
	return in
}

// drained records for all targets when they were drained.
func drained(in backend.Input, when *metav1.Time) {
	for _, given := range in.Given() {
		for j := range given.Targets {
			given.Targets[j].Drained = when
		}
	}
}

func TestTrap6OnlyWhatWasProvenEmptyAndTakenOutIsForgotten(t *testing.T) {
	g := NewWithT(t)
	in := takenOut(t)
	g.Expect(workOf(in).commands).To(BeEmpty(), "its server still serves it")
	in.State.Targets[slices.IndexFunc(in.State.Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && s.ID == 1 })].Online = false
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements("--removetarget 1"))

	drained(in, nil)
	g.Expect(workOf(in).commands).To(BeEmpty(), "what was never proven to be empty stays")
}

func TestTrap5NoMetadataServerIsEverRemoved(t *testing.T) {
	for _, version := range versions {
		g := NewWithT(t)
		in := healthy(t, version)
		for i := range in.Targets {
			in.Targets[i].Spec.Remove = true
		}
		for i := range in.State.Servers {
			in.State.Servers[i].Online = false
		}
		for i := range in.State.Targets {
			in.State.Targets[i].Online = false
		}
		in.Targets = slices.DeleteFunc(in.Targets, func(d v1alpha1.StorageTarget) bool { return d.Spec.Role == v1alpha1.RoleMetadata })
		in.FileSystem.Spec.MetadataServers.NodeSelector = labels("nowhere")
		drained(in, new(metav1.NewTime(noon)))
		g.Expect(workOf(in).commands).To(BeEmpty())
		g.Expect(look(in).retirable()).To(BeEmpty())
	}
}

func TestAStorageServerWithoutTargetsIsForgottenAndRetired(t *testing.T) {
	g := NewWithT(t)
	in := takenOut(t)
	in.Targets = slices.DeleteFunc(in.Targets, func(d v1alpha1.StorageTarget) bool { return d.Name == ssd1 })
	for j := range recordOf(in, "storage-ssd.oss1").Targets {
		recordOf(in, "storage-ssd.oss1").Targets[j].Drained = new(metav1.NewTime(noon))
	}
	in.State.Targets = slices.DeleteFunc(in.State.Targets, func(s backend.Target) bool {
		return s.Role == v1alpha1.RoleStorage && (s.ID == 1 || s.ID == 2)
	})
	serverOf(in, v1alpha1.RoleStorage, recordOf(in, "storage-ssd.oss1").ID).Online = false
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(HaveExactElements(HaveField("Reason", v1alpha1.ReasonPoolsNotPlaced)), "nobody misses it: %v", seen.Problems)
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements("--removenode --nodetype=storage 1"))
	g.Expect(look(in).retirable()).To(BeEmpty())

	in.State.Servers = slices.DeleteFunc(in.State.Servers, func(s backend.Server) bool { return s.Name == "storage-ssd.oss1" })
	g.Expect(look(in).retirable()).To(HaveExactElements("storage-ssd.oss1"))
	in = recorded(t, in)
	seen = New().Observe(in)
	g.Expect(seen.Problems).To(BeEmpty())
	g.Expect(seen.Servers).NotTo(ContainElement(HaveField("Name", "storage-ssd.oss1")))
}

func TestAStorageServerIsRestartedForADisk(t *testing.T) {
	const proven = -10 * time.Minute
	cases := map[string]struct {
		change func(in *backend.Input)
		why    string
		safe   bool
	}{
		"that was proven after it had started": {
			change: func(in *backend.Input) { toldOf(in, ssd0).Online = false }, why: "the disk " + ssd0 + " is proven", safe: true,
		},
		"that has not registered yet": {
			change: func(in *backend.Input) {
				id := idOf(*in, ssd0)
				in.State.Targets = slices.DeleteFunc(in.State.Targets, func(s backend.Target) bool { return s.Role == v1alpha1.RoleStorage && s.ID == id })
			},
			why: "is proven", safe: true,
		},
		"trap 4: not when it started after the disk was proven, because BeeGFS refuses its number": {
			change: func(in *backend.Input) {
				toldOf(in, ssd0).Online = false
				podOf(in, componentStorage, "oss1").Started = noon.Add(proven + 2*backend.DefaultTellTime)
				in.Pods[slices.IndexFunc(in.Pods, func(p backend.Pod) bool { return p.StoragePool == "ssd" && p.Node == "oss1" })].Started = noon.Add(proven + 2*backend.DefaultTellTime)
			},
		},
		"not while it is not proven": {
			change: func(in *backend.Input) {
				toldOf(in, ssd0).Online = false
				unready(diskOf(in, ssd0), v1alpha1.ReasonTargetMissing, "gone")
			},
		},
		"but not safely while another server is away": {
			change: func(in *backend.Input) {
				toldOf(in, ssd0).Online = false
				silent(in, "meta-0.oss2")
			},
			why: "is proven",
		},
		"but not safely while another storage server is away": {
			change: func(in *backend.Input) {
				toldOf(in, ssd0).Online = false
				silent(in, "storage-bulk.oss1")
				in.Pods = slices.DeleteFunc(in.Pods, func(p backend.Pod) bool { return p.StoragePool == "bulk" && p.Node == "oss1" })
			},
			why: "is proven",
		},
		"but not safely while data is not the same on both sides": {
			change: func(in *backend.Input) {
				toldOf(in, ssd0).Online = false
				toldOf(in, ssd2).Consistency = cli.Behind
			},
			why: "is proven",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t, "7.4.6")
			for i := range in.Targets {
				in.Targets[i].Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(proven))
			}
			c.change(&in)
			restarts := New().Observe(in).Restarts
			if c.why == "" {
				g.Expect(restarts).To(BeEmpty())
				return
			}
			g.Expect(restarts).To(HaveLen(1))
			g.Expect(restarts[0].Pod.Name).To(Equal("storage-ssd--oss1"))
			g.Expect(restarts[0].Why).To(ContainSubstring(c.why))
			g.Expect(restarts[0].Safe).To(Equal(c.safe))
		})
	}
}

func TestAStorageServerReleasesARemovedDiskOnce(t *testing.T) {
	g := NewWithT(t)
	in := takenOut(t)
	restarts := New().Observe(in).Restarts
	g.Expect(restarts).To(HaveExactElements(And(HaveField("Pod.Name", "storage-ssd--oss1"), HaveField("Why", ContainSubstring("was emptied and taken out")),
		HaveField("Safe", true))))
	for i := range in.Pods {
		in.Pods[i].Started, in.Pods[i].Seen = noon.Add(-time.Minute), noon.Add(-time.Minute)
	}
	g.Expect(New().Observe(in).Restarts).To(BeEmpty(), "BeeGFS lists the target as online for some minutes more")

	for _, given := range in.Given() {
		for j := range given.Targets {
			if t := &given.Targets[j]; t.Drained != nil {
				t.TakenOut = new(metav1.NewTime(noon.Add(-90 * time.Second)))
			}
		}
	}
	g.Expect(New().Observe(in).Restarts).To(HaveLen(1), "it has started before it could know that the disk was taken out")
	for i := range in.Pods {
		in.Pods[i].Started, in.Pods[i].Seen = noon.Add(-20*time.Second), noon.Add(-20*time.Second)
	}
	g.Expect(New().Observe(in).Restarts).To(BeEmpty(), "it knows")
}

func TestADeadTargetOfADecommissionedNodeIsMissingUntilAPersonRemovesIt(t *testing.T) {
	g := NewWithT(t)
	in := takenOut(t)
	in.Targets = slices.DeleteFunc(in.Targets, func(d v1alpha1.StorageTarget) bool { return d.Name == ssd1 })
	drained(in, nil)
	offline := func(role v1alpha1.Role, id int32) {
		for i := range in.State.Targets {
			if role == v1alpha1.RoleStorage && in.State.Targets[i].Role == role && in.State.Targets[i].ID == id {
				in.State.Targets[i].Online = false
			}
		}
	}
	offline(v1alpha1.RoleStorage, 1)
	offline(v1alpha1.RoleStorage, 2)
	serverOf(in, v1alpha1.RoleStorage, 1).Online = false
	seen := New().Observe(in)
	g.Expect(seen.Problems).To(ContainElement(And(HaveField("Reason", v1alpha1.ReasonTargetsMissing),
		HaveField("Message", ContainSubstring("remove the target from BeeGFS by hand")))))
	g.Expect(workOf(in).commands).To(BeEmpty(), "it may hold the only copy: nothing of it is removed by itself")

	in.State.Targets = slices.DeleteFunc(in.State.Targets, func(s backend.Target) bool {
		return s.Role == v1alpha1.RoleStorage && (s.ID == 1 || s.ID == 2)
	})
	g.Expect(New().Observe(in).Problems).To(BeEmpty(), "a person has removed both")
	g.Expect(workOf(in).commands).To(BeEmpty(), "and removes the server as well")
	g.Expect(look(in).retirable()).To(BeEmpty())

	in.State.Servers = slices.DeleteFunc(in.State.Servers, func(s backend.Server) bool { return s.Name == "storage-ssd.oss1" })
	g.Expect(look(in).retirable()).To(HaveExactElements("storage-ssd.oss1"))
	in.State.Targets = nil
	g.Expect(look(in).retirable()).To(BeEmpty(), "an answer without any target is none")
}

func TestHowDataComesElsewhere(t *testing.T) {
	cases := map[string]struct {
		change func(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget)
		// never, writers, waits and moves are the beginnings of the parts of the answer; "" means that the part is empty.
		never, writers, waits, moves string
	}{
		"trap 5: metadata never does": {
			change: func(_ *v1alpha1.FileSystem, t *v1alpha1.StorageTarget) { t.Spec.Role = v1alpha1.RoleMetadata },
			never:  "BeeGFS can't move metadata to another server",
		},
		"the store of the management service never does": {
			change: func(_ *v1alpha1.FileSystem, t *v1alpha1.StorageTarget) { t.Spec.Role = v1alpha1.RoleManagement },
			never:  "the management service can't be moved to another disk: without its store BeeGFS forgets ids, pools and mirrors",
		},
		"what is in a buddy group never does": {
			change: func(_ *v1alpha1.FileSystem, t *v1alpha1.StorageTarget) { t.Spec.StoragePool = "safe" },
			never:  "storage pool safe is mirrored, and BeeGFS can't take a target out of a buddy group",
		},
		"what nodes have mounted waits until a person says that nothing writes": {
			change:  func(*v1alpha1.FileSystem, *v1alpha1.StorageTarget) {},
			writers: "the filesystem is mounted on c1, c3, and BeeGFS moves files without locking them",
			waits:   "waiting until the target is in BeeGFS's pool draining, which gets no new files", moves: "the filesystem moves the data elsewhere: ",
		},
		"and goes on when a person has said so": {
			change: func(_ *v1alpha1.FileSystem, t *v1alpha1.StorageTarget) { t.Spec.WritersStopped = true },
			waits:  "waiting until the target is in BeeGFS's pool draining", moves: "the filesystem moves the data elsewhere: ",
		},
		"what no node mounts says who has to move it": {
			change: func(fs *v1alpha1.FileSystem, _ *v1alpha1.StorageTarget) {
				fs.Spec.Clients = nil
			},
			waits: "waiting until the target is in BeeGFS's pool draining", moves: "BeeGFS places no new files on it",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fs := &v1alpha1.FileSystem{
				Spec: v1alpha1.FileSystemSpec{
					StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd", Copies: 1}, {Name: "safe", Copies: 2}},
					Clients:      &v1alpha1.ClientsSpec{MountPath: "/mnt/scratch"},
				},
			}
			target := &v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{Role: v1alpha1.RoleStorage, StoragePool: "ssd"}}
			c.change(fs, target)
			begins := func(with string) OmegaMatcher {
				if with == "" {
					return BeEmpty()
				}
				return HavePrefix(with)
			}
			var mounted []string
			if fs.Spec.Clients != nil {
				mounted = []string{"c1", "c3"}
			}
			NewWithT(t).Expect(New().Removal(fs, target, mounted)).To(MatchAllFields(Fields{
				"Never": begins(c.never), "Writers": begins(c.writers), "Waits": begins(c.waits), "Moves": begins(c.moves),
			}))
		})
	}
}
