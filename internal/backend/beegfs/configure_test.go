package beegfs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// lines formats the commands of some work, without the program and the common options.
func lines(in backend.Input, commands []spec.Command) []string {
	base := len(toolOf(in).Run())
	var out []string
	for _, c := range commands {
		out = append(out, strings.Join(c.Argv[base:], " "))
	}
	return out
}

// fresh is the cluster just after its servers have registered, and before anything is configured.
func fresh(t *testing.T, version string) backend.Input {
	t.Helper()
	in := healthy(t, version)
	in.Jobs = nil
	name := "Default"
	if cli.Is8(version) {
		name = "storage_pool_default"
	}
	in.State.Pools = []backend.Pool{{ID: 1, Name: name}}
	for i := range in.State.Targets {
		if in.State.Targets[i].Role == v1alpha1.RoleStorage {
			in.State.Targets[i].PoolID = cli.DefaultPoolID
		}
	}
	return in
}

func TestPoolsAreMadeAndTargetsMovedIntoThem(t *testing.T) {
	g := NewWithT(t)
	in := fresh(t, "7.4.6")
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements(
		"--modifystoragepool --id=1 --desc=ssd",
		"--addstoragepool --id=2 --desc=bulk",
		"--modifystoragepool --id=2 --addtargets=5,6"))
	in = fresh(t, "8.3.1")
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements(
		"pool set-alias s:1 ssd",
		"pool create bulk --num-id=2",
		"pool assign s:2 --targets=s:5,s:6"))
}

func TestTrap7WithoutALicenseNothingIsAskedOfBeeGFSThatItRefuses(t *testing.T) {
	g := NewWithT(t)
	in := fresh(t, "8.3.1")
	in.FileSystem.Spec.StoragePools[0].Copies = 2
	in.FileSystem.Spec.BeeGFS.MirrorMetadata = true
	in.State.License = &backend.License{Message: "no license"}
	g.Expect(workOf(in).commands).To(BeEmpty())
	seen := New().Observe(in)
	g.Expect(seen.Problems[0].Reason).To(Equal(v1alpha1.ReasonLicenseMissing))
	g.Expect(seen.Problems[0].Message).To(And(
		ContainSubstring("the storage pools ssd, bulk can't be made"), ContainSubstring("no file of ssd has a second copy"),
		ContainSubstring("the metadata has no second copy"), ContainSubstring("spec.beegfs.license")))
}

func TestATargetInAnotherPoolThanItsOwnGoesByTheDefaultPool(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	in.State.Pools = append(in.State.Pools, backend.Pool{ID: drain.Pool, Name: drain.PoolName})
	toldOf(&in, hdd0).PoolID = drain.Pool
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements(
		"--modifystoragepool --id=100 --rmtargets=5", "--modifystoragepool --id=2 --addtargets=5"), "beegfs-ctl adds only from the default pool")
}

func TestTheDirectoriesOfPools(t *testing.T) {
	cases := map[string][]string{
		"7.4.6": {
			"--setpattern --storagepoolid=1 --chunksize=1048576 --numtargets=4 --pattern=raid0 / --unmounted",
			"--createdir /ssd --unmounted",
			"--setpattern --storagepoolid=1 --chunksize=1048576 --numtargets=4 --pattern=raid0 /ssd --unmounted",
			"--createdir /ssd/.parallelfs-benchmarks --unmounted",
			"--setpattern --storagepoolid=1 --chunksize=1048576 --numtargets=4 --pattern=raid0 /ssd/.parallelfs-benchmarks --unmounted",
		},
		"8.3.1": {
			"--mount=none entry set / --pool=s:1 --chunk-size=1048576 --num-targets=4 --pattern=raid0",
			"--mount=none entry create directory /ssd",
			"--mount=none entry set /ssd --pool=s:1 --chunk-size=1048576 --num-targets=4 --pattern=raid0",
			"--mount=none entry create directory /ssd/.parallelfs-benchmarks",
			"--mount=none entry set /ssd/.parallelfs-benchmarks --pool=s:1 --chunk-size=1048576 --num-targets=4 --pattern=raid0",
		},
	}
	for version, want := range cases {
		t.Run(version, func(t *testing.T) {
			g := NewWithT(t)
			in := healthy(t, version)
			pools := workOf(in).pools
			g.Expect(pools).To(HaveLen(2))
			g.Expect(lines(in, pools[0].commands)).To(Equal(want))
			g.Expect(lines(in, pools[1].commands)).To(HaveLen(4), "only the first pool takes the root directory")
			g.Expect(lines(in, pools[1].commands)[1]).To(ContainSubstring("524288"))
		})
	}
}

