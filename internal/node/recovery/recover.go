// Package recovery finds the candidates from which the lost metadata of a filesystem can be recovered, and recovers it. The filesystem's
// own program reads the files as after a crash, or a store is read as its daemon does. Claims by other programs are not trusted. The
// sources stay as they are, and metadata is only written to a directory that is proven to be empty.
package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

// Options are the inputs of Run.
type Options struct {
	Config spec.Recovery
	// Method describes how a program makes metadata from copies. It is nil if Store is set, which reads a store that is put back unchanged.
	Method backend.RecoveryMethod
	Store  backend.StoreBackuper
	// Disk writes the store to a disk that only its own server mounts. It is nil for a store in a directory.
	Disk *Disk
	// Work is a directory in memory for the configuration of programs, and Output gets their output.
	Work   string
	Output io.Writer
	// Memory returns the free memory of the node in bytes.
	Memory func() (int64, error)
	// Prover proves the directory to be filled; its owner and component are those of the Restore.
	Prover directory.Prover
	// Prove returns nil if a disk is mounted and is the right one.
	Prove func(spec.Target, spec.Owner) error
	// Before, if set, is called with the name of each step before it. Its error ends the work there, as a kill would.
	Before func(step string) error
}

const (
	// mostFound limits the number of backups in an answer. mostSaid and mostWhy limit the lengths of a general sentence and of one about a
	// backup, in bytes: Kubernetes keeps 4096 bytes of the answer.
	mostFound = 6
	mostSaid  = 400
	mostWhy   = 250
)

// Run inspects the source, or restores from it. The answer contains the findings, or the reason why there are none. Run is idempotent.
func Run(ctx context.Context, o Options) (spec.RecoveryAnswer, error) {
	answer := spec.RecoveryAnswer{Found: []spec.RecoveryFound{}}
	var err error
	switch config := o.Config; {
	case config.Compare != nil:
		err = o.compare(ctx)
		answer.Compared = err == nil
	case config.Restore != nil:
		var made spec.RecoveryFound
		if made, err = o.restore(ctx); err == nil {
			answer.Found, answer.Restored = append(answer.Found, made), true
		}
	case config.Source.Backups != "":
		answer.Found, err = o.backups(ctx)
	default:
		var found spec.RecoveryFound
		if found, err = o.look(ctx); err == nil {
			answer.Found = append(answer.Found, found)
		}
	}
	if err != nil {
		_, answer.Unread = errors.AsType[unread](err)
		answer.Message = err.Error()
		if len(answer.Message) > mostSaid {
			answer.Message = strings.ToValidUTF8(answer.Message[:mostSaid], "")
		}
	}
	return answer, err
}

// unread is the reason why the source could not be read. It does not count against the source.
type unread struct{ error }

func (u unread) Unwrap() error { return u.error }

func unreadf(format string, arguments ...any) error { return unread{fmt.Errorf(format, arguments...)} }

// fullLines is how many of the last lines of a program are searched for a disk that is full.
const fullLines = 20

// isFull reports whether an error is that of a disk without space or inodes. It says nothing about the copy.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// step runs one step, before which a test can kill the run.
func (o Options) step(name string, do func() error) error {
	if o.Before != nil {
		if err := o.Before(name); err != nil {
			return err
		}
	}
	return do()
}

// look runs the filesystem's program on a directory of links to a daemon's files, and returns what it recovers.
func (o Options) look(ctx context.Context) (spec.RecoveryFound, error) {
	files, last, err := o.daemonFiles()
	if err != nil {
		return spec.RecoveryFound{}, err
	}
	in, err := os.MkdirTemp(o.Config.Scratch, "look-")
	if err != nil {
		return spec.RecoveryFound{}, unreadf("can't make a directory to look in: %w", err)
	}
	for path, name := range files {
		if err := os.Symlink(path, filepath.Join(in, name)); err != nil {
			return spec.RecoveryFound{}, unreadf("can't make a link: %w", err)
		}
	}
	made, _, err := o.make(ctx, in)
	if err != nil {
		return spec.RecoveryFound{}, errors.Join(err, os.RemoveAll(in))
	}
	return spec.RecoveryFound{Version: made.Version, ID: made.ID, Time: last.UTC().Format(time.RFC3339)}, os.RemoveAll(in)
}

