package beegfs_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// update overwrites the expected outputs in testdata with the programs' outputs. It is for the real ones: BEEGFS_REAL_BIN=... go test
// -update.
var update = flag.Bool("update", false, "write testdata from what the programs say")

// doubles is the folder with the built doubles. genuine is the folder with real programs if BEEGFS_REAL_BIN is set, and older that with
// those of an earlier release (BEEGFS_REAL_OLDER).
var doubles, genuine, older string

func TestMain(m *testing.M) {
	flag.Parse()
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond) // most queries start a program
	genuine, older = os.Getenv("BEEGFS_REAL_BIN"), os.Getenv("BEEGFS_REAL_OLDER")
	code := 1
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(doubles)
	os.Exit(code)
}

func build() error {
	var err error
	if doubles, err = os.MkdirTemp("", "beegfs-doubles"); err != nil {
		return err
	}
	binary := filepath.Join(doubles, "beegfs-double")
	command := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "./cmd/beegfs-double")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return err
	}
	for _, name := range []string{"beegfs-mgmtd", "beegfs-meta", "beegfs-storage", "beegfs-ctl", "beegfs"} {
		if err := os.Symlink(binary, filepath.Join(doubles, name)); err != nil {
			return err
		}
	}
	return nil
}

// cluster is a filesystem in a temporary directory.
type cluster struct {
	t       *testing.T
	version string
	real    bool
	dir     string
	base    int
	card    string
	address string
	daemons map[string]*daemon
}

type daemon struct {
	command *exec.Cmd
	log     string
	done    chan struct{}
}

// newCluster creates an empty filesystem without running daemons. Real programs are used for version 7 if BEEGFS_REAL_BIN is set.
func newCluster(t *testing.T, version string) *cluster {
	t.Helper()
	c := &cluster{t: t, version: version, real: genuine != "" && strings.HasPrefix(version, "7"), dir: t.TempDir(), daemons: map[string]*daemon{}}
	c.card, c.address = networkCard(t)
	c.base = freePorts(t)
	c.write("auth", "the secret of this test")
	c.write("auth-other", "another secret")
	c.write("interfaces", c.card+"\n")
	return c
}

// networkCard finds an interface that BeeGFS can use: not the loopback, and with an IPv4 address.
func networkCard(t *testing.T) (name, address string) {
	t.Helper()
	cards, err := net.Interfaces()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, card := range cards {
		addresses, err := card.Addrs()
		if err != nil || card.Flags&net.FlagUp == 0 || card.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, address := range addresses {
			if network, is := address.(*net.IPNet); is && network.IP.To4() != nil && !network.IP.IsLinkLocalUnicast() {
				return card.Name, network.IP.String()
			}
		}
	}
	t.Fatal("this machine has no network interface but the loopback: make one, such as by ip link add type dummy")
	return "", ""
}

// freePorts finds 40 consecutive free ports. The last but one is held until the test ends, so that no other test in this or another process
// takes the same range.
func freePorts(t *testing.T) int {
	t.Helper()
	const block, blocks = 40, 300
	first := os.Getpid() % blocks
	for i := range blocks {
		base := 20000 + (first+i)%blocks*block
		claim, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":"+strconv.Itoa(base+block-2))
		if err != nil {
			continue
		}
		free := true
		for port := base; port < base+block-2 && free; port++ {
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":"+strconv.Itoa(port))
			if err != nil {
				free = false
				continue
			}
			_ = listener.Close()
		}
		if free {
			t.Cleanup(func() { _ = claim.Close() })
			return base
		}
		_ = claim.Close()
	}
	t.Fatal("no 40 free ports in a row")
	return 0
}

