package backend

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
)

// MetadataCopy is a copy of the metadata that a running server is to keep.
type MetadataCopy struct {
	// Source is where it lies, on which node.
	Source RecoverySource
	// Follows identifies the starts of the servers since which the copy follows the metadata. It changes when a server restarts. It is
	// empty while the server does not follow, as the filesystem itself says, and Away says why not.
	Follows, Away string
	// Leaves is true while somebody wants to take the node away: no pod is to come there, and the copy is read later.
	Leaves bool
	// Fetched is when the server was last due to get all of the metadata, by its own timetable; zero where it has none.
	Fetched time.Time
	// Pod is that of the server, and Outdated is true while it is to be restarted to take up a change.
	Pod      types.NamespacedName
	Outdated bool
}

// CopyView is all that DecideCopies looks at.
type CopyView struct {
	FileSystem *v1alpha1.FileSystem
	// Recorded is status.metadataCopies as the API server has it.
	Recorded []v1alpha1.MetadataCopyStatus
	Copies   []MetadataCopy
	Jobs     []RecoveryJobFacts
	// Serves is true when the filesystem itself answers: nothing is known of who follows otherwise.
	Serves bool
	Now    time.Time
}

// CopyDecision is what is to be done about copies of the metadata.
type CopyDecision struct {
	// Start are the Jobs to make, which is one at most, and Remove the names of those that are of no use any more.
	Start  []RecoveryRequest
	Remove []string
	// Copies is status.metadataCopies.
	Copies []v1alpha1.MetadataCopyStatus
	// Fetch are the servers that are to be restarted, so that they fetch their copies again. None of them is a loss to anybody.
	Fetch []Restart
	// Condition is the condition MetadataCopies: ReasonCopiesProven is true, ReasonCopiesUnread unknown, and another reason false. It is
	// absent while the reason is empty.
	Condition Problem
}

const (
	// proofLife is how long a proof is believed: a copy is read at least so often. It is less than a day, because several wait for each other.
	proofLife = 23 * time.Hour
	// fetchTime is how long a server that follows again may take to fetch all of the metadata. A copy that is not whole yet can't be read.
	fetchTime = 5 * time.Minute
	// fetchLate is how long after its time a fetch by the timetable may go on.
	fetchLate = 10 * time.Minute
	// retrySoon is how soon a copy is read again that could not be read and may just be changing.
	retrySoon = 30 * time.Second
	// maxFailures bounds a count, and certain is how often a program refuses a copy until that is believed: its server writes it meanwhile.
	maxFailures, certain = 1000, 2
	// mostFetches is how often a copy is fetched again at once, and fetchAgain how long is waited before each further time.
	mostFetches, fetchAgain = 3, 6 * time.Hour
	// maxCopyMessage is the limit of MetadataCopyStatus.
	maxCopyMessage = 256
)

// DecideCopies decides which copy of the metadata is read back now, one at a time, and what is known of each. A copy is due when its server
// follows again, when it has fetched all of the metadata, when its proof is a day old, and when it was read in vain a while ago. That it is
// read is on record before its Job is made, whose name follows from the record, and what a Job says is on record before it is removed.
func DecideCopies(v CopyView) CopyDecision {
	var d CopyDecision
	var wanted []string
	reading := false
	for i := range v.Copies[:min(len(v.Copies), v1alpha1.MaxMetadataCopies)] {
		c := &v.Copies[i]
		s := v.known(c)
		job := copyJobName(v.FileSystem, s)
		if s.Reading != nil {
			wanted = append(wanted, job)
			at := slices.IndexFunc(v.Jobs, func(j RecoveryJobFacts) bool { return j.Name == job })
			switch {
			case at < 0 && (!v.Serves || s.Follows != c.Follows), c.Leaves && (at < 0 || !v.Jobs[at].Ended):
				s.Reading, wanted = nil, wanted[:len(wanted)-1]
			case at < 0:
				d.Start = append(d.Start, RecoveryRequest{Job: job, Source: c.Source})
			case v.Jobs[at].Ended:
				v.take(s, c, v.Jobs[at])
			}
		}
		if v.Serves {
			v.follow(s, c)
		}
		if why := v.fetches(s, c); why != "" {
			d.Fetch = append(d.Fetch, Restart{Pod: c.Pod, Why: why, Safe: true})
		}
		reading = reading || s.Reading != nil
		d.Copies = append(d.Copies, *s)
	}
	slices.SortFunc(d.Copies, func(a, b v1alpha1.MetadataCopyStatus) int { return cmp.Compare(a.Node, b.Node) })
	for _, j := range v.Jobs {
		if !slices.Contains(wanted, j.Name) {
			d.Remove = append(d.Remove, j.Name)
		}
	}
	if !reading && v.Serves {
		v.read(d.Copies, v.Copies)
	}
	d.Condition = copiesCondition(d.Copies, v.Now)
	return d
}

