package plan_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// mutations calls f once for each field below v, with v changed in that field only, and its name.
func mutations(t *testing.T, name string, v reflect.Value, f func(name string)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			mutations(t, name+"."+v.Type().Field(i).Name, v.Field(i), f)
		}
		return
	case reflect.Pointer:
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			f(name)
			v.Set(old)
			return
		}
		mutations(t, name, v.Elem(), f)
		return
	case reflect.Slice:
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		v.Set(reflect.Append(old.Slice3(0, old.Len(), old.Len()), reflect.Zero(v.Type().Elem())))
		f(name + " with one more")
		v.Set(old)
		for i := range v.Len() {
			mutations(t, fmt.Sprintf("%s[%d]", name, i), v.Index(i), f)
			v.Set(reflect.AppendSlice(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, old.Len()), old.Slice(0, i)), old.Slice(i+1, old.Len())))
			f(fmt.Sprintf("%s without %d", name, i))
			v.Set(old)
		}
		return
	}
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	switch v.Kind() {
	case reflect.String:
		v.SetString(old.String() + "x")
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("attr2"), reflect.ValueOf("refused"))
	case reflect.Bool:
		v.SetBool(!old.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(old.Int() + 1)
	default:
		t.Fatalf("%s is a %s, which the test does not change", name, v.Kind())
	}
	f(name)
	v.Set(old)
}

func TestAnApprovalIsVoidAfterAnyChange(t *testing.T) {
	numa := int32(1)
	target := aTarget(withLog, policy(v1alpha1.FormatApproved))
	l := plan.Look{
		Device: blankDisk(holding("gpt", "g", "l"), holding("ext4", "u", ""), func(f *plan.Facts) {
			f.Partitions, f.NUMANode = []string{"sdb1", "sdb2"}, &numa
		}),
		Log: blankLog(holding("xfs_external_log", "v", ""), func(f *plan.Facts) { f.LogOf = &v1alpha1.Signature{Device: "sdz", Type: "xfs", UUID: "v"} }),
	}
	first := decide(target, l)
	target.Status.Plan, target.Spec.ApprovedPlan = first.Plan, first.Plan.Hash
	NewWithT(t).Expect(decide(target, l).Action).To(Equal(plan.Record), "unchanged, it is approved")

	count := 0
	stillApproved := func(name string) {
		count++
		if d := decide(target, l); d.Action != plan.None && !strings.Contains(name, ".Unusable") {
			t.Errorf("the approval still holds after a change of %s: %s", name, d.Action)
		}
	}
	mutations(t, "look", reflect.ValueOf(&l).Elem(), func(name string) {
		if strings.HasPrefix(name, "look.Mount.") && !l.Mount.Mounted && l.Mount.Problem == "" {
			return // Without a mount, there is no UUID, kernel name or marker.
		}
		stillApproved(name)
	})
	mutations(t, "device", reflect.ValueOf(&target.Spec.Device).Elem(), stillApproved)
	mutations(t, "logDevice", reflect.ValueOf(target.Spec.LogDevice).Elem(), stillApproved)
	target.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-i", "size=512"}
	stillApproved("mkfsOptions")
	target.Spec.Format.MkfsOptions = nil
	target.Spec.Format.MountOptions = []v1alpha1.LocalMountOption{"noatime"}
	stillApproved("mountOptions")
	target.Spec.Format.MountOptions = nil
	NewWithT(t).Expect(decide(target, l).Action).To(Equal(plan.Record), "the test has put everything back")
	NewWithT(t).Expect(count).To(BeNumerically(">", 90))
}

