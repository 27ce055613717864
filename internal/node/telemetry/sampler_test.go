package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"parallelfs.dev/operator/benchmarks/telemetry"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// node is a /proc that the test writes, with the targets and daemons of a node.
type node struct {
	Gomega
	t       testing.TB
	proc    string
	targets []Target
	daemons map[string][]int
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{Gomega: NewWithT(t), t: t, proc: t.TempDir(), daemons: map[string][]int{}}
	n.write("self/mountinfo", "22 1 253:0 / / rw - ext4 /dev/vda rw\n")
	n.write("diskstats", "")
	return n
}

func (n *node) write(path, content string) {
	n.t.Helper()
	path = filepath.Join(n.proc, path)
	n.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	n.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

// mount mounts a device at the path of a target.
func (n *node) mount(name, device string) {
	n.t.Helper()
	path := "/var/lib/parallelfs/targets/" + strings.ReplaceAll(name, "/", ".")
	n.targets = append(n.targets, Target{Name: name, Path: path})
	table, err := os.ReadFile(filepath.Join(n.proc, "self/mountinfo"))
	n.Expect(err).NotTo(HaveOccurred())
	n.write("self/mountinfo", string(table)+"40 22 "+device+" / "+path+" rw - xfs /dev/sdb rw\n")
}

// process is a process with its CPU time and the time of its start, in ticks.
func (n *node) process(pid int, user, kernel, started uint64) {
	n.t.Helper()
	n.write(strconv.Itoa(pid)+"/stat", fmt.Sprintf("%d (a ) name) S 1 1 1 0 -1 4194560 100 0 0 0 %d %d 0 0 20 0 5 0 %d 1000 10", pid, user, kernel, started))
}

func (n *node) sampler() *Sampler {
	return New(Host{
		Proc:    n.proc,
		Targets: func(context.Context) ([]Target, error) { return n.targets, nil },
		Daemons: func() (map[string][]int, error) { return n.daemons, nil },
	}, time.Second)
}

func (n *node) take(s *Sampler, seconds int) telemetry.Sample {
	n.t.Helper()
	n.Expect(s.take(n.t.Context(), start.Add(time.Duration(seconds)*time.Second))).To(Succeed())
	newest, _ := s.kept.newest()
	return newest
}

const stats = `   8       0 sda 10 0 80 5 20 0 160 6 0 700 800 0 0 0 0 0 0
   8      16 sdb 1000 1 8000 50 2000 2 16000 60 3 7000 9000 0 0 0 0 0 0
 253       3 dm-3 1 0 2 3 4 5 6 7 8 9 10
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
`

func TestTheDiskBehindTheMountOfATargetIsCounted(t *testing.T) {
	n := newNode(t)
	n.mount("storage/scratch/ssd-1", "8:16")
	n.mount("storage/scratch/ssd-2", "253:3")
	n.mount("storage/scratch/gone", "8:99")
	n.targets = append(n.targets, Target{Name: "storage/scratch/unmounted", Path: "/nowhere"})
	n.write("diskstats", stats)
	n.Expect(n.take(n.sampler(), 0).Disks).To(Equal(map[string]telemetry.Disk{
		"storage/scratch/ssd-1": {
			Reads: 1000, ReadBytes: 8000 * 512, Writes: 2000, WrittenBytes: 16000 * 512, BusyMilliseconds: 7000, QueueMilliseconds: 9000,
		},
		"storage/scratch/ssd-2": {Reads: 1, ReadBytes: 1024, Writes: 4, WrittenBytes: 6 * 512, BusyMilliseconds: 9, QueueMilliseconds: 10},
	}))
}

func TestATargetThatMovedToAnotherDiskIsFoundWithinTenSeconds(t *testing.T) {
	n := newNode(t)
	n.mount("storage/scratch/ssd-1", "8:16")
	n.write("diskstats", stats)
	s := n.sampler()
	n.Expect(n.take(s, 0).Disks["storage/scratch/ssd-1"].Reads).To(BeNumerically("==", 1000))
	n.mount("storage/scratch/ssd-1", "8:0")
	n.Expect(n.take(s, 9).Disks["storage/scratch/ssd-1"].Reads).To(BeNumerically("==", 1000))
	n.Expect(n.take(s, 10).Disks["storage/scratch/ssd-1"].Reads).To(BeNumerically("==", 10))
}

func TestTheDeviceBehindAMount(t *testing.T) {
	table := `40 22 0:51 / /btrfs rw - btrfs /dev/sdc rw
41 22 0:52 / /memory rw - tmpfs tmpfs rw
42 22 8:16 / /twice rw - xfs /dev/sdb rw
43 22 8:32 / /twice rw - xfs /dev/sdd rw
44 22 8:48 / /another rw - xfs /dev/sde rw
`
	device := func(path string) (number, error) {
		if path == "/dev/sdc" {
			return number{8, 64}, nil
		}
		return number{}, errors.New("no device")
	}
	layers := "981 27 0:40 / /merged rw - overlay overlay rw," + strings.Repeat("lowerdir+=/layer,", 1<<13) + "upperdir=/a\n"
	found, err := behind([]byte(layers+table), map[string]bool{"/btrfs": true, "/memory": true, "/twice": true, "/absent": true}, device)
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(map[string]number{"/btrfs": {8, 64}, "/twice": {8, 32}}), "a btrfs is on the device that it was mounted by")
}

