package devices

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
)

func TestASampleIsBoundedAndCoversWhereDataUsuallyBegins(t *testing.T) {
	const gibi = 1024 * mebi
	for name, size := range map[string]int64{
		"nothing": 0, "a sector": 512, "1 MiB": mebi, "64 MiB": 64 * mebi, "1 GiB": gibi, "960 GB": 960197124096, "24 TB": 24000277250048, "1 PiB": 1 << 50,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var read, end int64 = 0, -1
			within := func(at, length int64) bool {
				for _, p := range Sample(size) {
					if p.Offset <= at && at+length <= p.Offset+p.Size {
						return true
					}
				}
				return false
			}
			for _, p := range Sample(size) {
				g.Expect(p.Offset).To(BeNumerically(">", end), "the places are sorted and apart")
				end = p.Offset + p.Size
				read += p.Size
			}
			g.Expect(end).To(BeNumerically("<=", size))
			g.Expect(read).To(BeNumerically("<=", 50*mebi), "what one scan reads of a blank device")
			g.Expect(read).To(BeNumerically(">=", min(size, headSize)))
			t.Logf("%d places, %d KiB", len(Sample(size)), read/kibi)
			// A partition with XFS, ext4 or btrfs that starts here has its superblock in the sample.
			for _, start := range []int64{0, 34 * 512, 40 * 512, 63 * 512, 64 * 512, mebi, 2 * mebi, 17 * mebi, 101 * mebi, 129 * mebi, 201 * mebi, 261 * mebi,
				301 * mebi, 501 * mebi, 513 * mebi, 1025 * mebi, size - 8*mebi - 512*kibi, size - mebi, size - 68*kibi} {
				if start >= 0 && start+68*kibi <= size {
					g.Expect(within(start, 68*kibi)).To(BeTrue(), "offset %d", start)
				}
			}
		})
	}
}

func TestTheFirstByteThatIsNotZeroIsFound(t *testing.T) {
	g := NewWithT(t)
	content := make([]byte, 3*mebi)
	places := []Place{{0, 100}, {mebi - 1, mebi + 2}}
	g.Expect(firstData(bytes.NewReader(content), places)).To(BeEmpty())
	content[100], content[2*mebi] = 1, 1
	g.Expect(firstData(bytes.NewReader(content), places)).To(MatchRegexp(`^0x200000 \(checksum [0-9a-f]{16}\)$`), "byte 100 is in no place")
	before, _ := firstData(bytes.NewReader(content), places)
	content[2*mebi] = 2
	g.Expect(firstData(bytes.NewReader(content), places)).NotTo(Equal(before), "other data in the same place")
	_, err := firstData(bytes.NewReader(content), []Place{{3*mebi - 1, 2}})
	g.Expect(err).To(MatchError(ContainSubstring("can't read 2 bytes at 3145727: EOF; look for errors")))
}
