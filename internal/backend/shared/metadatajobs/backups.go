package metadatajobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the images contain no time zones

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// BackupJobFacts describes a Job that makes a backup.
type BackupJobFacts struct {
	// Name of the Job, its backup, and the place.
	Name, Backup string
	Place        backend.BackupPlace
	// Ended is true if the Job is over. Answer is what its last pod printed, nil if that is no answer. Message is why it failed, or what it
	// waits for.
	Ended   bool
	Answer  *spec.BackupAnswer
	Message string
}

// BackupView is the input of DecideBackups.
type BackupView struct {
	FileSystem *v1alpha1.FileSystem
	Nodes      []backend.Node
	Jobs       []BackupJobFacts
	// Recorded is status.backups as stored in the API server. Once it holds the result of a Job, the Job may be removed.
	Recorded []v1alpha1.BackupStatus
	// Asked is the upgrade that waits for a backup, as stored in the API server.
	Asked *v1alpha1.UpgradeAsked
	// Requested is the backup that a person has requested, as stored in the API server.
	Requested *v1alpha1.BackupAsked
	// Serves is true if the filesystem itself answers.
	Serves bool
	Now    time.Time
}

// BackupDecision is the result of DecideBackups.
type BackupDecision struct {
	// Start holds the backups to make. Remove holds the names of the Jobs that are no longer needed.
	Start  []backend.BackupRequest
	Remove []string
	// Backups is the new status.backups.
	Backups []v1alpha1.BackupStatus
	// Condition is the condition BackedUp. It is true with ReasonVerified, unknown with ReasonBackupPending, and false with any other reason.
	Condition backend.Problem
}

// DecideBackups decides which backups start now, and what the status says about earlier ones. A backup starts at a place if the schedule
// named a time since the last attempt there, if an upgrade or a person asked for one, if there is none, or if the last attempt was not
// verified and its time to retry has come. Its name is that time, so that an operator that is killed makes the same backup again.
func DecideBackups(v BackupView) BackupDecision {
	asked := v.FileSystem.Spec.Backups
	if asked == nil {
		return BackupDecision{Remove: jobNames(v.Jobs, func(BackupJobFacts) bool { return true }), Condition: backend.Problem{
			Reason: v1alpha1.ReasonBackupsNotConfigured, Message: "the metadata is not backed up; set spec.backups"}}
	}
	places := BackupPlaces(v.FileSystem, v.Nodes)
	v.Recorded = slices.DeleteFunc(slices.Clone(v.Recorded), func(s v1alpha1.BackupStatus) bool { return v.ahead(s.Name) })
	var d BackupDecision
	for _, p := range places {
		d.Backups = append(d.Backups, atPlace(p, v, len(places))...)
	}
	slices.SortStableFunc(d.Backups, func(a, b v1alpha1.BackupStatus) int { return cmp.Compare(b.Name, a.Name) })
	// Until the status is written, only the finished Job holds the result of its backup.
	d.Remove = jobNames(v.Jobs, func(j BackupJobFacts) bool {
		return !slices.Contains(places, j.Place) || j.Ended && (onRecord(v.Recorded, j) || v.ahead(j.Backup))
	})
	clock, err := newSchedule(asked)
	if err != nil {
		d.Condition = backend.Problem{Reason: v1alpha1.ReasonBackupsInvalid, Message: err.Error()}
		return d
	}
	due, before := clock.lastTwo(v.Now)
	if v.Asked != nil && v.Asked.Since.After(due) {
		due = v.Asked.Since.Time
	}
	if v.Requested != nil && v.Requested.Since.After(due) {
		due = v.Requested.Since.Time
	}
	for _, p := range places {
		attempt, tried := newest(d.Backups, p)
		busy := slices.ContainsFunc(v.Jobs, func(j BackupJobFacts) bool { return j.Place == p })
		due := due
		if again := attempt.Retry; again != nil && again.After(due) && !again.After(v.Now) {
			due = again.Time
		}
		name := due.UTC().Format(spec.BackupNameLayout)
		if v.Serves && !due.IsZero() && !busy && (!tried || attempt.Name < name) {
			d.Start = append(d.Start, backend.BackupRequest{Job: backupJobName(v.FileSystem, p, name), Backup: name, Place: p})
		}
	}
	d.Condition = backedUp(places, d, v.Jobs, before)
	return d
}

// ahead reports whether the name of a backup is a time in the future. The clock was set back since, so the age of the backup is unknown. It
// proves nothing until then, and no other backup waits for that time.
func (v *BackupView) ahead(name string) bool {
	return name > v.Now.Add(clockError).UTC().Format(spec.BackupNameLayout)
}

