// Package daemon starts a daemon of a filesystem. It waits for its disks, proves the directories, writes the files, binds itself to CPUs
// and memory, and becomes the daemon.
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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/internal/node/affinity"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/proof"
	"parallelfs.dev/operator/internal/node/spec"
)

// Host holds a start's access to the operating system.
type Host struct {
	// Environment looks up the variables in files.
	Environment environment.Lookup
	// Writer writes to the disk.
	Writer durable.Writer
	// RootUID and RootGID own the files that the daemon must not change.
	RootUID, RootGID int
	// LookupUser returns the uid and gid of a user.
	LookupUser func(name string) (uid, gid int, err error)
	// Exec replaces this process by the daemon, and returns only on failure.
	Exec func(program string, argv, environment []string) error
	Now  func() time.Time
	// Prove returns nil if a target is mounted and is the right disk. It may block as long as the disk does.
	Prove func(spec.Target, spec.Owner) error
	// ProveLimit is the time to wait for one target's proof before the others continue without it.
	ProveLimit time.Duration
	// Pin binds this thread, which then becomes the daemon.
	Pin func(spec.Pinning) (affinity.Effective, error)
	// Follow starts the process, under the given user, that signals the daemon when files have changed.
	Follow func(files []string, uid, gid int) error
	// CommandLimit is how long the command that initializes a directory may run.
	CommandLimit time.Duration
	// OpenAdapters opens the devices of RDMA adapters, and shows why a daemon could not use them.
	OpenAdapters func() (opened []string, why error)
	// After is time.After; between two rounds of questions is one second.
	After func(time.Duration) <-chan time.Time
}

// ThisHost is the container that this process runs in.
func ThisHost() Host {
	return Host{
		Environment:  environment.OfProcess,
		Writer:       durable.Writer{Chown: os.Chown},
		LookupUser:   lookupUser,
		Exec:         syscall.Exec,
		Now:          time.Now,
		Prove:        proof.Prove,
		ProveLimit:   5 * time.Second,
		Pin:          affinity.Apply,
		Follow:       startFollowing,
		CommandLimit: 2 * time.Minute,
		After:        time.After,
		OpenAdapters: func() ([]string, error) { return openAdapters(rdmaDevices) },
	}
}

func lookupUser(name string) (uid, gid int, err error) {
	if name == "root" {
		return 0, 0, nil // uid 0 exists in every image, even without /etc/passwd
	}
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

// Run replaces this process by the daemon, so that the daemon gets the container's signals itself. It waits for the daemon's targets
// without a limit, and logs what it waits for. It returns only with an error, which is a sentence for a person. In that case nothing was
// started.
func Run(ctx context.Context, config spec.Run, logs Rotation, host Host, log *slog.Logger) error {
	if err := understand(config); err != nil {
		return err
	}
	found, err := adapters(config, host)
	if err != nil {
		return err
	}
	if found != "" {
		log.Info(found)
	}
	uid, gid, err := host.LookupUser(config.User)
	if err != nil {
		return err
	}
	prover := directory.Prover{
		Owner: config.Owner, Component: config.Component, Ledger: config.Ledger, UID: uid, GID: gid,
		RootUID: host.RootUID, RootGID: host.RootGID, Writer: host.Writer, Now: host.Now, CommandLimit: host.CommandLimit,
	}
	node, err := wait(ctx, config, host, log)
	if err != nil {
		return err
	}
	lookup := first(node.config.Variables, host.Environment)
	if err := distinct(node.config.Targets, config.OnTargets, lookup); err != nil {
		return err
	}
	used, err := prove(ctx, config, node.proven, prover, lookup, log)
	if err != nil {
		return err
	}
	lookup = withTargets(lookup, node.config.Targets, used)
	for _, file := range config.Files {
		if err := write(file, used, lookup, gid, host); err != nil {
			return err
		}
		log.Info("wrote the file", "path", file.Path)
	}
	recovering, err := recoveryNeeded(config.Recover, lookup)
	if err != nil {
		return err
	}
	if recovering {
		log.Info("the daemon was not stopped cleanly, so it starts with its recovery",
			"missing", config.Recover.File, "arguments", config.Recover.Arguments)
	} else if logs != (Rotation{}) {
		rotated, err := logs.rotate(config.Recover, lookup)
		if err != nil {
			return err
		}
		if rotated {
			log.Info("moved the logs on by one: the daemon was stopped cleanly, and has saved all that is in them", "logs", logs.Pattern)
		}
	}
	argv, err := Argv(config, recovering, lookup)
	if err != nil {
		return err
	}
	if len(config.Reload) > 0 {
		if err := host.Follow(config.Reload, uid, gid); err != nil {
			return err
		}
	}
	return become(ctx, argv, config, node.config.Pinning, host, log)
}

// become executes the daemon. The pinning is last: it binds this thread, which then becomes the daemon.
func become(ctx context.Context, argv []string, config spec.Run, pinning *spec.Pinning, host Host, log *slog.Logger) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before %s was started", argv[0])
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("the image has no program %q in its PATH: %w", argv[0], err)
	}
	if pinning != nil {
		effective, err := host.Pin(*pinning)
		if err != nil {
			return err
		}
		log.Info("bound the daemon", "cpus", effective.CPUs, "memoryPolicy", effective.MemoryPolicy, "why", pinning.Why)
	}
	log.Info("starting the daemon", "program", program, "arguments", argv[1:])
	if err := host.Exec(program, argv, withName(os.Environ(), Name(config))); err != nil {
		return fmt.Errorf("can't start %s: %w", program, err)
	}
	return nil
}

