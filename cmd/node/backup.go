package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/spec"
)

func backupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup --spec FILE",
		Short: "Copy the metadata of a running filesystem, read it back, and remove old copies",
		Long: `Copy the metadata of a running filesystem, read it back, and remove old copies.

The filesystem's own programs copy and read, as after a crash; or the probe beside its daemon hands out the files in which that keeps the
metadata, and they are read as the daemon does when it starts. The operator's record of the filesystem lies beside. A backup is verified
when the SHA-256 of each file, read from the disk again, is that of what was written, and the version that the program finds is not older
than the one that the filesystem had before the copy began. What is half done has a name that is never taken for a backup; to try again
does no harm, and goes on.

Only verified backups count for what is kept, and the newest of them is never removed.

It prints what lies at the place as one line of JSON, and leaves that as the container's termination message. The exit code is 0 when the
backup is there and verified.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Backup")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Backup](*path)
		if err != nil {
			return err
		}
		o := backup.Options{Config: config, Work: podspec.RunDirectory, Output: os.Stderr, Now: time.Now, Memory: backup.FreeMemory}
		switch backuper := backends[v1alpha1.FileSystemType(config.Backend)].(type) {
		case backend.ProgramBackuper:
			o.Method = backuper.BackupMethod(config)
		case backend.StoreBackuper:
			o.Store = backuper
		default:
			return fmt.Errorf("this program can't back up a filesystem of type %q; the operator and its node image must be of the same version", config.Backend)
		}
		answer, err := backup.Run(c.Context(), o)
		if answer == nil {
			return err
		}
		return leave(c, answer, err)
	}
	return c
}