func TestBuddyGroupsAreMadeOfTargetsOnDifferentNodes(t *testing.T) {
	g := NewWithT(t)
	for version, want := range map[string][]string{
		"7.4.6": {"--addmirrorgroup --nodetype=storage --primary=1 --secondary=3", "--addmirrorgroup --nodetype=storage --primary=2 --secondary=4"},
		"8.3.1": {
			"mirror create mirror-storage-1 --node-type=storage --primary=s:1 --secondary=s:3",
			"mirror create mirror-storage-2 --node-type=storage --primary=s:2 --secondary=s:4",
		},
	} {
		in := healthy(t, version)
		in.FileSystem.Spec.StoragePools[0].Copies = 2
		g.Expect(lines(in, workOf(in).commands)).To(Equal(want))
		g.Expect(workOf(in).pools[0].ready).To(BeFalse(), "no file can be mirrored before there is a group")

		toldOf(&in, ssd0).Online = false
		g.Expect(workOf(in).commands).To(BeEmpty(), "with more targets, fewer stay alone")
		toldOf(&in, ssd0).Online = true

		in.State.Mirrors = []backend.Mirror{
			{Role: v1alpha1.RoleStorage, ID: 1, Primary: 1, Secondary: 3}, {Role: v1alpha1.RoleStorage, ID: 2, Primary: 4, Secondary: 2},
		}
		g.Expect(workOf(in).commands).To(BeEmpty())
		pool := workOf(in).pools[0]
		g.Expect(pool.ready).To(BeTrue())
		g.Expect(lines(in, pool.commands)[0]).To(Or(ContainSubstring("--pattern=buddymirror"), ContainSubstring("--pattern=mirrored")))
	}
}

func TestTrap3ForgottenBuddyGroupsAreNotCreatedAgain(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	in.FileSystem.Spec.StoragePools[0].Copies = 2
	in.Jobs = append(in.Jobs, backend.Job{Name: poolJobName(in, in.FileSystem.Spec.StoragePools[0]), Component: componentConfigure, Succeeded: true})
	g.Expect(workOf(in).commands).To(BeEmpty())
	g.Expect(New().Observe(in).Problems).To(ContainElement(HaveField("Message", ContainSubstring("bring back the store of the management service"))))
}

func TestTheMetadataIsMirroredBeforeAnyClientMounts(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	in.FileSystem.Spec.BeeGFS.MirrorMetadata = true
	in.Jobs = nil
	in.State.RootID = 5
	in.Pods = slices.DeleteFunc(in.Pods, func(p backend.Pod) bool { return p.Component == componentClient })
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements(
		"--addmirrorgroup --nodetype=meta --primary=5 --secondary=1", // the owner of the root directory has to be the primary
		"--addmirrorgroup --nodetype=meta --primary=2 --secondary=6",
		"--addmirrorgroup --nodetype=meta --primary=3 --secondary=7",
		"--addmirrorgroup --nodetype=meta --primary=4 --secondary=8"))

	for i := range int32(4) {
		in.State.Mirrors = append(in.State.Mirrors, backend.Mirror{Role: v1alpha1.RoleMetadata, ID: i + 1, Primary: i + 5, Secondary: i + 1})
	}
	g.Expect(lines(in, workOf(in).commands)).To(HaveExactElements("--mirrormd"))
	g.Expect(workOf(in).pools[0].ready).To(BeFalse(), "what is made before is never mirrored")
	g.Expect(New().Observe(in).Clients[0].Message).To(ContainSubstring("it is mounted when the metadata is mirrored"))

	in.State.Sessions = []backend.Session{{IP: "10.0.0.9", Connected: true}}
	g.Expect(workOf(in).commands).To(BeEmpty(), "a client has mounted it")

	in.State.Sessions, in.State.MetadataMirrored = nil, true
	in.FileSystem.Status.BeeGFS.MetadataMirrored = new(metav1.NewTime(noon.Add(-time.Minute)))
	g.Expect(workOf(in).commands).To(BeEmpty())
	g.Expect(workOf(in).pools[0].ready).To(BeTrue())
	restarts := New().Observe(in).Restarts
	g.Expect(restarts).To(HaveLen(8), "a metadata server mirrors after its next start")
	g.Expect(restarts).To(HaveEach(And(HaveField("Safe", true), HaveField("Why", "the metadata was mirrored after it had started"))))
	for i := range in.Pods {
		in.Pods[i].MetadataMirrored = true
	}
	g.Expect(New().Observe(in).Restarts).To(BeEmpty())
}

func TestAPodOfAMetadataServerShowsThatItWasMadeAfterTheMirrorWithoutAnOutdatedPod(t *testing.T) {
	g := NewWithT(t)
	in := recorded(t, cluster("7.4.6"))
	before := daemonSets(t, in)
	in.FileSystem.Status.BeeGFS.MetadataMirrored = new(metav1.NewTime(noon))
	for name, set := range daemonSets(t, in) {
		was, is := before[name].Spec.Template.Annotations, set.Spec.Template.Annotations
		g.Expect(was).NotTo(HaveKey(backend.MetadataMirroredAnnotation))
		g.Expect(is[backend.TemplateHashAnnotation]).To(Equal(was[backend.TemplateHashAnnotation]), name)
		_, says := is[backend.MetadataMirroredAnnotation]
		g.Expect(says).To(Equal(set.Labels[v1alpha1.LabelComponent] == componentMeta), name)
	}
}

