package kernel

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
)

func TestAnMDTWaitsForTheOthersUntilItHasReadWhichOnesThereAre(t *testing.T) {
	g := NewWithT(t)
	mdt := &target{name: "pfs-MDT0000", status: "WAITING", expected: []string{"client"}, started: time.Now(), data: mountdata.Data{FSName: "pfs"}, lov: &follower{}}
	mdt.recover()
	g.Expect(mdt.status).To(Equal("WAITING"), "it has not read its configuration yet")

	other := &Connection{Target: "pfs-MDT0001", Active: true}
	mdt.lov.connections, mdt.lov.read = []*Connection{other}, true
	mdt.recover()
	g.Expect(mdt.status).To(Equal("WAITING"), "the other MDT is down")

	other.become(full)
	mdt.recover()
	g.Expect(mdt.status).To(Equal("WAITING_FOR_CLIENTS"))
}
