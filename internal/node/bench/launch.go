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

// between is the pause between two looks for a host.
const between = 500 * time.Millisecond

// Launch runs a tool that reaches the hosts of the MPI operator's host file: it waits for all of them, writes the tool's
// own host file, and runs the tool. The launcher's pod has no mount: its workers make the directory, Clean removes it.
// The errors are those of Run. The tool's time starts when the tool does; the wait may take as long again.
func Launch(ctx context.Context, b spec.Benchmark, mpiHostFile string, sshPort int, h Host) error {
	if err := errors.Join(Place(b), limited(b)); err != nil {
		return err
	}
	content, err := os.ReadFile(mpiHostFile)
	if err != nil {
		return fmt.Errorf("can't read the MPI operator's host file: %w", err)
	}
	hosts, err := ParseHosts(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", mpiHostFile, err)
	}
	limit := time.Duration(b.TimeoutSeconds) * time.Second
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, host := range hosts {
		if err := await(waiting, func() error { return h.Resolve(waiting, host) }); err != nil {
			return fmt.Errorf("the worker %s has no address after %s; look at its pod: %w", host, limit, err)
		}
		if err := await(waiting, func() error { return h.Connect(waiting, host, sshPort) }); err != nil {
			return fmt.Errorf("the worker %s does not accept ssh after %s; look at its pod: %w", host, limit, err)
		}
	}
	own, err := h.Address()
	if err != nil {
		return err
	}
	if b.Hosts != nil {
		if err := os.WriteFile(h.HostFile, []byte(HostFile(*b.Hosts, hosts, b.Directory)), 0o600); err != nil {
			return fmt.Errorf("can't write the tool's host file: %w", err)
		}
	}
	h.say("%d workers are ready", len(hosts))
	return runTool(ctx, b, Argv(b.Argv, h.HostFile, own), os.TempDir(), h)
}

// await repeats try until it succeeds. When ctx ends it returns the last error of try.
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

// ParseHosts returns the names in a host file of the MPI operator: a name and slots=N per line (mpirun(1), --hostfile), or name:N.
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

// HostFile is the content of the tool's host file: one line per process, the hosts taken in turn.
func HostFile(h spec.Hosts, hosts []string, directory string) string {
	var text strings.Builder
	for i := range h.Processes {
		text.WriteString(strings.NewReplacer("$(HOST)", hosts[i%len(hosts)], "$(DIRECTORY)", directory).Replace(h.Line) + "\n")
	}
	return text.String()
}

// Argv replaces $(HOSTS_FILE) and $(LAUNCHER_IP).
func Argv(argv []string, hostFile, address string) []string {
	replacer := strings.NewReplacer("$(HOSTS_FILE)", hostFile, "$(LAUNCHER_IP)", address)
	replaced := make([]string, len(argv))
	for i, argument := range argv {
		replaced[i] = replacer.Replace(argument)
	}
	return replaced
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

// address prefers what Kubernetes says (POD_IP, from status.podIP).
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
