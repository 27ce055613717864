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
	l := newLab(t)
	d := l.disk(1)
	unanswering.Open(t)
	looked := make(chan string, 1)
	go func() {
		v := &view{Looker: l.looker, uses: map[string][]string{}}
		v.readMounts()
		looked <- v.writers([]string{d.name})
	}()
	var writer string
	g := NewWithT(t)
	g.Eventually(looked).WithTimeout(patience.Bound(time.Minute)).Should(Receive(&writer))
	g.Expect(writer).To(BeEmpty())
}
