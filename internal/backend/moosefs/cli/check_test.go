package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

// round3 holds the rows of the check loop in the output of mfscli of 3.0.117, and round4 the object in the output of 4.57.5.
const round3 = `check loop	start:	1795240000
check loop	end:	1795243600
check loop	files:	20
check loop	under-goal files:	19
check loop	missing files:	MISSING
check loop	missing trash files:	0
check loop	missing sustained files:	0
check loop	chunks:	21
check loop	under-goal chunks:	19
check loop	missing chunks:	MISSING
`

const round4 = `{"start_time": 1795240000, "end_time": 1795243600, "start_time_str": "x", "end_time_str": "x", "files": 20, "undergoal_files": 19,
"missing_files": MISSING, "missing_trash_files": 0, "missing_sustained_files": 0, "chunks": 21, "undergoal_chunks": 19, "missing_chunks": MISSING}`

// checked returns the output of mfscli in a situation, with a round that has missed the given number of files; without a round if that is
// empty.
func checked(t *testing.T, version, situation, missing string) [][]byte {
	t.Helper()
	raw := said(t, version, situation)[0]
	if version == "3.0.117" {
		rows := "chunk loop\tno data\ncheck loop: no data\n"
		if missing != "" {
			rows = strings.ReplaceAll(round3, "MISSING", missing)
		}
		return [][]byte{raw, []byte(rows)}
	}
	var answer map[string]any
	g := NewWithT(t)
	g.Expect(json.Unmarshal(raw, &answer)).To(Succeed())
	info := answer["dataset"].(map[string]any)["info"].(map[string]any)
	info["fs_loop"] = nil
	if missing != "" {
		info["fs_loop"] = json.RawMessage(strings.ReplaceAll(round4, "MISSING", missing))
	}
	out, err := json.Marshal(answer)
	g.Expect(err).NotTo(HaveOccurred())
	return [][]byte{out}
}

func TestMfscliIsAskedForTheRounds(t *testing.T) {
	g := NewWithT(t)
	g.Expect(AskCheck("4.57.5", "10.0.0.1:9421")).To(Equal([][]string{
		{"mfscli", "-n", "-j", "-H", "10.0.0.1", "-P", "9421", "-SIL", "-SIG", "-SIC", "-SCS", "-SHD"},
	}))
	g.Expect(AskCheck("3.0.117", "10.0.0.1:9421")).To(Equal([][]string{
		{"mfscli", "-n", "-s", "\t", "-H", "10.0.0.1", "-P", "9421", "-SIG", "-SIC", "-SCS", "-SHD"},
		{"mfscli", "-n", "-s", "\t", "-H", "10.0.0.1", "-P", "9421", "-SIL"},
	}))
}

func TestTheFindingsOfTheMastersScansAreRead(t *testing.T) {
	for _, version := range []string{"3.0.117", "4.57.5", "4.59.2"} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			answer, err := ReadCheck(version, checked(t, version, "healthy", "0"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.Done).To(BeTrue())
			g.Expect(answer.Findings).To(BeEmpty(), "what has too few copies is repaired by the master")
			g.Expect(answer.Message).To(HavePrefix("the master's last round through 20 files with 21 chunks ended at 2026-11-21T06:46:40Z; " +
				"19 files had chunks with too few copies then, and 0 chunks have now: it repairs these by itself; 0 of "))

			answer, err = ReadCheck(version, checked(t, version, "lost", "3"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.Findings).To(ContainElement(spec.CheckFinding{What: "files with missing chunks", Count: 3}))
			g.Expect(answer.Message).To(ContainSubstring("mfscli -SMF names the files"))
		})
	}
}

func TestFilesThatTheMasterHasNotScannedAreNoResult(t *testing.T) {
	for _, version := range []string{"3.0.117", "4.57.5"} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			_, err := ReadCheck(version, checked(t, version, "healthy", ""))
			g.Expect(err).To(MatchError(ContainSubstring("the master has not gone through all files since it was started")))
			_, err = ReadCheck(version, [][]byte{said(t, version, "healthy")[0], nil}[:len(AskCheck(version, ""))])
			g.Expect(err).To(HaveOccurred(), "no word of a round")
			_, err = ReadCheck(version, make([][]byte, len(AskCheck(version, ""))))
			g.Expect(err).To(HaveOccurred(), "no master answers")
			_, err = ReadCheck(version, nil)
			g.Expect(err).To(MatchError(ContainSubstring("0 answers of mfscli")))
		})
	}
}

