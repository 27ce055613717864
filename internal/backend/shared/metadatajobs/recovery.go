package metadatajobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/node/spec"
)

// RecoveryJobFacts is the state of a Job of a recovery, or of a Job that reads a copy back.
type RecoveryJobFacts struct {
	Name string
	// Ended is true if the Job is over. Answer is what its last pod printed, nil if that is no answer. Message is why it failed, or what it
	// waits for.
	Ended   bool
	Answer  *spec.RecoveryAnswer
	Message string
}

// RecoveryView is the input of DecideRecovery.
type RecoveryView struct {
	FileSystem *v1alpha1.FileSystem
	// Recorded is status.recovery as stored in the API server.
	Recorded *v1alpha1.RecoveryStatus
	Sources  []backend.RecoverySource
	Nodes    []backend.Node
	// Targets holds the StorageTargets of the filesystem, and Place is where the spec has the metadata now.
	Targets []v1alpha1.StorageTarget
	Place   backend.MetadataPlace
	Jobs    []RecoveryJobFacts
	// Expected is true if the disks show metadata of another cluster, or of an earlier FileSystem; see MetadataExpected.
	Expected bool
	// Serves is why the metadata is not lost, for example because its server answers; empty if it may be lost.
	Serves string
	// Conflict returns why a node can't hold the metadata; empty if it can.
	Conflict func(v1alpha1.MetadataRecord) string
	Now      time.Time
}

// RecoveryDecision is the result of DecideRecovery.
type RecoveryDecision struct {
	// Start holds the Jobs to make. Remove holds the names of the Jobs that are no longer needed.
	Start  []backend.RecoveryRequest
	Remove []string
	// Recovery is the new status.recovery.
	Recovery *v1alpha1.RecoveryStatus
	// Metadata is the new record of the metadata's place, nil if it does not change.
	Metadata *v1alpha1.MetadataRecord
	// Condition is the condition Recovering. It is true with ReasonRestoring and false with any other reason. It is absent while the reason is
	// empty.
	Condition backend.Problem
}

// planLife is how long the answers of the places count before a person approves the plan.
const planLife = 15 * time.Minute

// The limits of RecoveryStatus and RecoveryCandidate.
const (
	maxCandidates      = 10
	maxRecoveryMessage = 512
	maxRecoveryLacks   = 256
	maxRecoveryHas     = 256
	maxRecoveryID      = 32
)

// DecideRecovery decides the next step of a recovery that a person has requested. First all places are inspected. Then there is a plan,
// which a person approves by its hash. Then the metadata is restored. Each state is recorded before anything follows from it, and the names
// of Jobs follow from the record, so an operator that is killed continues with the same Jobs. Nothing follows a plan without the approval.
func DecideRecovery(v RecoveryView) RecoveryDecision {
	fs := v.FileSystem
	word, asked := fs.Annotations[v1alpha1.AnnotationRecoverMetadata]
	if !asked {
		return v.over(backend.Problem{})
	}
	if m := fs.Status.Metadata; m != nil && m.Recovered != nil && m.Recovered.PlanHash == word {
		return v.over(backend.Problem{Reason: v1alpha1.ReasonMetadataRecovered, Message: fmt.Sprintf("%s was made again from %s, on node %s. Remove the request: "+
			"kubectl -n %s annotate filesystem %s %s-",
			v.Place.Noun, m.Recovered.From, m.Node, fs.Namespace, fs.Name, v1alpha1.AnnotationRecoverMetadata)})
	}
	if why := v.notLost(); why != "" {
		return v.over(backend.Problem{Reason: v1alpha1.ReasonRecoveryRefused, Message: "nothing is recovered: " + why})
	}
	if r := v.Recorded; r != nil && r.Approved != "" && r.Approved == word {
		return v.restore()
	}
	to, refused := v.place()
	if refused.Reason != "" {
		return v.over(refused)
	}
	r := v.Recorded
	if r == nil || r.Approved != "" || r.Node != to.Node || r.Directory != to.Directory || r.Target != to.Target ||
		r.Looked != nil && v.Now.Sub(r.Looked.Time) > planLife {
		d := v.over(backend.Problem{
			Reason: v1alpha1.ReasonRecoveryLooking, Message: "the places where copies of " + v.Place.Noun + " may be are being read",
		})
		d.Recovery = &v1alpha1.RecoveryStatus{Asked: v.stamp(), Node: to.Node, Directory: to.Directory, Target: to.Target}
		return d
	}
	if r.Looked == nil {
		return v.look()
	}
	return v.plan(word)
}

