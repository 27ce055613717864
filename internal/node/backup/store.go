package backup

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/store"
)

// StoreName is the file of a backup that holds a store, packed.
const StoreName = "store.tar"

// fetchAgain is how long is waited between two questions for a store.
const fetchAgain = 20 * time.Second

// fetch gets the store from the probe beside its daemon. A daemon may write what it has learned much later, so the probe is asked until its
// files have all that the filesystem says of itself.
func (p place) fetch(ctx context.Context, making string) error {
	secret, err := os.ReadFile(p.Told.SecretFile)
	if err != nil {
		return fmt.Errorf("read the filesystem's secret: %w", err)
	}
	limit := time.NewTimer(time.Duration(p.Told.CopySeconds) * time.Second)
	defer limit.Stop()
	for {
		packed, err := store.Fetch(ctx, http.DefaultClient, p.Told.Copied, secret)
		if err == nil {
			_, err = p.understood(ctx, packed)
		}
		if err == nil {
			return os.WriteFile(filepath.Join(making, StoreName), packed, 0o600)
		}
		_, _ = fmt.Fprintf(p.Output, "the store is asked for again in %s: %s\n", p.again(), err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("it was stopped: %w", ctx.Err())
		case <-limit.C:
			return fmt.Errorf("it was tried for %d s: %w", p.Told.CopySeconds, err)
		case <-time.After(p.again()):
		}
	}
}

func (p place) again() time.Duration {
	if p.FetchAgain > 0 {
		return p.FetchAgain
	}
	return fetchAgain
}

// understood is what a server would make of a packed store. It is an error when none would start with it, or when it lacks something that
// the filesystem had said of itself before.
func (p place) understood(ctx context.Context, packed []byte) (backend.StoreRead, error) {
	_, read, err := store.Understood(ctx, packed, p.Work, p.Store, p.Told.Version, nil)
	if err == nil && len(read.Lacks) > 0 {
		err = fmt.Errorf("its server has not written yet what it knows, which some do every few minutes only: %s", backend.List(read.Lacks))
	}
	return read, err //nolint:wrapcheck // it says what is wrong
}

// readStore reads a store back from the disk.
func (p place) readStore(ctx context.Context, path string, m *spec.BackupManifest) error {
	packed, err := os.ReadFile(path)
	if err != nil {
		return unreadable(err)
	}
	read, err := p.understood(ctx, packed)
	_, here := errors.AsType[*os.PathError](err) // where a database is read, and not in it
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("it was stopped: %w", ctx.Err())
	case here:
		return err
	case err != nil:
		return refuse("%s", err)
	}
	m.ID = read.ID
	return nil
}
