package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// lookAgain is the interval between checks for a complete copy.
	lookAgain = 200 * time.Millisecond
	// grace is the time for a program to end after SIGTERM, and askLimit the limit of a query.
	grace    = 20 * time.Second
	askLimit = 30 * time.Second
)

// copy makes a backup that is not verified yet. It gets its name only when all of it is on the disk.
func (p place) copy(ctx context.Context, path string) error {
	making := filepath.Join(p.home, makingPrefix+p.Config.Name)
	to := filepath.Join(making, "copy")
	m := spec.BackupManifest{
		Format: spec.BackupFormat, Owner: p.Config.Owner, Backend: p.Config.Backend, SoftwareVersion: p.Config.Version, Name: p.Config.Name,
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"clear " + making, func() error { return os.RemoveAll(making) }},
		{"make " + making, func() error { return os.MkdirAll(to, 0o700) }},
		{"ask", func() error { return p.ask(ctx, &m) }},
		{"collect", func() error { return p.collect(ctx, to, making) }},
		{"add the record", func() error { return p.addRecord(filepath.Join(making, spec.BackupRecordFile)) }},
		{"sum up", func() (err error) { m.Files, err = sumUp(making); return err }},
		{"write the manifest", func() error { return writeManifest(making, m) }},
		{"sync " + making, func() error { return syncPath(making) }},
		{"name " + path, func() error { return os.Rename(making, path) }},
		{"sync " + p.home, func() error { return syncPath(p.home) }},
	} {
		if err := p.step(s.name, s.do); err != nil {
			return fmt.Errorf("can't copy the metadata: %w", err)
		}
	}
	return nil
}

// ask records the current version of the running filesystem: a copy that starts now must be at least as new.
func (p place) ask(ctx context.Context, m *spec.BackupManifest) error {
	m.Copied = p.Now().UTC().Format(time.RFC3339)
	if p.Store != nil {
		return nil // the store includes the version
	}
	argv := p.Method.Ask()
	output := &limited{most: 1 << 20}
	child, err := process.Start(argv, process.Options{Stdout: output, Stderr: p.Output})
	if err != nil {
		return err //nolint:wrapcheck // it names the program
	}
	failed := wait(ctx, child, askLimit)
	version, err := p.Method.Answer(output.content)
	switch {
	case failed != nil && err != nil:
		return fmt.Errorf("%s: %w: %w", argv[0], failed, err) // the program's output may contain the reason
	case failed != nil:
		return fmt.Errorf("%s: %w", argv[0], failed)
	}
	m.AtLeast, m.ID = version.Version, version.ID
	return err //nolint:wrapcheck // the backend says whose answer it is
}

// collect runs the copying program until the copy is complete, and renames the files to their names in a backup.
func (p place) collect(ctx context.Context, to, making string) error {
	if p.Store != nil {
		return errors.Join(p.fetch(ctx, making), os.RemoveAll(to))
	}
	program := p.Method.Copy(to, p.Work)
	child, tail, err := p.start(program, to)
	if err != nil {
		return err
	}
	defer child.Kill()
	limit := time.NewTimer(time.Duration(p.Config.CopySeconds) * time.Second)
	defer limit.Stop()
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for complete := false; !complete; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it was stopped: %w", ctx.Err())
		case <-limit.C:
			return fmt.Errorf("%s did not get all within %d s: %s", program.Argv[0], p.Config.CopySeconds, tail.Lines(3))
		case <-child.Done():
			return fmt.Errorf("%s ended with exit code %d before all was copied: %s", program.Argv[0], child.Code(), tail.Lines(3))
		case <-again.C:
		}
		found, err := look(to)
		if err != nil {
			return err
		}
		complete = p.Method.Copied(found) != nil
	}
	child.Stop(grace) // it writes what it has received since then
	found, err := look(to)
	if err != nil {
		return err
	}
	kept := p.Method.Copied(found)
	if kept == nil {
		return fmt.Errorf("%s has removed again what it had copied", program.Argv[0])
	}
	for _, name := range backend.SortedKeys(kept) {
		if err := os.Rename(filepath.Join(to, name), filepath.Join(making, kept[name])); err != nil {
			return err //nolint:wrapcheck // it names both files
		}
	}
	return errors.Join(Shorten(making, p.Method.Changes), os.RemoveAll(to))
}

// start starts a program in a directory, with its files. Its output is shown, and the end of it is kept.
func (p place) start(program backend.BackupProgram, directory string) (*process.Child, *process.Tail, error) {
	for _, path := range backend.SortedKeys(program.Files) {
		if err := os.WriteFile(path, []byte(program.Files[path]), 0o600); err != nil {
			return nil, nil, err
		}
	}
	tail := &process.Tail{}
	shown := io.MultiWriter(tail, p.Output)
	child, err := process.Start(program.Argv, process.Options{Directory: directory, Stdout: shown, Stderr: shown})
	return child, tail, err //nolint:wrapcheck // it names the program
}

// wait waits until a child ends by itself.
func wait(ctx context.Context, child *process.Child, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-child.Done():
		return child.Err() //nolint:wrapcheck // the caller names the program
	case <-ctx.Done():
		child.Kill()
		return fmt.Errorf("it was stopped: %w", ctx.Err())
	case <-timer.C:
		child.Kill()
		return fmt.Errorf("it did not end within %s", limit)
	}
}

// look returns the plain files in a directory.
func look(directory string) ([]backend.CopiedFile, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	var out []backend.CopiedFile
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		file, err := copied(filepath.Join(directory, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // the program has just renamed it
		}
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

// copied returns the size of a file, its beginning and its end.
func copied(path string) (out backend.CopiedFile, err error) {
	out.Name = filepath.Base(path)
	file, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return out, err
	}
	out.Size = info.Size()
	if out.Head, err = io.ReadAll(io.NewSectionReader(file, 0, backend.BackupHead)); err != nil {
		return out, err
	}
	out.End, err = io.ReadAll(io.NewSectionReader(file, max(0, out.Size-backend.BackupHead), backend.BackupHead))
	return out, err
}

// addRecord writes the record of the operator from its pieces.
func (p place) addRecord(path string) (err error) {
	// A mounted ConfigMap also contains directories whose names begin with a dot, which the links lead to.
	pieces, err := filepath.Glob(filepath.Join(p.Config.Record, "[^.]*"))
	if err != nil || len(pieces) == 0 {
		return errors.Join(fmt.Errorf("the operator's record is not in %s", p.Config.Record), err)
	}
	slices.Sort(pieces)
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for _, piece := range pieces {
		content, err := os.ReadFile(piece)
		if err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// limited keeps the beginning of what is written to it.
type limited struct {
	content []byte
	most    int
}

func (l *limited) Write(p []byte) (int, error) {
	l.content = append(l.content, p[:min(len(p), l.most-len(l.content))]...)
	return len(p), nil
}
