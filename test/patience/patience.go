// Package patience bounds how long tests wait. A bound ends a test whose expected state never comes, but must not end one on a busy
// machine. Therefore every bound in a test grows with the slowness of the machine: `.WithTimeout(patience.Bound(time.Minute))`.
package patience

import (
	"crypto/sha256"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// maxFactor limits the factor, so that a wait for a state that never comes ends as well.
	maxFactor = 10
	// pieces is an amount of work that takes workTime on one idle core of the machines for which the bounds were chosen.
	pieces, workTime = 64, 8 * time.Millisecond
)

// atStart is the factor at the start of the process. It is measured by the machine's clock, before any test uses a fake clock.
var atStart = max(ofWork(work()), ofLoad(load(), runtime.NumCPU()))

// Bound returns d on an idle machine, and up to ten times d on a busy one. The factor is measured at the start of the process. The load is
// read again at each call, because other programs may have started. The factor never falls below that at the start.
func Bound(d time.Duration) time.Duration {
	return scaled(d, max(atStart, ofLoad(load(), runtime.NumCPU())))
}

// Flag returns Bound as an option of kubectl: --timeout=300s.
func Flag(d time.Duration) string {
	return "--timeout=" + strconv.Itoa(int(Bound(d).Seconds())) + "s"
}

// scaled multiplies a duration with a factor.
func scaled(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}

// ofWork returns the factor of a machine that needs this long for the pieces of work.
func ofWork(took time.Duration) float64 {
	return bounded(float64(took) / float64(workTime))
}

// ofLoad returns the factor of a machine with this content of /proc/loadavg and this number of cores: how many processes share one core.
// The mean of a minute misses recently started processes, and the number of runnable processes misses intermittent ones; the larger value
// counts.
func ofLoad(loadavg string, cores int) float64 {
	fields := strings.Fields(loadavg)
	if len(fields) < 4 {
		return 1
	}
	mean, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		return 1
	}
	now, _, _ := strings.Cut(fields[3], "/")
	runnable, err := strconv.ParseFloat(now, 64)
	if err != nil {
		return 1
	}
	return bounded(max(mean, runnable) / float64(max(cores, 1)))
}

// bounded returns a factor within the limits. NaN becomes 1.
func bounded(factor float64) float64 {
	if !(factor > 1) {
		return 1
	}
	return min(factor, maxFactor)
}

// work measures the time for the pieces of work.
func work() time.Duration {
	block := make([]byte, 64<<10)
	began := time.Now()
	for range pieces {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
	return time.Since(began)
}

// load returns the content of /proc/loadavg, or an empty text without it.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return string(content)
}
