package ldiskfs_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
)

const (
	uuid = "4a9ee1e2-bd33-4b75-be9a-1a68b6ea9309"
	mark = `{"target":"scratch-ost-0a1b2c3d"}`
)

// printed returns recorded output of the real tools.
func printed(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/2.17.57/" + name + ".txt")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// The services of the targets in the recorded output.
var (
	mgs  = ldiskfs.Service{MGS: true, ServiceNodes: []ldiskfs.Node{"192.168.77.1@tcp"}}
	mdt0 = ldiskfs.Service{MGS: true, Kind: ldiskfs.MDT, FSName: "pfs"}
	mdt1 = ldiskfs.Service{Kind: ldiskfs.MDT, FSName: "pfs", Index: 1, MGSNodes: []ldiskfs.Node{"192.168.77.1@tcp"}}
	ost0 = ldiskfs.Service{Kind: ldiskfs.OST, FSName: "pfs", MGSNodes: []ldiskfs.Node{"192.168.77.1@tcp"}}
	ost1 = ldiskfs.Service{
		Kind: ldiskfs.OST, FSName: "pfs", Index: 1, MGSNodes: []ldiskfs.Node{"192.168.77.1@tcp"},
		ServiceNodes: []ldiskfs.Node{"192.168.77.1@tcp", "192.168.77.2@tcp"},
	}
)

func made(s ldiskfs.Service, options ...v1alpha1.MkfsOption) ldiskfs.New {
	return ldiskfs.New{Service: s, Mark: mark, UUID: uuid, Device: "/dev/sdb", Options: options}
}

func TestTheCommandNamesAllThatATargetIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(made(ost1, "-i", "1048576").Make()).To(Equal([]string{
		"mkfs.lustre", "--backfstype=ldiskfs", "--ost", "--fsname=pfs", "--index=1", "--mgsnode=192.168.77.1@tcp",
		"--servicenode=192.168.77.1@tcp", "--servicenode=192.168.77.2@tcp", "--comment=" + mark,
		"--mkfsoptions=-U 4a9ee1e2-Bd33-4b75-Be9a-1a68b6ea9309 -i 1048576", "/dev/sdb",
	}))
	g.Expect(made(mdt0).Make()).To(ContainElements("--mgs", "--mdt", "--fsname=pfs", "--index=0"))
	g.Expect(made(mgs).Make()).To(And(ContainElement("--mgs"), Not(ContainElement(HavePrefix("--fsname"))), Not(ContainElement(HavePrefix("--index")))))
}

func TestTheDryRunIsTheCommandItself(t *testing.T) {
	g := NewWithT(t)
	for _, s := range []ldiskfs.Service{mgs, mdt0, mdt1, ost0, ost1} {
		argv := made(s).DryRun()
		g.Expect(argv[1]).To(Equal("--dryrun"))
		g.Expect(append(argv[:1:1], argv[2:]...)).To(Equal(made(s).Make()))
	}
}

func TestNoCommandOverwritesATarget(t *testing.T) {
	for _, s := range []ldiskfs.Service{mgs, mdt0, mdt1, ost0, ost1} {
		for _, argv := range [][]string{made(s).Make(), made(s).DryRun(), ldiskfs.Format{}.ReadBack("/dev/sdb"), ldiskfs.Format{}.Remark("/dev/sdb", mark)} {
			NewWithT(t).Expect(strings.Join(argv, " ")).NotTo(Or(ContainSubstring("reformat"), ContainSubstring("replace"), ContainSubstring("writeconf"),
				ContainSubstring("erase"), ContainSubstring("force")))
		}
	}
}

// mkfs.lustre searches the text of the options for these letters.
func TestAUUIDIsNotReadAsAnOption(t *testing.T) {
	g := NewWithT(t)
	for _, first := range "0123456789abcdef" {
		n := made(ost0)
		n.UUID = "00000000-" + strings.Repeat(string(first)+"aaa-", 3) + "000000000000"
		g.Expect(n.Problems()).To(BeEmpty())
		options := strings.TrimPrefix(n.Make()[len(n.Make())-2], "--mkfsoptions=-U ")
		g.Expect(strings.ToLower(options)).To(Equal(n.UUID))
		for _, searched := range []string{"-b", "-J", "-I", "-i", "-N", "-O", "-E", "-G"} {
			g.Expect(options).NotTo(ContainSubstring(searched))
		}
	}
	n := made(ost0)
	n.UUID = "00000000-EAAA-EAAA-BAAA-000000000000"
	g.Expect(n.Make()[len(n.Make())-2]).NotTo(Or(ContainSubstring("-E"), ContainSubstring("-b")))
}