// over ends the current recovery.
func (v *RecoveryView) over(condition backend.Problem) RecoveryDecision {
	return RecoveryDecision{Condition: condition, Remove: v.others(nil)}
}

// others returns the names of the Jobs that are not in the list.
func (v *RecoveryView) others(wanted []string) []string {
	var out []string
	for _, j := range v.Jobs {
		if !slices.Contains(wanted, j.Name) {
			out = append(out, j.Name)
		}
	}
	return out
}

func (v *RecoveryView) stamp() metav1.Time { return metav1.NewTime(v.Now.UTC().Truncate(time.Second)) }

// notLost returns why there is nothing to recover, or nothing that the operator can recover; empty if there may be.
func (v *RecoveryView) notLost() string {
	m := v.FileSystem.Status.Metadata
	switch {
	case v.Expected:
		return "the disks are those of another cluster or of an earlier FileSystem, and so are the copies of its metadata, which name that one: this FileSystem takes " +
			"none of them for its own. docs/recovery.md (A lost cluster) says what a person can do"
	case m == nil || m.Initialized == nil:
		return "this filesystem never ran, so that it has no metadata that could be lost"
	default:
		return v.Serves
	}
}

// RecoveryNodes returns the nodes that the selector of the metadata matches. Without a selector, it returns the present node of the
// metadata, if the cluster has it.
func RecoveryNodes(nodes []backend.Node, selector v1alpha1.NodeSelector, own string) []backend.Node {
	if len(selector) > 0 {
		return backend.Matching(nodes, selector)
	}
	return backend.Filter(nodes, func(n *backend.Node) bool { return n.Name == own })
}

// MetadataNodes returns the nodes on which the metadata gets a disk: its own node, and the node to which a person wants to recover it.
func MetadataNodes(fs *v1alpha1.FileSystem, nodes []backend.Node, selector v1alpha1.NodeSelector, own string) []string {
	out := []string{own}
	if _, asked := fs.Annotations[v1alpha1.AnnotationRecoverMetadata]; !asked {
		return out
	}
	if to := RecoveryNodes(nodes, selector, own); len(to) == 1 && to[0].Name != own {
		out = append(out, to[0].Name)
	}
	return out
}

// LostMetadataTarget returns the StorageTarget of the metadata while a requested recovery, which is not refused, moves the metadata to
// another disk of the same node; otherwise empty.
func LostMetadataTarget(fs *v1alpha1.FileSystem, nodes []backend.Node, selector v1alpha1.NodeSelector) string {
	m := fs.Status.Metadata
	if _, asked := fs.Annotations[v1alpha1.AnnotationRecoverMetadata]; !asked || m == nil || m.Target == "" {
		return ""
	}
	is := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionRecovering)
	underWay := is != nil && slices.Contains([]string{
		v1alpha1.ReasonRecoveryLooking, v1alpha1.ReasonRecoveryApproval, v1alpha1.ReasonRecoveryChoice, v1alpha1.ReasonRestoring,
	}, is.Reason)
	to := RecoveryNodes(nodes, selector, m.Node)
	if !underWay || len(to) != 1 || to[0].Name != m.Node {
		return ""
	}
	return m.Target
}

