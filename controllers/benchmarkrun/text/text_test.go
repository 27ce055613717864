package text

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestADurationIsWrittenShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 45 * time.Second: "45s", 90 * time.Second: "2m", 72 * time.Minute: "1h12m", 25*time.Hour + 29*time.Second: "25h0m", 59*time.Minute + 59*time.Second: "1h0m",
	} {
		t.Run(want, func(t *testing.T) { NewWithT(t).Expect(ShortDuration(d)).To(Equal(want)) })
	}
}
