package metadatajobs_test

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// logbook is a filesystem with copies of its metadata on two nodes, and the records about them.
type logbook struct {
	*WithT
	view metadatajobs.CopyView
	last metadatajobs.CopyDecision
}

var (
	whole = &spec.RecoveryAnswer{Found: []spec.RecoveryFound{{Version: 500, ID: "6B046567398B0398", Time: "2026-11-23T11:59:00Z"}}}
	holed = &spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Message: "mfsmaster does not read it (exit code 1): hole in change files"}
	cramp = &spec.RecoveryAnswer{Found: []spec.RecoveryFound{}, Unread: true, Message: "this node has 100 MiB of memory free"}
)

func newLogbook(t *testing.T, nodes ...string) *logbook {
	t.Helper()
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "6f1c"}}
	fs.Spec.Version = "4.57.5"
	l := &logbook{WithT: NewWithT(t), view: metadatajobs.CopyView{FileSystem: fs, Serves: true, Now: checkedAt}}
	for _, node := range nodes {
		l.view.Copies = append(l.view.Copies, backend.MetadataCopy{
			Source: backend.RecoverySource{Node: node}, Follows: "first", Pod: types.NamespacedName{Namespace: "storage", Name: "metalogger-" + node},
		})
	}
	return l
}

// pass decides, stores the result, and creates and removes Jobs.
func (l *logbook) pass() metadatajobs.CopyDecision {
	l.last = metadatajobs.DecideCopies(l.view)
	l.view.Recorded = l.last.Copies
	l.view.FileSystem.Status.MetadataCopies = l.last.Copies
	for _, r := range l.last.Start {
		l.view.Jobs = append(l.view.Jobs, metadatajobs.RecoveryJobFacts{Name: r.Job})
	}
	l.view.Jobs = slices.DeleteFunc(l.view.Jobs, func(j metadatajobs.RecoveryJobFacts) bool { return slices.Contains(l.last.Remove, j.Name) })
	return l.last
}

// later advances the clock.
func (l *logbook) later(d time.Duration) *logbook {
	l.view.Now = l.view.Now.Add(d)
	return l
}

// ends ends the reading Job, with an answer.
func (l *logbook) ends(answer *spec.RecoveryAnswer) metadatajobs.CopyDecision {
	l.Expect(l.view.Jobs).To(HaveLen(1))
	l.view.Jobs[0].Ended, l.view.Jobs[0].Answer = true, answer
	return l.pass()
}

// reads completes the read of the next copy.
func (l *logbook) reads(answer *spec.RecoveryAnswer) metadatajobs.CopyDecision {
	l.pass()
	l.pass()
	return l.ends(answer)
}

// settles reads copies until none has to be read.
func (l *logbook) settles(answer *spec.RecoveryAnswer) {
	for range l.view.Copies {
		l.reads(answer)
	}
	l.pass()
}

// copyOn returns the record of the copy on a node.
func (l *logbook) copyOn(node string) v1alpha1.MetadataCopyStatus {
	i := slices.IndexFunc(l.last.Copies, func(s v1alpha1.MetadataCopyStatus) bool { return s.Node == node })
	l.Expect(i).To(BeNumerically(">=", 0))
	return l.last.Copies[i]
}

func TestOneCopyAfterTheOtherIsReadBack(t *testing.T) {
	l := newLogbook(t, "n1", "n2")
	d := l.pass()
	l.Expect(d.Start).To(BeEmpty(), "it is on record before")
	l.Expect(d.Condition).To(HaveField("Reason", v1alpha1.ReasonCopiesUnread))
	l.Expect(d.Condition.Message).To(HavePrefix("no copy of the metadata is proven; not proven yet: n1 (since 2026-11-23T12:00:00Z: it was not read back"))
	d = l.pass()
	l.Expect(d.Start).To(HaveExactElements(And(HaveField("Source.Node", "n1"), HaveField("Restore", BeNil()))))
	job := d.Start[0].Job
	d = l.later(time.Minute).pass()
	l.Expect(d.Start).To(BeEmpty(), "n2 waits for n1")
	d = l.ends(whole)
	l.Expect(l.copyOn("n1")).To(And(HaveField("Result", v1alpha1.MetadataCopyProven), HaveField("Version", int64(500)), HaveField("Job", job),
		HaveField("Proven.Time", l.view.Now), HaveField("Message", "")), "with its time and its author")
	l.Expect(d.Remove).To(BeEmpty(), "it is not on record yet")
	l.Expect(d.Condition).To(HaveField("Reason", v1alpha1.ReasonCopiesUnread))
	l.Expect(metadatajobs.WaitsForCopy(l.view.FileSystem, "")).To(BeEmpty(), "one is enough")
	l.Expect(metadatajobs.WaitsForCopy(l.view.FileSystem, "n1")).To(ContainSubstring("; now none is: n2 (it was not read back"))

	d = l.pass()
	l.Expect(d.Remove).To(HaveExactElements(job))
	l.Expect(d.Start).To(HaveExactElements(HaveField("Source.Node", "n2")))
	d = l.ends(whole)
	l.Expect(d.Condition).To(HaveField("Reason", v1alpha1.ReasonCopiesProven))
	d = l.pass()
	l.Expect(l.view.Jobs).To(BeEmpty())
	for range 5 {
		d = l.later(time.Hour).pass()
		l.Expect(d.Start).To(BeEmpty(), "nothing is due")
	}
	l.Expect(d.Condition.Message).To(HavePrefix("all 2 copies of the metadata are proven: n1 (read back at 2026-11-23T12:01:00Z), n2 ("))
}

