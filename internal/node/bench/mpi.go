package bench

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// launchVariable names this launch to its processes. What an earlier launch left in the same directory is not taken for this one's.
const launchVariable = "PARALLELFS_LAUNCH"

// ours are the variables of Open MPI 4 (OMPI_MCA_, orted(1)) and 5 (PRTE_MCA_, prterun(1)) that say what the command line can't say to
// both in the same words. Those of the MPI operator (0.7.0, ompiEnvVars) are among them. A benchmark's own (Env) come later and win.
var ours = map[string]string{
	// The names of the workers are those of the host file, with their domain.
	"OMPI_MCA_orte_keep_fqdn_hostnames": "true",
	"PRTE_MCA_prte_keep_fqdn_hostnames": "true",
	// Workers are reached by ssh and by nothing else.
	"OMPI_MCA_plm_rsh_agent": "ssh",
	"PRTE_MCA_plm_ssh_agent": "ssh",
	// Containers may not read each other's memory (process_vm_readv(2)), and Open MPI 4 finds that out by an error. Benchmarks exchange
	// a few bytes.
	"OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}

// notOurs name another host file than ours, or slots for it: the MPI operator sets them for an mpirun that is given no host file.
var notOurs = []string{"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_set_default_slots"}

// mpi is mpirun of Open MPI 4 or 5 with its environment and its own host file, which it writes. Each worker gets exactly its number of
// processes, and the processes are numbered worker by worker, as the slots of the host file are: mdtest -N shifts by a number of
// processes, and reaches the next node only when those of one node follow each other.
func mpi(b spec.Benchmark, argv, hosts []string, l Launcher, h Host) (tool, error) {
	if len(argv) == 0 {
		return tool{}, fmt.Errorf("there is no command to start on %d workers", len(hosts))
	}
	mpirun, err := lookPath("mpirun")
	if err != nil {
		return tool{}, fmt.Errorf("%w; an image for several clients needs Open MPI 4 or 5, see docs/benchmark-images.md", err)
	}
	environment := make(map[string]string, len(ours))
	var forwarded []string
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if value, set := lookup(h.Environment, name); set {
			// A session of ssh has sshd's own instead of the image's.
			environment[name] = value
			forwarded = append(forwarded, name)
		}
	}
	maps.Copy(environment, ours)
	options, set := lookup(h.Environment, "OMPI_MCA_plm_rsh_args")
	if !set {
		options = "-o ConnectionAttempts=10"
	}
	if l.SSHPort != 22 {
		options = strings.TrimSpace(options + " -p " + strconv.Itoa(l.SSHPort))
	}
	environment["OMPI_MCA_plm_rsh_args"], environment["PRTE_MCA_plm_ssh_args"] = options, options
	if b.Ranks.Each {
		argv = []string{h.Self, "bench", "rank", "--spec", l.Spec}
		environment[launchVariable] = unique()
		forwarded = append(forwarded, launchVariable)
	} else if argv[0], err = lookPath(argv[0]); err != nil {
		return tool{}, err
	}
	for _, variable := range b.Env {
		name, value, _ := strings.Cut(variable, "=")
		environment[name] = value
		// Open MPI passes on its own by itself, and warns of -x.
		if !slices.Contains(forwarded, name) && !strings.Contains(name, "_MCA_") {
			forwarded = append(forwarded, name)
		}
	}
	hostFile := filepath.Join(filepath.Dir(h.HostFile), "parallelfs-mpi-hosts")
	if err := writeIn(filepath.Dir(hostFile), hostFile, []byte(mpiHostFile(b.Placement, hosts))); err != nil {
		return tool{}, fmt.Errorf("can't write the host file of mpirun: %w", err)
	}
	processes := 0
	for _, n := range b.Placement {
		processes += n
	}
	argv = mpirunArgv(mpirun, hostFile, processes, b.Directory, forwarded, argv)
	return tool{argv: argv, directory: os.TempDir(), env: pairs(environment)}, nil
}

// mpirunArgv is the command line. mpirun is named by its absolute path, so that the workers find the rest of the same Open MPI
// (mpirun(1), --prefix). Processes are bound to no CPU: Open MPI would bind them by their number, to a core each for two and to a
// socket each for more, so that a sweep over processes would change two things, and it refuses more processes than cores. What a pod
// may use is for Kubernetes to say.
func mpirunArgv(mpirun, hostFile string, processes int, directory string, forwarded, argv []string) []string {
	out := []string{
		mpirun, "--allow-run-as-root", "--hostfile", hostFile, "-n", strconv.Itoa(processes),
		"--map-by", "slot", "--rank-by", "slot", "--bind-to", "none", "--wdir", directory,
	}
	for _, name := range forwarded {
		// By name alone: values stand in the environment and in no list of processes.
		out = append(out, "-x", name)
	}
	return append(out, argv...)
}

// mpiHostFile names each worker that has a process, with as many slots (mpirun(1), --hostfile).
func mpiHostFile(placement []int, hosts []string) string {
	var text strings.Builder
	for i, host := range hosts {
		if placement[i] > 0 {
			fmt.Fprintf(&text, "%s slots=%d\n", host, placement[i])
		}
	}
	return text.String()
}

// withoutOthers leaves out what names another host file than ours.
func withoutOthers(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(notOurs, name)
	})
}

func lookup(environment []string, name string) (value string, set bool) {
	for _, variable := range environment {
		if rest, is := strings.CutPrefix(variable, name+"="); is {
			value, set = rest, true // the last one counts
		}
	}
	return value, set
}

func pairs(environment map[string]string) []string {
	out := make([]string, 0, len(environment))
	for name, value := range environment {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return out
}
