package beegfs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// simulation plays a cluster and a BeeGFS 7: it carries out the objects of the backend, and refuses what a BeeGFS refuses.
type simulation struct {
	t  *testing.T
	in backend.Input
	// ran are the jobs that were run, in order.
	ran []string
	// directories maps the directories of the filesystem to their pools.
	directories map[string]string
}

func simulate(t *testing.T) *simulation {
	t.Helper()
	s := &simulation{t: t, in: cluster("7.4.6"), directories: map[string]string{"/": "1"}}
	s.in.State = &backend.State{
		Asked: noon, Version: "7.4.6", RootID: 1, Pools: []backend.Pool{{ID: 1, Name: "Default"}},
		Servers: []backend.Server{{Role: v1alpha1.RoleManagement, ID: 1, Online: true}},
	}
	return s
}

// settle repeats until no work is left, and returns the jobs that were run meanwhile.
func (s *simulation) settle() []string {
	s.t.Helper()
	first := len(s.ran)
	for range 20 {
		before := len(s.ran)
		s.in = recorded(s.t, s.in)
		s.register()
		s.in.State.Asked = s.in.State.Asked.Add(20 * time.Minute)
		s.restart()
		s.work()
		if len(s.ran) == before && len(workOf(s.in).commands) == 0 && len(New().Observe(s.in).Restarts) == 0 {
			s.in = recorded(s.t, s.in)
			if made, _ := jobsOf(s.t, s.in); len(made) == 0 {
				return s.ran[first:]
			}
		}
	}
	s.t.Fatalf("the backend goes on: %v", s.ran)
	return nil
}

// register lets every daemon that has a number and a target register: a target in its own pool if that exists, else in the default one.
func (s *simulation) register() {
	pods := podsOf(s.in)
	for i := range pods {
		if j := slices.IndexFunc(s.in.Pods, func(p backend.Pod) bool { return p.Name == pods[i].Name }); j >= 0 {
			pods[i].Started, pods[i].Seen, pods[i].MetadataMirrored = s.in.Pods[j].Started, s.in.Pods[j].Seen, s.in.Pods[j].MetadataMirrored
		}
	}
	s.in.Pods = pods
	for _, t := range wholeState(s.in).Targets {
		if t.Role == v1alpha1.RoleStorage && !s.wanted(t.ID) || listed(s.in, t.Role, t.ID) != nil {
			continue
		}
		if t.Role == v1alpha1.RoleStorage && !slices.ContainsFunc(s.in.State.Pools, func(p backend.Pool) bool { return p.ID == t.PoolID }) {
			t.PoolID = cli.DefaultPoolID
		}
		s.in.State.Targets = append(s.in.State.Targets, t)
	}
	for _, server := range wholeState(s.in).Servers {
		serves := slices.ContainsFunc(s.in.State.Targets, func(t backend.Target) bool { return t.Role == server.Role && t.ServerID == server.ID && t.Online })
		if have := serverOf(s.in, server.Role, server.ID); have != nil {
			have.Online = serves || server.Role == v1alpha1.RoleManagement
		} else if serves {
			s.in.State.Servers = append(s.in.State.Servers, server)
		}
	}
}

func (s *simulation) wanted(id int32) bool {
	return slices.ContainsFunc(targetsOf(s.in), func(t target) bool { return t.id == id })
}

// restart restarts the outdated pods: their servers then serve exactly the desired targets.
func (s *simulation) restart() {
	for _, r := range New().Observe(s.in).Restarts {
		i := slices.IndexFunc(s.in.Pods, func(p backend.Pod) bool { return p.Name == r.Pod })
		s.in.Pods[i].Started, s.in.Pods[i].Seen = s.in.State.Asked, s.in.State.Asked
		s.in.Pods[i].MetadataMirrored = s.in.FileSystem.Status.BeeGFS.MetadataMirrored != nil
		s.ran = append(s.ran, "restart of "+r.Pod.Name)
	}
	for i := range s.in.State.Targets {
		if t := &s.in.State.Targets[i]; t.Role == v1alpha1.RoleStorage && t.Online && !s.wanted(t.ID) {
			server := serverOf(s.in, t.Role, t.ServerID)
			j := slices.IndexFunc(s.in.Pods, func(p backend.Pod) bool {
				return p.Component == componentStorage && storageName(p.StoragePool, p.Node) == server.Name && p.Started.Equal(s.in.State.Asked)
			})
			t.Online = j < 0
		}
	}
	s.register()
}

