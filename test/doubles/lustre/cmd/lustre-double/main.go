// Command lustre-double is every double of a Lustre program in one: the name by which it is called decides.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"parallelfs.dev/operator/test/doubles/lustre/program"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "mkfs.lustre":
		os.Exit(program.Mkfs(os.Args[1:], os.Stdout, os.Stderr))
	case "tunefs.lustre":
		os.Exit(program.Tunefs(os.Args[1:], os.Stdout, os.Stderr))
	default:
		fmt.Fprintf(os.Stderr, "%s: there is no such double; call it mkfs.lustre or tunefs.lustre\n", name)
		os.Exit(2)
	}
}
