package backend

import (
	"fmt"
	"math"

	"parallelfs.dev/operator/api/v1alpha1"
)

// fullnessStep is in percent: a status is not written anew for each byte that programs write.
const fullnessStep = 5

// Fullness is how evenly data lies on the targets of a pool that are online and stay, nil for fewer than two of them.
func Fullness(targets []TargetStatus) *v1alpha1.PoolFullness {
	count := 0
	out := v1alpha1.PoolFullness{EmptiestPercent: 100}
	for i := range targets {
		t := &targets[i]
		if !t.Online || t.Removing || t.CapacityBytes <= 0 {
			continue
		}
		count++
		// UsedBytes may be Coarse: what is full says a little less.
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
	// nearlyFull is how much of a pool is in use, in percent, when a person is told to make room.
	nearlyFull = 90
	// fullPerMille is from where on a target counts as full: used space is said in steps of a thousandth, rounded down.
	fullPerMille = 998
)

// Full names the pools that take no new files, and those that soon will not, each in words; there are none while nobody knows the sizes of
// targets. A pool is full when fewer nodes have room on a target that is online and stays than its data has copies: no file can be written
// there whole.
func (o *Observation) Full(pools []v1alpha1.StoragePoolSpec) (full, nearly []string) {
	type sums struct {
		targets, full  int
		capacity, used int64
		room           map[string]bool
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
		if float64(t.UsedBytes) >= float64(t.CapacityBytes)*fullPerMille/1000 {
			s.full++
		} else {
			s.room[t.Node] = true
		}
	}
	for i := range pools {
		s := of[pools[i].Name]
		switch {
		case s.full > 0 && len(s.room) < int(Copies(pools[i])):
			full = append(full, fmt.Sprintf("%s (%d of %d targets are full, %s of %s in use)",
				pools[i].Name, s.full, s.targets, v1alpha1.Bytes(s.used), v1alpha1.Bytes(s.capacity)))
		case s.capacity > 0 && float64(s.used) >= float64(s.capacity)*nearlyFull/100:
			nearly = append(nearly, fmt.Sprintf("%s (%d%%, %s of %s in use)",
				pools[i].Name, int(float64(s.used)/float64(s.capacity)*100), v1alpha1.Bytes(s.used), v1alpha1.Bytes(s.capacity)))
		}
	}
	return full, nearly
}
