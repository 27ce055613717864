package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The statistics are written as ModeResyncStats.cpp of 7.4.6 and stats.go of 8.3.1 print them.
const (
	stats7 = "Job state: STATE\nJob start time: Sat Nov 28 12:00:00 2026\nJob end time: Sat Nov 28 12:01:00 2026\n# of discovered dirs: 3\n" +
		"# of discovered files: 9\n# of dir sync candidates: 3\n# of file sync candidates: 9\n# of synced dirs: 3\n# of synced files: 9\n" +
		"# of dir sync errors: 0\n# of file sync errors: 0\n"
	meta7 = "Job state: STATE\n# of discovered dirs: 3\n# of discovery errors: 0\n# of synced dirs: 3\n# of synced files: 9\n# of dir sync errors: 0\n" +
		"# of file sync errors: 0\n# of client sessions to sync: 2\n# of synced client sessions: 2\nsession sync error: No\n" +
		"# of modification objects synced: 1\n# of modification sync errors: 0\n"
	stats8 = "Status\n------\nJob State: STATE\nStart Time: 2026-11-28T12:00:00Z\nEnd Time: 2026-11-28T12:01:00Z\n\nDiscovery Results\n-----------------\n" +
		"Files Discovered: 9\nDirectories Discovered: 3\n\nSync candidates\n---------------\nFiles Matched: 9\nDirectories Matched: 3\n\nSync Results\n" +
		"------------\nFiles Synced: 9\nDirectories Synced: 3\n\nError Summary\n-------------\nFile Errors: 0\nDirectory Errors: 0\n"
	meta8 = "Status\n------\nJob State: STATE\n\nSession Sync Details\n--------------------\nSessions to Sync: 2\nSynced: 2\nSession Sync Errors: false\n"
)

func TestAResyncIsASuccessOnlyWithoutErrors(t *testing.T) {
	for name, c := range map[string]struct{ of, state, old, new, failed string }{
		"7, a success":                      {of: stats7, state: "Completed successfully"},
		"7, none since the server started":  {of: stats7, state: "Not started"},
		"7, still running":                  {of: stats7, state: "Running", old: "file sync errors: 0", new: "file sync errors: 2"},
		"7, aborted":                        {of: stats7, state: "Interrupted", failed: "Interrupted"},
		"7, failed":                         {of: stats7, state: "Failed", failed: "Failed"},
		"7, with errors":                    {of: stats7, state: "Completed with errors", failed: "Completed with errors"},
		"7, a success with counted errors":  {of: stats7, state: "Completed successfully", old: "dir sync errors: 0", new: "dir sync errors: 2", failed: "dir sync errors: 2"},
		"7, metadata":                       {of: meta7, state: "Completed successfully"},
		"7, metadata with a failed session": {of: meta7, state: "Completed successfully", old: "error: No", new: "error: Yes", failed: "session sync error: Yes"},
		"8, a success":                      {of: stats8, state: "Success"},
		"8, none since the server started":  {of: stats8, state: "Not-started"},
		"8, aborted":                        {of: stats8, state: "Interrupted", failed: "Interrupted"},
		"8, failed":                         {of: stats8, state: "Failure", failed: "Failure"},
		"8, with errors":                    {of: stats8, state: "Errors", failed: "Errors"},
		"8, a success with counted errors":  {of: stats8, state: "Success", old: "File Errors: 0", new: "File Errors: 1", failed: "File Errors: 1"},
		"8, metadata":                       {of: meta8, state: "Success"},
		"8, metadata with a failed session": {of: meta8, state: "Success", old: "Errors: false", new: "Errors: true", failed: "Session Sync Errors: true"},
		"an answer in another form":         {of: "STATE", state: "unknown"},
	} {
		output := strings.Replace(strings.Replace(c.of, "STATE", c.state, 1), c.old, c.new, 1)
		NewWithT(t).Expect(resyncFailure(output)).To(Equal(c.failed), name)
	}
}

func TestABuddyWhoseLastResyncFailedIsNotGoodAndFewGroupsAreAskedAtOnce(t *testing.T) {
	for version, c := range map[string]struct{ failed, question string }{
		"7.4.6": {strings.Replace(stats7, "STATE", "Interrupted", 1), "--resyncstats --nodetype=storage --mirrorgroupid=1"},
		"8.3.1": {strings.Replace(stats8, "STATE", "Interrupted", 1), "mirror resync stats s:1 --mount=none"},
	} {
		g := NewWithT(t)
		later := New(version, "10.78.0.1:9110").(backend.LaterQuestions)
		failed, silent, asked := map[string]bool{}, false, []string{}
		round := func(change func(s *backend.State)) []string {
			state := backend.State{}
			for id := int32(1); id <= 3; id++ {
				state.Mirrors = append(state.Mirrors, backend.Mirror{Role: v1alpha1.RoleStorage, ID: id, Primary: 10 * id, Secondary: 10*id + 1})
				for _, target := range []int32{10 * id, 10*id + 1} {
					state.Targets = append(state.Targets, backend.Target{Role: v1alpha1.RoleStorage, ID: target, Online: true, Consistency: Good})
				}
			}
			if change != nil {
				change(&state)
			}
			asked = nil
			later.Later(&state, func(argv []string, limit time.Duration) ([]byte, error) {
				g.Expect(limit).To(Equal(serverLimit))
				line := strings.Join(argv, " ")
				asked = append(asked, line)
				switch {
				case silent:
					return nil, errors.New("no answer")
				case failed[c.question] && strings.Contains(line, c.question):
					return []byte(c.failed), nil
				}
				return []byte(strings.Replace(c.failed, "Interrupted", "Success", 1)), nil
			})
			var notGood []string
			for i := range state.Targets {
				if s := state.Targets[i].Consistency; s != Good {
					notGood = append(notGood, s)
				}
			}
			return notGood
		}
		failed[c.question] = true
		const says = "Good, although its last resync was no success (Interrupted)"
		g.Expect(round(nil)).To(HaveExactElements(says))
		g.Expect(asked).To(HaveLen(resyncsAtOnce))
		g.Expect(asked[0]).To(ContainSubstring(c.question))
		g.Expect(round(nil)).To(HaveExactElements(says), "it is remembered")
		g.Expect(asked[0]).To(ContainSubstring(strings.Replace(c.question, "1", "3", 1)), "the group that was not asked yet is asked first")
		silent = true
		g.Expect(round(nil)).To(HaveExactElements(says), "no answer is no success")
		g.Expect(asked).To(HaveLen(1), "a server that does not answer is not asked twice in a round")
		silent, failed[c.question] = false, false
		g.Expect(round(func(s *backend.State) { s.Targets[1].Consistency = Behind })).To(HaveExactElements(Behind), "it is resynced")
		g.Expect(strings.Join(asked, "\n")).NotTo(ContainSubstring(c.question))
		g.Expect(round(nil)).To(BeEmpty(), "this resync has succeeded")
		g.Expect(asked[0]).To(ContainSubstring(c.question))
	}
}
