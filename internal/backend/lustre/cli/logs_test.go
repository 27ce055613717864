package cli_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

func TestTheDeviceOfTheMGTIsItsOwnOrThatOfMDT0000(t *testing.T) {
	g, c := NewWithT(t), cli.Commands{FSName: "pfs"}
	g.Expect(c.ManagementDevice(printed(t, "params-devices"))).To(Equal("/dev/vdb"))
	g.Expect(c.ManagementDevice([]byte("osd-ldiskfs.pfs-MDT0000.mntdev=/dev/vda\nosd-ldiskfs.pfs-OST0000.mntdev=/dev/vdc\n"))).To(Equal("/dev/vda"))
	for _, other := range []string{"", "osd-ldiskfs.pfs-MDT0001.mntdev=/dev/vda\n", "osd-ldiskfs.other-MDT0000.mntdev=/dev/vda\n"} {
		_, err := c.ManagementDevice([]byte(other))
		g.Expect(err).To(MatchError(ContainSubstring("neither the MGT nor MDT0000 of pfs")), other)
	}
}

func TestTheMGSPrintsALogAsLlogReaderReadsItsFile(t *testing.T) {
	g := NewWithT(t)
	names, err := cli.ParseLogs(printed(t, "llog-catlist"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(ContainElements("pfs-MDT0000", "pfs-client"))
	for _, name := range append(names, cli.Params) {
		said, targets, err := cli.ParsePrintedLog(printed(t, "llog-print-"+name))
		g.Expect(err).NotTo(HaveOccurred(), name)
		read, err := cli.ParseReadLog(printed(t, "llog-reader-"+name))
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(said.Differ(read)).To(BeEmpty(), name)
		if name == "pfs-client" {
			g.Expect(targets).To(ConsistOf("pfs-MDT0000", "pfs-OST0000", "pfs-OST0001"))
			g.Expect(slices.Collect(maps.Values(said))).To(ContainElements("attach", "setup", "add_uuid", "new_profile", "add_osc", "add_mdc", "new_pool", "add_pool", "conf_param"))
		}
	}
}

func TestAParameterThatWasSetAgainIsNotInForceTwice(t *testing.T) {
	g := NewWithT(t)
	said, _, err := cli.ParsePrintedLog(printed(t, "llog-print-pfs-client"))
	g.Expect(err).NotTo(HaveOccurred())
	text := string(printed(t, "llog-reader-pfs-client"))
	g.Expect(text).To(And(ContainSubstring("max_dirty_mb=16"), ContainSubstring("max_dirty_mb=24")))
	g.Expect(string(printed(t, "llog-print-pfs-client"))).NotTo(ContainSubstring("max_dirty_mb=16"))
	read, err := cli.ParseReadLog([]byte(strings.ReplaceAll(text, "SKIP START marker", "marker")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(said.Differ(read)).To(BeEmpty(), "the flags of the marker say it, and not its word")
}

func TestALogThatIsNotWholeIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(text string) string
		says   string
	}{
		"llog_reader says so":         {func(string) string { return string(printed(t, "llog-reader-cut")) }, "is no record: the log is not whole"},
		"it is no log":                {func(string) string { return "uninitialized llog: zero record number\n" }, "is no record"},
		"its end is missing":          {func(s string) string { return s[:strings.LastIndex(strings.TrimSuffix(s, "\n"), "\n")+1] }, "records: it has"},
		"there is nothing":            {func(string) string { return "" }, "its answer ends after line 0"},
		"an index is no number":       {func(s string) string { return strings.Replace(s, "#01 ", "#99999999999999999999 ", 1) }, "has an index that is too large"},
		"a record is of another form": {func(s string) string { return strings.Replace(s, "#01 (", "#01 [", 1) }, "is no record"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cli.ParseReadLog([]byte(c.change(string(printed(t, "llog-reader-pfs-client")))))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
		})
	}
}

func TestAnswersOfAnMGSThatCanNotBeUnderstoodAreRefused(t *testing.T) {
	g := NewWithT(t)
	_, err := cli.ParseLogs([]byte("config_log: pfs-client\nno such device\n"))
	g.Expect(err).To(MatchError(ContainSubstring("line 2 should be the name of a log")))
	for text, says := range map[string]string{
		"OBD_IOC_LLOG_PRINT failed\n": "line 1 should be a record", "- { index: 99999999999999999999, event: attach }\n": "has an index that is too large",
	} {
		_, _, err := cli.ParsePrintedLog([]byte(text))
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestTheFirstRecordThatOnlyOneOfTwoHasIsNamed(t *testing.T) {
	g, said := NewWithT(t), cli.Records{2: "attach", 3: "setup"}
	g.Expect(said.Differ(map[int]bool{2: true, 3: true})).To(BeEmpty())
	g.Expect(said.Differ(map[int]bool{2: true})).To(Equal("the file lacks record 3 (setup), which is in force"))
	g.Expect(said.Differ(map[int]bool{2: true, 3: true, 4: true})).To(Equal("the file has record 4, which is not in force"))
}

func TestTheFilesOnTheDiskOfAnMGTAreThoseThatDebugfsLists(t *testing.T) {
	g := NewWithT(t)
	const listing = "/25001/040755/0/0/.//\n/2/040755/0/0/..//\n/12/100644/0/0/mountdata/12288/\n/13/100644/0/0/pfs-client/9408/\n\n"
	files := []cli.ConfigFile{{Name: "mountdata", Inode: 12}, {Name: "pfs-client", Inode: 13}}
	g.Expect(cli.ParseConfigList([]byte(listing))).To(Equal(files))
	g.Expect(cli.CopyConfig("/dev/vdb", "/run/work", files)).To(HaveExactElements("sh", "-c", ContainSubstring(`debugfs -c -f - "$0"`), "/dev/vdb",
		"dump <12> /run/work/mountdata", "dump <13> /run/work/pfs-client"))
	for line, says := range map[string]string{
		"/14/120777/0/0/pfs-OST0000/11/":            "is no regular file", // a symbolic link, such as one to /etc/cron.d
		"/14/040755/0/0/pfs-OST0000//":              "is no regular file",
		"/14/100644/0/0/../O/9408/":                 "is no file of a directory",
		"/14/100644/0/0/../9408":                    "is no file of a directory",
		"/14/100644/0/0/pfs client/9408/":           "has a name that no log has",
		"/14/100644/0/0/-x/9408/":                   "has a name that no log has",
		"/14/100644/0/0/pfs\nwrite /etc/x y/9408/":  "is no file of a directory",
		"/14/100644/0/0/pfs-OST0000/1099511627776/": "has more bytes than a log",
		"/x/100644/0/0/pfs-OST0000/9408/":           "is no regular file",
	} {
		_, err := cli.ParseConfigList([]byte(listing + line + "\n"))
		g.Expect(err).To(MatchError(ContainSubstring(says)), line)
	}
	_, err := cli.ParseConfigList(nil)
	g.Expect(err).To(MatchError(ContainSubstring("without the file mountdata")), "debugfs ends with 0 when it can read nothing")
	_, err = cli.ParseConfigList([]byte("CONFIGS: File not found by ext2_lookup\n"))
	g.Expect(err).To(MatchError(ContainSubstring("is no file of a directory")))
	g.Expect(string(cli.WriteRequests("/run/work", []string{"pfs-OST0001"}, []string{"params", "pfs-client"}))).To(Equal(
		"cd CONFIGS\nrm pfs-OST0001\nwrite /run/work/params params\nwrite /run/work/pfs-client pfs-client\n"))
	for name, is := range map[string]bool{"pfs-client": true, "params": true, "nodemap": true, "a b": false, "../O": false, "-w": false, ".x": false, "": false, "a\nrm b": false} {
		g.Expect(cli.IsLogName(name)).To(Equal(is), "%q", name)
	}
}

func TestRecordsAreComparedAsTheMGSPrintsThem(t *testing.T) {
	g := NewWithT(t)
	lines, err := cli.PrintedLines(printed(t, "llog-print-params"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines).To(Equal(map[int]string{5: "- { index: 5, event: set_param, device: general, parameter: osc.*.max_pages_per_rpc, value: 512 }"}))
	for text, says := range map[string]string{
		"OBD_IOC_LLOG_PRINT failed\n": "line 1 should be a record", "- { index: 99999999999999999999, event: attach }\n": "has an index that is too large",
	} {
		_, err := cli.PrintedLines([]byte(text))
		g.Expect(err).To(MatchError(ContainSubstring(says)))
	}
}
