//go:build envtest

package filesystem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// onRunningDisks returns a world with a healthy FileSystem on four disks.
func onRunningDisks(t *testing.T, change func(fs *v1alpha1.FileSystem)) (w *world, metadata *fakeDisk, data []*fakeDisk) {
	t.Helper()
	w = newWorld(t)
	metadata, data = w.threeDisks()
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		w.onDisks(metadata, data...)(fs)
		if change != nil {
			change(fs)
		}
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	return w, metadata, data
}

func (w *world) delete() {
	w.t.Helper()
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	w.settle()
}

func (w *world) gone() bool {
	w.t.Helper()
	return apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))
}

func (w *world) wipes() (n int) {
	for _, d := range w.disks {
		n += d.wipes
	}
	return n
}

func (w *world) mounted() (n int) {
	for _, d := range w.disks {
		if d.mounted {
			n++
		}
	}
	return n
}

func TestADeletedFileSystemReleasesItsDisksAndFindsThemAgain(t *testing.T) {
	w, metadata, data := onRunningDisks(t, nil)
	w.delete()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.targets()).To(BeEmpty())
	w.Expect(w.mounted()).To(BeZero())
	w.Expect(w.wipes()).To(BeZero())
	for _, d := range w.disks {
		w.Expect(d.target).NotTo(BeEmpty(), "what is on it is kept")
	}

	w.collectGarbage()
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.formats()).To(Equal(4), "no disk was formatted again")
}

func TestDestroyWipesDisksOnlyIfTheUIDOfTheFileSystemConfirmsIt(t *testing.T) {
	w, _, _ := onRunningDisks(t, nil)
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.DeletionPolicy, fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, string(fs.UID)
	})
	w.settle()
	w.Expect(w.wipes()).To(BeZero(), "it lives")
	w.delete()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.targets()).To(BeEmpty())
	for _, d := range w.disks {
		w.Expect(d.wipes).To(Equal(1))
	}
}

func TestDestroyThatIsNotConfirmedStopsTheDaemonsAndTouchesNoDisk(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		change func(fs *v1alpha1.FileSystem)
		wipes  int
	}{
		"it goes on when it is confirmed, and wipes the disks": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.ConfirmDestroy = string(fs.UID) }, wipes: 4,
		},
		"it goes on when the disks are to be kept": {
			change: func(fs *v1alpha1.FileSystem) { fs.Spec.DeletionPolicy = v1alpha1.DeletionRetain },
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			w, _, _ := onRunningDisks(t, func(fs *v1alpha1.FileSystem) {
				fs.Spec.DeletionPolicy, fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, "the-uid-of-a-copied-manifest"
			})
			w.delete()
			w.Expect(w.sets()).To(BeEmpty())
			w.Expect(w.targets()).To(HaveLen(4))
			w.Expect(w.targets()).To(HaveEach(HaveField("DeletionTimestamp", BeNil())))
			w.Expect(w.mounted()).To(Equal(4))
			w.Expect(w.ready()).To(And(HaveField("Reason", v1alpha1.ReasonDestroyUnconfirmed),
				HaveField("Message", And(ContainSubstring(fmt.Sprintf("set spec.confirmDestroy to %q", w.get().UID)), ContainSubstring("set spec.deletionPolicy to Retain")))))
			w.Expect(w.condition(v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))

			w.change(way.change)
			w.settle()
			w.Expect(w.gone()).To(BeTrue())
			w.Expect(w.mounted()).To(BeZero())
			w.Expect(w.wipes()).To(Equal(way.wipes))
		})
	}
}

