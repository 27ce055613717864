package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/health"
)

// readDisks is a node whose disks answer what a test sets, by kernel name.
type readDisks struct {
	*Health
	answers map[string]health.Report
	failed  map[string]error
	asked   []string
	changes int
	now     time.Time
}

func newReadDisks() *readDisks {
	r := &readDisks{answers: map[string]health.Report{}, failed: map[string]error{}, now: time.Unix(1e9, 0)}
	r.Health = &Health{
		Interval: time.Hour, Changed: func() { r.changes++ }, Now: func() time.Time { return r.now },
		Read: func(_ context.Context, name string) (health.Report, error) {
			r.asked = append(r.asked, name)
			return r.answers[name], r.failed[name]
		},
	}
	return r
}

// published returns the published state of each disk of an inventory.
func (r *readDisks) published(disks ...v1alpha1.BlockDevice) []v1alpha1.DiskState {
	r.Fill(disks, nil)
	var out []v1alpha1.DiskState
	for _, d := range disks {
		if d.Health == nil {
			out = append(out, "")
		} else {
			out = append(out, d.Health.State)
		}
	}
	return out
}

func nvmeDisk(name, serial string) v1alpha1.BlockDevice {
	return v1alpha1.BlockDevice{KernelName: name, Serial: serial, Type: "disk", Transport: "nvme"}
}

func TestTheHealthOfEachDiskOfTheNodeIsReadOnceAnHour(t *testing.T) {
	g := NewWithT(t)
	r := newReadDisks()
	a, b := nvmeDisk("nvme0n1", "A"), nvmeDisk("nvme1n1", "B")
	lun := v1alpha1.BlockDevice{KernelName: "sdx", Serial: "L", Type: "disk", Transport: "iscsi"}
	r.answers["nvme0n1"] = health.Report{State: v1alpha1.DiskHealthy}
	g.Expect(r.published(a, b, lun)).To(Equal([]v1alpha1.DiskState{"", "", ""}), "nothing was read yet")
	r.round(t.Context())
	g.Expect(r.asked).To(Equal([]string{"nvme0n1", "nvme1n1"}), "a LUN is not asked")
	g.Expect(r.published(a, b, lun)).To(Equal([]v1alpha1.DiskState{v1alpha1.DiskHealthy, "", ""}), "nvme1n1 reports nothing")
	g.Expect(r.changes).To(Equal(1))

	r.now = r.now.Add(59 * time.Minute)
	r.round(t.Context())
	g.Expect(r.asked).To(HaveLen(2))
	r.now = r.now.Add(time.Minute)
	r.answers["nvme0n1"] = health.Report{State: v1alpha1.DiskFailing, Reasons: []string{"the media is read-only"}}
	r.round(t.Context())
	g.Expect(r.published(a, b)).To(Equal([]v1alpha1.DiskState{v1alpha1.DiskFailing, ""}))
	g.Expect(r.changes).To(Equal(2))
}

func TestADiskThatDoesNotAnswerOrSleepsKeepsItsLastReport(t *testing.T) {
	for name, change := range map[string]func(r *readDisks){
		"it does not answer": func(r *readDisks) { r.failed["nvme0n1"] = errors.New("timed out") },
		"it sleeps":          func(r *readDisks) { r.answers["nvme0n1"] = health.Report{Asleep: true} },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newReadDisks()
			r.answers["nvme0n1"] = health.Report{State: v1alpha1.DiskSuspect}
			r.published(nvmeDisk("nvme0n1", "A"))
			r.round(t.Context())
			change(r)
			r.now = r.now.Add(time.Hour)
			r.round(t.Context())
			g.Expect(r.asked).To(HaveLen(2))
			g.Expect(r.published(nvmeDisk("nvme0n1", "A"))).To(Equal([]v1alpha1.DiskState{v1alpha1.DiskSuspect}))
			g.Expect(r.changes).To(Equal(1))
		})
	}
}

func TestAnotherDiskWithTheSameKernelNameDoesNotInheritAReport(t *testing.T) {
	g := NewWithT(t)
	r := newReadDisks()
	r.answers["nvme0n1"] = health.Report{State: v1alpha1.DiskFailing}
	r.published(nvmeDisk("nvme0n1", "A"))
	r.round(t.Context())
	g.Expect(r.published(nvmeDisk("nvme0n1", "new"))).To(Equal([]v1alpha1.DiskState{""}))
	g.Expect(r.published(nvmeDisk("nvme0n1", "A"))).To(Equal([]v1alpha1.DiskState{""}), "a disk that comes back is read again")
}

func TestARestartOfTheAgentKeepsThePublishedHealthUntilTheDiskIsReadAgain(t *testing.T) {
	g := NewWithT(t)
	r := newReadDisks()
	before := nvmeDisk("nvme0n1", "A")
	before.Health = &v1alpha1.DiskHealth{State: v1alpha1.DiskFailing}
	r.Before([]v1alpha1.BlockDevice{before})
	g.Expect(r.published(nvmeDisk("nvme0n1", "A"), nvmeDisk("nvme1n1", "B"))).To(Equal([]v1alpha1.DiskState{v1alpha1.DiskFailing, ""}))
	r.answers["nvme0n1"] = health.Report{State: v1alpha1.DiskHealthy}
	r.round(t.Context())
	g.Expect(r.published(nvmeDisk("nvme0n1", "A"))).To(Equal([]v1alpha1.DiskState{v1alpha1.DiskHealthy}))
}

func TestTheMetricsHaveTheReportsOfDisksWithTargets(t *testing.T) {
	g := NewWithT(t)
	r := newReadDisks()
	used, free := nvmeDisk("nvme0n1", "A"), nvmeDisk("nvme1n1", "B")
	used.Target = "storage/scratch-ssd-0123"
	for _, name := range []string{"nvme0n1", "nvme1n1"} {
		r.answers[name] = health.Report{State: v1alpha1.DiskHealthy, Celsius: new(40.0)}
	}
	target := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch-ssd-0123"}}
	target.Spec.FileSystem.Name = "scratch"
	r.Fill([]v1alpha1.BlockDevice{used, free}, []v1alpha1.StorageTarget{target})
	r.round(t.Context())
	disks := r.Disks()
	g.Expect(disks).To(HaveLen(1))
	g.Expect(disks[0]).To(And(HaveField("Namespace", "storage"), HaveField("FileSystem", "scratch"), HaveField("Target", "scratch-ssd-0123"),
		HaveField("At", r.now), HaveField("Report.Celsius", HaveValue(Equal(40.0)))))
}
