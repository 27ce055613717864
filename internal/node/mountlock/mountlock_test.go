package mountlock_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/mountlock"
)

// made returns the path of a free lock.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ost0.lock")
	NewWithT(t).Expect(mountlock.Make(path)).To(Succeed())
	return path
}

func isHeld(g Gomega, path string) bool {
	lock, err := mountlock.Take(path)
	if err == nil {
		g.Expect(lock.Close()).To(Succeed())
		return false
	}
	_, held := errors.AsType[*mountlock.HeldError](err)
	g.Expect(held).To(BeTrue(), err.Error())
	return true
}

func TestALockIsOneProgramsAtATime(t *testing.T) {
	g, path := NewWithT(t), made(t)
	lock, err := mountlock.Take(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(isHeld(g, path)).To(BeTrue())
	g.Expect(mountlock.Make(path)).To(Succeed(), "what is there stays")
	g.Expect(isHeld(g, path)).To(BeTrue())
	g.Expect(lock.Close()).To(Succeed())
	g.Expect(isHeld(g, path)).To(BeFalse())
}

func TestALockThatIsNotThereIsNotTaken(t *testing.T) {
	g := NewWithT(t)
	_, err := mountlock.Take(filepath.Join(t.TempDir(), "ost0.lock"))
	g.Expect(err).To(MatchError(fs.ErrNotExist))
}

// A killed server leaves its mount in progress, and the kernel may complete it at any time.
func TestALockLastsAsLongAsTheProgramThatGotIt(t *testing.T) {
	g, path := NewWithT(t), made(t)
	lock, err := mountlock.Take(path)
	g.Expect(err).NotTo(HaveOccurred())
	mount := exec.Command("cat")
	mount.ExtraFiles = []*os.File{lock}
	in, err := mount.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mount.Start()).To(Succeed())
	g.Expect(lock.Close()).To(Succeed())
	g.Expect(isHeld(g, path)).To(BeTrue())
	g.Expect(in.Close()).To(Succeed())
	g.Expect(mount.Wait()).To(Succeed())
	g.Expect(isHeld(g, path)).To(BeFalse())
}
