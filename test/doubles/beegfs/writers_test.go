package beegfs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
	"parallelfs.dev/operator/test/patience"
)

// writer is a client that reports the number of its open files to a storage server repeatedly until the test ends, because the server
// forgets a silent client.
type writer struct {
	g       *WithT
	address string
	secret  uint64
	number  int
	telling sync.Once
	// mutex keeps the reports in order.
	mutex sync.Mutex
	files int
}

func (c *cluster) writer(major, number int, port string) *writer {
	c.t.Helper()
	secret, err := option.Secret(major, option.Values{"connAuthFile": c.path("auth")})
	NewWithT(c.t).Expect(err).NotTo(HaveOccurred())
	return &writer{g: NewWithT(c.t), address: net.JoinHostPort(c.address, c.fill(port)), secret: secret, number: number}
}

// opens returns when the server has received the number of files.
func (w *writer) opens(t *testing.T, files int) {
	t.Helper()
	w.g.Expect(w.tell(t.Context(), &files)).To(Succeed())
	w.telling.Do(func() {
		go func() {
			for t.Context().Err() == nil {
				_ = w.tell(t.Context(), nil) // The next report repeats it.
				<-time.After(time.Second)
			}
		}()
	})
}

// tell reports a new number of open files, or repeats the last report.
func (w *writer) tell(ctx context.Context, files *int) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if files != nil {
		w.files = *files
	}
	return wire.Ask(ctx, w.address, w.secret, "open-files", wire.OpenFiles{Client: w.number, Files: w.files}, nil)
}

// server1Has is the output of both tools for storage server 1, in the format of GenericDebugMsgEx.cpp of 7.4.6 and 8.3.1.
const server1Has = "Found 1 sessions.\n\n%s\nFinal results: %d open files in 1 checked sessions\n"

// meta1Has is their output for metadata server 1, as a real beegfs-meta 7.4.6 printed it for an open file that was not read or written yet.
const meta1Has = "Found %d non-mirrored sessions and 0 mirrored sessions.\n\nNon-mirrored sessions:\n%sMirrored sessions:\n\n" +
	"Final results: %d open files in %[1]d checked sessions\n"

func TestAMetadataServerListsTheClientsWithOpenFiles(t *testing.T) {
	for version, c := range map[string]struct{ line, before, port string }{
		"7.4.6": {ctl + "--genericdebug --nodetype=meta --nodeid=1 listopenfiles", "Command: listopenfiles\nResponse:\n", "{PORT+11}"},
		"8.3.1": {cli + "--mount=none debug m:1 listopenfiles", "", "{PORT+16}"},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			f := started(t, version)
			said, complained, code := f.runApart(c.line, "")
			g.Expect(code).To(BeZero(), complained)
			g.Expect(said).To(Equal(c.before + fmt.Sprintf(meta1Has, 0, "", 0)))
			f.writer(int(version[0]-'0'), 7, c.port).opens(t, 2)
			said, _, _ = f.runApart(c.line, "")
			g.Expect(said).To(Equal(c.before + fmt.Sprintf(meta1Has, 1, "7: 2\n", 2)))
		})
	}
}

func TestAStorageServerListsTheClientsWithOpenFiles(t *testing.T) {
	for version, c := range map[string]struct{ line, before, port string }{
		"7.4.6": {ctl + "--genericdebug --nodetype=storage --nodeid=1 listopenfiles", "Command: listopenfiles\nResponse:\n", "{PORT+31}"},
		"8.3.1": {cli + "--mount=none debug s:1 listopenfiles", "", "{PORT+32}"},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			f := started(t, version)
			writer := f.writer(int(version[0]-'0'), 7, c.port)
			writer.opens(t, 2)
			said, complained, code := f.runApart(c.line, "")
			g.Expect(code).To(BeZero(), complained)
			g.Expect(said).To(Equal(c.before + fmt.Sprintf(server1Has, "7: 2\n", 2)))
			writer.opens(t, 0)
			said, _, _ = f.runApart(c.line, "")
			g.Expect(said).To(Equal(c.before + fmt.Sprintf(server1Has, "", 0)))
		})
	}
}

// started returns a running filesystem of a version.
func started(t *testing.T, version string) *cluster {
	t.Helper()
	if strings.HasPrefix(version, "8") {
		return cluster8(t)
	}
	c := newCluster(t, version)
	if c.real {
		t.Skip("nobody mounts the real one here")
	}
	c.startAll()
	return c
}

