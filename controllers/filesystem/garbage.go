package filesystem

import (
	"runtime/debug"
	"runtime/metrics"
)

// garbageShare is the part of what is kept in memory, below which garbage is left to the next pass: each collection looks at all that is
// kept, and most passes are over small filesystems.
const garbageShare = 3

// collect gives garbage back to the system when there is much of it. A pass over 24,000 targets leaves 80 MB behind. The runtime would
// collect it in the middle of a later pass, which would take twice its time, and keep room for as much garbage as there was at most. After
// a pass of a filesystem at rest, nothing waits.
func collect() {
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(read)
	if kept, all := read[0].Value.Uint64(), read[1].Value.Uint64(); all > kept+kept/garbageShare {
		debug.FreeOSMemory()
	}
}
