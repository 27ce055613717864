package devices

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestOnlyMessagesAboutBlockDevicesCount(t *testing.T) {
	g := NewWithT(t)
	kernel := "add@/devices/virtual/block/loop3\x00ACTION=add\x00DEVPATH=/devices/virtual/block/loop3\x00SUBSYSTEM=block\x00SEQNUM=1\x00"
	udev := "libudev\x00\xfe\xed\xca\xfe(\x00\x00\x00ACTION=change\x00SUBSYSTEM=block\x00DEVNAME=/dev/sda\x00"
	network := "add@/devices/virtual/net/veth1\x00ACTION=add\x00SUBSYSTEM=net\x00"
	g.Expect(aboutBlockDevice([]byte(kernel))).To(BeTrue())
	g.Expect(aboutBlockDevice([]byte(udev))).To(BeTrue())
	g.Expect(aboutBlockDevice([]byte(network))).To(BeFalse())
}

func TestManyMessagesAreOne(t *testing.T) {
	g := NewWithT(t)
	events := make(chan struct{}, 1)
	calmed := calm(t.Context(), events, time.Millisecond)
	events <- struct{}{}
	g.Eventually(calmed).WithTimeout(time.Minute).Should(Receive())
	g.Consistently(calmed, "20ms").ShouldNot(Receive())
	events <- struct{}{}
	g.Eventually(calmed).WithTimeout(time.Minute).Should(Receive(), "what comes later counts again")
	close(events)
	g.Eventually(calmed).WithTimeout(time.Minute).Should(BeClosed())
}
