package moosefs

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// askedToRemove marks a target for removal, as a person and then the operator do.
func askedToRemove(t *v1alpha1.StorageTarget, since time.Time) {
	t.Spec.Remove = true
	unmet(t, v1alpha1.ConditionSafeToRemove, v1alpha1.ReasonMovingData, "", since)
}

func TestAChunkserverIsRestartedForADisk(t *testing.T) {
	const last = "0000000f" // the second disk of the SSD pool on n2
	tooFewCopies := func(in *backend.Input) { in.State.Data.Endangered = 5 }
	missing := func(t *v1alpha1.StorageTarget) {
		unmet(t, v1alpha1.ConditionReady, v1alpha1.ReasonTargetMissing, "gone", noon)
	}
	cases := map[string]struct {
		change func(in *backend.Input)
		// why is empty if it is not.
		why  string
		safe bool
	}{
		"that was proven after it had started": {func(in *backend.Input) { drop(in, last) }, "is proven, and the chunkserver has not taken it up", true},
		"that comes back while data has too few copies": {func(in *backend.Input) {
			drop(in, last)
			tooFewCopies(in)
		}, "is proven", true},
		"not while MooseFS has not counted its data": {func(in *backend.Input) {
			drop(in, last)
			in.State.Data.Known = false
		}, "is proven", false},
		"not when it started after the disk was proven, because MooseFS refuses the disk": {func(in *backend.Input) {
			drop(in, last)
			for i := range in.Pods {
				in.Pods[i].Started = noon.Add(backend.DefaultTellTime)
			}
		}, "", false},
		"not at once, because the change may not have reached the node": {func(in *backend.Input) {
			drop(in, last)
			in.State.Asked = noon.Add(backend.DefaultTellTime - time.Second)
		}, "", false},
		"that was away, so that MooseFS gave it up, and is proven again": {func(in *backend.Input) {
			lastOf(in).Online, lastOf(in).Status = false, "damaged"
		}, "is proven", true},
		"not when it was given up since, because a restart did not mend it": {func(in *backend.Input) {
			lastOf(in).Online, lastOf(in).Status = false, "damaged"
			for i := range in.Pods {
				in.Pods[i].Started = noon.Add(backend.DefaultTellTime)
			}
		}, "", false},
		"not while it is scanned": {func(in *backend.Input) {
			lastOf(in).Online, lastOf(in).Status = false, "scanning"
		}, "", false},
		"not while it is not proven": {func(in *backend.Input) {
			drop(in, last)
			missing(&in.Targets[6])
		}, "", false},
		"not while it does not tell its disks": {func(in *backend.Input) {
			drop(in, last)
			drop(in, "0000000e")
			in.State.Targets = append(in.State.Targets, backend.Target{IP: "10.0.0.2", Port: 9435, Status: "server unreachable"})
		}, "", false},
		"while another disk of the pool waits for a person": {func(in *backend.Input) {
			drop(in, last)
			missing(&in.Targets[2])
			drop(in, "0000000b")
		}, "is proven", true},
		"but not safely while another chunkserver is away": {func(in *backend.Input) {
			drop(in, last)
			in.State.Servers[1].Online = false
		}, "is proven", false},
		"but not safely while a directory of another pool is not online": {func(in *backend.Input) {
			drop(in, last)
			in.FileSystem.Spec.StoragePools[1].Targets = v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/hdd0"}}
		}, "is proven", false},
		"but not safely while a client has not mounted": {func(in *backend.Input) {
			drop(in, last)
			in.Pods[3].Ready = false
		}, "is proven", false},
		"that is to be emptied": {func(in *backend.Input) { askedToRemove(&in.Targets[6], noon) }, "is to be emptied", true},
		"that is to be emptied, but not while data has too few copies": {func(in *backend.Input) {
			askedToRemove(&in.Targets[6], noon)
			tooFewCopies(in)
		}, "is to be emptied", false},
		"not when MooseFS knows that it is to be emptied": {func(in *backend.Input) {
			askedToRemove(&in.Targets[6], noon)
			lastOf(in).Removing = true
		}, "", false},
		"not when it started after that was asked":           {func(in *backend.Input) { askedToRemove(&in.Targets[6], noon.Add(-3*backend.DefaultTellTime)) }, "", false},
		"not before the operator has seen that it was asked": {func(in *backend.Input) { in.Targets[6].Spec.Remove = true }, "", false},
		"that is to stay after all":                          {func(in *backend.Input) { lastOf(in).Removing = true }, "is to stay", true},
		"that was emptied and taken out of the filesystem": {func(in *backend.Input) {
			lastOf(in).Removing, lastOf(in).Removable = true, true
			in.Targets = in.Targets[:6]
		}, "is empty and to be released", true},
		"not for one that was taken out with data on it": {func(in *backend.Input) {
			lastOf(in).Removing = true
			in.Targets = in.Targets[:6]
		}, "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthyOnDisks(t)
			c.change(&in)
			seen := New().Observe(in)
			if c.why == "" {
				g.Expect(seen.Restarts).To(BeEmpty())
				return
			}
			g.Expect(seen.Restarts).To(HaveLen(1), "the other chunkservers are not restarted")
			g.Expect(seen.Restarts[0].Pod.Name).To(Equal("chunkserver-ssd-n2"))
			g.Expect(seen.Restarts[0].Why).To(ContainSubstring(c.why))
			g.Expect(seen.Restarts[0].Safe).To(Equal(c.safe))
		})
	}
}

