package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The primary of a buddy group keeps the statistics of its last resync in memory, until it restarts. If that resync did not succeed, the
// secondary is Good only because a person has set this state, and it may lack files of its buddy.

// resyncsAtOnce is how many buddy groups are asked in one round of a probe, because each question starts a program and reaches a server.
const resyncsAtOnce = 2

// group names a buddy group.
type group struct {
	role v1alpha1.Role
	id   int32
}

// resync is the last answer about a group: when it was asked, and why the last resync was no success, empty if it was or if there was none.
type resync struct {
	round  int
	failed string
}

// resyncs holds the last answers about the groups whose secondary is Good. A group is forgotten when its secondary is not Good, so that it
// is asked again first.
type resyncs struct {
	round int
	of    map[group]resync
}

// Later implements backend.LaterQuestions. It asks those groups first that were asked the longest time ago, and marks the secondaries of
// all groups whose last resync failed.
func (p *prober) Later(state *backend.State, ask func(argv []string, limit time.Duration) ([]byte, error)) {
	r := &p.resyncs
	r.round++
	if r.of == nil {
		r.of = map[group]resync{}
	}
	good, ids := map[group]*backend.Target{}, []group{}
	for _, m := range state.Mirrors {
		primary, secondary := targetIn(state, m.Role, m.Primary), targetIn(state, m.Role, m.Secondary)
		if primary != nil && primary.Online && secondary != nil && secondary.Consistency == Good {
			good[group{m.Role, m.ID}] = secondary
			ids = append(ids, group{m.Role, m.ID})
		}
	}
	for id := range r.of {
		if good[id] == nil {
			delete(r.of, id)
		}
	}
	slices.SortFunc(ids, func(a, b group) int {
		return cmp.Or(cmp.Compare(r.of[a].round, r.of[b].round), cmp.Compare(a.role, b.role), cmp.Compare(a.id, b.id))
	})
	for _, id := range ids[:min(len(ids), resyncsAtOnce)] {
		answer := resync{round: r.round, failed: r.of[id].failed}
		output, err := ask(p.resyncStats(id), serverLimit)
		if err == nil {
			answer.failed = resyncFailure(string(output))
		}
		r.of[id] = answer
		if err != nil {
			break // the next server may take as long
		}
	}
	for id, secondary := range good {
		if failed := r.of[id].failed; failed != "" {
			secondary.Consistency = "Good, although its last resync was no success (" + failed + ")"
		}
	}
}

func targetIn(state *backend.State, role v1alpha1.Role, id int32) *backend.Target {
	i := slices.IndexFunc(state.Targets, func(t backend.Target) bool { return t.Role == role && t.ID == id })
	if i < 0 {
		return nil
	}
	return &state.Targets[i]
}

// resyncStats asks for the statistics of the last resync of a group.
func (p *prober) resyncStats(g group) []string {
	prefix, nodeType := "s:", "storage"
	if g.role == v1alpha1.RoleMetadata {
		prefix, nodeType = "m:", "meta"
	}
	if Is8(p.version) {
		argv := []string{programTool, "mirror", "resync", "stats", prefix + fmt.Sprint(g.id), "--mount=none"}
		return append(argv, connection8(p.address)...)
	}
	id := fmt.Sprintf("--mirrorgroupid=%d", g.id)
	return []string{programCtl, "--resyncstats", "--nodetype=" + nodeType, id, "--cfgFile=" + ClientConfig}
}

// The lines of the statistics (ModeResyncStats.cpp of 7.4.6, ctl/internal/cmd/buddygroup/resync/stats.go of 8.3.1).
var (
	resyncState  = regexp.MustCompile(`(?m)^(?:Job state|Job State): (.+)$`)
	resyncErrors = regexp.MustCompile(`(?mi)^(?:# of )?([a-z ]+errors?): ([0-9]+|yes|true)$`)
	// unsuccessful are the words of both tools for a resync that has ended, and not well.
	unsuccessful = []string{"Interrupted", "Failed", "Completed with errors", "Failure", "Errors"}
)

// resyncFailure returns why the last resync was no success, empty if it was, if it still runs, or if there was none.
func resyncFailure(output string) string {
	found := resyncState.FindStringSubmatch(output)
	if len(found) == 0 || slices.Contains([]string{"Not started", "Not-started", "Running"}, found[1]) {
		return ""
	}
	if slices.Contains(unsuccessful, found[1]) {
		return found[1]
	}
	for _, line := range resyncErrors.FindAllStringSubmatch(output, -1) {
		if n, err := strconv.ParseUint(line[2], 10, 64); err != nil || n > 0 {
			return line[1] + ": " + line[2]
		}
	}
	return ""
}