func TestACopyIsReadAgainWhen(t *testing.T) {
	for name, happens := range map[string]func(l *logbook){
		"a day is over":                        func(l *logbook) { l.later(24 * time.Hour) },
		"its server or the master was started": func(l *logbook) { l.view.Copies[0].Follows = "second" },
		"its server was away": func(l *logbook) {
			l.view.Copies[0].Follows, l.view.Copies[0].Away = "", "the master does not list this metalogger"
			l.later(time.Second).pass()
			l.Expect(l.copyOn("n1")).To(And(HaveField("Result", v1alpha1.MetadataCopyUnread), HaveField("Message", ContainSubstring("does not list"))))
			l.view.Copies[0].Follows = "first"
		},
		"its server has got all of the metadata": func(l *logbook) {
			l.later(time.Hour).view.Copies[0].Fetched = l.view.Now
			l.Expect(l.pass().Copies).To(HaveEach(HaveField("Reading", BeNil())), "it may be under way")
			l.later(10 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogbook(t, "n1")
			l.settles(whole)
			happens(l)
			l.pass()
			l.Expect(l.copyOn("n1").Reading).NotTo(BeNil())
			l.reads(whole)
			l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyProven))
			l.Expect(l.later(time.Minute).pass().Copies).To(HaveEach(HaveField("Reading", BeNil())))
		})
	}
}

func TestAProvenCopyNamesHowManyChangesItLackedWhenItWasRead(t *testing.T) {
	for name, c := range map[string]struct {
		running, since int64
		behind         *int64
		words          string
	}{
		"it lacked some": {512, 512, new(int64(12)), "n1 (read back at 2026-11-23T12:00:00Z, 12 changes behind)"},
		"it lacked none": {500, 500, new(int64(0)), "n1 (read back at 2026-11-23T12:00:00Z, 0 changes behind)"},
		"it was written on after the decision to read it": {490, 490, new(int64(0)), "n1 (read back at 2026-11-23T12:00:00Z, 0 changes behind)"},
		"the metadata changed after the decision":         {512, 9000, new(int64(12)), "n1 (read back at 2026-11-23T12:00:00Z, 12 changes behind)"},
		"the version is not reported":                     {0, 9000, nil, "n1 (read back at 2026-11-23T12:00:00Z)"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogbook(t, "n1")
			l.view.Version = c.running
			l.pass()
			l.Expect(l.copyOn("n1").ReadingVersion).To(Equal(c.running))
			l.view.Version = c.since
			l.pass()
			d := l.ends(whole)
			l.Expect(l.copyOn("n1")).To(And(HaveField("Behind", Equal(c.behind)), HaveField("ReadingVersion", BeZero())))
			l.Expect(d.Condition.Message).To(HaveSuffix(c.words))
			l.view.Version = 0
			l.later(24 * time.Hour).reads(whole)
			l.Expect(l.copyOn("n1").Behind).To(BeNil(), "the number belongs to the proof")
		})
	}
}

func TestACopyThatWasNotReadSinceItsServerFollowsIsNotCounted(t *testing.T) {
	l := newLogbook(t, "n1")
	l.settles(whole)
	l.view.Copies[0].Follows = "second"
	d := l.pass()
	l.Expect(d.Condition).To(HaveField("Reason", v1alpha1.ReasonCopiesUnread))
	l.pass()
	l.view.Copies[0].Follows = "third"
	d = l.ends(whole)
	l.Expect(d.Condition).To(HaveField("Reason", v1alpha1.ReasonCopiesUnread), "the answer is about what followed before")
}

