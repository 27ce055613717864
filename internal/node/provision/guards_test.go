package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/patience"
)

const guardedUUID = "11111111-2222-4333-8444-555555555555"

// guarded is a finished target of ext4.
func guarded(changes ...func(*v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	at := metav1.NewTime(time.Unix(1, 0))
	t := &v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{
		FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "uid"}, Cluster: "c1", Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4},
		Device: v1alpha1.DeviceIdentity{ID: "wwn-0x5", WWN: "0x5", SizeBytes: 1 << 30}, FilesIn: []string{"chunks"},
	}}
	t.Namespace, t.Name = "storage", "scratch-ssd-1"
	t.Status.Provisioned = &v1alpha1.TargetProvisioned{UUID: guardedUUID, Label: "pfs-1", Finished: &at}
	for _, change := range changes {
		change(t)
	}
	return t
}

// guardedDisk is its disk.
func guardedDisk(changes ...func(*plan.Facts)) plan.Facts {
	f := plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
		KernelName: "sda", Type: "disk", IDs: []string{"wwn-0x5"}, WWN: "0x5", SizeBytes: 1 << 30,
		Signatures: []v1alpha1.Signature{{Device: "sda", Type: "ext4", UUID: guardedUUID}},
	}}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func TestAStepThatWritesToADeviceIsNamedWithIt(t *testing.T) {
	for kind, want := range map[plan.StepKind]string{
		plan.StepWipe: "Wipe /dev/sda", plan.StepZero: "Zero /dev/sda", plan.StepMakeFileSystem: "MakeFileSystem", plan.StepMount: "Mount",
	} {
		NewWithT(t).Expect(stepName(plan.Step{Kind: kind, Argv: []string{"program", "/dev/sda"}})).To(Equal(want))
	}
	NewWithT(t).Expect(stepName(plan.Step{Kind: plan.StepWipe})).To(Equal("Wipe"), "a step without a command has no device")
}

func TestNothingIsZeroedThatIsNotTheTargets(t *testing.T) {
	g, dev := NewWithT(t), t.TempDir()
	for _, name := range []string{"sda", "sdb"} {
		g.Expect(os.WriteFile(filepath.Join(dev, name), []byte(strings.Repeat("data", 4096)), 0o600)).To(Succeed())
	}
	p := &Provisioner{Dev: dev, Claims: &Claims{}}
	err := p.zero(plan.Look{Device: guardedDisk()}, []string{"zero-sample", dev + "/sdb"})
	g.Expect(err).To(MatchError(ContainSubstring("is not the target's device sda; nothing was done")))
	g.Expect(os.ReadFile(filepath.Join(dev, "sdb"))).To(BeEquivalentTo(strings.Repeat("data", 4096)))
}

func TestNothingIsWrittenToADeviceAtWhichALookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, dev := NewWithT(t), t.TempDir()
		g.Expect(os.WriteFile(filepath.Join(dev, "sda"), []byte("data"), 0o600)).To(Succeed())
		p := &Provisioner{Dev: dev, Claims: &Claims{}}
		p.Claims.of("sda").probing.Lock()
		l := plan.Look{Device: guardedDisk()}
		g.Expect(p.zero(l, []string{"zero-sample", dev + "/sda"})).To(MatchError(errHung))
		g.Expect(p.write(t.Context(), nil, l, []string{"wipefs", "--all", dev + "/sda"}, nil)).To(MatchError(errHung), "no program runs")
		g.Expect(p.Claims.of("sda").working).To(BeZero(), "it may be looked at again")
		g.Expect(os.ReadFile(filepath.Join(dev, "sda"))).To(BeEquivalentTo("data"))
	})
}