func TestAWipeThatFailedIsNamedAndIsNeverASuccess(t *testing.T) {
	t.Parallel()
	ways := map[string]struct {
		change func(w *world, failed *fakeDisk)
		wipes  int
	}{
		"it ends when the disk was repaired": {
			change: func(_ *world, failed *fakeDisk) { failed.wipeFails = "" }, wipes: 4,
		},
		"it ends when the disk is to be kept": {
			change: func(w *world, _ *fakeDisk) {
				w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.DeletionPolicy = v1alpha1.DeletionRetain })
			},
			wipes: 3,
		},
		"it ends when the disk is decommissioned": {
			change: func(w *world, failed *fakeDisk) { w.giveUp(failed.node) }, wipes: 3,
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			w, _, data := onRunningDisks(t, func(fs *v1alpha1.FileSystem) { fs.Spec.DeletionPolicy = v1alpha1.DeletionDestroy })
			w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.ConfirmDestroy = string(fs.UID) })
			data[1].wipeFails = "wipefs: error: I/O error"
			w.delete()
			w.Expect(w.wipes()).To(Equal(3))
			w.Expect(w.targets()).To(HaveLen(1))
			w.Expect(w.ready()).To(And(HaveField("Reason", v1alpha1.ReasonReleasing), HaveField("Message", And(
				ContainSubstring("1 disk is left: "+w.target(data[1]).Name+" on "+data[1].node+" (could not be wiped: wipefs: error: I/O error)"),
				ContainSubstring("set spec.deletionPolicy to Retain"), ContainSubstring(v1alpha1.AnnotationGiveUp)))))
			w.Expect(w.condition(v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))

			way.change(w, data[1])
			w.settle()
			w.Expect(w.gone()).To(BeTrue())
			w.Expect(w.wipes()).To(Equal(way.wipes))
		})
	}
}

func TestADiskThatCanNotBeUnmountedIsNamed(t *testing.T) {
	w, _, data := onRunningDisks(t, nil)
	data[2].busy = "a shell of process 4711"
	w.delete()
	w.Expect(w.ready()).To(And(HaveField("Reason", v1alpha1.ReasonReleasing),
		HaveField("Message", ContainSubstring("could not be unmounted: in use by a shell of process 4711"))))
	data[2].busy = ""
	w.settle()
	w.Expect(w.gone()).To(BeTrue())
}

// giveUp follows the message of a FileSystem: it annotates everything on a node.
func (w *world) giveUp(node string) {
	w.t.Helper()
	w.Expect(w.ready().Message).To(ContainSubstring(fmt.Sprintf(
		"kubectl annotate storagetargets -n %s -l parallelfs.dev/filesystem=scratch,parallelfs.dev/node=%s parallelfs.dev/give-up=%s", w.namespace, node, node)))
	var list v1alpha1.StorageTargetList
	w.Expect(server.Client.List(w.ctx, &list, client.InNamespace(w.namespace),
		client.MatchingLabels{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelNode: node})).To(Succeed())
	w.Expect(list.Items).NotTo(BeEmpty())
	for i := range list.Items {
		w.person(&list.Items[i], func(t *v1alpha1.StorageTarget) {
			t.Annotations[v1alpha1.AnnotationGiveUp] = node
		})
	}
}

func TestALostNodeIsDecommissionedByOneCommandWhichListsTheLoss(t *testing.T) {
	w, _, data := onRunningDisks(t, nil)
	w.agentGone(w.nodes[2])
	w.Expect(server.Client.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodes[2]}})).To(Succeed())
	w.delete()
	w.Expect(w.targets()).To(HaveLen(1))
	w.Expect(w.ready()).To(And(HaveField("Reason", v1alpha1.ReasonReleasing),
		HaveField("Message", ContainSubstring(w.target(data[2]).Name+" on "+w.nodes[2]+" (the node is not in the cluster)"))))
	w.Expect(w.condition(v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue), "a person has to decide")

	w.giveUp(w.nodes[2])
	w.settle()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.messages()).To(ContainElement(And(ContainSubstring("Warning GaveUp"), ContainSubstring(data[2].id), ContainSubstring("serial S-"+data[2].id),
		ContainSubstring("storage pool ssd"), ContainSubstring("neither unmounted nor wiped"))))
}

// messages returns the events so far.
func (w *world) messages() (texts []string) {
	for {
		select {
		case text := <-w.events.Events:
			texts = append(texts, text)
		default:
			return texts
		}
	}
}

func TestADiskThatWasNeverTouchedDoesNotTrapTheDeletionOnANodeWithoutAnAgent(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		w.onDisks(metadata, data...)(fs)
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatApproved
	})
	w.settle()
	w.Expect(w.targets()).To(HaveLen(4))
	w.agentGone(w.nodes[2])
	w.delete()
	w.Expect(w.gone()).To(BeTrue())
}