// make runs the filesystem's program on the files of a directory, and returns the name of the file that it has written.
func (o Options) make(ctx context.Context, in string) (made backend.BackupVersion, name string, err error) {
	if err := backup.Shorten(in, o.Method.Changes); isFull(err) {
		return made, "", unread{err}
	} else if err != nil {
		return made, "", err //nolint:wrapcheck // it says what it could not do
	}
	size, err := sizeOf(in)
	if err != nil {
		return made, "", err
	}
	free, err := o.Memory()
	if err != nil {
		return made, "", unreadf("can't tell how much memory is free: %w", err)
	}
	if need := o.Method.Memory(size); free < need {
		return made, "", unreadf("this node has %d MiB of memory free, and making metadata of %d MiB takes about %d MiB", free>>20, size>>20, need>>20)
	}
	program := o.Method.Check(in, o.Work)
	for _, path := range backend.SortedKeys(program.Files) {
		if err := os.WriteFile(path, []byte(program.Files[path]), 0o600); err != nil {
			return made, "", unreadf("can't write the configuration of %s: %w", program.Argv[0], err)
		}
	}
	tail := &process.Tail{}
	shown := io.MultiWriter(tail, o.Output)
	child, err := process.Start(program.Argv, process.Options{Directory: in, Stdout: shown, Stderr: shown})
	if err != nil {
		return made, "", unread{err} // the error names the program
	}
	defer child.Kill()
	select {
	case <-ctx.Done():
		return made, "", unreadf("it was stopped: %w", ctx.Err())
	case <-child.Done():
	}
	switch code := child.Code(); {
	case code == 128+int(syscall.SIGKILL):
		return made, "", unreadf("%s was killed, as for want of memory: %s", program.Argv[0], tail.Lines(3))
	case code != 0 && strings.Contains(strings.ToLower(tail.Lines(fullLines)), syscall.ENOSPC.Error()):
		return made, "", unreadf("the disk for the work of %s is full: %s", program.Argv[0], tail.Lines(3))
	case code != 0:
		return made, "", fmt.Errorf("%s does not read it (exit code %d): %s", program.Argv[0], code, tail.Lines(3))
	}
	head, _, err := headOf(filepath.Join(in, program.Makes))
	if err != nil {
		return made, "", fmt.Errorf("%s has read it and left no %s: %s", program.Argv[0], program.Makes, tail.Lines(3))
	}
	made, err = o.Method.Made(head)
	return made, program.Makes, err //nolint:wrapcheck // it says what is wrong
}

// restore recovers metadata in its empty directory.
func (o Options) restore(ctx context.Context) (spec.RecoveryFound, error) {
	r := o.Config.Restore
	out := spec.RecoveryFound{Backup: r.Backup, Version: r.Version, ID: r.ID}
	if o.Disk != nil {
		return out, o.restoreDisk(ctx)
	}
	if r.Target != nil {
		if err := o.Prove(*r.Target, o.Config.Owner); err != nil {
			return out, fmt.Errorf("the disk for the metadata can't be used: %w", err)
		}
	}
	err := o.Prover.Restore(spec.Directory{Path: r.Path, Data: r.Data}, r.Plan, func(data string) error {
		if o.Store != nil {
			return o.putBack(ctx, data)
		}
		made, err := o.fill(ctx, data)
		out.Version, out.ID = made.Version, made.ID
		return err
	})
	return out, err
}

// fill copies the sources, runs the program, and removes everything but its result.
func (o Options) fill(ctx context.Context, data string) (backend.BackupVersion, error) {
	r := o.Config.Restore
	files, err := o.sources(ctx)
	if err != nil {
		return backend.BackupVersion{}, err
	}
	for _, f := range files {
		if err := o.step("copy "+f.as, func() error { return f.copied(filepath.Join(data, f.as)) }); err != nil {
			return backend.BackupVersion{}, fmt.Errorf("can't copy what the metadata is made from: %w", err)
		}
	}
	var made backend.BackupVersion
	var name string
	if err := o.step("make the metadata", func() (err error) { made, name, err = o.make(ctx, data); return err }); err != nil {
		return made, err
	}
	switch {
	case made.ID != r.ID:
		return made, fmt.Errorf("it is of the metadata %s, and the plan says %s: the source is another one by now; ask for a new plan", made.ID, r.ID)
	case made.Version < r.Version:
		return made, fmt.Errorf("it has the version %d of the metadata, and the plan says %d: changes are missing; ask for a new plan", made.Version, r.Version)
	}
	entries, err := os.ReadDir(data)
	if err != nil {
		return made, fmt.Errorf("can't look at what was made: %w", err)
	}
	for _, e := range entries {
		if e.Name() == name {
			continue
		}
		// These are copies of the sources.
		if err := o.step("remove "+e.Name(), func() error { return os.RemoveAll(filepath.Join(data, e.Name())) }); err != nil {
			return made, fmt.Errorf("can't remove a copy: %w", err)
		}
	}
	return made, o.step("give away "+name, func() error { return o.give(data, filepath.Join(data, name)) })
}

// give makes the daemon the owner of a file, and syncs it to the disk.
func (o Options) give(directory, path string) error {
	if err := o.Prover.Writer.Chown(path, o.Prover.UID, o.Prover.GID); err != nil {
		return fmt.Errorf("can't give the metadata to its daemon: %w", err)
	}
	for _, p := range []string{path, directory} {
		file, err := os.Open(p)
		if err != nil {
			return fmt.Errorf("can't bring the metadata to the disk: %w", err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return fmt.Errorf("can't bring the metadata to the disk: %w", err)
		}
	}
	return nil
}

// headOf returns the beginning of a file and its FileInfo.
func headOf(path string) (head []byte, info fs.FileInfo, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	head, err = io.ReadAll(io.LimitReader(file, backend.BackupHead))
	return head, info, err
}

// mostEnd is the number of bytes that are read at the end of a file, which are some lines.
const mostEnd = 64 << 10

// endOf returns the end of a file.
func endOf(path string) (end []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-mostEnd), mostEnd))
}

// sizeOf returns the total size of the files in a directory, or of the files that its links lead to.
func sizeOf(directory string) (int64, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return 0, fmt.Errorf("can't look at what metadata is made from: %w", err)
	}
	var sum int64
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(directory, e.Name()))
		if err != nil {
			return 0, fmt.Errorf("can't look at what metadata is made from: %w", err)
		}
		sum += info.Size()
	}
	return sum, nil
}
