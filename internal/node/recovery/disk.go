package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// Disk holds the means to write a store to a disk that only its own server mounts: by programs of the node, before the server mounts it.
type Disk struct {
	Store backend.StoreOnDisk
	// Prove finds the disk of a target. It returns an error if the disk is in use or differs from the record.
	Prove func(ctx context.Context, t spec.Target) (device string, err error)
	// Run runs a program of the node, whose root directory is Root.
	Run  func(ctx context.Context, argv []string) (format.Answer, error)
	Root string
}

// workOn is the path prefix of the directory in a node's memory from which its programs read the files of a store.
const workOn = "/run/parallelfs-recovery-"

// run returns a function that runs each program of the node as a step.
func (o Options) run(ctx context.Context) backend.RunOnNode {
	return func(argv ...string) (output []byte, err error) {
		line := strings.Join(argv, " ")
		err = o.step("run "+line, func() error {
			a, err := o.Disk.Run(ctx, argv)
			if err == nil && a.Code != 0 {
				err = fmt.Errorf("%s ended with exit code %d: %s", line, a.Code, a.Said)
			}
			output = []byte(a.Stdout)
			return err
		})
		return output, err
	}
}

// place writes a file on the node.
func (o Options) place(path string, content []byte) error {
	return o.step("place "+path, func() error { return os.WriteFile(filepath.Join(o.Disk.Root, path), content, 0o600) })
}

// restoreDisk writes the store of a backup to a disk that was formatted for it, and that contains at most the leftovers of an attempt by
// the same plan. The disk is recorded on the node.
func (o Options) restoreDisk(ctx context.Context) error {
	r := o.Config.Restore
	if r.Target == nil || r.Target.Served == nil {
		return errors.New("it is not told which disk the store is to lie on; the operator and its node image must be of the same version")
	}
	files, err := o.storedFor(ctx, r.Backup, r.Has)
	if err != nil {
		return err
	}
	device, err := o.Disk.Prove(ctx, *r.Target)
	if err != nil {
		return fmt.Errorf("the disk of %s can't be used: %w", r.Target.Name, err)
	}
	began, err := o.readDisk()
	if err != nil {
		return err
	}
	if began.Done && began.UUID == r.Target.UUID && began.Plan == r.Plan {
		return nil // its server may have served since then, and written more
	}
	if began.UUID != r.Target.UUID || began.Done {
		strangers, err := o.Disk.Store.StoreStrangers(o.run(ctx), device)
		if err != nil {
			return fmt.Errorf("can't look at what is on the disk of %s: %w", r.Target.Name, err)
		}
		if len(strangers) > 0 {
			return fmt.Errorf("the disk of %s has a store already (%s), and nothing is restored over what is there; take another disk, or clear it after a look at it",
				r.Target.Name, backend.List(strangers))
		}
	}
	if err := o.writeDisk(spec.DiskRecovery{UUID: r.Target.UUID, Plan: r.Plan}); err != nil {
		return err
	}
	if err := o.Disk.Store.PutBackStore(o.run(ctx), o.place, device, workOn+o.Config.Owner.UID, files); err != nil {
		return fmt.Errorf("can't put the store back on the disk of %s: %w", r.Target.Name, err)
	}
	if _, err := o.Disk.Prove(ctx, *r.Target); err != nil {
		return fmt.Errorf("the disk of %s can't be used after the store was written on it: %w", r.Target.Name, err)
	}
	return o.writeDisk(spec.DiskRecovery{UUID: r.Target.UUID, Plan: r.Plan, Done: true})
}

// storedFor returns the files of the store in a backup whose content matches the plan.
func (o Options) storedFor(ctx context.Context, name, has string) (map[string][]byte, error) {
	known, err := exchange.Said(o.Config.Known)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}
	files, read, err := o.stored(ctx, name, known)
	if err == nil && has != "" && read.Has != has {
		err = fmt.Errorf("it has %s, and the plan says %s: the backup is another one by now; ask for a new plan", read.Has, has)
	}
	return files, err
}

// readDisk returns the disk that a plan has begun to write to. It is empty if there is none.
func (o Options) readDisk() (spec.DiskRecovery, error) {
	var began spec.DiskRecovery
	path := o.Config.Restore.Ledger
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return began, nil
	case err != nil:
		return began, fmt.Errorf("can't read what was restored on this node: %w", err)
	}
	if err := stored.Check(content, spec.DiskRecoveryVersion); err != nil {
		return began, fmt.Errorf("%s %w", path, err)
	}
	if err := json.Unmarshal(content, &began); err != nil {
		return began, fmt.Errorf("can't understand %s, which says what was restored on this node: %w", path, err)
	}
	return began, nil
}

func (o Options) writeDisk(is spec.DiskRecovery) error {
	is.Version = spec.DiskRecoveryVersion
	content, err := json.Marshal(is)
	if err != nil {
		return fmt.Errorf("encode what is restored: %w", err)
	}
	return o.Prover.Writer.File(o.Config.Restore.Ledger, append(content, '\n'), durable.Ownership{Mode: 0o600})
}

// compare compares the server's answers on the node with the content of a backup.
func (o Options) compare(ctx context.Context) error {
	if o.Disk == nil {
		return errors.New("a filesystem of this type compares nothing; the operator and its node image must be of the same version")
	}
	files, err := o.storedFor(ctx, o.Config.Compare.Backup, "")
	if err != nil {
		return err
	}
	return o.Disk.Store.CompareStore(o.run(ctx), files) //nolint:wrapcheck // it says what differs
}
