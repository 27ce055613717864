package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/internal/node/spec"
)

// clockError is how far the clocks of two nodes may differ.
const clockError = 5 * time.Minute

// readOld reads one verified backup again: the one whose last read is the oldest. That read must be longer ago than config.ReadAgainDays,
// or in the future, because its age is then unknown. Unchanged bytes can be read back as before, so only checksums are compared. The result
// is written to the manifest.
func readOld(ctx context.Context, at keeper, config spec.Backup, now time.Time) error {
	if config.ReadAgainDays == 0 {
		return nil
	}
	found, err := at.list(ctx)
	if err != nil {
		return err
	}
	oldest := now.Add(-time.Duration(config.ReadAgainDays) * 24 * time.Hour)
	var next *spec.BackupManifest
	for i := range found {
		m := &found[i]
		when, err := time.Parse(time.RFC3339, lastRead(*m))
		if err != nil || !verified(*m) || m.Format > spec.BackupFormat || when.After(oldest) && !when.After(now.Add(clockError)) {
			continue
		}
		if next == nil || lastRead(*m) < lastRead(*next) {
			next = m
		}
	}
	if next == nil {
		return nil
	}
	err = at.sums(ctx, *next)
	why, refused := errors.AsType[*refusal](err)
	switch {
	case refused:
		next.Refused = fmt.Sprintf("it was verified at %s and is damaged: %s", next.Verified, why.why)
	case err != nil:
		return fmt.Errorf("can't read the backup %s again: %w", next.Name, err)
	default:
		next.Checked = now.UTC().Format(time.RFC3339)
	}
	return at.say(ctx, *next)
}

// lastRead returns the time of the last read of a backup as RFC 3339 in UTC, which sorts by time.
func lastRead(m spec.BackupManifest) string { return max(m.Verified, m.Checked) }

// damaged is true for a verified backup that differed when it was read again.
func damaged(m spec.BackupManifest) bool { return m.Verified != "" && m.Refused != "" }

func (p place) sums(_ context.Context, m spec.BackupManifest) error {
	return p.step("read "+m.Name+" again", func() error { return compare(filepath.Join(p.home, m.Name), m) })
}

func (p place) say(_ context.Context, m spec.BackupManifest) error {
	return p.step("write what "+m.Name+" is", func() error { return writeManifest(filepath.Join(p.home, m.Name), m) })
}

func (v vaultPlace) sums(ctx context.Context, m spec.BackupManifest) error {
	b, err := v.stored(ctx, m.Name)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := v.step("read "+f.Name+" of "+m.Name+" again", func() error { return v.sum(ctx, b, f) }); err != nil {
			return err
		}
	}
	return nil
}

// sum refuses a file that differs from its entry in the manifest.
func (v vaultPlace) sum(ctx context.Context, b Stored, f spec.BackupFile) (err error) {
	reader, err := v.in.Open(ctx, b, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("it has no file %s any more", f.Name)
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(reader, f.Size+1))
	if err != nil {
		return fmt.Errorf("can't get %s: %w", v.in.bucket.URL(path.Join(b.directory, f.Name)), err)
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); n != f.Size || sum != f.SHA256 {
		return refuse("%s has the SHA-256 %s, and %d bytes with %s were put: it was changed at its place", f.Name, sum, f.Size, f.SHA256)
	}
	return nil
}

func (v vaultPlace) say(ctx context.Context, m spec.BackupManifest) error {
	b, err := v.stored(ctx, m.Name)
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	return v.step("put what "+m.Name+" is", func() error {
		return v.in.put(ctx, path.Join(b.directory, spec.BackupManifestFile), append(content, '\n'))
	})
}

// stored returns the best attempt of the backup with that name.
func (v vaultPlace) stored(ctx context.Context, name string) (Stored, error) {
	all, err := v.in.List(ctx)
	if err != nil {
		return Stored{}, err
	}
	for _, b := range all {
		if b.Name == name {
			return b, nil
		}
	}
	return Stored{}, fmt.Errorf("the backup %s is gone", name)
}