func TestANewFilesystemIsReadBack(t *testing.T) {
	said := func(kind, uuid, label, logUUID string) string {
		return fmt.Sprintf("TYPE=%s\nUUID=%s\nLABEL=%s\nLOGUUID=%s\n", kind, uuid, label, logUUID)
	}
	const other = "99999999-8888-4777-8666-555555555555"
	right, log := said("xfs", guardedUUID, "pfs-1", ""), said("xfs_external_log", "", "", guardedUUID)
	for name, c := range map[string]struct {
		fsType    v1alpha1.FSType
		disk, log string
		failsFor  string
		says      string
	}{
		"it is what was asked for":           {"xfs", right, log, "", ""},
		"it has another type":                {"xfs", said("ext4", guardedUUID, "pfs-1", ""), log, "", `has the type "ext4"`},
		"it has another UUID":                {"xfs", said("xfs", other, "pfs-1", ""), log, "", "has the UUID"},
		"it has another label":               {"xfs", said("xfs", guardedUUID, "data", ""), log, "", `has the label "data"`},
		"its log is that of another one":     {"xfs", right, said("xfs_external_log", "", "", other), "", "is not the external log"},
		"its log is no log":                  {"xfs", right, said("xfs", "", "", guardedUUID), "", "is not the external log"},
		"a format that has no log has one":   {"ext4", said("ext4", guardedUUID, "pfs-1", ""), log, "", "is not the external log"},
		"the disk can't be read back":        {"xfs", right, log, "/dev/sda", "can't read back what is on /dev/sda"},
		"the log device can't be read back":  {"xfs", right, log, "/dev/sdb", "can't read back what is on /dev/sdb"},
		"the format is not known any longer": {"zfs", right, log, "", "is not one of"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Provisioner{Dev: "/dev", Run: func(_ context.Context, argv []string, _ ...*os.File) ([]byte, error) {
				device := argv[len(argv)-1]
				if device == c.failsFor {
					return nil, errors.New("EIO")
				}
				return []byte(map[string]string{"/dev/sda": c.disk, "/dev/sdb": c.log}[device]), nil
			}}
			target := guarded(func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = c.fsType })
			onLog := guardedDisk(func(f *plan.Facts) { f.KernelName = "sdb" })
			err := p.verify(t.Context(), target, plan.Look{Device: guardedDisk(), Log: &onLog}, target.Status.Provisioned)
			if c.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestAFilesystemIsMountedOnlyWithTheMarkerOfItsTarget(t *testing.T) {
	former := &v1alpha1.FormerTarget{
		Owner: v1alpha1.FormerOwner{Cluster: "c9", Namespace: "lab", FileSystem: "old"}, FileSystemUID: "uid9", Target: "old-ssd-1", UUID: guardedUUID,
	}
	own := markerOf(guarded(), guardedUUID, time.Unix(1, 0))
	formers := spec.TargetMarker{Owner: spec.Owner{Namespace: "lab", Name: "old", UID: "uid9"}, Cluster: "c9", Target: "old-ssd-1", UUID: guardedUUID}
	with := func(m spec.TargetMarker, change func(*spec.TargetMarker)) spec.TargetMarker { change(&m); return m }
	for name, c := range map[string]struct {
		marker    spec.TargetMarker
		takenFrom string
		former    *v1alpha1.FormerTarget
		proven    bool
	}{
		"its own":                                  {own, "", nil, true},
		"its own, of an earlier FileSystem":        {with(own, func(m *spec.TargetMarker) { m.Owner.UID = "earlier" }), "", nil, true},
		"of another namespace":                     {with(own, func(m *spec.TargetMarker) { m.Owner.Namespace = "x" }), "", nil, false},
		"of another FileSystem":                    {with(own, func(m *spec.TargetMarker) { m.Owner.Name = "x" }), "", nil, false},
		"of another target":                        {with(own, func(m *spec.TargetMarker) { m.Target = "x" }), "", nil, false},
		"of another filesystem":                    {with(own, func(m *spec.TargetMarker) { m.UUID = "x" }), "", nil, false},
		"of another cluster":                       {with(own, func(m *spec.TargetMarker) { m.Cluster = "c2" }), "", nil, false},
		"of the cluster that it is taken from":     {with(own, func(m *spec.TargetMarker) { m.Cluster = "c2" }), "c2", nil, true},
		"of a third cluster":                       {with(own, func(m *spec.TargetMarker) { m.Cluster = "c3" }), "c2", nil, false},
		"of no cluster":                            {with(own, func(m *spec.TargetMarker) { m.Cluster = "" }), "", nil, false},
		"of the owner before it":                   {formers, "", former, true},
		"of that owner, and nothing is taken over": {formers, "", nil, false},
		"of that owner in another cluster":         {with(formers, func(m *spec.TargetMarker) { m.Cluster = "c8" }), "", former, false},
		"of another target of that owner":          {with(formers, func(m *spec.TargetMarker) { m.Target = "old-ssd-2" }), "", former, false},
		"of another disk of that owner":            {with(formers, func(m *spec.TargetMarker) { m.UUID = "x" }), "", former, false},
		"of another uid of that owner":             {with(formers, func(m *spec.TargetMarker) { m.Owner.UID = "x" }), "", former, false},
	} {
		err := proveMarker(c.marker, guarded(), &v1alpha1.TargetProvisioned{UUID: guardedUUID, TakenFrom: c.takenFrom, FormerOwner: c.former}, guardedUUID)
		NewWithT(t).Expect(err == nil).To(Equal(c.proven), "%s: %v", name, err)
	}
}

func TestOnlyTheServersOfTheFormerOwnerAreRenamed(t *testing.T) {
	former := v1alpha1.FormerOwner{Namespace: "lab", FileSystem: "old"}
	disk := func(g *WithT, owners map[string]spec.Owner) string {
		top := t.TempDir()
		g.Expect(os.Mkdir(filepath.Join(top, "0-lost"), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(top, "a-file"), nil, 0o600)).To(Succeed())
		for name, owner := range owners {
			g.Expect(os.Mkdir(filepath.Join(top, name), 0o700)).To(Succeed())
			content := fmt.Sprintf(`{"version": %d, "owner": {"namespace": %q, "name": %q, "uid": "u"}}`, spec.MarkerVersion, owner.Namespace, owner.Name)
			g.Expect(os.WriteFile(filepath.Join(top, name, spec.MarkerFile), []byte(content), 0o600)).To(Succeed())
		}
		return top
	}
	formers, own := spec.Owner{Namespace: "lab", Name: "old"}, spec.Owner{Namespace: "storage", Name: "scratch"}
	read := func(g *WithT, top, name string) string {
		content, err := os.ReadFile(filepath.Join(top, name, spec.MarkerFile))
		g.Expect(err).NotTo(HaveOccurred())
		return string(content)
	}
	t.Run("and those that are renamed already stay", func(t *testing.T) {
		g := NewWithT(t)
		top := disk(g, map[string]spec.Owner{"a": own, "b": formers, "c": formers})
		before := read(g, top, "a")
		g.Expect(renameOwner(top, guarded(), former)).To(Succeed())
		g.Expect(read(g, top, "a")).To(Equal(before), "it is not written again")
		for _, name := range []string{"a", "b", "c"} {
			g.Expect(read(g, top, name)).To(And(ContainSubstring(`"storage"`), ContainSubstring(`"scratch"`)))
		}
	})
	t.Run("and none when a newer operator wrote one", func(t *testing.T) {
		g := NewWithT(t)
		top := disk(g, map[string]spec.Owner{"a": formers, "b": formers})
		newer := strings.Replace(read(g, top, "b"), fmt.Sprintf(`"version": %d`, spec.MarkerVersion), `"version": 99`, 1)
		g.Expect(os.WriteFile(filepath.Join(top, "b", spec.MarkerFile), []byte(newer), 0o600)).To(Succeed())
		before := read(g, top, "a")
		g.Expect(renameOwner(top, guarded(), former)).To(MatchError(ContainSubstring("no marker was changed")))
		g.Expect(read(g, top, "a")).To(Equal(before))
	})
	for name, other := range map[string]spec.Owner{
		"another namespace": {Namespace: "x", Name: "old"}, "another name": {Namespace: "lab", Name: "x"},
		"the new name in another namespace": {Namespace: "x", Name: "scratch"}, "another name in the new namespace": {Namespace: "storage", Name: "x"},
	} {
		t.Run("and none when one names "+name, func(t *testing.T) {
			g := NewWithT(t)
			top := disk(g, map[string]spec.Owner{"a": formers, "b": other})
			before := read(g, top, "a")
			g.Expect(renameOwner(top, guarded(), former)).To(MatchError(ContainSubstring("no marker was changed")))
			g.Expect(read(g, top, "a")).To(Equal(before))
		})
	}
}

func TestOnlyATargetThatItsServerMountsIsHandedOver(t *testing.T) {
	served := func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = v1alpha1.Ldiskfs }
	for name, target := range map[string]*v1alpha1.StorageTarget{
		"the agent mounts it":     guarded(),
		"it was never made":       guarded(served, func(t *v1alpha1.StorageTarget) { t.Status.Provisioned = nil }),
		"its plan was only begun": guarded(served, func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.Finished = nil }),
	} {
		held, why, err := (&Provisioner{}).proveUnmounted(t.Context(), target, nil)
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), name)
		NewWithT(t).Expect(held).To(BeNil(), name)
		NewWithT(t).Expect(why).To(Equal("it is no target yet that its server mounts"), name)
	}
}

