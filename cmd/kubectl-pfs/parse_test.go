package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/guess"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/tooltest"
)

// parsed runs parse and decodes the document.
func parsed(t *testing.T, args ...string) (results.Run, string) {
	t.Helper()
	g := NewWithT(t)
	got := on(t, nil)(append([]string{"bench", "parse", "-o", "json"}, args...)...)
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	run, err := results.Decode([]byte(got.stdout))
	g.Expect(err).NotTo(HaveOccurred())
	return run, got.stderr
}

func TestEverySavedOutputOfAGoodRunIsReadAndNoneOfABadOneIsTakenForGood(t *testing.T) {
	for _, tool := range []string{"mdtest", "ior", "iozone"} {
		files, err := filepath.Glob("../../benchmarks/" + tool + "/testdata/*.txt")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			t.Run(tool+" "+filepath.Base(file), func(t *testing.T) {
				g := NewWithT(t)
				got := on(t, nil)("bench", "parse", "--tool", tool, file)
				switch base := filepath.Base(file); {
				case !strings.Contains(base, "error"):
					g.Expect(got.code).To(Equal(exitGood), got.stderr)
					g.Expect(got.stdout).To(ContainSubstring("METRIC"))
				case got.code == exitGood:
					g.Expect(got.stderr).To(ContainSubstring("could not be checked"))
				default:
					g.Expect(got.code).To(Equal(exitFailed))
					g.Expect(got.stdout).To(BeEmpty())
				}
			})
		}
	}
}

const mdtestOutput = "../../benchmarks/mdtest/testdata/4.0.0-paper-i3.txt"

func TestAnErrorAboutALongWordIsShort(t *testing.T) {
	for _, path := range []string{
		mdtestOutput, "../../benchmarks/ior/testdata/3.3.0-shared.txt", "../../benchmarks/iozone/testdata/single-4-processes.txt",
		"../../benchmarks/fio/testdata/read-1-job.txt", "../../benchmarks/vdbench/testdata/documented-three-operations.txt",
		"../../benchmarks/postmark/testdata/one-process-small-files.txt",
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			g := NewWithT(t)
			output, err := os.ReadFile(path)
			g.Expect(err).NotTo(HaveOccurred())
			file := filepath.Join(t.TempDir(), "output.txt")
			for what, long := range tooltest.Stretched(t, output) {
				g.Expect(os.WriteFile(file, long, 0o600)).To(Succeed())
				if got := on(t, nil)("bench", "parse", file); got.code != exitGood {
					g.Expect(len(got.stderr)).To(BeNumerically("<=", len(file)+1<<10), "%s: %.300s", what, got.stderr)
				}
			}
		})
	}
}

func TestParametersInTheOutputBecomeThoseOfThePoint(t *testing.T) {
	g := NewWithT(t)
	run, notes := parsed(t, "--tool", "mdtest", mdtestOutput)
	g.Expect(notes).To(BeEmpty())
	g.Expect(run.Spec.Tool).To(Equal(v1alpha1.ToolMdtest))
	g.Expect(run.Spec.Mdtest.LeafOnly).To(BeTrue())
	g.Expect(run.Spec.Mdtest.FilesOnly).To(BeTrue())
	g.Expect(run.Points).To(HaveLen(1))
	g.Expect(run.Points[0].Value("mdtest.iterations")).To(Equal("3"))
	g.Expect(run.Points[0].Metric("File creation", "ops/s")).NotTo(BeNil())
	g.Expect(run.Points[0].Command[0]).To(ContainSubstring("mdtest"))
	g.Expect(run.Provenance.ToolVersion).To(ContainSubstring("4.0.0"))
}

func TestASettingThatTheOutputContradictsIsAnError(t *testing.T) {
	for name, args := range map[string][]string{
		"another number of processes": {"--processes", "33"},
		"another number of items":     {"--set", "mdtest.items=7"},
		"a test that is not there":    {"--set", "mdtest.filesOnly=false"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := on(t, nil)(append([]string{"bench", "parse", "--tool", "mdtest", mdtestOutput}, args...)...)
			g.Expect(got.code).To(Equal(exitFailed), got.stdout)
			g.Expect(got.stdout).To(BeEmpty())
		})
	}
	t.Run("a field that there is not", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, nil)("bench", "parse", "--tool", "mdtest", mdtestOutput, "--set", "mdtest.depht=2")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stderr).To(ContainSubstring("mdtest.depht=2 can't be set in the spec of a BenchmarkRun"))
	})
}

