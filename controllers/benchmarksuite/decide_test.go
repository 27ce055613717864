package benchmarksuite

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

func TestDecide(t *testing.T) {
	const going, waits, rests = conditions.Reconciling, conditions.Stalled, conditions.Settled
	type want struct {
		action   action
		progress conditions.Progress
		reason   string
		says     string
		// state is that of the first variant after the pass, empty when the pass does not change it.
		state v1alpha1.VariantState
	}
	cases := map[string]struct {
		scene func() *scene
		want  want
	}{
		// ---- before the first variant
		"faults of the spec are reported, and nothing is created": {
			func() *scene {
				return sceneOf(aSuite(func(s *v1alpha1.BenchmarkSuite) {
					s.Spec.Variants[1].FileSystem = patch(`{"provisioning":{"formatPolicy":"Never"}}`)
				}))
			},
			want{nothing, waits, v1alpha1.ReasonInvalidSpec, "variant two: spec.fileSystem.provisioning.formatPolicy is Never", ""},
		},
		"an unconfirmed Destroy begins nothing, and the message has the confirmation": {
			func() *scene {
				return sceneOf(aSuite(destroys, func(s *v1alpha1.BenchmarkSuite) { s.Spec.ConfirmDestroy = "" }))
			},
			want{nothing, waits, v1alpha1.ReasonDestroyUnconfirmed, `kubectl patch benchmarksuite night -n lab --type merge -p '{"spec":{"confirmDestroy":"` + suiteUID + `"}}'`, ""},
		},
		"the uid of another suite, as in a copied manifest, confirms nothing": {
			func() *scene {
				return sceneOf(aSuite(destroys, func(s *v1alpha1.BenchmarkSuite) { s.Spec.ConfirmDestroy = fsUID }))
			},
			want{nothing, waits, v1alpha1.ReasonDestroyUnconfirmed, `spec.confirmDestroy is "` + fsUID + `" instead of this object's uid`, ""},
		},
		"a suspended suite begins nothing": {
			func() *scene { return sceneOf(aSuite(suspends)) },
			want{nothing, rests, v1alpha1.ReasonSuspended, "spec.suspend is true", ""},
		},
		"a FileSystem of that name that is there already is left alone": {
			func() *scene {
				s := sceneOf(aSuite())
				s.fileSystems["night-one"] = &v1alpha1.FileSystem{}
				return s
			},
			want{nothing, waits, v1alpha1.ReasonNameTaken, "there is a FileSystem night-one already, which this suite did not make and does not touch", ""},
		},
		"even one with the suite's annotation is not its own before the variant is begun: it may be a copy": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantPending)
				s.first().FileSystemUID = ""
				return s
			},
			want{nothing, waits, v1alpha1.ReasonNameTaken, "there is a FileSystem night-one already", ""},
		},
		"a BenchmarkRun of a name that the suite needs is left alone": {
			func() *scene {
				s := sceneOf(aSuite())
				s.runs["night-one-writes"] = &v1alpha1.BenchmarkRun{}
				return s
			},
			want{nothing, waits, v1alpha1.ReasonNameTaken, "there is a BenchmarkRun night-one-writes already", ""},
		},
		"that a variant begins stands in the status before its FileSystem is made": {
			func() *scene { return sceneOf(aSuite()) },
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "variant one begins", v1alpha1.VariantCreating},
		},
		// ---- the FileSystem
		"then its FileSystem is made": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.first().FileSystemUID = ""
				delete(s.fileSystems, "night-one")
				return s
			},
			want{makeFileSystem, going, v1alpha1.ReasonWaitingForVariant, "FileSystem night-one is being made", ""},
		},
		"a suspended suite makes no FileSystem": {
			func() *scene {
				s := sceneOf(aSuite(suspends)).at(v1alpha1.VariantCreating)
				s.first().FileSystemUID = ""
				delete(s.fileSystems, "night-one")
				return s
			},
			want{nothing, rests, v1alpha1.ReasonSuspended, "nothing new is started", ""},
		},
		"its uid is recorded when it is there": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.first().FileSystemUID = ""
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "was made", v1alpha1.VariantCreating},
		},
		"one that another owner has created meanwhile is not taken for its own": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.first().FileSystemUID, s.fs.Annotations = "", nil
				return s
			},
			want{nothing, waits, v1alpha1.ReasonNameTaken, "which this suite did not make and does not touch", ""},
		},
		"while it is not Ready, the suite waits and says for what": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.ready(v1alpha1.ReasonStarting, metav1.ConditionFalse)
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "waiting until FileSystem night-one is Ready: Starting: as it is", v1alpha1.VariantCreating},
		},
		"while a person must act on it, the suite is Stalled": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.stall(v1alpha1.ReasonNoDevices)
				return s
			},
			want{nothing, waits, v1alpha1.ReasonWaitingForVariant, "NoDevices: somebody must act", v1alpha1.VariantCreating},
		},
		"one that is Ready for an older spec is not Ready": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.fs.Generation = 2
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "waiting until FileSystem night-one is Ready", v1alpha1.VariantCreating},
		},
		"one that was not Ready in time is removed": {
			func() *scene {
				s := sceneOf(aSuite(func(s *v1alpha1.BenchmarkSuite) { s.Spec.ReadyTimeout = &metav1.Duration{Duration: 9 * time.Minute} })).at(v1alpha1.VariantCreating)
				s.ready(v1alpha1.ReasonStarting, metav1.ConditionFalse)
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "did not become Ready within 9m0s (spec.readyTimeout): Starting: as it is", v1alpha1.VariantRemoving},
		},
		"one that was not Ready in time stays when nothing may follow": {
			func() *scene {
				s := sceneOf(aSuite(stops, func(s *v1alpha1.BenchmarkSuite) { s.Spec.ReadyTimeout = &metav1.Duration{Duration: 9 * time.Minute} })).at(v1alpha1.VariantCreating)
				s.ready(v1alpha1.ReasonStarting, metav1.ConditionFalse)
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "did not become Ready", v1alpha1.VariantFailed},
		},
		"the time that a plan waits for its approval does not count": {
			func() *scene {
				s := sceneOf(aSuite(func(s *v1alpha1.BenchmarkSuite) { s.Spec.ReadyTimeout = &metav1.Duration{Duration: time.Minute} })).at(v1alpha1.VariantCreating)
				s.ready(v1alpha1.ReasonTargetsNotReady, metav1.ConditionFalse)
				s.disk("d1", planned)
				conditions.Set(&s.targets[0].Status.Conditions, 1, v1alpha1.ConditionReady, metav1.ConditionFalse, conditions.Stalled, v1alpha1.ReasonAwaitingApproval, "approve")
				return s
			},
			want{nothing, waits, v1alpha1.ReasonWaitingForVariant, "TargetsNotReady", v1alpha1.VariantCreating},
		},
		"nor that before the disk was formatted": {
			func() *scene {
				s := sceneOf(aSuite(func(s *v1alpha1.BenchmarkSuite) { s.Spec.ReadyTimeout = &metav1.Duration{Duration: 9 * time.Minute} })).at(v1alpha1.VariantCreating)
				s.ready(v1alpha1.ReasonTargetsNotReady, metav1.ConditionFalse)
				return s.disk("d1", v1alpha1.StorageTargetStatus{Provisioned: &v1alpha1.TargetProvisioned{PlanHash: "h", UUID: "u", Started: &metav1.Time{Time: noon.Add(-time.Minute)}}})
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "TargetsNotReady", v1alpha1.VariantCreating},
		},
		"one that somebody deletes is waited for, and the variant has failed": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.fs.DeletionTimestamp = &metav1.Time{Time: noon}
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "was deleted by somebody else before it was measured", v1alpha1.VariantRemoving},
		},
		"one that was deleted and made again by somebody is not the suite's": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantCreating)
				s.fs.UID = "other"
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "was deleted by somebody else", v1alpha1.VariantFailed},
		},
		"when it is Ready, it is measured": {
			func() *scene { return sceneOf(aSuite()).at(v1alpha1.VariantCreating).disk("d1", formatted) },
			want{nothing, going, v1alpha1.ReasonRunning, "FileSystem night-one is Ready", v1alpha1.VariantMeasuring},
		},
		"one that has taken over disks is not measured when it would have to be destroyed": {
			func() *scene {
				return sceneOf(aSuite(destroys)).at(v1alpha1.VariantCreating).disk("d1", formatted).disk("d2", adopted)
			},
			want{nothing, waits, v1alpha1.ReasonDestroyRefused, "that the suite did not format, so it does not wipe them: d2 on n1.", ""},
		},
		"a suspended suite does not begin to measure": {
			func() *scene { return sceneOf(aSuite(suspends)).at(v1alpha1.VariantCreating) },
			want{nothing, rests, v1alpha1.ReasonSuspended, "", ""},
		},
		// ---- the runs
		"the first run is made": {
			func() *scene { return sceneOf(aSuite()).at(v1alpha1.VariantMeasuring) },
			want{makeRun, going, v1alpha1.ReasonRunning, "making BenchmarkRun night-one-reads", ""},
		},
		"it is recorded when it is there": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				s.under("reads")
				s.first().Runs = nil
				return s
			},
			want{nothing, going, v1alpha1.ReasonRunning, "BenchmarkRun night-one-reads was made", v1alpha1.VariantMeasuring},
		},
		"one of another owner is left alone": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				s.under("reads").OwnerReferences = nil
				s.first().Runs = nil
				return s
			},
			want{nothing, waits, v1alpha1.ReasonNameTaken, "there is a BenchmarkRun night-one-reads, which this suite did not make", ""},
		},
		"while it is under way, the suite says how far it is": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				s.under("reads")
				return s
			},
			want{nothing, going, v1alpha1.ReasonRunning, "BenchmarkRun night-one-reads: running processes=4", v1alpha1.VariantMeasuring},
		},
		"a run that waits for a person makes the suite wait": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				conditions.Set(&s.under("reads").Status.Conditions, 1, v1alpha1.ConditionSucceeded, metav1.ConditionFalse, conditions.Stalled, v1alpha1.ReasonImageRequired, "no image")
				return s
			},
			want{nothing, waits, v1alpha1.ReasonImageRequired, "BenchmarkRun night-one-reads: no image", v1alpha1.VariantMeasuring},
		},
		"a run that can never go on has failed, and is suspended": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				conditions.Set(&s.under("reads").Status.Conditions, 1, v1alpha1.ConditionSucceeded, metav1.ConditionFalse, conditions.Stalled, v1alpha1.ReasonPreflightFailed, "no space")
				return s
			},
			want{suspendRun, going, v1alpha1.ReasonRunning, "run reads of variant one has ended", v1alpha1.VariantMeasuring},
		},
		"suspend is handed down to the run that is under way": {
			func() *scene {
				s := sceneOf(aSuite(suspends)).at(v1alpha1.VariantMeasuring)
				s.under("reads")
				return s
			},
			want{suspendRun, going, v1alpha1.ReasonRunning, "", ""},
		},
		"and is taken back from it": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				s.under("reads").Spec.Suspend = true
				return s
			},
			want{suspendRun, going, v1alpha1.ReasonRunning, "", ""},
		},
		"a suspended suite makes no run": {
			func() *scene { return sceneOf(aSuite(suspends)).at(v1alpha1.VariantMeasuring) },
			want{nothing, rests, v1alpha1.ReasonSuspended, "", ""},
		},
		"the results of a run that has ended are kept": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				s.under("reads").Status.CompletionTime = &metav1.Time{Time: noon}
				return s
			},
			want{keepResults, going, v1alpha1.ReasonRunning, "run reads of variant one has ended", v1alpha1.VariantMeasuring},
		},
		"a failed run ends everything when nothing may follow": {
			func() *scene {
				s := sceneOf(aSuite(stops)).at(v1alpha1.VariantMeasuring)
				s.under("reads").Status.CompletionTime = &metav1.Time{Time: noon}
				return s
			},
			want{keepResults, going, v1alpha1.ReasonRunning, "", v1alpha1.VariantFailed},
		},
		"a run that somebody has deleted has failed, and is not made again": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				delete(s.runs, s.under("reads").Name)
				return s
			},
			want{keepResults, going, v1alpha1.ReasonRunning, "run reads of variant one has ended", v1alpha1.VariantMeasuring},
		},
		"when somebody deletes the FileSystem, the run that is under way is suspended": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantMeasuring)
				s.under("reads")
				s.fs.DeletionTimestamp = &metav1.Time{Time: noon}
				return s
			},
			want{suspendRun, going, v1alpha1.ReasonWaitingForVariant, "was deleted by somebody else while it was measured", v1alpha1.VariantRemoving},
		},
		// ---- after the runs
		"Keep leaves the FileSystem": {
			func() *scene { return sceneOf(aSuite(keeps)).at(v1alpha1.VariantMeasuring).done("True") },
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "the runs of variant one are over", v1alpha1.VariantDone},
		},
		"a variant with a failed run has failed": {
			func() *scene { return sceneOf(aSuite(keeps)).at(v1alpha1.VariantMeasuring).done("False") },
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "", v1alpha1.VariantFailed},
		},
		"Delete removes the FileSystem": {
			func() *scene { return sceneOf(aSuite()).at(v1alpha1.VariantMeasuring).done("True") },
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "", v1alpha1.VariantRemoving},
		},
		"which is deleted": {
			func() *scene { return sceneOf(aSuite()).at(v1alpha1.VariantRemoving).done("True") },
			want{deleteFileSystem, going, v1alpha1.ReasonWaitingForVariant, "FileSystem night-one is being deleted", ""},
		},
		"Delete keeps what is on the disks, whatever somebody has set on the FileSystem": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantRemoving).done("True")
				s.fs.Spec.DeletionPolicy, s.fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, fsUID
				return s
			},
			want{setRetain, going, v1alpha1.ReasonWaitingForVariant, "", ""},
		},
		"it is not deleted under somebody else's run": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantRemoving).done("True")
				s.runs["mine"] = &v1alpha1.BenchmarkRun{}
				s.runs["mine"].Spec.Target.FileSystem.Name = "night-one"
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "FileSystem night-one is also measured by another BenchmarkRun, and is removed after it: mine", ""},
		},
		"a suspended suite removes nothing": {
			func() *scene { return sceneOf(aSuite(suspends)).at(v1alpha1.VariantRemoving).done("True") },
			want{nothing, rests, v1alpha1.ReasonSuspended, "", ""},
		},
		"one whose annotation was taken away is never deleted": {
			func() *scene {
				s := sceneOf(aSuite(destroys)).at(v1alpha1.VariantRemoving).done("True")
				s.fs.Annotations = nil
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "FileSystem night-one stays, because its annotation parallelfs.dev/suite-uid was taken away", v1alpha1.VariantDone},
		},
		"one of the same name with another uid is never deleted": {
			func() *scene {
				s := sceneOf(aSuite(destroys)).at(v1alpha1.VariantRemoving).done("True")
				s.fs.UID = "other"
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "variant one is over", v1alpha1.VariantDone},
		},
		"Destroy first sets the policy, without the confirmation": {
			func() *scene {
				return sceneOf(aSuite(destroys)).at(v1alpha1.VariantRemoving).done("True").disk("d1", formatted)
			},
			want{setDestroy, going, v1alpha1.ReasonWaitingForVariant, "", ""},
		},
		"a confirmation that somebody has given is taken back first": {
			func() *scene {
				s := sceneOf(aSuite(destroys)).at(v1alpha1.VariantRemoving).done("True").disk("d1", formatted)
				s.fs.Spec.DeletionPolicy, s.fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, fsUID
				return s
			},
			want{setDestroy, going, v1alpha1.ReasonWaitingForVariant, "", ""},
		},
		"then deletes the FileSystem": {
			func() *scene {
				s := sceneOf(aSuite(destroys)).at(v1alpha1.VariantRemoving).done("True").disk("d1", formatted)
				s.fs.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
				return s
			},
			want{deleteFileSystem, going, v1alpha1.ReasonWaitingForVariant, "", ""},
		},
		"Destroy deletes nothing when the confirmation was taken back": {
			func() *scene {
				return sceneOf(aSuite(destroys, func(s *v1alpha1.BenchmarkSuite) { s.Spec.ConfirmDestroy = "" })).at(v1alpha1.VariantRemoving).done("True")
			},
			want{nothing, waits, v1alpha1.ReasonDestroyUnconfirmed, "", ""},
		},
		"Destroy deletes nothing that has taken over disks": {
			func() *scene {
				return sceneOf(aSuite(destroys)).at(v1alpha1.VariantRemoving).done("True").disk("d1", adopted)
			},
			want{nothing, waits, v1alpha1.ReasonDestroyRefused, "d1 on n1", ""},
		},
		"while its daemons stop, nothing is confirmed": {
			func() *scene {
				s := leaving().disk("d1", formatted)
				s.ready(v1alpha1.ReasonDeleting, metav1.ConditionFalse)
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "waiting until FileSystem night-one is gone: Deleting", v1alpha1.VariantRemoving},
		},
		"when it asks, the wipe of the disks that it formatted is confirmed": {
			func() *scene { return leaving().disk("d1", formatted).disk("d2", planned) },
			want{confirm, going, v1alpha1.ReasonWaitingForVariant, "the disks of FileSystem night-one are wiped: d1 on n1, d2 on n1", ""},
		},
		"a disk that it took over meanwhile is not wiped, nor any other": {
			func() *scene { return leaving().disk("d1", formatted).disk("d2", adopted) },
			want{nothing, waits, v1alpha1.ReasonDestroyRefused, "d2 on n1", ""},
		},
		"a disk that nobody has looked at could be taken over yet": {
			func() *scene { return leaving().disk("d1", formatted).disk("d2", v1alpha1.StorageTargetStatus{}) },
			want{nothing, waits, v1alpha1.ReasonDestroyRefused, "no agent has scanned these disks: d2 on n1.", ""},
		},
		"the confirmation of the suite is asked for to the last": {
			func() *scene {
				return leaving(func(s *v1alpha1.BenchmarkSuite) { s.Spec.ConfirmDestroy = "" }).disk("d1", formatted)
			},
			want{nothing, waits, v1alpha1.ReasonDestroyUnconfirmed, "", ""},
		},
		"a suite that only deletes confirms no wipe that somebody else has asked for": {
			func() *scene {
				return leaving(func(s *v1alpha1.BenchmarkSuite) { s.Spec.AfterVariant = v1alpha1.AfterVariantDelete }).disk("d1", formatted)
			},
			want{nothing, waits, v1alpha1.ReasonWaitingForVariant, "waiting until FileSystem night-one is gone: DestroyUnconfirmed", v1alpha1.VariantRemoving},
		},
		"a disk that can't be wiped is reported": {
			func() *scene {
				s := leaving().disk("d1", formatted)
				s.fs.Spec.ConfirmDestroy = fsUID
				s.stall(v1alpha1.ReasonReleasing)
				return s
			},
			want{nothing, waits, v1alpha1.ReasonWaitingForVariant, "Releasing: somebody must act", v1alpha1.VariantRemoving},
		},
		"a variant whose FileSystem is gone is over": {
			func() *scene {
				s := leaving()
				delete(s.fileSystems, "night-one")
				return s
			},
			want{nothing, going, v1alpha1.ReasonWaitingForVariant, "variant one is over", v1alpha1.VariantDone},
		},
		// ---- the end
		"nothing follows a failed variant when it may not": {
			func() *scene {
				s := sceneOf(aSuite(stops)).at(v1alpha1.VariantFailed)
				s.first().Failure = "it was late"
				return s
			},
			want{keepResults, rests, v1alpha1.ReasonRunsFailed, "0 of 4 runs have all their results; the first failure: variant one: it was late", ""},
		},
		"a suite that has all its results has succeeded": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantDone).done("True")
				s.suite.Status.Variants[1] = *s.first().DeepCopy()
				s.suite.Status.Variants[1].Name = "two"
				return s
			},
			want{keepResults, rests, v1alpha1.ReasonAllRunsSucceeded, "all 4 runs have all results", ""},
		},
		"one that is over is deleted when its time is": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantDone)
				s.suite.Spec.TTLSecondsAfterFinished = new(int32(3600))
				s.suite.Status.CompletionTime = &metav1.Time{Time: noon.Add(-time.Hour)}
				return s
			},
			want{expire, rests, "", "", ""},
		},
		"and not before": {
			func() *scene {
				s := sceneOf(aSuite()).at(v1alpha1.VariantDone)
				s.suite.Spec.TTLSecondsAfterFinished = new(int32(3600))
				s.suite.Status.CompletionTime = &metav1.Time{Time: noon.Add(-time.Minute)}
				return s
			},
			want{nothing, rests, "", "", ""},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := c.scene()
			d := decide(s.world)
			g.Expect(d.action).To(Equal(c.want.action), d.message)
			g.Expect(d.progress).To(Equal(c.want.progress), d.message)
			g.Expect(d.reason).To(Equal(c.want.reason), d.message)
			g.Expect(d.message).To(ContainSubstring(c.want.says))
			if c.want.state == "" {
				g.Expect(d.next).To(BeNil())
				return
			}
			g.Expect(d.next).NotTo(BeNil())
			g.Expect(d.next.Name).To(Equal("one"))
			g.Expect(d.next.State).To(Equal(c.want.state))
		})
	}
}

