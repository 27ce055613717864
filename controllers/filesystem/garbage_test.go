package filesystem

import (
	"runtime"
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMuchGarbageIsCollectedAndLittleIsLeft(t *testing.T) {
	g := NewWithT(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // only the function collects garbage
	kept := make([]byte, 64<<20)
	debug.FreeOSMemory()
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumGC
	}
	before := collections()
	collect(manyTargets)
	g.Expect(collections()).To(Equal(before), "there is none")
	_ = make([]byte, 32<<20)
	collect(manyTargets - 1)
	g.Expect(collections()).To(Equal(before), "it is left to a pass over a large filesystem")
	collect(manyTargets)
	g.Expect(collections()).To(BeNumerically(">", before))
	runtime.KeepAlive(kept)
}
