package beegfs

import (
	"errors"
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
)

var _ backend.ToolRunner = Backend{}

// RunTool completes a command line of beegfs-ctl (7.4) or beegfs (8) as the operator calls it. It runs beside the management service.
func (Backend) RunTool(fs *v1alpha1.FileSystem, management string, argv []string) (backend.ToolCall, error) {
	version := backend.Version(fs)
	tool, other := "beegfs-ctl", "beegfs"
	if cli.Is8(version) {
		tool, other = other, tool
	}
	out := backend.ToolCall{Components: []string{componentManagement}, Container: "probe", Argv: argv}
	switch argv[0] {
	case other:
		return backend.ToolCall{}, fmt.Errorf("BeeGFS %s has the tool %s, and not %s", version, tool, other)
	case tool:
		if fs.Status.Metadata == nil || management == "" {
			return backend.ToolCall{}, errors.New("the FileSystem has no management service yet (status.metadata)")
		}
		in := backend.Input{FileSystem: fs, Nodes: []backend.Node{{Name: fs.Status.Metadata.Node, IP: management}}}
		out.Argv = cli.NewTool(version, grpcAddress(in)).Run(argv[1:]...)
	}
	return out, nil
}