func (c *cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

func (c *cluster) write(name, content string) {
	c.t.Helper()
	path := c.path(name)
	NewWithT(c.t).Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	NewWithT(c.t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

// prepareMgmtd, prepareMeta and prepareTarget prepare directories as the operator does.
func (c *cluster) prepareMgmtd(name string) {
	c.t.Helper()
	c.write(name+"/format.conf", "version=5\nlongNodeIDs=true\n")
	c.write(name+"/nodeNumID", "1\n")
	c.write(name+"/nodeID", "mgmt\n")
}

func (c *cluster) prepareMeta(name string, id int) {
	c.t.Helper()
	c.write(name+"/format.conf", "version=4\nxattr=true\n")
	c.write(name+"/nodeNumID", fmt.Sprintf("%d\n", id))
	c.write(name+"/nodeID", fmt.Sprintf("meta-%d\n", id))
}

func (c *cluster) prepareTarget(name string, target, node int) {
	c.t.Helper()
	c.write(name+"/format.conf", "version=3\n")
	c.write(name+"/targetNumID", fmt.Sprintf("%d\n", target))
	c.write(name+"/nodeNumID", fmt.Sprintf("%d\n", node))
	c.write(name+"/nodeID", fmt.Sprintf("stor-%d\n", node))
	for _, child := range []string{"chunks", "buddymir"} {
		NewWithT(c.t).Expect(os.MkdirAll(c.path(name, child), 0o755)).To(Succeed())
	}
}

// options holds the options of all servers of the cluster. Any argument may contain {DIR} and {PORT+n}.
const options = "connAuthFile={DIR}/auth connInterfacesFile={DIR}/interfaces connUseRDMA=false sysTargetOfflineTimeoutSecs=30 " +
	"storeAllowFirstRunInit=false connMgmtdPortTCP={PORT+8} connMgmtdPortUDP={PORT+8}"

// limits puts every target of this machine into the capacity pool "normal".
const limits = "tuneStorageDynamicPools=false tuneStorageSpaceLowLimit=2k tuneStorageSpaceEmergencyLimit=1k tuneStorageInodesLowLimit=2 " +
	"tuneStorageInodesEmergencyLimit=1 tuneMetaDynamicPools=false tuneMetaSpaceLowLimit=2k tuneMetaSpaceEmergencyLimit=1k " +
	"tuneMetaInodesLowLimit=2 tuneMetaInodesEmergencyLimit=1"

const management = " sysMgmtdHost={ADDRESS}"

func (c *cluster) fill(text string) string {
	text = strings.NewReplacer("{DIR}", c.dir, "{ADDRESS}", c.address, "{CARD}", c.card).Replace(text)
	return regexp.MustCompile(`\{PORT\+(\d+)\}`).ReplaceAllStringFunc(text, func(found string) string {
		number, _ := strconv.Atoi(found[len("{PORT+") : len(found)-1])
		return strconv.Itoa(c.base + number)
	})
}

func (c *cluster) command(ctx context.Context, line string) *exec.Cmd {
	words := strings.Fields(c.fill(line))
	folder := doubles
	if c.real {
		folder = genuine
		if c.version != "7.4.6" {
			folder = older
		}
	}
	command := exec.CommandContext(ctx, filepath.Join(folder, words[0]), words[1:]...)
	command.Env = append(os.Environ(), "BEEGFS_DOUBLE_VERSION="+c.version)
	command.Dir = c.dir
	if os.Geteuid() != 0 {
		// The tools require root; root in a user namespace is enough for them.
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	return command
}

// start runs a server until the test ends.
func (c *cluster) start(name, line string) *daemon {
	c.t.Helper()
	g := NewWithT(c.t)
	command := c.command(context.Background(), line)
	log, err := os.Create(c.path(name + ".log"))
	g.Expect(err).NotTo(HaveOccurred())
	command.Stdout, command.Stderr = log, log
	g.Expect(command.Start()).To(Succeed())
	d := &daemon{command: command, log: log.Name(), done: make(chan struct{})}
	go func() {
		_ = command.Wait()
		_ = log.Close()
		close(d.done)
	}()
	c.daemons[name] = d
	c.t.Cleanup(func() { d.end(c.t) })
	return d
}

// end stops a server as Kubernetes does, and returns its exit code.
func (d *daemon) end(t *testing.T) int {
	t.Helper()
	_ = d.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(patience.Bound(time.Minute)):
		d.kill()
	}
	return d.command.ProcessState.ExitCode()
}

func (d *daemon) kill() {
	_ = d.command.Process.Kill()
	<-d.done
}

func (d *daemon) says() string {
	content, _ := os.ReadFile(d.log)
	return string(content)
}

// run runs a program to its end, and returns its combined output and its exit code.
func (c *cluster) run(line string) (string, int) {
	c.t.Helper()
	output, complaints, code := c.runApart(line, "")
	return output + complaints, code
}

// runApart is run with two separate outputs.
func (c *cluster) runApart(line, input string) (output, complaints string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience.Bound(time.Minute))
	defer cancel()
	command := c.command(ctx, line)
	command.Stdin = strings.NewReader(input)
	var said, complained bytes.Buffer
	command.Stdout, command.Stderr = &said, &complained
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("%s: %v", line, err)
	}
	return said.String(), complained.String(), command.ProcessState.ExitCode()
}

const ctl = "beegfs-ctl --connAuthFile={DIR}/auth --sysMgmtdHost={ADDRESS} --connMgmtdPortTCP={PORT+8} --connMgmtdPortUDP={PORT+8} " +
	"--sysNoEnterpriseFeatureMsg=true "

// startAll starts a management service, two metadata servers, and two storage servers with the targets 101, 102 and 201. It waits until all
// are online.
func (c *cluster) startAll() {
	c.t.Helper()
	c.startManagement()
	for id := 1; id <= 2; id++ {
		c.prepareMeta(fmt.Sprintf("meta-%d", id), id)
		c.start(fmt.Sprintf("meta-%d-daemon", id), c.metaLine(id))
		// The first server that registers owns the root directory.
		c.eventually("--listnodes --nodetype=meta", fmt.Sprintf("meta-%d", id))
	}
	c.prepareTarget("target-101", 101, 1)
	c.prepareTarget("target-102", 102, 1)
	c.prepareTarget("target-201", 201, 2)
	c.start("storage-1-daemon", c.storageOne())
	c.start("storage-2-daemon", c.storageTwo())
	c.online()
}

func (c *cluster) storageOne() string {
	return "beegfs-storage " + options + management +
		" storeStorageDirectory={DIR}/target-101,{DIR}/target-102 connStoragePortTCP={PORT+31} connStoragePortUDP={PORT+31}"
}

func (c *cluster) storageTwo() string {
	return "beegfs-storage " + options + management +
		" storeStorageDirectory={DIR}/target-201 connStoragePortTCP={PORT+32} connStoragePortUDP={PORT+32}"
}

func (c *cluster) metaLine(id int) string {
	return fmt.Sprintf("beegfs-meta "+options+management+" storeMetaDirectory={DIR}/meta-%[1]d connMetaPortTCP={PORT+1%[1]d} "+
		"connMetaPortUDP={PORT+1%[1]d} tuneNumWorkers=4", id)
}

func (c *cluster) startManagement() { c.startManagementWith(limits) }

func (c *cluster) startManagementWith(limits string) {
	c.t.Helper()
	c.prepareMgmtd("mgmtd")
	c.start("mgmtd-daemon", "beegfs-mgmtd "+options+" storeMgmtdDirectory={DIR}/mgmtd "+limits)
	c.eventually("--listnodes --nodetype=management", "mgmt")
}

func (c *cluster) online() {
	c.t.Helper()
	for kind, count := range map[string]int{"meta": 2, "storage": 3} {
		NewWithT(c.t).Eventually(func() int {
			said, _ := c.run(ctl + "--listtargets --state --pools --nodetype=" + kind)
			return min(strings.Count(said, "Online"), strings.Count(said, "normal"))
		}).WithTimeout(patience.Bound(60*time.Second)).WithPolling(300*time.Millisecond).Should(Equal(count), kind)
	}
}

func (c *cluster) eventually(mode, text string) {
	c.t.Helper()
	NewWithT(c.t).Eventually(func() string {
		said, _ := c.run(ctl + mode)
		return said
	}).WithTimeout(patience.Bound(90 * time.Second)).WithPolling(300 * time.Millisecond).Should(ContainSubstring(text))
}

var (
	entryID  = regexp.MustCompile(`\b[0-9A-F]+-[0-9A-F]{8}-[0-9A-F]+\b`)
	sizes    = regexp.MustCompile(` +(\d+\.\d(?:[KMGTP]iB|[KMGT])|\d+%)`)
	logLines = regexp.MustCompile(`(?m)^\(\d\) \d\d:\d\d:\d\d .*\n`)
	seconds  = regexp.MustCompile(`(?m)^ 1\d{9}\b`)
	spaces   = regexp.MustCompile(`(?m) +$`)
)

// plain replaces text that differs in every run, and drops the lines of logs.
func (c *cluster) plain(said string) string {
	said = logLines.ReplaceAllString(said, "")
	said = strings.NewReplacer(c.dir, "{DIR}", c.address, "{ADDRESS}").Replace(said)
	said = regexp.MustCompile(`\b`+regexp.QuoteMeta(c.card)+`\b`).ReplaceAllString(said, "{CARD}")
	for port := range 40 {
		said = regexp.MustCompile(`\b`+strconv.Itoa(c.base+port)+`\b`).ReplaceAllString(said, fmt.Sprintf("{PORT+%d}", port))
	}
	said = entryID.ReplaceAllString(said, "{ENTRY}")
	said = seconds.ReplaceAllString(said, " {TIME}")
	said = sizes.ReplaceAllStringFunc(said, func(found string) string {
		if strings.HasSuffix(found, "%") {
			return " {SHARE}"
		}
		return " {SIZE}"
	})
	return spaces.ReplaceAllString(said, "")
}

// record is a file in testdata that a test builds and then compares.
type record struct {
	cluster *cluster
	name    string
	text    strings.Builder
}

// step runs a program. Its standard error follows the rest, with "! " before each line.
func (r *record) step(shown, line, input string) {
	said, complained, code := r.cluster.runApart(line, input)
	fmt.Fprintf(&r.text, "$ %s\n%s", shown, r.cluster.plain(said))
	for line := range strings.Lines(r.cluster.plain(complained)) {
		fmt.Fprintf(&r.text, "! %s", line)
	}
	fmt.Fprintf(&r.text, "exit code: %d\n\n", code)
}

// compare compares the output with testdata, which was recorded from the real programs.
func (r *record) compare() {
	t := r.cluster.t
	t.Helper()
	path := filepath.Join("testdata", r.cluster.version, r.name+".txt")
	if *update {
		NewWithT(t).Expect(r.cluster.real).To(BeTrue(), "testdata is recorded from the real programs only: set BEEGFS_REAL_BIN")
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(path, []byte(r.text.String()), 0o600)).To(Succeed())
	}
	expected, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	said, should := strings.Split(r.text.String(), "\n$ "), strings.Split(string(expected), "\n$ ")
	NewWithT(t).Expect(len(said)).To(Equal(len(should)), "another number of commands than in testdata: record it again")
	for i := range said {
		if said[i] != should[i] {
			t.Errorf("differs from the real program:\n--- said\n%s\n--- should\n%s", said[i], should[i])
		}
	}
}
