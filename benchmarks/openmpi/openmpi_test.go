package openmpi_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks/openmpi"
)

const border = "--------------------------------------------------------------------------\n"

func TestLinesOfTheProgramAreToldFromOthers(t *testing.T) {
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
			lines, err := openmpi.Lines([]byte(test.output))
			if test.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.says)))
				g.Expect(lines).To(BeNil())
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(lines).To(Equal(test.want))
		})
	}
}

func TestEachWordOfABadEndIsEnough(t *testing.T) {
	for _, text := range []string{
		"MPI_ABORT was invoked", "the job was terminated", "process rank 1 exited", "process rank 1 was killed", "process rank 1 on signal 9",
		"returned a non-zero code", "mpirun was unable to start", "ORTE has lost communication", "There are not enough slots available",
		"an executable could not be found", "the daemon cannot be reached", "a process failed to start",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := openmpi.Lines([]byte(border + text + "\n" + border))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(text)))
		})
	}
}