// RequestedBackup returns the backup that a person requests, with the time when the request was first seen.
func RequestedBackup(fs *v1alpha1.FileSystem, now time.Time) *v1alpha1.BackupAsked {
	request := requestOf(fs, v1alpha1.AnnotationBackUp)
	recorded := fs.Status.BackupAsked
	switch {
	case request == "":
		return nil
	case recorded != nil && recorded.Request == request:
		return recorded.DeepCopy()
	default:
		return &v1alpha1.BackupAsked{Request: request, Since: metav1.NewTime(now.UTC().Truncate(time.Second))}
	}
}

// BackupPlaces returns the places of spec.backups in a stable order: the claim, the object store, and the first of the selected nodes by
// name.
func BackupPlaces(fs *v1alpha1.FileSystem, nodes []backend.Node) []backend.BackupPlace {
	var out []backend.BackupPlace
	asked := fs.Spec.Backups
	if claim := asked.PersistentVolumeClaim; claim != nil {
		out = append(out, backend.BackupPlace{Claim: claim.Name, Directory: claim.Path})
	}
	if store := asked.ObjectStore; store != nil {
		out = append(out, backend.BackupPlace{ObjectStore: store.Endpoint + "/" + store.Bucket, Directory: store.Prefix})
	}
	if asked.Nodes == nil {
		return out
	}
	left := int(asked.Nodes.Count)
	for _, n := range backend.Matching(nodes, asked.Nodes.NodeSelector) {
		if fs.Status.KeepsWhatIsBackedUp(n.Name) {
			continue
		}
		if left--; left < 0 {
			break
		}
		out = append(out, backend.BackupPlace{Node: n.Name, Directory: string(asked.Nodes.Directory)})
	}
	return out
}

// ReadBackupAnswer finds the answer of `node backup` in a termination message, nil if there is none.
func ReadBackupAnswer(message string) *spec.BackupAnswer {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(message), "\n")) {
		answer := &spec.BackupAnswer{}
		if json.Unmarshal([]byte(line), answer) == nil && answer.Name != "" {
			return answer
		}
	}
	return nil
}

func backupJobName(fs *v1alpha1.FileSystem, p backend.BackupPlace, name string) string {
	return backend.ChildName(fs, "backup-"+backend.Hash(p, name))
}

func jobNames(jobs []BackupJobFacts, which func(BackupJobFacts) bool) []string {
	var out []string
	for _, j := range jobs {
		if which(j) {
			out = append(out, j.Name)
		}
	}
	return out
}

// onRecord reports whether the status holds the result of a Job's backup, or of a later one at the same place.
func onRecord(recorded []v1alpha1.BackupStatus, j BackupJobFacts) bool {
	return slices.ContainsFunc(recorded, func(s v1alpha1.BackupStatus) bool { return j.Place.Is(s) && s.Name >= j.Backup })
}

// newest returns the newest attempt at a place.
func newest(backups []v1alpha1.BackupStatus, p backend.BackupPlace) (v1alpha1.BackupStatus, bool) {
	i := slices.IndexFunc(backups, p.Is)
	if i < 0 {
		return v1alpha1.BackupStatus{}, false
	}
	return backups[i], true
}

// newestVerified returns the newest verified backup at a place.
func newestVerified(backups []v1alpha1.BackupStatus, p backend.BackupPlace) (v1alpha1.BackupStatus, bool) {
	i := slices.IndexFunc(backups, func(s v1alpha1.BackupStatus) bool { return p.Is(s) && s.Result == v1alpha1.BackupVerified })
	if i < 0 {
		return v1alpha1.BackupStatus{}, false
	}
	return backups[i], true
}

