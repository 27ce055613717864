package disruption

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// minutes reads the five fields of a schedule, as CronJobs have them.
var minutes = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Closed says when the next window opens, in words that follow "when "; empty while one is open, or when there is none at all. An error
// says which window can't be understood, and what to write instead; nothing is open then.
func Closed(windows []v1alpha1.UpdateWindow, now time.Time) (string, error) {
	var opens time.Time
	for i := range windows {
		w := &windows[i]
		zone, err := backend.TimeZone(w.TimeZone)
		if err != nil {
			return unreadable, fmt.Errorf("spec.updates.windows[%d].timeZone %w", i, err)
		}
		schedule, err := minutes.Parse(w.Schedule)
		if err != nil {
			return unreadable, fmt.Errorf("spec.updates.windows[%d].schedule %q can't be read: %w; write minute, hour, day, month and day of the week, such as \"0 2 * * 6\"",
				i, w.Schedule, err)
		}
		// The first start behind the one that would have just ended: the window is open when that has come already.
		start := schedule.Next(now.In(zone).Add(-w.Duration.Duration))
		if start.IsZero() {
			return unreadable, fmt.Errorf("spec.updates.windows[%d].schedule %q names a day that never comes", i, w.Schedule)
		}
		if opens.IsZero() || start.Before(opens) {
			opens = start
		}
	}
	if !opens.After(now) {
		return "", nil
	}
	return "the next window of spec.updates.windows opens at " + opens.Format("2006-01-02 15:04 MST"), nil
}

// unreadable follows "when ".
const unreadable = "spec.updates.windows can be understood"
