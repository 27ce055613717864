//go:build disks

package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/test/patience"
)

func command(t *testing.T, argv ...string) {
	t.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(argv, " "), output)
}

// A write to a frozen filesystem blocks like a write to a disk or a server that does not answer.
func TestAProcessThatWaitsInTheKernelDoesNotBlockItsKiller(t *testing.T) {
	const writes = `echo $$ > "$1"; echo > "$2"`
	for name, script := range map[string]string{
		"the child": writes,
		// This is how mount(8) leaves the mount to /sbin/mount.TYPE.
		"what the child has started": `sh -c '` + writes + `' sh "$1" "$2"; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			g, directory := NewWithT(t), t.TempDir()
			image, mounted, own := filepath.Join(directory, "image"), filepath.Join(directory, "mounted"), filepath.Join(directory, "own")
			g.Expect(os.WriteFile(image, nil, 0o600)).To(Succeed())
			g.Expect(os.Truncate(image, 64<<20)).To(Succeed())
			g.Expect(os.Mkdir(mounted, 0o700)).To(Succeed())
			command(t, "mkfs.ext4", "-q", image)
			command(t, "mount", "-o", "loop", image, mounted)
			t.Cleanup(func() { command(t, "umount", mounted) })
			command(t, "fsfreeze", "-f", mounted)
			thawed := false
			thaw := func() {
				if !thawed {
					command(t, "fsfreeze", "-u", mounted)
					thawed = true
				}
			}
			t.Cleanup(thaw)

			child, err := process.Start([]string{"sh", "-c", script, "sh", own, filepath.Join(mounted, "file")}, process.Options{})
			g.Expect(err).NotTo(HaveOccurred())
			pid := pidIn(t, own)
			g.Eventually(state).WithArguments(pid).WithTimeout(patience.Bound(time.Minute)).Should(Equal("D"))
			child.Stop(time.Millisecond)
			g.Expect(state(pid)).To(Equal("D"), "nothing ends it")
			g.Expect(child.Code()).To(Equal(137))
			g.Expect(child.Err()).To(MatchError(process.ErrLeftBehind))
			g.Expect(child.Gone()).NotTo(BeClosed())

			thaw()
			g.Eventually(child.Gone()).WithTimeout(patience.Bound(time.Minute)).Should(BeClosed(), "it ends when the disk answers")
			g.Expect(child.Done()).To(BeClosed())
			g.Expect(child.Err()).NotTo(MatchError(process.ErrLeftBehind))
		})
	}
}
