//go:build disks

package drained

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

const uuid = "0a1b2c3d-0000-4000-8000-0000000000aa"

func command(t *testing.T, argv ...string) {
	t.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s: %s", strings.Join(argv, " "), output)
}

// aDisk is a mounted disk with the marker and a directory of a storage target.
func aDisk(t *testing.T) spec.AwaitEmpty {
	t.Helper()
	g, image, path := NewWithT(t), filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "target")
	g.Expect(os.WriteFile(image, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(image, 64<<20)).To(Succeed())
	g.Expect(os.Mkdir(path, 0o700)).To(Succeed())
	command(t, "mkfs.ext4", "-q", "-U", uuid, image)
	command(t, "mount", "-o", "loop", image, path)
	t.Cleanup(func() {
		for exec.Command("umount", path).Run() == nil {
		}
	})
	config := spec.AwaitEmpty{
		Owner: owner, Target: spec.Target{Name: "scratch-hdd-node1", Path: path, UUID: uuid}, Directories: []string{path + "/storage/data/chunks"},
	}
	marker, err := json.Marshal(spec.TargetMarker{Version: spec.TargetMarkerVersion, Owner: owner, Target: config.Target.Name, UUID: uuid})
	g.Expect(err).NotTo(HaveOccurred())
	put(t, filepath.Join(path, spec.TargetMarkerFile), string(marker))
	g.Expect(os.MkdirAll(config.Directories[0], 0o700)).To(Succeed())
	return config
}

func TestARealDiskIsEmptyWhenItHoldsNoFile(t *testing.T) {
	g, s, config := NewWithT(t), &said{}, aDisk(t)
	put(t, config.Directories[0]+"/0-1-2", "")
	g.Expect(look(t.Context(), config)).To(Equal(1))
	g.Expect(os.Remove(config.Directories[0] + "/0-1-2")).To(Succeed())
	g.Expect(await(t.Context(), config, s.say, time.Millisecond)).To(Succeed())
	g.Expect(s.all()).To(Equal([]string{sure, empty}))
}

func TestARealDiskIsNotCalledEmptyWhen(t *testing.T) {
	t.Run("it is unmounted, and the same directories are below", func(t *testing.T) {
		g, config := NewWithT(t), aDisk(t)
		command(t, "umount", config.Target.Path)
		g.Expect(os.MkdirAll(config.Directories[0], 0o700)).To(Succeed())
		_, err := look(t.Context(), config)
		g.Expect(err).To(MatchError(ContainSubstring("is not mounted")))
	})
	t.Run("another filesystem is mounted in it, which is not counted", func(t *testing.T) {
		g, config := NewWithT(t), aDisk(t)
		inside := config.Directories[0] + "/u0"
		g.Expect(os.Mkdir(inside, 0o700)).To(Succeed())
		command(t, "mount", "-t", "tmpfs", "tmpfs", inside)
		t.Cleanup(func() { command(t, "umount", inside) })
		_, err := look(t.Context(), config)
		g.Expect(err).To(MatchError(And(ContainSubstring(inside), ContainSubstring("is another filesystem than the target"))))
	})
	t.Run("a directory of it is a mount", func(t *testing.T) {
		g, config := NewWithT(t), aDisk(t)
		command(t, "mount", "-t", "tmpfs", "tmpfs", config.Directories[0])
		t.Cleanup(func() { command(t, "umount", config.Directories[0]) })
		_, err := look(t.Context(), config)
		g.Expect(err).To(MatchError(ContainSubstring("is another filesystem than the target")))
	})
}