func TestCommands(t *testing.T) {
	path := mountpoint(aTarget())
	label := plan.Label(aTarget())
	mark := "write " + path + "/.parallelfs-target.json"
	bigLog := blankLog(func(f *plan.Facts) { f.SizeBytes = 4 << 30 })
	format := func(fsType v1alpha1.FSType, mkfs []v1alpha1.MkfsOption, mount ...v1alpha1.LocalMountOption) func(*v1alpha1.StorageTarget) {
		return func(t *v1alpha1.StorageTarget) {
			t.Spec.Format = v1alpha1.FormatSpec{FSType: fsType, MkfsOptions: mkfs, MountOptions: mount}
		}
	}
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		steps  []string
	}{
		"XFS is never forced": {aTarget(format(v1alpha1.XFS, []v1alpha1.MkfsOption{"-d", "su=128k,sw=8"}, "noatime", "inode64")), look(), []string{
			"mkfs.xfs -d su=128k,sw=8 -L " + label + " -m uuid=" + uuidOne + " /dev/sdb", "mount -t xfs -o noatime,inode64 /dev/sdb " + path, mark,
		}},
		"ext4 is never forced": {aTarget(format(v1alpha1.Ext4, []v1alpha1.MkfsOption{"-i", "2048"})), look(), []string{
			"mkfs.ext4 -i 2048 -L " + label + " -U " + uuidOne + " /dev/sdb", "mount -t ext4 /dev/sdb " + path, mark,
		}},
		"btrfs is never forced": {aTarget(format(v1alpha1.Btrfs, nil)), look(), []string{
			"mkfs.btrfs -L " + label + " -U " + uuidOne + " /dev/sdb", "mount -t btrfs /dev/sdb " + path, mark,
		}},
		"partitions are wiped before their disk, and both before mkfs": {aTarget(), look(holding("gpt", "g", ""), func(f *plan.Facts) { f.Partitions = []string{"sdb2", "sdb1"} }), []string{
			"wipefs --all /dev/sdb1", "wipefs --all /dev/sdb2", "wipefs --all /dev/sdb", "zero-sample /dev/sdb", "mkfs.xfs -L " + label + " -m uuid=" + uuidOne + " /dev/sdb", "mount -t xfs /dev/sdb " + path, mark,
		}},
		"an external log is named to mkfs and mount": {aTarget(withLog), plan.Look{Device: blankDisk(), Log: blankLog(holding("ext4", "u", ""))}, []string{
			"wipefs --all /dev/nvme0n1p1", "zero-sample /dev/nvme0n1p1", "mkfs.xfs -L " + label + " -m uuid=" + uuidOne + " -l logdev=/dev/nvme0n1p1 /dev/sdb", "mount -t xfs -o logdev=/dev/nvme0n1p1 /dev/sdb " + path, mark,
		}},
		"a log device above the longest log gets a size": {aTarget(withLog), plan.Look{Device: blankDisk(), Log: bigLog}, []string{
			"mkfs.xfs -L " + label + " -m uuid=" + uuidOne + " -l logdev=/dev/nvme0n1p1,size=2136997888 /dev/sdb", "mount -t xfs -o logdev=/dev/nvme0n1p1 /dev/sdb " + path, mark,
		}},
		"a log device above the longest log keeps the user's size": {aTarget(withLog, format(v1alpha1.XFS, []v1alpha1.MkfsOption{"-l", "size=64m"})), plan.Look{Device: blankDisk(), Log: bigLog}, []string{
			"mkfs.xfs -l size=64m -L " + label + " -m uuid=" + uuidOne + " -l logdev=/dev/nvme0n1p1 /dev/sdb", "mount -t xfs -o logdev=/dev/nvme0n1p1 /dev/sdb " + path, mark,
		}},
		"a device in a subdirectory of /dev is found there": {aTarget(), look(func(f *plan.Facts) { f.KernelName = "cciss!c0d0" }), []string{
			"mkfs.xfs -L " + label + " -m uuid=" + uuidOne + " /dev/cciss/c0d0", "mount -t xfs /dev/cciss/c0d0 " + path, mark,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := plan.Make(c.target, c.look, uuidOne)
			g.Expect(p.Steps).To(Equal(c.steps))
			g.Expect(p.Hash).To(MatchRegexp(`^sha256:[0-9a-f]{64}$`))
			g.Expect(p.UUID).To(Equal(uuidOne))
		})
	}
}

