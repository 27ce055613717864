package disruption_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/disruption"
)

func TestAWindowIsOpenFromItsStartForItsDurationInItsTimeZone(t *testing.T) {
	window := func(schedule, zone string, hours int) v1alpha1.UpdateWindow {
		return v1alpha1.UpdateWindow{Schedule: schedule, TimeZone: zone, Duration: metav1.Duration{Duration: time.Duration(hours) * time.Hour}}
	}
	saturday := window("0 2 * * 6", "Europe/Berlin", 4)
	const friday = "2026-11-27T12:00:00Z"
	const next = "the next window of spec.updates.windows opens at "
	for name, c := range map[string]struct {
		windows []v1alpha1.UpdateWindow
		now     string
		closed  string
		fails   string
	}{
		"without windows, every time is one":          {now: friday},
		"closed before its start":                     {windows: []v1alpha1.UpdateWindow{saturday}, now: friday, closed: next + "2026-11-28 02:00 CET"},
		"closed in the second before its start":       {windows: []v1alpha1.UpdateWindow{saturday}, now: "2026-11-28T00:59:59Z", closed: next + "2026-11-28 02:00 CET"},
		"open at its start":                           {windows: []v1alpha1.UpdateWindow{saturday}, now: "2026-11-28T01:00:00Z"},
		"open in its last second":                     {windows: []v1alpha1.UpdateWindow{saturday}, now: "2026-11-28T04:59:59Z"},
		"closed at its end":                           {windows: []v1alpha1.UpdateWindow{saturday}, now: "2026-11-28T05:00:00Z", closed: next + "2026-12-05 02:00 CET"},
		"its time is that of the zone in summer":      {windows: []v1alpha1.UpdateWindow{saturday}, now: "2026-07-04T00:00:00Z"},
		"any of several is enough":                    {windows: []v1alpha1.UpdateWindow{saturday, window("0 11 * * 5", "UTC", 2)}, now: friday},
		"the one that opens first is named":           {windows: []v1alpha1.UpdateWindow{saturday, window("0 13 * * 5", "UTC", 2)}, now: friday, closed: next + "2026-11-27 13:00 UTC"},
		"a window longer than its period never ends":  {windows: []v1alpha1.UpdateWindow{window("0 0 * * *", "UTC", 30)}, now: friday},
		"without a zone, it is UTC":                   {windows: []v1alpha1.UpdateWindow{window("0 12 * * *", "", 1)}, now: friday},
		"an unknown zone opens nothing":               {windows: []v1alpha1.UpdateWindow{window("0 12 * * *", "Europe/Nowhere", 1)}, now: friday, fails: `windows[0].timeZone "Europe/Nowhere"`},
		"the manager's own zone is nobody's":          {windows: []v1alpha1.UpdateWindow{window("0 12 * * *", "Local", 1)}, now: friday, fails: "is no time zone"},
		"a schedule that can't be read opens nothing": {windows: []v1alpha1.UpdateWindow{saturday, window("0 25 * * *", "UTC", 1)}, now: friday, fails: `windows[1].schedule "0 25 * * *" can't be read`},
		"one bad window closes the good ones, so that a person sees it": {
			windows: []v1alpha1.UpdateWindow{window("x", "UTC", 1), window("0 12 * * *", "UTC", 1)}, now: friday, fails: "windows[0].schedule",
		},
		"also a bad one behind one that is open": {
			windows: []v1alpha1.UpdateWindow{window("0 12 * * *", "UTC", 1), window("x", "UTC", 1)}, now: friday, fails: "windows[1].schedule",
		},
		"a day that never comes is reported": {windows: []v1alpha1.UpdateWindow{window("0 0 30 2 *", "UTC", 1)}, now: friday, fails: "names a day that never comes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			now, err := time.Parse(time.RFC3339, c.now)
			g.Expect(err).NotTo(HaveOccurred())
			closed, err := disruption.Closed(c.windows, now)
			if c.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.fails)))
				g.Expect(closed).To(Equal("spec.updates.windows can be understood"))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(closed).To(Equal(c.closed))
		})
	}
}
