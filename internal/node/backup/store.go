package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/internal/node/store"
)

// storeName is the file of a backup that holds a store, packed.
const storeName = "store.tar"

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
			err = p.understood(packed)
		}
		if err == nil {
			return os.WriteFile(filepath.Join(making, storeName), packed, 0o600)
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

// understood is nil for a packed store that a server would start with, and that has all that the filesystem had said of itself before.
func (p place) understood(packed []byte) error {
	files, said, err := store.Unpack(bytes.NewReader(packed))
	if err != nil {
		return err //nolint:wrapcheck // it says what it did
	}
	lacks, err := p.Store.ReadStore(p.Told.Version, files, said)
	if err != nil {
		return err //nolint:wrapcheck // the backend says what is wrong
	}
	if lacks != "" {
		return errors.New(lacks)
	}
	return nil
}

// readStore reads a store back from the disk.
func (p place) readStore(path string) error {
	packed, err := os.ReadFile(path)
	if err != nil {
		return unreadable(err)
	}
	if err := p.understood(packed); err != nil {
		return refuse("%s", err)
	}
	return nil
}
