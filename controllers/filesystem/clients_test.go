//go:build envtest

package filesystem_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// withOlderClients returns a world whose servers were upgraded, and whose clients were not.
func withOlderClients(t *testing.T) *world {
	t.Helper()
	w := olderMooseFS(t)
	w.change(goesTo(newVersion))
	w.settle()
	w.finishJobs()
	w.settle()
	w.Expect(w.run("client")).To(Equal(map[string]int{oldVersion: 3}))
	w.Expect(w.upgrading().Reason).To(Equal(v1alpha1.ReasonClientsOlder))
	return w
}

// clientsFollow requests that clients are remounted.
func clientsFollow(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Clients = v1alpha1.ClientsNow }

func TestClientsFollowAnUpgradeWhereTheSpecAsksForIt(t *testing.T) {
	w := withOlderClients(t)
	servers := w.uids()
	w.messages()
	w.change(clientsFollow)
	w.settle()
	w.Expect(w.run("client")).To(Equal(map[string]int{newVersion: 3}))
	w.Expect(w.upgrading()).To(BeZero())
	w.Expect(w.bringers()).To(BeEmpty())
	for name, uid := range w.uids() {
		w.Expect(uid == servers[name]).To(Equal(!strings.HasPrefix(name, "scratch-client.")), name)
	}
	follow := 0
	for _, event := range w.messages() {
		if strings.HasPrefix(event, "Normal Restarting Restarting client on node ") {
			w.Expect(event).To(ContainSubstring("it follows the upgrade to 4.57.5 (spec.updates.clients is Now)"))
			follow++
		}
	}
	w.Expect(follow).To(Equal(3))
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty())
}

func TestOnlyOneClientIsRemountedUntilItHasMountedWithTheNewVersion(t *testing.T) {
	w := withOlderClients(t)
	w.change(clientsFollow)
	for range 6 { // the image is brought to the nodes first
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.runPulls()
	}
	w.Expect(w.going()).To(HaveLen(1))
	w.Expect(w.going()[0].Spec.NodeName).To(Equal(w.nodes[0]))
	w.runPods() // ends it, and creates the next one
	w.runPods()
	w.Expect(w.run("client")).To(Equal(map[string]int{oldVersion: 2, newVersion: 1}))
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.going()).To(HaveLen(2), "it works, so the others follow together")
}

// going returns the pods of clients that were deleted and have not ended yet.
func (w *world) going() (out []corev1.Pod) {
	for _, p := range w.pods() {
		if component(&p) == "client" && !p.DeletionTimestamp.IsZero() {
			out = append(out, p)
		}
	}
	return out
}

func TestClientsAreRemountedOnlyWhenNothingElseIsInProgress(t *testing.T) {
	for name, c := range map[string]struct {
		hinder, free func(w *world)
		message      string
	}{
		"a node lacks the image": {
			func(w *world) { w.unpullable = map[string]string{w.nodes[2]: "not found"} },
			func(w *world) { w.unpullable = nil },
			"They are remounted when their nodes have the new image; 1 of 3 are missing: ",
		},
		"updates are paused": {
			func(w *world) { w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Paused = true }) },
			func(w *world) { w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Paused = false }) },
			"They are remounted when spec.updates.paused is false again",
		},
		"no window is open": {
			func(w *world) {
				w.change(func(fs *v1alpha1.FileSystem) {
					fs.Spec.Updates.Windows = []v1alpha1.UpdateWindow{{Schedule: "0 2 29 2 *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}}
				})
			},
			func(w *world) { w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Windows = nil }) },
			"They are remounted when the next window of spec.updates.windows opens at ",
		},
		"the filesystem is not well": {
			func(w *world) { w.lost = []string{w.nodes[1] + ":/data/ssd0"} },
			func(w *world) { w.lost = nil },
			"They are remounted when the filesystem is healthy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withOlderClients(t)
			c.hinder(w)
			w.change(clientsFollow)
			before := w.uids()
			w.settle()
			w.Expect(w.upgrading().Message).To(And(ContainSubstring("of the clients 3 run 3.0.117"), ContainSubstring(c.message)))
			w.Expect(w.uids()).To(Equal(before))
			c.free(w)
			w.settle()
			w.Expect(w.run("client")).To(Equal(map[string]int{newVersion: 3}))
		})
	}
}

func TestClientsAreNotRemountedWhileABenchmarkRuns(t *testing.T) {
	w := withOlderClients(t)
	run := w.measures()
	before := w.uids()
	w.change(clientsFollow)
	w.settle()
	w.Expect(w.upgrading().Message).To(ContainSubstring("They are remounted when "))
	w.Expect(w.upgrading().Message).To(ContainSubstring("has ended"))
	w.Expect(w.uids()).To(Equal(before))
	w.ends(run)
	w.settle()
	w.Expect(w.run("client")).To(Equal(map[string]int{newVersion: 3}))
}

func TestAClientWhoseNodeIsDownDelaysNoOther(t *testing.T) {
	w := withOlderClients(t)
	w.change(clientsFollow)
	w.unpullable = map[string]string{w.nodes[2]: "the node is down"}
	w.nodeIs(w.nodes[2], corev1.ConditionUnknown)
	w.settle()
	w.Expect(w.run("client")).To(Equal(map[string]int{newVersion: 2, oldVersion: 1}))
	w.Expect(w.upgrading().Message).To(ContainSubstring("these have one: " + w.nodes[2]))
}