func TestTwoChunkserversThatMissADiskDoNotWaitForEachOther(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	drop(&in, "0000000f")
	drop(&in, "0000000b")
	in.State.Data.Endangered = 5
	seen := New().Observe(in)
	g.Expect(seen.Problems).NotTo(BeEmpty())
	g.Expect(seen.Restarts).To(HaveLen(2))
	g.Expect(seen.Restarts).To(HaveEach(HaveField("Safe", true)))
}

func TestADiskIsRemovableWhenMooseFSReportsIt(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	askedToRemove(&in.Targets[6], noon)
	lastOf(&in).Removing = true
	seen := statusOf(New().Observe(in), "scratch-ssd-0000000f")
	g.Expect(seen.Removing).To(BeTrue())
	g.Expect(seen.Removable).To(BeFalse())
	lastOf(&in).Removable = true
	g.Expect(statusOf(New().Observe(in), "scratch-ssd-0000000f").Removable).To(BeTrue())
}

func TestADiskWhoseDataNoOtherServerCanTakeIsReported(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	askedToRemove(&in.Targets[6], noon)
	said := func() string { return statusOf(New().Observe(in), "scratch-ssd-0000000f").Message }
	g.Expect(said()).To(BeEmpty(), "MooseFS does not know yet that it leaves")
	lastOf(&in).Removing = true
	g.Expect(said()).To(And(ContainSubstring("the other servers of storage pool ssd can't take its data"),
		ContainSubstring("1 of the 2 that 2 copies need"), ContainSubstring("add a node to the pool")))
	in.FileSystem.Spec.StoragePools[0].Copies = 1
	g.Expect(said()).To(BeEmpty(), "one copy moves to the other server")
	in.FileSystem.Spec.StoragePools[0].Copies = 2
	lastOf(&in).Removable = true
	g.Expect(said()).To(BeEmpty(), "nothing is on it")
}

