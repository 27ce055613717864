package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// foundStore reads the store in a backup as its daemon would, and lists what it lacks compared with the operator's record.
func (o Options) foundStore(ctx context.Context, m spec.BackupManifest) (spec.RecoveryFound, error) {
	known, err := exchange.Said(o.Config.Known)
	if err != nil {
		return spec.RecoveryFound{}, err //nolint:wrapcheck // it says what is wrong
	}
	_, read, err := o.stored(ctx, m.Name, known)
	return spec.RecoveryFound{Backup: m.Name, ID: read.ID, Time: m.Copied, Lacks: backend.List(read.Lacks), Has: read.Has}, err
}

// stored returns the files of the store in a verified backup, and what its daemon would read from them.
func (o Options) stored(
	ctx context.Context, name string, known backend.State,
) (files map[string][]byte, read backend.StoreRead, err error) {
	m, of, err := o.verified(ctx, name)
	if err != nil {
		return nil, read, err
	}
	if backend.CompareVersions(m.SoftwareVersion, o.Config.Version) > 0 {
		return nil, read, fmt.Errorf("the backup %s is of version %s, which the version %s of now may not be able to read",
			name, m.SoftwareVersion, o.Config.Version)
	}
	i := slices.IndexFunc(of, func(f sourceFile) bool { return f.as == backup.StoreName })
	if i < 0 {
		return nil, read, fmt.Errorf("the backup %s has no %s", name, backup.StoreName)
	}
	in, err := os.MkdirTemp(o.Config.Scratch, "store-")
	if err != nil {
		return nil, read, fmt.Errorf("can't make a directory for a copy of the store: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(in)) }()
	copied := filepath.Join(in, backup.StoreName)
	if err := of[i].copied(copied); err != nil {
		return nil, read, fmt.Errorf("can't copy the store in the backup %s: %w", name, err)
	}
	packed, err := os.ReadFile(copied)
	if err != nil {
		return nil, read, fmt.Errorf("can't read the store in the backup %s: %w", name, err)
	}
	return store.Understood(ctx, packed, o.Work, o.Store, o.Config.Version, &known) //nolint:wrapcheck // it says what is wrong
}

// putBack writes the files of the store in the plan's backup, and makes the daemon their owner.
func (o Options) putBack(ctx context.Context, data string) error {
	r := o.Config.Restore
	files, read, err := o.stored(ctx, r.Backup, backend.State{})
	switch {
	case err != nil:
		return err
	case read.ID != r.ID:
		return fmt.Errorf("it is the store of the filesystem %s, and the plan says %s: the backup is another one by now; ask for a new plan",
			read.ID, r.ID)
	}
	owned := durable.Ownership{UID: o.Prover.UID, GID: o.Prover.GID, Mode: 0o600}
	home := owned
	home.Mode = 0o750
	for _, name := range backend.SortedKeys(files) {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the store has a file %q, which is no path in its directory", name)
		}
		at := filepath.Join(data, name)
		err := o.step("put back "+name, func() error {
			if err := o.Prover.Writer.Directory(filepath.Dir(at), home); err != nil {
				return err
			}
			return o.Prover.Writer.File(at, files[name], owned)
		})
		if err != nil {
			return fmt.Errorf("can't put back %s of the store: %w", name, err)
		}
	}
	return nil
}
