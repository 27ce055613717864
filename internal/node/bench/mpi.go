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

// launchVariable identifies this launch to its processes. It keeps leftovers of an earlier launch in the same directory apart.
const launchVariable = "PARALLELFS_LAUNCH"

// ours holds the variables of Open MPI 4 (OMPI_MCA_, orted(1)) and 5 (PRTE_MCA_, prterun(1)) for options that have different command-line
// arguments in the two. The variables of the MPI operator (0.7.0, ompiEnvVars) are included. A benchmark's own variables (Env) are set
// later and override them.
var ours = map[string]string{
	// The worker names are those of the host file, including the domain.
	"OMPI_MCA_orte_keep_fqdn_hostnames": "true",
	"PRTE_MCA_prte_keep_fqdn_hostnames": "true",
	// Workers are reached by ssh only.
	"OMPI_MCA_plm_rsh_agent": "ssh",
	"PRTE_MCA_plm_ssh_agent": "ssh",
	// Containers may not read each other's memory (process_vm_readv(2)), and Open MPI 4 would find that out by an error. Benchmarks exchange a
	// few bytes.
	"OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}

// notOurs lists the variables for another host file or its slots. The MPI operator sets them for an mpirun without a host file.
var notOurs = []string{"OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_set_default_slots"}

// mpi returns mpirun of Open MPI 4 or 5 with its environment and its own host file, which it writes. Each worker gets exactly its number of
// processes. Processes are numbered worker by worker, in the order of the host file's slots. mdtest -N shifts by a number of processes, so
// it reaches the next node only if the processes of one node have consecutive numbers.
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
			// An ssh session has the environment of sshd instead of the image's.
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
		// Open MPI forwards its own variables by itself, and warns about -x.
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

// mpirunArgv returns the command line. mpirun has its absolute path, so that the workers find the rest of the same Open MPI (mpirun(1),
// --prefix). Processes are not bound to CPUs. Open MPI's default depends on their number: to a core each for two, to a socket each for
// more. A sweep over processes would then change two things, and Open MPI refuses more processes than cores. Kubernetes limits the CPUs of
// a pod.
func mpirunArgv(mpirun, hostFile string, processes int, directory string, forwarded, argv []string) []string {
	out := []string{
		mpirun, "--allow-run-as-root", "--hostfile", hostFile, "-n", strconv.Itoa(processes),
		"--map-by", "slot", "--rank-by", "slot", "--bind-to", "none", "--wdir", directory,
	}
	for _, name := range forwarded {
		// Only the name is passed: the value is in the environment and appears in no process list.
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

// withoutOthers removes the variables in notOurs.
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
