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

// named lists the folders and files that may name a filesystem, besides those of the backends.
var named = map[string][]string{
	"what users write, and read": {"api", "charts", "config", "docs", "README.md"},
	"what builds, starts and plays the real ones": {
		"images", "test", "Makefile",
	},
	"published figures, and what is shown of them": {
		"benchmarks/README.md", "benchmarks/experiments", "benchmarks/reference", "benchmarks/report/testdata", "benchmarks/results/testdata",
	},
	"the benchmarks that filesystems bring": {"benchmarks/storagebench", "benchmarks/mdssurvey", "benchmarks/obdfiltersurvey", "benchmarks/survey"},
	"what a tool prints":                    {"benchmarks/ior/parse.go", "benchmarks/ior/testdata/3.3.0-error-option.txt", "cmd/kubectl-pfs/parse_test.go"},
	"a filesystem's own tools, for a person": {
		"cmd/kubectl-pfs/exec.go", "cmd/kubectl-pfs/top.go", "cmd/kubectl-pfs/top_test.go",
	},
	"names of images": {
		"cmd/kubectl-pfs/images.go", "cmd/kubectl-pfs/testdata/images.txt", "internal/images/images.go", "internal/images/images_test.go",
	},
	"titles of dashboards":                               {"tools/dashboards/main.go"},
	"a published run as an example":                      {"cmd/kubectl-pfs/compare.go"},
	"a word that the spelling checker takes for another": {".golangci.yml"},
	// One format is for the server of one filesystem only. Its assignment is a type of the API, which only served.go names.
	"the format of one filesystem": {
		"internal/node/format/ldiskfs", "internal/node/format/served.go", "internal/node/format/formattest/served_disks_test.go",
		"internal/node/format/registry/registry_test.go", "internal/node/format/names_test.go", "internal/node/provision/provisiontest/lab.go",
	},
	"types of filesystems in the kernel's tables": {"internal/node/procfs", "internal/node/devices/devices_test.go"},
	"the list of all": {"internal/backend/all"},
	"what was stored, as a real one has it": {
		"internal/node/backup/frozen_test.go", "internal/node/backup/testdata/v1/manifest.json", "internal/node/record/frozen_test.go",
		"internal/node/record/testdata/v1/.parallelfs-record.json", "internal/node/provision/frozen_test.go", "internal/node/provision/testdata/v1/lustre-mark.json",
	},
	// Each needs a filesystem that admission accepts, or names the source of a result, a table or a sentence.
	"tests with a real one as data": {
		"benchmarks/mdtest/command_test.go", "benchmarks/report/sample_test.go", "benchmarks/results/results_test.go",
		"benchmarks/stats/differences_test.go", "cmd/kubectl-pfs/compare_test.go", "cmd/kubectl-pfs/plan_test.go", "cmd/kubectl-pfs/testdata/plan-new.txt", "cmd/kubectl-pfs/status_test.go", "cmd/kubectl-pfs/testdata/status-all.txt",
		"cmd/kubectl-pfs/testdata/status-well.txt", "cmd/kubectl-pfs/testdata/status.txt", "cmd/kubectl-pfs/testdata/status.yaml",
		"cmd/node/main_test.go", "controllers/filesystem/choose_test.go", "controllers/filesystem/plannedwiring_test.go",
		"controllers/benchmarkrun/clients_test.go", "controllers/benchmarkrun/complete_test.go", "controllers/benchmarkrun/cluster_test.go",
		"controllers/benchmarkrun/decision/waiting_test.go",
		"controllers/benchmarksuite/children_test.go", "controllers/benchmarksuite/scene_test.go", "controllers/benchmarksuite/suite_test.go",
		"controllers/filesystem/agent_test.go", "controllers/filesystem/beegfs_test.go", "controllers/filesystem/beegfsdisks_test.go",
		"controllers/filesystem/beegfsrecover_test.go", "controllers/filesystem/beegfscertificate_test.go",
		"controllers/filesystem/beegfsworld_test.go", "controllers/filesystem/benchmark_test.go", "controllers/filesystem/disks_test.go", "controllers/filesystem/disruptions_test.go", "controllers/filesystem/domains_test.go",
		"controllers/filesystem/example_test.go", "controllers/filesystem/failures_test.go", "controllers/filesystem/lifecycle_test.go", "controllers/filesystem/lostnode_test.go",
		"controllers/filesystem/clients_test.go", "controllers/filesystem/images_test.go", "controllers/filesystem/derive/size_test.go",
		"controllers/filesystem/lustre_test.go", "controllers/filesystem/lustreworld_test.go",
		"controllers/filesystem/lustrepairs_test.go", "controllers/filesystem/lustrerecover_test.go", "internal/node/serve/recover_disks_test.go",
		"controllers/filesystem/samples_test.go", "controllers/filesystem/upgrade_test.go", "controllers/filesystem/world_test.go",
		"controllers/filesystem/copies_test.go", "controllers/filesystem/record_test.go", "controllers/filesystem/recover_test.go", "controllers/filesystem/nodefiles_test.go",
		"controllers/storagetarget/watch_test.go", "internal/node/host/host_test.go", "internal/node/inventory/software_test.go",
		"internal/node/serve/doubles_disks_test.go", "internal/node/serve/drain_disks_test.go", "internal/node/serve/node_test.go", "internal/node/serve/sandbox_disks_test.go",
		"internal/node/agent/pairs_cluster_test.go", "internal/plan/pairs_test.go",
		"internal/node/provision/unmounted_disks_test.go", "internal/node/provision/served_test.go",
		"internal/node/serve/pair_disks_test.go",
		"internal/node/serve/serve_test.go", "internal/plan/served_test.go", "internal/plan/takeover_fields_test.go", "controllers/filesystem/rebuild_test.go", "internal/node/agent/frozen_test.go", "internal/node/agent/nodefile_cluster_test.go",
	},
}

// backends returns the names of all filesystems with a folder, including one that no program uses yet.
func backends(t *testing.T, folder string) (names []string) {
	t.Helper()
	g := NewWithT(t)
	entries, err := os.ReadDir(folder)
	g.Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		if e.IsDir() && e.Name() != "all" && e.Name() != "backendtest" && e.Name() != "shared" {
			names = append(names, e.Name())
		}
	}
	for kind := range all.Backends(time.Minute) {
		g.Expect(names).To(ContainElement(strings.ToLower(string(kind))), "a backend's folder has its name")
	}
	return names
}

func TestNothingOutsideOfABackendsFolderNamesIt(t *testing.T) {
	g := NewWithT(t)
	root, err := filepath.Abs("../../..")
	g.Expect(err).NotTo(HaveOccurred())
	names := backends(t, filepath.Join(root, "internal/backend"))
	allowed := map[string]bool{".git": true, "bin": true, "dist": true}
	for _, name := range names {
		allowed["internal/backend/"+name] = true
	}
	unused := map[string]bool{}
	for _, paths := range named {
		for _, path := range paths {
			allowed[path], unused[path] = true, true
		}
	}
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
		if slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(content, []byte(name)) }) {
			found = append(found, relative)
		}
		return nil
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeEmpty(), "ask a backend what it can do (internal/backend/capabilities.go), instead of which one it is")
	g.Expect(unused).To(BeEmpty(), "these are not there any more")
}
