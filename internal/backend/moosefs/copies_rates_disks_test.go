//go:build disks && copies

package moosefs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// creates matches mdtest's line for a kind of object, with the greatest rate first. With one iteration, all of its rates are the same.
var creates = regexp.MustCompile(`(?m)^ *(Directory|File) creation *:? +([0-9.]+)`)

// TestRatesOfCreatesInBothModes measures with mdtest how many directories and empty files four programs create in a second, in both modes
// in turn. The master has its data in TMPDIR, so that TMPDIR chooses the disk. COPIES is how often each mode is measured, and CREATES how
// many of each kind a program creates.
func TestRatesOfCreatesInBothModes(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("COPIES"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "COPIES is a number")
	_, err = strconv.Atoi(os.Getenv("CREATES"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "CREATES is a number")
	t.Logf("| MooseFS | mode | directories created a second | files created a second |")
	for range times {
		for _, mode := range []string{"0", savingModeInMaster} {
			m := startMasterWith(t, savingModeOption+" = "+mode+"\n", fresh(t), freePorts(t))
			m.mounted(func(path string) {
				ctx, cancel := context.WithTimeout(t.Context(), patience.Bound(10*time.Minute))
				defer cancel()
				says, err := exec.CommandContext(ctx, "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4",
					"mdtest", "-C", "-u", "-n", os.Getenv("CREATES"), "-d", filepath.Join(path, "mdtest")).CombinedOutput()
				m.Expect(err).NotTo(HaveOccurred(), string(says))
				rates := creates.FindAllSubmatch(says, -1)
				m.Expect(rates).To(HaveLen(2), string(says))
				t.Logf("| %s | %s | %s | %s |", version(t), mode, rates[0][2], rates[1][2])
			})
			m.kill()
		}
	}
}