// atPlace returns the status entries of one of the given number of places: the earlier entries, and the results of finished Jobs, newest
// first. They always include the newest attempt and the newest verified backup, even if only few entries fit.
func atPlace(p backend.BackupPlace, v BackupView, places int) []v1alpha1.BackupStatus {
	byName := map[string]v1alpha1.BackupStatus{}
	for _, s := range v.Recorded {
		if p.Is(s) {
			byName[s.Name] = s
		}
	}
	over := slices.DeleteFunc(slices.Clone(v.Jobs), func(j BackupJobFacts) bool { return j.Place != p || !j.Ended || onRecord(v.Recorded, j) })
	slices.SortFunc(over, func(a, b BackupJobFacts) int { return cmp.Compare(a.Backup, b.Backup) })
	for _, j := range over {
		var before int32
		if names := backend.SortedKeys(byName); len(names) > 0 {
			before = byName[names[len(names)-1]].Failures
		}
		takeAnswer(byName, v.FileSystem, j)
		for name, s := range byName {
			s.Failures, s.Retry = 0, nil
			if name == j.Backup && s.Result != v1alpha1.BackupVerified {
				s.Failures = before + 1
				s.Retry = new(metav1.NewTime(v.Now.UTC().Truncate(time.Second).Add(retryAfter(s.Failures))))
			}
			byName[name] = s
		}
	}
	maps.DeleteFunc(byName, func(name string, _ v1alpha1.BackupStatus) bool { return v.ahead(name) })
	out := make([]v1alpha1.BackupStatus, 0, len(byName))
	for _, name := range slices.Backward(backend.SortedKeys(byName)) {
		out = append(out, byName[name])
	}
	few := max(2, v1alpha1.MaxBackups/places)
	if len(out) <= few {
		return out
	}
	best, ok := newestVerified(out, p)
	if out = out[:few]; ok && best.Name < out[few-1].Name {
		out[few-1] = best
	}
	return out
}

// retryAfter returns the delay after so many attempts without a verified backup: a quarter of an hour, doubled each time, up to six hours.
// A refusal because of what the filesystem did at that moment is retried soon; a permanent error costs four attempts a day.
func retryAfter(failures int32) time.Duration {
	const first, most = 15 * time.Minute, 6 * time.Hour
	after := first
	for i := int32(1); i < failures && after < most; i++ {
		after *= 2
	}
	return min(after, most)
}

// takeAnswer replaces the known backups of a place with those that a Job lists. An answer lists all backups there, so a backup that is
// missing from it was removed.
func takeAnswer(byName map[string]v1alpha1.BackupStatus, fs *v1alpha1.FileSystem, j BackupJobFacts) {
	own := v1alpha1.BackupStatus{
		Name: j.Backup, PersistentVolumeClaim: j.Place.Claim, ObjectStore: j.Place.ObjectStore, Node: j.Place.Node,
		Directory: path.Join(j.Place.Directory, backend.BackupDirectory(fs), j.Backup),
		Result:    v1alpha1.BackupFailed, Message: v1alpha1.Cut(j.Message, maxBackupMessage),
	}
	if j.Answer == nil {
		if own.Message == "" {
			own.Message = "the Job has ended and left no answer"
		}
		byName[own.Name] = own
		return
	}
	clear(byName)
	if own.Message = v1alpha1.Cut(j.Answer.Message, maxBackupMessage); own.Message == "" {
		own.Message = "it is not there"
	}
	byName[own.Name] = own
	for _, found := range j.Answer.Backups {
		if _, err := time.Parse(spec.BackupNameLayout, found.Name); err != nil {
			continue // its length would make the API server refuse the status
		}
		s := own
		s.Name, s.Directory = found.Name, path.Join(j.Place.Directory, backend.BackupDirectory(fs), found.Name)
		s.Result, s.Message = v1alpha1.BackupUnverified, v1alpha1.Cut(found.Message, maxBackupMessage)
		s.Version, s.ID, s.SizeBytes = max(0, found.Version), v1alpha1.Cut(found.ID, maxBackupID), found.SizeBytes
		if found.Verified {
			s.Result, s.Message = v1alpha1.BackupVerified, ""
		}
		if when, err := time.Parse(time.RFC3339, found.Time); err == nil {
			s.Time = new(metav1.NewTime(when.UTC().Truncate(time.Second)))
		}
		byName[s.Name] = s
	}
}

const (
	// maxBackupMessage and maxBackupID are the limits of BackupStatus.
	maxBackupMessage = 512
	maxBackupID      = 32
)

