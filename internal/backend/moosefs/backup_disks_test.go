//go:build disks

package moosefs

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// master is a real master of this machine's MooseFS, without chunkservers. It has names and directories, and no data.
type master struct {
	*WithT
	t       *testing.T
	port    int
	data    string
	exports string
	// more holds additional lines of its configuration.
	more    string
	log     string
	process *exec.Cmd
	// ended is closed when the process has ended; failed is then the reason.
	ended  chan struct{}
	failed error
}

// startMaster starts a master with the content of a directory.
func startMaster(t *testing.T, data string, arguments ...string) *master {
	t.Helper()
	return startMasterAt(t, data, freePorts(t), arguments...)
}

// startMasterAt starts a master on three ports, which saves its changes as the operator configures it.
func startMasterAt(t *testing.T, data string, port int, arguments ...string) *master {
	t.Helper()
	return startMasterWith(t, savingOption(t), data, port, arguments...)
}

// savingOption returns the line of the operator's mfsmaster.cfg that sets how changes are saved; empty if there is none.
func savingOption(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	in := everything(version(t))
	backendtest.Remember(t, New(), &in)
	run, err := masterRun(in)
	g.Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(run.Files[0].Content) {
		if strings.HasPrefix(line, savingModeOption+" = ") {
			return line
		}
	}
	return ""
}

// startMasterWith starts a master on three ports with more lines of configuration, and waits until it listens.
func startMasterWith(t *testing.T, more, data string, port int, arguments ...string) *master {
	t.Helper()
	m := launch(t, more, data, port, arguments...)
	m.Eventually(m.listens).WithTimeout(patience.Bound(time.Minute)).Should(Succeed(), m.says)
	return m
}

// launch starts the process of a master with more lines of configuration.
func launch(t *testing.T, more, data string, port int, arguments ...string) *master {
	t.Helper()
	m := &master{WithT: NewWithT(t), t: t, port: port, data: data, more: more, ended: make(chan struct{})}
	own := t.TempDir()
	m.exports = filepath.Join(own, "mfsexports.cfg")
	m.Expect(os.WriteFile(m.exports, []byte("* / rw,alldirs,admin,maproot=0:0\n"), 0o600)).To(Succeed())
	config := filepath.Join(own, "mfsmaster.cfg")
	m.Expect(os.WriteFile(config, fmt.Appendf(nil, "WORKING_USER = root\nWORKING_GROUP = root\nDATA_PATH = %s\nEXPORTS_FILENAME = %s\nTOPOLOGY_FILENAME = %s\n"+
		"MATOML_LISTEN_HOST = 127.0.0.1\nMATOML_LISTEN_PORT = %d\nMATOCS_LISTEN_HOST = 127.0.0.1\nMATOCS_LISTEN_PORT = %d\n"+
		"MATOCL_LISTEN_HOST = *\nMATOCL_LISTEN_PORT = %d\n%s", data, m.exports, os.DevNull, m.port, m.port+1, m.port+2, more), 0o600)).To(Succeed())
	m.process = exec.Command("mfsmaster", append([]string{"-f", "-c", config}, append(arguments, "start")...)...)
	m.log = filepath.Join(own, "log")
	log, err := os.Create(m.log)
	m.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = log.Close() }()
	m.process.Stdout, m.process.Stderr = log, log
	m.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.Expect(m.process.Start()).To(Succeed())
	go func() {
		m.failed = m.process.Wait()
		close(m.ended)
	}()
	t.Cleanup(m.kill)
	return m
}

// listens returns nil if clients can connect. No check waits any longer for a master that has ended.
func (m *master) listens() error {
	select {
	case <-m.ended:
		return StopTrying(fmt.Sprintf("the master has ended (%v): %s", m.failed, m.says()))
	default:
	}
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", m.port+2))
	if err != nil {
		return err
	}
	return connection.Close()
}

// says returns the end of the master's output.
func (m *master) says() string {
	content, _ := os.ReadFile(m.log)
	return string(content[max(0, len(content)-2000):])
}

// kill kills it, as if its node died.
func (m *master) kill() {
	_ = syscall.Kill(-m.process.Process.Pid, syscall.SIGKILL)
	<-m.ended
}

