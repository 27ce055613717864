// Package bench runs one repetition of one point of a benchmark. It works only inside a mounted filesystem, for a limited time, and leaves
// nothing behind.
package bench

import (
	"fmt"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// Home is the directory that holds the directories of all runs. Only directories of runs are ever removed, and Home itself stays.
const Home = spec.BenchmarkHome

// Place returns an error unless the directories are where a benchmark may write and remove files: Directory below Root, and Root in a
// directory Home below Mount.Path. The error names the misplaced directory.
func Place(b spec.Benchmark) error {
	if err := RootPlace(b); err != nil {
		return err
	}
	if !below(b.Directory, b.Root) {
		return fmt.Errorf("the directory %q of the repetition is not below the run's own %q; nothing is written", b.Directory, b.Root)
	}
	return nil
}

// RootPlace checks Root in the same way.
func RootPlace(b spec.Benchmark) error {
	if !below(b.Root, b.Mount.Path) {
		return fmt.Errorf("the run's directory %q is not below the mount %q; nothing is written or removed", b.Root, b.Mount.Path)
	}
	if parent := filepath.Dir(b.Root); filepath.Base(parent) != Home || parent == b.Mount.Path {
		return fmt.Errorf("the run's directory %q is not in a directory %s of the mount %q; nothing is written or removed", b.Root, Home, b.Mount.Path)
	}
	return nil
}

// below is true if both paths are absolute and clean, and path is strictly below parent.
func below(path, parent string) bool {
	clean := func(p string) bool { return filepath.IsAbs(p) && filepath.Clean(p) == p }
	return clean(path) && clean(parent) && strings.HasPrefix(path, strings.TrimSuffix(parent, "/")+"/")
}
