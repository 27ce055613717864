package lustre

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

var _ backend.ToolRunner = Backend{}

// RunTool runs a command on the node of a server, because the tools of Lustre belong to the kernel of the node and are in no image.
func (Backend) RunTool(_ *v1alpha1.FileSystem, _ string, argv []string) (backend.ToolCall, error) {
	return backend.ToolCall{
		Components: []string{componentMGS, componentMDT, componentOST}, Container: "probe",
		Argv: slices.Concat([]string{podspec.NodeBinary, spec.OnNode}, argv),
	}, nil
}
