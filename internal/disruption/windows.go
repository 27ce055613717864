package disruption

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
)

// minutes parses the five fields of a schedule, as in CronJobs.
var minutes = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Closed returns when the next window opens, to follow "when ". It is empty while one is open, or if there are no windows. An error names
// the invalid window and the correct form. No window counts as open in that case.
func Closed(windows []v1alpha1.UpdateWindow, now time.Time) (string, error) {
	var opens time.Time
	for i := range windows {
		w := &windows[i]
		zone, err := metadatajobs.TimeZone(w.TimeZone)
		if err != nil {
			return unreadable, fmt.Errorf("spec.updates.windows[%d].timeZone %w", i, err)
		}
		schedule, err := minutes.Parse(w.Schedule)
		if err != nil {
			return unreadable, fmt.Errorf("spec.updates.windows[%d].schedule %q can't be read: %w; write minute, hour, day, month and day of the week, such as \"0 2 * * 6\"",
				i, w.Schedule, err)
		}
		// This is the first start after that of a window which would end just now. The window is open if this start has passed.
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

// unreadable is text to follow "when ".
const unreadable = "spec.updates.windows can be understood"
