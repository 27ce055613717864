package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestDevicesOfAdaptersAreOpenedAndNotOnlyListed(t *testing.T) {
	for name, c := range map[string]struct {
		// files are the devices that can be opened, and refused are those that are listed and can't be.
		files, refused []string
		opened         []string
		why            string
	}{
		"a container without devices":               {why: "the container has no device DIR/uverbs*"},
		"devices that the container may not open":   {files: []string{"rdma_cm"}, refused: []string{"uverbs0"}, why: "the container may not open DIR/uverbs0 (is a directory)"},
		"an adapter without the connection manager": {files: []string{"uverbs0"}, opened: []string{"uverbs0"}, why: "the container has no device DIR/rdma_cm"},
		"a connection manager that is refused":      {files: []string{"uverbs0"}, refused: []string{"rdma_cm"}, opened: []string{"uverbs0"}, why: "the container may not open DIR/rdma_cm (is a directory)"},
		"one of two adapters, as a plugin gives it": {files: []string{"rdma_cm", "uverbs1"}, refused: []string{"uverbs0"}, opened: []string{"uverbs1"}},
		"all adapters": {files: []string{"rdma_cm", "uverbs0", "uverbs1", "umad0"}, opened: []string{"uverbs0", "uverbs1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, directory := NewWithT(t), t.TempDir()
			for _, file := range c.files {
				g.Expect(os.WriteFile(filepath.Join(directory, file), nil, 0o600)).To(Succeed())
			}
			for _, file := range c.refused {
				g.Expect(os.Mkdir(filepath.Join(directory, file), 0o700)).To(Succeed())
			}
			opened, why := daemon.OpenAdapters(directory)
			g.Expect(opened).To(Equal(c.opened))
			if c.why == "" {
				g.Expect(why).NotTo(HaveOccurred())
				return
			}
			g.Expect(why).To(MatchError(strings.ReplaceAll(c.why, "DIR", directory)))
		})
	}
}

func TestADaemonThatNeedsRDMADoesNotStartWithoutItsDevices(t *testing.T) {
	refused := errors.New("the container may not open /dev/infiniband/uverbs0 (operation not permitted)")
	for name, c := range map[string]struct {
		rdma   string
		opened []string
		why    error
		starts bool
		says   string
	}{
		"RDMA is required, and the devices are refused": {rdma: spec.RDMARequired, why: refused, says: ""},
		"RDMA is required, and the devices open":        {rdma: spec.RDMARequired, opened: []string{"uverbs0"}, starts: true, says: "opened the devices of RDMA adapters: uverbs0"},
		"RDMA is left to the daemon, and the devices are refused": {rdma: spec.RDMAAuto, why: refused, starts: true,
			says: "the daemon uses TCP, because the container may not open /dev/infiniband/uverbs0 (operation not permitted)"},
		"RDMA is left to the daemon, and the devices open": {rdma: spec.RDMAAuto, opened: []string{"uverbs0", "uverbs1"}, starts: true,
			says: "opened the devices of RDMA adapters: uverbs0, uverbs1"},
	} {
		t.Run(name, func(t *testing.T) {
			g, container := NewWithT(t), &container{root: t.TempDir()}
			host := container.host()
			host.OpenAdapters = func() ([]string, error) { return c.opened, c.why }
			config := container.master()
			config.RDMA = c.rdma
			err := container.runOn(t.Context(), config, host)
			if !c.starts {
				g.Expect(err).To(MatchError("RDMA is required, and the container may not open /dev/infiniband/uverbs0 (operation not permitted): " +
					"load the adapter's driver on the node, check the resource of its device plugin, or do not require RDMA"))
				g.Expect(container.started).To(BeNil())
				g.Expect(container.path("meta")).NotTo(BeADirectory(), "nothing was touched")
				return
			}
			g.Expect(err).To(MatchError(errStarted))
			g.Expect(container.log.String()).To(ContainSubstring(c.says))
		})
	}
}