// move runs a script by the operator's node binary like a job that moves files.
func (c *cluster) move(script string) (said string, code int) {
	c.t.Helper()
	g := NewWithT(c.t)
	node := c.path("node")
	build := exec.CommandContext(c.t.Context(), "go", "build", "-o", node, "parallelfs.dev/operator/cmd/node")
	output, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	tool := func(line string) []string {
		words := strings.Fields(c.fill(line))
		return append([]string{"env", "BEEGFS_DOUBLE_VERSION=" + c.version, filepath.Join(doubles, words[0])}, words[1:]...)
	}
	quiet := map[string]any{
		"server": "storage server 1", "session": `(?m)^(?P<id>[0-9]+): (?P<files>[0-9]+)\s*$`, "answered": "(?m)^Final results: ",
		"clients": tool(ctl + "--listnodes --nodetype=client"), "client": `(?m)^(?P<name>\S.*) \[ID: (?P<id>[0-9]+)\]\s*$`,
		"open": tool(ctl + "--genericdebug --nodetype=storage --nodeid=1 listopenfiles"),
		"also": []any{map[string]any{
			"server": "metadata server 1", "open": tool(ctl + "--genericdebug --nodetype=meta --nodeid=1 listopenfiles"),
		}},
	}
	told, err := json.Marshal(map[string]any{
		"quiet": quiet, "commands": []any{map[string]any{"argv": []string{"sh", "-c", script, "sh", c.dir}, "timeoutSeconds": -1}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	c.write("told.json", string(told))
	command := exec.CommandContext(c.t.Context(), node, "configure", "--spec", c.path("told.json"))
	output, err = command.CombinedOutput()
	var exit *exec.ExitError
	g.Expect(err == nil || errors.As(err, &exit)).To(BeTrue(), string(output))
	return string(output), command.ProcessState.ExitCode()
}

// asRoot skips a test if it is not root, because another program starts its commands and beegfs-ctl requires root.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("beegfs-ctl insists on root")
	}
}

// Moving replaces files by new ones: later writes to the old ones, which are still open, are lost.
func TestNothingIsMovedWhileAWriterHasAFileOpenOnTheServer(t *testing.T) {
	asRoot(t)
	g := NewWithT(t)
	c := started(t, "7.4.6")
	writer := c.writer(7, 7, "{PORT+31}")
	writer.opens(t, 2)
	said, code := c.move(`touch "$1"/moved`)
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("nothing is done: clients have files open on storage server 1, " +
		"and what they write to files that are moved would be lost: client 7 (2); "))
	g.Expect(c.path("moved")).NotTo(BeAnExistingFile())

	writer.opens(t, 0)
	said, code = c.move(`touch "$1"/moved`)
	g.Expect(code).To(BeZero(), said)
	g.Expect(c.path("moved")).To(BeAnExistingFile())
}

// A storage server has no session for a file that was not read or written yet. With the real 7.4.6, data that a program wrote to such a
// file after the move was lost without an error.
func TestNothingIsMovedWhileAnUnwrittenFileIsOpen(t *testing.T) {
	asRoot(t)
	g := NewWithT(t)
	c := started(t, "7.4.6")
	writer := c.writer(7, 7, "{PORT+11}")
	writer.opens(t, 1)
	said, code := c.move(`touch "$1"/moved`)
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("nothing is done: clients have files open on metadata server 1, " +
		"and what they write to files that are moved would be lost: client 7 (1); "))
	g.Expect(c.path("moved")).NotTo(BeAnExistingFile())
}

// The mover replaces the tool: it renames a copy over the file that the writers have open, and ends before that if it is asked to.
func TestAWriterThatComesWhileFilesAreMovedEndsTheMove(t *testing.T) {
	asRoot(t)
	g := NewWithT(t)
	c := started(t, "7.4.6")
	c.write("file", "")
	before, err := os.Stat(c.path("file"))
	g.Expect(err).NotTo(HaveOccurred())
	// One of the two clients that came after the start can be the mover itself.
	writers := []*writer{c.writer(7, 7, "{PORT+31}"), c.writer(7, 8, "{PORT+31}")}
	go func() {
		g.Eventually(c.path("started")).WithTimeout(patience.Bound(10 * time.Minute)).Should(BeAnExistingFile())
		for _, w := range writers {
			w.opens(t, 1)
		}
	}()
	said, code := c.move(`touch "$1"/started; trap 'exit 0' TERM; sleep 600 & wait $!; cp "$1"/file "$1"/copy; mv "$1"/copy "$1"/file`)
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("was ended before it was done: clients have files open on storage server 1"))
	after, err := os.Stat(c.path("file"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.SameFile(before, after)).To(BeTrue(), "what the writers write is in the file that others find")
}
