package backup

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// refusal is the permanent error that a backup can't be read back.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

func refuse(format string, arguments ...any) error {
	return &refusal{fmt.Sprintf(format, arguments...)}
}

// verify reads a backup back and writes the result to its manifest. An obstacle to the read is an error, and does not count against the
// backup.
func (p place) verify(ctx context.Context, path string) error {
	m, err := readManifest(path)
	if err != nil {
		return err
	}
	err = p.step("compare sums", func() error { return compare(path, m) })
	if err == nil {
		err = p.step("read it back", func() error { return p.readBack(ctx, path, &m) })
	}
	if why, refused := errors.AsType[*refusal](err); refused {
		m.Refused, m.Version = why.why, 0
	} else if err != nil {
		return fmt.Errorf("can't read the backup back: %w", err)
	} else {
		m.Verified = p.Now().UTC().Format(time.RFC3339)
	}
	if err := p.step("write the verdict", func() error { return writeManifest(path, m) }); err != nil {
		return fmt.Errorf("can't write what became of the backup: %w", err)
	}
	if m.Refused != "" {
		return fmt.Errorf("the backup can't be used: %s", m.Refused)
	}
	return nil
}

// compare reads all files from the disk, and refuses a backup whose files differ from its manifest.
func compare(path string, m spec.BackupManifest) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	known := map[string]bool{spec.BackupManifestFile: true}
	for _, f := range m.Files {
		known[f.Name] = true
		if !filepath.IsLocal(f.Name) || strings.ContainsRune(f.Name, filepath.Separator) {
			return refuse("its manifest names a file %q, which is no name in its directory", f.Name)
		}
		file := filepath.Join(path, f.Name)
		if err := forget(file); err != nil {
			return unreadable(err)
		}
		now, err := sum(file)
		if err != nil {
			return unreadable(err)
		}
		if now != f {
			return refuse("%s has %d bytes with the SHA-256 %s, and %d bytes with %s were written: it was changed at its place", f.Name, now.Size, now.SHA256, f.Size, f.SHA256)
		}
	}
	for _, e := range entries {
		if !known[e.Name()] && !durable.IsTemporary(e.Name()) {
			return refuse("it has a file %s that its manifest does not name", e.Name())
		}
	}
	return nil
}

// unreadable separates a fault of the backup, such as a missing file or an I/O error of the disk, from other obstacles to the read.
func unreadable(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EUCLEAN) {
		return refuse("a file of it can't be read: %s", err)
	}
	return err
}

// readBack parses the record, and reads the files with the filesystem's own program. The program works in a directory of links, so that the
// files of the backup stay as they are.
func (p place) readBack(ctx context.Context, path string, m *spec.BackupManifest) (err error) {
	if err := readRecord(filepath.Join(path, spec.BackupRecordFile)); err != nil {
		return refuse("the operator's record in it can't be read: %s", err)
	}
	if p.Store != nil {
		return p.readStore(ctx, filepath.Join(path, StoreName), m)
	}
	free, err := p.Memory()
	if err != nil {
		return err
	}
	if need := p.Method.Memory(size(*m)); free < need {
		return fmt.Errorf("this node has %d MiB of memory free, and reading back %d MiB of metadata takes about %d MiB; keep backups on a node with as much "+
			"memory as that of the metadata", free>>20, size(*m)>>20, need>>20)
	}
	in := filepath.Join(p.home, checkingName)
	if err := errors.Join(os.RemoveAll(in), os.Mkdir(in, 0o700)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(in)) }()
	for _, f := range m.Files {
		if f.Name == spec.BackupRecordFile {
			continue
		}
		if err := os.Symlink(filepath.Join("..", filepath.Base(path), f.Name), filepath.Join(in, f.Name)); err != nil {
			return err
		}
	}
	program := p.Method.Check(in, p.Work)
	child, tail, err := p.start(program, in)
	if err != nil {
		return err
	}
	defer child.Kill()
	select {
	case <-ctx.Done():
		return fmt.Errorf("it was stopped: %w", ctx.Err())
	case <-child.Done():
	}
	const killed = 128
	switch code := child.Code(); {
	case code >= killed:
		return fmt.Errorf("%s was killed by signal %d; where that is 9, the node had too little memory", program.Argv[0], code-killed)
	case code != 0:
		return refuse("%s does not read it (exit code %d): %s", program.Argv[0], code, tail.Lines(3))
	}
	file, err := copied(filepath.Join(in, program.Makes))
	if err != nil {
		return refuse("%s has read it and left no %s: %s", program.Argv[0], program.Makes, tail.Lines(3))
	}
	made, err := p.Method.Made(file.Head)
	if err != nil {
		return refuse("%s", err)
	}
	switch {
	case made.Version < m.AtLeast:
		return refuse("it has the version %d of the metadata, and the filesystem had %d already when the copy began: changes are missing", made.Version, m.AtLeast)
	case m.ID != "" && made.ID != m.ID:
		return refuse("it is of the metadata %s, and the filesystem has %s", made.ID, m.ID)
	}
	m.Version, m.ID = made.Version, made.ID
	return nil
}

// mostRecord bounds the bytes that are read after the record, which is followed only by a line break.
const mostRecord = 1 << 10

// readRecord reads the whole record.
func readRecord(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.NewDecoder(unpacked).Decode(&list); err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("it is empty")
	}
	_, err = io.Copy(io.Discard, io.LimitReader(unpacked, mostRecord)) // up to the checksum at its end
	return err
}

// readManifest reads the manifest of a backup.
func readManifest(path string) (spec.BackupManifest, error) {
	var m spec.BackupManifest
	content, err := os.ReadFile(filepath.Join(path, spec.BackupManifestFile))
	if err != nil {
		return m, fmt.Errorf("can't read what the backup says of itself: %w", err)
	}
	return stored.BackupManifest(filepath.Base(path), content)
}

func writeManifest(path string, m spec.BackupManifest) error {
	content, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	// The file belongs to the user of this process, who may not change its owner.
	writer := durable.Writer{Chown: func(string, int, int) error { return nil }}
	return writer.File(filepath.Join(path, spec.BackupManifestFile), append(content, '\n'), durable.Ownership{Mode: 0o600})
}

// sumUp syncs all files of a directory to the disk, and returns their checksums by name.
func sumUp(directory string) ([]spec.BackupFile, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	out := make([]spec.BackupFile, 0, len(entries))
	for _, e := range entries {
		path := filepath.Join(directory, e.Name())
		if err := syncPath(path); err != nil {
			return nil, err
		}
		f, err := sum(path)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// sum returns the checksum of a regular file.
func sum(path string) (f spec.BackupFile, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	n, err := io.Copy(hash, file)
	return spec.BackupFile{Name: filepath.Base(path), Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

// forget drops a file from the page cache if the kernel can (posix_fadvise(2)), so that the next read comes from the disk.
func forget(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_ = unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED) // it is only advice
	return nil
}

// syncPath syncs a file or directory to the disk.
func syncPath(path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return file.Sync()
}