func TestMkfsOptionsThatAreRefusedAreNamed(t *testing.T) {
	for _, c := range []struct {
		fsType  v1alpha1.FSType
		options string
		says    string
	}{
		{"xfs", "-L x", `"-L" of mkfs.xfs is refused: the operator sets the label`},
		{"xfs", "-Lx", `"-L" of mkfs.xfs`},
		{"xfs", "-m uuid=1,crc=1", `"-m uuid"`},
		{"xfs", "-m crc=1,uuid=1", `"-m uuid"`},
		{"xfs", "-muuid=1", `"-m uuid"`},
		{"xfs", "-l logdev=sdc", `"-l logdev"`},
		{"xfs", "-l size=64m,name=sdc", `"-l name"`},
		{"xfs", "-f", "without force"},
		{"xfs", "-Kf", `"-f" of mkfs.xfs`},
		{"xfs", "-N", "makes no filesystem"},
		{"xfs", "-V", "makes no filesystem"},
		{"xfs", "-q", "what mkfs prints"},
		{"xfs", "-r rtdev=sdc", `"-r rtdev"`},
		{"xfs", "-d name=sdc", `"-d name"`},
		{"xfs", "-d file", `"-d file"`},
		{"xfs", "-p proto", "reads a file"},
		{"xfs", "-c options=x", "reads a file"},
		{"xfs", "-Z", "does not know"},
		{"xfs", "-i", "needs an argument"},
		{"xfs", "-i -K", "needs an argument"},
		{"xfs", "sdc", "take it for a device"},
		{"xfs", "-i size=512 sdc", `"sdc" of mkfs.xfs`},
		{"xfs", "/dev/sdc", "it is a path"},
		{"xfs", "-l size=/dev/sdc", "it is a path"},
		{"xfs", "--", "neither an option"},
		{"xfs", "-", "neither an option"},
		{"ext4", "-L x", "sets the label"},
		{"ext4", "-U x", "sets the UUID"},
		{"ext4", "-F", "without force"},
		{"ext4", "-vF", `"-F" of mkfs.ext4`},
		{"ext4", "-n", "makes no filesystem"},
		{"ext4", "-q", "what mkfs prints"},
		{"ext4", "-S", "only a part"},
		{"ext4", "-t ext2", "format.fsType"},
		{"ext4", "-J device=sdc", `"-J device"`},
		{"ext4", "-O ^has_journal,journal_dev", `"-O journal_dev"`},
		{"ext4", "-E offset=4096", `"-E offset"`},
		{"ext4", "-d dir", "reads a file"},
		{"ext4", "-z undo", "reads a file"},
		{"ext4", "-i 2048 1000", "take it for a device"},
		{"btrfs", "-L x", "sets the label"},
		{"btrfs", "--label=x", "sets the label"},
		{"btrfs", "--lab=x", "does not know"},
		{"btrfs", "-U x", "sets the UUID"},
		{"btrfs", "--uuid x", "sets the UUID"},
		{"btrfs", "-f", "without force"},
		{"btrfs", "-Mf", "without force"},
		{"btrfs", "--force", "without force"},
		{"btrfs", "--rootdir x", "reads a file"},
		{"btrfs", "-d single sdc", "take it for a device"},
		{"btrfs", "--mixed=yes", "takes no argument"},
		{"zfs", "", "is not one of"},
	} {
		t.Run(string(c.fsType)+" "+c.options, func(t *testing.T) {
			f := v1alpha1.FormatSpec{FSType: c.fsType}
			for o := range strings.FieldsSeq(c.options) {
				f.MkfsOptions = append(f.MkfsOptions, v1alpha1.MkfsOption(o))
			}
			NewWithT(t).Expect(plan.RefusedMkfsOptions(f)).To(ContainElement(ContainSubstring(c.says)))
			p := plan.Make(aTarget(func(t *v1alpha1.StorageTarget) { t.Spec.Format = f }), look(), uuidOne)
			NewWithT(t).Expect(p.Refusals).To(ContainElement(ContainSubstring(c.says)), "the plan refuses it too")
		})
	}
	for fsType, options := range map[v1alpha1.FSType]string{
		"xfs":   "-d su=128k,sw=8 -i size=512 -l version=2,su=128k -n size=8k -K -b size=4096 -s size=4096 -m crc=1,reflink=0 -isize=1024",
		"ext4":  "-i 2048 -I 512 -J size=400 -O dir_index,filetype,^resize_inode -E lazy_itable_init=0,stride=32 -m 0 -b 4096 -v -N 1000 -T largefile",
		"btrfs": "-d single -m raid1 -n 16k --csum xxhash --features=no-holes -K -O block-group-tree --nodesize=32k",
	} {
		f := v1alpha1.FormatSpec{FSType: fsType}
		for o := range strings.FieldsSeq(options) {
			f.MkfsOptions = append(f.MkfsOptions, v1alpha1.MkfsOption(o))
		}
		NewWithT(t).Expect(plan.RefusedMkfsOptions(f)).To(BeEmpty(), string(fsType))
	}
}

func TestAPlanThatIsTooLongToBeShownIsRefused(t *testing.T) {
	for name, change := range map[string]func(*plan.Facts){
		"200 partitions": func(f *plan.Facts) {
			for i := range 200 {
				f.Partitions = append(f.Partitions, fmt.Sprintf("sdb%d", i))
			}
		},
		"a label of 1 KiB": holding("ext4", "u", strings.Repeat("é", 512)),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := plan.Make(aTarget(policy(v1alpha1.FormatApproved)), look(change), uuidOne)
			g.Expect(p.Refusals).To(ContainElement(ContainSubstring("the devices hold more than a plan can show")))
			g.Expect(len(p.Steps)).To(BeNumerically("<=", 32))
			g.Expect(len(p.Destroys)).To(BeNumerically("<=", 128))
			for _, line := range p.Destroys {
				g.Expect(len(line)).To(BeNumerically("<=", 512))
			}
		})
	}
}