func TestADiskIsReleasedOnlyWhileItBelongsToTheTargetAndIsNotInUse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *plan.Facts)
		says   string
	}{
		"it is":                           {func(*plan.Facts) {}, ""},
		"it is gone":                      {func(f *plan.Facts) { *f = plan.Facts{} }, "is not there"},
		"its name is that of another":     {func(f *plan.Facts) { f.KernelName, f.Signatures[0].Device = "sdb", "sdb" }, "sdb has it now"},
		"it has another UUID":             {func(f *plan.Facts) { f.Signatures[0].UUID = "x" }, "does not hold the one filesystem"},
		"it holds something else, too":    {func(f *plan.Facts) { f.Signatures = append(f.Signatures, f.Signatures[0]) }, "does not hold the one filesystem"},
		"it holds nothing":                {func(f *plan.Facts) { f.Signatures = nil }, "does not hold the one filesystem"},
		"it has partitions":               {func(f *plan.Facts) { f.Partitions = []string{"sda1"} }, "does not hold the one filesystem"},
		"its format shows no mount":       {func(f *plan.Facts) { f.Signatures[0].Type = "xfs" }, "does not show who has it mounted"},
		"it is another disk":              {func(f *plan.Facts) { f.WWN = "0x6" }, "wrong WWN"},
		"it is mounted":                   {func(f *plan.Facts) { f.Mounts = []string{"/mnt"} }, "is mounted at /mnt"},
		"something is made from it":       {func(f *plan.Facts) { f.Holders = []string{"dm-0"} }, "dm-0 is made from it"},
		"not all of it could be read":     {func(f *plan.Facts) { f.Incomplete = "EIO" }, "could not be looked at completely"},
		"its paths lead to several disks": {func(f *plan.Facts) { f.TwoDisks = "these are two disks" }, "two disks"},
	} {
		says := stillInUse(guarded(), guardedDisk(), guardedDisk(c.change))
		if c.says == "" {
			NewWithT(t).Expect(says).To(BeEmpty(), name)
			continue
		}
		NewWithT(t).Expect(says).To(ContainSubstring(c.says), name)
	}
}