// work runs the jobs that are made, and removes those that should no longer exist.
func (s *simulation) work() {
	// The agents find no file on what is drained: the simulation moves them at once.
	for name, directories := range New().FilesIn(s.in) {
		disk, since := diskOf(&s.in, name), metav1.NewTime(s.in.State.Asked)
		disk.Spec.FilesIn = directories
		disk.Status.Files = &v1alpha1.TargetFiles{ObservedGeneration: disk.Generation, NoneSince: &since, Empty: true}
	}
	made, kept := jobsOf(s.t, s.in)
	s.in.Jobs = slices.DeleteFunc(s.in.Jobs, func(j backend.Job) bool { return !slices.Contains(kept, j.Name) })
	for _, job := range made {
		if slices.Contains(s.ran, job.Name) {
			s.t.Fatalf("job %s is run twice", job.Name)
		}
		s.ran = append(s.ran, job.Name)
		s.run(job)
		s.in.Jobs = append(s.in.Jobs, backend.Job{
			Name: job.Name, Component: job.Labels[v1alpha1.LabelComponent], Succeeded: true, Ended: s.in.State.Asked,
		})
	}
}

func (s *simulation) run(job *batchv1.Job) {
	if job.Spec.Template.Spec.Containers[0].Name != "configure" {
		return
	}
	var told spec.Configure
	if err := json.Unmarshal([]byte(job.Spec.Template.Annotations[podspec.ToldAnnotation]), &told); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range told.Commands {
		if err := s.command(c.Argv[2:]); err != nil && !c.MayFail {
			s.t.Fatalf("%v: %v", c.Argv, err)
		}
	}
}

// command does what beegfs-ctl 7.4.6 does.
func (s *simulation) command(argv []string) error {
	options, plain := map[string]string{}, ""
	for _, a := range argv[1:] {
		name, value, _ := strings.Cut(a, "=")
		if strings.HasPrefix(a, "--") {
			options[name] = value
		} else {
			plain = a
		}
	}
	switch argv[0] {
	case "--addstoragepool":
		s.in.State.Pools = append(s.in.State.Pools, backend.Pool{ID: number(options["--id"]), Name: options["--desc"]})
	case "--modifystoragepool":
		return s.modifyPool(number(options["--id"]), options)
	case "--createdir":
		if _, there := s.directories[plain]; there {
			return fmt.Errorf("%s exists already", plain)
		}
		s.directories[plain] = ""
	case "--setpattern":
		pool := number(options["--storagepoolid"])
		if !slices.ContainsFunc(s.in.State.Targets, func(t backend.Target) bool { return t.PoolID == pool }) {
			return fmt.Errorf("pool %d has no targets", pool)
		}
		s.directories[plain] = options["--storagepoolid"]
	case "--removetarget":
		s.in.State.Targets = slices.DeleteFunc(s.in.State.Targets, func(t backend.Target) bool { return t.Role == v1alpha1.RoleStorage && t.ID == number(plain) })
	case "--removenode":
		s.in.State.Servers = slices.DeleteFunc(s.in.State.Servers, func(x backend.Server) bool { return x.Role == v1alpha1.RoleStorage && x.ID == number(plain) })
	case "--migrate":
	default:
		return fmt.Errorf("%s is not known", argv[0])
	}
	return nil
}

func (s *simulation) modifyPool(id int32, options map[string]string) error {
	i := slices.IndexFunc(s.in.State.Pools, func(p backend.Pool) bool { return p.ID == id })
	if i < 0 {
		return fmt.Errorf("there is no pool %d", id)
	}
	if name, ok := options["--desc"]; ok {
		s.in.State.Pools[i].Name = name
	}
	from, to := int32(cli.DefaultPoolID), id
	targets := options["--addtargets"]
	if remove, ok := options["--rmtargets"]; ok {
		from, to, targets = id, cli.DefaultPoolID, remove
	}
	for text := range strings.SplitSeq(targets, ",") {
		if t := listed(s.in, v1alpha1.RoleStorage, number(text)); t != nil && t.PoolID == from {
			t.PoolID = to
		}
	}
	return nil
}

func number(text string) int32 {
	n, _ := strconv.ParseInt(text, 10, 32)
	return int32(n)
}

// problems are the reasons why it is not Ready.
func (s *simulation) problems() []backend.Problem { return New().Observe(s.in).Problems }

