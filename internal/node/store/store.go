// Package store serves and fetches the files of a filesystem's metadata while their daemon runs. The files are consistent, as they were at
// one moment, or they are a copy of the database. The client proves knowledge of a secret, and so does the server by signing the response.
// The response is not encrypted.
package store

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/database"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

const (
	// mostBytes bounds a store; that of a filesystem of 1000 nodes with 24 targets each has some megabytes.
	mostBytes = 256 << 20
	// attempts limits the attempts to read a consistent set of files, and pause is the time between two.
	attempts = 20
	pause    = 500 * time.Millisecond
	// settled is the minimum age of the last change. The kernel's file times advance in steps of up to 10 ms, and two changes within one step
	// have the same time.
	settled = 100 * time.Millisecond
)

// Directory returns the directory of the daemon's files after checking its owner.
func Directory(config spec.Store, owner spec.Owner) (string, error) {
	content, err := os.ReadFile(config.NodeFile)
	if err != nil {
		return "", fmt.Errorf("read the node file: %w", err)
	}
	if err := stored.Check(content, spec.NodeFileVersion); err != nil {
		return "", fmt.Errorf("%s %w", config.NodeFile, err)
	}
	var file spec.NodeFile
	if err := json.Unmarshal(content, &file); err != nil {
		return "", fmt.Errorf("understand %s: %w", config.NodeFile, err)
	}
	i := slices.IndexFunc(file.Members, func(m spec.Member) bool { return m.Name == config.Member && len(m.Targets) > 0 })
	if i < 0 {
		return "", fmt.Errorf("%s names no target of %s", config.NodeFile, config.Member)
	}
	target := file.Members[i].Targets[0]
	home := path.Join(target.Path, config.OnTargets.Directory)
	if target.Directory {
		home = target.Path
	}
	var marker spec.Marker
	if content, err = os.ReadFile(filepath.Join(home, spec.MarkerFile)); err != nil {
		return "", fmt.Errorf("read whose %s is: %w", home, err)
	}
	if err := stored.Check(content, spec.MarkerVersion); err != nil {
		return "", fmt.Errorf("%s in %s %w", spec.MarkerFile, home, err)
	}
	if err := json.Unmarshal(content, &marker); err != nil {
		return "", fmt.Errorf("understand %s in %s: %w", spec.MarkerFile, home, err)
	}
	if marker.Owner != owner || marker.State != spec.MarkerInitialized {
		return "", fmt.Errorf("%s belongs to FileSystem %s/%s with the uid %s, and its state is %s", home, marker.Owner.Namespace, marker.Owner.Name,
			marker.Owner.UID, marker.State)
	}
	return filepath.Join(home, config.OnTargets.Data), nil
}

// Copy returns the store in a directory: a copy of its database, made in the directory work, or its files as returned by Read.
func Copy(ctx context.Context, directory, work string, in *backend.StoreDatabase, skip []string) (map[string][]byte, error) {
	if in == nil {
		return Read(ctx, directory, skip)
	}
	content, err := database.Copy(ctx, filepath.Join(directory, in.File), work, mostBytes)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	return map[string][]byte{in.File: content}, nil
}

// Content returns the content of the files that Copy has returned. A database is read in the directory work.
func Content(ctx context.Context, files map[string][]byte, work string, in *backend.StoreDatabase) (backend.StoreContent, error) {
	if in == nil {
		return backend.StoreContent{Files: files}, nil
	}
	content, there := files[in.File]
	if !there || len(files) > 1 {
		return backend.StoreContent{}, fmt.Errorf("it is no copy of the database %s alone; the files of a database that was in use can't be trusted", in.File)
	}
	answers, err := database.Ask(ctx, content, work, in.Queries)
	return backend.StoreContent{Rows: answers}, err //nolint:wrapcheck // it says what is wrong
}

// Read returns the regular files below a directory as a consistent set, by relative path: none of them was changed, created or removed
// between the first read and the last.
func Read(ctx context.Context, directory string, skip []string) (map[string][]byte, error) {
	return read(ctx, directory, skip, time.Now)
}

