package filesystem

import (
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbageShare is the part of what is kept in memory, below which garbage is left to the runtime.
	garbageShare = 8
	// manyTargets is from how many targets on a pass collects its garbage. Each collection looks at all that is kept, of all filesystems, and
	// takes as long as the passes over twenty small ones.
	manyTargets = 1000
)

// collect gives garbage back to the system when there is much of it. A pass over 24,000 targets leaves 80 MB behind. The runtime would
// collect it in the middle of a later pass, which would take twice its time, and keep room for as much garbage as there was at most. After
// a pass over one that does not grow, nothing waits.
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
