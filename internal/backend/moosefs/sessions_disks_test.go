//go:build disks

package moosefs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/moosefs/cli"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/test/patience"
)

// mount runs mfsmount on a directory of its own until the test ends, and returns the directory and the file with its output.
func (m *master) mount(command ...string) (path, said string) {
	m.t.Helper()
	path, said = m.t.TempDir(), filepath.Join(m.t.TempDir(), "said")
	log, err := os.Create(said)
	m.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }()
	mount := exec.Command("mfsmount", append([]string{path, "-f", "-P", fmt.Sprint(m.port + 2)}, command...)...)
	mount.Stdout, mount.Stderr = log, log
	mount.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.Expect(mount.Start()).To(Succeed())
	m.t.Cleanup(func() {
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
		_ = syscall.Kill(-mount.Process.Pid, syscall.SIGKILL)
		_ = mount.Wait()
	})
	return path, said
}

// sessions returns what the operator's probe reads from this master.
func (m *master) sessions() []backend.Session {
	m.t.Helper()
	prober := cli.New(version(m.t), fmt.Sprintf("127.0.0.1:%d", m.port+2))
	var outputs [][]byte
	for _, c := range prober.Commands() {
		out, err := exec.Command(c[0], c[1:]...).Output()
		m.Expect(err).NotTo(HaveOccurred())
		outputs = append(outputs, out)
	}
	state, err := prober.Parse(outputs)
	m.Expect(err).NotTo(HaveOccurred())
	return state.Sessions
}

// A master reloads the rights of every client when it reads other exports, and when it has another version. Clients that have reconnected
// since may lose their session to the client that mounts next from their address.
func TestTheAdministratorTakesOverNoSessionOfAClientThatComesBack(t *testing.T) {
	const client = "127.0.0.2"
	in := everything("4.57.5")
	in.Nodes[0].IP = client // the node of the master also has a client
	backendtest.Remember(t, New(), &in)
	m := startMaster(t, fresh(t))
	path, said := m.mount("-H", client, "-o", "mfsbind="+client)
	own := And(HaveField("IP", client), HaveField("Path", path), HaveField("Connected", true), HaveField("Admin", false))

	m.Expect(os.WriteFile(m.exports, []byte(exports(in)), 0o600)).To(Succeed())
	m.Eventually(m.sessions).WithTimeout(patience.Bound(time.Minute)).Should(ContainElement(HaveField("Path", path)))
	m.Expect(m.process.Process.Signal(syscall.SIGHUP)).To(Succeed())
	m.Eventually(func() string {
		text, _ := os.ReadFile(said)
		return string(text)
	}).WithTimeout(patience.Bound(time.Minute)).WithPolling(time.Millisecond).Should(ContainSubstring("registered to master using previous session"))

	admin := storageClasses(in, nodefacts.NewDomains(in)).Mount.Command
	from := admin[slices.Index(admin, "-H")+1]
	config := filepath.Join(t.TempDir(), "mfsmount.cfg")
	m.Expect(os.WriteFile(config, []byte(adminMountConfig(in)), 0o600)).To(Succeed())
	above, _ := m.mount("-H", from, "-o", "mfscfgfile="+config+",mfsbind="+from)
	m.Eventually(m.sessions).WithTimeout(patience.Bound(time.Minute)).Should(ContainElement(And(HaveField("Path", above), HaveField("Admin", true))))
	m.Expect(m.sessions()).To(ContainElement(own), "the client has its session, and no rights of an administrator")
}
