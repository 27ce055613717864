//go:build envtest

package benchmarksuite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/test/places"
)

var everyRun = []string{"night-one-reads", "night-one-writes", "night-two-reads", "night-two-writes"}

// Admission accepts only the product's types, so the example has the type of the suite's FileSystems.
func TestASuiteMeasuresAFilesystemOfATypeThatNoControllerNames(t *testing.T) {
	l := newLab(t)
	l.operator.Backends = backend.SetOf(backendtest.Example{Kind: v1alpha1.MooseFS})
	l.suite()
	l.settle()
	l.Expect(l.succeeded()).To(HaveField("Reason", v1alpha1.ReasonAllRunsSucceeded), "%+v", l.get().Status)
	l.Expect(l.measured).To(Equal(everyRun))
	l.Expect(l.gone).To(Equal([]string{"night-one", "night-two"}))
}

func TestASuiteMeasuresEveryVariantByEveryRun(t *testing.T) {
	l := newLab(t)
	l.suite(func(s *v1alpha1.BenchmarkSuite) {
		s.Spec.Variants[1].Run = patch(`{"repetitions":2}`)
		s.Spec.Runs[0].Spec = raw(`{"sweep":[{"name":"processes","values":["4"]}],` + iozoneSpec[1:])
	})
	l.settle()
	l.Expect(l.succeeded()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonAllRunsSucceeded),
		HaveField("Message", "all 4 runs have all results")), "%+v", l.get().Status)
	l.Expect(l.measured).To(Equal(everyRun))
	l.Expect(l.filesystems).To(Equal([]string{"night-one", "night-two"}))
	l.Expect(l.gone).To(Equal([]string{"night-one", "night-two"}), "afterVariant is Delete")
	l.Expect(l.wiped()).To(BeEmpty(), "Delete keeps what is on the disks")
	s := l.get()
	l.Expect(s.Status.Conditions).To(HaveLen(1), "a suite that is over is neither reconciling nor stalled")
	l.Expect(s.Status.Progress).To(Equal("4/4"))
	l.Expect(s.Status.Current).To(BeEmpty())
	l.Expect(s.Status.StartTime).NotTo(BeNil())
	l.Expect(s.Status.CompletionTime).NotTo(BeNil())
	l.Expect(l.states()).To(Equal([]v1alpha1.VariantState{v1alpha1.VariantDone, v1alpha1.VariantDone}))
	for i, v := range s.Status.Variants {
		l.Expect(v.FileSystem).To(Equal(l.filesystems[i]))
		l.Expect(v.FileSystemUID).NotTo(BeEmpty())
		l.Expect(v.StartTime).NotTo(BeNil())
		l.Expect(v.ReadyTime).NotTo(BeNil())
		l.Expect(v.CompletionTime).NotTo(BeNil())
		l.Expect(v.Runs).To(HaveLen(2))
		l.Expect(v.Runs).To(HaveEach(And(HaveField("Succeeded", "True"), HaveField("Progress", "1/1"))))
	}
	run := &v1alpha1.BenchmarkRun{}
	l.must(server.Client.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "night-two-reads"}, run))
	l.Expect(metav1.IsControlledBy(run, s)).To(BeTrue(), "a run goes with its suite")
	l.Expect(run.Spec.Repetitions).To(Equal(int32(2)), "the variant's patch of its runs")
	l.Expect(l.announced()).To(ConsistOf(
		HavePrefix("Normal Started 2 variants, each measured by 2 runs, then: Delete"),
		HavePrefix("Normal VariantReady FileSystem night-one"), HavePrefix("Normal VariantReady FileSystem night-two"),
		HavePrefix("Normal RunSucceeded run reads of variant one"), HavePrefix("Normal RunSucceeded run writes of variant one"),
		HavePrefix("Normal RunSucceeded run reads of variant two"), HavePrefix("Normal RunSucceeded run writes of variant two"),
		HavePrefix("Normal VariantDone variant one"), HavePrefix("Normal VariantDone variant two"), HavePrefix("Normal AllRunsSucceeded")))

	t.Run("one table shows the best of each, with speed-up and efficiency", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.Status.Table).To(ContainElements(
			v1alpha1.SuiteFigure{Variant: "one", Run: "reads", Metric: "write", Unit: "kB/s", Value: "1000", At: "processes=4", Speedup: "1.00", Efficiency: "100.0"},
			v1alpha1.SuiteFigure{Variant: "two", Run: "reads", Metric: "write", Unit: "kB/s", Value: "1500", At: "processes=4", Speedup: "1.50", Efficiency: "75.0"},
		))
		g.Expect(s.Status.Table).To(HaveLen(4))
	})
	t.Run("the complete results of all runs are one document", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.Status.Results).To(Equal("night-suite"))
		cm := l.configMap("night-suite")
		g.Expect(metav1.IsControlledBy(cm, s)).To(BeTrue())
		g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.LabelBenchmarkSuite, "night"))
		document, err := results.DecodeSuite(cm.BinaryData[results.FileJSON])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(document.UID).To(Equal(string(s.UID)))
		var names []string
		for _, v := range document.Variants {
			for _, run := range v.Runs {
				names = append(names, run.Run.Name)
				g.Expect(run.Run.Points).To(HaveLen(1))
			}
		}
		g.Expect(names).To(Equal(everyRun))
		g.Expect(string(cm.BinaryData[results.FileCSV])).To(ContainSubstring("1500"))
	})
	t.Run("a look at a suite that is over writes nothing", func(t *testing.T) {
		before := len(l.client.Writes())
		l.must(l.reconcile())
		NewWithT(t).Expect(l.client.Writes()[before:]).To(BeEmpty())
	})
}