// read calls now after the files were read and before it checks them again.
func read(ctx context.Context, directory string, skip []string, now func() time.Time) (map[string][]byte, error) {
	var changed string
	for range attempts {
		before, err := list(directory, skip)
		if err != nil {
			return nil, err
		}
		files, err := readAll(directory, before)
		if changed = fresh(before, now()); err == nil && changed == "" {
			var after map[string]look
			if after, err = list(directory, skip); err != nil {
				return nil, err
			}
			if changed = differ(before, after); changed == "" {
				return files, nil
			}
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was replaced in the meantime
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("it was stopped: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
	return nil, fmt.Errorf("the files change all the time: %s has changed while they were read for the %dth time", changed, attempts)
}

// look holds the properties by which a change or a replacement of a file is detected: at least one of them differs.
type look struct {
	inode            uint64
	size             int64
	changed, written time.Time
}

// list returns the properties of the regular files below a directory.
func list(directory string, skip []string) (map[string]look, error) {
	out := map[string]look{}
	var sum int64
	err := filepath.WalkDir(directory, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() || slices.ContainsFunc(skip, func(pattern string) bool { return matches(pattern, entry.Name()) }) {
			return nil
		}
		var stat unix.Stat_t
		switch err := unix.Lstat(at, &stat); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("look at %s: %w", at, err)
		}
		name, err := filepath.Rel(directory, at)
		if err != nil {
			return err
		}
		if sum += stat.Size; sum > mostBytes {
			return fmt.Errorf("%s holds more than %d MiB, which is no store of metadata", directory, mostBytes>>20)
		}
		out[name] = look{stat.Ino, stat.Size, time.Unix(stat.Ctim.Unix()), time.Unix(stat.Mtim.Unix())}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at the store: %w", err)
	}
	return out, nil
}

// fresh names a file that changed very recently, or is empty.
func fresh(files map[string]look, now time.Time) string {
	for _, name := range backend.SortedKeys(files) {
		if since := now.Sub(files[name].changed); since >= 0 && since < settled {
			return name
		}
	}
	return ""
}

func matches(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return is || err != nil // an invalid pattern is a mistake, and nothing must be served by mistake
}

func readAll(directory string, files map[string]look) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name := range files {
		content, err := os.ReadFile(filepath.Join(directory, name))
		if err != nil {
			return nil, fmt.Errorf("read the store: %w", err)
		}
		out[name] = content
	}
	return out, nil
}

// differ names a file that differs between the two, or is empty.
func differ(before, after map[string]look) string {
	for _, name := range backend.SortedKeys(before) {
		if after[name] != before[name] {
			return name
		}
	}
	for _, name := range backend.SortedKeys(after) {
		if _, was := before[name]; !was {
			return name
		}
	}
	return ""
}

// Understood returns the files of a packed store, and what its daemon would read from them. Lacks refers to the filesystem's answer before
// the files were read, or to known if that is not nil. A database is read in the directory work.
func Understood(
	ctx context.Context, packed []byte, work string, of backend.StoreBackuper, version string, known *backend.State,
) (files map[string][]byte, read backend.StoreRead, err error) {
	files, said, err := Unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, read, err
	}
	content, err := Content(ctx, files, work, of.StoreDatabase(version))
	if err != nil {
		return nil, read, err
	}
	if known != nil {
		said = *known
	}
	read, err = of.ReadStore(version, content, said)
	return files, read, err //nolint:wrapcheck // the error of the backend is complete
}

const (
	// saidName is the filesystem's own answer in a packed store, and filesPrefix the prefix of its file names.
	saidName    = "said.json"
	filesPrefix = "store/"
)

// Pack combines a store and the filesystem's answer before its files were read into one file.
func Pack(files map[string][]byte, said backend.State) ([]byte, error) {
	encoded, err := json.Marshal(said)
	if err != nil {
		return nil, fmt.Errorf("encode what the filesystem says: %w", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, content []byte) {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))})
		}
		if err == nil {
			_, err = w.Write(content)
		}
	}
	add(saidName, encoded)
	for _, name := range backend.SortedKeys(files) {
		add(filesPrefix+name, files[name])
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("pack the store: %w", err)
	}
	return out.Bytes(), nil
}

// Unpack reads the output of Pack.
func Unpack(r io.Reader) (files map[string][]byte, said backend.State, err error) {
	files = map[string][]byte{}
	for in, known := tar.NewReader(r), false; ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			if !known {
				return nil, said, errors.New("it does not hold what the filesystem had said")
			}
			return files, said, nil
		}
		if err != nil {
			return nil, said, fmt.Errorf("unpack the store: %w", err)
		}
		content, err := io.ReadAll(io.LimitReader(in, mostBytes))
		if err != nil {
			return nil, said, fmt.Errorf("unpack %s of the store: %w", header.Name, err)
		}
		if name, is := strings.CutPrefix(header.Name, filesPrefix); is {
			files[name] = content
		} else if header.Name == saidName {
			if err := json.Unmarshal(content, &said); err != nil {
				return nil, said, fmt.Errorf("understand what the filesystem had said: %w", err)
			}
			known = true
		}
	}
}