func TestALockIsWaitedForUntilItIsFreeOrTheProgramEnds(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "device")
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	other, err := os.Open(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unix.Flock(int(other.Fd()), unix.LOCK_EX)).To(Succeed())
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = lock(ended, path)
	g.Expect(err).To(MatchError(ContainSubstring("has been locked by another program")))
	got := make(chan error, 1)
	go func() {
		file, err := lock(t.Context(), path)
		got <- errors.Join(err, file.Close())
	}()
	g.Consistently(got, "50ms").ShouldNot(Receive())
	g.Expect(other.Close()).To(Succeed())
	g.Eventually(got).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
}

func TestFilesAreCountedOnAMountedTargetThatIsAskedForThem(t *testing.T) {
	p := &Provisioner{Now: time.Now}
	top := t.TempDir()
	g := NewWithT(t)
	g.Expect(p.files(t.Context(), guarded(), top)).NotTo(BeNil())
	g.Expect(p.files(t.Context(), guarded(), "")).To(BeNil(), "it is not mounted")
	g.Expect(p.files(t.Context(), guarded(func(t *v1alpha1.StorageTarget) { t.Spec.FilesIn = nil }), top)).To(BeNil(), "nobody asks")
	g.Expect(p.files(t.Context(), guarded(func(t *v1alpha1.StorageTarget) { t.Status.Provisioned = nil }), top)).To(BeNil(), "it is no target yet")
}

func TestASmallFileIsReadUpToItsLimit(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "file")
	g.Expect(os.WriteFile(path, []byte("12345"), 0o600)).To(Succeed())
	g.Expect(readAtMost(path, 5)).To(BeEquivalentTo("12345"))
	_, err := readAtMost(path, 4)
	g.Expect(err).To(MatchError("it is larger than 4 bytes"))
	g.Expect(syncFileSystem(filepath.Join(path, "missing"))).To(MatchError(unix.ENOTDIR))
	g.Expect(syncFileSystem(path + ".missing")).To(MatchError(fs.ErrNotExist))
}

func TestAFormatWithoutALogIsNotMountedWithOne(t *testing.T) {
	ext4, err := registry.Of(v1alpha1.FormatSpec{FSType: v1alpha1.Ext4})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = volume{format: ext4, device: "/dev/missing", logDevice: "/dev/log"}.mount()
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("has no log on a device of its own")))
}

func TestAMountThatNoProcessShowsHasNoHolder(t *testing.T) {
	NewWithT(t).Expect(whoUses(t.TempDir(), 8, 0)).To(HavePrefix("no process that shows it"))
}

func TestAMountOfAServerMatchesTheScanOfItsDevice(t *testing.T) {
	disk := guardedDisk(func(f *plan.Facts) {
		f.Marker = &plan.Marker{Target: "x"}
		f.Signatures = append(f.Signatures, v1alpha1.Signature{Device: "sda1", UUID: "of a partition"})
	})
	for name, c := range map[string]struct {
		mount plan.Mounted
		want  plan.Mounted
	}{
		"the disk is mounted":    {plan.Mounted{Mounted: true, KernelName: "sda"}, plan.Mounted{Mounted: true, KernelName: "sda", UUID: guardedUUID, Marker: disk.Marker}},
		"another one is mounted": {plan.Mounted{Mounted: true, KernelName: "sdb"}, plan.Mounted{Mounted: true, KernelName: "sdb"}},
		"nothing is mounted":     {plan.Mounted{KernelName: "sda"}, plan.Mounted{KernelName: "sda"}},
	} {
		l := plan.Look{Device: disk, Mount: c.mount}
		seenMounted(&l)
		NewWithT(t).Expect(reflect.DeepEqual(l.Mount, c.want)).To(BeTrue(), "%s: %+v", name, l.Mount)
	}
}
