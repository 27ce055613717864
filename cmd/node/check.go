package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/check"
	"parallelfs.dev/operator/internal/node/spec"
)

func checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check --spec FILE",
		Short: "Look for damage in a filesystem with its own tools, which change nothing",
		Long: `Look for damage in a filesystem with its own tools, which change nothing.

What the tools print is shown. What it means is printed as one line of JSON, and left as the container's termination message: whether they
have looked at all, and how often they found what. The exit code is 0 when they have looked at all, whatever they found.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Check")
	c.RunE = func(c *cobra.Command, _ []string) error {
		config, err := load[spec.Check](*path)
		if err != nil {
			return err
		}
		checker, ok := backends[v1alpha1.FileSystemType(config.Backend)].(backend.Checker)
		if !ok {
			return fmt.Errorf("this program can't check a filesystem of type %q; the operator and its node image must be of the same version", config.Backend)
		}
		answer, err := check.Run(c.Context(), config, checker.ReadCheck, os.Stderr)
		return leave(c, answer, err)
	}
	return c
}
