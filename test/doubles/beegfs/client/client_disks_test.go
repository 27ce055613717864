//go:build disks

package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/doubles/beegfs/client"
	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
	"parallelfs.dev/operator/test/patience"
)

// The process that serves a mount is another instance of this test's program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == client.Serve {
		os.Exit(client.Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// filesystem runs a management service, a metadata server and a storage server in one, and returns a beegfs-client.conf for it.
func filesystem(t *testing.T, secret string) string {
	t.Helper()
	config, _ := filesystemWithFiles(t, secret)
	return config
}

// filesystemWithFiles is filesystem with the number of open files that a client has reported.
func filesystemWithFiles(t *testing.T, secret string) (config string, open *atomic.Int32) {
	t.Helper()
	open = &atomic.Int32{}
	g := NewWithT(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	port := listener.Addr().(*net.TCPAddr).Port
	auth := filepath.Join(t.TempDir(), "auth")
	g.Expect(os.WriteFile(auth, []byte(secret), 0o600)).To(Succeed())
	number, err := option.Secret(7, option.Values{"connAuthFile": auth})
	g.Expect(err).NotTo(HaveOccurred())
	meta := wire.NodeView{Node: wire.Node{Type: "meta", ID: 1, Alias: "meta-1", TCP: port, Interfaces: []wire.Interface{{Address: "127.0.0.1"}}}}
	storage := meta
	storage.Type = "storage"
	go wire.Serve(listener, number, func(string) {}, func(op string, body json.RawMessage) (any, error) {
		switch op {
		case "view":
			return wire.View{Root: 1, Nodes: []wire.NodeView{meta, storage}}, nil
		case "open-files":
			var told wire.OpenFiles
			err := json.Unmarshal(body, &told)
			open.Store(int32(told.Files))
			return nil, err
		}
		return wire.Directory{EntryID: "root", Owner: 1, Children: map[string]wire.Child{"ssd": {EntryID: "1-1-1", Owner: 1}}}, nil
	})
	config = filepath.Join(t.TempDir(), "beegfs-client.conf")
	g.Expect(os.WriteFile(config, fmt.Appendf(nil, "sysMgmtdHost = 127.0.0.1\nconnMgmtdPortTCP = %d\nconnMgmtdPortUDP = %d\nconnAuthFile = %s\n", port, port, auth), 0o600)).To(Succeed())
	return config, open
}

func mount(t *testing.T, source, path, config string) (string, int) {
	t.Helper()
	var said bytes.Buffer
	code := client.Run(t.Context(), []string{"-t", "beegfs", source, path, "-o", "cfgFile=" + config}, &said, &said)
	return said.String(), code
}

func TestAMountShowsTheDirectoriesOfTheMetadataServersAndKeepsWhatIsWritten(t *testing.T) {
	g := NewWithT(t)
	parent := t.TempDir()
	path := filepath.Join(parent, "beegfs")
	g.Expect(os.Mkdir(path, 0o755)).To(Succeed())
	said, code := mount(t, "beegfs_scratch", path, filesystem(t, "secret"))
	g.Expect(code).To(BeZero(), said)
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })

	mounts, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mounts).To(ConsistOf(SatisfyAll(HaveField("FSType", "fuse.beegfs"), HaveField("Source", "beegfs_scratch"))))
	g.Expect(filepath.Join(path, "ssd")).To(BeADirectory())
	file := filepath.Join(path, "ssd", "file")
	g.Expect(os.WriteFile(file, []byte("data"), 0o600)).To(Succeed())
	g.Expect(os.ReadFile(filepath.Join(parent, client.Store, "beegfs_scratch", "ssd", "file"))).To(BeEquivalentTo("data"))
	g.Expect(exec.CommandContext(t.Context(), "rm", file).Run()).To(Succeed())

	g.Expect(unix.Unmount(path, 0)).To(Succeed())
	g.Eventually(func() ([]*mountinfo.Info, error) { return mountinfo.GetMounts(mountinfo.SingleEntryFilter(path)) }).
		WithTimeout(patience.Bound(time.Minute)).Should(BeEmpty())
}

func TestAMountReportsItsOpenFilesToTheStorageServers(t *testing.T) {
	g := NewWithT(t)
	config, open := filesystemWithFiles(t, "secret")
	path := filepath.Join(t.TempDir(), "beegfs")
	g.Expect(os.Mkdir(path, 0o755)).To(Succeed())
	said, code := mount(t, "beegfs_scratch", path, config)
	g.Expect(code).To(BeZero(), said)
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })

	writer, err := os.Create(filepath.Join(path, "ssd", "file"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(open.Load).WithTimeout(patience.Bound(time.Minute)).Should(BeEquivalentTo(1))
	g.Expect(writer.Close()).To(Succeed())
	g.Eventually(open.Load).WithTimeout(patience.Bound(time.Minute)).Should(BeZero())
}

func TestNothingIsMountedWhen(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(config string) string
		says   string
	}{
		"an option is not one of a client": {func(c string) string { return c + "storeStorageDirectory = /data\n" }, "the config argument 'storeStorageDirectory' is invalid"},
		"there is no answer": {func(string) string {
			return "sysMgmtdHost = 127.0.0.1\nconnMgmtdPortTCP = 1\nconnDisableAuthentication = true\n"
		}, "no management service"},
		"the management has a name": {func(string) string { return "sysMgmtdHost = oss1\nconnDisableAuthentication = true\n" }, "takes a number only"},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			config := filesystem(t, "secret")
			content, err := os.ReadFile(config)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(config, []byte(test.change(string(content))), 0o600)).To(Succeed())
			path := t.TempDir()
			said, code := mount(t, "beegfs_scratch", path, config)
			g.Expect(code).To(Equal(32))
			g.Expect(said).To(ContainSubstring(test.says))
		})
	}
}
