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

// Vault holds the backups of one filesystem in an object store. Objects can't be renamed there and two pods can't lock each other out, so
// each attempt has its own directory <name>/<attempt>/. It is complete when its manifest exists, which is written last. An attempt never
// replaces an object of another attempt.
type Vault struct {
	bucket *objectstore.Bucket
	// home is the path of the backups below the prefix of the bucket.
	home  string
	owner spec.Owner
}

// Stored is a complete attempt in a vault.
type Stored struct {
	spec.BackupManifest
	// directory is the path of its objects.
	directory string
}

// attemptName matches the name of an attempt's directory.
var attemptName = regexp.MustCompile(`^[0-9a-f]{8}$`)

// mostManifest bounds the size of a manifest in bytes; it lists only a few files.
const mostManifest = 1 << 20

// OpenVault reads the credentials, and does not contact the store.
func OpenVault(at spec.ObjectStore, home string, owner spec.Owner) (*Vault, error) {
	bucket, err := objectstore.S3{
		Endpoint: at.Endpoint, Bucket: at.Bucket, Prefix: at.Prefix, Region: at.Region, Credentials: at.Credentials,
	}.Open()
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong with the place
	}
	return &Vault{bucket, home, owner}, nil
}

// List returns the backups of the filesystem, newest first, with the best attempt for each. A backup that can't be understood or lacks
// objects counts as not verified.
func (v *Vault) List(ctx context.Context) ([]Stored, error) {
	all, _, err := v.look(ctx)
	return slices.CompactFunc(all, func(a, b Stored) bool { return a.Name == b.Name }), err
}

// Open opens a file of a backup. The caller closes it.
func (v *Vault) Open(ctx context.Context, b Stored, file string) (io.ReadCloser, error) {
	return v.bucket.Get(ctx, path.Join(b.directory, file)) //nolint:wrapcheck // it names the object and the store
}

// look returns all attempts of the filesystem, newest first and the best of each name first. objects holds the sizes of all objects in the
// directories of attempts of all owners.
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
			continue // it was removed in the meantime
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

// worth ranks attempts: verified ones first, then unchecked ones, then refused ones.
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

// attempt returns the backup and the attempt's directory that an object belongs to.
func (v *Vault) attempt(object string) (name, directory string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(object, v.home+"/"), "/")
	const backupAttemptFile = 3
	if len(parts) != backupAttemptFile || !attemptName.MatchString(parts[1]) {
		return "", "", false
	}
	_, err := time.Parse(spec.BackupNameLayout, parts[0])
	return parts[0], path.Dir(object), err == nil
}

// manifest reads the manifest of an attempt, and refuses it if it lists objects that do not exist. Such a manifest comes from a pod that
// was cut off from the cluster and continued after the backup's removal.
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

// put writes bytes to an object.
func (v *Vault) put(ctx context.Context, object string, content []byte) error {
	return v.bucket.Put(ctx, object, bytes.NewReader(content), int64(len(content))) //nolint:wrapcheck // it names the object and the store
}
