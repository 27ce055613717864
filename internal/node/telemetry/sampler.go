// Package telemetry samples once a second the kernel's counters of the daemons and of the disks of a node's StorageTargets. It keeps them
// in memory for two hours and serves them over HTTP. It writes nothing anywhere.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/procfs"
)

const (
	// lookEvery is the interval at which the device of each target and the processes of each daemon are determined again.
	lookEvery = 10 * time.Second
	// mostDaemons bounds the daemons of a sample, and mostTargets the disks. A NodeInventory has the same bounds.
	mostDaemons, mostTargets = 256, 1024
)

// Target is a mounted StorageTarget of the node.
type Target struct {
	// Name is "<namespace>/<filesystem>/<StorageTarget>".
	Name string
	// Path is its mountpoint.
	Path string
}

// Host provides the sources of the samples.
type Host struct {
	// Proc is the node's /proc.
	Proc string
	// Targets returns the mounted targets.
	Targets func(ctx context.Context) ([]Target, error)
	// Daemons returns the process ids of each daemon by "<namespace>/<filesystem>/<daemon>" (affinity.Node.Processes).
	Daemons func() (map[string][]int, error)
	// Report is called with an error once each time the error changes, and with nil when there is no error.
	Report func(error)
}

// Sampler takes the samples of one node and keeps them.
type Sampler struct {
	host     Host
	interval time.Duration
	kept     ring

	// devices holds the devices of the targets, and processes the processes of the daemons with their start times. Both are from the last
	// scan.
	devices   map[string]number
	processes map[string]map[int]uint64
	looked    time.Time
	reported  string
}

// New makes a sampler that takes one sample in each interval.
func New(host Host, interval time.Duration) *Sampler {
	return &Sampler{host: host, interval: interval, kept: ring{most: mostBytes}}
}

// Run takes samples until ctx ends.
func (s *Sampler) Run(ctx context.Context) {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		s.report(s.take(ctx, time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// report passes an error on if it differs from the last one.
func (s *Sampler) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.reported && s.host.Report != nil {
		s.host.Report(err)
	}
	s.reported = text
}

// take takes one sample of everything that can be read, even if some sources fail.
func (s *Sampler) take(ctx context.Context, now time.Time) error {
	var failed error
	if now.Sub(s.looked) >= lookEvery || now.Before(s.looked) {
		failed = s.look(ctx)
		s.looked = now
	}
	disks, err := s.disks()
	sample := telemetry.Sample{Time: now, Disks: disks, Daemons: s.daemons()}
	if len(sample.Disks)+len(sample.Daemons) > 0 {
		s.kept.add(sample)
	}
	return errors.Join(failed, err)
}

// look determines the device of each target and the processes of each daemon.
func (s *Sampler) look(ctx context.Context) error {
	targets, err := s.host.Targets(ctx)
	if err != nil {
		return fmt.Errorf("read the StorageTargets: %w", err)
	}
	paths := map[string]bool{}
	for _, t := range targets[:min(len(targets), mostTargets)] {
		paths[t.Path] = true
	}
	table, err := procfs.Read(filepath.Join(s.host.Proc, "self", "mountinfo"))
	if err != nil {
		return fmt.Errorf("can't read the mounts of this process: %w", err)
	}
	found, err := behind(table, paths, deviceAt)
	if err != nil {
		return err
	}
	s.devices = map[string]number{}
	for _, t := range targets {
		if device, ok := found[t.Path]; ok {
			s.devices[t.Name] = device
		}
	}
	daemons, err := s.host.Daemons()
	if err != nil {
		return err
	}
	s.processes = map[string]map[int]uint64{}
	for name, pids := range daemons {
		if len(s.processes) == mostDaemons {
			break
		}
		started := map[int]uint64{}
		for _, pid := range pids {
			if p, err := readProcess(s.host.Proc, pid); err == nil { // otherwise it has ended
				started[pid] = p.started
			}
		}
		s.processes[name] = started
	}
	return nil
}

// disks returns the counters of the targets' devices.
func (s *Sampler) disks() (map[string]telemetry.Disk, error) {
	if len(s.devices) == 0 {
		return nil, nil
	}
	content, err := procfs.Read(filepath.Join(s.host.Proc, "diskstats"))
	if err != nil {
		return nil, fmt.Errorf("can't read the counters of the disks: %w", err)
	}
	counted := map[number]telemetry.Disk{}
	if err := diskstats(content, func(n number, d telemetry.Disk) { counted[n] = d }); err != nil {
		return nil, err
	}
	out := make(map[string]telemetry.Disk, len(s.devices))
	for name, device := range s.devices {
		if d, ok := counted[device]; ok {
			out[name] = d
		}
	}
	return out, nil
}

// daemons returns the counters of the running daemons. A daemon with several processes has their total time.
func (s *Sampler) daemons() map[string]telemetry.Daemon {
	out := make(map[string]telemetry.Daemon, len(s.processes))
	for name, known := range s.processes {
		var sum uint64
		first := 0
		for pid, started := range known {
			p, err := readProcess(s.host.Proc, pid)
			if err != nil || p.started != started {
				s.looked = time.Time{} // it has ended; its replacement is searched for with the next sample
				continue
			}
			sum += p.cpu
			if first == 0 || pid < first {
				first = pid
			}
		}
		if first != 0 {
			out[name] = telemetry.Daemon{CPUSeconds: float64(sum) / ticks, PID: first}
		}
	}
	return out
}

// stale is true for a sample that should have been followed by others. If nothing is left to read, no samples are taken.
func (s *Sampler) stale(at time.Time) bool {
	const missed = 10
	return time.Since(at) > missed*s.interval
}