// backedUp returns the condition BackedUp, which is that of the worst place. A backup of the time before the last scheduled one is recent
// enough, because the last one may still run.
func backedUp(places []backend.BackupPlace, d BackupDecision, jobs []BackupJobFacts, before time.Time) backend.Problem {
	if len(places) == 0 {
		return backend.Problem{Reason: v1alpha1.ReasonBackupsInvalid,
			Message: "spec.backups.nodes.nodeSelector selects no node but that of the metadata; label another node, or name a claim or an object store"}
	}
	oldest := before.UTC().Format(spec.BackupNameLayout)
	var failed, old, pending, good []string
	for _, p := range places {
		attempt, tried := newest(d.Backups, p)
		best, verified := newestVerified(d.Backups, p)
		switch {
		case !tried:
			pending = append(pending, p.String()+waitsFor(jobs, p))
		case attempt.Result != v1alpha1.BackupVerified:
			failed = append(failed, fmt.Sprintf("%s at %s: %s%s%s", attempt.Name, p, attempt.Message, lastGood(best, verified), again(attempt)))
		case !before.IsZero() && best.Name < oldest:
			old = append(old, fmt.Sprintf("%s at %s%s", best.Name, p, waitsFor(jobs, p)))
		default:
			good = append(good, fmt.Sprintf("%s at %s", best.Name, p))
		}
	}
	switch {
	case len(failed) > 0:
		return backend.Problem{Reason: v1alpha1.ReasonBackupFailed, Message: "the newest backup is not verified: " + strings.Join(failed, "; ")}
	case len(old) > 0:
		return backend.Problem{
			Reason: v1alpha1.ReasonBackupTooOld, Message: "scheduled backups were not made; the newest: " + strings.Join(old, "; "),
		}
	case len(pending) > 0:
		return backend.Problem{Reason: v1alpha1.ReasonBackupPending, Message: "the first backup is not made yet: " + strings.Join(pending, "; ")}
	default:
		return backend.Problem{Reason: v1alpha1.ReasonVerified, Message: "the newest backups are verified: " + strings.Join(good, "; ")}
	}
}

// again returns when a place is tried again.
func again(attempt v1alpha1.BackupStatus) string {
	if attempt.Retry == nil {
		return "" // the schedule decides
	}
	return "; the next attempt is made at " + attempt.Retry.UTC().Format(time.RFC3339) + " at the latest"
}

func lastGood(best v1alpha1.BackupStatus, verified bool) string {
	if !verified {
		return "; there is no verified one"
	}
	return "; the newest verified one is " + best.Name
}

// NotBackedUpSince returns the places without a verified backup of a time or later.
func NotBackedUpSince(fs *v1alpha1.FileSystem, nodes []backend.Node, since time.Time) []string {
	var without []string
	oldest := since.UTC().Format(spec.BackupNameLayout)
	for _, p := range BackupPlaces(fs, nodes) {
		if best, _ := newestVerified(fs.Status.Backups, p); best.Name < oldest {
			without = append(without, p.String())
		}
	}
	return without
}

// waitsFor returns what the Job at a place waits for.
func waitsFor(jobs []BackupJobFacts, p backend.BackupPlace) string {
	for _, j := range jobs {
		if j.Place == p && !j.Ended && j.Message != "" {
			return " (" + j.Message + ")"
		}
	}
	return ""
}

// schedule holds the times of backups.
type schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// TimeZone finds a zone of the IANA database by its name. It refuses "Local", because the zone of the manager has no meaning for a user.
func TimeZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("%q is no time zone; name one of the IANA database, such as Europe/Berlin", name)
	}
	return zone, nil
}

func newSchedule(asked *v1alpha1.BackupsSpec) (schedule, error) {
	zone, err := TimeZone(asked.TimeZone)
	if err != nil {
		return schedule{}, fmt.Errorf("spec.backups.timeZone %w", err)
	}
	times, err := cron.ParseStandard(asked.Schedule)
	if err != nil {
		return schedule{}, fmt.Errorf("spec.backups.schedule %q can't be understood: %w", asked.Schedule, err)
	}
	if times.Next(time.Unix(0, 0).UTC()).IsZero() {
		return schedule{}, fmt.Errorf("spec.backups.schedule %q names no time at all, such as the 31st of February", asked.Schedule)
	}
	return schedule{times, zone}, nil
}

func (s schedule) next(now time.Time) time.Time { return s.times.Next(now.In(s.zone)) }

// lookBack holds the spans in which the last time of a schedule is searched, one after the other. Each span is short enough for the
// schedule's interval that all its times can be visited.
var lookBack = []time.Duration{2 * time.Hour, 2 * 24 * time.Hour, 64 * 24 * time.Hour, 10 * 366 * 24 * time.Hour}

// lastTwo returns the last time that is not after now, and the one before; zero if there is none within ten years.
func (s schedule) lastTwo(now time.Time) (last, before time.Time) {
	for _, far := range lookBack {
		last, before = time.Time{}, time.Time{}
		for t := s.next(now.Add(-far)); !t.IsZero() && !t.After(now); t = s.next(t) {
			last, before = t, last
		}
		if !before.IsZero() {
			break
		}
	}
	return last, before
}
