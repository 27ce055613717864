// Package lustre is Lustre as pure functions: an MGS, several MDTs on each node, OSTs by pool and node, and clients, all of them mounts of
// the kernel. It is no backend.Backend yet, and nothing registers it; docs/adr/0071 says what is missing.
package lustre

import (
	"fmt"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// The components: values of v1alpha1.LabelComponent, and the first part of the names of members.
const (
	componentMGS = "mgs"
	componentMDT = "mdt"
	componentOST = "ost"
)

// Member is the name of the member of a node that mounts a target.
func Member(t *v1alpha1.StorageTargetSpec) string {
	switch t.Role {
	case v1alpha1.RoleManagement:
		return componentMGS
	case v1alpha1.RoleMetadata:
		return fmt.Sprintf("%s-%d", componentMDT, t.Slot)
	default:
		return componentOST + "-" + t.StoragePool
	}
}

// TargetOf is the target that a number stands for. Numbers in records count from 1, because 0 means that nothing was given there, and
// Lustre's indices count from 0.
func TargetOf(fsName string, role v1alpha1.Role, id int32) cli.Target {
	switch role {
	case v1alpha1.RoleManagement:
		return cli.Target{Kind: cli.MGT}
	case v1alpha1.RoleMetadata:
		return cli.Target{FSName: fsName, Kind: cli.MDT, Index: id - 1}
	default:
		return cli.Target{FSName: fsName, Kind: cli.OST, Index: id - 1}
	}
}
