package lustre_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
	"parallelfs.dev/operator/internal/backend/lustre"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// toldIn returns the configuration of a Job.
func toldIn(t *testing.T, job *batchv1.Job) spec.Configure {
	t.Helper()
	var out spec.Configure
	NewWithT(t).Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.ToldAnnotation]), &out)).To(Succeed())
	return out
}

// withoutJob is running, before its pools are made.
func withoutJob(t *testing.T) backend.Input {
	t.Helper()
	in := running(t)
	in.Jobs = nil
	return in
}

func TestPoolsLayoutsAndParametersAreMadeByOneJobOnTheNodeOfTheMGS(t *testing.T) {
	g := NewWithT(t)
	in := withoutJob(t)
	in.FileSystem.Spec.Lustre.Parameters = v1alpha1.LustreParameters{"osc.*.max_dirty_mb": "512"}
	job := jobOf(t, in)
	told := toldIn(t, job)
	g.Expect(told.Host).To(BeTrue())
	g.Expect(told.Mount).To(HaveValue(And(HaveField("Source", "10.1.0.3@o2ib,10.2.0.3@o2ib:/pfs"), HaveField("Host", true),
		HaveField("Path", "/var/lib/parallelfs/storage.scratch/admin/configure"))))
	g.Expect(job.Spec.Template.Spec.Affinity).To(Equal(podspec.OnNodes("n3")))
	var commands []string
	for _, c := range told.Commands {
		commands = append(commands, strings.Join(c.Argv, " "))
		g.Expect(c.MayFail).To(Equal(strings.Contains(c.Argv[1], "pool_")), "what is there already ends with 17")
	}
	const mnt = "/var/lib/parallelfs/storage.scratch/admin/configure"
	g.Expect(commands).To(Equal([]string{
		"lctl set_param -P osc.*.max_dirty_mb=512",
		"lctl pool_new pfs.ssd", "lctl pool_add pfs.ssd pfs-OST[0000-0003/1]",
		"lfs setdirstripe -D -i -1 -c 1 --max-inherit -1 --max-inherit-rr 3 " + mnt,
		"lfs setstripe -c 1 -p ssd " + mnt,
		"mkdir -p -m 0755 " + mnt + "/ssd", "lfs setstripe -c 1 -p ssd " + mnt + "/ssd",
		"mkdir -p -m 0755 " + mnt + "/ssd/.parallelfs-benchmarks", "lfs setstripe -c 1 -p ssd " + mnt + "/ssd/.parallelfs-benchmarks",
	}))
}

func TestNoPoolIsMadeBeforeAllOSTsOfANewFilesystemServe(t *testing.T) {
	g := NewWithT(t)
	in := everything("2.17.57")
	backendtest.Remember(t, lustre.New(), &in)
	said := saying()
	said["n2"].Targets[1].Online = false
	ask(t, &in, said)
	backendtest.Remember(t, lustre.New(), &in)
	objects, err := lustre.New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).NotTo(ContainElement(BeAssignableToTypeOf(&batchv1.Job{})))

	// Later, a target that does not serve yet delays no other.
	in.FileSystem.Status.Metadata.Initialized = new(metav1.NewTime(noon))
	g.Expect(toldIn(t, jobOf(t, in)).Commands[1].Argv).To(Equal([]string{"lctl", "pool_add", "pfs.ssd", "pfs-OST[0000-0001/1]", "pfs-OST0003"}))
}

func TestAFilesystemServesAfterItsPoolsWereCreated(t *testing.T) {
	g := NewWithT(t)
	in := withoutJob(t)
	seen := lustre.New().Observe(in)
	g.Expect(seen.Serves).To(BeFalse())
	g.Expect(seen.MetadataInitialized).To(BeFalse())
	g.Expect(seen.Problems).To(HaveExactElements(And(HaveField("Reason", v1alpha1.ReasonPoolsNotPlaced), HaveField("Message", ContainSubstring("it begins")))))

	in.FileSystem.Status.Metadata.Initialized = new(metav1.NewTime(noon))
	g.Expect(lustre.New().Observe(in).Serves).To(BeTrue(), "what is added later keeps no program from its files")
}

func TestTheJobOfPoolsGoesOnToItsEndAndIsRepeatedWhenItsEffectDoesNotShow(t *testing.T) {
	for name, c := range map[string]struct {
		job     backend.Job
		pools   []backend.Pool
		repeats bool
		says    string
	}{
		"it runs":                               {backend.Job{Message: "mounting"}, nil, false, "mounting"},
		"it failed":                             {backend.Job{Failed: true, Message: "no MGS"}, nil, true, "it failed, and is tried again: no MGS"},
		"it has ended, and Lustre says so":      {backend.Job{Succeeded: true}, []backend.Pool{{Name: "ssd", Targets: []int32{1, 2, 3, 4, 9}}}, false, ""},
		"it has ended, and Lustre says nothing": {backend.Job{Succeeded: true}, nil, false, ""},
		"it has ended, and an OST is missing":   {backend.Job{Succeeded: true}, []backend.Pool{{Name: "ssd", Targets: []int32{1, 2}}}, true, "ssd lacks the OSTs [2 3]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := withoutJob(t)
			c.job.Name, c.job.Component = jobOf(t, in).Name, "configure"
			in.Jobs, in.State.Pools = []backend.Job{c.job}, c.pools
			seen := lustre.New().Observe(in)
			if c.says == "" {
				g.Expect(seen.Problems).To(BeEmpty())
			} else {
				g.Expect(seen.Problems).To(HaveExactElements(HaveField("Message", ContainSubstring(c.says))))
			}
			g.Expect(seen.Repeat).To(HaveLen(map[bool]int{true: 1}[c.repeats]))
			objects, err := lustre.New().Members(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(objects).To(ContainElement(Equal(backend.Keep("storage", c.job.Name))), "its name is what it does")
		})
	}
}

func TestARunningJobIsKeptWhateverElseIsDesired(t *testing.T) {
	g := NewWithT(t)
	in := withoutJob(t)
	in.Jobs = []backend.Job{{Name: "scratch-configure-old", Component: "configure"}}
	objects, err := lustre.New().Members(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(ContainElement(Equal(backend.Keep("storage", "scratch-configure-old"))))
	g.Expect(objects).NotTo(ContainElement(BeAssignableToTypeOf(&batchv1.Job{})))
}
