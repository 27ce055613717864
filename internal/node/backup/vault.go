package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/objectstore"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// Vault has the backups of one filesystem in an object store. Objects can't be renamed, and two pods can't be kept apart there: so each
// attempt has a directory of its own below that of its backup, <name>/<attempt>/, and is whole when its manifest is there, which is put
// last. Nobody replaces an object of another attempt.
type Vault struct {
	bucket *objectstore.Bucket
	// home is where the backups lie, below the prefix of the bucket.
	home  string
	owner spec.Owner
}

// Stored is an attempt in a vault that is whole.
type Stored struct {
	spec.BackupManifest
	// directory of its objects.
	directory string
}

// attemptName is the directory of an attempt.
var attemptName = regexp.MustCompile(`^[0-9a-f]{8}$`)

// mostManifest bounds a manifest, in bytes: it names some files.
const mostManifest = 1 << 20

// OpenVault reads the credentials, and asks the store nothing.
func OpenVault(at spec.ObjectStore, home string, owner spec.Owner) (*Vault, error) {
	bucket, err := objectstore.S3{
		Endpoint: at.Endpoint, Bucket: at.Bucket, Prefix: at.Prefix, Region: at.Region, Credentials: at.Credentials,
	}.Open()
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong with the place
	}
	return &Vault{bucket, home, owner}, nil
}

// List returns the backups of the filesystem, newest first: of the attempts to make one, a verified one if there is any. One that can't be
// understood, or lacks objects, counts as one that is not verified.
func (v *Vault) List(ctx context.Context) ([]Stored, error) {
	all, _, err := v.look(ctx)
	return slices.CompactFunc(all, func(a, b Stored) bool { return a.Name == b.Name }), err
}

// Open reads a file of a backup. Close is the caller's.
func (v *Vault) Open(ctx context.Context, b Stored, file string) (io.ReadCloser, error) {
	return v.bucket.Get(ctx, path.Join(b.directory, file)) //nolint:wrapcheck // it names the object and the store
}

// look returns all attempts of the filesystem, newest first and the best of a name first, and all that lies in the directories of attempts,
// of whomever they are.
func (v *Vault) look(ctx context.Context) (all []Stored, objects map[string]int64, err error) {
	found, err := v.bucket.List(ctx, v.home)
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it names the store
	}
	objects = map[string]int64{}
	for _, o := range found {
		if _, _, ok := v.attempt(o.Name); ok {
			objects[o.Name] = o.Size
		}
	}
	for object := range objects {
		name, directory, _ := v.attempt(object)
		if path.Base(object) != spec.BackupManifestFile {
			continue
		}
		m, err := v.manifest(ctx, name, object, objects)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed since
		} else if err != nil {
			return nil, nil, err
		}
		if m.Owner == v.owner {
			all = append(all, Stored{m, directory})
		}
	}
	slices.SortFunc(all, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(b.Name, a.Name), cmp.Compare(worth(b), worth(a)), cmp.Compare(a.directory, b.directory))
	})
	return all, objects, nil
}

// worth puts what is verified before what is not read back yet, and that before what was refused.
func worth(b Stored) int {
	switch {
	case verified(b.BackupManifest):
		return 2
	case b.Refused == "":
		return 1
	default:
		return 0
	}
}

// attempt says to which backup an object belongs, and in the directory of which attempt it lies.
func (v *Vault) attempt(object string) (name, directory string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(object, v.home+"/"), "/")
	const backupAttemptFile = 3
	if len(parts) != backupAttemptFile || !attemptName.MatchString(parts[1]) {
		return "", "", false
	}
	_, err := time.Parse(spec.BackupNameLayout, parts[0])
	return parts[0], path.Dir(object), err == nil
}

// manifest reads what an attempt says of itself, and refuses one that names objects that are not there: whoever wrote it was cut off from
// the cluster, and went on when the backup had been removed.
func (v *Vault) manifest(ctx context.Context, name, object string, objects map[string]int64) (spec.BackupManifest, error) {
	reader, err := v.bucket.Get(ctx, object)
	if err != nil {
		return spec.BackupManifest{}, err //nolint:wrapcheck // it names the object and the store
	}
	content, err := io.ReadAll(io.LimitReader(reader, mostManifest))
	if err := errors.Join(err, reader.Close()); err != nil {
		return spec.BackupManifest{}, fmt.Errorf("can't read %s: %w", v.bucket.URL(object), err)
	}
	m, err := stored.BackupManifest(name, content)
	m = listed(name, m, err, v.owner)
	for _, f := range m.Files {
		if size, there := objects[path.Join(path.Dir(object), f.Name)]; m.Refused == "" && (!there || size != f.Size) {
			m.Refused = fmt.Sprintf("the store has no %s of %d bytes in %s", f.Name, f.Size, v.bucket.URL(path.Dir(object)))
		}
	}
	return m, nil
}

// put puts what is in memory.
func (v *Vault) put(ctx context.Context, object string, content []byte) error {
	return v.bucket.Put(ctx, object, bytes.NewReader(content), int64(len(content))) //nolint:wrapcheck // it names the object and the store
}
