//go:build disks

package provision_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
)

// above puts a loop device over a disk: it holds the disk, and keeps nobody from opening it.
func above(l *provisiontest.Lab, d *provisiontest.Disk) {
	l.T.Helper()
	over := strings.TrimSpace(l.Must("losetup", "--find", "--show", d.Loop))
	l.T.Cleanup(func() { l.Must("losetup", "--detach", over) })
}

// TestAfterAFailedMkfsNoForeignDataIsCleared has a mkfs that fails, and somebody who uses the devices before the agent looks at what
// it has left.
func TestAfterAFailedMkfsNoForeignDataIsCleared(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(l *provisiontest.Lab, data, log *provisiontest.Disk)
		// cleared is true when the devices are made blank again.
		cleared bool
	}{
		"nobody does":                       {func(*provisiontest.Lab, *provisiontest.Disk, *provisiontest.Disk) {}, true},
		"a filesystem on the disk":          {func(l *provisiontest.Lab, data, _ *provisiontest.Disk) { l.Must("mkfs.ext4", "-q", "-F", data.Loop) }, false},
		"a filesystem on the log device":    {func(l *provisiontest.Lab, _, log *provisiontest.Disk) { l.Must("mkfs.ext4", "-q", "-F", log.Loop) }, false},
		"a loop device over the disk":       {func(l *provisiontest.Lab, data, _ *provisiontest.Disk) { above(l, data) }, false},
		"a loop device over the log device": {func(l *provisiontest.Lab, _, log *provisiontest.Disk) { above(l, log) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := provisiontest.New(t)
			data, log := l.Disk("data", 320*provisiontest.Mebi), l.Disk("log", 64*provisiontest.Mebi)
			target := l.Target(data, provisiontest.WithLog(log))
			var onData, onLog string
			l.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
				out, err := provision.Run(ctx, argv, keep...)
				if !strings.HasPrefix(argv[0], "mkfs.") || err != nil {
					return out, err
				}
				c.meanwhile(l, data, log)
				onData, onLog = data.Content(), log.Content()
				return nil, errors.New("mkfs was killed")
			}
			l.Expect(l.Pass(target)).NotTo(Succeed())
			l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonProvisioningFailed), provisiontest.Ready(target).Message)
			l.Expect(onData).NotTo(BeEmpty(), "mkfs has run")
			if c.cleared {
				l.Expect(data.Content()).NotTo(Equal(onData))
				l.Expect(log.Content()).NotTo(Equal(onLog))
				return
			}
			l.Expect(data.Content()).To(Equal(onData))
			l.Expect(log.Content()).To(Equal(onLog))
		})
	}
}

// TestTheMarkerOfADiskThatHasAHolderIsNotRead has an unmounted target, and another device on top of its disk.
func TestTheMarkerOfADiskThatHasAHolderIsNotRead(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	target := l.Target(d)
	l.Expect(l.Pass(target)).To(Succeed())
	l.Unmount(target)
	before := d.Content()
	above(l, d)
	target.Status = v1alpha1.StorageTargetStatus{}
	_ = l.Pass(target)
	l.Expect(provisiontest.Ready(target).Message).To(ContainSubstring("the device is in use, so its marker is not read"))
	l.Expect(d.Content()).To(Equal(before))
}

func TestEachMkfsAndMountIsFollowedByALookAtWhatItDid(t *testing.T) {
	l := provisiontest.New(t)
	target := l.Target(l.Disk("data", 64*provisiontest.Mebi))
	l.Expect(moments(l, target)).To(ContainElements("after MakeFileSystem", "after VerifyFileSystem", "after Mount", "after VerifyMount"))

	// Somebody unmounts it between the two.
	l.Unmount(target)
	agent := l.Agent(func(step string, done bool) error {
		if step == "VerifyMount" && !done {
			l.Unmount(target)
		}
		return nil
	})
	l.Expect(agent.Pass(t.Context(), target, l.Record)).To(MatchError(ContainSubstring("was mounted, but ")))
	l.Expect(provisiontest.Ready(target).Reason).To(Equal(v1alpha1.ReasonMountFailed))
}
