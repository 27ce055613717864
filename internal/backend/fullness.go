package backend

import (
	"fmt"
	"math"

	"parallelfs.dev/operator/api/v1alpha1"
)

// fullnessStep is in percent, so that the status is not rewritten for every byte that programs write.
const fullnessStep = 5

// Fullness returns how evenly data is spread over the targets of a pool that are online and stay, nil for fewer than two such targets.
func Fullness(targets []TargetStatus) *v1alpha1.PoolFullness {
	count := 0
	out := v1alpha1.PoolFullness{EmptiestPercent: 100}
	for i := range targets {
		t := &targets[i]
		if !t.Online || t.Removing || t.CapacityBytes <= 0 {
			continue
		}
		count++
		// UsedBytes may be Coarse, so a full target may show slightly less than 100 percent.
		percent := int32(math.Round(min(1, max(0, float64(t.UsedBytes)/float64(t.CapacityBytes))) * 100))
		percent -= percent % fullnessStep
		out.EmptiestPercent, out.FullestPercent = min(out.EmptiestPercent, percent), max(out.FullestPercent, percent)
	}
	if count < 2 {
		return nil
	}
	return &out
}

const (
	// nearlyFull is the used part of a pool, in percent, from which the status asks a person to make room.
	nearlyFull = 90
	// fullPerMille is the used part from which a target counts as full. Used space is reported in thousandths, rounded down.
	fullPerMille = 998
)

// Full names the pools that accept no new files, and those that soon will not, each in words; none while the sizes of the targets are
// unknown. A pool is full if the nodes with room on a target that is online and stays are fewer than its number of copies, because no file
// could be written with all its copies.
func (o *Observation) Full(pools []v1alpha1.StoragePoolSpec) (full, nearly []string) {
	type sums struct {
		targets, full      int
		capacity, used     int64
		inodes, usedInodes int64
		room               map[string]bool
	}
	of := make(map[string]*sums, len(pools))
	for i := range pools {
		of[pools[i].Name] = &sums{room: map[string]bool{}}
	}
	for i := range o.Targets {
		t := &o.Targets[i]
		s := of[t.StoragePool]
		if s == nil || !t.Online || t.Removing || t.CapacityBytes <= 0 {
			continue
		}
		s.targets, s.capacity, s.used = s.targets+1, s.capacity+t.CapacityBytes, s.used+t.UsedBytes
		s.inodes, s.usedInodes = s.inodes+t.Inodes, s.usedInodes+t.UsedInodes
		if isFull(t.UsedBytes, t.CapacityBytes) || isFull(t.UsedInodes, t.Inodes) {
			s.full++
		} else {
			s.room[t.Node] = true
		}
	}
	for i := range pools {
		s := of[pools[i].Name]
		switch {
		case s.full > 0 && len(s.room) < int(Copies(pools[i])):
			inodes := ""
			if share := percent(s.usedInodes, s.inodes); share >= nearlyFull {
				inodes = fmt.Sprintf(", %d%% of inodes", share)
			}
			full = append(full, fmt.Sprintf("%s (%d of %d targets are full, %s of %s%s in use)",
				pools[i].Name, s.full, s.targets, v1alpha1.Bytes(s.used), v1alpha1.Bytes(s.capacity), inodes))
		case percent(s.used, s.capacity) >= nearlyFull:
			nearly = append(nearly, fmt.Sprintf("%s (%d%%, %s of %s in use)",
				pools[i].Name, percent(s.used, s.capacity), v1alpha1.Bytes(s.used), v1alpha1.Bytes(s.capacity)))
		case percent(s.usedInodes, s.inodes) >= nearlyFull:
			nearly = append(nearly, fmt.Sprintf("%s (%d%% of inodes in use)", pools[i].Name, percent(s.usedInodes, s.inodes)))
		}
	}
	return full, nearly
}

// FullMetadata names the metadata targets that accept no new files, if none that is online has space and inodes left. Otherwise it names
// those that will soon accept none, because other metadata targets still do.
func FullMetadata(state *State) (full, nearly []string) {
	if state == nil {
		return nil, nil
	}
	room := false
	for i := range state.Targets {
		t := &state.Targets[i]
		if t.Role != v1alpha1.RoleMetadata || !t.Online {
			continue
		}
		room = room || !isFull(t.UsedBytes, t.CapacityBytes) && !isFull(t.UsedInodes, t.Inodes)
		// The numbers are whole percents, so that the status is not rewritten for every new file.
		if space, inodes := percent(t.UsedBytes, t.CapacityBytes), percent(t.UsedInodes, t.Inodes); max(space, inodes) >= nearlyFull {
			nearly = append(nearly, fmt.Sprintf("metadata target %d (%d%% of space, %d%% of inodes in use)", t.ID, space, inodes))
		}
	}
	if !room {
		return nearly, nil
	}
	return nil, nearly
}

// InodesOnDisk returns the inodes of a target's disk as the agent of its node reports them, for filesystems that report none. The agent
// reports a share only, so they are thousandths.
func InodesOnDisk(t *v1alpha1.StorageTarget) (all, used int64) {
	const whole = 1000
	return whole, int64(t.Status.UsedInodesPerMille)
}

// InodesOfDirectory returns the inodes of the filesystem that a directory of a node is on, in the form of InodesOnDisk; 0 if the agent does
// not report them.
func InodesOfDirectory(n *v1alpha1.FileSystemNode, directory string) (all, used int64) {
	if n == nil || n.Status.Agent == nil {
		return 0, 0
	}
	const whole = 1000
	for i := range n.Status.Agent.Directories {
		if d := &n.Status.Agent.Directories[i]; d.Name == directory {
			return whole, int64(d.UsedInodesPerMille)
		}
	}
	return 0, 0
}

// isFull reports whether almost nothing is left of a resource; false while its size is unknown.
func isFull(used, all int64) bool { return all > 0 && float64(used) >= float64(all)*fullPerMille/1000 }

// percent returns the used part of a resource, rounded down; 0 while its size is unknown.
func percent(used, all int64) int {
	if all <= 0 {
		return 0
	}
	return int(float64(used) / float64(all) * 100)
}
