package ldiskfs

import (
	"regexp"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

// Signature is its type in libblkid, which is that of ext4.
const Signature = "ext4"

// Signature is that of ext4. Only the label distinguishes them.
func (Format) Signature() string { return Signature }

// Log is nil: the journal is always on the target's own disk.
func (Format) Log() *format.Log { return nil }

// labels matches the labels of all targets.
var labels = regexp.MustCompile(`^([A-Za-z0-9_-]{1,8}[:=+-](MDT|OST)[0-9a-f]{4}|MGS)$`)

// HasLabel reports whether a label is that of any target, including those that are not the operator's.
func (Format) HasLabel(label string) bool { return labels.MatchString(label) }

// Label returns the label of a target that mkfs.lustre has made.
func (Format) Label(of v1alpha1.LustreTarget) string { return ServiceOf(of).Label(FirstTime) }

// Labels returns the labels that a target has before and after its first mount, and before one that changes its configuration.
func (Format) Labels(of v1alpha1.LustreTarget) []string {
	all := make([]string, 0, 4)
	for _, r := range []Registration{FirstTime, Registered, Writeconf, NoLocalLogs} {
		all = append(all, ServiceOf(of).Label(r))
	}
	return all
}