// jobsOf returns the jobs that should exist: those that are made, and those that are kept.
func jobsOf(t *testing.T, in backend.Input) (made []*batchv1.Job, kept []string) {
	t.Helper()
	for _, o := range objectsOf(t, in) {
		switch o := o.(type) {
		case *batchv1.Job:
			made = append(made, o)
		case *metav1.PartialObjectMetadata:
			if o.Kind == "Job" {
				kept = append(kept, o.Name)
			}
		case client.Object:
		}
	}
	return made, kept
}

func TestAJobThatRunsGoesOnWhenItsWorkGetsLess(t *testing.T) {
	g := NewWithT(t)
	in := fresh(t, "7.4.6")
	made, kept := jobsOf(t, in)
	g.Expect(kept).To(BeEmpty())
	var names []string
	for _, j := range made {
		names = append(names, j.Name)
	}
	configure := workOf(in).name
	g.Expect(names).To(HaveExactElements(poolJobName(in, in.FileSystem.Spec.StoragePools[0]), configure), "the second pool has no targets yet")

	// The effect of its first commands is visible, and it has not ended.
	in.Jobs = []backend.Job{{Name: configure, Component: componentConfigure}}
	in.State.Pools = []backend.Pool{{ID: 1, Name: "ssd"}, {ID: 2, Name: "bulk"}}
	g.Expect(workOf(in).name).NotTo(Equal(configure))
	made, kept = jobsOf(t, in)
	g.Expect(made).To(HaveLen(1), "only that of the first pool's directory")
	g.Expect(kept).To(HaveExactElements(configure))

	// It has ended, and something is left.
	in.Jobs[0].Succeeded = true
	made, kept = jobsOf(t, in)
	g.Expect(kept).To(BeEmpty())
	g.Expect(made).To(ContainElement(HaveField("Name", workOf(in).name)))
}

func TestAProbeThatIsSilentForAMomentEndsNoJobAndBeginsNone(t *testing.T) {
	g := NewWithT(t)
	in := fresh(t, "7.4.6")
	in.Jobs = []backend.Job{
		{Name: "scratch-configure-1234", Component: componentConfigure},
		{Name: "scratch-pool-0-1234", Component: componentConfigure, Succeeded: true},
	}
	in.State = nil
	made, kept := jobsOf(t, in)
	g.Expect(made).To(BeEmpty())
	g.Expect(kept).To(HaveExactElements("scratch-configure-1234", "scratch-pool-0-1234"))
}

func TestAJobWithoutAVisibleEffectIsRepeated(t *testing.T) {
	g := NewWithT(t)
	in := fresh(t, "7.4.6")
	in.Jobs = []backend.Job{{Name: workOf(in).name, Component: componentConfigure, Succeeded: true}}
	seen := New().Observe(in)
	g.Expect(seen.Repeat).To(HaveExactElements(workOf(in).name), "beegfs-ctl --modifystoragepool ends with exit code 0 when it has moved nothing")
	g.Expect(seen.Problems[0].Message).To(ContainSubstring("has ended, but BeeGFS does not show the change; the job runs again"))
	made, kept := jobsOf(t, in)
	g.Expect(made).To(HaveLen(1))
	g.Expect(kept).To(HaveExactElements(workOf(in).name))
}

func TestTheJobOfAPoolIsARecordThatOutlivesTheStateOfItsTargets(t *testing.T) {
	g := NewWithT(t)
	in := healthy(t, "7.4.6")
	for i := range in.State.Targets {
		in.State.Targets[i].Online = false
	}
	made, kept := jobsOf(t, in)
	g.Expect(made).To(BeEmpty())
	g.Expect(kept).To(HaveLen(2))
	in.FileSystem.Spec.StoragePools[0].BeeGFS.Striping.ChunkSize = resource.MustParse("2Mi")
	g.Expect(workOf(in).pools[0].name).NotTo(Equal(kept[0]), "another pattern is another job")
}

func TestAJobRunsTheToolWithoutAMountAndKeepsItsCommandsByItself(t *testing.T) {
	g := NewWithT(t)
	in := fresh(t, "7.4.6")
	made, _ := jobsOf(t, in)
	job := made[len(made)-1]
	pod := job.Spec.Template.Spec
	g.Expect(pod.Containers[0].Image).To(Equal("tools:7.4.6"))
	g.Expect(pod.Containers[0].Command).To(Equal([]string{"/parallelfs/node", "configure", "--spec", "/etc/parallelfs-job/told.json"}))
	g.Expect(pod.Containers[0].SecurityContext.Privileged).To(BeNil())
	var told spec.Configure
	g.Expect(json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.ToldAnnotation]), &told)).To(Succeed())
	g.Expect(told.Mount).To(BeNil())
	g.Expect(told.Commands[0].Argv[:2]).To(Equal([]string{"/opt/beegfs/sbin/beegfs-ctl", "--cfgFile=/etc/parallelfs/beegfs-client.conf"}))
	g.Expect(pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values).To(Equal([]string{"oss1"}))
}
