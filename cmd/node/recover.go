package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/daemon"
	"parallelfs.dev/operator/internal/node/directory"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/recovery"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/internal/node/spec"
)

func recoverCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "recover --spec FILE",
		Short: "Look what lost metadata could be made from, or make it again",
		Long: `Look what lost metadata could be made from, or make it again.

The filesystem's own program reads the copy of a daemon, as after a crash; a backup is what its manifest says. A store is read as its
daemon does when it starts, and put back as it was. Metadata is made only in a
directory that is proven to be empty, and only when it is as new as the plan says, which a person has approved. The copies stay as they are.
A store on a disk that only its own server mounts is written there by programs of the node, before it is mounted, and its server can be
asked later whether it has all of it. To try again does no harm, and goes on.

It prints what it has found or made as one line of JSON, and leaves that as the container's termination message.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Recovery")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Recovery](*path)
		if err != nil {
			return err
		}
		o := recovery.Options{Config: config, Work: podspec.RunDirectory, Output: os.Stderr, Memory: backup.FreeMemory}
		switch recoverer := backends[v1alpha1.FileSystemType(config.Backend)].(type) {
		case backend.ProgramRecoverer:
			o.Method = recoverer.RecoveryMethod()
		case backend.ServedRecoverer:
			o.Store, o.Disk = recoverer, recoveryDisk(recoverer)
		case backend.StoreRecoverer:
			o.Store = recoverer
		default:
			return fmt.Errorf("this program can't recover a filesystem of type %q; the operator and its node image must be of the same version", config.Backend)
		}
		if r := config.Restore; r != nil {
			here := daemon.ThisHost()
			uid, gid, err := here.LookupUser(r.User)
			if err != nil {
				return err
			}
			o.Prove = here.Prove
			o.Prover = directory.Prover{
				Owner: config.Owner, Component: r.Component, Ledger: r.Ledger, UID: uid, GID: gid, Writer: here.Writer, Now: time.Now,
			}
		}
		if config.Restore == nil {
			goGently(os.Stderr)
		}
		answer, err := recovery.Run(c.Context(), o)
		return leave(c, answer, err)
	}
	return c
}

// goGently lowers the priority of this program, and of everything that it starts, because a copy is also read while the filesystem serves.
func goGently(says io.Writer) {
	const (
		nice = 10
		// processGroup selects the process group, and lowest is the lowest priority of the class "best effort" (ioprio_set(2)). With the class
		// "idle", it might never end.
		processGroup, lowest = 2, 2<<13 | 7
	)
	_, _, failed := unix.Syscall(unix.SYS_IOPRIO_SET, processGroup, 0, lowest)
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, nice); err != nil || failed != 0 {
		_, _ = fmt.Fprintf(says, "can't give way to other programs: %v, %v\n", err, failed)
	}
}

// recoveryDisk returns the functions that write a store to a disk of this node that only its own server mounts.
func recoveryDisk(store backend.StoreOnDisk) *recovery.Disk {
	node := serve.ThisHost()
	return &recovery.Disk{
		Store: store, Run: host.Run, Root: host.Root,
		Prove: func(ctx context.Context, t spec.Target) (string, error) {
			target, err := serve.Of(t)
			if err != nil {
				return "", err
			}
			return node.Prove(ctx, target)
		},
	}
}