func TestACopyWithAHoleIsFetchedAgainAndReportedUntilItIsProven(t *testing.T) {
	l := newLogbook(t, "n1", "n2")
	l.settles(whole)
	l.later(24 * time.Hour)
	d := l.reads(holed)
	l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyProven), "its server may have begun another file meanwhile")
	l.Expect(d.Fetch).To(BeEmpty())
	l.reads(whole)
	l.later(time.Minute)
	d = l.reads(holed)
	l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnproven))
	l.Expect(d.Condition.Message).To(HavePrefix("1 of 2 copies of the metadata is proven; look at the metaloggers on n1 (since 2026-11-24T12:01:00Z, fetched again 1 time, and neither the new copy nor the older one beside it is proven: mfsmaster"))
	l.Expect(d.Fetch).To(HaveExactElements(And(HaveField("Pod.Name", "metalogger-n1"), HaveField("Safe", true), HaveField("Why", ContainSubstring("hole in change files")))))
	l.Expect(l.later(time.Second).pass().Fetch).To(HaveLen(1), "until it is restarted")

	l.view.Copies[0].Follows = "second"
	d = l.later(time.Minute).pass()
	l.Expect(d.Fetch).To(BeEmpty())
	l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnproven), "it stays unproven until it was read")
	l.pass()
	d = l.ends(whole)
	l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesProven))
	l.Expect(l.copyOn("n1").Fetches).To(BeZero())
}

func TestACopyThatStaysUnreadableIsFetchedLessOften(t *testing.T) {
	l := newLogbook(t, "n1")
	fetches := 0
	starts := 0
	for range 24 * 60 {
		d := l.later(time.Minute).pass()
		if len(l.view.Jobs) > 0 {
			d = l.ends(holed)
		}
		if len(d.Fetch) > 0 {
			fetches++
			starts++
			l.view.Copies[0].Follows = time.Duration(starts).String()
		}
	}
	l.Expect(fetches).To(BeNumerically("~", 6, 1), "three at once, and then each six hours")
	l.Expect(l.last.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnproven))
	l.Expect(l.last.Condition.Message).To(And(HavePrefix("no copy of the metadata is proven; "), ContainSubstring("neither the new copy nor the older one beside it is proven: mfsmaster")))
	l.view.Copies[0].Follows = "at the end"
	l.pass()
	l.Expect(metadatajobs.WaitsForCopy(l.view.FileSystem, "")).To(ContainSubstring("now none is: n1 (mfsmaster does not read it"))
}

func TestACopyThatCannotBeReadIsNotCalledBroken(t *testing.T) {
	for name, answer := range map[string]*spec.RecoveryAnswer{"no memory": cramp, "no answer": nil} {
		t.Run(name, func(t *testing.T) {
			l := newLogbook(t, "n1")
			for range 60 {
				l.later(time.Minute).pass()
				if len(l.view.Jobs) > 0 {
					l.ends(answer)
				}
				l.Expect(l.last.Fetch).To(BeEmpty())
			}
			l.Expect(l.last.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnread))
			l.Expect(l.copyOn("n1").Message).To(HavePrefix("it could not be looked at: "))
			l.view.Copies[0].Outdated = true
			l.Expect(l.pass().Fetch).To(HaveLen(1), "no guard holds up what may be the repair")
		})
	}
}

func TestACopyThatIsStillFetchedIsNotCalledBroken(t *testing.T) {
	l := newLogbook(t, "n1")
	for range 4 {
		l.later(time.Minute)
		d := l.reads(holed)
		l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnread))
		l.Expect(d.Fetch).To(BeEmpty())
	}
	l.later(time.Minute)
	l.Expect(l.reads(whole).Condition.Reason).To(Equal(v1alpha1.ReasonCopiesProven))
}

func TestAProofThatCouldNotBeRenewedCountsForADay(t *testing.T) {
	l := newLogbook(t, "n1")
	l.reads(whole)
	l.later(23 * time.Hour).pass()
	l.later(2*time.Hour - time.Second).pass()
	l.Expect(l.view.Jobs).To(HaveLen(1), "the Job that reads it does not end")
	l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyProven))
	d := l.later(time.Second).pass()
	l.Expect(l.copyOn("n1")).To(And(HaveField("Result", v1alpha1.MetadataCopyUnread), HaveField("Message", "it was last read back more than 25 hours ago")))
	l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnread))
	l.Expect(metadatajobs.WaitsForCopy(l.view.FileSystem, "")).To(ContainSubstring("n1 (it was last read back more than 25 hours ago)"))
	l.ends(nil)
	l.Expect(l.copyOn("n1").Message).To(HavePrefix("it could not be looked at"), "the Job was killed")
	l.later(time.Minute).reads(whole)
	l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyProven))

	l.view.Serves = false
	l.later(25 * time.Hour).pass()
	l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyUnread), "nobody can renew it while the filesystem does not answer")
}

