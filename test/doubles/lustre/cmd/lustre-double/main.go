// Command lustre-double is every double of a Lustre program in one: the name by which it is called decides.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
	"parallelfs.dev/operator/test/doubles/lustre/program"
	"parallelfs.dev/operator/test/doubles/lustre/tool"
)

func main() {
	ctx := context.Background()
	// mount(8) removes PATH from the environment of its helpers (util-linux lib/env.c, sanitize_env), and a helper starts the kernel's part.
	if os.Getenv("PATH") == "" {
		if err := os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	call := tool.Call{Name: filepath.Base(os.Args[0]), Arguments: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if call.Name == "lustre-double" && len(os.Args) == 2 && os.Args[1] == tool.KernelName {
		fmt.Fprintln(os.Stderr, kernel.Serve(ctx))
		os.Exit(1)
	}
	switch call.Name {
	case "mkfs.lustre":
		os.Exit(program.Mkfs(os.Args[1:], os.Stdout, os.Stderr))
	case "tunefs.lustre":
		os.Exit(program.Tunefs(os.Args[1:], os.Stdout, os.Stderr))
	case "mount.lustre", "mount.lustre_tgt":
		os.Exit(tool.Mount(ctx, call))
	case "umount.fuse.lustre", "umount.fuse.lustre_tgt":
		os.Exit(tool.Umount(ctx, call))
	case "lctl":
		os.Exit(tool.Lctl(ctx, call))
	case "lfs":
		os.Exit(tool.Lfs(ctx, call))
	case "lfs_migrate":
		os.Exit(tool.Migrate(ctx, call))
	case "mds-survey":
		os.Exit(tool.MDSSurvey(ctx, call))
	case "obdfilter-survey":
		os.Exit(tool.OBDFilterSurvey(ctx, call))
	case "llog_reader":
		os.Exit(tool.LlogReader(call))
	case "lnetctl":
		os.Exit(tool.Lnetctl(ctx, call))
	default:
		fmt.Fprintf(os.Stderr, "%s: there is no such double; call it by the name of a program of Lustre\n", call.Name)
		os.Exit(2)
	}
}
