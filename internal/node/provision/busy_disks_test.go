//go:build disks

package provision_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
)

// holder is a process that works in a copy of the mount, in mounts of its own that follow those of the node: as a pod does that is
// starting.
func holder(l *provisiontest.Lab, path string) (proveUnmounted func()) {
	l.T.Helper()
	c := exec.Command("unshare", "--mount", "--propagation", "slave", "--wd="+path, "cat")
	in, err := c.StdinPipe()
	l.Expect(err).NotTo(HaveOccurred())
	out, err := c.StdoutPipe()
	l.Expect(err).NotTo(HaveOccurred())
	l.Expect(c.Start()).To(Succeed())
	// The output of cat shows that it runs under its own name.
	_, err = in.Write([]byte("holds"))
	l.Expect(err).NotTo(HaveOccurred())
	_, err = out.Read(make([]byte, len("holds")))
	l.Expect(err).NotTo(HaveOccurred())
	ended := false
	proveUnmounted = func() {
		if !ended {
			ended = true
			l.Expect(c.Process.Kill()).To(Succeed())
			l.Expect(c.Wait()).To(HaveOccurred())
		}
	}
	l.T.Cleanup(proveUnmounted)
	return proveUnmounted
}

func TestAMountThatStartingPodsHoldIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		lets     bool
		patience time.Duration
	}{
		"and is no failure when they release it": {lets: true, patience: time.Minute},
		"and is one when they don't":             {patience: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			l := provisiontest.New(t)
			l.Must("mount", "--bind", l.Root, l.Root)
			l.Must("mount", "--make-rshared", l.Root)
			t.Cleanup(func() { l.Must("umount", "-l", l.Root) })
			t.Cleanup(l.CloseMountpoints)
			d := l.Disk("data", 320*provisiontest.Mebi)
			target := l.Target(d)

			var proveUnmounted func()
			settled := 0
			agent := l.Agent(func(step string, done bool) error {
				if step != "SettleMark" || done {
					return nil
				}
				settled++
				switch {
				case settled == 1:
					proveUnmounted = holder(l, l.Mountpoint(target))
				case c.lets:
					proveUnmounted()
				}
				return nil
			})
			agent.Patience = c.patience
			var said []string
			err := agent.Pass(t.Context(), target, func(ctx context.Context, t *v1alpha1.StorageTarget, wanted v1alpha1.StorageTargetStatus) error {
				ready := meta.FindStatusCondition(wanted.Conditions, v1alpha1.ConditionReady)
				progress := meta.FindStatusCondition(wanted.Conditions, v1alpha1.ConditionReconciling)
				if progress != nil {
					said = append(said, ready.Reason+": "+progress.Message)
				}
				return l.Record(ctx, t, wanted)
			})
			const sentence = `is in use by cat \(process \d+: its working directory\) and stays mounted; it is unmounted when they release it$`
			l.Expect(said).To(ContainElement(MatchRegexp("^"+v1alpha1.ReasonProvisioning+`: .*`+sentence)), "what is waited for is said")
			failed := ContainElement(MatchRegexp("^" + v1alpha1.ReasonProvisioningFailed + ": step SettleMark failed: .*" + sentence))
			if c.lets {
				l.Expect(err).NotTo(HaveOccurred())
				l.Expect(said).NotTo(failed)
				l.ExpectProven(target, d)
				return
			}
			l.Expect(err).To(HaveOccurred())
			l.Expect(said).To(failed)
		})
	}
}
