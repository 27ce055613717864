package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/spec"
)

// between is the pause between two checks of a host.
const between = 500 * time.Millisecond

// Launcher holds the inputs of a launcher besides its spec.
type Launcher struct {
	// HostFile is the MPI operator's host file, which lists the workers.
	HostFile string
	// SSHPort is the port of the workers' sshd.
	SSHPort int
	// Spec is the path of the spec, the same in the launcher and its workers.
	Spec string
}

// Launch runs a tool on the hosts of the MPI operator's host file. It waits for all hosts, writes the tool's files and starts the tool. The
// tool reaches the hosts by itself, or by mpirun if Ranks is set. The launcher's pod has no mount: its workers make the directory, and
// Clean removes it. The errors are those of Run. The tool's time starts when the tool does; the wait may take as long again.
func Launch(ctx context.Context, b spec.Benchmark, l Launcher, h Host) error {
	if err := errors.Join(Place(b), limited(b)); err != nil {
		return err
	}
	text, err := os.ReadFile(l.HostFile)
	if err != nil {
		return fmt.Errorf("can't read the MPI operator's host file: %w", err)
	}
	hosts, err := ParseHosts(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", l.HostFile, err)
	}
	if err := placed(b.Placement, hosts); err != nil {
		return err
	}
	if err := awaitWorkers(ctx, b, hosts, l.SSHPort, h); err != nil {
		return err
	}
	own, err := h.Address()
	if err != nil {
		return err
	}
	v := values{directory: b.Directory, hostsFile: hostsFile(b, h), launcherIP: own}
	if err := writeFiles(nil, b, b.Placement, hosts, v, h); err != nil {
		return err
	}
	h.say("%d workers are ready", len(hosts))
	t := tool{argv: v.arguments(b.Argv), directory: os.TempDir(), env: b.Env}
	if b.Ranks != nil {
		if t, err = mpi(b, t.argv, hosts, l, h); err != nil {
			return err
		}
		h.Environment = withoutOthers(h.Environment)
	}
	return aroundWorkers(ctx, h, hosts, b.Placement, l.SSHPort, func() error { return runTool(ctx, b, t, h) })
}

// placed returns an error unless there is a number of processes for each host.
func placed(placement []int, hosts []string) error {
	if len(placement) != len(hosts) {
		return fmt.Errorf("processes are placed on %d workers, and the MPI operator's host file names %d; nothing is started", len(placement), len(hosts))
	}
	total := 0
	for _, processes := range placement {
		if processes < 0 {
			return fmt.Errorf("%d processes can't be placed on a worker", processes)
		}
		total += processes
	}
	if total == 0 {
		return errors.New("no process is placed on any worker; nothing is started")
	}
	return nil
}

func awaitWorkers(ctx context.Context, b spec.Benchmark, hosts []string, port int, h Host) error {
	limit := time.Duration(b.TimeoutSeconds) * time.Second
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, host := range hosts {
		if err := await(waiting, func() error { return h.Resolve(waiting, host) }); err != nil {
			return fmt.Errorf("the worker %s has no address after %s; look at its pod: %w", host, limit, err)
		}
		if err := await(waiting, func() error { return h.Connect(waiting, host, port) }); err != nil {
			return fmt.Errorf("the worker %s does not accept ssh after %s; look at its pod: %w", host, limit, err)
		}
	}
	return nil
}

// await repeats try until it succeeds. When ctx ends, it returns the last error of try.
func await(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(between):
		}
	}
}

// ParseHosts returns the names in a host file of the MPI operator. Each line has the form "name slots=N" (mpirun(1), --hostfile) or
// "name:N".
func ParseHosts(content string) ([]string, error) {
	var hosts []string
	for line := range strings.Lines(content) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name, _, _ := strings.Cut(fields[0], ":")
		hosts = append(hosts, name)
	}
	if len(hosts) == 0 {
		return nil, errors.New("the host file names no host")
	}
	return hosts, nil
}

func resolve(ctx context.Context, host string) error {
	_, err := net.DefaultResolver.LookupHost(ctx, host)
	return err
}

func connect(ctx context.Context, host string, port int) error {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return connection.Close()
}

// address returns POD_IP (from status.podIP) if it is set.
func address() (string, error) {
	if ip := os.Getenv("POD_IP"); ip != "" {
		return ip, nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("can't list the addresses of this machine: %w", err)
	}
	for _, a := range addresses {
		if network, ok := a.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no address but its loopback; set POD_IP")
}

func lookPath(program string) (string, error) {
	found, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("the image has no program %q: %w", program, err)
	}
	return found, nil
}
