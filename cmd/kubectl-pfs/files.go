package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/results"
)

// publishedPrefix begins the name of a published table where a run or a file could also be named.
const publishedPrefix = "published/"

// isFile is true for an argument that can't be the name of a run or suite, because it contains a dot or a slash, or is "-".
func isFile(name string) bool { return name == "-" || strings.ContainsAny(name, "./") }

// read reads a file, or standard input for "-".
func (a *app) read(path string) ([]byte, error) {
	if path == "-" {
		data, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(path)
}

// file reads a saved document.
func (a *app) file(path string) (document, error) {
	data, err := a.read(path)
	if err != nil {
		return document{}, err
	}
	if results.IsSuite(data) {
		suite, err := results.DecodeSuite(data)
		if err != nil {
			return document{}, fmt.Errorf("%s: %w", path, err)
		}
		return document{name: suite.Name, suite: &suite}, nil
	}
	run, err := results.Decode(data)
	if err != nil {
		return document{}, fmt.Errorf("%s: %w; an output of a tool is made a document by kubectl pfs bench parse", path, err)
	}
	return document{name: run.Name, run: &run}, nil
}

// load reads a document from a file, the cluster, or a published table.
func (a *app) load(ctx context.Context, name string, suite bool) (document, error) {
	if table, is := strings.CutPrefix(name, publishedPrefix); is {
		table, variant, _ := strings.Cut(table, "/")
		run, err := reference.Baseline(table, variant)
		if err != nil {
			return document{}, err
		}
		return document{name: name, run: &run}, nil
	}
	if isFile(name) {
		return a.file(name)
	}
	c, err := a.connect(a.cluster)
	if err != nil {
		return document{}, err
	}
	return c.named(ctx, name, suite)
}

// say prints the notes of a document on stderr.
func (d document) say(cmd *cobra.Command) {
	for _, note := range d.notes {
		cmd.PrintErrln("Note: " + note + ".")
	}
}

// write writes the output to a file, or to standard output when no file is named.
func write(cmd *cobra.Command, path string, output func(io.Writer) error) error {
	if path == "" {
		return output(cmd.OutOrStdout())
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := output(file); err != nil {
		_ = file.Close() // the first error is the one to report
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	cmd.PrintErrln("Wrote " + path + ".")
	return nil
}
