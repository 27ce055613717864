//go:build disks

package devices

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
	"parallelfs.dev/operator/test/unanswering"
)

func TestADiskIsLookedAtBesideAFilesystemThatDoesNotAnswer(t *testing.T) {
	unanswering.Open(t)
	looked := make(chan string, 1)
	go func() {
		v := &view{Looker: Looker{Proc: "/proc", Sys: "/sys", Dev: "/dev"}, uses: map[string][]string{}}
		v.readMounts()
		looked <- v.writers([]string{"loop0"})
	}()
	NewWithT(t).Eventually(looked).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeEmpty()))
}