// Name returns the value of spec.EnvDaemon, by which the agent of the node finds the daemon's processes.
func Name(config spec.Run) string {
	name := config.Daemon
	if name == "" {
		name = config.Component
	}
	return config.Owner.Namespace + "/" + config.Owner.Name + "/" + name
}

func withName(environment []string, name string) []string {
	environment = slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, spec.EnvDaemon+"=") })
	return append(environment, spec.EnvDaemon+"="+name)
}

// apart refuses nested directories, because the content of one would be foreign to the other.
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

// Argv returns the command line of the daemon. recovering inserts the arguments of the recovery after the program's name.
func Argv(config spec.Run, recovering bool, lookup environment.Lookup) ([]string, error) {
	if len(config.Command) == 0 {
		return nil, errors.New("the spec names no command")
	}
	argv := []string{config.Command[0]}
	if recovering {
		argv = append(argv, config.Recover.Arguments...)
	}
	argv, err := environment.ExpandAll(append(argv, config.Command[1:]...), lookup)
	if err != nil {
		return nil, fmt.Errorf("the command %s: %w", config.Command[0], err)
	}
	return argv, nil
}

func recoveryNeeded(r *spec.Recover, lookup environment.Lookup) (bool, error) {
	if r == nil {
		return false, nil
	}
	path, err := environment.Expand(r.File, lookup)
	if err != nil {
		return false, fmt.Errorf("can't see whether the daemon was stopped cleanly: %s: %w", r.File, err)
	}
	_, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("can't see whether the daemon was stopped cleanly: %w", err)
	}
	return false, nil
}

// write never puts a file's content into an error, because it may contain a password.
func write(file spec.File, used []usedTarget, lookup environment.Lookup, gid int, host Host) error {
	content, err := contentOf(file, used, lookup)
	if err != nil {
		return fmt.Errorf("%s: %w", file.Path, err)
	}
	if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
		return fmt.Errorf("can't make the directory of %s: %w", file.Path, err)
	}
	return host.Writer.File(file.Path, []byte(content), durable.Ownership{UID: host.RootUID, GID: gid, Mode: fs.FileMode(file.Mode)})
}

// contentOf returns the content with the line of each target.
func contentOf(file spec.File, used []usedTarget, lookup environment.Lookup) (string, error) {
	content, err := environment.Expand(file.Content, lookup)
	if err != nil || file.Line == "" {
		return content, err
	}
	for _, t := range used {
		template := file.Line
		// Without a RemoveLine, a target to be emptied is used like the others: if it were left out, its data would be lost.
		if t.Remove && file.RemoveLine != "" {
			template = file.RemoveLine
		}
		line, err := environment.Expand(template, only(lookup, t))
		if err != nil {
			return "", err
		}
		if content != "" && !strings.HasSuffix(content, "\n") {
			content += "\n"
		}
		content += strings.TrimSuffix(line, "\n") + "\n"
	}
	return content, nil
}
