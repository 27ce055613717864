package serve_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/mountlock"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/test/patience"
)

// thisStart is the boot id of the node.
const thisStart = "9f2c1a40-0f6b-4d0e-a0a5-6f3f5b8c2d11"

// ostOfPair returns an OST of a pair with a free lock.
func ostOfPair(t *testing.T) serve.Target {
	t.Helper()
	of := ost(0)
	of.BootID, of.Lock = thisStart, filepath.Join(t.TempDir(), "ost0.lock")
	NewWithT(t).Expect(mountlock.Make(of.Lock)).To(Succeed())
	return of
}

// pairKeeper returns a keeper with this configuration on a node in its first boot.
func pairKeeper(n serve.Node, says *config) *serve.Keeper {
	k := says.keeper(n)
	k.BootID = func() (string, error) { return thisStart, nil }
	return k
}

// locks is true while a program holds the lock of a target.
func locks(g Gomega, of serve.Target) bool {
	lock, err := mountlock.Take(of.Lock)
	if err != nil {
		_, held := errors.AsType[*mountlock.HeldError](err)
		g.Expect(held).To(BeTrue(), err.Error())
		return true
	}
	g.Expect(lock.Close()).To(Succeed())
	return false
}

func TestATargetOfTwoNodesIsNotMountedWhileItsLockIsHeld(t *testing.T) {
	g, n, of := NewWithT(t), newNode(), ostOfPair(t)
	k := pairKeeper(n, &config{ServerConfig: serve.ServerConfig{Targets: []serve.Target{of, ost(1)}}})
	agent, err := mountlock.Take(of.Lock)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(k.Round(t.Context())).To(HaveKeyWithValue("ost0", MatchError(ContainSubstring("gives it to another node, at this moment"))))
	g.Expect(n.done).To(Equal([]string{"mount ost1"}), "and keeps no other")
	g.Expect(agent.Close()).To(Succeed())
	g.Expect(k.Round(t.Context())).To(BeEmpty())
	g.Expect(n.done).To(Equal([]string{"mount ost1", "mount ost0"}))
	g.Expect(locks(g, of)).To(BeFalse())
}

func TestTheLockOfATargetIsHeldUntilItsMountHasEnded(t *testing.T) {
	g, n, of := NewWithT(t), newNode(), ostOfPair(t)
	n.hangs = map[string]chan struct{}{"ost0": make(chan struct{})}
	k := pairKeeper(n, &config{ServerConfig: serve.ServerConfig{Targets: []serve.Target{of}}})
	k.Patience = 10 * time.Millisecond
	g.Eventually(func() map[string]error { return k.Round(t.Context()) }).WithTimeout(patience.Bound(time.Minute)).Should(
		HaveKeyWithValue("ost0", MatchError(ContainSubstring("has not ended yet"))))
	g.Eventually(func() []string {
		n.mutex.Lock()
		defer n.mutex.Unlock()
		return n.done
	}).WithTimeout(patience.Bound(time.Minute)).Should(Equal([]string{"mount ost0"}))
	g.Expect(locks(g, of)).To(BeTrue())
	n.mutex.Lock()
	g.Expect(n.kept).To(HaveExactElements(HaveField("Name()", of.Lock)), "the program of the mount has it, too")
	n.mutex.Unlock()
	close(n.hangs["ost0"])
	g.Eventually(func() bool { return locks(g, of) }).WithTimeout(patience.Bound(time.Minute)).Should(BeFalse())
}

func TestTheNodeFileFromBeforeTheLockIsNotUsed(t *testing.T) {
	for name, c := range map[string]struct {
		now     serve.ServerConfig
		missing string
		says    string
	}{
		"it was handed over to the other node": {says: "it is not this server's any more: another node may have it"},
		"it waits for something":               {now: serve.ServerConfig{Targets: []serve.Target{{Name: "ost0", Waits: "its disk is not proven yet"}}}, says: "not proven yet"},
		"it is no longer known":                {missing: "the file of this node can't be read", says: "the file of this node can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			g, n, of := NewWithT(t), newNode(), ostOfPair(t)
			k, reads, locked := pairKeeper(n, &config{}), 0, false
			k.Config = func() (serve.ServerConfig, string) {
				if reads++; reads == 1 {
					return serve.ServerConfig{Targets: []serve.Target{of}}, ""
				}
				_, err := mountlock.Take(of.Lock)
				locked = err != nil
				return c.now, c.missing
			}
			g.Expect(k.Round(t.Context())).To(HaveKeyWithValue("ost0", MatchError(ContainSubstring(c.says))))
			g.Expect(reads).To(Equal(2))
			g.Expect(locked).To(BeTrue(), "what is read then can't be changed before the mount")
			g.Expect(n.done).To(BeEmpty())
		})
	}
}

func TestTargetsOfAnEarlierBootAreNotMounted(t *testing.T) {
	g, n, of := NewWithT(t), newNode(), ostOfPair(t)
	says := &config{ServerConfig: serve.ServerConfig{Targets: []serve.Target{of}}}
	k := pairKeeper(n, says)
	k.BootID = func() (string, error) { return "another start", nil }
	for range 2 {
		g.Expect(k.Round(t.Context())).To(HaveKeyWithValue("ost0", MatchError(ContainSubstring("is of an earlier start of the node"))))
	}
	k.BootID = func() (string, error) { return "", os.ErrPermission }
	g.Expect(k.Round(t.Context())).To(HaveKeyWithValue("ost0", MatchError(ContainSubstring("can't see which start of the node this is"))))
	g.Expect(n.done).To(BeEmpty())

	of.BootID = "another start"
	says.Targets = []serve.Target{of}
	k.BootID = func() (string, error) { return "another start", nil }
	g.Expect(k.Round(t.Context())).To(BeEmpty(), "the agent has asked, and said it anew")
	g.Expect(n.done).To(Equal([]string{"mount ost0"}))
}

func TestATargetOfTwoNodesWithoutALockIsNotMounted(t *testing.T) {
	g, n, of := NewWithT(t), newNode(), ostOfPair(t)
	g.Expect(os.Remove(of.Lock)).To(Succeed())
	k := pairKeeper(n, &config{ServerConfig: serve.ServerConfig{Targets: []serve.Target{of}}})
	g.Expect(k.Round(t.Context())).To(HaveKeyWithValue("ost0", MatchError(os.ErrNotExist)))
	g.Expect(n.done).To(BeEmpty())
}

func TestTheMountProgramGetsTheOpenFiles(t *testing.T) {
	g := NewWithT(t)
	lock, err := os.CreateTemp(t.TempDir(), "lock")
	g.Expect(err).NotTo(HaveOccurred())
	defer lock.Close()
	var kept []*os.File
	h := serve.Host{RunMounting: func(_ context.Context, _ []string, keep ...*os.File) (format.Answer, error) {
		kept = keep
		return format.Answer{}, nil
	}}
	g.Expect(h.Mount(t.Context(), ost(0), "/dev/vdc", lock)).To(Succeed())
	g.Expect(kept).To(Equal([]*os.File{lock}))
}
