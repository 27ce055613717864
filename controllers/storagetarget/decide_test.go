package storagetarget

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

// oneTarget is a provisioned target of pool ssd on a node with an agent, whose filesystem lists it as online.
func oneTarget() facts {
	return facts{
		node: true, agent: true,
		observed: &views.Target{
			Generation: 3, Service: &v1alpha1.TargetService{State: v1alpha1.StateOnline, CapacityBytes: 4 << 40, UsedBytes: 1 << 40},
			Removal: &backend.Removal{Waits: "waiting until it is told", Moves: "it is moved: "},
		},
		target: &v1alpha1.StorageTarget{
			ObjectMeta: metav1.ObjectMeta{Name: "scratch-ssd-01234567", Namespace: "storage", Generation: 3},
			Spec: v1alpha1.StorageTargetSpec{
				FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "1-2-3"}, Node: "oss1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
				Device: v1alpha1.DeviceIdentity{ID: "wwn-0x5000c500a1b2c3d4", Serial: "ZA123", SizeBytes: 4 << 40},
			},
			Status: v1alpha1.StorageTargetStatus{
				Provisioned: &v1alpha1.TargetProvisioned{UUID: "aaaa-bbbb"}, Capacity: "3.6TiB",
			},
		},
		fileSystem: &v1alpha1.FileSystem{
			ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "1-2-3"},
		},
	}
}

func TestOnline(t *testing.T) {
	cases := map[string]struct {
		change  func(f *facts)
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"a target that the filesystem lists is online": {
			change: func(*facts) {}, status: yes, reason: v1alpha1.ReasonServing,
		},
		"a target that serves without an agent is online all the same": {
			change: func(f *facts) { f.agent = false }, status: yes, reason: v1alpha1.ReasonServing,
		},
		"a target that does not serve says what the filesystem says": {
			change: func(f *facts) {
				f.observed.Service.State, f.observed.Service.Message = v1alpha1.StateOffline, "it says: damaged"
			},
			status: no, reason: v1alpha1.ReasonNotServing, message: "it says: damaged",
		},
		"a target that is not listed does not serve": {
			change: func(f *facts) { f.observed.Service = nil },
			status: no, reason: v1alpha1.ReasonNotServing, message: "does not list it yet",
		},
		"a target on a node without an agent says how to get one": {
			change: func(f *facts) { f.agent, f.observed.Service = false, nil },
			status: unknown, reason: v1alpha1.ReasonAgentMissing, message: "kubectl label node oss1 parallelfs.dev/agent=",
		},
		"nothing is known while the filesystem itself is not": {
			change: func(f *facts) {
				f.observed.Service.State, f.observed.Silent = v1alpha1.StateOffline, true
			},
			status: unknown, reason: v1alpha1.ReasonProbeUnreachable,
		},
		"the metadata is online when its server is": {
			change: func(f *facts) { f.target.Spec.Role = v1alpha1.RoleMetadata }, status: yes, reason: v1alpha1.ReasonServing,
		},
		"the metadata is not online when its server is not": {
			change: func(f *facts) {
				f.target.Spec.Role = v1alpha1.RoleMetadata
				f.observed.Service.State, f.observed.Service.Message = v1alpha1.StateOffline, "no answer"
			},
			status: no, reason: v1alpha1.ReasonNotServing, message: "no answer",
		},
		"the metadata of a server that is not there yet is not online": {
			change: func(f *facts) {
				f.target.Spec.Role, f.observed.Service = v1alpha1.RoleMetadata, nil
			},
			status: no, reason: v1alpha1.ReasonNotServing, message: "no metadata server runs on it yet",
		},
		"the store of the management service is online when that answers": {
			change: func(f *facts) { f.target.Spec.Role = v1alpha1.RoleManagement },
			status: yes, reason: v1alpha1.ReasonServing, message: "the management service answers",
		},
		"a target without a FileSystem serves nobody": {
			change: func(f *facts) { f.fileSystem = nil }, status: no, reason: v1alpha1.ReasonNotServing, message: "is gone",
		},
		"what a FileSystem said before its deletion counts no more": {
			change: func(f *facts) { now := metav1.Now(); f.fileSystem.DeletionTimestamp = &now },
			status: no, reason: v1alpha1.ReasonNotServing, message: "being deleted",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := oneTarget()
			c.change(&f)
			got := meta.FindStatusCondition(observe(f), v1alpha1.ConditionOnline)
			g.Expect(*got).To(And(HaveField("Status", c.status), HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message)),
				HaveField("ObservedGeneration", int64(3))))
		})
	}
}