// place returns the new place of the metadata: on the only node that the spec selects, in its directory or on the disk that it gets there.
func (v *RecoveryView) place() (v1alpha1.MetadataRecord, backend.Problem) {
	refused := func(format string, args ...any) (v1alpha1.MetadataRecord, backend.Problem) {
		return v1alpha1.MetadataRecord{}, backend.Problem{
			Reason: v1alpha1.ReasonRecoveryRefused, Message: "nothing is recovered: " + fmt.Sprintf(format, args...),
		}
	}
	selector, old := v.Place.NodeSelector, v.FileSystem.Status.Metadata
	nodes := RecoveryNodes(v.Nodes, selector, old.Node)
	if len(nodes) == 0 && len(selector) == 0 {
		return refused("node %s is gone, and %s.nodeSelector names no other one; set it so that it matches the one node where %s is to lie from now on, "+
			"such as kubernetes.io/hostname: NODE", old.Node, v.Place.Field, v.Place.Noun)
	}
	if len(nodes) != 1 {
		have := "no node"
		if len(nodes) > 0 {
			have = nodefacts.NodeNames(nodes)
		}
		return refused("%s.nodeSelector (%s) matches %s; give that label to the one node where %s is to lie from now on, "+
			"and take it from all others, %s among them where that is lost", v.Place.Field, nodefacts.SelectorText(selector), have, v.Place.Noun, old.Node)
	}
	n := nodes[0]
	if !n.Ready || n.IP == "" {
		return refused("node %s, which %s.nodeSelector matches, is not Ready; bring it back, or give its label to another node",
			n.Name, v.Place.Field)
	}
	record := v1alpha1.MetadataRecord{Node: n.Name}
	if !assign.OnDevices(v.Place.Targets) {
		record.Directory = string(v.Place.Targets.Directories[0])
	} else {
		t, waits := v.disk(n.Name)
		if waits != "" {
			return record, backend.Problem{Reason: v1alpha1.ReasonRecoveryLooking, Message: v.Place.Noun + " gets another disk first: " + waits}
		}
		record.Target, record.Directory = t, path.Join(assign.TargetPath(v.FileSystem, t), v.Place.Component)
	}
	if why := v.Conflict(record); why != "" {
		return refused("%s", why)
	}
	return record, backend.Problem{}
}

// disk returns the StorageTarget on a node that the metadata can use, which differs from its former one. The result waits is what it waits
// for.
func (v *RecoveryView) disk(node string) (target, waits string) {
	waits = fmt.Sprintf("%s.targets chooses none on node %s, besides the one that is lost; name one, or select it by what it is like",
		v.Place.Field, node)
	for i := range v.Targets {
		t := &v.Targets[i]
		if t.Spec.Role != v.Place.Role || t.Spec.Node != node || t.Name == v.FileSystem.Status.Metadata.Target {
			continue
		}
		_, why := assign.Proven(t)
		if why == "" && assign.Finished(t) {
			return t.Name, ""
		}
		waits = fmt.Sprintf("%s on node %s is not ready (%s)", t.Name, node, cmp.Or(backend.Shorten(why), "it is being made"))
	}
	return "", waits
}

// lookName returns the name of the Job that inspects a source. Every inspection uses new names.
func (v *RecoveryView) lookName(s backend.RecoverySource) string {
	return backend.ChildName(v.FileSystem, "recover-"+backend.Hash(s, v.Recorded.Asked.Unix()))
}