func TestNothingIsReadWhileTheFilesystemDoesNotAnswer(t *testing.T) {
	l := newLogbook(t, "n1")
	l.settles(whole)
	l.view.Serves, l.view.Copies[0].Follows = false, ""
	d := l.later(24 * time.Hour).pass()
	l.Expect(d.Copies).To(HaveEach(And(HaveField("Reading", BeNil()), HaveField("Result", v1alpha1.MetadataCopyProven))))
	l.Expect(metadatajobs.DecideCopies(metadatajobs.CopyView{FileSystem: l.view.FileSystem, Recorded: d.Copies, Jobs: []metadatajobs.RecoveryJobFacts{{Name: "left"}}})).
		To(And(HaveField("Copies", BeEmpty()), HaveField("Remove", HaveExactElements("left")), HaveField("Condition", backend.Problem{})), "no server is asked to keep one")
}

func TestAPersonGoesOnWithoutAProvenCopyByTheApprovalForABackup(t *testing.T) {
	l := newLogbook(t, "n1")
	fs := l.view.FileSystem
	l.Expect(metadatajobs.WaitsForCopy(fs, "")).To(BeEmpty(), "no copy is asked for")
	l.pass()
	l.Expect(metadatajobs.WaitsForCopy(fs, "")).To(HavePrefix(`a copy of the metadata is proven (to do without, set spec.updates.upgradeWithoutBackup to "4.57.5"); now none is: n1`))
	l.Expect(metadatajobs.WaitsForCopy(fs, "n1")).To(BeEmpty(), "there is none on another node")
	fs.Spec.Updates.UpgradeWithoutBackup = "4.57.5"
	l.Expect(metadatajobs.WaitsForCopy(fs, "")).To(BeEmpty())
	fs.Spec.Updates.UpgradeWithoutBackup = ""
	l.view.Copies[0].Follows = ""
	l.pass()
	l.Expect(metadatajobs.WaitsForCopy(fs, "")).To(BeEmpty(), "no server follows, so that no copy could be proven")
}

func TestNoCopyIsReadOnACordonedNode(t *testing.T) {
	l := newLogbook(t, "n1", "n2")
	l.pass()
	l.pass()
	l.Expect(l.view.Jobs).To(HaveLen(1))
	l.view.Copies[0].Leaves = true
	d := l.pass()
	l.Expect(d.Remove).To(HaveLen(1), "it would hold up a drain")
	l.Expect(l.copyOn("n2").Reading).NotTo(BeNil(), "the others go on")
	l.reads(whole)
	for range 3 {
		l.Expect(l.later(time.Hour).pass().Start).To(BeEmpty())
	}
	l.view.Copies[0].Leaves = false
	l.reads(whole)
	l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyProven))
}

// breaks makes the server of a copy lose the master.
func (l *logbook) breaks() {
	l.view.Copies[0].Follows, l.view.Copies[0].Away = "", "the master does not list this metalogger"
	l.pass()
	l.view.Copies[0].Follows = "first"
}

func TestAMetaloggerThatReconnectsAgainAndAgainIsReadSeldomAndStaysUnproven(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		reads int
	}{
		"each minute":     {time.Minute, 4},
		"each 15 minutes": {15 * time.Minute, 5},
		"each 59 minutes": {59 * time.Minute, 7},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogbook(t, "n1")
			reads, unproven := 0, time.Time{}
			began := l.view.Now
			for range int(24 * time.Hour / (30 * time.Second)) {
				d := l.later(30 * time.Second).pass()
				if reads += len(d.Start); len(l.view.Jobs) > 0 {
					d = l.ends(whole)
				}
				if l.view.Now.Sub(began)%c.every == 0 {
					l.breaks()
					d = l.last
				}
				if d.Condition.Reason == v1alpha1.ReasonCopiesUnproven && unproven.IsZero() {
					unproven = l.view.Now
				}
				if !unproven.IsZero() {
					l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnproven), "the condition does not change with each read")
				}
			}
			l.Expect(reads).To(Equal(c.reads))
			l.Expect(unproven).To(BeTemporally("~", began.Add(4*c.every), c.every))
			l.Expect(l.last.Condition.Message).To(ContainSubstring("its server reconnects again and again, %d times since %s", l.copyOn("n1").Breaks,
				began.Add(c.every).Format(time.RFC3339)))
			l.breaks()
			l.pass()
			l.Expect(metadatajobs.WaitsForCopy(l.view.FileSystem, "")).To(ContainSubstring("it is read when its server has followed for 60 minutes without a break"))

			l.later(time.Hour).reads(whole)
			l.Expect(l.last.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesProven), "an hour without a break")
			l.Expect(l.copyOn("n1").Breaks).To(BeZero())
		})
	}
}

