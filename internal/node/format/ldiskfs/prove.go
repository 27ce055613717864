package ldiskfs

import (
	"errors"
	"fmt"
	"strings"

	"parallelfs.dev/operator/internal/node/format"
)

// Proof is none: a mounted target can be asked for nothing by its directory.
func (Format) Proof() format.Proof { return format.Proof{} }

// Mark is the comment in CONFIGS/mountdata.
func (Format) Mark(a format.Answer) (string, error) {
	found, err := ParseReadBack(a.Code, a.Stdout)
	if errors.Is(err, ErrNoTarget) {
		return "", nil
	}
	if err != nil {
		return "", errors.New(strings.TrimSuffix(fmt.Sprintf("%s: %s", err, a.Said), ": "))
	}
	return found.Mark, nil
}

// Refusal holds what was seen against what was given.
func (Format) Refusal(n format.New, s format.Seen) string {
	if n.Given == nil {
		return "the operator has not said yet what the target is to Lustre (spec.lustre)"
	}
	found, err := ParseReadBack(s.Answer.Code, s.Answer.Stdout)
	if err != nil {
		return strings.TrimSuffix(fmt.Sprintf("%s: %s", err, s.Answer.Said), ": ")
	}
	return Refusal(ServiceOf(*n.Given), n.UUID, n.Mark, Seen{Type: s.Type, UUID: s.UUID, Label: s.Label, Target: found})
}

// Seen is what was read from a device that is to be mounted as a target: its superblock by blkid(8), and what ParseReadBack found.
type Seen struct {
	Type, UUID, Label string
	Target            Found
}

// Refusal says why a device must not be mounted as the target that was given so, as one sentence without its beginning; empty when it may.
// It is asked before each mount, because a mount registers a target with its MGS under the name that it has.
func Refusal(want Service, uuid, mark string, s Seen) string {
	label := want.Label(s.Target.Registration)
	switch {
	case s.Type != Signature:
		return fmt.Sprintf("it holds %q instead of an ext4", s.Type)
	case !strings.EqualFold(s.UUID, uuid):
		return fmt.Sprintf("its filesystem has the UUID %s, and the target was recorded with %s; bring the right disk back", s.UUID, uuid)
	}
	if differ := Differences(want, mark, s.Target); len(differ) > 0 {
		return strings.Join(differ, ", and ") + "; bring the right disk back, or have the target given anew by an approved plan"
	}
	if s.Target.Registration == Writeconf {
		return fmt.Sprintf("its label %s says that the next mount writes the configuration of the filesystem anew (writeconf), which nobody has approved",
			s.Label)
	}
	if s.Label != label {
		return fmt.Sprintf("its label is %s, and that of the target is %s; somebody else has changed it", s.Label, label)
	}
	return ""
}