func TestKeepLeavesEveryFileSystemAndDestroyWipesWhatItFormatted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      func(s *v1alpha1.BenchmarkSuite)
		gone, wiped []string
	}{
		"Keep":    {change: keeps},
		"Destroy": {change: destroys, gone: []string{"night-one", "night-two"}, wiped: []string{"night-one-d", "night-two-d"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.suite(c.change)
			l.settle()
			l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded), l.succeeded().Message)
			l.Expect(l.gone).To(Equal(c.gone))
			l.Expect(l.wiped()).To(Equal(c.wiped))
			l.Expect(l.measured).To(Equal(everyRun))
		})
	}
}

// outcome is the part of the status that must not depend on how often the operator was killed.
func (l *lab) outcome() v1alpha1.BenchmarkSuiteStatus {
	status := *l.get().Status.DeepCopy()
	status.StartTime, status.CompletionTime = nil, nil
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range status.Variants {
		v := &status.Variants[i]
		v.StartTime, v.ReadyTime, v.CompletionTime, v.FileSystemUID = nil, nil, nil, ""
	}
	return status
}

func TestAnOperatorThatIsKilledAfterAnyWriteEndsInTheSameState(t *testing.T) {
	// One variant has all steps; another one would only repeat them.
	one := func(s *v1alpha1.BenchmarkSuite) { s.Spec.Runs, s.Spec.Variants = s.Spec.Runs[:1], s.Spec.Variants[:1] }
	whole := newLab(t)
	whole.suite(destroys, one)
	whole.settle()
	whole.Expect(whole.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
	whole.Expect(whole.wiped()).To(Equal([]string{"night-one-d"}))
	want, writes := whole.outcome(), whole.client.Writes()
	whole.Expect(len(writes)).To(BeNumerically(">", 15))
	for _, n := range places.Kills.Of(t, len(writes)) {
		t.Run(fmt.Sprintf("killed after %d writes", n), func(t *testing.T) {
			l := newLab(t)
			l.suite(destroys, one)
			l.killedAfter(n)
			for l.reconcile() == nil {
				l.play()
			}
			l.play()
			l.killedAfter(-1)
			l.settle()
			l.Expect(l.outcome()).To(Equal(want), "writes: %v", writes[:n])
			l.Expect(l.filesystems).To(Equal(whole.filesystems), "it is made once")
			l.Expect(l.gone).To(Equal(whole.gone))
			l.Expect(l.measured).To(Equal(whole.measured), "it is run once")
			l.Expect(l.wiped()).To(Equal(whole.wiped()))
		})
	}
}

func TestFaultsOfAnyVariantAreFoundBeforeTheFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *v1alpha1.BenchmarkSuite)
		says   []string
	}{
		"a FileSystem that admission refuses": {
			func(s *v1alpha1.BenchmarkSuite) { s.Spec.Variants[1].FileSystem = patch(`{"version":"1.6.0"}`) },
			[]string{"variant two: its FileSystem (spec.fileSystem with spec.variants[two].fileSystem) is refused: ", "MooseFS runs in version 3.0.117 to 3.0.x, or 4.57.x to 4.59.x"},
		},
		"a field that there is not": {
			func(s *v1alpha1.BenchmarkSuite) {
				s.Spec.Variants[1].FileSystem = patch(`{"metadataServers":{"nodeCuont":2}}`)
			},
			[]string{"variant two: its FileSystem", `unknown field "spec.metadataServers.nodeCuont"`},
		},
		"metadata nodes that a MooseFS has not": {
			func(s *v1alpha1.BenchmarkSuite) {
				s.Spec.Variants[1].FileSystem = patch(`{"metadataServers":{"nodeCount":2}}`)
			},
			[]string{"variant two: its FileSystem", "spec.metadataServers.nodeCount belongs to types BeeGFS"},
		},
		"a run that admission refuses": {
			func(s *v1alpha1.BenchmarkSuite) { s.Spec.Variants[1].Run = patch(`{"processes":0}`) },
			[]string{"variant two: its run reads (spec.runs[reads].spec with spec.variants[two].run) is refused: ", "spec.processes"},
		},
		"a field of a run that there is not": {
			func(s *v1alpha1.BenchmarkSuite) {
				s.Spec.Runs[1].Spec = raw(strings.Replace(iozoneSpec, "{}", `{"fileSzie":"1g"}`, 1))
			},
			[]string{"variant one: its run writes", `unknown field "spec.iozone.fileSzie"`},
		},
		"a sweep that has no whole number at a point": {
			func(s *v1alpha1.BenchmarkSuite) {
				s.Spec.Variants[1].Run = patch(`{"sweep":[{"name":"processes","values":["1","3"]}],"derive":[{"name":"clients","cel":"4 / processes"}],"iozone":{"mode":"Distributed"}}`)
			},
			[]string{"variant two: its run reads", "processes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.suite(c.change)
			l.settle()
			l.Expect(l.succeeded()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonInvalidSpec)))
			l.Expect(meta.IsStatusConditionTrue(l.get().Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
			for _, text := range c.says {
				l.Expect(l.succeeded().Message).To(ContainSubstring(text))
			}
			l.Expect(l.filesystems).To(BeEmpty())
			l.Expect(l.get().Status.StartTime).To(BeNil())
		})
	}
}

