//go:build disks

package devices

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/affinity"
)

const (
	// disksOfCrowd and processesOfCrowd are what a large storage node has, and filesOfCrowd what a program may open there.
	disksOfCrowd, processesOfCrowd, filesOfCrowd = 24, 2000, 50_000
	// filesOfOne is how many files one process opens.
	filesOfOne = 10_000
	// partOfCrowd says in the environment which part of a crowded node this test program is.
	partOfCrowd = "PART_OF_CROWDED_NODE"
	// mostMemory bounds one look, in KiB.
	mostMemory = 32 << 10
)

// TestPartOfACrowdedNode is a process of its own in TestALookAtACrowdedNodeTakesLittleMemory.
func TestPartOfACrowdedNode(t *testing.T) {
	g := NewWithT(t)
	switch os.Getenv(partOfCrowd) {
	case "opens files":
		for range filesOfOne { // the end of the process closes them
			_, err := syscall.Open(os.DevNull, syscall.O_WRONLY, 0)
			g.Expect(err).NotTo(HaveOccurred())
		}
		_, _ = fmt.Fprintln(os.Stdout, "ready")
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
	case "looks":
		m := newMachine(t)
		for i := range disksOfCrowd {
			name := fmt.Sprintf("sd%c%c", 'f'+i/10, 'a'+i%10)
			m.scsi(name, fmt.Sprintf("65:%d", i), fmt.Sprintf("naa.5000c500a1b2%04x", i), fmt.Sprintf("\x00\x80\x00\x08DISK%04d", i))
			m.listed(name, "disk", "tran", "sas", "model", "ST20000NM002D")
			m.byID(fmt.Sprintf("wwn-0x5000c500a1b2%04x", i), name)
		}
		m.looker.Proc = "/proc"
		before, began := memoryHad(g), cpuTime(g)
		found, problems := m.looker.All(t.Context())
		took := cpuTime(g) - began
		g.Expect(problems).To(BeEmpty())
		began = cpuTime(g)
		one, err := m.looker.Recorded(t.Context(), v1alpha1.DeviceIdentity{ID: "wwn-0x5000c500a1b20000"})
		tookOne := cpuTime(g) - began
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(one.Found).To(BeTrue())
		g.Expect(one.Busy).To(BeEmpty())
		began = cpuTime(g)
		_, err = affinity.ThisNode().Placements()
		g.Expect(err).NotTo(HaveOccurred())
		_, _ = fmt.Fprintf(os.Stdout, "%d %d %d %d %d %d\n", len(found), memoryHad(g)-before,
			took.Milliseconds(), tookOne.Milliseconds(), (cpuTime(g) - began).Milliseconds(), memoryHad(g))
	default:
		t.Log("it is a part of another test")
	}
}

// cpuTime returns the CPU time that this process has used: other programs of the machine don't change it.
func cpuTime(g Gomega) time.Duration {
	var used syscall.Rusage
	g.Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &used)).To(Succeed())
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// memoryHad returns the most memory that this process had so far, in KiB.
func memoryHad(g Gomega) int {
	status, err := os.ReadFile("/proc/self/status")
	g.Expect(err).NotTo(HaveOccurred())
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	had, err := strconv.Atoi(strings.Fields(rest)[0])
	g.Expect(err).NotTo(HaveOccurred())
	return had
}

func TestALookAtACrowdedNodeTakesLittleMemory(t *testing.T) {
	g := NewWithT(t)
	const forks = "mkfifo $0 && exec 3<>$0; i=0; while [ $i -lt $1 ]; do (read x <&3) & i=$((i+1)); done; echo ready; wait"
	crowd := exec.CommandContext(t.Context(), "sh", "-c", forks, filepath.Join(t.TempDir(), "wait"), strconv.Itoa(processesOfCrowd))
	crowd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	crowd.Cancel = func() error { return syscall.Kill(-crowd.Process.Pid, syscall.SIGKILL) }
	begin(t, crowd)
	for range filesOfCrowd / filesOfOne {
		begin(t, partOf(t, "opens files"))
	}
	output, err := partOf(t, "looks").Output()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	var found, took, allMS, oneMS, placeMS, had int
	_, err = fmt.Sscan(string(output), &found, &took, &allMS, &oneMS, &placeMS, &had)
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	// The times are of a CPU, and are shown for a person: a machine may be slower.
	t.Logf("%d devices, %d processes, %d open files: all devices %d ms, one device with its writers %d ms, where daemons run %d ms; %d KiB more than before, %d KiB in all",
		found, processesOfCrowd, filesOfCrowd, allMS, oneMS, placeMS, took, had)
	g.Expect(found).To(BeNumerically(">=", disksOfCrowd))
	g.Expect(took).To(BeNumerically("<=", mostMemory), "KiB")
}

// partOf is this test program as a part of the crowded node.
func partOf(t *testing.T, part string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPartOfACrowdedNode$")
	command.Env = append(os.Environ(), partOfCrowd+"="+part)
	return command
}

// begin starts a program that says "ready", and ends it with the test.
func begin(t *testing.T, command *exec.Cmd) {
	t.Helper()
	g := NewWithT(t)
	_, err := command.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	says, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() {
		if command.Cancel != nil {
			_ = command.Cancel()
		}
		_ = command.Wait()
	})
	line, err := bufio.NewReader(says).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(line).To(Equal("ready\n"))
}
