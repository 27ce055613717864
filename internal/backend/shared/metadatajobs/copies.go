package metadatajobs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// CopyView is the input of DecideCopies.
type CopyView struct {
	FileSystem *v1alpha1.FileSystem
	// Recorded is status.metadataCopies as stored in the API server.
	Recorded []v1alpha1.MetadataCopyStatus
	Copies   []backend.MetadataCopy
	Jobs     []RecoveryJobFacts
	// Serves is true if the filesystem itself answers. Otherwise it is unknown which servers follow.
	Serves bool
	// Version is the version of the running metadata; 0 if it is unknown.
	Version int64
	Now     time.Time
}

// CopyDecision is the result of DecideCopies.
type CopyDecision struct {
	// Start holds the Jobs to make, at most one. Remove holds the names of the Jobs that are no longer needed.
	Start  []backend.RecoveryRequest
	Remove []string
	// Copies is the new status.metadataCopies.
	Copies []v1alpha1.MetadataCopyStatus
	// Fetch holds the servers to restart so that they fetch their copies again. No program waits for any of them.
	Fetch []backend.Restart
	// Condition is the condition MetadataCopies. It is true with ReasonCopiesProven, unknown with ReasonCopiesUnread, and false with any other
	// reason. It is absent while the reason is empty.
	Condition backend.Problem
}

const (
	// proofLife is how long a proof counts, so that every copy is read at least this often. It is less than a day, because several copies are
	// read one after the other.
	proofLife = 23 * time.Hour
	// proofAge is the age at which a proof no longer counts. It is proofLife, and the time to read MaxMetadataCopies copies one after the
	// other, half an hour each at most.
	proofAge = 25 * time.Hour
	// fetchTime is how long a server that follows again may take to fetch all of the metadata. An incomplete copy can't be read.
	fetchTime = 5 * time.Minute
	// fetchLate is how long a fetch may still run after its scheduled time.
	fetchLate = 10 * time.Minute
	// retrySoon is the delay before a copy is read again that could not be read and may just have been changing.
	retrySoon = 30 * time.Second
	// maxFailures bounds a count. certain is how often a program must refuse a copy before the refusal counts, because the server writes the
	// copy meanwhile.
	maxFailures, certain = 1000, 2
	// mostFetches is how many times a copy is fetched again without a delay, and fetchAgain the delay before each further fetch.
	mostFetches, fetchAgain = 3, 6 * time.Hour
	// fewBreaks is how often the server of a copy may stop following before each further read waits until the server has followed for a while.
	// The wait is firstQuiet, doubled with each further break, at most quietPeriod. After quietPeriod without a break, the count begins again.
	fewBreaks               = 3
	firstQuiet, quietPeriod = 10 * time.Minute, time.Hour
	// clockError is how far the clocks of two managers may differ.
	clockError = 5 * time.Minute
	// maxCopyMessage is the limit of MetadataCopyStatus.
	maxCopyMessage = 256
)