// stop stops it cleanly.
func (m *master) stop() {
	m.t.Helper()
	m.Expect(m.process.Process.Signal(syscall.SIGTERM)).To(Succeed())
	<-m.ended
	m.Expect(m.failed).NotTo(HaveOccurred(), m.says)
}

// freePorts returns three consecutive free ports. They are below the range of the kernel's connections (ip_local_port_range). Otherwise a
// connection of another program could take one of them before the master does, and a master that can't listen ends.
func freePorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 10000 + rand.IntN(20000)
		if isFree(port) && isFree(port+1) && isFree(port+2) {
			return port
		}
	}
	t.Fatal("there are no three ports in a row that are free")
	return 0
}

// isFree reports whether a program can listen on the port at all addresses.
func isFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	return err == nil && listener.Close() == nil
}

// mounted mounts the filesystem, and unmounts it at the end of the call.
func (m *master) mounted(do func(path string)) {
	m.t.Helper()
	path := m.t.TempDir()
	mount := exec.Command("mfsmount", path, "-f", "-H", "127.0.0.1", "-P", fmt.Sprint(m.port+2))
	mount.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.Expect(mount.Start()).To(Succeed())
	defer func() {
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
		_ = syscall.Kill(-mount.Process.Pid, syscall.SIGKILL)
		_ = mount.Wait()
	}()
	m.Eventually(func() bool {
		var own, above syscall.Stat_t
		return syscall.Stat(path, &own) == nil && syscall.Stat(filepath.Dir(path), &above) == nil && own.Dev != above.Dev
	}).WithTimeout(patience.Bound(time.Minute)).Should(BeTrue(), "the filesystem is mounted")
	do(path)
}

// version returns the version of the machine's MooseFS.
func version(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	out, err := exec.Command("mfsmaster", "-v").Output()
	g.Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`version: ([0-9.]+)`).FindSubmatch(out)
	g.Expect(found).NotTo(BeNil(), string(out))
	return string(found[1])
}

// backups returns the options for backups of a master in a directory.
func (m *master) backups() backup.Options {
	m.t.Helper()
	record := m.t.TempDir()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(`{"items": [{}]}`))
	m.Expect(errors.Join(err, w.Close())).To(Succeed())
	m.Expect(os.WriteFile(filepath.Join(record, "record-000"), packed.Bytes(), 0o600)).To(Succeed())
	told := spec.Backup{
		Owner: spec.Owner{Namespace: "default", Name: "scratch", UID: "1b4e28ba"}, Backend: "MooseFS", Version: version(m.t),
		Asked: fmt.Sprintf("127.0.0.1:%d", m.port+2), Copied: fmt.Sprintf("127.0.0.1:%d", m.port),
		Name: "20261123-030000", Place: m.t.TempDir(), Directory: "default.scratch-1b4e28ba", Keep: 3, Record: record, CopySeconds: 30,
	}
	return backup.Options{
		Config: told, Method: New().BackupMethod(told), Work: m.t.TempDir(), Output: io.Discard, Now: time.Now, Memory: backup.FreeMemory,
	}
}

func place(o backup.Options) string {
	return filepath.Join(o.Config.Place, o.Config.Directory, o.Config.Name)
}

// serves starts a new master from a backup only, like a recovery, and returns the names at the top of its filesystem.
func serves(t *testing.T, o backup.Options) []string {
	t.Helper()
	g := NewWithT(t)
	data := t.TempDir()
	entries, err := os.ReadDir(place(o))
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "metadata") || strings.HasPrefix(e.Name(), "changelog") {
			content, err := os.ReadFile(filepath.Join(place(o), e.Name()))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.WriteFile(filepath.Join(data, e.Name()), content, 0o600)).To(Succeed())
		}
	}
	var names []string
	startMaster(t, data, "-a").mounted(func(path string) {
		entries, err := os.ReadDir(path)
		g.Expect(err).NotTo(HaveOccurred())
		for _, e := range entries {
			names = append(names, e.Name())
		}
	})
	return names
}

// fresh returns the directory of a filesystem that never ran.
func fresh(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(data, "metadata.mfs"), []byte("MFSM NEW"), 0o600)).To(Succeed())
	return data
}

