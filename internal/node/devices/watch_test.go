package devices

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

func TestOnlyMessagesAboutBlockDevicesOfTheNodeCount(t *testing.T) {
	dev := t.TempDir()
	NewWithT(t).Expect(os.WriteFile(filepath.Join(dev, "loop3"), nil, 0o600)).To(Succeed())
	for name, c := range map[string]struct {
		message string
		counts  bool
	}{
		"the kernel's":             {"add@/devices/virtual/block/loop3\x00ACTION=add\x00SUBSYSTEM=block\x00MAJOR=7\x00DEVNAME=loop3\x00SEQNUM=1\x00", true},
		"udev's":                   {"libudev\x00\xfe\xed\xca\xfe(\x00\x00\x00ACTION=change\x00SUBSYSTEM=block\x00DEVNAME=/dev/sda\x00", true},
		"a disk that has gone":     {"remove@/devices/pci0/block/sdb\x00ACTION=remove\x00SUBSYSTEM=block\x00DEVNAME=sdb\x00", true},
		"a network card's":         {"add@/devices/virtual/net/veth1\x00ACTION=add\x00SUBSYSTEM=net\x00", false},
		"another node's loop":      {"change@/devices/virtual/block/loop4\x00ACTION=change\x00SUBSYSTEM=block\x00DEVNAME=loop4\x00SEQNUM=2\x00", false},
		"the same, as udev has it": {"libudev\x00\xfe\xed\xca\xfe(\x00\x00\x00ACTION=change\x00SUBSYSTEM=block\x00DEVNAME=/dev/loop4\x00", false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Looker{Dev: dev}.loopsOfTheNode().node([]byte(c.message))).To(Equal(c.counts))
		})
	}
}

func TestALoopDeviceThatLeavesTheNodeCountsOnce(t *testing.T) {
	g, dev := NewWithT(t), t.TempDir()
	file, message := filepath.Join(dev, "loop5"), []byte("change@/devices/virtual/block/loop5\x00ACTION=change\x00SUBSYSTEM=block\x00DEVNAME=loop5\x00")
	about := Looker{Dev: dev}.loopsOfTheNode()
	g.Expect(about.node(message)).To(BeFalse())
	g.Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
	g.Expect(about.node(message)).To(BeTrue())
	g.Expect(os.Remove(file)).To(Succeed())
	g.Expect(about.node(message)).To(BeTrue(), "it has gone")
	g.Expect(about.node(message)).To(BeFalse(), "it is somebody else's")
}

func TestManyMessagesAreOne(t *testing.T) {
	g := NewWithT(t)
	events := make(chan struct{}, 1)
	debounced := debounce(t.Context(), events, time.Millisecond)
	events <- struct{}{}
	g.Eventually(debounced).WithTimeout(patience.Bound(time.Minute)).Should(Receive())
	g.Consistently(debounced, "20ms").ShouldNot(Receive())
	events <- struct{}{}
	g.Eventually(debounced).WithTimeout(patience.Bound(time.Minute)).Should(Receive(), "what comes later counts again")
	close(events)
	g.Eventually(debounced).WithTimeout(patience.Bound(time.Minute)).Should(BeClosed())
}
