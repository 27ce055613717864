//go:build disks

// This test is in the tier disks because it needs Open MPI, and starts it as root.
package mpi_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/ior"
	"parallelfs.dev/operator/benchmarks/mdtest"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// programs returns the folder of the doubles, compiled in the same way as for their image, or of the real programs (MPI_REAL_BIN).
func programs(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("MPI_REAL_BIN"); folder != "" {
		return folder
	}
	folder := t.TempDir()
	for _, tool := range []string{"mdtest", "ior"} {
		out, err := exec.Command("mpicc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I.", "-o", filepath.Join(folder, tool),
			filepath.Join("..", tool, tool+".c"), "-lm").CombinedOutput()
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
	}
	return folder
}

// run runs one command of a tool in the same way as the node binary.
func run(programs, directory string, processes int, argv []string) (output []byte, err error) {
	line := []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", fmt.Sprint(processes), filepath.Join(programs, argv[0])}
	for _, argument := range argv[1:] {
		line = append(line, strings.ReplaceAll(argument, "$(DIRECTORY)", directory))
	}
	return exec.Command("mpirun", line...).CombinedOutput()
}

// left counts the names below a directory by pattern; digits are replaced by 0.
func left(t *testing.T, directory string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		if path != directory {
			found[regexp.MustCompile(`[0-9]+`).ReplaceAllString(filepath.Base(path), "0")]++
		}
		return err
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

func TestTheProductReadsWhatTheToolsPrint(t *testing.T) {
	folder := programs(t)
	for name, c := range map[string]struct {
		tool benchmarks.Tool
		spec v1alpha1.BenchmarkRunSpec
		// samples lists the names in order, and left holds the names that the last step leaves.
		samples []string
		left    map[string]int
	}{
		"files in the leaves of trees of their own": {
			tool: mdtest.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest, Processes: 4, Mdtest: &v1alpha1.MdtestSpec{
				Items: 3, Depth: 2, Branch: 3, LeafOnly: true, UniqueDirectories: true, FilesOnly: true, Iterations: 3}},
			samples: []string{"File creation", "File stat", "File read", "File removal", "Tree creation", "Tree removal"},
		},
		"files and directories in one tree, with data, by other processes": {
			tool: mdtest.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest, Processes: 2, Mdtest: &v1alpha1.MdtestSpec{
				Items: 4, Depth: 1, Branch: 2, WriteBytes: "3901", ReadBytes: "3901", SyncWrites: true, Stride: 1, Iterations: 2}},
			samples: []string{"Directory creation", "Directory stat", "Directory rename", "Directory removal",
				"File creation", "File stat", "File read", "File removal", "Tree creation", "Tree removal"},
		},
		"a number of items for each process": {
			tool: mdtest.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest, Processes: 2, Mdtest: &v1alpha1.MdtestSpec{
				ItemsPerProcess: 12, Depth: 1, Branch: 2, DirectoriesOnly: true}},
			samples: []string{"Directory creation", "Directory stat", "Directory rename", "Directory removal", "Tree creation", "Tree removal"},
		},
		"only some phases, which leave files": {
			tool: mdtest.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest, Processes: 2, Mdtest: &v1alpha1.MdtestSpec{
				Items: 5, Depth: 1, Branch: 3, UniqueDirectories: true, FilesOnly: true, WriteBytes: "7",
				Phases: []v1alpha1.MdtestPhase{v1alpha1.MdtestCreate, v1alpha1.MdtestStat}}},
			samples: []string{"File creation", "File stat", "Tree creation"},
			left:    map[string]int{"test-dir.0-0": 1, "mdtest_tree.0.0": 8, "file.mdtest.0.0": 40},
		},
		"each phase as a step, with caches dropped between": {
			tool: mdtest.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolMdtest, Processes: 2,
				Caches: &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfAll, Before: v1alpha1.CachesBeforePhases},
				Mdtest: &v1alpha1.MdtestSpec{Items: 5, Depth: 1, Branch: 3, FilesOnly: true, Iterations: 1, WriteBytes: "7", ReadBytes: "7"}},
			samples: []string{"File creation", "Tree creation", "File stat", "File read", "File removal", "Tree removal"},
		},
		"a file of each process": {
			tool: ior.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR, Processes: 2, IOR: &v1alpha1.IORSpec{
				BlockSize: "1Mi", TransferSize: "64Ki", Segments: 2, FilePerProcess: true, Iterations: 3, RandomOffset: true}},
			samples: []string{"write", "read"},
		},
		"one file, read by the others, after fsync": {
			tool: ior.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR, Processes: 4, IOR: &v1alpha1.IORSpec{
				BlockSize: "1Mi", TransferSize: "1Mi", ReorderTasks: true, Fsync: true, Iterations: 2}},
			samples: []string{"write", "read"},
		},
		"writing and reading as steps, with caches dropped between": {
			tool: ior.Tool{}, spec: v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR, Processes: 2,
				Caches: &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfAll, Before: v1alpha1.CachesBeforePhases},
				IOR:    &v1alpha1.IORSpec{BlockSize: "1Mi", TransferSize: "256Ki", Iterations: 1}},
			samples: []string{"write", "read"}, left: map[string]int{"data": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, directory := NewWithT(t), t.TempDir()
			points, err := sweep.Expand(c.tool, &c.spec)
			g.Expect(err).NotTo(HaveOccurred())
			plan, err := c.tool.Plan(&c.spec, points[0])
			g.Expect(err).NotTo(HaveOccurred())
			var got []string
			for i, step := range plan.Steps {
				output, err := run(folder, directory, plan.Processes, step.Command.Argv)
				g.Expect(err).NotTo(HaveOccurred(), string(output))
				report, err := c.tool.Parse(&c.spec, points[0], i, output)
				g.Expect(err).NotTo(HaveOccurred(), string(output))
				g.Expect(report.Version).To(Equal("4.0.0"))
				for _, sample := range report.Samples {
					if sample.Unit != "ops/s" && sample.Unit != "MiB/s" {
						continue
					}
					g.Expect(sample.Value).To(BeNumerically(">", 0), sample.Name)
					got = append(got, sample.Name)
				}
			}
			g.Expect(slices.Compact(got)).To(ContainElements(c.samples))
			for _, sample := range got {
				g.Expect(c.samples).To(ContainElement(sample))
			}
			if c.left == nil {
				c.left = map[string]int{}
			}
			found := left(t, directory)
			g.Expect(found).To(Equal(c.left))
		})
	}
}