// settleKilled runs operators until nothing more is written. Each is killed after its first write, and every other one reconciles the
// StorageTargets first. It returns their number.
func (w *world) settleKilled() (killed int) {
	w.t.Helper()
	quiet := 0
	for i := range 200 {
		c := server.Killable(w.t, 1)
		controllers := []func(client.Client) error{w.reconcile, w.reconcileTargets}
		if i%2 == 1 {
			slices.Reverse(controllers)
		}
		err := controllers[0](c)
		if err == nil {
			err = controllers[1](c)
		}
		if err != nil {
			w.Expect(errors.Is(err, apiserver.ErrKilled)).To(BeTrue(), err.Error())
			killed++
		}
		if w.eachLook != nil {
			w.eachLook()
		}
		changed := w.agents()
		changed = w.runPods() || changed
		if w.hive != nil {
			changed = w.workJobs() || changed
		}
		if len(c.Writes()) > 0 || changed {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return killed
		}
	}
	w.t.Fatal("the operators go on writing")
	return 0
}

// outcome describes daemons, StorageTargets and disks, without what differs between two worlds.
func (w *world) outcome() string {
	w.t.Helper()
	var lines []string
	for _, s := range w.sets() {
		raw, err := json.Marshal(s.Spec)
		w.Expect(err).NotTo(HaveOccurred())
		lines = append(lines, fmt.Sprintf("DaemonSet %s %s", s.Name, raw))
	}
	for _, t := range w.targets() {
		raw, err := json.Marshal(t.Spec)
		w.Expect(err).NotTo(HaveOccurred())
		lines = append(lines, fmt.Sprintf("StorageTarget %s ready %s online %s deleted %t %s", t.Spec.Device.ID, of(&t, v1alpha1.ConditionReady).Status,
			of(&t, v1alpha1.ConditionOnline).Status, t.DeletionTimestamp != nil, strings.ReplaceAll(string(raw), t.Spec.FileSystem.UID, "UID")))
	}
	for _, d := range w.disks {
		lines = append(lines, fmt.Sprintf("%s carries a target %t mounted %t formats %d wipes %d", d.id, d.target != "", d.mounted, d.formats, d.wipes))
	}
	slices.Sort(lines)
	return hashes.ReplaceAllString(strings.ReplaceAll(strings.Join(lines, "\n"), w.namespace, "NAMESPACE"), "HASH")
}

func TestOperatorsThatAreKilledAfterEveryWriteEndInTheSameStateAtEachStepOfALife(t *testing.T) {
	t.Parallel()
	type life struct {
		w    *world
		more *fakeDisk
		rest []*fakeDisk
	}
	begin := func() *life {
		w := anotherWorld(t)
		metadata, data := w.threeDisks()
		more := w.disk(w.nodes[1], "more")
		w.alive = true
		w.fileSystem(w.onDisks(metadata, data...))
		return &life{w, more, data}
	}
	steps := []struct {
		name string
		do   func(l *life)
	}{
		{"creation", func(*life) {}},
		{"expansion", func(l *life) {
			l.w.change(func(fs *v1alpha1.FileSystem) {
				fs.Spec.StoragePools[0].Targets.Devices = references(append(slices.Clone(l.rest), l.more)...)
			})
		}},
		{"removal", func(l *life) {
			l.w.person(l.w.target(l.more), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
			l.w.moved = true
			l.w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(l.rest...) })
		}},
		{"deletion", func(l *life) {
			l.w.change(func(fs *v1alpha1.FileSystem) {
				fs.Spec.DeletionPolicy, fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, string(fs.UID)
			})
			l.w.Expect(server.Client.Delete(l.w.ctx, l.w.get())).To(Succeed())
		}},
	}
	undisturbed, killed := begin(), begin()
	undisturbed.w.settle()
	for _, step := range steps {
		step.do(undisturbed)
		undisturbed.w.settle()
		step.do(killed)
		n := killed.w.settleKilled()
		t.Logf("%s: %d operators were killed", step.name, n)
		killed.w.Expect(n).To(BeNumerically(">", 3), step.name)
		killed.w.Expect(killed.w.outcome()).To(Equal(undisturbed.w.outcome()), step.name)
	}
	killed.w.Expect(killed.w.gone()).To(BeTrue())
	killed.w.Expect(killed.w.targets()).To(BeEmpty())
	killed.w.Expect(killed.w.wipes()).To(Equal(4))
	killed.w.Expect(killed.more.target).NotTo(BeEmpty(), "the disk that was removed before is kept")
}
