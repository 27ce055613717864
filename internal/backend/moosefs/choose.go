package moosefs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// chosenMetaloggers is how many nodes keep a copy of the metadata if the spec selects none.
const chosenMetaloggers = 2

// runnable matches the versions that this package supports, as the API server accepts them.
var runnable = regexp.MustCompile(`^(3[.]0[.]1(1[7-9]|[2-9][0-9])|4[.]5[7-9][.][0-9]{1,3})$`)

// Choose chooses the ports, the version and the nodes of the metaloggers.
func (Backend) Choose(in backend.Input, asked *v1alpha1.FileSystemSpec, chosen *v1alpha1.ChosenStatus) error {
	in = in.Indexed()
	if asked.Nodes != nil && (asked.MooseFS == nil || asked.MooseFS.Metaloggers == nil || len(asked.MooseFS.Metaloggers.NodeSelector) == 0) {
		chosen.Metaloggers = chooseMetaloggers(in)
	}
	var err error
	if asked.MooseFS == nil || asked.MooseFS.BasePort == 0 {
		if chosen.BasePort, err = choosePort(in); err != nil {
			return err
		}
	}
	if asked.Version != "" {
		return nil
	}
	chosen.Version, err = backend.ChooseVersion(in, "moosefs-", runnable)
	return err //nolint:wrapcheck // it is a sentence for a person
}

// chosenPort returns the chosen first port, 0 if the spec sets it.
func chosenPort(fs *v1alpha1.FileSystem) int32 {
	if fs.Status.Chosen == nil {
		return 0
	}
	return fs.Status.Chosen.BasePort
}

// choosePort returns the first port that was chosen when the filesystem was created, or that is stored on its disks; 0 while an unread disk
// may hold it. A filesystem that was created before ports were chosen has MooseFS's defaults. A new one gets the first range that no other
// filesystem has or requests.
func choosePort(in backend.Input) (int32, error) {
	fs, chosen := in.FileSystem, chosenPort(in.FileSystem)
	disks, err := assign.ReadDisks(in)
	switch {
	case fs.Status.Metadata != nil:
		return cmp.Or(chosen, (*v1alpha1.MooseFSSpec)(nil).Ports()), nil
	case err != nil:
		return chosen, nil //nolint:nilerr // Allocate returns the same error
	case disks.Facts != nil:
		return cmp.Or(disks.Facts.BasePort, (*v1alpha1.MooseFSSpec)(nil).Ports()), nil
	case disks.Waits(fs):
		return 0, nil
	}
	return assign.FreePorts(in, (*v1alpha1.MooseFSSpec)(nil).Ports(), 65504, reservedPorts, "spec.moosefs.basePort")
}

// chooseMetaloggers returns nodes of spec.nodes other than the master's: those that were chosen before, then others by name. None is chosen
// before the master's node is recorded.
func chooseMetaloggers(in backend.Input) []string {
	fs := in.FileSystem
	if fs.Status.Metadata == nil {
		return nil
	}
	var before, others []string
	for _, n := range backend.NodesOf(fs, in.Nodes, nil) {
		switch {
		case n.Name == fs.Status.Metadata.Node || in.GaveUp(n.Name):
		case fs.Status.Chosen != nil && slices.Contains(fs.Status.Chosen.Metaloggers, n.Name):
			before = append(before, n.Name)
		default:
			others = append(others, n.Name)
		}
	}
	slices.SortFunc(others, strings.Compare)
	out := slices.Concat(before, others)
	out = out[:min(len(out), chosenMetaloggers)]
	slices.Sort(out)
	return out
}

// metaloggerNodes returns the nodes with a metalogger: those that its selector matches, or those that were chosen.
func metaloggerNodes(fs *v1alpha1.FileSystem, nodes []backend.Node) []backend.Node {
	asked := own(fs).Metaloggers
	switch {
	case asked == nil:
		return nil
	case len(asked.NodeSelector) > 0:
		return backend.Matching(nodes, asked.NodeSelector)
	case fs.Status.Chosen == nil:
		return nil
	}
	var out []backend.Node
	for _, n := range nodes {
		if slices.Contains(fs.Status.Chosen.Metaloggers, n.Name) {
			out = append(out, n)
		}
	}
	return out
}

// runsMetaloggers reports whether there is a DaemonSet of metaloggers, even while its selector matches no node.
func runsMetaloggers(fs *v1alpha1.FileSystem) bool {
	asked := own(fs).Metaloggers
	return asked != nil && (len(asked.NodeSelector) > 0 || fs.Status.Chosen != nil && len(fs.Status.Chosen.Metaloggers) > 0)
}