func TestSafeToRemove(t *testing.T) {
	serviceOf := func(f *facts) *v1alpha1.TargetService { return f.observed.Service }
	cases := map[string]struct {
		change  func(f *facts)
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"it waits until the filesystem shows it": {
			change: func(*facts) {}, status: no, reason: v1alpha1.ReasonMovingData, message: "waiting",
		},
		"it says how much is left while data is moved": {
			change: func(f *facts) { serviceOf(f).Removal = v1alpha1.RemovalMovingData },
			status: no, reason: v1alpha1.ReasonMovingData, message: "1TiB of 4TiB are left",
		},
		"it is true in the filesystem's own words": {
			change: func(f *facts) { serviceOf(f).Removal = v1alpha1.RemovalDataMoved }, status: yes, reason: v1alpha1.ReasonDataMoved,
		},
		"it says that data can't be moved from a target that is not online": {
			change: func(f *facts) {
				serviceOf(f).Removal, serviceOf(f).State, serviceOf(f).Message = v1alpha1.RemovalMovingData, v1alpha1.StateOffline, "no answer"
			},
			status: no, reason: v1alpha1.ReasonMovingData, message: "1TiB of data are to be moved, and the target is not online: no answer",
		},
		"it is true of a target whose data was moved, and that is not online any more": {
			change: func(f *facts) {
				serviceOf(f).Removal, serviceOf(f).State = v1alpha1.RemovalDataMoved, v1alpha1.StateOffline
			},
			status: yes, reason: v1alpha1.ReasonDataMoved,
		},
		"it waits while the FileSystem is deleted and nothing was seen": {
			change: func(f *facts) { f.fileSystem.DeletionTimestamp, f.observed = new(metav1.Now()), nil },
			status: no, reason: v1alpha1.ReasonMovingData, message: "the filesystem does not list this target",
		},
		"it does not know the data of a FileSystem that is gone": {
			change: func(f *facts) { f.fileSystem = nil }, status: no, reason: v1alpha1.ReasonMovingData, message: "the filesystem does not list this target",
		},
		"a target that the filesystem does not list is not safe to remove": {
			change: func(f *facts) { f.observed.Service = nil }, status: no, reason: v1alpha1.ReasonMovingData, message: "its content is unknown",
		},
		"a target that was taken out while it was safe stays so, though the filesystem no longer lists it": {
			change: func(f *facts) {
				f.observed.Service = nil
				f.target.DeletionTimestamp = new(metav1.Now())
				f.target.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionTrue}}
			},
			status: yes, reason: v1alpha1.ReasonDataMoved, message: "when its server has released it",
		},
		"a target that is deleted and never was safe is not": {
			change: func(f *facts) {
				f.observed.Service = nil
				f.target.DeletionTimestamp = new(metav1.Now())
			},
			status: no, reason: v1alpha1.ReasonMovingData, message: "its content is unknown",
		},
		"what its filesystem can never move is never safe to remove, whatever else is said of it": {
			change: func(f *facts) {
				f.observed.Removal = &backend.Removal{Never: "the store can't be moved"}
				serviceOf(f).Removal = v1alpha1.RemovalDataMoved
			},
			status: no, reason: v1alpha1.ReasonNotRemovable, message: "the store can't be moved; set spec.remove to false",
		},
		"what was seen of it before the request counts nothing": {
			change: func(f *facts) {
				serviceOf(f).Removal = v1alpha1.RemovalDataMoved
				f.observed.Generation = 2
			},
			status: no, reason: v1alpha1.ReasonMovingData, message: "has asked the filesystem about this removal",
		},
		"it waits while no pass over the filesystem has seen the request": {
			change: func(f *facts) { f.observed.Removal = nil }, status: no, reason: v1alpha1.ReasonMovingData, message: "has asked the filesystem about this removal",
		},
		"nor is the metadata of a filesystem that is gone": {
			change: func(f *facts) { f.fileSystem, f.observed, f.target.Spec.Role = nil, nil, v1alpha1.RoleMetadata },
			status: no, reason: v1alpha1.ReasonNotRemovable, message: "FileSystem scratch is gone, so it is unknown whether the data on this target is still needed",
		},
		"the content of a storage target of a removed filesystem is unknown": {
			change: func(f *facts) { f.fileSystem, f.observed = nil, nil }, status: no, reason: v1alpha1.ReasonMovingData, message: "its content is unknown",
		},
		"it waits until a person says that nothing writes, where that is in the way": {
			change: func(f *facts) { f.observed.Removal = &backend.Removal{Writers: "Stop what writes", Waits: "waiting"} },
			status: no, reason: v1alpha1.ReasonClientsMounted, message: "Stop what writes",
		},
		"who writes is of no account when the move has begun": {
			change: func(f *facts) {
				f.observed.Removal = &backend.Removal{Writers: "Stop what writes", Moves: "a client moves it; "}
				serviceOf(f).Removal = v1alpha1.RemovalMovingData
			},
			status: no, reason: v1alpha1.ReasonMovingData, message: "a client moves it; 1TiB of 4TiB are left",
		},
		"what the filesystem says stands behind what it waits for": {
			change: func(f *facts) { serviceOf(f).Message = "pools need a license" },
			status: no, reason: v1alpha1.ReasonMovingData, message: "waiting until it is told; pools need a license",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := oneTarget()
			f.target.Spec.Remove = true
			c.change(&f)
			got := meta.FindStatusCondition(observe(f), v1alpha1.ConditionSafeToRemove)
			g.Expect(*got).To(And(HaveField("Status", c.status), HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message))))
		})
	}
	g := NewWithT(t)
	f := oneTarget()
	serviceOf(&f).Removal = v1alpha1.RemovalDataMoved
	g.Expect(meta.FindStatusCondition(observe(f), v1alpha1.ConditionSafeToRemove)).To(BeNil(), "nobody asked for the removal")
}