func TestTheTimeOfADaemonIsThatOfItsProcesses(t *testing.T) {
	n := newNode(t)
	n.process(70, 100, 50, 1)
	n.process(71, 25, 25, 2)
	n.daemons["storage/scratch/meta/0"] = []int{70, 71}
	s := n.sampler()
	n.Expect(n.take(s, 0).Daemons).To(Equal(map[string]telemetry.Daemon{"storage/scratch/meta/0": {CPUSeconds: 2, PID: 70}}))

	n.process(70, 0, 1, 900)
	n.Expect(n.take(s, 1).Daemons).To(Equal(map[string]telemetry.Daemon{"storage/scratch/meta/0": {CPUSeconds: 0.5, PID: 71}}),
		"a process of the same id that was started later is another one")
	n.Expect(n.take(s, 2).Daemons["storage/scratch/meta/0"].PID).To(Equal(70), "what ended is looked for at once")

	n.Expect(os.RemoveAll(filepath.Join(n.proc, "70"))).To(Succeed())
	n.Expect(os.RemoveAll(filepath.Join(n.proc, "71"))).To(Succeed())
	n.mount("storage/scratch/ssd-1", "8:16")
	n.write("diskstats", stats)
	n.take(s, 3)
	n.Expect(n.take(s, 4).Daemons).To(BeEmpty())
}

func TestUnreadableCountersAreReportedOnceAndTheRestIsSampled(t *testing.T) {
	n := newNode(t)
	n.process(70, 100, 0, 1)
	n.daemons["storage/scratch/meta/0"] = []int{70}
	n.mount("storage/scratch/ssd-1", "8:16")
	n.write("diskstats", "8 16 sdb nonsense\n")
	var said []error
	s := n.sampler()
	s.host.Report = func(err error) { said = append(said, err) }
	for i := range 3 {
		s.report(s.take(t.Context(), start.Add(time.Duration(i)*time.Second)))
	}
	n.Expect(said).To(ConsistOf(MatchError(ContainSubstring("diskstats"))))
	newest, _ := s.kept.newest()
	n.Expect(newest.Daemons).To(HaveLen(1))
	n.write("diskstats", stats)
	s.report(s.take(t.Context(), start.Add(4*time.Second)))
	n.Expect(said).To(HaveLen(2))
	n.Expect(said[1]).To(BeNil())
}

func TestLinesThatAreCutOffAreNoNumbers(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{"8 0 sda 1 2 3", "8 0 sda 1 2 3 4 5 6 7 8 9 10 -5"} {
		g.Expect(diskstats([]byte(text), func(number, telemetry.Disk) { t.Error("a number was read") })).NotTo(Succeed())
	}
	for _, text := range []string{"", "70 (x", "70 (x) S 1 2 3", "70 (x) S 1 1 1 0 -1 4194560 100 0 0 0 a 0 0 0 20 0 5 0 3 1000 10"} {
		_, err := parseProcess([]byte(text))
		g.Expect(err).To(HaveOccurred())
	}
}

