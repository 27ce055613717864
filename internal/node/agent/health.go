package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/health"
	"parallelfs.dev/operator/internal/node/telemetry"
)

// Health reads what the node's disks report about themselves, one disk after the other, and keeps the last report of each in memory. The
// inventory publishes the state of each disk, and the metrics have the values, which always change.
type Health struct {
	// Interval is the time between two reads of a disk. Read asks one disk by its kernel name.
	Interval time.Duration
	Read     func(ctx context.Context, kernelName string) (health.Report, error)
	// Changed is called when the state or the reasons of a disk have changed.
	Changed func()
	Now     func() time.Time

	mutex sync.Mutex
	// disks are the disks of the last inventory, and fileSystems the FileSystems of their targets by namespace and name. reports are the last
	// ones by disk. before is the published health of disks that this process has not read yet.
	disks       []v1alpha1.BlockDevice
	fileSystems map[string]string
	reports     map[disk]reading
	before      map[disk]*v1alpha1.DiskHealth
}

// disk identifies a disk: a kernel name may be another disk's after a disk was replaced.
type disk struct{ kernelName, serial, wwn string }

func diskOf(d v1alpha1.BlockDevice) disk { return disk{d.KernelName, d.Serial, d.WWN} }

// reading is one report and its time. asked is also set by a read that has failed, and by one that found the disk asleep.
type reading struct {
	report    health.Report
	at, asked time.Time
	failed    string
}

// healthRound is the time between two looks at which disks are due. A new disk is read after it at the latest.
const healthRound = time.Minute

// Start reads until ctx ends (manager.Runnable).
func (h *Health) Start(ctx context.Context) error {
	tick := time.NewTicker(min(healthRound, h.Interval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			h.round(ctx)
		}
	}
}

// round reads the disks that are due. A disk that does not answer, or sleeps, keeps its last report.
func (h *Health) round(ctx context.Context) {
	changed := false
	for _, d := range h.due() {
		got, err := h.Read(ctx, d.kernelName)
		if ctx.Err() != nil {
			return
		}
		h.mutex.Lock()
		r, now := h.reports[d], h.Now()
		r.asked = now
		switch {
		case err != nil:
			if r.failed != err.Error() {
				log.FromContext(ctx).Info("The health of a disk can't be read", "disk", d.kernelName, "serial", d.serial, "reason", err.Error())
			}
			r.failed = err.Error()
		case got.Asleep:
			r.failed = ""
		default:
			changed = changed || got.State != r.report.State || !slices.Equal(got.Reasons, r.report.Reasons)
			r.report, r.at, r.failed = got, now, ""
		}
		h.reports[d] = r
		h.mutex.Unlock()
	}
	if changed {
		h.Changed()
	}
}

// due returns the disks that have no report of the last interval. Only disks of a local bus report anything.
func (h *Health) due() []disk {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var out []disk
	for _, d := range h.disks {
		if Reports(d) && h.Now().Sub(h.reports[diskOf(d)].asked) >= h.Interval {
			out = append(out, diskOf(d))
		}
	}
	return out
}

// Reports is true for disks that smartctl(8) can ask: whole disks on a SATA, SAS or NVMe bus of the node. A LUN of a storage network, a
// virtual disk and a disk behind USB are not asked.
func Reports(d v1alpha1.BlockDevice) bool {
	return d.Type == "disk" && slices.Contains([]string{"sata", "sas", "nvme"}, d.Transport)
}

// Before seeds the health with what the node's agent published before this process began, so that a restart of the agent takes nothing away
// until each disk was read again.
func (h *Health) Before(disks []v1alpha1.BlockDevice) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.before = map[disk]*v1alpha1.DiskHealth{}
	for i := range disks {
		h.before[diskOf(disks[i])] = disks[i].Health
	}
}

// Fill sets the health of the disks of an inventory and forgets the disks that are gone.
func (h *Health) Fill(disks []v1alpha1.BlockDevice, targets []v1alpha1.StorageTarget) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	kept := map[disk]reading{}
	for i := range disks {
		d := diskOf(disks[i])
		disks[i].Health = h.before[d]
		if r, known := h.reports[d]; known {
			kept[d] = r
			if !r.at.IsZero() {
				disks[i].Health = Published(r.report)
			}
		}
	}
	h.disks, h.reports = slices.Clone(disks), kept
	h.fileSystems = map[string]string{}
	for i := range targets {
		h.fileSystems[targets[i].Namespace+"/"+targets[i].Name] = targets[i].Spec.FileSystem.Name
	}
}

// Published returns the part of a report that an inventory has, or nil for a disk that reports nothing.
func Published(r health.Report) *v1alpha1.DiskHealth {
	if r.State == "" {
		return nil
	}
	return &v1alpha1.DiskHealth{State: r.State, Reasons: r.Reasons[:min(len(r.Reasons), mostReasons)]}
}

// mostReasons is the limit of the API (DiskHealth.reasons).
const mostReasons = 8

// Disks returns the reports of the disks that carry a target, for the metrics.
func (h *Health) Disks() []telemetry.DiskHealth {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var out []telemetry.DiskHealth
	for _, d := range h.disks {
		namespace, target, carries := strings.Cut(d.Target, "/")
		if r := h.reports[diskOf(d)]; carries && r.report.State != "" {
			out = append(out, telemetry.DiskHealth{
				Namespace: namespace, FileSystem: h.fileSystems[d.Target], Target: target, At: r.at, Report: r.report,
			})
		}
	}
	return out
}
