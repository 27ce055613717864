// Command beegfs-double is every double of a BeeGFS program in one: the name by which it is called decides.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"parallelfs.dev/operator/test/doubles/beegfs/cli"
	"parallelfs.dev/operator/test/doubles/beegfs/client"
	"parallelfs.dev/operator/test/doubles/beegfs/ctl"
	"parallelfs.dev/operator/test/doubles/beegfs/mgmt"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/server"
)

func main() {
	ctx, arguments := context.Background(), os.Args[1:]
	version, major := program.Version()
	name := filepath.Base(os.Args[0])
	switch {
	case name == "beegfs-mgmtd" && major == 7:
		os.Exit(mgmt.Seven(ctx, arguments, os.Stdout, os.Stderr))
	case name == "beegfs-mgmtd":
		os.Exit(mgmt.Eight(ctx, arguments, os.Stdout, os.Stderr))
	case name == "beegfs-meta":
		os.Exit(server.RunMeta(ctx, arguments, os.Stdout, os.Stderr))
	case name == "beegfs-storage":
		os.Exit(server.RunStorage(ctx, arguments, os.Stdout, os.Stderr))
	case name == "beegfs-ctl" && major == 7:
		os.Exit(ctl.Run(ctx, arguments, os.Stdin, os.Stdout, os.Stderr))
	case name == "beegfs" && major >= 8:
		os.Exit(cli.Run(ctx, arguments, os.Stdout, os.Stderr))
	case name == "mount" || len(arguments) > 0 && arguments[0] == client.Serve:
		os.Exit(client.Run(ctx, arguments, os.Stdout, os.Stderr))
	}
	fmt.Fprintf(os.Stderr, "%s: there is no such program in BeeGFS %s\n", name, version)
	os.Exit(127)
}
