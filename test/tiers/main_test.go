package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// leave writes the results of a run.
func leave(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		NewWithT(t).Expect(os.WriteFile(filepath.Join(directory, name), []byte(text), 0o600)).To(Succeed())
	}
	return directory
}

func TestTheTableCountsTestsAndNamesTheSlowest(t *testing.T) {
	g := NewWithT(t)
	directory := leave(t, map[string]string{
		"lint.tier":      `{"tier": "lint", "seconds": 80, "cpuSeconds": 150, "code": 0}`,
		"test-unit.tier": `{"tier": "test-unit", "seconds": 40, "code": 0}`,
		"test-unit.json": `{"Action":"start","Package":"parallelfs.dev/operator/internal/plan"}
{"Action":"pass","Package":"parallelfs.dev/operator/internal/plan","Test":"TestDisks/blank","Elapsed":0.5}
{"Action":"skip","Package":"parallelfs.dev/operator/internal/plan","Test":"TestDisks/foreign","Elapsed":9}
{"Action":"pass","Package":"parallelfs.dev/operator/internal/plan","Test":"TestDisks","Elapsed":9.5}
{"Action":"pass","Package":"parallelfs.dev/operator/internal/plan","Elapsed":9.6}
`,
		"test-e2e.tier": `{"tier": "test-e2e", "seconds": 900, "code": 0}`,
		"test-e2e.json": `[{"SpecReports": [
{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed", "RunTime": 30000000000},
{"ContainerHierarchyTexts": ["a FileSystem"], "LeafNodeType": "It", "LeafNodeText": "becomes Ready", "State": "passed", "RunTime": 20000000000},
{"ContainerHierarchyTexts": ["a FileSystem"], "LeafNodeType": "It", "LeafNodeText": "is deleted", "State": "passed", "RunTime": 60000000000}
]}]`,
	})
	times, err := Read(directory)
	g.Expect(err).NotTo(HaveOccurred())
	var out bytes.Buffer
	times.Seconds, times.CPUSeconds = 950, 1800
	g.Expect(times.Print(&out)).To(Succeed())
	g.Expect(times.Failure()).To(Succeed())
	g.Expect(out.String()).To(Equal(`
tier               seconds  CPU s  passed  failed  skipped  
test-e2e           900      0      2       0       0        
lint               80       150    0       0       0        
test-unit          40       0      1       0       1        
all, side by side  950      1800   3       0       1        

slowest of test-e2e
    60.0 s  a FileSystem is deleted
    20.0 s  a FileSystem becomes Ready

slowest of test-unit
     0.5 s  internal/plan TestDisks/blank

3 passed, 0 failed, 1 skipped
`))
}

func TestARunWithAFailedTierFailsAndNamesIt(t *testing.T) {
	g := NewWithT(t)
	directory := leave(t, map[string]string{
		"lint.tier":   `{"tier": "lint", "seconds": 1, "code": 0}`,
		"verify.tier": `{"tier": "verify", "seconds": 1, "code": 2}`,
	})
	var out bytes.Buffer
	g.Expect(run([]string{"--seconds", "3", directory}, &out)).To(MatchError(ContainSubstring("failed: verify")))
	g.Expect(out.String()).To(MatchRegexp(`verify +1 +0 +0 +0 +0 +FAILED`))
	g.Expect(filepath.Join(directory, "times.json")).To(BeAnExistingFile())
}

func TestARunOfNoTierFails(t *testing.T) {
	var out bytes.Buffer
	NewWithT(t).Expect(run([]string{t.TempDir()}, &out)).To(MatchError(ContainSubstring("no tier has run")))
}
