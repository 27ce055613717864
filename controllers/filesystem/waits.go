package filesystem

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// unproven describes the disks of a FileSystem that are not proven.
type unproven struct {
	// stuck holds the StorageTargets that wait for a person, by name.
	stuck map[string]bool
	// asks is true if the spec is not carried out before that, because one of them is new, or because programs wait for one. A disk that died
	// while programs continue is not part of it; Degraded reports it.
	asks bool
	// goes is true if a disk is being made ready without a person.
	goes bool
}

// unprovenOf describes the StorageTargets of a FileSystem with this observation.
func unprovenOf(own []v1alpha1.StorageTarget, observation backend.Observation) unproven {
	u := unproven{stuck: map[string]bool{}}
	needed := !observation.Serves && !among(observation.Problems, v1alpha1.ReasonDataUnknown)
	is := func(t *v1alpha1.StorageTarget, kind string) bool {
		c := assign.Condition(t, kind)
		return c != nil && c.Status == metav1.ConditionTrue
	}
	for i := range own {
		switch t := &own[i]; {
		case !t.DeletionTimestamp.IsZero():
			u.goes = true
		case is(t, v1alpha1.ConditionStalled):
			u.stuck[t.Name] = true
			u.asks = u.asks || needed || !assign.Finished(t)
		case !is(t, v1alpha1.ConditionReady):
			u.goes = true
		}
	}
	return u
}

// waitsFor returns what ends a problem: a person's action, the operator's own work, or both. Both are false for something that the spec
// does not wait for, such as a disk that died and whose data has copies elsewhere.
func (u unproven) waitsFor(fs *v1alpha1.FileSystem, observation backend.Observation, reason string) (person, itself bool) {
	switch reason {
	case v1alpha1.ReasonPodsRefused, v1alpha1.ReasonAddressChanged, v1alpha1.ReasonPoolFull, v1alpha1.ReasonDaemonRefused,
		v1alpha1.ReasonNoDevices, v1alpha1.ReasonDeviceConflict, v1alpha1.ReasonPinningConflict, v1alpha1.ReasonInvalidSpec,
		v1alpha1.ReasonNoAddress, v1alpha1.ReasonUpgradeRefused, v1alpha1.ReasonLicenseMissing, v1alpha1.ReasonUnknownMembers:
		return true, false
	case v1alpha1.ReasonTargetsNotReady:
		return u.asks, u.goes || len(u.stuck) == 0
	case v1alpha1.ReasonRecordsUnread:
		return u.asks, u.goes || !u.asks
	case v1alpha1.ReasonTargetsMissing:
		return false, u.missesTarget(observation)
	case v1alpha1.ReasonServersMissing:
		return false, u.missesServer(observation)
	case v1alpha1.ReasonStarting, v1alpha1.ReasonMetadataOffline:
		stuck := u.hasMetadata(fs)
		return stuck, !stuck
	default:
		return false, true
	}
}

// hasMetadata reports whether the disk of the metadata is stuck, or nothing is assigned yet because disks are stuck.
func (u unproven) hasMetadata(fs *v1alpha1.FileSystem) bool {
	if fs.Status.Metadata == nil {
		return u.asks && !u.goes
	}
	return u.stuck[fs.Status.Metadata.Target]
}

// missesTarget reports whether a target is away whose disk is not stuck.
func (u unproven) missesTarget(observation backend.Observation) bool {
	for i := range observation.Targets {
		if t := &observation.Targets[i]; !t.Online && !t.Removable && !u.stuck[t.StorageTarget] {
			return true
		}
	}
	return false
}

// missesServer reports whether a server is away for another reason than a stuck disk.
func (u unproven) missesServer(observation backend.Observation) bool {
	type place struct{ node, pool string }
	stuckAt := map[place]bool{}
	for i := range observation.Targets {
		if t := &observation.Targets[i]; u.stuck[t.StorageTarget] {
			stuckAt[place{t.Node, t.StoragePool}] = true
		}
	}
	for i := range observation.Servers {
		s := &observation.Servers[i]
		dead := u.stuck[s.Target] || s.Role == v1alpha1.RoleStorage && stuckAt[place{s.Node, s.StoragePool}]
		if !s.Online && !dead {
			return true
		}
	}
	return false
}