func TestAFilesystemFromItsFirstDayToTheRemovalOfAServer(t *testing.T) {
	g := NewWithT(t)
	s := simulate(t)

	first := s.settle()
	g.Expect(first).To(HaveExactElements(
		HavePrefix("scratch-pool-0-"), HavePrefix("scratch-configure-"), HavePrefix("scratch-pool-1-")), "the pools, and their directories")
	g.Expect(s.problems()).To(BeEmpty())
	g.Expect(s.directories).To(And(HaveKeyWithValue("/", "1"), HaveKeyWithValue("/ssd", "1"), HaveKeyWithValue("/bulk", "2")))
	g.Expect(toldOf(&s.in, hdd0).PoolID).To(Equal(int32(2)))
	g.Expect(s.in.Jobs).To(HaveLen(2), "the records of the pools")

	// A third storage server.
	s.in.Nodes = append(s.in.Nodes, backend.Node{Name: "oss3", IP: "10.0.0.3", Ready: true, Labels: labels(storageLabel)})
	s.in.Inventories["oss3"] = inventory("10.0.0.3")
	fs := s.in.FileSystem
	fs.Spec.StoragePools[0].Targets.Devices = append(fs.Spec.StoragePools[0].Targets.Devices, devices("oss3", "ssd-s0")...)
	fs.Spec.StoragePools[1].Targets.Devices = append(fs.Spec.StoragePools[1].Targets.Devices, devices("oss3", "hdd-0")...)
	s.in.Targets = append(s.in.Targets,
		disk("oss3", "ssd-s0", v1alpha1.RoleStorage, "ssd", 0, 1600e9), disk("oss3", "hdd-0", v1alpha1.RoleStorage, "bulk", 0, 8e12))
	g.Expect(s.settle()).To(BeEmpty(), "the pools are there, so that its targets register in their own")
	g.Expect(s.problems()).To(BeEmpty())
	g.Expect(New().Observe(s.in).Summary.Targets).To(Equal("8/8"))

	// Its disk of the SSD pool is removed again.
	disk3 := "scratch-oss3-ssd-s0"
	diskOf(&s.in, disk3).Spec.Remove, diskOf(&s.in, disk3).Spec.WritersStopped = true, true
	id := idOf(s.in, disk3)
	g.Expect(s.settle()).To(HaveExactElements(
		HavePrefix("scratch-configure-"), fmt.Sprintf("scratch-await-empty-%d", id), fmt.Sprintf("scratch-migrate-%d", id)))
	g.Expect(toldOf(&s.in, disk3).PoolID).To(Equal(int32(drain.Pool)))
	g.Expect(New().Observe(s.in).Targets).To(ContainElement(And(HaveField("StorageTarget", disk3), HaveField("Removable", true))))
	g.Expect(s.in.Jobs).To(HaveLen(2), "the jobs of the drain are gone")
	g.Expect(s.problems()).To(BeEmpty())

	// It is taken out of the spec: its server starts without it, and BeeGFS forgets it, and then the server.
	fs = s.in.FileSystem
	fs.Spec.StoragePools[0].Targets.Devices = fs.Spec.StoragePools[0].Targets.Devices[:4]
	s.in.Targets = slices.DeleteFunc(s.in.Targets, func(d v1alpha1.StorageTarget) bool { return d.Name == disk3 })
	g.Expect(s.settle()).To(HaveExactElements("restart of storage-ssd--oss3", HavePrefix("scratch-configure-"), HavePrefix("scratch-configure-")))
	g.Expect(listed(s.in, v1alpha1.RoleStorage, id)).To(BeNil())
	retired := recordOf(s.in, "storage-ssd.oss3")
	g.Expect(retired.Retired).To(BeTrue())
	g.Expect(serverOf(s.in, v1alpha1.RoleStorage, retired.ID)).To(BeNil())
	g.Expect(s.problems()).To(BeEmpty())
	g.Expect(s.in.Jobs).To(HaveLen(2))
	g.Expect(s.settle()).To(BeEmpty(), "nothing comes back")

	// The same server gets another disk, with a number of its own.
	fs = s.in.FileSystem
	fs.Spec.StoragePools[0].Targets.Devices = append(fs.Spec.StoragePools[0].Targets.Devices, devices("oss3", "ssd-s9")...)
	s.in.Targets = append(s.in.Targets, disk("oss3", "ssd-s9", v1alpha1.RoleStorage, "ssd", 0, 1600e9))
	s.settle()
	g.Expect(s.problems()).To(BeEmpty())
	g.Expect(idOf(s.in, "scratch-oss3-ssd-s9")).To(BeNumerically(">", id))
	g.Expect(s.in.Given()).To(HaveEach(Not(HaveField("Retired", true))))
	g.Expect(s.in.FileSystem.Status.BeeGFS.MetadataMirrored).To(Equal((*metav1.Time)(nil)))
}
