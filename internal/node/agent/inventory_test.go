package agent

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// watchedNode is a node and its inventory, with two disks, of which a test may remove one.
type watchedNode struct {
	*Inventory
	pulled bool
	// unlisted is true if the devices of the node can't be listed, and unread if its first disk does not answer.
	unlisted, unread bool
	// targets holds the targets on its disks, and unusable the reasons why the first disk can't be used.
	targets  [2]string
	unusable []string
	// signatures are the signatures on its first disk.
	signatures []v1alpha1.Signature
	// daemons run on it.
	daemons []v1alpha1.DaemonPlacement
	began   time.Time
	// looks holds the times of its scans, and writes those of its publications.
	looks, writes []time.Duration
}

// watch publishes the inventory of a node until the test ends, after the given number of triggers.
func watch(t *testing.T, triggers int) *watchedNode {
	t.Helper()
	n := newWatched(t)
	for range triggers {
		n.Trigger()
	}
	n.start(t)
	return n
}

// newWatched is a node whose inventory is not published yet.
func newWatched(t *testing.T) *watchedNode {
	t.Helper()
	g := NewWithT(t)
	scheme, err := Scheme()
	g.Expect(err).NotTo(HaveOccurred())
	n := &watchedNode{began: time.Now()}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.NodeInventory{}).
		WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "oss1"}}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(
			ctx context.Context, c client.Client, of string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption,
		) error {
			n.writes = append(n.writes, time.Since(n.began))
			return c.SubResource(of).Apply(ctx, o, options...)
		}}).Build()
	n.Inventory = &Inventory{
		Client: c, NodeName: "oss1", Resync: 10 * time.Minute, Every: 30 * time.Second, Triggers: make(chan struct{}, 1), Confirmed: func(time.Time) {},
		Collect: func(context.Context) v1alpha1.NodeInventoryStatus {
			n.looks = append(n.looks, time.Since(n.began))
			out := v1alpha1.NodeInventoryStatus{
				BlockDevices: []v1alpha1.BlockDevice{
					{KernelName: "sda", Serial: "A", Target: n.targets[0], Unusable: n.unusable, Signatures: n.signatures},
					{KernelName: "sdb", Serial: "B", Target: n.targets[1]},
				},
				Summary: v1alpha1.InventorySummary{Disks: 2, Usable: 2, UsableCapacity: "2 TB"},
				Daemons: slices.Clone(n.daemons),
			}
			if n.unread {
				out.BlockDevices[0].Signatures = nil
				out.BlockDevices[0].Unusable = []string{
					"sda could not be looked at completely: blkid: no answer within 30s; such a device is left alone",
				}
			}
			if n.unlisted {
				out.BlockDevices, out.Problems = nil, []string{"can't list the block devices: no answer within 30s"}
				out.Summary = v1alpha1.InventorySummary{}
			}
			if n.pulled {
				out.BlockDevices = out.BlockDevices[:1]
			}
			return out
		},
		Placements: func() ([]v1alpha1.DaemonPlacement, error) { return n.daemons, nil },
		Targets:    func(context.Context) ([]v1alpha1.StorageTarget, error) { return nil, nil },
	}
	return n
}

func TestTheInventoryShowsTheSettingsThatTheServersOfTheNodeAskFor(t *testing.T) {
	for name, c := range map[string]struct {
		member v1alpha1.NodeMember
		want   []v1alpha1.HostSetting
	}{
		"a server that asks":          {v1alpha1.NodeMember{Role: v1alpha1.RoleStorage}, []v1alpha1.HostSetting{{Name: "vm.dirty_ratio", Found: "20", Expected: "20", AsExpected: true}}},
		"a server that asks for none": {v1alpha1.NodeMember{Role: v1alpha1.RoleManagement}, nil},
		"a server that has retired":   {v1alpha1.NodeMember{Role: v1alpha1.RoleStorage, Retired: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			n := newWatched(t)
			n.Settings = []spec.HostSetting{{Name: "vm.dirty_ratio", Expected: "20", FileSystem: "Example", Roles: []string{"Storage"}}}
			c.member.Name = "s"
			g.Expect(n.Client.Create(t.Context(), &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "storage"}, Spec: v1alpha1.FileSystemNodeSpec{
				Node: "oss1", Facts: &v1alpha1.FileSystemFacts{Type: "Example"}, Members: []v1alpha1.NodeMember{c.member},
			}})).To(Succeed())
			found := v1alpha1.NodeInventoryStatus{Settings: []v1alpha1.HostSetting{{Name: "vm.dirty_ratio", Found: "20"}}}
			g.Expect(n.applying(t.Context(), &found)).To(Succeed())
			g.Expect(found.Settings).To(Equal(c.want))
		})
	}
}