// released makes the target one that its agent has unmounted, and confirmed a FileSystem one whose data is to be wiped.
func released(f *facts) {
	at := metav1.Now()
	f.target.Status.Provisioned.Finished = &at
	f.target.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReleased, Status: metav1.ConditionTrue}}
}

func confirmed(f *facts) {
	f.fileSystem.Spec.DeletionPolicy, f.fileSystem.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, string(f.fileSystem.UID)
}

func TestADeletedTargetIsRemovedOnlyAfterItsDiskWasReleasedOrItsNodeDecommissioned(t *testing.T) {
	condition := func(f *facts, kind string, status metav1.ConditionStatus) {
		f.target.Status.Conditions = append(f.target.Status.Conditions, metav1.Condition{Type: kind, Status: status})
	}
	cases := map[string]struct {
		change  func(f *facts)
		goes    string
		message string
	}{
		"a target that is still mounted stays": {change: func(*facts) {}},
		"a target that could not be unmounted stays": {
			change: func(f *facts) { condition(f, v1alpha1.ConditionReleased, no) },
		},
		"a released target goes": {
			change: func(f *facts) { condition(f, v1alpha1.ConditionReleased, yes) }, goes: reasonReleased, message: "what is on it was kept",
		},
		"a released target whose data is to be wiped stays until it was": {
			change: func(f *facts) {
				f.target.Spec.DestroyFor = "1-2-3"
				condition(f, v1alpha1.ConditionReleased, yes)
			},
		},
		"a target whose wipe failed stays": {
			change: func(f *facts) {
				f.target.Spec.DestroyFor = "1-2-3"
				condition(f, v1alpha1.ConditionReleased, yes)
				condition(f, v1alpha1.ConditionDestroyed, no)
			},
		},
		"a wiped target that is mounted still stays": {
			change: func(f *facts) {
				f.target.Spec.DestroyFor = "1-2-3"
				condition(f, v1alpha1.ConditionDestroyed, yes)
			},
		},
		"a wiped target goes": {
			change: func(f *facts) {
				f.target.Spec.DestroyFor = "1-2-3"
				condition(f, v1alpha1.ConditionReleased, yes)
				condition(f, v1alpha1.ConditionDestroyed, yes)
			},
			goes: reasonReleased, message: "its data was wiped",
		},
		"a target on a node that is gone stays, because it holds data": {change: func(f *facts) { f.node, f.agent = false, false }},
		"a decommissioned target is removed, and an event names the loss": {
			change: func(f *facts) {
				f.node, f.agent = false, false
				f.target.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "oss1"}
			},
			goes: reasonGaveUp,
			message: "decommissioned scratch-ssd-01234567 on node oss1 (device wwn-0x5000c500a1b2c3d4, serial ZA123, storage pool ssd), because of its annotation " +
				"parallelfs.dev/give-up: FileSystem scratch has lost what is on the 3.6TiB of the storage pool ssd (UUID aaaa-bbbb)",
		},
		"the store of a decommissioned management service is removed, and an event names the loss": {
			change: func(f *facts) {
				f.target.Spec.Role, f.target.Spec.StoragePool = v1alpha1.RoleManagement, ""
				f.target.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "oss1"}
			},
			goes: reasonGaveUp, message: "of the store of the management service (UUID aaaa-bbbb)",
		},
		"a target of a decommissioned node is removed, and an event names the loss": {
			change: func(f *facts) { f.node, f.agent, f.gaveUp = false, false, true }, goes: reasonGaveUp,
			message: "because node oss1 was decommissioned: FileSystem scratch has lost what is on the 3.6TiB of the storage pool ssd (UUID aaaa-bbbb); the disk was neither unmounted nor wiped",
		},
		"a target stays when another node is decommissioned": {
			change: func(f *facts) { f.target.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: "oss2"} },
		},
		"a target that garbage collection deletes before its FileSystem waits for the wipe that was confirmed": {
			change: func(f *facts) { released(f); confirmed(f); f.fileSystem.DeletionTimestamp = new(metav1.Now()) },
		},
		"so does one whose namespace is deleted, before its FileSystem is": {
			change: func(f *facts) { released(f); confirmed(f); f.namespaceEnds = true },
		},
		"a decommissioned one does not": {
			change: func(f *facts) {
				released(f)
				confirmed(f)
				f.fileSystem.DeletionTimestamp = new(metav1.Now())
				f.target.Annotations = map[string]string{v1alpha1.AnnotationGiveUp: f.target.Spec.Node}
			}, goes: reasonGaveUp, message: "neither unmounted nor wiped",
		},
		"a wipe that was not confirmed is not waited for": {
			change: func(f *facts) {
				released(f)
				confirmed(f)
				f.fileSystem.Spec.ConfirmDestroy = "another"
				f.fileSystem.DeletionTimestamp = new(metav1.Now())
			}, goes: reasonReleased, message: "what is on it was kept",
		},
		"one that is taken out of a FileSystem that lives goes with its data": {
			change: func(f *facts) { released(f); confirmed(f) }, goes: reasonReleased, message: "what is on it was kept",
		},
		"one whose FileSystem is gone goes, and says that its data was kept": {
			change: func(f *facts) { released(f); f.fileSystem = nil }, goes: reasonReleased, message: "what is on it was kept",
		},
		"a target that was never provisioned waits for the agent that could be at it": {
			change: func(f *facts) { f.target.Status.Provisioned = nil },
		},
		"a target that was never provisioned goes when its node is gone": {
			change: func(f *facts) { f.target.Status.Provisioned, f.node = nil, false }, goes: reasonReleased, message: "nothing was written",
		},
		"a target that was never provisioned goes when its node has no agent": {
			change: func(f *facts) { f.target.Status.Provisioned, f.agent = nil, false }, goes: reasonReleased, message: "nothing was written",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := oneTarget()
			c.change(&f)
			reason, message := mayGo(f)
			g.Expect(reason).To(Equal(c.goes))
			g.Expect(message).To(ContainSubstring(c.message))
		})
	}
}

