// Package export writes the results of a benchmark to a directory and uploads them to an S3 object store.
package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/node/durable"
)

// Options holds the source and the destinations of an export.
type Options struct {
	// Files is the directory of the results, a mounted ConfigMap.
	Files string
	// To is the destination directory, empty for none.
	To string
	// S3 is the destination in an object store. It is unused without an Endpoint.
	S3 S3
	// Timeout limits the upload.
	Timeout time.Duration
}

// file is one exported file.
type file struct {
	name    string
	content []byte
}

// Run exports all files. It returns the destinations of the exported files, paths and s3://<bucket>/<key>. If one destination fails, the
// other is still tried, and the error lists what failed.
func Run(ctx context.Context, o Options) ([]string, error) {
	if o.Files == "" {
		return nil, errors.New("--files is missing: name the directory of the results")
	}
	if o.To == "" && o.S3 == (S3{}) {
		return nil, errors.New("there is nowhere to export to: give --to, or --s3-endpoint with --s3-bucket and --s3-credentials, or both")
	}
	if err := check(o.S3); err != nil {
		return nil, err
	}
	files, err := read(o.Files)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var out []string
	var errs []error
	for _, place := range []func() ([]string, error){
		func() ([]string, error) { return write(o.To, files) },
		func() ([]string, error) { return put(ctx, o.S3, files) },
	} {
		exported, err := place()
		out, errs = append(out, exported...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// most bounds the unpacked size of one file.
const most = 256 << 20

// packed is the suffix of files that are unpacked.
const packed = ".gz"

// read returns the unpacked files of a directory, sorted by name. A mounted ConfigMap holds its files as symbolic links, beside directories
// whose names begin with a dot.
func read(directory string) ([]file, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, fmt.Errorf("can't read the results: %w", err)
	}
	var out []file
	seen := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(directory, e.Name())
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("can't read the results: %w", err)
		}
		if !info.Mode().IsRegular() {
			continue
		}
		f, err := open(path, e.Name())
		if err != nil {
			return nil, err
		}
		if first, twice := seen[f.name]; twice {
			return nil, fmt.Errorf("%s and %s would both be exported as %s", first, e.Name(), f.name)
		}
		seen[f.name] = e.Name()
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no file in %s, so there is nothing to export", directory)
	}
	return out, nil
}

// open reads one file.
func open(path, name string) (file, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return file{}, fmt.Errorf("can't read the results: %w", err)
	}
	short, is := strings.CutSuffix(name, packed)
	if !is || short == "" {
		return file{name, content}, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return file{}, fmt.Errorf("can't unpack %s: %w", path, err)
	}
	content, err = io.ReadAll(io.LimitReader(reader, most+1))
	switch {
	case err != nil:
		return file{}, fmt.Errorf("can't unpack %s: %w", path, err)
	case len(content) > most:
		return file{}, fmt.Errorf("can't unpack %s: it holds more than %d MiB", path, most>>20)
	}
	return file{short, content}, nil
}

// write writes the files to a directory, each completely or not at all. They belong to the user of this process, because a volume from
// elsewhere may not allow changes of owners.
func write(directory string, files []file) ([]string, error) {
	if directory == "" {
		return nil, nil
	}
	writer := durable.Writer{Chown: func(string, int, int) error { return nil }}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		if err := writer.Directory(directory, durable.Ownership{Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, f := range files {
		path := filepath.Join(directory, f.name)
		if err := writer.File(path, f.content, durable.Ownership{Mode: 0o644}); err != nil {
			return out, err
		}
		out = append(out, path)
	}
	return out, nil
}
