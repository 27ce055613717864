package devices

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/plan"
)

// Ambivalent is the type of a signature if blkid(8) finds several and can't decide which one is valid.
const Ambivalent = "ambivalent"

// partitionTables lists the types of partition tables in libblkid.
var partitionTables = []string{"gpt", "dos", "PMBR", "atari", "bsd", "mac", "sgi", "solaris_x86", "sun", "ultrix", "unixware"}

func isPartitionTable(s v1alpha1.Signature) bool { return slices.Contains(partitionTables, s.Type) }

// repeats limits how often the same signature of a device is listed, because filesystems such as ZFS leave dozens.
const repeats = 4

// signatures returns the signatures that blkid(8) and wipefs(8) read from a device, never from a cache.
func (v *view) signatures(ctx context.Context, name string) ([]v1alpha1.Signature, error) {
	found, err := v.wipefs(ctx, name)
	if err != nil {
		return found, err
	}
	probed, err := v.blkid(ctx, name)
	for _, p := range probed {
		at := slices.IndexFunc(found, func(s v1alpha1.Signature) bool { return s.Type == p.Type })
		if at < 0 {
			found = append(found, p)
			continue
		}
		// Only blkid reports the UUID of an external log.
		found[at].UUID = firstOf(found[at].UUID, p.UUID)
		found[at].Label = firstOf(found[at].Label, p.Label)
	}
	return found, err
}

// wipefs lists everything that wipefs(8) could erase.
func (v *view) wipefs(ctx context.Context, name string) ([]v1alpha1.Signature, error) {
	out, err := v.run(ctx, name, "wipefs", "--no-act", "--json", "--output", "OFFSET,TYPE,UUID,LABEL", v.node(name))
	if err != nil {
		return nil, fmt.Errorf("can't look for signatures on %s: %w", name, err)
	}
	if out.Code != 0 {
		return nil, fmt.Errorf("can't look for signatures on %s: wipefs ended with %s", name, out.said())
	}
	var answer struct {
		Signatures []struct{ Offset, Type, UUID, Label string } `json:"signatures"`
	}
	if len(bytes.TrimSpace(out.Stdout)) > 0 {
		if err := json.Unmarshal(out.Stdout, &answer); err != nil {
			return nil, fmt.Errorf("can't look for signatures on %s: wipefs wrote what is no JSON: %w", name, err)
		}
	}
	if len(answer.Signatures) == 0 && len(bytes.TrimSpace(out.Stderr)) > 0 {
		return nil, fmt.Errorf("can't look for signatures on %s: wipefs found none, but ended with %s", name, out.said())
	}
	var found []v1alpha1.Signature
	times := map[v1alpha1.Signature]int{}
	for _, s := range answer.Signatures {
		signature := newSignature(name, s.Type, s.UUID, s.Label)
		times[signature]++
		_, isLog := registry.ByLog(s.Type)
		switch {
		case isLog && times[signature] == 1:
			// The records of a log follow one another, and their positions change while the log is used.
			found = append(found, signature)
		case !isLog && times[signature] <= repeats:
			signature.Offset = text(s.Offset, 32)
			found = append(found, signature)
		}
	}
	return found, nil
}

func newSignature(device, kind, uuid, label string) v1alpha1.Signature {
	kind = text(kind, 64)
	if kind == "" {
		kind = "unknown"
	}
	return v1alpha1.Signature{Device: device, Type: kind, UUID: text(uuid, 64), Label: text(label, 256)}
}

// Exit codes of blkid -p.
const (
	blkidFound      = 0
	blkidNothing    = 2
	blkidAmbivalent = 8
)

// blkid probes at the low level, as mkfs and mount do, without the cache in /run/blkid. The options are passed to blkid.
func (v *view) blkid(ctx context.Context, name string, options ...string) ([]v1alpha1.Signature, error) {
	out, err := v.run(ctx, name, slices.Concat([]string{"blkid", "--probe", "--output", "export"}, options, []string{v.node(name)})...)
	if err != nil {
		return nil, fmt.Errorf("can't probe %s: %w", name, err)
	}
	switch out.Code {
	case blkidNothing:
		// The same code means that blkid could not open or read the device. ClaimDevice has proven that this one is readable.
		if len(bytes.TrimSpace(out.Stderr)) > 0 {
			return nil, fmt.Errorf("can't probe %s: blkid ended with %s", name, out.said())
		}
		return nil, nil
	case blkidAmbivalent:
		return []v1alpha1.Signature{newSignature(name, Ambivalent, "", "")}, nil
	case blkidFound:
	default:
		return nil, fmt.Errorf("can't probe %s: blkid ended with %s", name, out.said())
	}
	tags := map[string]string{}
	for line := range strings.Lines(string(out.Stdout)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			tags[key] = value
		}
	}
	var found []v1alpha1.Signature
	if t := tags["TYPE"]; t != "" {
		found = append(found, newSignature(name, t, firstOf(tags["UUID"], tags["LOGUUID"]), tags["LABEL"]))
	}
	if t := tags["PTTYPE"]; t != "" {
		found = append(found, newSignature(name, t, tags["PTUUID"], ""))
	}
	// A partition has an entry in a table, whatever its content is (PART_ENTRY_…). Any other tag is content.
	if known := tags["USAGE"] != "" || tags["UUID"] != "" || tags["LABEL"] != ""; len(found) == 0 && known {
		found = append(found, newSignature(name, tags["USAGE"], tags["UUID"], tags["LABEL"]))
	}
	return found, nil
}

// withoutTable probes the usual starts of partitions on a device that has data but no partition table. Such a device remains if only the
// table was wiped. It only describes data that was already found, so failures are ignored.
func (v *view) withoutTable(ctx context.Context, name string, size int64) []v1alpha1.Signature {
	var found []v1alpha1.Signature
	for _, start := range partitionStarts() {
		if start >= size {
			continue
		}
		probed, err := v.blkid(ctx, name, "--offset", strconv.FormatInt(start, 10))
		if err != nil {
			continue
		}
		for _, s := range probed {
			s.Offset = fmt.Sprintf("%#x", start)
			if !isPartitionTable(s) {
				found = append(found, s)
			}
		}
	}
	return found
}

// logOf finds the filesystem whose external log is on the device: both have the same UUID.
func (v *view) logOf(ctx context.Context, f plan.Facts) *v1alpha1.Signature {
	isLog := func(s v1alpha1.Signature) bool {
		_, is := registry.ByLog(s.Type)
		return is && s.UUID != ""
	}
	at := slices.IndexFunc(f.Signatures, isLog)
	if at < 0 {
		return nil
	}
	of, _ := registry.ByLog(f.Signatures[at].Type) // f has such a signature
	for _, name := range v.allDevices() {
		probed, err := v.blkid(ctx, name)
		if err != nil {
			continue // The device itself is scanned elsewhere.
		}
		for _, s := range probed {
			if s.Type == of.Signature() && s.UUID == f.Signatures[at].UUID {
				return &s
			}
		}
	}
	return nil
}