func TestALostDiskIsRemovableWhenItsDataHasItsCopiesElsewhere(t *testing.T) {
	cases := map[string]struct {
		change    func(in *backend.Input)
		removable bool
	}{
		"all data has its copies":  {func(*backend.Input) {}, true},
		"some has too few":         {func(in *backend.Input) { in.State.Data.Undergoal = 1 }, false},
		"some has none":            {func(in *backend.Input) { in.State.Data.Missing = 1 }, false},
		"the data is not counted":  {func(in *backend.Input) { in.State.Data.Known = false }, false},
		"it was lost a moment ago": {func(in *backend.Input) { in.State.Asked = noon.Add(settle) }, false},
		"the clock of its node says that it was lost long ago, and the operator saw it a moment ago": {func(in *backend.Input) {
			in.Since["lost"] = in.State.Asked.Add(-settle)
		}, false},
		"the operator has not seen that it was lost": {func(in *backend.Input) { in.Since = nil }, false},
		"its removal is not requested":               {func(in *backend.Input) { in.Targets[6].Spec.Remove = false }, false},
		"its chunkserver hides its disks": {func(in *backend.Input) {
			in.State.Targets = append(in.State.Targets, backend.Target{IP: "10.0.0.2", Port: 9435})
		}, false},
		"MooseFS still uses it": {func(in *backend.Input) {
			in.State.Targets = append(in.State.Targets, backend.Target{IP: "10.0.0.2", Port: 9435, Path: diskAt("scratch-ssd-0000000f/chunkserver/data/"), Online: true, Status: "ok"})
		}, false},
		"the disk is proven, so MooseFS can": {func(in *backend.Input) { in.Targets[6] = removed(aTarget("scratch-ssd-0000000f", "n2", "ssd")) }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := healthyOnDisks(t)
			askedToRemove(&in.Targets[6], noon)
			unmet(&in.Targets[6], v1alpha1.ConditionReady, v1alpha1.ReasonTargetMissing, "gone", noon)
			in.Targets[6].UID, in.Since = "lost", map[types.UID]time.Time{"lost": noon}
			drop(&in, "0000000f")
			c.change(&in)
			seen := New().Observe(in)
			g.Expect(statusOf(seen, "scratch-ssd-0000000f").Removable).To(Equal(c.removable))
			if c.removable {
				g.Expect(seen.Problems).To(BeEmpty(), "what is not needed is not missed")
			}
		})
	}
}

func removed(t v1alpha1.StorageTarget) v1alpha1.StorageTarget {
	askedToRemove(&t, noon)
	return t
}

func TestAPoolWhoseDisksHaveNoInodeLeftIsFull(t *testing.T) {
	g := NewWithT(t)
	in := healthyOnDisks(t)
	inodes := func(used int32) (full, nearly []string) {
		for i := range in.Targets {
			in.Targets[i].Status.UsedInodesPerMille = used
		}
		seen := New().Observe(in)
		return seen.Full(in.FileSystem.Spec.StoragePools)
	}
	full, nearly := inodes(500)
	g.Expect(append(full, nearly...)).To(BeEmpty())
	_, nearly = inodes(940)
	g.Expect(nearly).To(ContainElement("ssd (94% of inodes in use)"))
	full, _ = inodes(1000)
	g.Expect(full).To(ContainElement(And(HavePrefix("ssd ("), ContainSubstring("100% of inodes"))))
}

func TestAPoolWhoseDirectoriesHaveNoInodeLeftIsFull(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t)
	full := func(used int32) []string {
		for i := range in.FileSystemNodes {
			agent := &v1alpha1.NodeAgentStatus{}
			for _, name := range []string{"/data/ssd0", "/data/ssd1"} {
				agent.Directories = append(agent.Directories, v1alpha1.DirectoryInodes{Name: name, UsedInodesPerMille: used})
			}
			in.FileSystemNodes[i].Status.Agent = agent
		}
		seen := New().Observe(in)
		full, _ := seen.Full(in.FileSystem.Spec.StoragePools)
		return full
	}
	g.Expect(full(900)).To(BeEmpty())
	g.Expect(full(1000)).To(HaveExactElements(And(HavePrefix("ssd (4 of 4 targets are full"), ContainSubstring("100% of inodes"))), "bulk has other directories")
}