func TestACopyOfAMetaloggerThatReconnectedAgainAndAgainAndHasNowBeenReadMayServeARestart(t *testing.T) {
	l := newLogbook(t, "n1")
	for range 4 {
		l.later(time.Minute).pass()
		l.breaks()
	}
	l.later(time.Minute).pass()
	l.later(10*time.Minute - time.Second).pass()
	l.Expect(l.copyOn("n1").Reading).To(BeNil())
	d := l.later(time.Second).reads(whole)
	l.Expect(d.Condition).To(And(HaveField("Reason", v1alpha1.ReasonCopiesUnproven), HaveField("Message", HavePrefix(
		"the copy of the metadata is proven; look at the metaloggers on n1 (read back at 2026-11-23T12:15:00Z, but its server reconnects again and again, 4 times"))))
	l.Expect(metadatajobs.WaitsForCopy(l.view.FileSystem, "")).To(BeEmpty())
}

func TestARestartByTheOperatorIsNoBreak(t *testing.T) {
	for name, restart := range map[string]func(l *logbook){
		"of the master": func(l *logbook) { l.view.Copies[0].Began = l.view.Now },
		"of the metalogger, to fetch its copy": func(l *logbook) {
			l.later(10 * time.Minute).reads(holed)
			l.Expect(l.later(time.Minute).reads(holed).Fetch).To(HaveLen(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLogbook(t, "n1")
			for i := range 3 {
				l.later(time.Minute).pass()
				restart(l.later(time.Minute))
				l.view.Copies[0].Follows = time.Duration(i).String()
				l.later(time.Second).pass()
				l.Expect(l.copyOn("n1").Breaks).To(BeZero())
			}
			l.view.Copies[0].Follows = "third"
			l.later(time.Minute).pass()
			l.Expect(l.copyOn("n1").Breaks).To(BeEquivalentTo(1))
		})
	}
}

func TestTheReadOfACopyEndsWithTheConnectionOfItsServer(t *testing.T) {
	l := newLogbook(t, "n1")
	l.pass()
	l.pass()
	l.Expect(l.view.Jobs).To(HaveLen(1))
	l.view.Copies[0].Follows, l.view.Copies[0].Away = "", "the master does not list this metalogger"
	l.pass()
	l.Expect(l.view.Jobs).To(BeEmpty())
	for range 3 {
		l.Expect(l.later(time.Second).pass().Start).To(BeEmpty(), "nothing is read while the server does not follow")
	}
}

func TestAMetaloggerThatReconnectsAgainAndAgainMayBeRestartedForAChange(t *testing.T) {
	l := newLogbook(t, "n1")
	for range 4 {
		l.later(time.Minute).pass()
		l.breaks()
	}
	l.view.Copies[0].Outdated = true
	l.Expect(l.pass().Fetch).To(HaveExactElements(HaveField("Safe", true)), "the change may be the repair")
}

func TestAProofFromTheFutureDoesNotCount(t *testing.T) {
	l := newLogbook(t, "n1")
	l.reads(whole)
	l.later(-4 * time.Minute).pass()
	l.Expect(l.copyOn("n1").Result).To(Equal(v1alpha1.MetadataCopyProven), "the clocks of two managers differ a little")
	d := l.later(-24 * time.Hour).pass()
	l.Expect(d.Condition.Reason).To(Equal(v1alpha1.ReasonCopiesUnread))
	l.Expect(l.copyOn("n1").Message).To(Equal("the time of its last proof is in the future, so that its age is unknown"))
	l.reads(whole)
	l.Expect(l.copyOn("n1")).To(And(HaveField("Result", v1alpha1.MetadataCopyProven), HaveField("Proven.Time", l.view.Now)))
}

func TestAClockThatIsSetBackHoldsUpNoReadAndNoFetch(t *testing.T) {
	l := newLogbook(t, "n1")
	l.pass()
	l.later(10 * time.Minute)
	l.reads(holed)
	l.later(-24 * time.Hour).pass()
	l.Expect(l.copyOn("n1").Retry.Sub(l.view.Now)).To(Equal(30 * time.Second))
	l.later(30 * time.Second)
	l.Expect(l.reads(holed).Fetch).To(HaveLen(1))
	l.Expect(l.copyOn("n1").Fetches).To(BeEquivalentTo(1))
}