func TestAMasterThatCountsIsAskedAgainLater(t *testing.T) {
	g := NewWithT(t)
	counting := strings.Replace(string(checked(t, "4.57.5", "healthy", "0")[0]), `"progress_status":0`, `"progress_status":1`, 1)
	_, err := ReadCheck("4.57.5", [][]byte{[]byte(counting)})
	g.Expect(err).To(MatchError(ContainSubstring("the master is counting its chunks")))
}

func TestDisksThatCouldNotBeReadAreCountedByChunkserver(t *testing.T) {
	for version, c := range map[string]struct {
		finding spec.CheckFinding
		disk    string
	}{
		"3.0.117": {spec.CheckFinding{What: "disks with errors, of the chunkserver at 10.97.3.12:19435 since its start", Count: 1},
			"/data/ssd1/data/ of 10.97.3.12:19435 (last at 2026-11-21T07:44:04Z)"},
		"4.57.5": {spec.CheckFinding{What: "errors of disks, of the chunkserver at 10.97.4.12:19435 since it has connected", Count: 6},
			"/data/ssd1/data/ of 10.97.4.12:19435 (last at 2026-11-21T07:44:04Z)"},
		"4.59.2": {spec.CheckFinding{What: "errors of disks, of the chunkserver at 10.97.5.12:19435 since it has connected", Count: 4},
			"/data/ssd1/data/ of 10.97.5.12:19435 (last at 2026-11-23T20:38:11Z)"},
	} {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			said := checked(t, version, "damaged", "0")
			// it was still counting when it was recorded
			said[0] = []byte(strings.Replace(string(said[0]), `"progress_status":1`, `"progress_status":0`, 1))
			answer, err := ReadCheck(version, said)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.Findings).To(ContainElement(c.finding))
			g.Expect(answer.Message).To(ContainSubstring("Disks with errors: " + c.disk + ". Look at the kernel's log"))
			answer, err = ReadCheck(version, checked(t, version, "healthy", "0"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.Message).NotTo(ContainSubstring("errors"))
		})
	}
}

func TestACheckNamesTheVersionsThatDoNotReadDataByThemselves(t *testing.T) {
	g := NewWithT(t)
	for version, reads := range map[string]bool{"3.0.117": false, "4.57.5": false, "4.59.2": true} {
		answer, err := ReadCheck(version, checked(t, version, "healthy", "0"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Contains(answer.Message, `HDD_MIN_TEST_INTERVAL: "0"`)).To(Equal(!reads), version)
	}
}

func TestADiskWithReadErrorsIsReportedBeforeTheMasterHasScannedAllFiles(t *testing.T) {
	g := NewWithT(t)
	answer, err := ReadCheck("4.57.5", checked(t, "4.57.5", "damaged", ""))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Done).To(BeTrue())
	g.Expect(answer.Findings).To(ConsistOf(spec.CheckFinding{What: "errors of disks, of the chunkserver at 10.97.4.12:19435 since it has connected", Count: 6}))
	g.Expect(answer.Message).To(HavePrefix("the master has not gone through all files since it was started"))
}

func TestManyDisksWithErrorsCrowdOutNoLostFile(t *testing.T) {
	g := NewWithT(t)
	var answer map[string]any
	g.Expect(json.Unmarshal(checked(t, "4.57.5", "lost", "3")[0], &answer)).To(Succeed())
	data := answer["dataset"].(map[string]any)
	var many []any
	for i := range 40 {
		many = append(many, map[string]any{"ip": fmt.Sprintf("10.0.1.%d", i), "port": 9435, "errors": 1000 + i})
	}
	data["chunkservers"] = many
	raw, err := json.Marshal(answer)
	g.Expect(err).NotTo(HaveOccurred())
	said, err := ReadCheck("4.57.5", [][]byte{raw})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(said.Findings)).To(BeNumerically("<=", 32))
	g.Expect(said.Findings).To(ContainElements(spec.CheckFinding{What: "files with missing chunks", Count: 3},
		spec.CheckFinding{What: "errors of disks, of the chunkserver at 10.0.1.39:9435 since it has connected", Count: 1039},
		spec.CheckFinding{What: "other chunkservers with errors of disks", Count: 24}))
}