func TestFailedPreflightChecksAreReportedAndDocumented(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(mdtestOutput)
	g.Expect(err).NotTo(HaveOccurred())
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "Command line used") {
			kept = append(kept, line)
		}
	}
	path := filepath.Join(t.TempDir(), "nameless.txt")
	g.Expect(os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600)).To(Succeed())
	run, notes := parsed(t, "--tool", "mdtest", path)
	g.Expect(notes).To(ContainSubstring("does not say how the tool was called"))
	g.Expect(run.Points[0].Message).To(ContainSubstring("does not say how the tool was called"))
	g.Expect(run.Points[0].Metric("File creation", "ops/s")).NotTo(BeNil())
}

func TestFilesWithTheSameParametersAreRepetitions(t *testing.T) {
	g := NewWithT(t)
	run, _ := parsed(t, "--tool", "mdtest", "--name", "old", mdtestOutput, mdtestOutput, "../../benchmarks/mdtest/testdata/4.0.0-low-load.txt")
	g.Expect(run.Name).To(Equal("old"))
	g.Expect(run.Points).To(HaveLen(2))
	g.Expect(run.Points[0].Attempts).To(HaveLen(2))
	g.Expect(run.Points[1].Attempts).To(HaveLen(1))
	g.Expect(run.Points[1].Index).To(Equal(1))
	again, _ := parsed(t, "--tool", "mdtest", mdtestOutput)
	g.Expect(run.Points[0].Metric("File stat", "ops/s").Value).To(BeNumerically("~", again.Points[0].Metric("File stat", "ops/s").Value, 0.001))
}

const publishedOutputs = "../../benchmarks/mdtest/testdata/published/"

// changed writes an output with a replaced text.
func changed(t *testing.T, path, before, after string) string {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(ContainSubstring(before))
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	g.Expect(os.WriteFile(out, []byte(strings.ReplaceAll(string(text), before, after)), 0o600)).To(Succeed())
	return out
}

func TestOutputsWithUnknownOptionsAreNotRepetitionsOfOnePoint(t *testing.T) {
	g := NewWithT(t)
	easy := publishedOutputs + "1.9.3-04-mdtest_easy_write.txt"
	hard := changed(t, easy, `"-u" "-L"`, `"-t" "-w" "3901"`)
	run, notes := parsed(t, "--tool", "mdtest", easy, hard, easy)
	g.Expect(run.Points).To(HaveLen(3), "even the same file is a point of its own")
	g.Expect(run.Points[0].Value("mdtest.itemsPerProcess")).To(Equal("100000"), "each argument is read without its quotes")
	g.Expect(run.Points[0].Value("mdtest.depth")).To(BeEmpty(), "a default is no value that was measured with, where options are not known")
	g.Expect(run.Points[0].Command).To(ContainElements("-W", "0", "-x"))
	g.Expect(run.Points[0].Options).To(Equal([]string{"-x", "/mnt/fs/file", "-W", "0"}))
	g.Expect(run.Points[1].Value("mdtest.writeBytes")).To(Equal("3901"))
	g.Expect(notes).To(ContainSubstring("not all of its options are known, so it is a point of its own"))
	g.Expect(run.Points[0].Value("output")).NotTo(BeEmpty(), "points with the same parameters say where they are from")
}

func TestOutputsOfOtherOptionsAndVersionsAreNoRepetitionsOfOnePoint(t *testing.T) {
	ior := "../../benchmarks/ior/testdata/"
	for name, files := range map[string][]string{
		"IOR 3.0 with a file of each process, and with one": {ior + "3.0.1-fpp.txt", ior + "3.0.1-shared.txt"},
		"mdtest with and without an option that is no parameter": {
			publishedOutputs + "1.9.3-nan-inodes.txt", changed(t, publishedOutputs+"1.9.3-nan-inodes.txt", `"-L" "-u"`, `"-L"`)},
		"other versions": {mdtestOutput, changed(t, mdtestOutput, "mdtest-4.0.0", "mdtest-4.0.1")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			run, _ := parsed(t, files...)
			g.Expect(run.Points).To(HaveLen(2))
			g.Expect(run.Points[0].Attempts).To(HaveLen(1))
		})
	}
}