func TestADestroyThatIsNotConfirmedBeginsNothing(t *testing.T) {
	l := newLab(t)
	l.suite(func(s *v1alpha1.BenchmarkSuite) { s.Spec.AfterVariant = v1alpha1.AfterVariantDestroy })
	l.settle()
	l.Expect(l.succeeded()).To(And(HaveField("Reason", v1alpha1.ReasonDestroyUnconfirmed), HaveField("Message", ContainSubstring(fmt.Sprintf(
		`kubectl patch benchmarksuite night -n %s --type merge -p '{"spec":{"confirmDestroy":%q}}'`, l.namespace, l.get().UID)))))
	l.Expect(l.filesystems).To(BeEmpty())
	before := len(l.client.Writes())
	l.must(l.reconcile())
	l.Expect(l.client.Writes()[before:]).To(BeEmpty(), "while it waits, it is not tried again and again")
	l.change(func(s *v1alpha1.BenchmarkSuite) { s.Spec.ConfirmDestroy = string(s.UID) })
	l.settle()
	l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
}

func TestAFileSystemThatTheSuiteDidNotMakeIsNeverTouched(t *testing.T) {
	t.Parallel()
	t.Run("it is there before the suite", func(t *testing.T) {
		l := newLab(t)
		mine := l.own("night-two", func(*v1alpha1.FileSystem) {})
		l.suite(destroys)
		l.settle()
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonNameTaken))
		l.Expect(l.succeeded().Message).To(ContainSubstring("there is a FileSystem night-two already, which this suite did not make and does not touch"))
		l.Expect(l.fileSystem("night-two").ResourceVersion).To(Equal(mine.ResourceVersion))
		l.Expect(l.filesystems).To(BeEmpty(), "not even the first variant was begun")
	})
	t.Run("it is made while the suite is at another variant, as a copy with its annotation", func(t *testing.T) {
		l := newLab(t)
		l.suite(destroys)
		l.hold = true
		l.settle()
		l.Expect(l.states()).To(HaveExactElements(v1alpha1.VariantMeasuring, v1alpha1.VariantPending))
		mine := l.own("night-two", func(fs *v1alpha1.FileSystem) {
			fs.Annotations = map[string]string{v1alpha1.AnnotationSuite: string(l.get().UID)}
		})
		l.hold = false
		l.settle()
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonNameTaken))
		l.Expect(l.wiped()).To(Equal([]string{"night-one-d"}))
		l.Expect(l.fileSystem("night-two").ResourceVersion).To(Equal(mine.ResourceVersion))
		l.must(server.Client.Delete(t.Context(), mine))
		l.settle()
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded), "it goes on when the name is free")
	})
	t.Run("it takes the place of one that the suite made", func(t *testing.T) {
		l := newLab(t)
		l.suite(destroys)
		l.hold = true
		l.settle()
		theirs := l.fileSystem("night-one")
		labels, annotations := theirs.Labels, theirs.Annotations
		l.must(server.Client.Delete(t.Context(), theirs))
		l.play()
		l.Expect(l.fileSystem("night-one")).To(BeNil())
		mine := l.own("night-one", func(fs *v1alpha1.FileSystem) { fs.Labels, fs.Annotations = labels, annotations })
		l.hold = false
		for range 20 {
			l.must(l.reconcile())
		}
		l.Expect(l.fileSystem("night-one").UID).To(Equal(mine.UID))
		l.Expect(l.fileSystem("night-one").ResourceVersion).To(Equal(mine.ResourceVersion))
		l.Expect(l.get().Status.Variants[0]).To(And(HaveField("State", v1alpha1.VariantFailed),
			HaveField("Failure", "FileSystem night-one was deleted by somebody else while it was measured")))
	})
}

