// Package bench runs one repetition of one point of a benchmark: inside a mounted filesystem and nowhere else, for a
// limited time, and without leaving anything behind.
package bench

import (
	"fmt"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// Home is the directory that holds the directories of all runs; nothing outside of one is ever removed, and it stays itself.
const Home = spec.BenchmarkHome

// Place says whether the directories lie where a benchmark may write and remove: Directory below Root, Root in a directory
// Home below Mount.Path. The error names what lies wrong.
func Place(b spec.Benchmark) error {
	if err := RootPlace(b); err != nil {
		return err
	}
	if !below(b.Directory, b.Root) {
		return fmt.Errorf("the directory %q of the repetition is not below the run's own %q; nothing is written", b.Directory, b.Root)
	}
	return nil
}

// RootPlace is Place for Root alone.
func RootPlace(b spec.Benchmark) error {
	if !below(b.Root, b.Mount.Path) {
		return fmt.Errorf("the run's directory %q is not below the mount %q; nothing is written or removed", b.Root, b.Mount.Path)
	}
	if parent := filepath.Dir(b.Root); filepath.Base(parent) != Home || parent == b.Mount.Path {
		return fmt.Errorf("the run's directory %q is not in a directory %s of the mount %q; nothing is written or removed", b.Root, Home, b.Mount.Path)
	}
	return nil
}

// below is true when path is absolute, clean and strictly below parent, which must be so too.
func below(path, parent string) bool {
	clean := func(p string) bool { return filepath.IsAbs(p) && filepath.Clean(p) == p }
	return clean(path) && clean(parent) && strings.HasPrefix(path, strings.TrimSuffix(parent, "/")+"/")
}
