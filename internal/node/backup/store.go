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

// StoreName is the file of a backup that contains the packed store.
const StoreName = "store.tar"

// fetchAgain is the time between two requests for a store.
const fetchAgain = 20 * time.Second

// fetch gets the store from the probe in the daemon's pod. A daemon may write its changes much later, so fetch asks again until the files
// contain all that the filesystem reports.
func (p place) fetch(ctx context.Context, making string) error {
	secret, err := os.ReadFile(p.Config.SecretFile)
	if err != nil {
		return fmt.Errorf("read the filesystem's secret: %w", err)
	}
	limit := time.NewTimer(time.Duration(p.Config.CopySeconds) * time.Second)
	defer limit.Stop()
	for {
		packed, err := store.Fetch(ctx, http.DefaultClient, p.Config.Copied, secret)
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
			return fmt.Errorf("it was tried for %d s: %w", p.Config.CopySeconds, err)
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

// understood returns what a server would read from a packed store. It is an error if no server would start with the store, or if the store
// lacks something that the filesystem reported before.
func (p place) understood(ctx context.Context, packed []byte) (backend.StoreRead, error) {
	_, read, err := store.Understood(ctx, packed, p.Work, p.Store, p.Config.Version, nil)
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
	_, here := errors.AsType[*os.PathError](err) // an error around the database, not a fault in it
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