func TestADiskThatWasThereBeforeIsNeverWiped(t *testing.T) {
	l := newLab(t)
	l.disks["night-one-d"] = &disk{holder: "the FileSystem of that name of last year"}
	l.suite(destroys)
	l.settle()
	l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonDestroyRefused))
	l.Expect(l.succeeded().Message).To(ContainSubstring("wwn-0xnight-one on n1"))
	l.Expect(l.measured).To(BeEmpty())
	l.Expect(l.gone).To(BeEmpty())

	// The suite continues after the step that the message names.
	l.must(server.Client.Delete(t.Context(), l.fileSystem("night-one")))
	l.settle()
	l.Expect(l.wiped()).To(Equal([]string{"night-two-d"}), "the disk of the second variant was blank")
	l.Expect(l.disks["night-one-d"].holder).NotTo(BeEmpty())
	l.Expect(l.succeeded()).To(And(HaveField("Reason", v1alpha1.ReasonRunsFailed),
		HaveField("Message", ContainSubstring("variant one: FileSystem night-one was deleted by somebody else before it was measured"))))
}

func TestASuiteGoesOnAfterAFailureOrStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(s *v1alpha1.BenchmarkSuite)
		happens  func(l *lab)
		measured []string
		states   []v1alpha1.VariantState
		says     string
		stays    bool
	}{
		"a run fails, and the next follows": {
			func(*v1alpha1.BenchmarkSuite) {}, func(l *lab) { l.fails["night-one-reads"] = true },
			everyRun, []v1alpha1.VariantState{v1alpha1.VariantFailed, v1alpha1.VariantDone},
			"3 of 4 runs have all their results; the first failure: run reads of variant one: PointsFailed: 1 of 1 points failed", false,
		},
		"a run fails, and nothing follows": {
			stops, func(l *lab) { l.fails["night-one-reads"] = true },
			everyRun[:1], []v1alpha1.VariantState{v1alpha1.VariantFailed, v1alpha1.VariantPending},
			"run reads has not all its results, and spec.onFailure is Stop", true,
		},
		"a FileSystem is not Ready in time, and the next follows": {
			func(*v1alpha1.BenchmarkSuite) {}, func(l *lab) { l.notReady["night-one"] = "its master hangs" },
			everyRun[2:], []v1alpha1.VariantState{v1alpha1.VariantFailed, v1alpha1.VariantDone},
			"variant one: FileSystem night-one did not become Ready within 30m0s (spec.readyTimeout): Starting: its master hangs", false,
		},
		"a FileSystem is not Ready in time, and nothing follows": {
			stops, func(l *lab) { l.notReady["night-one"] = "its master hangs" },
			nil, []v1alpha1.VariantState{v1alpha1.VariantFailed, v1alpha1.VariantPending},
			"did not become Ready within 30m0s", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			c.happens(l)
			l.suite(c.change)
			l.settle()
			l.clock.SetTime(l.clock.Now().Add(31 * time.Minute))
			l.settle()
			l.Expect(l.succeeded()).To(And(HaveField("Reason", v1alpha1.ReasonRunsFailed), HaveField("Message", ContainSubstring(c.says))))
			l.Expect(l.measured).To(Equal(c.measured))
			l.Expect(l.states()).To(Equal(c.states))
			l.Expect(l.fileSystem("night-one") != nil).To(Equal(c.stays), "Stop leaves the FileSystem as it is")
			l.Expect(l.get().Status.CompletionTime).NotTo(BeNil())
		})
	}
}

