package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/plan"
)

// TestOnlyWhatAFailedMkfsCanHaveLeftMayBeCleared changes one thing of what a mkfs has left on a disk and its log device.
func TestOnlyWhatAFailedMkfsCanHaveLeftMayBeCleared(t *testing.T) {
	target := aTarget(withLog)
	left := func() plan.Look {
		l := plan.Look{Device: blankDisk(holding("xfs", uuidOne, plan.Label(target))), Log: blankLog()}
		holding("xfs_external_log", uuidOne, "")(l.Log)
		return l
	}
	for name, c := range map[string]struct {
		change func(l *plan.Look)
		uuid   string
		want   bool
	}{
		"all of it":                             {func(*plan.Look) {}, uuidOne, true},
		"nothing":                               {func(l *plan.Look) { l.Device.Signatures, l.Log.Signatures = nil, nil }, uuidOne, true},
		"only its log":                          {func(l *plan.Look) { l.Device.Signatures = nil }, uuidOne, true},
		"a filesystem with another UUID":        {func(l *plan.Look) { l.Device.Signatures[0].UUID = uuidTwo }, uuidOne, false},
		"another filesystem beside its own":     {func(l *plan.Look) { holding("ext4", uuidTwo, "data")(&l.Device) }, uuidOne, false},
		"signatures that contradict each other": {func(l *plan.Look) { l.Device.Signatures[0].Type = "ambivalent" }, uuidOne, false},
		"a signature of a part of the disk":     {func(l *plan.Look) { l.Device.Signatures[0].Device = "sdb1" }, uuidOne, false},
		"the log of another filesystem":         {func(l *plan.Look) { l.Log.Signatures[0].UUID = uuidTwo }, uuidOne, false},
		"another filesystem on the log device":  {func(l *plan.Look) { holding("ext4", uuidTwo, "data")(l.Log) }, uuidOne, false},
		"a mkfs without a UUID":                 {func(l *plan.Look) { l.Device.Signatures[0].UUID, l.Log.Signatures[0].UUID = "", "" }, "", false},
		"a marker":                              {func(l *plan.Look) { l.Device.Marker = markerOf(target, uuidOne, uidNow) }, uuidOne, false},
		"partitions":                            {func(l *plan.Look) { l.Device.Partitions = []string{"sdb1"} }, uuidOne, false},
		"partitions of the log device":          {func(l *plan.Look) { l.Log.Partitions = []string{"nvme0n1p1p1"} }, uuidOne, false},
		"a holder":                              {func(l *plan.Look) { l.Device.Holders = []string{"dm-0"} }, uuidOne, false},
		"a holder of the log device":            {func(l *plan.Look) { l.Log.Holders = []string{"dm-0"} }, uuidOne, false},
		"somebody who has it open":              {func(l *plan.Look) { l.Device.Busy = "dd has it open" }, uuidOne, false},
		"somebody who has mounted it":           {func(l *plan.Look) { l.Device.Mounts = []string{"/mnt"} }, uuidOne, false},
		"a look that was not finished":          {func(l *plan.Look) { l.Device.Incomplete = "EIO" }, uuidOne, false},
		"its own mount":                         {func(l *plan.Look) { l.Mount.Mounted = true }, uuidOne, false},
		"another disk":                          {func(l *plan.Look) { l.Device.Serial = "S2" }, uuidOne, false},
		"another log device":                    {func(l *plan.Look) { l.Log.Serial = "N2" }, uuidOne, false},
		"a disk that is gone":                   {func(l *plan.Look) { l.Device = plan.Facts{} }, uuidOne, false},
		"a log device that is gone":             {func(l *plan.Look) { l.Log = nil }, uuidOne, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := left()
			c.change(&l)
			NewWithT(t).Expect(plan.LeftByMkfs(target, l, c.uuid)).To(Equal(c.want))
		})
	}
}

func TestADeviceIsInUseByAnyProgramThatUsesIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *plan.Facts)
		want   bool
	}{
		"nobody":                               {func(*plan.Facts) {}, false},
		"a mount":                              {func(f *plan.Facts) { f.Mounts = []string{"/mnt"} }, true},
		"a volume above it, which is not open": {func(f *plan.Facts) { f.Holders = []string{"dm-0"} }, true},
		"a process":                            {func(f *plan.Facts) { f.Busy = "dd has it open" }, true},
		"a signature uses nothing":             {holding("ext4", uuidOne, "data"), false},
	} {
		NewWithT(t).Expect(blankDisk(c.change).InUse()).To(Equal(c.want), name)
	}
}
