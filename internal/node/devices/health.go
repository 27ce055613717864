package devices

import (
	"context"
	"fmt"
	"path/filepath"

	"parallelfs.dev/operator/internal/node/health"
)

// generic returns the path of the generic node of a SCSI or SATA disk (sg(4)), or its block node. smartctl(8) opens these disks for
// writing, and udev looks at a block device again when a writer closes it.
func (l Looker) generic(name string) string {
	if nodes := entries(l.class(name, "device", "scsi_generic")); len(nodes) == 1 {
		if path := filepath.Join(l.Dev, nodes[0]); exists(path) {
			return path
		}
	}
	return l.node(name)
}

// Health asks a disk for its report about itself. A disk that another query still waits for is not asked.
func (l Looker) Health(ctx context.Context, name string) (health.Report, error) {
	out, err := l.run(ctx, name, health.Arguments(l.generic(name))...)
	if err != nil {
		return health.Report{}, err
	}
	report, err := health.Parse(out.Stdout)
	if err != nil {
		return report, fmt.Errorf("%s: %w", l.node(name), err)
	}
	return report, nil
}
