package moosefs

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/backendtest"
)

func TestOptionsAreKnownByVersionAndDaemon(t *testing.T) {
	cases := map[string]struct {
		version, daemon, option string
		known                   bool
	}{
		"an option that both versions have":                     {"3.0.117", "mfschunkserver", "HDD_TEST_SPEED", true},
		"an option that came with 4.x, in 4.57.5":               {"4.57.5", "mfschunkserver", "CAN_USE_MMAP", true},
		"an option that came with 4.x, in 3.0.117":              {"3.0.117", "mfschunkserver", "CAN_USE_MMAP", false},
		"a deprecated option that went with 4.x, in 3.0.117":    {"3.0.117", "mfsmaster", "QUOTA_TIME_LIMIT", true},
		"a deprecated option that went with 4.x, in 4.57.5":     {"4.57.5", "mfsmaster", "QUOTA_TIME_LIMIT", false},
		"an option that came with 4.x, in 4.59.2":               {"4.59.2", "mfschunkserver", "CAN_USE_MMAP", true},
		"what left the sample, and is still read, in 4.59.2":    {"4.59.2", "mfsmaster", "LIMIT_GLIBC_MALLOC_ARENAS", true},
		"an option of the Pro edition":                          {"4.57.5", "mfsmaster", "LICENSE_FILENAME", false},
		"an option of another daemon":                           {"4.57.5", "mfsmetalogger", "ATIME_MODE", false},
		"an option in small letters, which the daemon ignores":  {"4.57.5", "mfsmaster", "atime_mode", false},
		"what starts a chunkserver without disks, in 3.0.117":   {"3.0.117", "mfschunkserver", "ALLOW_STARTING_WITH_INVALID_DISKS", true},
		"what starts a chunkserver without disks, in 4.57.5":    {"4.57.5", "mfschunkserver", "ALLOW_STARTING_WITH_INVALID_DISKS", true},
		"how often the metalogger copies all, in both versions": {"3.0.117", "mfsmetalogger", "META_DOWNLOAD_FREQ", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(knownOptions(c.version, c.daemon)[c.option]).To(Equal(c.known))
		})
	}
}

// Every option that the operator itself sets must be one that the daemon reads, because an unknown one is silently ignored.
func TestTheOperatorSetsOnlyOptionsThatAreKnown(t *testing.T) {
	for _, version := range New().Versions() {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := everything(version)
			backendtest.Remember(t, New(), &in)
			master, err := masterRun(in)
			g.Expect(err).NotTo(HaveOccurred())
			metalogger, err := metaloggerRun(in, "10.0.0.1")
			g.Expect(err).NotTo(HaveOccurred())
			chunkserver, err := chunkserverRun(in, "10.0.0.1", in.FileSystem.Spec.StoragePools[0], 0)
			g.Expect(err).NotTo(HaveOccurred())
			for daemon, content := range map[string]string{
				"mfsmaster": master.Files[0].Content, "mfsmetalogger": metalogger.Files[0].Content, "mfschunkserver": chunkserver.Files[0].Content,
			} {
				g.Expect(content).NotTo(BeEmpty())
				for line := range strings.Lines(content) {
					name, _, _ := strings.Cut(line, " = ")
					g.Expect(knownOptions(version, daemon)).To(HaveKey(name), daemon)
				}
			}
		})
	}
}
