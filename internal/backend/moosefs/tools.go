package moosefs

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

var _ backend.ToolRunner = Backend{}

// RunTool completes a command line of mfscli with the port of the master. It runs beside the master.
func (Backend) RunTool(fs *v1alpha1.FileSystem, _ string, argv []string) (backend.ToolCall, error) {
	out := backend.ToolCall{Components: []string{componentMaster}, Container: "probe", Argv: argv}
	if argv[0] != "mfscli" || slices.ContainsFunc(argv, func(word string) bool { return strings.HasPrefix(word, "-H") }) {
		return out, nil
	}
	if fs.Status.Management == nil {
		return backend.ToolCall{}, errors.New("the FileSystem has no master yet (status.management)")
	}
	_, port, err := net.SplitHostPort(fs.Status.Management.Address)
	if err != nil {
		return backend.ToolCall{}, fmt.Errorf("read status.management.address: %w", err)
	}
	out.Argv = slices.Concat(argv[:1], []string{"-H", "127.0.0.1", "-P", port}, argv[1:])
	return out, nil
}
