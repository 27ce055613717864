package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/test/doubles/beegfs/disk"
	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// sessionsFile is written when a storage server ends cleanly, and does not exist while it runs (common/storage/StorageTk.h, 7.4.6).
const sessionsFile = "sessions"

// RunStorage runs beegfs-storage and returns its exit code.
func RunStorage(ctx context.Context, arguments []string, output, errors io.Writer) int {
	_, major := program.Version()
	return role{
		kind: "storage", title: "Storage Node", file: "beegfs-storage.conf", port: "Storage", number: 8003, table: option.Storage(major),
		directories: storageDirectories, prepare: prepareStorage,
		lockFailure: func(string) string { return "Invalid storage directory: locking failed" },
	}.run(ctx, arguments, output, errors)
}

func storageDirectories(values option.Values) ([]string, error) {
	var directories []string
	for part := range strings.SplitSeq(values["storeStorageDirectory"], ",") {
		if part = strings.TrimSpace(part); part != "" {
			directories = append(directories, filepath.Clean(part))
		}
	}
	if len(directories) == 0 {
		return nil, &option.Error{Text: "No storage target directories defined"}
	}
	for _, directory := range directories {
		if !filepath.IsAbs(directory) {
			return nil, &option.Error{Text: "Path to storage target directory must be absolute: " + directory}
		}
		if disk.Prepared(directory) {
			continue
		}
		if !values.Bool("storeAllowFirstRunInit", true) {
			return nil, &option.Error{
				Text: "Found uninitialized storage target directory and initialization has been disabled: " + directory,
			}
		}
		return nil, &option.Error{Text: "This double prepares no directories: " + directory}
	}
	return directories, nil
}

// prepareStorage finds the targets, and creates the directories for their chunks.
func prepareStorage(d *daemon) error {
	seen := map[int]string{}
	for _, directory := range d.directories {
		if _, err := disk.Format(directory, 2, 3); err != nil {
			return err
		}
		for _, name := range []string{"chunks", "buddymir"} {
			if err := os.MkdirAll(filepath.Join(directory, name), 0o777); err != nil {
				return &option.Error{Text: "Unable to create directory: " + filepath.Join(directory, name)}
			}
		}
		id, err := disk.Number(directory, disk.TargetFile)
		if err != nil || id == 0 {
			return &option.Error{Text: "No numeric target ID in " + filepath.Join(directory, disk.TargetFile) + ": this double gives out none"}
		}
		if other, twice := seen[id]; twice {
			return &option.Error{Text: fmt.Sprintf("Target ID %d is in two directories: %s and %s", id, other, directory)}
		}
		seen[id] = directory
		pool, err := disk.Number(directory, disk.PoolFile)
		if err != nil {
			return &option.Error{Text: "Unable to read " + filepath.Join(directory, disk.PoolFile) + ": " + err.Error()}
		}
		token, err := targetToken(d, directory)
		if err != nil {
			return err
		}
		d.targets = append(d.targets, wire.Target{ID: id, Node: d.node.ID, Pool: pool, Token: token})
		d.space[id] = directory
	}
	d.log.Say(2, "App", "Storage targets: %d", len(d.targets))
	return nil
}

// targetToken returns the proof that a directory is the one that registered: its text id, which the server creates at its first start.
// 8.3.1 registers storage targets with that as well (preregisterTargets in storage/app/App.cpp).
func targetToken(d *daemon, directory string) (string, error) {
	path := filepath.Join(directory, "targetID")
	if content, err := os.ReadFile(path); err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	token := fmt.Sprintf("%s-%d", rand.Text()[:10], d.node.ID)
	return token, os.WriteFile(path, []byte(token+"\n"), 0o600)
}

// sessions restores what a clean stop has saved; after a kill there is nothing.
func (d *daemon) sessions() {
	if d.kind != "storage" {
		return
	}
	restored := 0
	for id, directory := range d.space {
		if os.Remove(filepath.Join(directory, sessionsFile)) == nil {
			restored++
		} else {
			d.resync.unclean = append(d.resync.unclean, id)
		}
	}
	d.log.Say(3, "App", "%d sessions restored.", restored)
}

func (d *daemon) storeSessions() error {
	if d.kind != "storage" {
		return nil
	}
	for _, directory := range d.directories {
		if err := os.WriteFile(filepath.Join(directory, sessionsFile), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}
