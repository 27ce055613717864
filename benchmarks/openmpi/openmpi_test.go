package openmpi_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/openmpi"
)

const border = "--------------------------------------------------------------------------\n"

func TestLinesOfTheProgramAreDistinguishedFromOthers(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   []openmpi.Line
		says   string
	}{
		"nothing":             {"", nil, ""},
		"lines of a terminal": {"  one \r\n\r\ntwo\r\n", []openmpi.Line{{Number: 1, Text: "one"}, {Number: 3, Text: "two"}}, ""},
		"hosts that ssh meets for the first time": {
			"Warning: Permanently added 'n1,10.0.0.1' (ECDSA) to the list of known hosts.\r\none\n", []openmpi.Line{{Number: 2, Text: "one"}}, ""},
		"lines of the launcher": {"parallelfs: 2 workers are ready\none\n", []openmpi.Line{{Number: 2, Text: "one"}}, ""},
		"a network that is not there": {
			"one\n" + border + "[[1,1],0]: A high-performance Open MPI point-to-point messaging module\nwas not able to find any relevant network interfaces:\n\n" +
				"Another transport will be used instead, although this may result in\nlower performance.\n" + border +
				"[n1:0017] 3 more processes have sent help message help-mpi-btl-base.txt / btl:no-nics\n" +
				"[n1:0017] Set MCA parameter \"orte_base_help_aggregate\" to 0 to see all help / error messages\ntwo\n",
			[]openmpi.Line{{Number: 1, Text: "one"}, {Number: 11, Text: "two"}}, ""},
		"a component that can't be loaded": {
			"[n1:9] mca_base_component_repository_open: unable to open mca_btl_openib: librdmacm.so.1 (ignored)\none\n", []openmpi.Line{{Number: 2, Text: "one"}}, ""},
		"memory of others that may not be read": {"[n1:00042] Read -1, expected 65536, errno = 1\none\n", []openmpi.Line{{Number: 2, Text: "one"}}, ""},
		"ssh that was faster than mpirun": {"[n1:00042] plm:rsh: Warning: setpgid(50,50) failed in parent with errno=Permission denied(13)\none\n",
			[]openmpi.Line{{Number: 2, Text: "one"}}, ""},
		"a rule of the program": {"   ---------      ---\n------    ---------\n", []openmpi.Line{{Number: 1, Text: "---------      ---"}, {Number: 2, Text: "------    ---------"}}, ""},
		"a process that was killed": {
			"one\n" + border + "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed).\n" + border,
			nil, `line 3: mpirun says "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 9 (Killed)."`},
		"a process that gave up, and said why": {
			border + "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode -1.\n" + border + "ERROR: no idea, (ior.c:1)\n",
			nil, `line 2: mpirun says "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD"; line 5 says "ERROR: no idea, (ior.c:1)"`},
		"too few slots": {border + "There are not enough slots available in the system to satisfy the 4\nslots that were requested by the application:\n" + border,
			nil, "line 2: mpirun says \"There are not enough slots"},
		"a message that is cut off": {"one\n" + border + "[[1,1],0]: A high-performance\n", nil, "line 2: a message of mpirun begins, and the output is cut off in it"},
		"a crash":                   {"[n1:9] *** Process received signal ***\n", []openmpi.Line{{Number: 1, Text: "[n1:9] *** Process received signal ***"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			read, err := openmpi.Read([]byte(test.output))
			if test.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.says)))
				g.Expect(read.Lines).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read.Lines).To(Equal(test.want))
		})
	}
}

func TestEachWordOfAFailureIsEnough(t *testing.T) {
	for _, text := range []string{
		"MPI_ABORT was invoked", "the job was terminated", "process rank 1 exited", "process rank 1 was killed", "process rank 1 on signal 9",
		"returned a non-zero code", "ORTE has lost communication", "There are not enough slots available", "a process failed to start",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := openmpi.Read([]byte(border + text + "\n" + border))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(text)))
		})
	}
}

// The first is from Open MPI 4.0 (help-mpi-btl-openib.txt, epochpic/epoch#485), the second from 4.1 (help-mca-base.txt).
const (
	inactivePort = border + `WARNING: There is at least non-excluded one OpenFabrics device found,
but there are no active ports detected (or Open MPI was unable to use
them).  This is most certainly not what you wanted.  Check your
cables, subnet manager configuration, etc.  The openib BTL will be
ignored for this job.

  Local host: n1
` + border
	noComponent = border + `A requested component was not found, or was unable to be opened.  This
means that this component is either not installed or is unable to be
used on your system.

Host:      n1
Framework: btl
Component: openib
` + border
)

func TestAMessageOfMpirunExplainsAnIncompleteReport(t *testing.T) {
	for name, text := range map[string]string{
		"a network card whose port is inactive": inactivePort, "a component": noComponent,
		"a program that is not there":                border + "mpirun was unable to find the specified executable file\n" + border,
		"a program that could not be run":            border + "an executable could not be found\n" + border,
		"a daemon that is not there":                 border + "the daemon cannot be reached\n" + border,
		"a warning of what would end other programs": border + "WARNING: a process that calls fork() may be aborted.\n" + border,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			read, err := openmpi.Read([]byte("one\n" + text + "two\n"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read.Lines).To(HaveLen(2))
			g.Expect(read.Explain(nil)).To(Succeed(), "the report is complete")
			g.Expect(read.Explain(errors.New("cut off"))).To(MatchError(ContainSubstring("mpirun says")))
		})
	}
	read, err := openmpi.Read([]byte("one\n"))
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Explain(errors.New("cut off"))).To(MatchError("cut off"))
}

func TestLinesOfMPIsPartsAreNoneOfTheProgram(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kept bool
	}{
		"UCX without a network":    {"[1598366400.123456] [n1:1234 :0]    ucp_context.c:671  UCX  WARN  network device 'mlx5_9:1' is not available", false},
		"a library of the network": {"libibverbs: Warning: couldn't load driver 'libhfi1verbs-rdmav34.so'", false},
		"a part of Open MPI":       {"[n1:00042] mtl_ofi_component.c:812: fi_getinfo(): No data available", false},
		"an error of a part":       {"[n1:00042] PMIX ERROR: NOT-FOUND in file dstore_base.c at line 1567", true},
		"an error of UCX":          {"[1598366400.123456] [n1:1234 :0]    mm_ep.c:155  UCX  ERROR shm_open failed", true},
		"a crash":                  {"[n1:00042] *** Process received signal ***", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			read, err := openmpi.Read([]byte(c.text + "\n"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(read.Lines).To(HaveLen(map[bool]int{true: 1}[c.kept]))
		})
	}
}
