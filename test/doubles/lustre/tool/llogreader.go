package tool

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
)

// words maps events to their names in llog_reader.
var words = map[string]string{
	"attach": "attach    ", "setup": "setup     ", "add_uuid": "add_uuid  ", "new_profile": "mount_option ", "add_osc": "lov_modify_tgts add ",
	"conf_param": "param ", "add_mdc": "modify_mdc_tgts add ", "new_pool": "pool new ", "add_pool": "pool add ", "remove_pool": "pool remove ",
	"del_pool": "pool destroy ", "set_param": "set_param ",
}

// LlogReader is llog_reader, for configuration logs.
func LlogReader(c Call) int {
	if len(c.Arguments) != 1 {
		c.say("Usage: llog_reader filename\n")
		return 255
	}
	content, err := os.ReadFile(c.Arguments[0])
	if err != nil {
		c.complain("llog_reader: Could not open the file %s.: No such file or directory (2)\n", c.Arguments[0])
		return 254
	}
	head, records, wrong, err := kernel.ReadFile(content)
	if err != nil {
		c.complain("llog_reader: the double reads configuration logs only: %s\n", err)
		return 251
	}
	for _, r := range records {
		if r.Set {
			c.say("rec #%d type=%x len=%d offset %d\n", r.Index, r.Type, r.Size, r.Offset)
		}
	}
	for _, line := range wrong {
		c.say("%s\n", line)
	}
	if len(wrong) > 0 {
		c.complain("llog_reader: The llog is corrupted, %d errors found\n", len(wrong))
	}
	const size = 8192
	c.say("Header size : %d\t llh_size : 88\nTime : %s\nNumber of records: %d\tcat_idx: 0\tlast_idx: %d\nFlags: %#x\nTarget uuid : %s\n-----------------------\n",
		size, ctime(head.At), head.Count, head.Last, head.Flags, head.UUID)
	for _, r := range records {
		if r.Set {
			c.say("#%.2d (%.3d)%s\n", r.Index, r.Size, written(r))
		}
	}
	return 0
}

// ctime formats a time like ctime(3).
func ctime(t time.Time) string { return t.Format("Mon Jan _2 15:04:05 2006") }

// written formats a record without its head.
func written(r kernel.FileRecord) string {
	if r.Event == "" {
		const start = 1
		end := "END   "
		if r.Flags&start != 0 {
			end = ""
		}
		return fmt.Sprintf("%smarker %3d (flags=%#04x, v%s.0) %-15s '%s' %s-", end, r.Step, r.Flags, kernel.Version, r.Target, "", ctime(r.At))
	}
	var out strings.Builder
	if r.Event == "setup" && len(r.Buffers) == 2 && r.Buffers[1] == "" {
		fmt.Fprintf(&out, "lov_setup 0:%s  1:(struct lov_desc)\n\t\tuuid=  stripe:cnt=0 size=0 offset=0 pattern=0", r.Buffers[0])
		return out.String()
	}
	out.WriteString(words[r.Event])
	if r.NID != 0 {
		ip := net.IPv4(byte(r.NID>>24), byte(r.NID>>16), byte(r.NID>>8), byte(r.NID))
		fmt.Fprintf(&out, "nid=%s@tcp(%#x)  ", ip, r.NID)
	}
	for i, b := range r.Buffers {
		fmt.Fprintf(&out, "%d:%s  ", i, b)
	}
	return out.String()
}
