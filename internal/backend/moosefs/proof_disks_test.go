//go:build disks

package moosefs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/recovery"
)

func TestTheCopyOfAMetaloggerIsReadBackWhileProgramsGoOn(t *testing.T) {
	m := startMaster(t, fresh(t))
	own := m.follow()
	m.mounted(func(path string) {
		p := startProgram(path)
		p.goesOn(m.WithT)
		var last int64
		for range 4 {
			answer, err := recovery.Run(t.Context(), lookingAt(t, ofMetalogger(own)))
			m.Expect(err).NotTo(HaveOccurred(), "the metalogger writes its log meanwhile")
			m.Expect(answer.Found).To(HaveLen(1))
			m.Expect(answer.Found[0].Version).To(BeNumerically(">=", last))
			last = answer.Found[0].Version
			p.goesOn(m.WithT)
		}
		m.Expect(last).To(BeNumerically(">", 20))
		close(p.end)
		<-p.done
	})
}

// hole removes the change in the middle of a metalogger's log.
func (m *master) hole(own string) (kept string) {
	m.t.Helper()
	log := filepath.Join(own, "data", "changelog_ml.0.mfs")
	content, err := os.ReadFile(log)
	m.Expect(err).NotTo(HaveOccurred())
	lines := strings.SplitAfter(string(content), "\n")
	m.Expect(len(lines)).To(BeNumerically(">", 10))
	kept = strings.Join(append(lines[:5:5], lines[6:]...), "")
	m.Expect(os.WriteFile(log, []byte(kept), 0o640)).To(Succeed())
	return kept
}

func TestARestartedMetaloggerFetchesACopyWithAHoleAgainAndKeepsTheOlderOne(t *testing.T) {
	data := fresh(t)
	m := startMaster(t, data)
	makeDirectories(m, "before", 5)
	m.stop() // the stop saves the metadata
	m = startMasterAt(t, data, m.port)
	own := t.TempDir()
	stop := m.followIn(own)
	made := makeDirectories(m, "some", 20)
	m.followed(own)
	stop()
	kept := m.hole(own)
	_, err := recovery.Run(t.Context(), lookingAt(t, ofMetalogger(own)))
	m.Expect(err).To(MatchError(ContainSubstring("mfsmaster does not read it")))

	m.followIn(own)
	made = append(made, makeDirectories(m, "later", 5)...)
	m.followed(own)
	m.Expect(filepath.Glob(filepath.Join(own, "data", "metadata_ml.mfs.back.1"))).To(HaveLen(1), "the older metadata stays")
	log, err := os.ReadFile(filepath.Join(own, "data", "changelog_ml.0.mfs"))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(string(log)).To(HavePrefix(kept), "and so do the changes")
	o := lookingAt(t, ofMetalogger(own))
	answer, err := recovery.Run(t.Context(), o)
	m.Expect(err).NotTo(HaveOccurred(), "until the master saves its metadata again")
	to := filepath.Join(t.TempDir(), "metadata")
	m.lose()
	_, err = recovery.Run(t.Context(), restoring(o, answer.Found[0], to))
	m.Expect(err).NotTo(HaveOccurred())
	m.Expect(names(t, to)).To(ContainElements(made...))
}
