package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestEveryByteThatIsNotAsItWasWrittenIsCounted(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	g.Expect(write(directory, 7)).To(Succeed())
	g.Expect(read(directory, 7)).To(BeZero())
	file := filepath.Join(directory, "007")
	have, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	have[1000] ^= 1
	have[2000] ^= 1
	g.Expect(os.WriteFile(file, have, private)).To(Succeed())
	g.Expect(read(directory, 7)).To(Equal(int64(2)))
	g.Expect(os.Truncate(file, 100)).To(Succeed())
	g.Expect(read(directory, 7)).To(Equal(int64(fileBytes)), "a file that is cut off")
	_, err = read(directory, 8)
	g.Expect(err).To(MatchError(errNothingThere))
}

func TestABlockedAndAFailedOperationAreReported(t *testing.T) {
	g := NewWithT(t)
	var o Operations
	o.repeat(time.Now(), func() bool { return o.Count+o.Errors == 3 }, func(n uint64) error {
		switch n {
		case 1:
			<-time.After(200 * time.Millisecond)
		case 2:
			return os.ErrPermission
		}
		return nil
	})
	g.Expect(o).To(And(HaveField("Count", 2), HaveField("Errors", 1), HaveField("Error", "permission denied"),
		HaveField("LongestMilliseconds", BeNumerically(">=", 200))))
}

func TestTwoProgramsReadWhatEachOfThemWrites(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	a, b, stop := filepath.Join(directory, "a"), filepath.Join(directory, "b"), filepath.Join(directory, "stop")
	g.Expect(os.Mkdir(b, 0o700)).To(Succeed())
	g.Expect(write(b, 0)).To(Succeed())
	time.AfterFunc(time.Second, func() { _ = os.WriteFile(stop, nil, private) })
	report, err := load(stop, []string{a, b})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(report.Writes.Count).To(BeNumerically(">", 2))
	g.Expect([]int64{report.DifferentBytes, int64(report.Writes.Errors), int64(report.Reads.Errors)}).To(Equal([]int64{0, 0, 0}))
}