func TestCompareNamesEachOptionThatDiffers(t *testing.T) {
	g := NewWithT(t)
	pfs := on(t, nil)
	document := func(path string) string {
		out := filepath.Join(t.TempDir(), "document.json")
		got := pfs("bench", "parse", "-o", "json", "--file", out, path)
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		return out
	}
	buffered := document(mdtestOutput)
	direct := document(changed(t, mdtestOutput, "Command line used: ", "Command line used: mdtest '--posix.odirect' "))
	got := pfs("bench", "compare", buffered, direct)
	g.Expect(got.code).To(Equal(exitFailed))
	g.Expect(got.stdout).To(BeEmpty())
	g.Expect(got.stderr).To(ContainSubstring("--posix.odirect"))
	elsewhere := document(changed(t, mdtestOutput, "/mnt/scratch", "/mnt/elsewhere"))
	got = pfs("bench", "compare", buffered, elsewhere)
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stderr).To(ContainSubstring("the command line of point 0 is"))
}

func TestSeveralRunsInOneFileAreSeveralPoints(t *testing.T) {
	g := NewWithT(t)
	run, _ := parsed(t, publishedOutputs+"1.9.3-02-mdt_hard.txt")
	g.Expect(run.Points).To(HaveLen(3))
	g.Expect(run.Points[0].Metric("File creation", "ops/s").Value).To(Equal(17620.207))
	g.Expect(run.Points[1].Metric("File stat", "ops/s").Value).To(Equal(44129.544))
	g.Expect(run.Points[2].Metric("File removal", "ops/s").Value).To(Equal(9709.806))
}

func TestAnOptionThatNoFieldCanHoldIsAnUnknownOne(t *testing.T) {
	g := NewWithT(t)
	run, notes := parsed(t, changed(t, publishedOutputs+"1.9.3-01-mdtest_easy_delete.txt", "-n 3000000", "-n 30000000000"))
	g.Expect(notes).To(ContainSubstring("mdtest.itemsPerProcess=30000000000"))
	g.Expect(run.Points[0].Options).To(ContainElement("mdtest.itemsPerProcess=30000000000"))
}

func TestTheOutputShowsWhichToolPrintedIt(t *testing.T) {
	for _, tool := range []string{"mdtest", "ior", "fio", "iozone", "postmark", "vdbench"} {
		files, err := filepath.Glob("../../benchmarks/" + tool + "/testdata/published/*")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			text, err := os.ReadFile(file)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(guess.Tool(text)).To(BeEquivalentTo(tool), file)
		}
	}
	_, err := guess.Tool([]byte("nothing\n"))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("name the tool with --tool")))
	_, err = guess.Tool([]byte("-- started at 1 --\nIOR-4.0.0: MPI Coordinated Test of Parallel I/O\n"))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("lines of ior and of mdtest; keep one tool in each file")))
}

func TestADocumentOfASavedOutputIsReportedAndCompared(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "old.json")
	pfs := on(t, nil)
	g.Expect(pfs("bench", "parse", "--tool", "mdtest", "-o", "json", "--file", path, mdtestOutput).code).To(Equal(exitGood))
	got := pfs("bench", "report", "--from", path)
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stdout).To(And(ContainSubstring("File creation"), ContainSubstring("<svg ")))
	got = pfs("bench", "compare", path, path)
	g.Expect(got.code).To(Equal(exitGood), got.stderr)
	g.Expect(got.stdout).To(ContainSubstring("File creation"))
}