// makeDirectories creates directories, and returns their names.
func makeDirectories(m *master, prefix string, n int) []any {
	m.t.Helper()
	var names []any
	m.mounted(func(path string) {
		for i := range n {
			name := fmt.Sprintf("%s-%03d", prefix, i)
			m.Expect(os.Mkdir(filepath.Join(path, name), 0o755)).To(Succeed())
			names = append(names, name)
		}
	})
	return names
}

func TestABackupOfAFreshMooseFSServesWhatWasMadeBefore(t *testing.T) {
	m := startMaster(t, fresh(t))
	made := makeDirectories(m, "first", 200)
	o := m.backups()
	answer, err := backup.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(answer.Backups).To(ConsistOf(And(HaveField("Verified", true), HaveField("Version", BeNumerically(">", 200)),
		HaveField("ID", MatchRegexp("^[0-9A-F]{16}$")))))
	m.kill()
	m.Expect(serves(t, o)).To(ContainElements(made...))
}

func TestABackupOfAMooseFSThatSavedItsMetadataServesWhatWasMadeBefore(t *testing.T) {
	data := fresh(t)
	m := startMaster(t, data)
	made := makeDirectories(m, "saved", 50)
	m.stop() // the stop saves the metadata
	m = startMaster(t, data)
	made = append(made, makeDirectories(m, "logged", 50)...)

	o := m.backups()
	writing, stopped := make(chan struct{}), make(chan struct{})
	go func() { // while programs go on
		defer close(stopped)
		m.mounted(func(path string) {
			for i := 0; ; i++ {
				select {
				case <-writing:
					return
				default:
					_ = os.Mkdir(filepath.Join(path, fmt.Sprintf("meanwhile-%06d", i)), 0o755)
				}
			}
		})
	}()
	answer, err := backup.Run(t.Context(), o)
	close(writing)
	<-stopped
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", true)))
	m.kill()
	m.Expect(serves(t, o)).To(ContainElements(made...))
}

func TestMooseFSItselfRefusesABackupWithAHole(t *testing.T) {
	m := startMaster(t, fresh(t))
	makeDirectories(m, "some", 50)
	o := m.backups()
	o.Before = func(step string) error {
		if step != "sum up" {
			return nil
		}
		// The log is changed before the checksums are computed, so that they match.
		logs, err := filepath.Glob(filepath.Join(o.Config.Place, o.Config.Directory, ".making-*", "changelog_ml_back.0.mfs"))
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(logs).To(HaveLen(1))
		content, err := os.ReadFile(logs[0])
		m.Expect(err).NotTo(HaveOccurred())
		lines := strings.SplitAfter(string(content), "\n")
		m.Expect(len(lines)).To(BeNumerically(">", 30))
		return os.WriteFile(logs[0], []byte(strings.Join(append(lines[:20:20], lines[21:]...), "")), 0o600)
	}
	answer, err := backup.Run(t.Context(), o)
	m.Expect(err).To(MatchError(And(ContainSubstring("the backup can't be used"), ContainSubstring("mfsmaster does not read it (exit code 1)"))))
	m.Expect(answer.Backups).To(ConsistOf(HaveField("Verified", false)))
}

func TestAMooseFSWithoutItsMasterIsNotBackedUp(t *testing.T) {
	m := startMaster(t, fresh(t))
	o := m.backups()
	m.kill()
	answer, err := backup.Run(t.Context(), o)
	m.Expect(err).To(MatchError(ContainSubstring("no master that works")))
	m.Expect(answer.Backups).To(BeEmpty())
}

func TestPortsOfAMasterAreOutsideOfTheKernelsEphemeralRange(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	g.Expect(err).NotTo(HaveOccurred())
	var first, last int
	_, err = fmt.Sscan(string(content), &first, &last)
	g.Expect(err).NotTo(HaveOccurred())
	for range 50 {
		g.Expect(freePorts(t) + 2).To(Or(BeNumerically("<", first), BeNumerically(">", last)))
	}
}

func TestAMasterThatEndsIsNotWaitedFor(t *testing.T) {
	g := NewWithT(t)
	data := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(data, "metadata.mfs"), []byte("no metadata"), 0o600)).To(Succeed())
	m := launch(t, savingOption(t), data, freePorts(t))
	<-m.ended
	g.Expect(m.listens()).To(MatchError(And(ContainSubstring("the master has ended"), ContainSubstring("metadata"))))
}