// start publishes the inventory until the test ends.
func (n *watchedNode) start(t *testing.T) {
	t.Helper()
	go func() { NewWithT(t).Expect(n.Start(t.Context())).To(Succeed()) }()
	synctest.Wait()
}

// at waits until the given time after the start.
func (n *watchedNode) at(after time.Duration) {
	<-time.After(after - time.Since(n.began))
	synctest.Wait()
}

// published returns the status at the API server.
func (n *watchedNode) published(t *testing.T) v1alpha1.NodeInventoryStatus {
	t.Helper()
	var published v1alpha1.NodeInventory
	NewWithT(t).Expect(n.Client.Get(t.Context(), client.ObjectKey{Name: "oss1"}, &published)).To(Succeed())
	return published.Status
}

// disks returns the number of disks in the published inventory.
func (n *watchedNode) disks(t *testing.T) int {
	t.Helper()
	return len(n.published(t).BlockDevices)
}

func TestChangesThatArriveTogetherArePublishedOnce(t *testing.T) {
	at := func(seconds ...int) (out []time.Duration) {
		for _, s := range seconds {
			out = append(out, time.Duration(s)*time.Second)
		}
		return out
	}
	for name, c := range map[string]struct {
		triggers, looks []time.Duration
	}{
		"a node is published as its agent starts":     {looks: at(0)},
		"one trigger is followed eight seconds later": {triggers: at(60), looks: at(0, 68)},
		"those that come together are followed once":  {triggers: at(60, 61, 62, 63), looks: at(0, 71)},
		"those that do not end are followed after twelve seconds": {
			triggers: at(60, 62, 64, 66, 68, 70, 72, 74, 76), looks: at(0, 72, 84),
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := watch(t, 0)
				for _, trigger := range c.triggers {
					n.at(trigger)
					n.Trigger()
					synctest.Wait()
				}
				n.at(5 * time.Minute)
				NewWithT(t).Expect(n.looks).To(Equal(c.looks))
			})
		})
	}
}

func TestAnAgentIsReadyOnlyWhileARecentScanConfirmsItsInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, n := NewWithT(t), newWatched(t)
		var confirmed atomic.Pointer[time.Time]
		n.Confirmed = func(began time.Time) { confirmed.Store(&began) }
		is := ready(&confirmed, n.Resync+scanTime, time.Now)
		g.Expect(is(nil)).To(MatchError(ContainSubstring("was not published yet")))
		n.start(t)
		g.Expect(is(nil)).To(Succeed())
		n.at(n.Resync + time.Minute)
		g.Expect(is(nil)).To(Succeed(), "it has scanned the node again, and nothing has changed")
		g.Expect(n.writes).To(HaveLen(1), "a node that does not change is not written again")

		hung := make(chan struct{})
		defer close(hung)
		scan := n.Collect
		n.Collect = func(ctx context.Context) v1alpha1.NodeInventoryStatus {
			select {
			case <-hung:
			case <-ctx.Done():
			}
			return scan(ctx)
		}
		n.at(2*n.Resync + scanTime)
		g.Expect(is(nil)).To(Succeed())
		n.at(2*n.Resync + scanTime + time.Minute)
		g.Expect(is(nil)).To(MatchError(ContainSubstring("no scan of the node has confirmed the NodeInventory for more than 15m0s")))
	})
}

func TestANodeIsPublishedWithoutDelayWhenItsAgentStarts(t *testing.T) {
	for range 20 { // select picks any of the channels that are ready
		synctest.Test(t, func(t *testing.T) {
			NewWithT(t).Expect(watch(t, 1).disks(t)).To(Equal(2))
		})
	}
}

func TestADiskThatIsPulledOutIsMissedWithinFifteenSecondsAlsoWhileOthersAreMade(t *testing.T) {
	for name, every := range map[string]time.Duration{"a node at rest": time.Hour, "a node whose disks are made": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, n := NewWithT(t), watch(t, 0)
				go func() {
					for {
						select {
						case <-t.Context().Done():
							return
						case <-time.After(every):
							n.Trigger()
						}
					}
				}()
				n.at(100 * time.Second)
				g.Expect(n.disks(t)).To(Equal(2))
				n.pulled = true
				n.Trigger()
				n.at(115 * time.Second)
				g.Expect(n.disks(t)).To(Equal(1))
			})
		})
	}
}

func TestDaemonsThatStartOneAfterAnotherArePublishedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, n := NewWithT(t), watch(t, 0)
		n.at(100 * time.Second)
		for second := range 5 {
			n.at(time.Duration(115+second) * time.Second)
			n.daemons = append(n.daemons, v1alpha1.DaemonPlacement{Name: "meta-" + strconv.Itoa(second)})
		}
		n.at(131 * time.Second)
		g.Expect(n.looks).To(Equal([]time.Duration{0, 128 * time.Second}), "eight seconds after it was seen that they run")
		n.at(9 * time.Minute)
		g.Expect(n.looks).To(HaveLen(3), "once more until it rests; nothing has moved since")
		g.Expect(n.published(t).Daemons).To(HaveLen(5))
		g.Expect(n.writes).To(Equal([]time.Duration{0, 248 * time.Second}))
	})
}

