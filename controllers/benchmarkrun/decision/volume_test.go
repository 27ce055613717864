package decision

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/conditions"
)

func TestARunOnAVolumeNamesWhatItWaitsFor(t *testing.T) {
	const one, many, read = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany
	spread := func(w *scope.Scope, clients int32) {
		w.Run.Spec.Clients.Count = clients
		for i := range w.Plans {
			w.Plans[i] = scopetest.PlanOf(benchmarks.OnEachClient)
		}
		w.Clients = w.Places()
	}
	unbound := func(v *scope.Volume, mode storagev1.VolumeBindingMode) {
		v.Claim.Status.Phase, v.Claim.Status.AccessModes, v.Claim.Spec.VolumeName = corev1.ClaimPending, nil, ""
		v.Class = &storagev1.StorageClass{VolumeBindingMode: &mode}
	}
	for name, c := range map[string]struct {
		modes    []corev1.PersistentVolumeAccessMode
		given    func(w *scope.Scope, v *scope.Volume)
		action   action
		reason   string
		progress conditions.Progress
		says     string
	}{
		"a claim that is bound is measured, and no node is asked for": {action: Start, reason: v1alpha1.ReasonRunning},
		"a claim that is not there is waited for": {
			given:  func(_ *scope.Scope, v *scope.Volume) { v.Claim = nil },
			reason: v1alpha1.ReasonWaitingForVolume, says: "there is no PersistentVolumeClaim data in namespace storage: make it",
		},
		"a claim that its provisioner can't bind is waited for, in its words": {
			given: func(_ *scope.Scope, v *scope.Volume) {
				unbound(v, storagev1.VolumeBindingImmediate)
				v.Trouble = "no pool has 10Gi left"
			},
			reason: v1alpha1.ReasonWaitingForVolume, says: "PersistentVolumeClaim data is not bound to a volume: no pool has 10Gi left",
		},
		"a claim that waits for its first pod gets one": {
			given: func(w *scope.Scope, v *scope.Volume) {
				unbound(v, storagev1.VolumeBindingWaitForFirstConsumer)
				w.Run.Status.Directory = ""
			},
			action: Check, reason: v1alpha1.ReasonPreflight, says: "PersistentVolumeClaim data, which is bound when the pod is scheduled",
		},
		"a claim that no pod could have bound stalls the run, in its provisioner's words": {
			given: func(w *scope.Scope, v *scope.Volume) {
				unbound(v, storagev1.VolumeBindingWaitForFirstConsumer)
				w.Run.Status.Directory, v.Trouble = "", "no pool has 10Gi left"
				scopetest.Checked(w, 0)
				w.Provenance.CheckFailed = "its pod can't be scheduled"
			},
			reason: v1alpha1.ReasonWaitingForVolume, progress: conditions.Stalled,
			says: "PersistentVolumeClaim data was not bound when a pod used it: its pod can't be scheduled: no pool has 10Gi left",
		},
		"a claim that has lost its volume is waited for": {
			given:  func(_ *scope.Scope, v *scope.Volume) { v.Claim.Status.Phase = corev1.ClaimLost },
			reason: v1alpha1.ReasonWaitingForVolume, says: "PersistentVolumeClaim data has lost its PersistentVolume pv-1: make another claim",
		},
		"a claim that is being deleted is not measured": {
			given:  func(_ *scope.Scope, v *scope.Volume) { v.Claim.DeletionTimestamp = &metav1.Time{Time: scopetest.Now} },
			reason: v1alpha1.ReasonWaitingForVolume, says: "is being deleted",
		},
		"a claim that can only be read is refused": {
			modes:  []corev1.PersistentVolumeAccessMode{read},
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled, says: "can only be read (ReadOnlyMany), and a benchmark writes",
		},
		"several clients of a claim for one node are refused": {
			modes: []corev1.PersistentVolumeAccessMode{one, read}, given: func(w *scope.Scope, _ *scope.Volume) { spread(w, 4) },
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled,
			says: "can be used on one node only (ReadWriteOnce, ReadOnlyMany), and the run asks for 4 clients: ask for 1 client",
		},
		"a distributed run that names no number of clients has one": {
			modes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, given: func(w *scope.Scope, _ *scope.Volume) { spread(w, 0) },
			action: Start, reason: v1alpha1.ReasonRunning,
		},
		"several clients of a shared claim are started": {
			modes: []corev1.PersistentVolumeAccessMode{many}, given: func(w *scope.Scope, _ *scope.Volume) { spread(w, 4) },
			action: Start, reason: v1alpha1.ReasonRunning,
		},
		"a raw device is refused": {
			given: func(_ *scope.Scope, v *scope.Volume) {
				block := corev1.PersistentVolumeBlock
				v.Claim.Spec.VolumeMode = &block
			},
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled, says: "is a raw device (volumeMode Block): use a claim with volumeMode Filesystem",
		},
		"an older run on the claim comes first": {
			given:  func(w *scope.Scope, _ *scope.Volume) { w.Before = "elder" },
			reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun elder, which is older, measures PersistentVolumeClaim data first",
		},
		"too little space stalls the run": {
			given: func(w *scope.Scope, _ *scope.Volume) {
				w.Run.Status.Directory, w.Plans[1].Demand.Bytes = "", 3<<30
				scopetest.Checked(w, 2<<30)
			},
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled, says: "needs 3GiB, and PersistentVolumeClaim data has 2GiB free",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			modes := c.modes
			if modes == nil {
				modes = []corev1.PersistentVolumeAccessMode{one}
			}
			v := scopetest.OnVolume(w, modes...)
			if c.given != nil {
				c.given(w, v)
			}
			d := Decide(w)
			g.Expect(d.Action).To(Equal(c.action), d.Message)
			g.Expect(d.Reason).To(Equal(c.reason))
			g.Expect(d.Message).To(ContainSubstring(c.says))
			want := c.progress
			if want == conditions.Settled {
				want = conditions.Reconciling
			}
			g.Expect(d.Progress).To(Equal(want))
		})
	}
}

