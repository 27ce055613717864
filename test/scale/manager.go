//go:build scale

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// endLimit is how long a manager may take until it has ended.
const endLimit = 10 * time.Second

// prepareManager makes the prerequisites of a manager: its kubeconfig, its namespace, ports, and a log file that all managers share.
func (c *cluster) prepareManager(ctx context.Context, binary, log string) error {
	kubeconfig, err := c.users[userManager].KubeConfig()
	if err != nil {
		return fmt.Errorf("make the manager's kubeconfig: %w", err)
	}
	path := filepath.Join(c.directory, "manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, privateFile); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	if c.person, err = c.client(userPerson); err != nil {
		return err
	}
	if err := c.person.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}); err != nil {
		return fmt.Errorf("make the manager's namespace: %w", err)
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	c.metrics = fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[0])
	c.profile = fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/", ports[2])
	out, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("make the manager's log: %w", err)
	}
	arguments := append([]string{
		binary, "--leader-elect", "--leader-election-namespace=" + operatorNamespace, "--node-image=registry.example.com/parallelfs/node:1",
		"--image-pull-policy=IfNotPresent",
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", ports[0]), fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[1]),
		fmt.Sprintf("--pprof-bind-address=127.0.0.1:%d", ports[2]),
	}, managerArguments()...)
	if os.Geteuid() == 0 {
		// The manager gets a higher priority: when the API server of a thousand nodes collects its garbage, it uses all of a small machine for
		// seconds.
		arguments = slices.Concat([]string{"nice", "-n", "-10"}, arguments)
	}
	c.command = func() *exec.Cmd {
		command := exec.Command(arguments[0], arguments[1:]...)
		command.Env = append(os.Environ(), "KUBECONFIG="+path)
		command.Stdout, command.Stderr = out, out
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return command
	}
	c.stop = append(c.stop, func() error { c.endManager(); return out.Close() })
	return nil
}

// startManager starts a manager as the chart does, and waits until it leads.
func (c *cluster) startManager(ctx context.Context) error {
	command := c.command()
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	c.manager = command.Process.Pid
	ended := make(chan struct{})
	c.ended = ended
	go func() { _ = command.Wait(); close(ended) }()
	c.endManager = func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(endLimit):
			_ = command.Process.Kill()
			<-ended
		}
	}
	return c.untilItLeads(ctx)
}

// untilItLeads waits until the lease has a new holder.
func (c *cluster) untilItLeads(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		var leases coordinationv1.LeaseList
		if err := c.person.List(ctx, &leases, client.InNamespace(operatorNamespace)); err != nil {
			return fmt.Errorf("look for the manager's lease: %w", err)
		}
		if len(leases.Items) > 0 {
			if holder := ptr.Deref(leases.Items[0].Spec.HolderIdentity, ""); holder != "" && holder != c.leader {
				c.leader = holder
				return nil
			}
		}
		select {
		case <-c.ended:
			return errors.New("the manager has ended before it had its lease; its log shows why")
		case <-ctx.Done():
			return fmt.Errorf("the manager did not get its lease in time; its log shows why: %w", ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// passes reads how long the manager's passes over one kind of object took.
func (c *cluster) passes(ctx context.Context, controller string) (histogram, error) {
	text, err := c.readMetrics(ctx)
	return readHistogram(text, "controller_runtime_reconcile_time_seconds", `controller="`+controller+`"`), err
}

// passesOver reads how long passes over FileSystems took: their own work, and the wait for the filesystem's answer.
func (c *cluster) passesOver(ctx context.Context) (work, answer histogram, err error) {
	text, err := c.readMetrics(ctx)
	const name = "parallelfs_filesystem_pass_seconds"
	return readHistogram(text, name, `part="work"`), readHistogram(text, name, `part="answer"`), err
}

func (c *cluster) readMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.metrics, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("ask for the manager's metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read the manager's metrics: %w", err)
	}
	return string(text), nil
}

// saveProfiles writes CPU and memory profiles of the manager to files.
func (c *cluster) saveProfiles(ctx context.Context, during time.Duration, path string) error {
	return errors.Join(c.saveProfile(ctx, fmt.Sprintf("profile?seconds=%.0f", during.Seconds()), path+".cpu.pprof"),
		c.saveProfile(ctx, "heap", path+".heap.pprof"))
}

func (c *cluster) saveProfile(ctx context.Context, which, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.profile+which, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask for a profile of the manager: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("read a profile of the manager: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read a profile of the manager: %w", err)
	}
	return os.WriteFile(path, content, privateFile)
}