func TestTheReportOfADiskAboutItselfIsACondition(t *testing.T) {
	for name, c := range map[string]struct {
		disk        *v1alpha1.BlockDevice
		unconfirmed string
		status      metav1.ConditionStatus
		reason      string
		message     string
	}{
		"no inventory shows the disk": {},
		"the disk reports nothing":    {disk: &v1alpha1.BlockDevice{KernelName: "sda"}},
		"the disk reports no problem": {
			disk:   &v1alpha1.BlockDevice{KernelName: "sda", Serial: "ZA123", Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskHealthy}},
			status: yes, reason: v1alpha1.ReasonNoProblems, message: "disk sda (serial ZA123) of node oss1 reports no problem",
		},
		"the agent of a disk without problems is dead": {
			disk:        &v1alpha1.BlockDevice{KernelName: "sda", Serial: "ZA123", Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskHealthy}},
			unconfirmed: "its agent is not Ready", status: metav1.ConditionUnknown, reason: v1alpha1.ReasonAgentMissing,
			message: "disk sda (serial ZA123) of node oss1 reported no problem, but its agent is not Ready",
		},
		"the agent of a failing disk is dead": {
			disk:        &v1alpha1.BlockDevice{KernelName: "sda", Serial: "ZA123", Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskFailing, Reasons: []string{"worn"}}},
			unconfirmed: "its agent is not Ready", status: no, reason: v1alpha1.ReasonDiskFailing,
			message: "disk sda (serial ZA123) of node oss1 reports its own failure: worn. Replace it while it still answers: set spec.remove",
		},
		"the disk reports problems": {
			disk: &v1alpha1.BlockDevice{
				KernelName: "sda", Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskSuspect, Reasons: []string{"16 sectors can't be read"}},
			},
			status: no, reason: v1alpha1.ReasonDiskSuspect, message: "disk sda (serial unknown) of node oss1 reports problems: 16 sectors can't be read. Plan its replacement",
		},
		"the disk reports its failure": {
			disk: &v1alpha1.BlockDevice{
				KernelName: "sda", Serial: "ZA123",
				Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskFailing, Reasons: []string{"the media is read-only", "all of its rated endurance is used"}},
			},
			status: no, reason: v1alpha1.ReasonDiskFailing,
			message: "disk sda (serial ZA123) of node oss1 reports its own failure: the media is read-only; all of its rated endurance is used. Replace it while it still answers: set spec.remove",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := oneTarget()
			f.disk, f.observed.Unconfirmed = c.disk, c.unconfirmed
			got := meta.FindStatusCondition(observe(f), v1alpha1.ConditionDiskHealthy)
			if c.reason == "" {
				g.Expect(got).To(BeNil())
				return
			}
			g.Expect(got).To(HaveValue(And(HaveField("Status", c.status), HaveField("Reason", c.reason), HaveField("Message", c.message))))
		})
	}
}