func TestSuspendStopsTheRunThatIsUnderWay(t *testing.T) {
	l := newLab(t)
	l.suite()
	l.hold = true
	l.settle()
	l.Expect(l.get().Status.Current).To(HavePrefix("one: reads"))
	l.change(func(s *v1alpha1.BenchmarkSuite) { s.Spec.Suspend = true })
	l.hold = false
	l.must(l.reconcile())
	l.settle()
	run := &v1alpha1.BenchmarkRun{}
	key := client.ObjectKey{Namespace: l.namespace, Name: "night-one-reads"}
	l.must(server.Client.Get(t.Context(), key, run))
	l.Expect(run.Spec.Suspend).To(BeTrue())
	l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonSuspended))
	l.Expect(l.get().Status.Conditions).To(HaveLen(1), "a suspended suite is neither reconciling nor stalled")
	l.Expect(l.fileSystem("night-one")).NotTo(BeNil())
	l.change(func(s *v1alpha1.BenchmarkSuite) { s.Spec.Suspend = false })
	l.settle()
	l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
	l.Expect(l.measured).To(Equal(everyRun))
}

func TestASuiteThatIsDeletedDestroysNothing(t *testing.T) {
	t.Parallel()
	deleted := func(l *lab) {
		l.t.Helper()
		l.must(server.Client.Delete(l.t.Context(), l.get()))
		l.must(l.reconcile())
		l.Expect(apierrors.IsNotFound(server.Client.Get(l.t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "night"}, &v1alpha1.BenchmarkSuite{}))).To(BeTrue())
	}
	t.Run("while it measures, the FileSystem stays", func(t *testing.T) {
		l := newLab(t)
		l.suite(destroys)
		l.hold = true
		l.settle()
		deleted(l)
		l.play()
		l.Expect(l.fileSystem("night-one").DeletionTimestamp).To(BeNil())
		l.Expect(l.fileSystem("night-one").Spec.DeletionPolicy).To(Equal(v1alpha1.DeletionRetain))
		l.Expect(l.announced()).To(ContainElement(And(HavePrefix("Normal FileSystemsStay"), HaveSuffix("these FileSystems stay until they are deleted: night-one"))))
	})
	// Each state before the wipe; at the third step it was confirmed, and no agent has wiped yet.
	for n := range 4 {
		t.Run(fmt.Sprintf("%d steps into the removal, what is on the disks is kept", n), func(t *testing.T) {
			l := newLab(t)
			l.suite(destroys)
			for l.get().Status.Variants == nil || l.states()[0] != v1alpha1.VariantRemoving {
				l.must(l.reconcile())
				l.play()
			}
			for range n {
				l.play()
				l.must(l.reconcile())
			}
			if fs := l.fileSystem("night-one"); n == 3 {
				l.Expect(fs.Spec.ConfirmDestroy).To(Equal(string(fs.UID)))
			}
			deleted(l)
			for l.play() {
			}
			l.Expect(l.wiped()).To(BeEmpty())
			l.Expect(l.disks["night-one-d"].holder).NotTo(BeEmpty())
		})
	}
	t.Run("when its finalizer is the last that is left", func(t *testing.T) {
		l := newLab(t)
		l.suite(func(s *v1alpha1.BenchmarkSuite) { s.Spec.Variants[0].FileSystem = patch(`{"version":"1"}`) })
		l.settle()
		deleted(l)
	})
}