func TestTheProductReadsJSON(t *testing.T) {
	g := NewWithT(t)
	output, err := run(programs(t), t.TempDir(), 2, []string{"ior", "-b", "1m", "-t", "256k", "-i", "2", "-F", "-w", "-r", "-O", "summaryFormat=JSON", "-o", "$(DIRECTORY)/f"})
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	// This parses it like an output that was saved elsewhere.
	report, err := ior.Tool{}.Parse(&v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolIOR, IOR: &v1alpha1.IORSpec{}}, benchmarks.Point{}, 0, output)
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	g.Expect(report.Version).To(Equal("4.0.0"))
	for _, sample := range report.Samples {
		g.Expect(sample.Value).To(BeNumerically(">", 0), sample.Name)
	}
	g.Expect(report.Samples).NotTo(BeEmpty())
}

func TestTheToolsRefuseWhatTheyCannotDo(t *testing.T) {
	folder := programs(t)
	for name, c := range map[string]struct {
		argv []string
		code int
		said string
	}{
		"mdtest: an unknown option":             {[]string{"mdtest", "-d", "$(DIRECTORY)", "-Q"}, 1, "Error invalid argument: -Q\n"},
		"mdtest: an option without its value":   {[]string{"mdtest", "-d"}, 1, "Error, argument missing for option d\n"},
		"mdtest: items that don't fill":         {[]string{"mdtest", "-d", "$(DIRECTORY)", "-n", "4", "-I", "3"}, 1, "items must be a multiple of items per directory"},
		"mdtest: a directory that is not there": {[]string{"mdtest", "-d", "$(DIRECTORY)/no/such", "-n", "4", "-F"}, 255, "failed. Error: No such file or directory"},
		"ior: an unknown option":                {[]string{"ior", "-o", "$(DIRECTORY)/f", "--no-such"}, 1, "Error invalid argument: --no-such\n"},
		"ior: an unknown directive":             {[]string{"ior", "-O", "nope=1", "-o", "$(DIRECTORY)/f"}, 1, `Unrecognized parameter "nope"`},
		"ior: a block of odd transfers":         {[]string{"ior", "-b", "1m", "-t", "300k", "-o", "$(DIRECTORY)/f"}, 255, "block size must be a multiple of transfer size"},
		"ior: a file that is not there":         {[]string{"ior", "-r", "-o", "$(DIRECTORY)/f"}, 255, "failed: No such file or directory"},
		"ior: an interface that is none":        {[]string{"ior", "-a", "NOPE", "-o", "$(DIRECTORY)/f"}, 1, "Unrecognized I/O API"},
	} {
		t.Run(name, func(t *testing.T) {
			g, directory := NewWithT(t), t.TempDir()
			output, err := run(folder, directory, 2, c.argv)
			exit, failed := err.(*exec.ExitError) //nolint:errorlint // as Run returns it
			g.Expect(failed).To(BeTrue(), string(output))
			g.Expect(exit.ExitCode()).To(Equal(c.code), string(output))
			g.Expect(string(output)).To(ContainSubstring(c.said))
			g.Expect(slices.Collect(maps.Keys(left(t, directory)))).NotTo(ContainElement("f"))
		})
	}
}
