package all_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/all"
)

// named are the folders and files that may name a filesystem, besides the backends' own.
var named = map[string][]string{
	"what users write, and read": {"api", "charts", "config", "docs", "README.md"},
	"what builds, starts and plays the real ones": {
		"images", "test", "Makefile",
	},
	"published figures, and what is shown of them": {
		"benchmarks/README.md", "benchmarks/experiments", "benchmarks/reference", "benchmarks/report/testdata", "benchmarks/results/testdata",
	},
	"the benchmark that BeeGFS brings": {"benchmarks/storagebench"},
	"the list of all":                  {"internal/backend/all"},
	// Each needs a filesystem that admission lets in, or says in whose words a result, a table or a sentence is.
	"tests with a real one as data": {
		"benchmarks/mdtest/command_test.go", "benchmarks/report/sample_test.go", "benchmarks/results/results_test.go",
		"benchmarks/stats/differences_test.go", "cmd/kubectl-pfs/compare_test.go", "cmd/node/main_test.go",
		"controllers/benchmarkrun/clients_test.go", "controllers/benchmarkrun/complete_test.go", "controllers/benchmarkrun/cluster_test.go",
		"controllers/benchmarkrun/decision/waiting_test.go",
		"controllers/benchmarksuite/children_test.go", "controllers/benchmarksuite/scene_test.go", "controllers/benchmarksuite/suite_test.go",
		"controllers/filesystem/agent_test.go", "controllers/filesystem/beegfs_test.go", "controllers/filesystem/beegfsdisks_test.go",
		"controllers/filesystem/beegfsworld_test.go", "controllers/filesystem/benchmark_test.go", "controllers/filesystem/disks_test.go", "controllers/filesystem/disruptions_test.go", "controllers/filesystem/domains_test.go",
		"controllers/filesystem/example_test.go", "controllers/filesystem/failures_test.go", "controllers/filesystem/lifecycle_test.go", "controllers/filesystem/lostnode_test.go",
		"controllers/filesystem/clients_test.go", "controllers/filesystem/images_test.go",
		"controllers/filesystem/upgrade_test.go", "controllers/filesystem/world_test.go",
		"controllers/filesystem/record_test.go", "controllers/filesystem/recover_test.go", "controllers/filesystem/told_test.go",
		"controllers/storagetarget/watch_test.go", "controllers/filesystem/rebuild_test.go", "internal/node/agent/nodefile_cluster_test.go",
	},
}

func TestNothingOutsideOfABackendsFolderNamesIt(t *testing.T) {
	g := NewWithT(t)
	var names [][]byte
	allowed := map[string]bool{".git": true, "bin": true, "dist": true}
	for kind := range all.Backends(time.Minute) {
		name := strings.ToLower(string(kind))
		names = append(names, []byte(name))
		allowed["internal/backend/"+name] = true
	}
	g.Expect(names).NotTo(BeEmpty())
	unused := map[string]bool{}
	for _, paths := range named {
		for _, path := range paths {
			allowed[path], unused[path] = true, true
		}
	}
	root, err := filepath.Abs("../../..")
	g.Expect(err).NotTo(HaveOccurred())
	var found []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if allowed[relative] {
			delete(unused, relative)
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content = bytes.ToLower(append([]byte(relative+"\n"), content...))
		if slices.ContainsFunc(names, func(name []byte) bool { return bytes.Contains(content, name) }) {
			found = append(found, relative)
		}
		return nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeEmpty(), "ask a backend what it can do (internal/backend/capabilities.go), instead of which one it is")
	g.Expect(unused).To(BeEmpty(), "these are not there any more")
}