func TestASuiteIsDeletedWhenItsTimeIsOver(t *testing.T) {
	l := newLab(t)
	l.suite(keeps, func(s *v1alpha1.BenchmarkSuite) { s.Spec.TTLSecondsAfterFinished = new(int32(3600)) })
	l.settle()
	l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
	l.clock.SetTime(l.clock.Now().Add(time.Hour + time.Second))
	l.must(l.reconcile())
	l.must(l.reconcile())
	l.Expect(apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "night"}, &v1alpha1.BenchmarkSuite{}))).To(BeTrue())
	l.Expect(l.fileSystem("night-one")).NotTo(BeNil())
	l.Expect(l.fileSystem("night-two")).NotTo(BeNil())
}

func TestForeignChangesDuringAPlanAreReported(t *testing.T) {
	t.Parallel()
	t.Run("the FileSystem is changed", func(t *testing.T) {
		l := newLab(t)
		l.suite()
		l.hold = true
		l.settle()
		fs := l.fileSystem("night-one")
		fs.Spec.DeletionPolicy, fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, string(fs.UID)
		l.must(server.Client.Update(t.Context(), fs))
		l.settle()
		l.Expect(l.get().Status.Variants[0].Message).To(ContainSubstring("the spec of the FileSystem was changed after it was made"))
		l.hold = false
		l.settle()
		l.Expect(l.wiped()).To(BeEmpty(), "afterVariant Delete keeps what is on the disks, whatever was set on the FileSystem")
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
	})
	t.Run("a quota comes that leaves no room for a run", func(t *testing.T) {
		l := newLab(t)
		l.suite()
		l.notReady["night-one"] = "not yet"
		l.settle()
		delete(l.notReady, "night-one")
		l.operator.Client = interceptor.NewClient(l.client, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "benchmarkruns"}, o.GetName(), errors.New("exceeded quota: runs"))
			},
		})
		l.settle()
		l.Expect(l.succeeded()).To(And(HaveField("Reason", v1alpha1.ReasonInvalidSpec),
			HaveField("Message", And(HavePrefix("variant one: BenchmarkRun night-one-reads can't be made"), ContainSubstring("exceeded quota: runs")))))
		l.operator.Client = l.client
		l.settle()
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
	})
	t.Run("a ConfigMap of another owner has the name of the results", func(t *testing.T) {
		l := newLab(t)
		mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "night-suite"}}
		l.must(server.Client.Create(t.Context(), mine))
		l.suite(keeps)
		l.settle()
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
		l.Expect(l.configMap("night-suite").ResourceVersion).To(Equal(mine.ResourceVersion))
		l.Expect(l.get().Status.Shortened).To(ContainSubstring("ConfigMap night-suite belongs to another owner"))
		l.Expect(l.get().Status.Table).To(HaveLen(4))
	})
	t.Run("a run is deleted", func(t *testing.T) {
		l := newLab(t)
		l.suite()
		l.hold = true
		l.settle()
		l.must(server.Client.Delete(t.Context(), &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "night-one-reads"}}))
		l.hold = false
		l.settle()
		l.Expect(l.measured).To(Equal(everyRun[1:]))
		l.Expect(l.succeeded().Message).To(ContainSubstring("BenchmarkRun night-one-reads was deleted by somebody else before its end"))
	})
	t.Run("a run is deleted when it is over", func(t *testing.T) {
		l := newLab(t)
		l.suite(keeps)
		for len(l.measured) < 2 {
			l.must(l.reconcile())
			l.play()
		}
		l.must(server.Client.Delete(t.Context(), &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "night-one-reads"}}))
		l.settle()
		l.Expect(l.succeeded().Reason).To(Equal(v1alpha1.ReasonAllRunsSucceeded))
		l.Expect(l.get().Status.Table).To(ContainElement(And(HaveField("Variant", "one"), HaveField("Run", "reads"))), "what it has found is kept")
	})
}