// DecideCopies decides which copy of the metadata is read back now, one at a time, and returns the state of each. A copy is read when its
// server follows again, when its server has fetched all of the metadata, when its proof is a day old, and some time after a read that
// failed. A read is recorded before its Job is made, and the Job's name follows from the record. The result of a Job is recorded before the
// Job is removed.
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
				s.Reading, s.ReadingVersion, wanted = nil, 0, wanted[:len(wanted)-1]
			case at < 0:
				d.Start = append(d.Start, backend.RecoveryRequest{Job: job, Source: c.Source})
			case v.Jobs[at].Ended:
				v.take(s, c, v.Jobs[at])
			}
		}
		if v.Serves && v.follow(s, c) {
			wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == job })
		}
		v.expire(s)
		if why := v.fetches(s, c); why != "" {
			d.Fetch = append(d.Fetch, backend.Restart{Pod: c.Pod, Why: why, Safe: true})
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

// known returns the record of a copy.
func (v *CopyView) known(c *backend.MetadataCopy) *v1alpha1.MetadataCopyStatus {
	i := slices.IndexFunc(v.Recorded, func(s v1alpha1.MetadataCopyStatus) bool { return s.Node == c.Source.Node })
	if i < 0 {
		return &v1alpha1.MetadataCopyStatus{
			Node: c.Source.Node, Result: v1alpha1.MetadataCopyUnread, Since: *v.stamp(), Message: "it was not read back yet",
		}
	}
	s := v.Recorded[i].DeepCopy()
	v.date(s)
	return s
}

// date moves the times of a record that are in the future to the past, with their distances. The clock was set back then, or another
// manager with another clock has written them. Otherwise nothing would be read or fetched before the clock reaches them.
func (v *CopyView) date(s *v1alpha1.MetadataCopyStatus) {
	times := []*metav1.Time{&s.Since, s.Followed, s.BreaksSince, s.Checked, s.Fetched}
	var ahead time.Duration
	for _, t := range times {
		if t != nil {
			ahead = max(ahead, t.Sub(v.stamp().Time))
		}
	}
	if ahead == 0 {
		return
	}
	for _, t := range append(times, s.Retry) {
		if t != nil {
			*t = metav1.NewTime(t.Add(-ahead))
		}
	}
}

// becomes records the new state of a copy.
func (v *CopyView) becomes(s *v1alpha1.MetadataCopyStatus, result v1alpha1.MetadataCopyResult, message string) {
	if s.Result != result {
		s.Result, s.Since = result, *v.stamp()
	}
	s.Message = v1alpha1.Cut(message, maxCopyMessage)
}

// follow records whether the server of a copy follows, and since when. A server that follows again may lack earlier changes, so a read of
// the copy that is under way is stopped. It returns true in this case.
func (v *CopyView) follow(s *v1alpha1.MetadataCopyStatus, c *backend.MetadataCopy) (stopped bool) {
	if s.Follows == c.Follows {
		if s.Follows != "" && s.Breaks > 0 && v.followed(s) >= quietPeriod {
			s.Breaks, s.BreaksSince = 0, nil
		}
		if s.Follows == "" {
			v.becomes(s, v1alpha1.MetadataCopyUnread, v.unread(s, "its server does not follow: "+c.Away))
		}
		return false
	}
	if s.Follows != "" && s.Followed != nil && c.Began.Before(s.Followed.Time) && !v.fetching(s) {
		if s.Breaks++; s.Breaks == 1 {
			s.BreaksSince = v.stamp()
		}
		s.Breaks = min(s.Breaks, maxFailures)
	}
	stopped = s.Reading != nil
	s.Reading, s.ReadingVersion, s.Follows, s.Followed, s.Failures, s.Retry = nil, 0, c.Follows, v.stamp(), 0, nil
	switch {
	case c.Follows == "":
		s.Followed = nil
		v.becomes(s, v1alpha1.MetadataCopyUnread, v.unread(s, "its server does not follow: "+c.Away))
	case s.Result != v1alpha1.MetadataCopyRefused: // it stays refused until it was read
		v.becomes(s, v1alpha1.MetadataCopyUnread, v.unread(s, "it was not read back since its server follows"))
	}
	return stopped
}

// unread returns why a copy was not read: the given reason, or that its server stops following again and again.
func (v *CopyView) unread(s *v1alpha1.MetadataCopyStatus, why string) string {
	if restless(s) == "" {
		return why
	}
	return fmt.Sprintf("%s; it is read when its server has followed for %d minutes without a break", restless(s), int(wait(s).Minutes()))
}

// restless describes a server that stops following again and again; empty for one that does not.
func restless(s *v1alpha1.MetadataCopyStatus) string {
	if s.Breaks <= fewBreaks || s.BreaksSince == nil {
		return ""
	}
	return fmt.Sprintf("its server reconnects again and again, %d times since %s", s.Breaks, s.BreaksSince.UTC().Format(time.RFC3339))
}

// wait returns how long the server of a copy has to follow before the copy is read.
func wait(s *v1alpha1.MetadataCopyStatus) time.Duration {
	if s.Breaks <= fewBreaks {
		return 0
	}
	out := firstQuiet
	for i := int32(fewBreaks + 1); i < s.Breaks && out < quietPeriod; i++ {
		out *= 2
	}
	return min(out, quietPeriod)
}

// followed returns how long the server of a copy has followed without a break.
func (v *CopyView) followed(s *v1alpha1.MetadataCopyStatus) time.Duration {
	if s.Followed == nil {
		return 0
	}
	return v.Now.Sub(s.Followed.Time)
}

// fetching reports whether the operator has restarted the server of a copy since it follows.
func (v *CopyView) fetching(s *v1alpha1.MetadataCopyStatus) bool {
	return s.Fetched != nil && s.Followed != nil && !s.Fetched.Before(s.Followed)
}

// expire takes back a proof that is too old, as when no Job could read the copy again, or whose age is unknown because the clock was set
// back.
func (v *CopyView) expire(s *v1alpha1.MetadataCopyStatus) {
	switch {
	case s.Result != v1alpha1.MetadataCopyProven:
	case s.Proven == nil || v.Now.Sub(s.Proven.Time) >= proofAge:
		v.becomes(s, v1alpha1.MetadataCopyUnread, "it was last read back more than 25 hours ago")
	case s.Proven.Sub(v.Now) > clockError:
		v.becomes(s, v1alpha1.MetadataCopyUnread, "the time of its last proof is in the future, so that its age is unknown")
	}
}

// take records the result of a Job for a copy.
func (v *CopyView) take(s *v1alpha1.MetadataCopyStatus, c *backend.MetadataCopy, j RecoveryJobFacts) {
	began := s.ReadingVersion
	s.Reading, s.ReadingVersion, s.Checked, s.Job = nil, 0, v.stamp(), j.Name
	if s.Follows != c.Follows {
		return // the Job read an earlier state of the copy
	}
	if j.Answer != nil && len(j.Answer.Found) > 0 {
		found := j.Answer.Found[0]
		s.Proven, s.Version, s.ID = v.stamp(), max(0, found.Version), v1alpha1.Cut(found.ID, maxRecoveryID)
		s.DataTime, s.Behind = nil, nil
		if began > 0 {
			s.Behind = new(max(0, began-s.Version))
		}
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
		why = cmp.Or(j.Answer.Message, j.Message, "its Job printed no answer")
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

// settled reports whether the server of a copy has had the time to fetch all of the metadata.
func (v *CopyView) settled(s *v1alpha1.MetadataCopyStatus) bool {
	return s.Followed != nil && v.followed(s) >= fetchTime
}

// read records that one of the copies is read that have to be read: the one whose last read is the longest ago.
func (v *CopyView) read(known []v1alpha1.MetadataCopyStatus, copies []backend.MetadataCopy) {
	next := -1
	for i := range known {
		s := &known[i]
		at := slices.IndexFunc(copies, func(c backend.MetadataCopy) bool { return c.Source.Node == s.Node })
		if s.Follows == "" || copies[at].Leaves || !v.due(s, copies[at].Fetched) {
			continue
		}
		if next < 0 || s.Checked == nil && known[next].Checked != nil ||
			s.Checked != nil && known[next].Checked != nil && s.Checked.Before(known[next].Checked) {
			next = i
		}
	}
	if next >= 0 {
		known[next].Reading, known[next].ReadingVersion = v.stamp(), v.Version
	}
}

// due reports whether a copy has to be read. Fetched is when its server should last have fetched all of the metadata.
func (v *CopyView) due(s *v1alpha1.MetadataCopyStatus, fetched time.Time) bool {
	switch {
	case v.followed(s) < wait(s):
		return false
	case s.Retry != nil:
		return !v.Now.Before(s.Retry.Time)
	case s.Result != v1alpha1.MetadataCopyProven, s.Proven == nil:
		return true
	}
	fetched = fetched.Add(fetchLate)
	return v.Now.Sub(s.Proven.Time) >= proofLife || s.Proven.Time.Before(fetched) && !v.Now.Before(fetched)
}

// fetches returns why the server of a copy restarts now, so that it fetches the copy again; empty if it does not. A server that must
// restart for a change may be unable to follow before, so no guard delays it while its copy is not proven.
func (v *CopyView) fetches(s *v1alpha1.MetadataCopyStatus, c *backend.MetadataCopy) string {
	if s.Follows == "" || s.Reading != nil {
		return ""
	}
	if restless(s) != "" && s.Result == v1alpha1.MetadataCopyUnread && c.Outdated {
		return "its copy of the metadata is not proven: " + s.Message
	}
	if s.Failures < certain || !v.settled(s) {
		return ""
	}
	if c.Outdated {
		return "its copy of the metadata is not proven: " + s.Message
	}
	if s.Result != v1alpha1.MetadataCopyRefused {
		return ""
	}
	if !v.fetching(s) {
		if s.Fetches >= mostFetches && s.Fetched != nil && v.Now.Sub(s.Fetched.Time) < fetchAgain {
			return ""
		}
		s.Fetches, s.Fetched = min(s.Fetches+1, maxFailures), v.stamp()
	}
	return "its copy of the metadata can't be read, and it fetches it again when it starts: " + s.Message
}

// copiesCondition returns the condition MetadataCopies.
func copiesCondition(copies []v1alpha1.MetadataCopyStatus, now time.Time) backend.Problem {
	if len(copies) == 0 {
		return backend.Problem{}
	}
	var proven, unread, lacking []string
	count := 0
	for i := range copies {
		s := &copies[i]
		since := s.Since.UTC().Format(time.RFC3339)
		switch {
		case s.Result == v1alpha1.MetadataCopyProven:
			behind := ""
			if s.Behind != nil {
				behind = fmt.Sprintf(", %d changes behind", *s.Behind)
			}
			count++
			words := fmt.Sprintf("read back at %s%s", s.Proven.UTC().Format(time.RFC3339), behind)
			if again := restless(s); again != "" { // the condition must not change with each read
				lacking = append(lacking, fmt.Sprintf("%s (%s, but %s)", s.Node, words, again))
				continue
			}
			proven = append(proven, fmt.Sprintf("%s (%s)", s.Node, words))
		case s.Result == v1alpha1.MetadataCopyRefused && s.Fetches > 0:
			const words = "%s (since %s, fetched again %s, and neither the new copy nor the older one beside it is proven: %s)"
			lacking = append(lacking, fmt.Sprintf(words, s.Node, since, v1alpha1.Count(s.Fetches, "time", "times"), s.Message))
		case s.Result == v1alpha1.MetadataCopyRefused, restless(s) != "", s.Follows == "" && now.Sub(s.Since.Time) >= fetchTime:
			lacking = append(lacking, fmt.Sprintf("%s (since %s: %s)", s.Node, since, s.Message))
		default:
			unread = append(unread, fmt.Sprintf("%s (since %s: %s)", s.Node, since, s.Message))
		}
	}
	counted := v1alpha1.CountOf(count, len(copies), "copy of the metadata", "copies of the metadata", "is", "are") + " proven"
	switch {
	case len(lacking) > 0:
		return backend.Problem{
			Reason: v1alpha1.ReasonCopiesUnproven, Message: counted + "; look at the metaloggers on " + backend.List(append(lacking, unread...)),
		}
	case len(unread) > 0:
		return backend.Problem{Reason: v1alpha1.ReasonCopiesUnread, Message: counted + "; not proven yet: " + backend.List(unread)}
	default:
		return backend.Problem{Reason: v1alpha1.ReasonCopiesProven, Message: counted + ": " + backend.List(proven)}
	}
}

// WaitsForCopy returns what a step that takes the metadata server away waits for, in words that follow "when "; empty if it need not wait.
// It waits for one proven copy on another node than except, if that is set. It does not wait if no server follows, because the filesystem
// is then unhealthy and no copy could be proven. A person overrides it with the approval that also overrides a missing backup.
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
		fs.Spec.Version, backend.List(why))
}

func copyJobName(fs *v1alpha1.FileSystem, s *v1alpha1.MetadataCopyStatus) string {
	if s.Reading == nil {
		return ""
	}
	return backend.ChildName(fs, "copy-"+backend.Hash(s.Node, s.Follows, s.Reading.Unix()))
}