func (v *CopyView) stamp() *metav1.Time {
	return new(metav1.NewTime(v.Now.UTC().Truncate(time.Second)))
}

// known is what is on record of a copy.
func (v *CopyView) known(c *MetadataCopy) *v1alpha1.MetadataCopyStatus {
	i := slices.IndexFunc(v.Recorded, func(s v1alpha1.MetadataCopyStatus) bool { return s.Node == c.Source.Node })
	if i < 0 {
		return &v1alpha1.MetadataCopyStatus{
			Node: c.Source.Node, Result: v1alpha1.MetadataCopyUnread, Since: *v.stamp(), Message: "it was not read back yet",
		}
	}
	return v.Recorded[i].DeepCopy()
}

// becomes notes what a copy is from now on.
func (v *CopyView) becomes(s *v1alpha1.MetadataCopyStatus, result v1alpha1.MetadataCopyResult, message string) {
	if s.Result != result {
		s.Result, s.Since = result, *v.stamp()
	}
	s.Message = v1alpha1.Cut(message, maxCopyMessage)
}

// follow notes whether the server of a copy follows, and since when. One that follows again may lack what was changed before.
func (v *CopyView) follow(s *v1alpha1.MetadataCopyStatus, c *MetadataCopy) {
	switch {
	case c.Follows == "":
		s.Follows, s.Followed, s.Failures, s.Retry = "", nil, 0, nil
		v.becomes(s, v1alpha1.MetadataCopyUnread, "its server does not follow: "+c.Away)
	case s.Follows != c.Follows:
		s.Follows, s.Followed, s.Failures, s.Retry = c.Follows, v.stamp(), 0, nil
		if s.Result != v1alpha1.MetadataCopyRefused { // it stays refused until it was read
			v.becomes(s, v1alpha1.MetadataCopyUnread, "it was not read back since its server follows")
		}
	}
}

// take takes what a Job says of a copy.
func (v *CopyView) take(s *v1alpha1.MetadataCopyStatus, c *MetadataCopy, j RecoveryJobFacts) {
	s.Reading, s.Checked, s.Job = nil, v.stamp(), j.Name
	if s.Follows != c.Follows {
		return // it says nothing of what follows now
	}
	if j.Answer != nil && len(j.Answer.Found) > 0 {
		found := j.Answer.Found[0]
		s.Proven, s.Version, s.ID = v.stamp(), max(0, found.Version), v1alpha1.Cut(found.ID, maxRecoveryID)
		s.DataTime = nil
		if when, err := time.Parse(time.RFC3339, found.Time); err == nil {
			s.DataTime = new(metav1.NewTime(when.UTC().Truncate(time.Second)))
		}
		s.Failures, s.Retry, s.Fetches, s.Fetched = 0, nil, 0, nil
		v.becomes(s, v1alpha1.MetadataCopyProven, "")
		return
	}
	after := retrySoon
	if v.settled(s) {
		if s.Failures = min(s.Failures+1, maxFailures); s.Failures >= certain {
			after = retryAfter(s.Failures - certain + 1)
		}
	}
	s.Retry = new(metav1.NewTime(s.Checked.Add(after)))
	why := cmp.Or(j.Message, "the Job has ended and left no answer")
	if j.Answer != nil {
		why = cmp.Or(j.Answer.Message, j.Message, "its Job says nothing")
	}
	switch {
	case s.Result == v1alpha1.MetadataCopyRefused:
		v.becomes(s, s.Result, why)
	case s.Result == v1alpha1.MetadataCopyProven && s.Failures < certain: // its server may have begun another file
	case j.Answer == nil, j.Answer.Unread:
		v.becomes(s, v1alpha1.MetadataCopyUnread, "it could not be looked at: "+why)
	case v.settled(s) && s.Failures >= certain:
		v.becomes(s, v1alpha1.MetadataCopyRefused, why)
	default:
		v.becomes(s, v1alpha1.MetadataCopyUnread, "it was not read back yet, and its server may still fetch it: "+why)
	}
}

// settled is true for a copy whose server has had the time to fetch all of the metadata.
func (v *CopyView) settled(s *v1alpha1.MetadataCopyStatus) bool {
	return s.Followed != nil && v.Now.Sub(s.Followed.Time) >= fetchTime
}

// read notes that one of the copies that are due is read: the one that was read the longest time ago.
func (v *CopyView) read(known []v1alpha1.MetadataCopyStatus, copies []MetadataCopy) {
	next := -1
	for i := range known {
		s := &known[i]
		at := slices.IndexFunc(copies, func(c MetadataCopy) bool { return c.Source.Node == s.Node })
		if s.Follows == "" || copies[at].Leaves || !v.due(s, copies[at].Fetched) {
			continue
		}
		if next < 0 || s.Checked == nil && known[next].Checked != nil ||
			s.Checked != nil && known[next].Checked != nil && s.Checked.Before(known[next].Checked) {
			next = i
		}
	}
	if next >= 0 {
		known[next].Reading = v.stamp()
	}
}