func TestANodeWithNewDisksIsPublishedWhenItsServersRunOrAfterFiveMinutes(t *testing.T) {
	made := func(n *watchedNode, disk int) {
		n.targets[disk] = "storage/scratch-" + strconv.Itoa(disk)
		n.Trigger()
	}
	synctest.Test(t, func(t *testing.T) {
		g, n := NewWithT(t), watch(t, 0)
		n.at(60 * time.Second)
		made(n, 0)
		n.at(75 * time.Second)
		made(n, 1)
		n.at(90 * time.Second)
		n.daemons = []v1alpha1.DaemonPlacement{{Name: "chunkserver"}}
		n.at(10 * time.Minute)
		g.Expect(n.writes).To(Equal([]time.Duration{0, 248 * time.Second}), "two minutes after the last of it was seen")
		g.Expect(n.published(t).BlockDevices).To(HaveEach(HaveField("Target", HavePrefix("storage/"))))
		g.Expect(n.published(t).Daemons).To(HaveLen(1))
	})
	synctest.Test(t, func(t *testing.T) {
		g, n := NewWithT(t), watch(t, 0)
		for second := 60; second < 480; second += 10 {
			n.at(time.Duration(second) * time.Second)
			n.targets[0] = "storage/scratch-" + strconv.Itoa(second)
			n.Trigger()
		}
		g.Expect(n.writes).To(HaveLen(2))
		g.Expect(n.writes[1]).To(BeNumerically("~", 370*time.Second, 15*time.Second), "it never rests")
	})
}

func TestADiskThatAnotherProgramUsesIsPublishedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, n := NewWithT(t), watch(t, 0)
		n.at(60 * time.Second)
		n.unusable = []string{"it is mounted at /mnt"}
		n.Trigger()
		n.at(70 * time.Second)
		g.Expect(n.published(t).BlockDevices[0].Unusable).To(Equal(n.unusable))
	})
}

func TestALookThatCouldNotBeFinishedTakesNoDiskAway(t *testing.T) {
	label := []v1alpha1.Signature{{Device: "sda", Type: "ext4", Label: "pfs-1"}}
	looksAgain := func(t *testing.T, change func(n *watchedNode)) (*watchedNode, v1alpha1.NodeInventoryStatus) {
		t.Helper()
		n := watch(t, 0)
		n.signatures = label
		n.Trigger()
		n.at(60 * time.Second)
		change(n)
		n.Trigger()
		n.at(75 * time.Second)
		published := n.published(t)
		return n, published
	}
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		n, published := looksAgain(t, func(n *watchedNode) { n.unlisted = true })
		g.Expect(published.BlockDevices).To(HaveLen(2), "the devices could not be listed, and they are not gone")
		for _, b := range published.BlockDevices {
			g.Expect(b.Unusable).To(ConsistOf(
				b.KernelName + " could not be looked at completely: can't list the block devices: no answer within 30s; such a device is left alone"))
		}
		g.Expect(published.BlockDevices[0].Signatures).To(Equal(label))
		g.Expect(published.Problems).To(ConsistOf("can't list the block devices: no answer within 30s"))
		g.Expect(published.Summary).To(Equal(v1alpha1.InventorySummary{Disks: 2, UsableCapacity: "0B", Settings: "0/0"}))
		n.unlisted = false
		n.at(4 * time.Minute)
		g.Expect(n.published(t).BlockDevices).To(HaveEach(HaveField("Unusable", BeEmpty())), "the look is repeated before the resync")
		g.Expect(n.published(t).Problems).To(BeEmpty())
	})
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		_, published := looksAgain(t, func(n *watchedNode) { n.unread = true })
		g.Expect(published.BlockDevices[0].Signatures).To(Equal(label), "what could not be read is not absent")
		g.Expect(published.BlockDevices[0].Unusable).To(ConsistOf(ContainSubstring("could not be looked at completely")))
		g.Expect(published.BlockDevices[1].Unusable).To(BeEmpty())
	})
}

func TestANodeIsNotPublishedBeforeItsDisksAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, n := NewWithT(t), newWatched(t)
		n.unlisted = true
		n.start(t)
		n.at(20 * time.Second)
		g.Expect(n.looks).To(HaveLen(2), "it is tried again")
		g.Expect(n.writes).To(BeEmpty())
		n.unlisted = false
		n.at(40 * time.Second)
		g.Expect(n.disks(t)).To(Equal(2))
	})
}
