package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestStalledIsWhatAPersonMustDoAndReconcilingWhatComesByItself(t *testing.T) {
	disk := func(name string, made bool, conditions ...string) v1alpha1.StorageTarget {
		out := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if made {
			out.Status.Provisioned = &v1alpha1.TargetProvisioned{Finished: new(metav1.Now())}
		}
		for _, kind := range conditions {
			out.Status.Conditions = append(out.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		return out
	}
	proven, dead := disk("proven", true, v1alpha1.ConditionReady), disk("dead", true, v1alpha1.ConditionStalled)
	asking, making := disk("asking", false, v1alpha1.ConditionStalled), disk("making", false, v1alpha1.ConditionReconciling)
	leaving := disk("leaving", true, v1alpha1.ConditionStalled)
	leaving.DeletionTimestamp = new(metav1.Now())
	online := func(names ...string) (out []backend.TargetStatus) {
		for _, name := range names {
			out = append(out, backend.TargetStatus{StorageTarget: name, Node: "n-" + name, Online: true})
		}
		return out
	}
	away := func(names ...string) []backend.TargetStatus {
		out := online(names...)
		for i := range out {
			out[i].Online = false
		}
		return out
	}
	stop := &backend.InvalidSpecError{Reason: v1alpha1.ReasonOptionRefused, Message: "no such option"}
	const none = ""
	for name, c := range map[string]struct {
		problems []string
		targets  []backend.TargetStatus
		own      []v1alpha1.StorageTarget
		down     bool
		metadata string
		stop     *backend.InvalidSpecError
		// The reasons of the conditions.
		ready, reconciling, stalled, degraded string
	}{
		"all is well": {targets: online("proven"), own: []v1alpha1.StorageTarget{proven}, ready: v1alpha1.ReasonHealthy},
		"a new disk waits for an approval": {
			problems: []string{v1alpha1.ReasonTargetsNotReady}, targets: away("asking"), own: []v1alpha1.StorageTarget{proven, asking},
			ready: v1alpha1.ReasonDegradedService, stalled: v1alpha1.ReasonTargetsNotReady, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"a disk is being made": {
			problems: []string{v1alpha1.ReasonTargetsNotReady}, targets: away("making"), own: []v1alpha1.StorageTarget{proven, making},
			ready: v1alpha1.ReasonDegradedService, reconciling: v1alpha1.ReasonTargetsNotReady, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"one disk is being made, and another one waits for an approval": {
			problems: []string{v1alpha1.ReasonTargetsNotReady}, targets: away("making", "asking"), own: []v1alpha1.StorageTarget{making, asking},
			ready: v1alpha1.ReasonDegradedService, reconciling: v1alpha1.ReasonTargetsNotReady, stalled: v1alpha1.ReasonTargetsNotReady,
			degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"a disk of another cluster has to be read": {
			problems: []string{v1alpha1.ReasonRecordsUnread}, own: []v1alpha1.StorageTarget{asking}, down: true,
			ready: v1alpha1.ReasonRecordsUnread, stalled: v1alpha1.ReasonRecordsUnread, degraded: v1alpha1.ReasonRecordsUnread,
		},
		"nothing is assigned before a disk of another cluster was read": {
			problems: []string{v1alpha1.ReasonRecordsUnread, v1alpha1.ReasonStarting}, own: []v1alpha1.StorageTarget{asking}, down: true,
			ready: v1alpha1.ReasonRecordsUnread, stalled: v1alpha1.ReasonRecordsUnread, degraded: v1alpha1.ReasonRecordsUnread,
		},
		"the disk of new metadata waits for an approval": {
			problems: []string{v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonStarting}, own: []v1alpha1.StorageTarget{proven, asking}, down: true,
			metadata: "asking", ready: v1alpha1.ReasonTargetsNotReady, stalled: v1alpha1.ReasonTargetsNotReady, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"a new filesystem starts, and a disk waits for an approval": {
			problems: []string{v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonStarting}, own: []v1alpha1.StorageTarget{proven, asking}, down: true,
			metadata: "proven", ready: v1alpha1.ReasonTargetsNotReady, reconciling: v1alpha1.ReasonStarting, stalled: v1alpha1.ReasonTargetsNotReady,
			degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"the disk of the metadata is dead": {
			problems: []string{v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonMetadataOffline}, own: []v1alpha1.StorageTarget{proven, dead}, down: true,
			metadata: "dead", ready: v1alpha1.ReasonTargetsNotReady, stalled: v1alpha1.ReasonTargetsNotReady, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"a disk is read in a moment": {
			problems: []string{v1alpha1.ReasonRecordsUnread}, own: []v1alpha1.StorageTarget{making},
			ready: v1alpha1.ReasonDegradedService, reconciling: v1alpha1.ReasonRecordsUnread, degraded: v1alpha1.ReasonRecordsUnread,
		},
		"one disk of many is dead, and all data has its copies": {
			problems: []string{v1alpha1.ReasonTargetsNotReady}, targets: append(online("proven"), away("dead")...), own: []v1alpha1.StorageTarget{proven, dead},
			ready: v1alpha1.ReasonDegradedService, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"one disk of many is dead, and its copies are being made again": {
			problems: []string{v1alpha1.ReasonTargetsMissing, v1alpha1.ReasonChunksEndangered}, targets: append(online("proven"), away("dead")...),
			own: []v1alpha1.StorageTarget{proven, dead}, ready: v1alpha1.ReasonDegradedService, reconciling: v1alpha1.ReasonChunksEndangered,
			degraded: v1alpha1.ReasonTargetsMissing,
		},
		"the only disk of a server is dead": {
			problems: []string{v1alpha1.ReasonServersMissing}, targets: away("dead"), own: []v1alpha1.StorageTarget{proven, dead},
			ready: v1alpha1.ReasonDegradedService, degraded: v1alpha1.ReasonServersMissing,
		},
		"programs stand still without a dead disk": {
			problems: []string{v1alpha1.ReasonTargetsNotReady}, targets: away("dead"), own: []v1alpha1.StorageTarget{proven, dead}, down: true,
			ready: v1alpha1.ReasonTargetsNotReady, stalled: v1alpha1.ReasonTargetsNotReady, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"a disk is dead, and another server is away": {
			problems: []string{v1alpha1.ReasonTargetsMissing}, targets: away("dead", "proven"), own: []v1alpha1.StorageTarget{proven, dead},
			ready: v1alpha1.ReasonDegradedService, reconciling: v1alpha1.ReasonTargetsMissing, degraded: v1alpha1.ReasonTargetsMissing,
		},
		"a disk is released": {
			problems: []string{v1alpha1.ReasonTargetsNotReady}, own: []v1alpha1.StorageTarget{proven, leaving},
			ready: v1alpha1.ReasonDegradedService, reconciling: v1alpha1.ReasonTargetsNotReady, degraded: v1alpha1.ReasonTargetsNotReady,
		},
		"a license is missing behind pods that come back": {
			problems: []string{v1alpha1.ReasonClientsMissing, v1alpha1.ReasonLicenseMissing}, ready: v1alpha1.ReasonDegradedService,
			reconciling: v1alpha1.ReasonClientsMissing, stalled: v1alpha1.ReasonLicenseMissing, degraded: v1alpha1.ReasonClientsMissing,
		},
		"a pod goes in the next moment, and a version is refused": {
			problems: []string{v1alpha1.ReasonUpgradeRefused, v1alpha1.ReasonRestarting}, ready: v1alpha1.ReasonRestarting,
			reconciling: v1alpha1.ReasonRestarting, stalled: v1alpha1.ReasonUpgradeRefused,
		},
		"a version is refused": {
			problems: []string{v1alpha1.ReasonUpgradeRefused}, ready: v1alpha1.ReasonHealthy, stalled: v1alpha1.ReasonUpgradeRefused,
		},
		"an option is refused, and a client comes back": {
			problems: []string{v1alpha1.ReasonClientsMissing}, stop: stop, ready: v1alpha1.ReasonDegradedService, stalled: v1alpha1.ReasonOptionRefused,
			degraded: v1alpha1.ReasonClientsMissing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			observation := backend.Observation{Serves: !c.down, Targets: c.targets}
			for i := range c.targets {
				if t := &c.targets[i]; t.StorageTarget == "dead" {
					observation.Servers = append(observation.Servers, backend.ServerStatus{Role: v1alpha1.RoleStorage, Node: t.Node})
				}
			}
			for _, reason := range c.problems {
				observation.Problems = append(observation.Problems, backend.Problem{Reason: reason, Message: "the words of " + reason})
			}
			fs := &v1alpha1.FileSystem{}
			if c.metadata != "" {
				fs.Status.Metadata = &v1alpha1.MetadataRecord{Target: c.metadata}
			}
			describe(fs, observation, c.own, c.stop, false, false, metav1.Now().Time)
			got := map[string]string{}
			for _, is := range fs.Status.Conditions {
				got[is.Type] = is.Reason
			}
			want := map[string]string{v1alpha1.ConditionReady: c.ready}
			for kind, reason := range map[string]string{
				v1alpha1.ConditionReconciling: c.reconciling, v1alpha1.ConditionStalled: c.stalled, v1alpha1.ConditionDegraded: c.degraded,
			} {
				if reason != none {
					want[kind] = reason
				}
			}
			g.Expect(got).To(Equal(want))
		})
	}
}

func TestAMountThatIsAwayWithItsNodeIsNoDamageAndIsNotCalledHealthy(t *testing.T) {
	g := NewWithT(t)
	observation := backend.Observation{Serves: true, Clients: []backend.Client{{Node: "n1", Mounted: true}, {Node: "n4", Message: "the node is not Ready"}}}
	observation.Summary = v1alpha1.FileSystemSummary{Servers: "3/3", Targets: "6/6", Clients: "1/2"}
	fs := &v1alpha1.FileSystem{}
	describe(fs, observation, nil, nil, false, false, metav1.Now().Time)
	g.Expect(fs.Status.Conditions).To(ConsistOf(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionTrue),
		HaveField("Reason", v1alpha1.ReasonClientsAway), HaveField("Message",
			"3/3 servers and 6/6 targets are online, 1/2 clients have mounted; without a mount: n4 (the node is not Ready)"))))
}
