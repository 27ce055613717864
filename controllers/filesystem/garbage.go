package filesystem

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbageShare is the fraction of the live memory below which the runtime handles the garbage alone.
	garbageShare = 8
	// manyTargets is the number of targets from which a pass triggers a garbage collection. Each collection scans the live memory of all
	// filesystems, and takes as long as the passes over twenty small ones.
	manyTargets = 1000
)

// collect runs a garbage collection and returns memory to the system if there is much garbage. A pass over 24,000 targets leaves 80 MB of
// it. The runtime would collect that in the middle of a later pass, which would take twice its time, and would keep the memory of the peak.
// At this moment, after a pass over a filesystem that does not grow, nothing waits.
func collect(targets int) {
	if targets < manyTargets {
		return
	}
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(read)
	if kept, all := read[0].Value.Uint64(), read[1].Value.Uint64(); all > kept+kept/garbageShare {
		debug.FreeOSMemory()
	}
}
