// Package patience bounds how long tests wait. A bound ends a test whose state will never come; it must not end one whose machine is busy.
// So every bound in a test grows with the slowness of the machine: `.WithTimeout(patience.Bound(time.Minute))`.
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
	// pieces of work take workTime on one idle core of the machines that the bounds were chosen on.
	pieces, workTime = 64, 8 * time.Millisecond
)

// atStart is the factor when the process has started. It is measured by the clock of the machine, before any test has a clock of its own.
var atStart = max(ofWork(work()), ofLoad(load(), runtime.NumCPU()))

// Bound is d on an idle machine and up to ten times d on a busy one. The factor is measured when the process starts. The load is read again
// at each call, because other programs may start after this one; the factor never falls below the one of the start.
func Bound(d time.Duration) time.Duration {
	return scaled(d, max(atStart, ofLoad(load(), runtime.NumCPU())))
}

// Flag is Bound as an option of kubectl: --timeout=300s.
func Flag(d time.Duration) string {
	return "--timeout=" + strconv.Itoa(int(Bound(d).Seconds())) + "s"
}

// scaled multiplies a duration with a factor.
func scaled(d time.Duration, factor float64) time.Duration {
	return time.Duration(float64(d) * factor)
}

// ofWork is the factor of a machine that needs so long for the pieces of work.
func ofWork(took time.Duration) float64 {
	return bounded(float64(took) / float64(workTime))
}

// ofLoad is the factor of a machine with the content of /proc/loadavg and so many cores: how many processes share one core. The mean of a
// minute misses what has just started, and the number of runnable processes what runs now and then; the larger one counts.
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

// bounded is a factor within the limits. What is no number is 1.
func bounded(factor float64) float64 {
	if !(factor > 1) {
		return 1
	}
	return min(factor, maxFactor)
}

// work measures how long the pieces of work take.
func work() time.Duration {
	block := make([]byte, 64<<10)
	began := time.Now()
	for range pieces {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
	return time.Since(began)
}

// load is the content of /proc/loadavg, and empty where there is none.
func load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return string(content)
}