func TestTheRequestIsReadFromTheSpec(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	spec, output := filepath.Join(dir, "run.yaml"), filepath.Join(dir, "output.txt")
	g.Expect(os.WriteFile(spec, []byte("kind: BenchmarkRun\nspec:\n  tool: iozone\n  processes: 4\n  iozone: {recordSize: 64Ki}\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile(output, []byte("nothing"), 0o600)).To(Succeed())
	got := on(t, nil)("bench", "parse", "--tool", "mdtest", "--spec", spec, output)
	g.Expect(got.stderr).To(ContainSubstring(`the tool of the spec is "iozone", that of the output "mdtest"`))
	run, _ := parsed(t, "--tool", "iozone", "--spec", spec, "../../benchmarks/iozone/testdata/single-4-processes.txt")
	g.Expect(run.Points[0].Value("processes")).To(Equal("4"))
}

func TestACommandLineIsReadAsGetoptDoes(t *testing.T) {
	for line, want := range map[string][]setting{
		"-Fu -z2 -b 8 -i 3":       {{"mdtest.filesOnly", "true"}, {"mdtest.uniqueDirectories", "true"}, {"mdtest.depth", "2"}, {"mdtest.branch", "8"}, {"mdtest.iterations", "3"}},
		"-d /mnt/fs -C -T -I 5":   {{"mdtest.phases", "Create,Stat"}, {"mdtest.items", "5"}},
		"-I 5 -I 6":               {{"mdtest.items", "6"}},
		"-FuI 5":                  {{"mdtest.filesOnly", "true"}, {"mdtest.uniqueDirectories", "true"}, {"mdtest.items", "5"}},
		"-I":                      {{"mdtest.items", ""}},
		"":                        nil,
		"-d -F":                   nil,
		"-v -v -v":                nil,
		"-w 4k -e 8k -N 1 -y -L":  {{"mdtest.writeBytes", "4k"}, {"mdtest.readBytes", "8k"}, {"mdtest.stride", "1"}, {"mdtest.syncWrites", "true"}, {"mdtest.leafOnly", "true"}},
		"-n 10 -D -E -r -d /x -u": {{"mdtest.itemsPerProcess", "10"}, {"mdtest.directoriesOnly", "true"}, {"mdtest.phases", "Read,Remove"}, {"mdtest.uniqueDirectories", "true"}},
	} {
		g := NewWithT(t)
		got, unknown := settings(optionsOf[v1alpha1.ToolMdtest], strings.Fields(line))
		g.Expect(got).To(Equal(want), line)
		g.Expect(unknown).To(BeEmpty(), line)
	}
	g := NewWithT(t)
	_, unknown := settings(optionsOf[v1alpha1.ToolMdtest], []string{"-FX", "3", "--odd", "-u"})
	g.Expect(unknown).To(Equal([]string{"-X", "3", "--odd"}))
}

func TestEveryOptionThatIsRecognizedSetsAFieldOfTheSpec(t *testing.T) {
	for tool, options := range optionsOf {
		for name, o := range options {
			if o.field == "" {
				continue
			}
			g := NewWithT(t)
			value := o.fixed
			if value == "" {
				value = "4"
			}
			for _, word := range o.words {
				value = word
			}
			if o.field == "ior.interface" {
				value = "POSIX"
			}
			_, err := specOf(tool, v1alpha1.BenchmarkRunSpec{}, []setting{{o.field, value}})
			g.Expect(err).NotTo(HaveOccurred(), "%s %s", tool, name)
		}
	}
	for name, f := range fioFields {
		g := NewWithT(t)
		value := f.value
		if value == "" {
			value = "4"
		}
		_, err := specOf(v1alpha1.ToolFio, v1alpha1.BenchmarkRunSpec{}, []setting{{f.field, value}})
		g.Expect(err).NotTo(HaveOccurred(), name)
	}
}

func TestFioRepeatsItsOptionsInItsReport(t *testing.T) {
	g := NewWithT(t)
	found, command, unknown := recognize(v1alpha1.ToolFio, []byte(
		`{"global options": {"direct": "1", "zonemode": "zbd"}, "jobs": [{"job options": {"name": "a", "rw": "randrw", "bs": "4K", "numjobs": "2", "end_fsync": "0"}}]}`))
	g.Expect(found).To(Equal([]setting{{"fio.blockSize", "4k"}, {"fio.directIO", "true"}, {"processes", "2"}, {"fio.mode", "randrw"}}))
	g.Expect(command).To(ContainElement("--rw=randrw"))
	g.Expect(unknown).To(Equal([]string{"--zonemode=zbd"}))
}
