package decision

import (
	"fmt"
	"strconv"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
)

const (
	// dropTimeout is how long the agents may take to drop caches.
	dropTimeout = time.Minute
	// DropFresh is how long dropped caches count as empty. An operator that was away longer has them dropped again.
	DropFresh = 5 * time.Minute
)

// decideDrop makes the agents drop the caches before a turn; it does not wait if they have done so.
func decideDrop(w *scope.Scope, d Decision) (Decision, bool) {
	d.Reason, d.Message = v1alpha1.ReasonDroppingCaches, "dropping caches before "+w.Current(d.Turn)
	d.Running, d.After = false, scope.Soon
	switch at := w.Dropped; {
	case at.Request == "":
		d.Action, d.Request = DropCaches, w.RequestOf(d.Turn)+strconv.FormatInt(w.Now.Unix(), 10)
	case !at.Everyone:
		d.Action, d.Request = DropCaches, at.Request
	case at.Failed != "":
		d.Action, d.Verdict = GiveUp, "was not run: "+at.Failed
	case len(at.Waiting) == 0:
		return d, false
	case w.Now.Sub(at.Asked) > dropTimeout:
		d.Action = GiveUp
		d.Verdict = fmt.Sprintf("was not run: the caches of %s were not dropped within %s; look at the agents of these nodes",
			text.SentenceList(at.Waiting), dropTimeout)
	}
	return d, true
}
