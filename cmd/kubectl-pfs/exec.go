package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec" //nolint:depguard // kubectl has the terminal of an exec; it is the only program that the plugin runs
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
)

// execute runs a program with the terminal of this one.
func execute(ctx context.Context, argv []string) (int, error) {
	command := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // no shell, and a person asks for it
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := command.Run()
	if exited, is := errors.AsType[*exec.ExitError](err); is {
		return exited.ExitCode(), nil
	}
	return 0, err
}

func (a *app) execCommand() *cobra.Command {
	var node string
	var dry bool
	cmd := &cobra.Command{
		Use:   "exec FILESYSTEM -- COMMAND [ARGUMENT...]",
		Short: "Run a tool of the filesystem, such as mfscli, beegfs or lctl, where it has an address and credentials",
		Long: `exec runs a command with kubectl exec in a pod of the filesystem: beside the master (MooseFS), beside the management service
(BeeGFS), or beside a server (Lustre). mfscli, beegfs-ctl and beegfs get the address of the filesystem and its credentials, as the operator
calls them; lctl and the other tools of Lustre are those of the node. The arguments reach the command as they are: no shell reads them.

The tools can destroy data and change what the operator has set. The operator reverts some of that, and does not notice the rest.

It needs kubectl in your PATH, and the right to create pods/exec in the namespace of the FileSystem. The exit code is the command's.`,
		Example: `  kubectl pfs exec archive -- mfscli -SIN
  kubectl pfs exec scratch -- beegfs-ctl --listtargets --state
  kubectl pfs exec scratch -- beegfs target list --state
  kubectl pfs exec work --node oss2 -- lctl get_param obdfilter.*.recovery_status
  kubectl pfs exec archive --dry-run -- mfscli -SIN`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(errors.New("name the FileSystem and, behind --, the command"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(a.cluster)
			if err != nil {
				return err
			}
			argv, err := c.execArguments(cmd.Context(), a.cluster, args[0], node, args[1:], a.terminal)
			if err != nil {
				return err
			}
			if dry {
				quoted := make([]string, len(argv))
				for i, word := range argv {
					quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.Join(quoted, " "))
				return err
			}
			code, err := a.execute(cmd.Context(), argv)
			if err == nil && code != 0 {
				return &exitError{code, ""}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the `NODE` whose pod runs the command")
	dryRun(cmd, &dry)
	return cmd
}

// execArguments returns the command line of kubectl that runs a tool in a pod of a FileSystem.
func (c connection) execArguments(
	ctx context.Context, flags clusterFlags, name, node string, tool []string, terminal bool,
) ([]string, error) {
	fs, err := c.fileSystem(ctx, name)
	if err != nil {
		return nil, err
	}
	fs.Complete()
	var pods []corev1.Pod
	if err := pages(ctx, c, "pods", func() *corev1.PodList { return &corev1.PodList{} },
		func(l *corev1.PodList) { pods = append(pods, l.Items...) }, ofFileSystem(c.namespace, name)...); err != nil {
		return nil, err
	}
	management := ""
	for i := range pods {
		if fs.Status.Metadata != nil && pods[i].Spec.NodeName == fs.Status.Metadata.Node && pods[i].Status.HostIP != "" {
			management = pods[i].Status.HostIP
		}
	}
	runner, can := all.Backends(0)[fs.Spec.Type].(backend.ToolRunner)
	if !can {
		return nil, fmt.Errorf("a %s has no tools that run in its pods", fs.Spec.Type)
	}
	call, err := runner.RunTool(fs, management, tool)
	if err != nil {
		return nil, err
	}
	pod, err := choosePod(pods, call.Components, node)
	if err != nil {
		return nil, err
	}
	argv := []string{"kubectl"}
	for _, flag := range []struct{ name, value string }{{"kubeconfig", flags.kubeconfig}, {"context", flags.context}} {
		if flag.value != "" {
			argv = append(argv, "--"+flag.name+"="+flag.value)
		}
	}
	argv = append(argv, "--namespace="+c.namespace, "exec", "--stdin")
	if terminal {
		argv = append(argv, "--tty")
	}
	return append(append(argv, pod.Name, "--container="+call.Container, "--"), call.Argv...), nil
}

// choosePod returns the running pod of the first of the components that has one, on a node if it is named. With several, it is the first by
// name.
func choosePod(pods []corev1.Pod, components []string, node string) (*corev1.Pod, error) {
	var best *corev1.Pod
	rank := func(p *corev1.Pod) int { return slices.Index(components, p.Labels[v1alpha1.LabelComponent]) }
	for i := range pods {
		p := &pods[i]
		if rank(p) < 0 || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || node != "" && p.Spec.NodeName != node {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(rank(p), rank(best)), cmp.Compare(p.Name, best.Name)) < 0 {
			best = p
		}
	}
	if best == nil {
		where := ""
		if node != "" {
			where = " on node " + node
		}
		return nil, fmt.Errorf("no pod of the filesystem that has this tool runs%s (components %s)", where, strings.Join(components, ", "))
	}
	return best, nil
}