// look inspects all places, and makes the plan after all have answered.
func (v *RecoveryView) look() RecoveryDecision {
	d := RecoveryDecision{Recovery: v.Recorded.DeepCopy()}
	var wanted, waits []string
	var candidates []v1alpha1.RecoveryCandidate
	for _, s := range v.Sources {
		if n, there := v.node(s.Node); s.Node != "" && (!there || !n.Ready) {
			candidates = append(candidates, candidate(s, "its node is not Ready"))
			continue
		}
		name := v.lookName(s)
		wanted = append(wanted, name)
		i := slices.IndexFunc(v.Jobs, func(j RecoveryJobFacts) bool { return j.Name == name })
		switch {
		case i < 0:
			d.Start = append(d.Start, backend.RecoveryRequest{Job: name, Source: s})
			waits = append(waits, s.Name)
		case !v.Jobs[i].Ended:
			waits = append(waits, s.Name+inBrackets(v.Jobs[i].Message))
		default:
			candidates = append(candidates, v.found(s, v.Jobs[i])...)
		}
	}
	d.Remove = v.others(wanted)
	if len(waits) > 0 {
		d.Condition = backend.Problem{
			Reason: v1alpha1.ReasonRecoveryLooking, Message: "these places are being read: " + backend.List(waits),
		}
		return d
	}
	named := map[string]bool{}
	candidates = slices.DeleteFunc(candidates, func(c v1alpha1.RecoveryCandidate) bool {
		again := named[c.Name] // the API server accepts each name once
		named[c.Name] = true
		return again
	})
	slices.SortFunc(candidates, func(a, b v1alpha1.RecoveryCandidate) int {
		return cmp.Or(newer(b, a), strings.Compare(a.Name, b.Name))
	})
	d.Recovery.Candidates = newestCandidates(candidates, v.FileSystem.Annotations[v1alpha1.AnnotationRecoverFrom])
	d.Recovery.Looked = new(v.stamp())
	planned := *v
	planned.Recorded = d.Recovery
	next := planned.plan(v1alpha1.RecoverPlan) // it is recorded before it can be approved
	d.Recovery, d.Condition = next.Recovery, next.Condition
	return d
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

func (v *RecoveryView) node(name string) (backend.Node, bool) {
	i := slices.IndexFunc(v.Nodes, func(n backend.Node) bool { return n.Name == name })
	if i < 0 {
		return backend.Node{}, false
	}
	return v.Nodes[i], true
}

// plan describes what would be done, and checks the approval of a person for it.
func (v *RecoveryView) plan(word string) RecoveryDecision {
	fs, r := v.FileSystem, v.Recorded.DeepCopy()
	d := RecoveryDecision{Recovery: r, Remove: v.others(nil)}
	r.From, r.PlanHash = "", ""
	from, refused := v.choose(r.Candidates)
	if refused.Reason != "" {
		d.Condition = refused
		return d
	}
	r.From, r.PlanHash = from.Name, v.planHash(from.Name, r)
	annotate := fmt.Sprintf("kubectl -n %s annotate --overwrite filesystem %s %s=", fs.Namespace, fs.Name, v1alpha1.AnnotationRecoverMetadata)
	switch word {
	case r.PlanHash:
		r.Approved = r.PlanHash
		d.Condition = backend.Problem{Reason: v1alpha1.ReasonRestoring, Message: v.restores(r)}
	case v1alpha1.RecoverPlan:
		d.Condition = backend.Problem{
			Reason: v1alpha1.ReasonRecoveryApproval, Message: v.promise(from, r) + " To approve exactly this: " + annotate + r.PlanHash,
		}
	default:
		d.Condition = backend.Problem{Reason: v1alpha1.ReasonRecoveryRefused, Message: fmt.Sprintf("%s is not the hash of the plan: what there is has changed since it was, or it is a wrong one. "+
			"Nothing was done. The plan of now, %s: %s To approve it: %s%s",
			v1alpha1.Cut(word, maxRecoveryID), r.PlanHash, v.promise(from, r), annotate, r.PlanHash)}
	}
	return d
}

// planHash covers exactly the plan: the candidates, the chosen one, and the new place. The time of an inspection is not part of it.
func (v *RecoveryView) planHash(from string, r *v1alpha1.RecoveryStatus) string {
	type known struct {
		Name    string
		Version int64
		ID      string
		Usable  bool
		Lacks   string `json:",omitempty"`
		Has     string `json:",omitempty"`
	}
	all := make([]known, len(r.Candidates))
	for i := range r.Candidates {
		c := &r.Candidates[i]
		all[i] = known{c.Name, c.Version, c.ID, c.Message == "", c.Lacks, c.Has}
	}
	return backend.Hash(v.FileSystem.UID, v.FileSystem.Status.Metadata.Node, r.Node, r.Directory, r.Target, from, all)
}

// choose returns the candidate that a person has named, or the newest one.
func (v *RecoveryView) choose(candidates []v1alpha1.RecoveryCandidate) (v1alpha1.RecoveryCandidate, backend.Problem) {
	var usable []v1alpha1.RecoveryCandidate
	var names, others []string
	for _, c := range candidates {
		if c.Message == "" {
			usable, names = append(usable, c), append(names, c.Name)
		} else {
			others = append(others, fmt.Sprintf("%s (%s)", c.Name, c.Message))
		}
	}
	refused := func(reason, format string, args ...any) (v1alpha1.RecoveryCandidate, backend.Problem) {
		return v1alpha1.RecoveryCandidate{}, backend.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	chosen, named := v.FileSystem.Annotations[v1alpha1.AnnotationRecoverFrom]
	if len(usable) == 0 {
		return refused(v1alpha1.ReasonRecoveryRefused,
			"nothing is recovered: there is nothing that %s on node %s could be made from. Known are: %s%s",
			v.Place.Noun, v.Recorded.Node, cmp.Or(backend.List(others), "no metadata backup and no backup"), v.Place.Otherwise)
	}
	if named {
		i := slices.Index(names, chosen)
		if i < 0 {
			return refused(v1alpha1.ReasonRecoveryRefused, "nothing is recovered: the annotation %s names %q, which can't be used; there are %s",
				v1alpha1.AnnotationRecoverFrom, v1alpha1.Cut(chosen, maxRecoveryMessage), backend.List(names))
		}
		return usable[i], backend.Problem{}
	}
	best := usable[0]
	for _, c := range usable[1:] {
		if c.ID != best.ID || newer(c, best) == 0 {
			return refused(v1alpha1.ReasonRecoveryChoice, "only a person can choose between %s and %s: %s. Name one: "+
				"kubectl -n %s annotate --overwrite filesystem %s %s=%s", described(best), described(c), differ(best, c), v.FileSystem.Namespace, v.FileSystem.Name,
				v1alpha1.AnnotationRecoverFrom, best.Name)
		}
	}
	return best, backend.Problem{}
}

func differ(a, b v1alpha1.RecoveryCandidate) string {
	if a.ID != b.ID {
		return fmt.Sprintf("one is of the metadata %s, the other one of %s", a.ID, b.ID)
	}
	if a.Version == 0 {
		return "they are of the same time"
	}
	return "they have the same version"
}

func described(c v1alpha1.RecoveryCandidate) string {
	at := "an unknown time"
	if c.Time != nil {
		at = c.Time.UTC().Format(time.RFC3339)
	}
	if c.Version == 0 {
		return fmt.Sprintf("%s (of %s)", c.Name, at)
	}
	return fmt.Sprintf("%s (version %d of %s)", c.Name, c.Version, at)
}

// restores returns a sentence about the restore.
func (v *RecoveryView) restores(r *v1alpha1.RecoveryStatus) string {
	return fmt.Sprintf("%s is made again from %s, in %s on node %s, as the plan %s says",
		v.Place.Noun, r.From, r.Directory, r.Node, r.PlanHash)
}

// promise describes what would be done, and what would be lost.
func (v *RecoveryView) promise(from v1alpha1.RecoveryCandidate, r *v1alpha1.RecoveryStatus) string {
	old := v.FileSystem.Status.Metadata.Node
	out := fmt.Sprintf("%s would be made again from %s, in %s on node %s. Lost would be %s",
		strings.ToUpper(v.Place.Noun[:1])+v.Place.Noun[1:], described(from), r.Directory, r.Node,
		cmp.Or(v.Place.Loses, "all that was changed after that"))
	best := slices.IndexFunc(r.Candidates, func(c v1alpha1.RecoveryCandidate) bool { return c.ID == from.ID && newer(c, from) > 0 })
	if best >= 0 { // the newest one, because they are sorted
		c, more := r.Candidates[best], "is newer"
		if c.Version != 0 {
			more = fmt.Sprintf("has %d changes more", c.Version-from.Version)
		}
		out += fmt.Sprintf("; %s %s: %s", described(c), more, cmp.Or(c.Message, "it was not chosen"))
	}
	out += "."
	if from.Lacks != "" {
		out += " On record and not in it is " + from.Lacks + "." + v.Place.Lacking
	}
	if from.Has != "" {
		out += " In it are " + from.Has + "."
	}
	if v.Place.Beware != "" {
		out += " " + v.Place.Beware
	}
	if n, there := v.node(old); old != r.Node && (!there || !n.Ready) {
		out += fmt.Sprintf(" Node %s is away: make sure that it is off, and not just cut off, because programs that still reach it would go on with the old metadata.", old)
	}
	return out
}

// restore makes the approved restore happen.
func (v *RecoveryView) restore() RecoveryDecision {
	r := v.Recorded.DeepCopy()
	d := RecoveryDecision{Recovery: r}
	failed := func(why string) RecoveryDecision {
		d.Condition = backend.Problem{Reason: v1alpha1.ReasonRecoveryFailed, Message: fmt.Sprintf("%s was not made again: %s. To begin again: "+
			"kubectl -n %s annotate --overwrite filesystem %s %s=%s", v.Place.Noun, why, v.FileSystem.Namespace, v.FileSystem.Name,
			v1alpha1.AnnotationRecoverMetadata, v1alpha1.RecoverPlan)}
		return d
	}
	i := slices.IndexFunc(r.Candidates, func(c v1alpha1.RecoveryCandidate) bool { return c.Name == r.From })
	if i < 0 {
		return failed("the status names no candidate " + r.From)
	}
	from := &r.Candidates[i]
	place, backup := from.Name, ""
	if n := len(from.Name) - len(spec.BackupNameLayout); from.Kind == v1alpha1.RecoveryBackup && n > 0 {
		place, backup = strings.TrimSuffix(from.Name[:n], "-"), from.Name[n:]
	}
	at := slices.IndexFunc(v.Sources, func(s backend.RecoverySource) bool { return s.Name == place && s.Kind == from.Kind })
	if at < 0 {
		return failed("the place of " + r.From + " is none of this FileSystem any more")
	}
	name := backend.ChildName(v.FileSystem, "recover-"+backend.Hash("restore", r.Approved, r.Asked.Unix()))
	d.Remove = v.others([]string{name})
	d.Condition = backend.Problem{Reason: v1alpha1.ReasonRestoring, Message: v.restores(r)}
	job := slices.IndexFunc(v.Jobs, func(j RecoveryJobFacts) bool { return j.Name == name })
	if job < 0 {
		d.Start = []backend.RecoveryRequest{{Job: name, Source: v.Sources[at], Restore: &backend.RestoreRequest{
			Plan: r.Approved, Backup: backup, Version: from.Version, ID: from.ID, Has: from.Has, Node: r.Node, Directory: r.Directory,
			Target: r.Target,
		}}}
		return d
	}
	switch facts := v.Jobs[job]; {
	case facts.Ended && facts.Answer != nil && facts.Answer.Restored && len(facts.Answer.Found) == 1:
		old, made := v.FileSystem.Status.Metadata, facts.Answer.Found[0]
		d.Recovery = nil
		d.Condition = backend.Problem{Reason: v1alpha1.ReasonMetadataRecovered,
			Message: fmt.Sprintf("%s was made again from %s, on node %s", v.Place.Noun, from.Name, r.Node)}
		d.Metadata = &v1alpha1.MetadataRecord{
			Node: r.Node, Directory: r.Directory, Target: r.Target, Initialized: old.Initialized, Recovered: &v1alpha1.MetadataRecovered{
				PlanHash: r.Approved, From: from.Name, Version: max(0, made.Version), ID: v1alpha1.Cut(made.ID, maxRecoveryID),
				DataTime: from.Time, Time: v.stamp(), PreviousNode: old.Node,
			},
		}
	case facts.Ended && facts.Answer != nil:
		return failed(cmp.Or(facts.Answer.Message, facts.Message, "its Job printed no answer"))
	case facts.Ended:
		return failed(cmp.Or(facts.Message, "its Job has ended and left no answer"))
	default:
		d.Condition.Message += inBrackets(facts.Message)
	}
	return d
}

// ReadRecoveryAnswer finds the answer of `node recover` in a termination message, nil if there is none.
func ReadRecoveryAnswer(message string) *spec.RecoveryAnswer {
	for _, line := range slices.Backward(strings.Split(strings.TrimSpace(message), "\n")) {
		answer := &spec.RecoveryAnswer{}
		if json.Unmarshal([]byte(line), answer) == nil && answer.Found != nil {
			return answer
		}
	}
	return nil
}