func TestADryRunReturnsTheDesiredObject(t *testing.T) {
	for name, s := range map[string]ldiskfs.Service{"mgs": mgs, "mgs-mdt0": mdt0, "mdt1": mdt1, "ost0": ost0, "ost1-servicenodes": ost1} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := ldiskfs.ParseDryRun(0, printed(t, "dryrun-"+name))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Service).To(Equal(s))
			g.Expect(found.Registration).To(Equal(ldiskfs.FirstTime))
			g.Expect(found.Name).To(Equal(s.Label(ldiskfs.FirstTime)))
			g.Expect(ldiskfs.Differences(s, "", found)).To(BeEmpty())
		})
	}
}

func TestTheOutputAboutATargetIsParsed(t *testing.T) {
	g := NewWithT(t)
	found, err := ldiskfs.ParseReadBack(0, printed(t, "readback-ost0"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(ldiskfs.Found{
		Service: ost0, Name: "pfs-OST0000", Indexed: true, Registration: ldiskfs.FirstTime, Update: true, MountType: "ldiskfs", MountOptions: "errors=remount-ro",
	}))
	found, err = ldiskfs.ParseReadBack(0, printed(t, "readback-ost0-registered"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(ldiskfs.Found{
		Service: ost0, Name: "pfs-OST0000", Indexed: true, Registration: ldiskfs.Registered, MountType: "ldiskfs", MountOptions: "errors=remount-ro",
	}))
	found, err = ldiskfs.ParseReadBack(0, printed(t, "readback-mgs-mdt0"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Service).To(Equal(mdt0))
	_, err = ldiskfs.ParseReadBack(19, printed(t, "readback-none"))
	g.Expect(err).To(MatchError(ldiskfs.ErrNoTarget))
}

// withLine returns a recorded answer with one line replaced.
func withLine(t *testing.T, old, line string) string {
	t.Helper()
	answer := printed(t, "readback-ost0")
	NewWithT(t).Expect(answer).To(ContainSubstring(old))
	return strings.Replace(answer, old, line, 1)
}

func TestTheMarkAndAllNIDsAreReadBack(t *testing.T) {
	g := NewWithT(t)
	found, err := ldiskfs.ParseReadBack(0, withLine(t, "Parameters: mgsnode=192.168.77.1@tcp\n",
		"Parameters: mgsnode=10.0.0.1@tcp,10.1.0.1@o2ib:10.0.0.2@tcp,10.1.0.2@o2ib failover.node=2001:db8::1@tcp:fe80::2@tcp1 sys.timeout=40\nComment: "+mark+"\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Mark).To(Equal(mark))
	g.Expect(found.Service.MGSNodes).To(Equal([]ldiskfs.Node{"10.0.0.1@tcp,10.1.0.1@o2ib", "10.0.0.2@tcp,10.1.0.2@o2ib"}))
	g.Expect(found.Service.ServiceNodes).To(Equal([]ldiskfs.Node{"2001:db8::1@tcp", "fe80::2@tcp1"}))
	g.Expect(found.Parameters).To(Equal([]string{"sys.timeout=40"}))
}

func TestAnAnswerThatIsNotUnderstoodIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		answer func(t *testing.T) string
		says   string
	}{
		"another exit code":     {22, func(t *testing.T) string { t.Helper(); return printed(t, "readback-ost0") }, "exit code 22"},
		"nothing":               {0, func(*testing.T) string { return "" }, "does not say that it has found a target"},
		"what would be changed": {0, func(t *testing.T) string { t.Helper(); return printed(t, "readback-two-blocks") }, "the values of 2 targets"},
		"a value less":          {0, func(t *testing.T) string { t.Helper(); return withLine(t, "Index:      0\n", "") }, `no value of "Index"`},
		"a value twice": {0, func(t *testing.T) string {
			t.Helper()
			return withLine(t, "Index:      0\n", "Index:      0\nIndex:      1\n")
		}, `two values of "Index"`},
		"an index that is none":  {0, func(t *testing.T) string { t.Helper(); return withLine(t, "Index:      0\n", "Index:      zero\n") }, `the index "zero"`},
		"flags that are none":    {0, func(t *testing.T) string { t.Helper(); return withLine(t, "0x62", "many") }, `the flags "many"`},
		"two kinds":              {0, func(t *testing.T) string { t.Helper(); return withLine(t, "0x62", "0x63") }, "an MDT and an OST"},
		"no kind":                {0, func(t *testing.T) string { t.Helper(); return withLine(t, "0x62", "0x60") }, "neither an MGS"},
		"NIDs without a network": {0, func(t *testing.T) string { t.Helper(); return withLine(t, "192.168.77.1@tcp", "192.168.77.1") }, "is no list of NIDs"},
		"NIDs with nothing at the end": {0, func(t *testing.T) string { t.Helper(); return withLine(t, "192.168.77.1@tcp", "192.168.77.1@tcp:") },
			"is no list of NIDs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ldiskfs.ParseReadBack(c.code, c.answer(t))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
	g := NewWithT(t)
	_, err := ldiskfs.ParseDryRun(22, printed(t, "dryrun-ost0"))
	g.Expect(err).To(MatchError(ContainSubstring("exit code 22")))
	_, err = ldiskfs.ParseDryRun(0, strings.ReplaceAll(printed(t, "dryrun-ost0"), "exiting before disk write.", ""))
	g.Expect(err).To(MatchError(ContainSubstring("does not say that it wrote nothing")))
}

// target returns what is seen of a registered ost0 of 2.17.57.
func target(t *testing.T) ldiskfs.Seen {
	t.Helper()
	found, err := ldiskfs.ParseReadBack(0, printed(t, "readback-ost0-registered"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	found.Mark = mark
	return ldiskfs.Seen{Type: "ext4", UUID: uuid, Label: "pfs-OST0000", Target: found}
}

func TestATargetIsMountedWhenAllAgrees(t *testing.T) {
	g := NewWithT(t)
	seen := target(t)
	g.Expect(ldiskfs.Refusal(ost0, uuid, mark, seen)).To(BeEmpty())
	g.Expect(ldiskfs.Refusal(ost0, strings.ToUpper(uuid), mark, seen)).To(BeEmpty())
	seen.Target.Registration, seen.Label = ldiskfs.FirstTime, "pfs:OST0000"
	g.Expect(ldiskfs.Refusal(ost0, uuid, mark, seen)).To(BeEmpty(), "before its first mount")
}

func TestATargetIsNotMountedWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *ldiskfs.Seen)
		says   string
	}{
		"the disk has another filesystem":       {func(s *ldiskfs.Seen) { s.Type = "xfs" }, `"xfs" instead of an ext4`},
		"it is another disk":                    {func(s *ldiskfs.Seen) { s.UUID = "0" }, "has the UUID 0, and the target was recorded with " + uuid},
		"it is another filesystem's":            {func(s *ldiskfs.Seen) { s.Target.Service.FSName = "home" }, `its filesystem is "home", and it was given "pfs"`},
		"it has metadata":                       {func(s *ldiskfs.Seen) { s.Target.Service.Kind = ldiskfs.MDT }, `its kind is "MDT", and it was given "OST"`},
		"it has the MGS":                        {func(s *ldiskfs.Seen) { s.Target.Service.MGS = true }, `its MGS is "true"`},
		"it has another index":                  {func(s *ldiskfs.Seen) { s.Target.Service.Index = 7 }, `its index is "7", and it was given "0"`},
		"it has no index":                       {func(s *ldiskfs.Seen) { s.Target.Indexed = false }, "it has no index"},
		"it is a ZFS":                           {func(s *ldiskfs.Seen) { s.Target.MountType = "zfs" }, `its local filesystem is "zfs"`},
		"it has the address of another MGS":     {func(s *ldiskfs.Seen) { s.Target.Service.MGSNodes = []ldiskfs.Node{"10.0.0.9@tcp"} }, `its MGS nodes are ["10.0.0.9@tcp"]`},
		"it has service nodes":                  {func(s *ldiskfs.Seen) { s.Target.Service.ServiceNodes = []ldiskfs.Node{"10.0.0.9@tcp"} }, `its service nodes are ["10.0.0.9@tcp"]`},
		"its mark is another's":                 {func(s *ldiskfs.Seen) { s.Target.Mark = "somebody" }, `its mark is "somebody"`},
		"it has no mark":                        {func(s *ldiskfs.Seen) { s.Target.Mark = "" }, `its mark is ""`},
		"a writeconf was requested":             {func(s *ldiskfs.Seen) { s.Target.Registration, s.Label = ldiskfs.Writeconf, "pfs=OST0000" }, "which was not approved"},
		"its label is another's":                {func(s *ldiskfs.Seen) { s.Label = "pfs-OST0007" }, "its label is pfs-OST0007, and that of the target is pfs-OST0000"},
		"its label was changed behind its back": {func(s *ldiskfs.Seen) { s.Label = "pfs:OST0000" }, "its label is pfs:OST0000"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := target(t)
			c.change(&seen)
			NewWithT(t).Expect(ldiskfs.Refusal(ost0, uuid, mark, seen)).To(ContainSubstring(c.says))
		})
	}
}

func TestATargetThatCanBeMade(t *testing.T) {
	for _, s := range []ldiskfs.Service{mgs, mdt0, mdt1, ost0, ost1, {
		Kind: ldiskfs.OST, FSName: "a_B-9", Index: 65503, MGSNodes: []ldiskfs.Node{"10.0.0.1@tcp,10.1.0.1@o2ib1", "2001:db8::1@tcp"},
	}} {
		NewWithT(t).Expect(made(s).Problems()).To(BeEmpty())
	}
}

func TestATargetCannotBeMadeWhen(t *testing.T) {
	for name, c := range map[string]struct {
		of     ldiskfs.Service
		change func(n *ldiskfs.New)
		says   string
	}{
		"it is nothing":                          {ldiskfs.Service{}, func(*ldiskfs.New) {}, "neither an MGS nor an MDT nor an OST"},
		"its kind is unknown":                    {ost0, func(n *ldiskfs.New) { n.Service.Kind = "MGT" }, `the kind "MGT"`},
		"an MGS has a name":                      {mgs, func(n *ldiskfs.New) { n.Service.FSName = "pfs" }, "an MGS of its own has neither"},
		"an MGS has an index":                    {mgs, func(n *ldiskfs.New) { n.Service.Index = 1 }, "an MGS of its own has neither"},
		"its name is too long":                   {ost0, func(n *ldiskfs.New) { n.Service.FSName = "123456789" }, `the name "123456789"`},
		"its name is for a shell":                {ost0, func(n *ldiskfs.New) { n.Service.FSName = "a;b" }, `the name "a;b"`},
		"it has no name":                         {ost0, func(n *ldiskfs.New) { n.Service.FSName = "" }, `the name ""`},
		"its index is too high":                  {ost0, func(n *ldiskfs.New) { n.Service.Index = 65504 }, "the index 65504"},
		"its index is negative":                  {ost0, func(n *ldiskfs.New) { n.Service.Index = -1 }, "the index -1"},
		"an OST has the MGS":                     {ost0, func(n *ldiskfs.New) { n.Service.MGS = true }, "an OST can't be an MGS"},
		"another MDT than the first has the MGS": {mdt1, func(n *ldiskfs.New) { n.Service.MGS, n.Service.MGSNodes = true, nil }, "not beside MDT0001"},
		"it has no address of an MGS":            {ost0, func(n *ldiskfs.New) { n.Service.MGSNodes = nil }, "no NID of its MGS"},
		"it has the MGS and knows another":       {mdt0, func(n *ldiskfs.New) { n.Service.MGSNodes = ost0.MGSNodes }, "is told no NIDs of it"},
		"its NIDs are a name":                    {ost0, func(n *ldiskfs.New) { n.Service.MGSNodes = []ldiskfs.Node{"mgs.example.com"} }, `"mgs.example.com" are not NIDs`},
		"its NIDs have a space":                  {ost0, func(n *ldiskfs.New) { n.Service.ServiceNodes = []ldiskfs.Node{"10.0.0.1@tcp x"} }, "are not NIDs"},
		"its mark is too long":                   {ost0, func(n *ldiskfs.New) { n.Mark = strings.Repeat("x", 824) }, "the mark has 824 bytes"},
		"it has no mark":                         {ost0, func(n *ldiskfs.New) { n.Mark = "" }, "the mark is not one line"},
		"its mark has two lines":                 {ost0, func(n *ldiskfs.New) { n.Mark = "a\nIndex:      7" }, "the mark is not one line"},
		"its UUID is none":                       {ost0, func(n *ldiskfs.New) { n.UUID = "$(reboot)" }, "is no UUID"},
		"its options are too long": {ost0, func(n *ldiskfs.New) {
			n.Options = []v1alpha1.MkfsOption{"-E", v1alpha1.MkfsOption(strings.Repeat("x", 220))}
		}, "are too long"},
	} {
		t.Run(name, func(t *testing.T) {
			n := made(c.of)
			c.change(&n)
			NewWithT(t).Expect(n.Problems()).To(ContainElement(ContainSubstring(c.says)))
		})
	}
}

func TestOptionsOfMke2fsThatAreRefused(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ldiskfs.Format{}.RefusedOptions([]v1alpha1.MkfsOption{"-i", "1048576", "-E", "stride=64,stripe_width=640", "-O", "^has_journal"})).To(BeEmpty())
	for options, says := range map[string]string{
		"-U x": "the operator sets the UUID", "-L x": "the operator sets the label", "-F": "without force", "-n": "makes no filesystem",
		"-O a -O b": `"-O" of mkfs.lustre is refused: it may be given once`, "-E a -E b": `"-E" of mkfs.lustre is refused: it may be given once`,
		"/dev/sdc": "it is a path",
	} {
		var given []v1alpha1.MkfsOption
		for option := range strings.FieldsSeq(options) {
			given = append(given, v1alpha1.MkfsOption(option))
		}
		g.Expect(ldiskfs.Format{}.RefusedOptions(given)).To(ContainElement(ContainSubstring(says)), options)
	}
}

func TestTheLabelsOfATarget(t *testing.T) {
	g := NewWithT(t)
	g.Expect([]string{
		ost0.Label(ldiskfs.FirstTime), mdt1.Label(ldiskfs.Registered), ost1.Label(ldiskfs.Writeconf), ost1.Label(ldiskfs.NoLocalLogs), mgs.Label(ldiskfs.FirstTime),
	}).To(Equal([]string{"pfs:OST0000", "pfs-MDT0001", "pfs=OST0001", "pfs+OST0001", "MGS"}))
	highest := ldiskfs.Service{Kind: ldiskfs.OST, FSName: "12345678", Index: 65503}
	g.Expect(highest.Label(ldiskfs.Registered)).To(HaveLen(16), "the label of an ext4 has room for 16 bytes")
}

func TestAMountShowsWhichTargetItServes(t *testing.T) {
	g := NewWithT(t)
	f := ldiskfs.Format{}
	g.Expect(f.Mounted("rw,svname=pfs-MDT0000,mgs,osd=osd-ldiskfs,user_xattr,errors=remount-ro")).To(Equal("pfs-MDT0000"))
	g.Expect(f.Mounted("rw,user_id=0")).To(BeEmpty())
	for _, kind := range []string{"lustre_tgt", "lustre", "fuse.lustre_tgt"} {
		g.Expect(format.IsMount(f, kind, "/dev/sdb")).To(BeTrue(), kind)
		g.Expect(format.IsMount(f, kind, "10.0.0.1@tcp:/sdb")).To(BeFalse(), "a client's "+kind)
	}
	g.Expect(format.IsMount(f, "ext4", "/dev/sdb")).To(BeFalse())
}

func TestTheAssignmentThatATargetReportsCanBeUsedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		given  v1alpha1.LustreTarget
	}{
		"an OST":              {"readback-ost0-registered", v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(0)), ManagementNIDs: []string{"192.168.77.1@tcp"}}},
		"MDT0000 with an MGS": {"readback-mgs-mdt0", v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: "pfs", Index: new(int32(0)), WithMGT: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			said, err := ldiskfs.Format{}.Says(format.Answer{Stdout: printed(t, c.answer)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(said).To(Equal(c.given))
			found, err := ldiskfs.ParseReadBack(0, printed(t, c.answer))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ldiskfs.Differences(ldiskfs.ServiceOf(said), "", found)).To(BeEmpty())
		})
	}
	g := NewWithT(t)
	for says, answer := range map[string]string{
		"several nodes": withLine(t, "mgsnode=192.168.77.1@tcp", "mgsnode=10.0.0.1@tcp:10.0.0.2@tcp"),
		"has no index":  withLine(t, "0x62", "0x72"),
	} {
		_, err := ldiskfs.Format{}.Says(format.Answer{Stdout: answer})
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
}