func TestTheFilesOfARunOnAVolumeAreRemovedWhileTheClaimIsThere(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	v := scopetest.OnVolume(w, corev1.ReadWriteOnce)
	scopetest.AllDone(w)
	g.Expect(w.Run.Status.Directory).To(Equal("/mnt/volume/.parallelfs-benchmarks/uid"))
	g.Expect(Decide(w).Action).To(Equal(Clean))
	v.Claim.DeletionTimestamp = &metav1.Time{Time: scopetest.Now}
	d := Decide(w)
	g.Expect(d.Ended).To(BeTrue())
	g.Expect(d.LeftBehind).To(Equal("PersistentVolumeClaim data is being deleted"))
	v.Claim = nil
	g.Expect(Decide(w).LeftBehind).To(Equal("PersistentVolumeClaim data is gone"))
}

func TestAClaimThatWasMadeAgainMeanwhileDisturbsARepetition(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	v := scopetest.OnVolume(w, corev1.ReadWriteOnce)
	c := scopetest.Job(w, 0, 1, time.Minute)
	c.Object.SetAnnotations(map[string]string{children.AnnotationTrust: w.Trust(nil).Encode()})
	c.Succeeded = true
	g.Expect(Decide(w).Invalid).To(BeEmpty())
	v.Claim.UID = "another"
	g.Expect(Decide(w).Invalid).To(Equal("was disturbed: PersistentVolumeClaim data has changed"))
}

func TestTheLeaseOfAVolumeIsThatOfAnotherRun(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	scopetest.OnVolume(w, corev1.ReadWriteOnce)
	d := InUse(w, "BenchmarkRun other")
	g.Expect(d.Reason).To(Equal(v1alpha1.ReasonWaitingForRun))
	g.Expect(d.Message).To(Equal("BenchmarkRun other has the lease of PersistentVolumeClaim data; this run waits until it is free"))
}

// onClass makes a run measure a StorageClass. Its claim is an hour old and bound.
func onClass(w *scope.Scope) *scope.Volume {
	v := scopetest.OnVolume(w, corev1.ReadWriteOnce)
	w.Run.Spec.Target = v1alpha1.BenchmarkTarget{StorageClass: v1alpha1.StorageClassTarget{Name: "fast", Size: "1Gi", AccessMode: "ReadWriteOnce"}}
	v.Claim.CreationTimestamp = metav1.Time{Time: scopetest.Now.Add(-time.Hour)}
	return v
}

func TestARunOnAStorageClassMakesItsClaimAndEndsWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		given  func(w *scope.Scope, v *scope.Volume)
		action action
		reason string
		says   string
		ended  bool
	}{
		"before anything else, the claim is made": {
			given:  func(w *scope.Scope, v *scope.Volume) { w.Run.Status.Directory, v.Claim = "", nil },
			action: MakeClaim, reason: v1alpha1.ReasonWaitingForVolume, says: "making PersistentVolumeClaim sweep-volume of StorageClass fast",
		},
		"behind another run on the class, it is not made yet": {
			given:  func(w *scope.Scope, v *scope.Volume) { w.Run.Status.Directory, v.Claim, w.Before = "", nil, "elder" },
			reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun elder, which is older, measures StorageClass fast first",
		},
		"for several clients of a claim for one node, it is not made": {
			given: func(w *scope.Scope, v *scope.Volume) {
				w.Run.Status.Directory, v.Claim, w.Run.Spec.Clients.Count = "", nil, 2
				w.Plans[0] = scopetest.PlanOf(benchmarks.OnEachClient)
			},
			reason: v1alpha1.ReasonInvalidSpec, says: "the run asks for 2 clients, and spec.target.storageClass.accessMode ReadWriteOnce allows one node",
		},
		"a claim that is gone is not made again": {
			given:  func(_ *scope.Scope, v *scope.Volume) { v.Claim = nil },
			reason: v1alpha1.ReasonWaitingForVolume, says: "PersistentVolumeClaim sweep-volume of the run is gone, and results on another volume can't be compared",
		},
		"a claim that was not bound in time ends the run, in its provisioner's words": {
			given: func(w *scope.Scope, v *scope.Volume) {
				w.Run.Status.Directory, v.Claim.Status.Phase, v.Trouble = "", corev1.ClaimPending, "no pool has 1Gi left"
			},
			reason: v1alpha1.ReasonVolumeNotBound, ended: true,
			says: "PersistentVolumeClaim sweep-volume of StorageClass fast was not bound within 15m0s: no pool has 1Gi left",
		},
		"at the end, no job removes what goes with the claim": {
			given:  func(w *scope.Scope, _ *scope.Volume) { scopetest.AllDone(w) },
			reason: v1alpha1.ReasonAllPointsSucceeded, ended: true,
		},
		"when the run has ended, the claim is deleted": {
			given: func(w *scope.Scope, _ *scope.Volume) {
				scopetest.AllDone(w)
				w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now}
			},
			action: RemoveClaim,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			c.given(w, onClass(w))
			d := Decide(w)
			g.Expect(d.Action).To(Equal(c.action), d.Message)
			g.Expect(d.Reason).To(Equal(c.reason))
			g.Expect(d.Message).To(ContainSubstring(c.says))
			g.Expect(d.Ended).To(Equal(c.ended))
		})
	}
}
