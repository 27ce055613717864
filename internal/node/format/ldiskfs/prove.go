package ldiskfs

import (
	"errors"
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
)

// Proof is empty: the directory of a mounted target supports no request.
func (Format) Proof() format.Proof { return format.Proof{} }

// Mark returns the comment in CONFIGS/mountdata.
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

// Says returns the assignment in CONFIGS/mountdata.
func (Format) Says(a format.Answer) (format.Given, error) {
	found, err := ParseReadBack(a.Code, a.Stdout)
	if err != nil {
		return format.Given{}, errors.New(strings.TrimSuffix(fmt.Sprintf("%s: %s", err, a.Said), ": "))
	}
	s := found.Service
	if len(s.MGSNodes) > 1 || len(s.ServiceNodes) > 0 {
		return format.Given{}, errors.New("it says that it, or its MGS, may be on several nodes (failover), and the operator runs no such targets")
	}
	given := format.Given{Kind: v1alpha1.LustreTargetKind(s.Kind), FSName: s.FSName, WithMGT: s.MGS && s.Kind != ""}
	if s.Kind == "" {
		return format.Given{Kind: v1alpha1.LustreMGT}, nil
	}
	if !found.Indexed {
		return format.Given{}, errors.New("it has no index")
	}
	given.Index = &s.Index
	for _, node := range s.MGSNodes {
		given.ManagementNIDs = strings.Split(string(node), ",")
	}
	return given, nil
}

// Remark returns the command tunefs.lustre --comment, which changes nothing else in CONFIGS/mountdata.
func (Format) Remark(device, mark string) []string {
	return []string{Tunefs, "--comment=" + mark, device}
}

// Refusal compares what was seen with the assignment.
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

// Seen is what was read from a device before it is mounted as a target: its superblock by blkid(8), and the result of ParseReadBack.
type Seen struct {
	Type, UUID, Label string
	Target            Found
}

// Refusal returns why a device must not be mounted as the target with this assignment, as one sentence without its beginning; empty if it
// may. It is checked before each mount, because a mount registers a target with its MGS under its present name.
func Refusal(want Service, uuid, mark string, s Seen) string {
	label := want.Label(s.Target.Registration)
	switch {
	case s.Type != Signature:
		return fmt.Sprintf("it holds %q instead of an ext4", s.Type)
	case !strings.EqualFold(s.UUID, uuid):
		return fmt.Sprintf("its filesystem has the UUID %s, and the target was recorded with %s; bring the right disk back", s.UUID, uuid)
	}
	if differ := Differences(want, mark, s.Target); len(differ) > 0 {
		return strings.Join(differ, ", and ") + "; bring the right disk back, or have the target assigned again by an approved plan"
	}
	if s.Target.Registration == Writeconf {
		return fmt.Sprintf("its label %s says that the next mount writes the configuration of the filesystem again (writeconf), which was not approved",
			s.Label)
	}
	if s.Label != label {
		return fmt.Sprintf("its label is %s, and that of the target is %s; somebody else has changed it", s.Label, label)
	}
	return ""
}
