package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/disk"
	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// The primary of a buddy group copies to the secondary if the secondary is online and needs a resync (storage/components/buddyresyncer and
// storage/storage/StorageTargets.cpp of 7.4.6 and 8.3.1). It copies the files that were changed since the last contact of the two, or since
// the time in an administrator's request. Both times are in a file of the primary.

const (
	lastBuddyComm = ".lastbuddycomm"
	// mirrored is the directory with the chunks of mirrored files.
	mirrored = "buddymir"
)

// safety is sysResyncSafetyThresholdMins.
const safety = 10 * time.Minute

// errNotServed is the answer to a request about a target that the server does not serve.
var errNotServed = errors.New("Unknown storage target") //nolint:staticcheck // the servers' own text

// buddyComm is the content of lastBuddyComm. Override is 0 without an administrator's request.
type buddyComm struct {
	Last     int64 `json:"last"`
	Override int64 `json:"override"`
}

// since returns the time since which changed files are copied.
func (b buddyComm) since() int64 {
	at := b.Last
	if b.Override != 0 {
		at = b.Override
	}
	if limit := int64(safety.Seconds()); at > limit {
		at -= limit
	}
	return at
}

// resyncs guards the files of the targets.
type resyncs struct {
	mutex sync.Mutex
	// unclean holds the targets that were not stopped cleanly, until this was reported. They have no file with sessions.
	unclean []int
	// last holds the statistics of the last resync from each target, until the server restarts.
	last map[int]wire.ResyncStats
}

// The states of a resync (BuddyResyncJobStatistics.h, 7.4.6).
const (
	resyncSuccess = 2
	resyncErrors  = 5
)

func (d *daemon) buddyComm(target int, change func(*buddyComm)) (buddyComm, error) {
	d.resync.mutex.Lock()
	defer d.resync.mutex.Unlock()
	var b buddyComm
	path := filepath.Join(d.space[target], lastBuddyComm)
	if err := disk.Load(path, &b); err != nil {
		return b, err
	}
	if change == nil {
		return b, nil
	}
	change(&b)
	return b, disk.Save(path, b)
}

// answerResync answers requests about resyncs from administrators and other servers.
func (d *daemon) answerResync(op string, body json.RawMessage) (any, error) {
	var asked wire.Resync
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	directory, served := d.space[asked.Target]
	if !served || d.kind != "storage" {
		return nil, errNotServed
	}
	switch op {
	case "resync-stats":
		d.resync.mutex.Lock()
		defer d.resync.mutex.Unlock()
		return d.resync.last[asked.Target], nil
	case "override-buddy-comm":
		_, err := d.buddyComm(asked.Target, func(b *buddyComm) { b.Override = asked.Timestamp })
		return nil, err
	case "set-consistency":
		return nil, wire.Ask(context.Background(), d.management, d.secret, "target-state",
			wire.Change{Type: "storage", ID: asked.Target, State: asked.State}, nil)
	}
	path := filepath.Join(directory, mirrored, filepath.FromSlash(asked.Path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return nil, os.WriteFile(path, asked.Content, 0o600)
}

// checkBuddies starts resyncs of the secondaries of this server's targets.
func (d *daemon) checkBuddies(ctx context.Context) {
	var view wire.View
	if d.kind != "storage" || wire.Ask(ctx, d.management, d.secret, "view", nil, &view) != nil {
		return
	}
	for _, g := range view.Groups {
		own, other := view.Target("storage", g.Primary), view.Target("storage", g.Secondary)
		if _, served := d.space[g.Primary]; g.Type != "storage" || !served || own == nil || other == nil || own.Consistency != wire.Good ||
			other.Reachability != wire.Online {
			continue
		}
		if other.Consistency == wire.Good {
			_, _ = d.buddyComm(g.Primary, func(b *buddyComm) { b.Last = time.Now().Unix() })
			continue
		}
		if other.Consistency != wire.NeedsResync {
			continue
		}
		state, stats := wire.Good, wire.ResyncStats{State: resyncSuccess, Start: time.Now().Unix()}
		if err := d.copyAll(ctx, g.Primary, g.Secondary, view.Node("storage", other.Node)); err != nil {
			d.log.Say(1, "BuddyResyncJob", "Resync of target %d failed: %s", g.Secondary, err)
			state, stats.State, stats.Errored = wire.Bad, resyncErrors, 1
		} else {
			_, _ = d.buddyComm(g.Primary, func(b *buddyComm) { b.Override = 0 })
		}
		stats.End = time.Now().Unix()
		d.resync.keep(g.Primary, stats)
		_ = wire.Ask(ctx, d.management, d.secret, "target-state", wire.Change{Type: "storage", ID: g.Secondary, State: state}, nil)
	}
}

// keep replaces the statistics of the last resync from a target.
func (r *resyncs) keep(target int, stats wire.ResyncStats) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.last == nil {
		r.last = map[int]wire.ResyncStats{}
	}
	r.last[target] = stats
}

// copyAll copies the files of a resync.
func (d *daemon) copyAll(ctx context.Context, from, to int, node *wire.NodeView) error {
	b, err := d.buddyComm(from, nil)
	if err != nil || node == nil {
		return errors.Join(err, ctx.Err())
	}
	root := filepath.Join(d.space[from], mirrored)
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		about, err := entry.Info()
		if err != nil || about.ModTime().Unix() < b.since() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return tree.Ask(ctx, d.secret, node, "resync-file", wire.Resync{Target: to, Path: filepath.ToSlash(name), Content: content}, nil)
	})
}

// isResync reports whether answerResync handles an operation.
func isResync(op string) bool {
	return slices.Contains([]string{"override-buddy-comm", "set-consistency", "resync-file", "resync-stats"}, op)
}