// full returns a sample of a node with this many targets and daemons.
func full(at time.Time, targets, daemons int) telemetry.Sample {
	s := telemetry.Sample{Time: at, Disks: map[string]telemetry.Disk{}, Daemons: map[string]telemetry.Daemon{}}
	for i := range targets {
		s.Disks[fmt.Sprintf("storage/scratch/scratch-ssd-%02d", i)] = telemetry.Disk{Reads: 1}
	}
	for i := range daemons {
		s.Daemons[fmt.Sprintf("storage/scratch/meta/%02d", i)] = telemetry.Daemon{PID: 1}
	}
	return s
}

func TestTwoHoursOf64TargetsAnd64DaemonsAreKeptInLessThan30MiB(t *testing.T) {
	g := NewWithT(t)
	r := ring{most: mostBytes}
	const seconds = 3 * 3600
	for i := range seconds {
		r.add(full(start.Add(time.Duration(i)*time.Second), 64, 64))
	}
	t.Logf("%d samples take %.1f MiB", len(r.records), float64(r.size)/(1<<20))
	g.Expect(r.records).To(HaveLen(7201))
	g.Expect(r.size).To(BeNumerically("<", 30<<20))
	g.Expect(r.records[0].at).To(Equal(start.Add((seconds - 7201) * time.Second)))
	g.Expect(r.records[0].names).To(BeIdenticalTo(r.records[7200].names), "names are kept once")
}

func TestMemoryIsBoundedWhateverANodeHas(t *testing.T) {
	g := NewWithT(t)
	r := ring{most: 1 << 20}
	for i := range 1000 {
		r.add(full(start.Add(time.Duration(i)*time.Second), 200, 0))
	}
	g.Expect(r.size).To(BeNumerically("<=", 1<<20))
	g.Expect(len(r.records)).To(BeNumerically(">", 50))
}

// ask sends a request to the handler of a sampler.
func ask(s *Sampler, path string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	s.Handler("oss1").ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
	return recorder
}

func between0And(seconds int) string {
	return url.Values{"from": {start.Format(time.RFC3339)}, "to": {start.Add(time.Duration(seconds) * time.Second).Format(time.RFC3339Nano)}}.Encode()
}

// running returns a sampler with 1000 seconds of one busy disk for each of two filesystems.
func running(t *testing.T) *Sampler {
	t.Helper()
	s := newNode(t).sampler()
	for i := range 1001 {
		s.kept.add(telemetry.Sample{
			Time:    start.Add(time.Duration(i) * time.Second),
			Disks:   map[string]telemetry.Disk{"storage/scratch/ssd-1": {BusyMilliseconds: uint64(500 * i)}, "storage/scratch2/ssd-1": {BusyMilliseconds: uint64(10 * i)}},
			Daemons: map[string]telemetry.Daemon{"storage/scratch/storage/ssd": {CPUSeconds: 2 * float64(i), PID: 7}},
		})
	}
	return s
}

func TestTheAnswerIsOfOneFilesystemAndAllItsSamples(t *testing.T) {
	g := NewWithT(t)
	s := running(t)
	recorder := ask(s, "/telemetry?fileSystem=storage/scratch&"+between0And(900))
	g.Expect(recorder.Code).To(Equal(http.StatusOK))
	var answer telemetry.Answer
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
	g.Expect(answer.Node).To(Equal("oss1"))
	g.Expect(answer.Samples).To(BeEmpty())
	g.Expect(answer.Summaries).To(HaveExactElements(
		And(HaveField("Target", "ssd-1"), HaveField("Utilization", BeNumerically("~", 0.5, 1e-9)), HaveField("Seconds", BeNumerically("==", 900))),
		And(HaveField("Daemon", "storage/ssd"), HaveField("CPUs", BeNumerically("~", 2, 1e-9)), HaveField("Samples", 900))))
}

