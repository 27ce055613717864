package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/command"
	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/drained"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/probe"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/toolcalls"
)

func logger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// specFlag adds the flag --spec.
func specFlag(c *cobra.Command, kind string) *string {
	path := c.Flags().String("spec", "", "`FILE` with the JSON of a spec."+kind)
	if err := c.MarkFlagRequired("spec"); err != nil {
		panic(err) // the flag was defined one line above
	}
	return path
}

// load reads a spec. It refuses a field that this binary does not have, because the field would be ignored.
func load[T any](path string) (T, error) {
	var config T
	content, err := os.ReadFile(path)
	if err != nil {
		return config, fmt.Errorf("can't read the spec: %w; --spec names the file that the operator rendered for this container", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&config)
	if err == nil && decoder.More() {
		err = errors.New("there is more behind the end of the JSON")
	}
	if err != nil {
		return config, fmt.Errorf("can't understand the spec %s; the operator and its node image must be of the same version: %w", path, err)
	}
	return config, nil
}

func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install DIR",
		Short: "Copy this binary to DIR/node",
		Long:  "Copy this binary to DIR/node, with mode 0755, in one step: DIR/node is whole or not there.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			own, err := os.Executable()
			if err != nil {
				return fmt.Errorf("can't find this binary: %w", err)
			}
			content, err := os.ReadFile(own)
			if err != nil {
				return fmt.Errorf("can't read this binary: %w", err)
			}
			// The file belongs to the user who runs this, who need not be root.
			writer := durable.Writer{Chown: func(string, int, int) error { return nil }}
			return writer.File(filepath.Join(args[0], "node"), content, durable.Ownership{Mode: 0o755})
		},
	}
}

func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "guard",
		Short: "Wait until this is stopped",
		Long: `Wait until this is stopped. The pod does nothing else: its PodDisruptionBudget keeps the node from being drained while the
filesystem can't do without it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			<-c.Context().Done()
			return nil
		},
	}
}

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run --spec FILE",
		Short: "Wait for the disks of a daemon, prove them, write its files, pin it and become the daemon",
		Long: `Wait for the disks of a daemon, prove them, write its files, pin it and become the daemon.

What a daemon uses on this node, disks and CPUs, stands in a file for each node, which is waited for, as the disks are. A disk is
proven when a filesystem is mounted at its path itself, its UUID, as the kernel says it, is the recorded one, and the marker on
it (` + spec.TargetMarkerFile + `) says the same. Where not all disks are needed, the missing ones get 30 s from the first that is
proven, and the daemon starts without them then. The log says what is waited for; a stop is obeyed at once.

A directory of the node itself takes the place of a disk where the list says so; nothing needs to be mounted there.

Every directory holds a marker (` + spec.MarkerFile + `) that says whose it is. An empty directory is initialized once, where that is
permitted: directories, files and what a command writes (it gets 2 min) are made, and an initialization that is cut off at any
moment goes on at the next start. A ledger on the node remembers it, so that an empty directory is refused later: its disk is not
mounted, or was replaced. Data without a marker, or of another FileSystem, is never touched. Files that say who a directory is, such
as the numeric id of a target, must say what they are to say, or it is another daemon's, and two targets must not say the same.

In the files, the command and what initializes a directory, $(NAME) is a variable of the node's file or of the container;
$(TARGET) is the data directory of the only target, $(TARGETS) are those of all proven ones, with commas between them, and
$(NODE_INTERFACE) is the interface that has the address $(NODE_IP).

The CPUs must be among those that the container may use. What the kernel makes of them and of the memory policy is read back
before the daemon takes the place of this process, with its process id; "node placement" shows it later.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Run")
	var logs daemon.Rotation
	c.Flags().StringVar(&logs.Pattern, "rotate", "", "`PATTERN` of logs that move on by one before a start after a clean stop, with * for the number")
	c.Flags().IntVar(&logs.Keep, "rotate-keep", 0, "the highest `NUMBER` of such a log")
	c.MarkFlagsRequiredTogether("rotate", "rotate-keep")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Run](*path)
		if err != nil {
			return err
		}
		return daemon.Run(c.Context(), config, logs, daemon.ThisHost(), logger())
	}
	return c
}

func mountCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "mount --spec FILE",
		Short: "Keep a filesystem mounted until this process is told to end",
		Long: `Keep a filesystem mounted until this process is told to end (SIGTERM or SIGINT), and unmount it then.

The mount point is empty, has no permissions and is immutable (lsattr -d shows "i"), so that nothing can be written to
the node's own disk while nothing is mounted; to remove it, first run: chattr -i PATH. A dead mount is detached and mounted
again; one that hangs is left alone, because the filesystem may come back.

A filesystem of the kernel needs no program: it is mounted by a command that ends, and one that is mounted already, as after a
restart of this process, is taken over. Where the kernel does not have it, the missing module is named. Where it says how often servers
have given this client up, that is asked once a minute, and what is new is logged.

The unmount can't keep a node from ending a pod or from restarting: it is asked for politely for 20 s, then what is open to
servers that don't answer is given up, then the mount is taken out of the tree. What waits inside of the kernel is a process of
its own, and is left behind. What is mounted there and is not this filesystem is never unmounted.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Mount")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Mount](*path)
		if err != nil {
			return err
		}
		config.Modules = backends.Modules()
		return mounts.Supervise(c.Context(), config, environment.OfProcess, os.Stdout, os.Stderr, logger())
	}
	return c
}

func callCommand() *cobra.Command {
	return &cobra.Command{
		Use:   mounts.CallVerb + " umount2 PATH FLAGS | statfs PATH",
		Short: "Call the kernel once for a mounted filesystem, and print the error number",
		Long: `Call umount2(2), with FLAGS as a number (1 MNT_FORCE, 2 MNT_DETACH, 8 UMOUNT_NOFOLLOW), or statfs(2), once, and print the error
number: 0 when it worked. "mount" and "configure" run it, because it can wait for a filesystem for ever, and is then left behind.`,
		Args: cobra.RangeArgs(2, 3), Annotations: map[string]string{command.Asked: "true"},
		RunE: func(c *cobra.Command, args []string) error { return mounts.Call(args, c.OutOrStdout()) },
	}
}

func reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   daemon.ReloadVerb + " FILE...",
		Short: "Send SIGHUP to the parent of this process whenever a file changes",
		Long: `Send SIGHUP to the parent of this process whenever one of the files has another content. "run" starts it beside a daemon that reads
its configuration again at that signal, as the daemon's own user, and it ends with the daemon's container.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			looks := time.NewTicker(daemon.LookAgain)
			defer looks.Stop()
			return daemon.Follow(c.Context(), daemon.NewFiles(args...), looks.C, daemon.Hangup, logger())
		},
	}
}

// checkLimit is how long a mounted filesystem may take to respond to check-mount.
const checkLimit = 5 * time.Second

func checkMountCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check-mount --spec FILE",
		Short: "Exit with 0 when the filesystem is mounted and answers within 5 s",
		Long:  "Exit with 0 when the filesystem is mounted and answers within 5 s; else say what is wrong and exit with 1. A readiness probe.",
		Args:  cobra.NoArgs, Annotations: map[string]string{command.Asked: "true"},
	}
	path := specFlag(c, "Mount")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Mount](*path)
		if err != nil {
			return err
		}
		config.Modules = backends.Modules()
		return mounts.Check(c.Context(), config, checkLimit)
	}
	return c
}

func configureCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "configure --spec FILE",
		Short: "Run commands, in a filesystem that is mounted at a private path where they need it",
		Long: `Run commands, in a filesystem that is mounted at a private path where they need it, and unmounted afterwards.

Commands that need no mount get none. The mount may take 60 s, each command too, unless the spec gives it more. The first command
that fails ends the whole, unless the spec lets it fail. All commands can be run again. Where other clients must have no files open,
nothing begins while one has, and a command is asked to end when one opens a file meanwhile. Only programs are named, with their exit
code and the end of what they said: arguments are in no log.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Configure")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Configure](*path)
		if err != nil {
			return err
		}
		if config.Mount != nil {
			config.Mount.Modules = backends.Modules()
		}
		return mounts.Configure(c.Context(), config, environment.OfProcess, os.Stdout, logger())
	}
	return c
}

func manageCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "manage --spec FILE",
		Short: "Make calls of a filesystem's own tools, such as those of its benchmark, and show what they print",
		Long: `Make calls of a filesystem's own tools, such as those of its benchmark, and show what they print.

The calls are made one after the other. One that waits for something is repeated every 2 s while a line of what it prints says so. A call
has failed when it ends with another exit code than 0, or a line of what it prints says so; then only those are made that tidy up. They are
made as well, within 50 s, when the time is over, which is exit code 124, and when the pod is being stopped.

The last line says how many bytes were printed before it and what their checksum is, when all has ended well.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Manage")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Manage](*path)
		if err != nil {
			return err
		}
		calls, err := toolcalls.Check(config)
		if err != nil {
			return err
		}
		out := printed.New(os.Stdout)
		if err := toolcalls.Run(c.Context(), calls, out); err != nil {
			return err
		}
		return out.Close()
	}
	return c
}

func awaitEmptyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "await-empty --spec FILE",
		Short: "Wait until a target that is being drained holds no file any more",
		Long: `Wait until a target that is being drained holds no file any more, and exit with 0 then. It looks every 10 s, and is sure when it
found nothing twice in a row. Empty directories are no data.

The target is proven before every look, as "run" does it: the mountpoint of a disk that is gone is empty too. Nothing is changed.
A line says how many files are left whenever that changes; the last one is also the container's termination message.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "AwaitEmpty")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.AwaitEmpty](*path)
		if err != nil {
			return err
		}
		return drained.Await(c.Context(), config, func(line string) {
			_, _ = fmt.Fprintln(c.OutOrStdout(), line) // there is no other way to report it
			command.LeaveMessage(line)
		})
	}
	return c
}

func probeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "probe --spec FILE",
		Short: "Ask a filesystem for its state and serve the answer over HTTP",
		Long: `Ask a filesystem for its state with its own tools, and serve the answer over HTTP. Where its servers are a part of the kernel, the
node's own tools are asked, and the answer is about that node:

  /state     with ?nonce=TEXT: what the filesystem says when it is asked after that, as JSON that repeats the nonce, signed
             with the key of the filesystem's Secret (header Parallelfs-Signature)
  /readyz    200 while the filesystem answers: the last answer is at most 3 intervals and 10 s old
  /healthz   200 while this process works, whatever the filesystem does
  /metrics   Prometheus metrics, parallelfs_*`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Probe")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Probe](*path)
		if err != nil {
			return err
		}
		probers := backends.Probers()
		prober, ok := probers[config.Backend]
		if !ok {
			return fmt.Errorf("this binary can't ask a filesystem of type %q, only %s; use the node image of the operator's version",
				config.Backend, strings.Join(slices.Sorted(maps.Keys(probers)), ", "))
		}
		if config.Listen, err = environment.ExpandAddress(config.Listen, environment.OfProcess); err != nil {
			return fmt.Errorf("where to listen: %w", err)
		}
		var database *backend.StoreDatabase
		if backuper, can := backends[v1alpha1.FileSystemType(config.Backend)].(backend.StoreBackuper); can {
			database = backuper.StoreDatabase(config.Version)
		}
		p, err := probe.New(config, prober.Questions(config.Version, config.Address), database, logger())
		if err != nil {
			return err
		}
		return p.Run(c.Context())
	}
	return c
}
