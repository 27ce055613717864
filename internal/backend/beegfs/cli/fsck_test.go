package cli

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

func TestFsckIsAskedToChangeNothing(t *testing.T) {
	g := NewWithT(t)
	same := []string{"/opt/beegfs/sbin/beegfs-fsck", "--checkfs", "--readOnly", "--overwriteDbFile", "--databasePath=/check",
		"--logOutFile=/check/beegfs-fsck.out", "--logStdFile=/check/beegfs-fsck.log"}
	client := map[string]string{"sysMgmtdHost": "10.0.0.1", "connMgmtdPort": "8008"}
	g.Expect(Fsck("7.4.6", "/check", client)).To(Equal(append(slices.Clip(same), "--cfgFile=/etc/parallelfs/beegfs-client.conf")))
	g.Expect(Fsck("8.3.1", "/check", client)).To(Equal(append(slices.Clip(same), "--connMgmtdPort=8008", "--sysMgmtdHost=10.0.0.1")))
}

// The lines are those of ModeCheckFS.cpp, 7.4.6, with --readOnly.
const fsckBegins = "\nBeeGFS File System Check Version : 7.4.6\n----\n\nStep 3: Gather data from nodes: \n\nFetched 12 entries\rFetched 120 entries\r\n" +
	"Step 4: Check for errors... \n\n* Checking: Duplicate inodes ...\n>>> None found\n"

func TestFindingsOfFsckAreCounted(t *testing.T) {
	const log = ". Detailed information can also be found in /check/beegfs-fsck.out.\n"
	for sentence, c := range map[string]struct {
		said  string
		found []spec.CheckFinding
		says  string
	}{
		"nothing": {fsckBegins + "* Checking: Duplicated chunks ...\n>>> None found\n\nFound 0 errors" + log, nil, fsckLookedAtIt},
		"two kinds of damage": {
			fsckBegins + "* Checking: Chunk without an inode pointing to it (orphaned chunk) ...\n>>> Found 12 errors" + log + "\n" +
				"* Checking: Dangling directory entry ...\n>>> Found 1 errors" + log + "\n* Checking: Malformed chunk ...\n>>> None found\n\nFound 13 errors" + log,
			[]spec.CheckFinding{{What: "Chunk without an inode pointing to it (orphaned chunk)", Count: 12}, {What: "Dangling directory entry", Count: 1}}, fsckCanRepair,
		},
		"an unknown kind": {fsckBegins + "* Odd things\nFound 5 errors" + log, []spec.CheckFinding{{What: fsckUnnamed, Count: 5}}, fsckCanRepair},
		"what it can't repair and does not name": {
			fsckBegins + "Found errors beegfs-fsck cannot fix.\n", []spec.CheckFinding{{What: fsckUnnamed, Count: 1}}, fsckNeedsHelp,
		},
		"what it can't repair": {
			fsckBegins + "* Checking: Duplicated chunks ...\n>>> Found duplicated Chunks for ID 1-2-3\n   * Found on target 101\n   * Found on target 201\n" +
				">>> Found duplicated Chunks for ID 4-5-6\nFound errors beegfs-fsck cannot fix. Please consult the log for more information.\n",
			[]spec.CheckFinding{{What: "Duplicated chunks", Count: 1}, {What: "Duplicated chunks", Count: 1}}, fsckNeedsHelp,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			answer, err := ReadFsck([]byte(c.said))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer).To(Equal(spec.CheckAnswer{Done: true, Findings: c.found, Message: c.says}))
		})
	}
}

func TestAnUnfinishedFsckIsNoAnswer(t *testing.T) {
	for _, said := range []string{"", fsckBegins, fsckBegins + "* Checking: Dangling directory entry ...\n>>> Found 3 errors. Detailed",
		"At least one meta or storage target is in NEEDS_RESYNC state. To prevent interference between fsck and resync operations, fsck will abort now.\n",
		"Another instance of beegfs-fsck is still running or was aborted.\n"} {
		g := NewWithT(t)
		answer, err := ReadFsck([]byte(said))
		g.Expect(err).To(MatchError(ContainSubstring("beegfs-fsck ended without a result")), said)
		g.Expect(answer).To(Equal(spec.CheckAnswer{}))
	}
}
