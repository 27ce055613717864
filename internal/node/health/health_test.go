package health_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/health"
)

// recorded is what smartctl 7.3 printed of a disk that QEMU 7.2 emulates.
func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".json")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func TestTheHealthOfRecordedDisksIsRead(t *testing.T) {
	for name, want := range map[string]health.Report{
		"nvme": {
			State: v1alpha1.DiskHealthy, Celsius: new(50.0), UsedEndurance: new(0.0), MediaErrors: new(0.0),
		},
		"nvme-degraded": {
			State: v1alpha1.DiskFailing, Reasons: []string{"reliability is degraded by media errors or an internal error"},
			Celsius: new(50.0), UsedEndurance: new(0.0), MediaErrors: new(0.0),
		},
		"ata":              {State: v1alpha1.DiskHealthy, Celsius: new(31.0)},
		"scsi-unsupported": {},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := health.Parse([]byte(recorded(t, name)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
}

func TestProblemsOfADiskAreNamed(t *testing.T) {
	nvme := func(warning, used int) string {
		s := strings.Replace(recorded(t, "nvme"), `"critical_warning":0`, fmt.Sprintf(`"critical_warning":%d`, warning), 1)
		s = strings.Replace(s, `"passed":true`, fmt.Sprintf(`"passed":%t`, warning == 0), 1)
		return strings.Replace(s, `"percentage_used":0`, fmt.Sprintf(`"percentage_used":%d`, used), 1)
	}
	ata := func(more string) string {
		return strings.Replace(recorded(t, "ata"), `"table":[`, `"table":[`+more+`,`, 1)
	}
	for name, c := range map[string]struct {
		printed string
		state   v1alpha1.DiskState
		reasons []string
	}{
		"an NVMe disk that is only too hot":         {nvme(2, 0), v1alpha1.DiskSuspect, []string{"its temperature is outside of its limits"}},
		"an NVMe disk without spare, and read-only": {nvme(9, 0), v1alpha1.DiskFailing, []string{"the media is read-only", "the spare capacity is below its threshold"}},
		"an NVMe disk at 99 % of its endurance":     {nvme(0, 99), v1alpha1.DiskHealthy, nil},
		"an NVMe disk at 100 % of its endurance":    {nvme(0, 100), v1alpha1.DiskSuspect, []string{"all of its rated endurance is used"}},
		"an ATA disk whose check has failed": {
			strings.Replace(recorded(t, "ata"), `"passed":true`, `"passed":false`, 1), v1alpha1.DiskFailing, []string{"its overall health check has failed"},
		},
		"an ATA disk whose attribute is at its threshold": {
			ata(`{"id":5,"name":"Reallocated\u001b[31m","when_failed":"now","flags":{"prefailure":true},"raw":{"value":9}}`),
			v1alpha1.DiskFailing, []string{"attribute 5 (Reallocated??31m) is at its threshold"},
		},
		"an ATA disk whose attribute was at its threshold once": {
			ata(`{"id":190,"name":"Airflow","when_failed":"past","flags":{"prefailure":true},"raw":{"value":9}}`), v1alpha1.DiskHealthy, nil,
		},
		"an ATA disk that can't read sectors": {
			ata(`{"id":197,"name":"Current_Pending_Sector","raw":{"value":16}}`), v1alpha1.DiskSuspect, []string{"16 sectors can't be read"},
		},
		"an ATA disk with no such sector": {ata(`{"id":197,"name":"Current_Pending_Sector","raw":{"value":0}}`), v1alpha1.DiskHealthy, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := health.Parse([]byte(c.printed))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.State).To(Equal(c.state))
			g.Expect(got.Reasons).To(Equal(c.reasons))
		})
	}
}

func TestASleepingDiskIsNoFailure(t *testing.T) {
	g := NewWithT(t)
	got, err := health.Parse([]byte(`{"smartctl":{"messages":[{"string":"Device is in STANDBY mode, exit(3)"}],"exit_status":3}}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(health.Report{Asleep: true}))
}

func TestADiskThatCannotBeAskedIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ printed, says string }{
		"a device of no known type": {
			`{"smartctl":{"messages":[{"string":"/dev/vda: Unable to detect device type","severity":"error"}],"exit_status":1}}`, "Unable to detect device type",
		},
		"no message":     {`{"smartctl":{"exit_status":2}}`, "exit code 2"},
		"no JSON":        {`smartctl: command not found`, "printed no JSON"},
		"too much of it": {`{"a":"` + strings.Repeat("x", 1<<20) + `"}`, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := health.Parse([]byte(c.printed))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}
