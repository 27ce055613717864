// Package cli is the double of beegfs 8, the command-line tool.
package cli

import (
	"context"
	"io"
)

// Run is beegfs: it returns the exit code.
func Run(ctx context.Context, arguments []string, output, errs io.Writer) int { return 1 }
