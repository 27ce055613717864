//go:build disks && copies

package moosefs

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
)

// The table takes minutes, so that it has a tag of its own. COPIES is how often each event is made to happen; `make copies` sets it.
func TestCopiesCanBeReadWhateverHappensWhileTheWriterOfTheMasterIsStopped(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("COPIES"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "COPIES is a number")
	t.Logf("| MooseFS | mode | event | writer stops for | copies that can't be read | directories lost by the master |")
	for _, mode := range []string{"0", savingModeInMaster} {
		for _, name := range backend.SortedKeys(events) {
			for _, still := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
				t.Run(fmt.Sprintf("mode %s, %s, %s", mode, name, still), func(t *testing.T) {
					t.Parallel() // they mostly wait
					g := NewWithT(t)
					var unread, missing int
					var why string
					for range times {
						is := after(t, savingModeOption+" = "+mode+"\n", events[name], still)
						if is.unread != "" {
							unread, why = unread+1, is.unread
						}
						missing += is.missing
					}
					t.Logf("| %s | %s | %s | %s | %d of %d | %d | %s", version(t), mode, name, still, unread, times, missing, why)
					if mode == savingModeInMaster {
						g.Expect(unread).To(BeZero(), why)
						g.Expect(missing).To(BeZero())
					}
				})
			}
		}
	}
}
