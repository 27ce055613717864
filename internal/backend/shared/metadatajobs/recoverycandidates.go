package metadatajobs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

func candidate(s backend.RecoverySource, message string) v1alpha1.RecoveryCandidate {
	return v1alpha1.RecoveryCandidate{
		Name: s.Name, Kind: s.Kind, Node: s.Node, PersistentVolumeClaim: s.Claim, ObjectStore: s.ObjectStore, Directory: s.Directory,
		Message: v1alpha1.Cut(message, maxRecoveryMessage),
	}
}

// found returns the candidates of a source, as its Job lists them.
func (v *RecoveryView) found(s backend.RecoverySource, job RecoveryJobFacts) []v1alpha1.RecoveryCandidate {
	if job.Answer == nil || len(job.Answer.Found) == 0 {
		message := job.Message
		if job.Answer != nil {
			message = job.Answer.Message
		}
		return []v1alpha1.RecoveryCandidate{candidate(s, cmp.Or(message, "its Job has ended and left no answer"))}
	}
	out := make([]v1alpha1.RecoveryCandidate, 0, len(job.Answer.Found))
	for _, f := range job.Answer.Found {
		c := candidate(s, cmp.Or(f.Message, v.unusable(s)))
		if f.Backup != "" {
			if _, err := time.Parse(spec.BackupNameLayout, f.Backup); err != nil {
				continue
			}
			c.Name = s.Name + "-" + f.Backup
		}
		c.Version, c.ID, c.Lacks = max(0, f.Version), v1alpha1.Cut(f.ID, maxRecoveryID), v1alpha1.Cut(f.Lacks, maxRecoveryLacks)
		c.Has = v1alpha1.Cut(f.Has, maxRecoveryHas)
		if when, err := time.Parse(time.RFC3339, f.Time); err == nil {
			c.Time = new(metav1.NewTime(when.UTC().Truncate(time.Second)))
		}
		out = append(out, c)
	}
	return out
}

// unusable returns why the copy at a source can't be used for the new place of the metadata; empty if it can.
func (v *RecoveryView) unusable(s backend.RecoverySource) string {
	switch {
	case s.Kind == v1alpha1.RecoveryServer && s.Node == v.Recorded.Node && s.Directory != v.Recorded.Directory:
		return "" // it is another disk of its node, and the server may not be able to start on its own disk, for example a read-only one
	case s.Kind == v1alpha1.RecoveryServer:
		return "it is the directory of the server itself: where it can be read, start the server there instead, and nothing is lost"
	case s.Node != "" && s.Node != v.Recorded.Node && v.Place.Stays:
		return fmt.Sprintf("it lies on another node, and %s can come to no other one: copy it to the same directory on node %s (%s), where root owns it",
			v.Place.Noun, v.Recorded.Node, s.Directory)
	case s.Node != "" && s.Node != v.Recorded.Node:
		return fmt.Sprintf("it lies on another node than %s is to; to use it, give the label of %s.nodeSelector to node %s instead",
			v.Place.Noun, v.Place.Field, s.Node)
	default:
		return ""
	}
}

// newestCandidates returns the first candidates, including the one that a person has named.
func newestCandidates(candidates []v1alpha1.RecoveryCandidate, named string) []v1alpha1.RecoveryCandidate {
	if len(candidates) <= maxCandidates {
		return candidates
	}
	out, others := candidates[:maxCandidates:maxCandidates], candidates[maxCandidates:]
	if i := slices.IndexFunc(others, func(c v1alpha1.RecoveryCandidate) bool { return c.Name == named }); i >= 0 {
		out[maxCandidates-1] = others[i]
	}
	return out
}

// newer compares the age of two candidates: by version, or by time if the filesystem counts no changes.
func newer(a, b v1alpha1.RecoveryCandidate) int {
	if a.Version != 0 || b.Version != 0 {
		return cmp.Compare(a.Version, b.Version)
	}
	at := func(c v1alpha1.RecoveryCandidate) time.Time {
		if c.Time == nil {
			return time.Time{}
		}
		return c.Time.Time
	}
	return at(a).Compare(at(b))
}

// BackupSources returns the places of backups.
func BackupSources(fs *v1alpha1.FileSystem, nodes []backend.Node) []backend.RecoverySource {
	if fs.Spec.Backups == nil {
		return nil
	}
	var out []backend.RecoverySource
	for _, p := range BackupPlaces(fs, nodes) {
		s := backend.RecoverySource{
			Name: "backup-in-" + p.Claim, Kind: v1alpha1.RecoveryBackup, Claim: p.Claim, ObjectStore: p.ObjectStore, Node: p.Node,
			Directory: path.Join(p.Directory, backend.BackupDirectory(fs)),
		}
		switch {
		case p.Node != "":
			s.Name = "backup-at-" + p.Node
		case p.ObjectStore != "":
			s.Name = "backup-s3-" + path.Base(p.ObjectStore)
		}
		out = append(out, s)
	}
	return out
}