// due is true for a copy that is to be read. Fetched is when its server was last due to fetch all of the metadata.
func (v *CopyView) due(s *v1alpha1.MetadataCopyStatus, fetched time.Time) bool {
	switch {
	case s.Retry != nil:
		return !v.Now.Before(s.Retry.Time)
	case s.Result != v1alpha1.MetadataCopyProven, s.Proven == nil:
		return true
	}
	fetched = fetched.Add(fetchLate)
	return v.Now.Sub(s.Proven.Time) >= proofLife || s.Proven.Time.Before(fetched) && !v.Now.Before(fetched)
}

// fetches says why the server of a copy is restarted now, so that it fetches the copy again; empty while it is not. A server that is to
// take up a change may be unable to follow without it: no guard holds it up while its copy is not proven.
func (v *CopyView) fetches(s *v1alpha1.MetadataCopyStatus, c *MetadataCopy) string {
	if s.Follows == "" || s.Reading != nil || s.Failures < certain || !v.settled(s) {
		return ""
	}
	if c.Outdated {
		return "its copy of the metadata is not proven: " + s.Message
	}
	if s.Result != v1alpha1.MetadataCopyRefused {
		return ""
	}
	if begun := s.Fetched != nil && !s.Fetched.Before(s.Followed); !begun {
		if s.Fetches >= mostFetches && s.Fetched != nil && v.Now.Sub(s.Fetched.Time) < fetchAgain {
			return ""
		}
		s.Fetches, s.Fetched = min(s.Fetches+1, maxFailures), v.stamp()
	}
	return "its copy of the metadata can't be read, and it fetches it again when it starts: " + s.Message
}

// copiesCondition is the condition MetadataCopies.
func copiesCondition(copies []v1alpha1.MetadataCopyStatus, now time.Time) Problem {
	if len(copies) == 0 {
		return Problem{}
	}
	var proven, unread, lacking []string
	for i := range copies {
		s := &copies[i]
		since := s.Since.UTC().Format(time.RFC3339)
		switch {
		case s.Result == v1alpha1.MetadataCopyProven:
			proven = append(proven, fmt.Sprintf("%s (read back at %s)", s.Node, s.Proven.UTC().Format(time.RFC3339)))
		case s.Result == v1alpha1.MetadataCopyRefused && s.Fetches > 0:
			lacking = append(lacking, fmt.Sprintf("%s (since %s, fetched again %d times: %s)", s.Node, since, s.Fetches, s.Message))
		case s.Result == v1alpha1.MetadataCopyRefused, s.Follows == "" && now.Sub(s.Since.Time) >= fetchTime:
			lacking = append(lacking, fmt.Sprintf("%s (since %s: %s)", s.Node, since, s.Message))
		default:
			unread = append(unread, fmt.Sprintf("%s (since %s: %s)", s.Node, since, s.Message))
		}
	}
	count := fmt.Sprintf("%d of %d copies of the metadata are proven", len(proven), len(copies))
	switch {
	case len(lacking) > 0:
		return Problem{v1alpha1.ReasonCopiesUnproven, count + "; look at the metaloggers on " + List(append(lacking, unread...))}
	case len(unread) > 0:
		return Problem{v1alpha1.ReasonCopiesUnread, count + "; not proven yet: " + List(unread)}
	default:
		return Problem{v1alpha1.ReasonCopiesProven, count + ": " + List(proven)}
	}
}

// WaitsForCopy says what a step that takes the server of the metadata away waits for, in words that follow "when "; empty when for nothing.
// It waits for one copy that is proven, on another node than that, where one is named. It does not wait where no server follows: then the
// filesystem is not well, and nothing could be proven. A person goes on without a copy by the word for a backup.
func WaitsForCopy(fs *v1alpha1.FileSystem, except string) string {
	var why []string
	for i := range fs.Status.MetadataCopies {
		s := &fs.Status.MetadataCopies[i]
		switch {
		case s.Node == except || s.Follows == "":
		case s.Result == v1alpha1.MetadataCopyProven:
			return ""
		default:
			why = append(why, fmt.Sprintf("%s (%s)", s.Node, s.Message))
		}
	}
	if len(why) == 0 || fs.Spec.Updates.UpgradeWithoutBackup == fs.Spec.Version {
		return ""
	}
	return fmt.Sprintf("a copy of the metadata is proven (to do without, set spec.updates.upgradeWithoutBackup to %q); now none is: %s",
		fs.Spec.Version, List(why))
}

func copyJobName(fs *v1alpha1.FileSystem, s *v1alpha1.MetadataCopyStatus) string {
	if s.Reading == nil {
		return ""
	}
	return ChildName(fs, "copy-"+Hash(s.Node, s.Follows, s.Reading.Unix()))
}