// The disks of a FileSystem are wiped when its confirmDestroy is its uid. Only the action confirm may set that, and no state in which one
// of these conditions is false may lead to it.
func TestAWipeIsConfirmedOnlyWhenEverythingHolds(t *testing.T) {
	right := func() *scene { return leaving().disk("d1", formatted) }
	NewWithT(t).Expect(decide(right().world).action).To(Equal(confirm))
	for name, spoil := range map[string]func(s *scene){
		"the suite does not destroy":                 func(s *scene) { s.suite.Spec.AfterVariant = v1alpha1.AfterVariantDelete },
		"the suite was not confirmed":                func(s *scene) { s.suite.Spec.ConfirmDestroy = "" },
		"the confirmation is that of the FileSystem": func(s *scene) { s.suite.Spec.ConfirmDestroy = fsUID },
		"the FileSystem has another uid":             func(s *scene) { s.fs.UID = "other" },
		"no uid was recorded":                        func(s *scene) { s.first().FileSystemUID = "" },
		"the FileSystem is of another suite":         func(s *scene) { s.fs.Annotations[v1alpha1.AnnotationSuite] = "other" },
		"the FileSystem has the label of no suite":   func(s *scene) { s.fs.Labels = nil },
		"the FileSystem is not being deleted":        func(s *scene) { s.fs.DeletionTimestamp = nil },
		"its daemons still run":                      func(s *scene) { s.ready(v1alpha1.ReasonDeleting, metav1.ConditionFalse) },
		"its disks are to be kept":                   func(s *scene) { s.fs.Spec.DeletionPolicy = v1alpha1.DeletionRetain },
		"a disk was taken over":                      func(s *scene) { s.disk("d2", adopted) },
		"a disk was not looked at":                   func(s *scene) { s.disk("d2", v1alpha1.StorageTargetStatus{}) },
		"the variant is still measured":              func(s *scene) { s.first().State = v1alpha1.VariantMeasuring },
		"the variant is being made":                  func(s *scene) { s.first().State = v1alpha1.VariantCreating },
		"the variant is over":                        func(s *scene) { s.first().State = v1alpha1.VariantDone },
		"the suite is over":                          func(s *scene) { s.suite.Status.CompletionTime = &metav1.Time{Time: noon} },
		"nothing may follow, and a variant has failed": func(s *scene) {
			s.suite.Spec.OnFailure = v1alpha1.SuiteStop
			s.suite.Status.Variants[1].State = v1alpha1.VariantFailed
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := right()
			spoil(s)
			NewWithT(t).Expect(decide(s.world).action).NotTo(Equal(confirm))
		})
	}
}
