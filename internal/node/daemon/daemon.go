// Package daemon starts a daemon of a filesystem: it proves the directories, writes the files and becomes the daemon.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/spec"
)

// Host is what a start needs from the operating system.
type Host struct {
	// Environment looks up the variables that files may name.
	Environment environment.Lookup
	// Writer writes to the disk.
	Writer durable.Writer
	// RootUID and RootGID own what the daemon must not change.
	RootUID, RootGID int
	// LookupUser returns the uid and gid of a user.
	LookupUser func(name string) (uid, gid int, err error)
	// Exec replaces this process by the daemon, and returns only when that fails.
	Exec func(program string, argv, environment []string) error
	Now  func() time.Time
}

// ThisHost is the container that this process runs in.
func ThisHost() Host {
	return Host{
		Environment: os.LookupEnv,
		Writer:      durable.Writer{Chown: os.Chown},
		LookupUser:  lookupUser,
		Exec:        syscall.Exec,
		Now:         time.Now,
	}
}

func lookupUser(name string) (uid, gid int, err error) {
	found, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("the image has no user %q: %w", name, err)
	}
	if uid, err = strconv.Atoi(found.Uid); err == nil {
		gid, err = strconv.Atoi(found.Gid)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("user %q: %w", name, err)
	}
	return uid, gid, nil
}

// Run starts the daemon in the place of this process, so that it gets the signals of the container itself. It returns
// only with an error, which is a sentence for a person, and then has started nothing.
func Run(ctx context.Context, told spec.Run, host Host, log *slog.Logger) error {
	uid, gid, err := host.LookupUser(told.User)
	if err != nil {
		return err
	}
	prover := directory.Prover{
		Owner: told.Owner, Component: told.Component, Ledger: told.Ledger, UID: uid, GID: gid,
		RootUID: host.RootUID, RootGID: host.RootGID, Writer: host.Writer, Now: host.Now,
	}
	if err := apart(told.Directories); err != nil {
		return err
	}
	for _, d := range told.Directories {
		action, err := prover.Prove(d)
		if err != nil {
			return err
		}
		log.Info("proved the directory", "path", d.Path, "action", action)
	}
	for _, file := range told.Files {
		if err := write(file, gid, host); err != nil {
			return err
		}
		log.Info("wrote the file", "path", file.Path)
	}
	missing, err := recoveryNeeded(told.Recover)
	if err != nil {
		return err
	}
	if missing {
		log.Info("the daemon was not stopped cleanly, so it starts with its recovery", "missing", told.Recover.File, "arguments", told.Recover.Arguments)
	}
	argv, err := Argv(told, missing)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before %s was started", argv[0])
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("the image has no program %q in its PATH: %w", argv[0], err)
	}
	log.Info("starting the daemon", "program", program, "arguments", argv[1:])
	if err := host.Exec(program, argv, os.Environ()); err != nil {
		return fmt.Errorf("can't start %s: %w", program, err)
	}
	return nil
}

// apart refuses directories that lie in each other: what is in one would be foreign to the other.
func apart(directories []spec.Directory) error {
	for i, a := range directories {
		for _, b := range directories[i+1:] {
			if a.Path == b.Path || strings.HasPrefix(a.Path, b.Path+"/") || strings.HasPrefix(b.Path, a.Path+"/") {
				return fmt.Errorf("the directories %s and %s lie in each other; give each its own", a.Path, b.Path)
			}
		}
	}
	return nil
}

// Argv is the command line of the daemon; recovering adds the arguments of the recovery behind the program's name.
func Argv(told spec.Run, recovering bool) ([]string, error) {
	if len(told.Command) == 0 {
		return nil, errors.New("the spec names no command")
	}
	argv := []string{told.Command[0]}
	if recovering {
		argv = append(argv, told.Recover.Arguments...)
	}
	return append(argv, told.Command[1:]...), nil
}

func recoveryNeeded(r *spec.Recover) (bool, error) {
	if r == nil {
		return false, nil
	}
	_, err := os.Stat(r.File)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("can't see whether the daemon was stopped cleanly: %w", err)
	}
	return false, nil
}

// write never puts a file's content into an error: it may hold a password.
func write(file spec.File, gid int, host Host) error {
	content, err := environment.Expand(file.Content, host.Environment)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
		return fmt.Errorf("can't make the directory of %s: %w", file.Path, err)
	}
	return host.Writer.File(file.Path, []byte(content), durable.Ownership{UID: host.RootUID, GID: gid, Mode: fs.FileMode(file.Mode)})
}
