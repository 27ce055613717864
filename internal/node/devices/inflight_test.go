package devices

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// hang blocks all queries of a disk until the test ends, and counts them.
func (m *machine) hang(disk string) (stuck *atomic.Int32, answer func()) {
	stuck, released := &atomic.Int32{}, make(chan struct{})
	var once sync.Once
	answer = func() { once.Do(func() { close(released) }) }
	m.Cleanup(answer)
	wait := func() {
		stuck.Add(1)
		<-released
		stuck.Add(-1)
	}
	run, claim := m.looker.Run, m.looker.Claim
	m.looker.Limit = 30 * time.Millisecond
	m.looker.Run = func(ctx context.Context, argv ...string) (Output, error) {
		if argv[len(argv)-1] == m.looker.node(disk) {
			started(ctx, 4711)
			wait()
		}
		return run(ctx, argv...)
	}
	m.looker.Claim = func(path, number string) (string, error) {
		if path == m.looker.node(disk) {
			wait()
		}
		return claim(path, number)
	}
	return stuck, answer
}

func TestADiskThatHangsIsWaitedForByOneLookOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		stuck, answer := m.hang("vda")
		first := m.all()["vda"]
		g.Expect(first.Incomplete).To(ContainSubstring("no answer within 30ms"))
		said := ""
		for range 5 {
			all := m.all()
			g.Expect(all["vda"].Incomplete).To(MatchRegexp(
				`the look of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC still waits for it \(wipefs, process 4711\), and no other one is begun`))
			g.Expect(all["vda"].Unusable).To(ContainElement(ContainSubstring("could not be looked at completely")))
			g.Expect(all["nvme0n1"].Unusable).To(BeEmpty(), "all other disks are looked at")
			if said != "" {
				g.Expect(all["vda"].Incomplete).To(Equal(said), "the inventory does not change with each look")
			}
			said = all["vda"].Incomplete
		}
		_, err := m.looker.ByID(t.Context(), "data-1")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stuck.Load()).To(BeEquivalentTo(1))

		answer()
		g.Eventually(func() string { return m.all()["vda"].Incomplete }).WithTimeout(patience.Bound(time.Minute)).Should(BeEmpty(), "it is looked at again when it answers")
	})
}

func TestLooksAtTheSameTimeAskOneThingOfADiskAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		stuck, _ := m.hang("vda")
		var looks sync.WaitGroup
		for range 4 {
			looks.Go(func() { m.looker.All(t.Context()) })
		}
		looks.Wait()
		g.Expect(stuck.Load()).To(BeEquivalentTo(1))
	})
}

func TestADiskThatHangsAsAPartitionHangsAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		stuck, _ := m.hang("sdc1")
		for range 2 {
			g.Expect(m.all()["sdc"].Incomplete).NotTo(BeEmpty())
		}
		g.Expect(stuck.Load()).To(BeEquivalentTo(1))
	})
}

func TestAListOfDevicesThatHangsIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		released := make(chan struct{})
		t.Cleanup(func() { close(released) })
		var asked atomic.Int32
		m.looker.Limit = 30 * time.Millisecond
		m.looker.Run = func(context.Context, ...string) (Output, error) {
			asked.Add(1)
			<-released
			return Output{}, nil
		}
		for _, says := range []string{"no answer within 30ms", "still waits for it (lsblk)", "still waits for it (lsblk)"} {
			found, problems := m.looker.All(t.Context())
			g.Expect(found).To(BeEmpty())
			g.Expect(problems).To(ConsistOf(And(HavePrefix("can't list the block devices: "), ContainSubstring(says))))
		}
		g.Expect(asked.Load()).To(BeEquivalentTo(1))
	})
}

func TestADiskOfWhichTheSizeCanNotBeReadIsListed(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.remove("sys/class/block/vda/size")
	g.Expect(m.all()["vda"].Unusable).To(ContainElement(ContainSubstring("can't read the size of vda")))
}

func TestDevicesWithoutDataInTheListAreNotUsable(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.outputs["lsblk"] = Output{Code: 32}
	found, problems := m.looker.All(t.Context())
	g.Expect(problems).To(ConsistOf(ContainSubstring("lsblk lists no device")))
	g.Expect(found).To(ContainElement(HaveField("Unusable", ContainElement(ContainSubstring("could not be looked at completely")))))
}
