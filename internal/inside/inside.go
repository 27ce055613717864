// Package inside finds where the own tools of a filesystem run, and how they reach it.
package inside

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// Call is a command line and the container that it runs in.
type Call struct {
	// Components lists the components whose pods have the tool, the best one first.
	Components []string
	Container  string
	Argv       []string
}

// probe is the name of the container beside the servers. It has the filesystem's tools, and what they need to reach it.
const probe = "probe"

// CallOf completes a command line of a tool with the address and the credentials of the filesystem. management is the address of the node
// with the management service or master. Other programs stay as they are.
func CallOf(fs *v1alpha1.FileSystem, management string, argv []string) (Call, error) {
	switch fs.Spec.Type {
	case v1alpha1.MooseFS:
		out := Call{[]string{"master"}, probe, argv}
		if argv[0] == "mfscli" && !slices.ContainsFunc(argv, func(word string) bool { return strings.HasPrefix(word, "-H") }) {
			if fs.Status.Management == nil {
				return Call{}, errors.New("the FileSystem has no master yet (status.management)")
			}
			_, port, err := net.SplitHostPort(fs.Status.Management.Address)
			if err != nil {
				return Call{}, fmt.Errorf("read status.management.address: %w", err)
			}
			out.Argv = slices.Concat(argv[:1], []string{"-H", "127.0.0.1", "-P", port}, argv[1:])
		}
		return out, nil
	case v1alpha1.BeeGFS:
		return beegfsCall(fs, management, argv)
	default: // the tools of Lustre belong to the kernel of the node, so no image has them
		return Call{[]string{"mgs", "mdt", "ost"}, probe, slices.Concat([]string{podspec.NodeBinary, spec.OnNode}, argv)}, nil
	}
}

func beegfsCall(fs *v1alpha1.FileSystem, management string, argv []string) (Call, error) {
	version := backend.Version(fs)
	tool, other := "beegfs-ctl", "beegfs"
	if cli.Is8(version) {
		tool, other = other, tool
	}
	out := Call{[]string{"management"}, probe, argv}
	switch argv[0] {
	case other:
		return Call{}, fmt.Errorf("BeeGFS %s has the tool %s, and not %s", version, tool, other)
	case tool:
		if fs.Status.Metadata == nil || management == "" {
			return Call{}, errors.New("the FileSystem has no management service yet (status.metadata)")
		}
		in := backend.Input{FileSystem: fs, Nodes: []backend.Node{{Name: fs.Status.Metadata.Node, IP: management}}}
		out.Argv = cli.NewTool(version, beegfs.GRPCAddress(in)).Run(argv[1:]...)
	}
	return out, nil
}

// Choose returns the running pod of the first of the components that has one, on a node if it is named. With several, it is the first by name.
func (c Call) Choose(pods []corev1.Pod, node string) (*corev1.Pod, error) {
	var best *corev1.Pod
	rank := func(p *corev1.Pod) int { return slices.Index(c.Components, p.Labels[v1alpha1.LabelComponent]) }
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
		return nil, fmt.Errorf("no pod of the filesystem that has this tool runs%s (components %s)", where, strings.Join(c.Components, ", "))
	}
	return best, nil
}