func TestSamplesAreThinnedOut(t *testing.T) {
	g := NewWithT(t)
	recorder := ask(running(t), "/telemetry?samples=5&"+between0And(1000))
	var answer telemetry.Answer
	g.Expect(json.Unmarshal(recorder.Body.Bytes(), &answer)).To(Succeed())
	var seconds []int
	for _, s := range answer.Samples {
		seconds = append(seconds, int(s.Time.Sub(start).Seconds()))
	}
	g.Expect(seconds).To(Equal([]int{0, 250, 500, 750, 1000}))
	g.Expect(answer.Samples[0].Disks).To(HaveKey("storage/scratch2/ssd-1"), "without fileSystem, names are whole")
}

func TestAQuestionThatCannotBeMeantSoIsRefused(t *testing.T) {
	s := running(t)
	for name, c := range map[string]struct{ query, says string }{
		"no times":          {"", "from="},
		"no end":            {"from=2026-03-01T12:00:00Z", "to="},
		"the wrong order":   {"from=2026-03-01T12:00:01Z&to=2026-03-01T12:00:00Z", "before"},
		"too many samples":  {"samples=601&" + between0And(1), "0 to 600"},
		"a negative number": {"samples=-1&" + between0And(1), "0 to 600"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := ask(s, "/telemetry?"+c.query)
			NewWithT(t).Expect(recorder.Code).To(Equal(http.StatusBadRequest))
			NewWithT(t).Expect(recorder.Body.String()).To(ContainSubstring(c.says))
		})
	}
}

func TestNothingCanBeWritten(t *testing.T) {
	recorder := httptest.NewRecorder()
	running(t).Handler("oss1").ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/telemetry", strings.NewReader("x")))
	NewWithT(t).Expect(recorder.Code).To(Equal(http.StatusMethodNotAllowed))
}

func TestMetricsAreOfTheNewestSample(t *testing.T) {
	g := NewWithT(t)
	s := newNode(t).sampler()
	s.kept.add(telemetry.Sample{
		Time: time.Now(), Disks: map[string]telemetry.Disk{"storage/scratch/ssd-1": {BusyMilliseconds: 1500, WrittenBytes: 4096}},
		Daemons: map[string]telemetry.Daemon{"storage/scratch/meta/0": {CPUSeconds: 12.5, PID: 7}},
	})
	body := ask(s, "/metrics").Body.String()
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(problems).To(BeEmpty(), "names, units and help texts of metrics")
	g.Expect(body).To(ContainSubstring(`parallelfs_disk_busy_seconds_total{filesystem="scratch",namespace="storage",target="ssd-1"} 1.5`))
	g.Expect(body).To(ContainSubstring(`parallelfs_disk_written_bytes_total{filesystem="scratch",namespace="storage",target="ssd-1"} 4096`))
	g.Expect(body).To(ContainSubstring(`parallelfs_daemon_cpu_seconds_total{daemon="meta/0",filesystem="scratch",namespace="storage"} 12.5`))
	g.Expect(ask(running(t), "/metrics").Body.String()).NotTo(ContainSubstring("parallelfs_disk"), "what is old is not told as if it were of now")
}

// BenchmarkSample measures the cost of one second on a node with 64 targets, 64 daemons and 64 other disks.
func BenchmarkSample(b *testing.B) {
	n := newNode(b)
	var lines strings.Builder
	for i := range 128 {
		fmt.Fprintf(&lines, "   8 %7d sd%d 448717112 1087 2902678999 124502000 4819300 161042 23692204000 46272 0 118324000 197896000 1200 0 268241960 878 19978 26243\n", i, i)
	}
	n.write("diskstats", lines.String())
	for i := range 64 {
		n.mount(fmt.Sprintf("storage/scratch/scratch-ssd-%02d", i), fmt.Sprintf("8:%d", i))
		n.process(1000+i, 123456, 654321, uint64(i))
		n.daemons[fmt.Sprintf("storage/scratch/meta/%02d", i)] = []int{1000 + i}
	}
	s := n.sampler()
	b.ReportAllocs()
	seconds := 0
	for b.Loop() {
		// The scan of the mounts, which runs every ten seconds, is not part of it.
		s.looked = start.Add(time.Duration(seconds) * time.Second)
		if seconds == 0 {
			s.looked = time.Time{}
		}
		if err := s.take(b.Context(), start.Add(time.Duration(seconds)*time.Second)); err != nil {
			b.Fatal(err)
		}
		seconds++
	}
}
