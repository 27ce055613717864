package cli

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The configuration of a Lustre is a log for clients, one for each server, and one for the parameters of set_param -P: files of the
// directory CONFIGS on the MGT. lctl llog_print lists the records in force, as the MGS has them; llog_reader reads the whole file of a log.

// ConfigDirectory is the directory of the logs on an MGT. MountData is the file there in which every target describes itself. Params is the
// log of set_param -P, which lctl llog_catlist leaves out (mgs_list_logs of 2.17.57: names with a - only).
const (
	ConfigDirectory = "CONFIGS"
	MountData       = "mountdata"
	Params          = "params"
)

// Devices lists the device of each target of the node.
func Devices() []string { return []string{"lctl", "get_param", "osd-*.*.mntdev"} }

// ManagementDevice returns the device of the MGT: its own, or that of MDT0000.
func (c Commands) ManagementDevice(output []byte) (string, error) {
	params, err := ParseParams(output)
	if err != nil {
		return "", err
	}
	device := ""
	for _, p := range params {
		switch p.Device() {
		case string(MGT):
			return p.Value, nil
		case Target{c.FSName, MDT, 0}.String():
			device = p.Value
		}
	}
	if device == "" {
		return "", fmt.Errorf("lctl get_param: neither the MGT nor MDT0000 of %s is mounted on this node", c.FSName)
	}
	return device, nil
}

// Logs queries the MGS of the node for the names of its logs.
func Logs() []string { return []string{"lctl", "--device", string(MGT), "llog_catlist"} }

// ParseLogs reads them.
func ParseLogs(output []byte) ([]string, error) {
	r := read("lctl llog_catlist", output)
	var out []string
	for r.next() {
		name, is := strings.CutPrefix(r.text, "config_log: ")
		if !is {
			return nil, r.wrong("should be the name of a log")
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return out, nil
}

// PrintLog queries the MGS of the node for the records in force of a log.
func PrintLog(name string) []string {
	return []string{"lctl", "--device", string(MGT), "llog_print", name}
}

// CopyConfig copies files of CONFIGS into a directory of the node, while the MGT is mounted (llog_reader(8)). It reads each file by its
// inode and never uses a path of the disk. The request rdump would follow a symbolic link, and leave the directory by a name such as ../x
// (debugfs 1.47). One debugfs copies all of them. Its exit code does not show whether it succeeded.
func CopyConfig(device, to string, files []ConfigFile) []string {
	argv := []string{"sh", "-c", `printf '%s\n' "$@" | debugfs -c -f - "$0"`, device}
	for _, file := range files {
		argv = append(argv, fmt.Sprintf("dump <%d> %s/%s", file.Inode, to, file.Name))
	}
	return argv
}

// ReadConfig prints one file of that directory.
func ReadConfig(device, name string) []string {
	return []string{"debugfs", "-c", "-R", "cat " + ConfigDirectory + "/" + name, device}
}

// ListConfig lists that directory.
func ListConfig(device string) []string {
	return []string{"debugfs", "-c", "-R", "ls -p " + ConfigDirectory, device}
}

// ConfigFile is a file of CONFIGS.
type ConfigFile struct {
	Name  string
	Inode uint32
}

// Bounds of what is read from a disk, in bytes. A log of a filesystem with 10,000 targets has a few MiB.
const (
	mostOfALog = 64 << 20
	mostOfLogs = 256 << 20
)

// ParseConfigList reads the files in it: /<inode>/<mode>/<user>/<group>/<name>/<size>/. It refuses what no Lustre writes there: a link, a
// directory, a name that debugfs or a path would take for something else, and more bytes than logs have. The exit code of debugfs does not
// show whether it could read the directory, but every target has its mountdata there.
func ParseConfigList(output []byte) ([]ConfigFile, error) {
	const fields, inodeAt, modeAt, nameAt, sizeAt, regular = 8, 1, 2, 5, 6, "100"
	r := read("debugfs", output)
	var files []ConfigFile
	var sum uint64
	for r.next() {
		parts := strings.Split(r.text, "/")
		if len(parts) != fields {
			return nil, r.wrong("is no file of a directory")
		}
		name := parts[nameAt]
		if name == "." || name == ".." {
			continue
		}
		inode, err := strconv.ParseUint(parts[inodeAt], 10, 32)
		size, wrong := strconv.ParseUint(parts[sizeAt], 10, 64)
		switch {
		case !strings.HasPrefix(parts[modeAt], regular) || err != nil || wrong != nil:
			return nil, r.wrong("is no regular file, and " + ConfigDirectory + " has only such files")
		case !IsLogName(name):
			return nil, r.wrong("has a name that no log has")
		case size > mostOfALog || sum+size > mostOfLogs:
			return nil, r.wrong("has more bytes than a log: at most %d MiB each and %d MiB together are read", mostOfALog>>20, mostOfLogs>>20)
		}
		sum += size
		files = append(files, ConfigFile{Name: name, Inode: uint32(inode)})
	}
	if !slices.ContainsFunc(files, func(f ConfigFile) bool { return f.Name == MountData }) {
		return nil, r.without("the file " + MountData)
	}
	slices.SortFunc(files, func(a, b ConfigFile) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// logName matches the names that a file of that directory may have.
var logName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// IsLogName is false for a name that debugfs would not read as the name of a log.
func IsLogName(name string) bool { return logName.MatchString(name) }

// WriteConfig carries out requests of debugfs on the disk of an MGT that is not mounted. WriteRequests returns the requests that replace
// files in CONFIGS by those of a directory of the node.
func WriteConfig(device, requests string) []string {
	return []string{"debugfs", "-w", "-f", requests, device}
}

// WriteRequests implements WriteConfig.
func WriteRequests(from string, remove, write []string) []byte {
	out := []byte("cd " + ConfigDirectory + "\n")
	for _, name := range remove {
		out = fmt.Appendf(out, "rm %s\n", name)
	}
	for _, name := range write {
		out = fmt.Appendf(out, "write %s/%s %s\n", from, name, name)
	}
	return out
}

// Mend makes e2fsck correct the counters of a disk that is not mounted, which are wrong after debugfs has written to it; its exit code is 1
// if it has corrected anything.
func Mend(device string) []string {
	return []string{"sh", "-c", `e2fsck -f -y "$0"; test $? -le 1`, device}
}

// ReadLog reads the file of a log. It also ends with 0 when it finds errors.
func ReadLog(file string) []string { return []string{"llog_reader", file} }

// Records holds the records of a log that are in force, by their index: the event, in the words of llog_print.
type Records map[int]string

var (
	// printed matches a record of llog_print, added the target that the record adds, and recorded, marked and counted are lines of
	// llog_reader.
	printed  = regexp.MustCompile(`^- \{ index: ([0-9]+), event: ([a-z_]+)(, .*)? \}$`)
	added    = regexp.MustCompile(`, (?:mdt|ost): ([A-Za-z0-9_-]+)_UUID,`)
	recorded = regexp.MustCompile(`^#([0-9]+) \([0-9]+\)(.*)$`)
	marked   = regexp.MustCompile(`^(?:SKIP )?(?:SKIP START |END +)?(?:EXCLUDE (?:START |END +))?marker +[0-9]+ \(flags=0x([0-9a-f]+), `)
	counted  = regexp.MustCompile(`^Number of records: ([0-9]+)\b`)
	// beside matches the other lines of llog_reader: places in the file, the fields of the log's head, and records that were removed.
	beside = regexp.MustCompile(`^(rec #|Header size|Time :|Flags:|Target uuid|-+$|Bit [0-9]+ of [0-9]+ not set|\t)`)
)

// ParsePrintedLog reads the output of lctl llog_print, and the targets that the log adds to clients or to an MDT.
func ParsePrintedLog(output []byte) (Records, []string, error) {
	r := read("lctl llog_print", output)
	out, targets := Records{}, []string{}
	for r.next() {
		found := printed.FindStringSubmatch(r.text)
		if found == nil {
			return nil, nil, r.wrong("should be a record")
		}
		index, err := strconv.Atoi(found[1])
		if err != nil {
			return nil, nil, r.wrong("has an index that is too large")
		}
		out[index] = found[2]
		if target := added.FindStringSubmatch(found[3]); target != nil && (found[2] == "add_mdc" || found[2] == "add_osc") {
			targets = append(targets, target[1])
		}
	}
	return out, targets, nil
}

// PrintedLines returns the whole records in the output of lctl llog_print, by their index.
func PrintedLines(output []byte) (map[int]string, error) {
	r := read("lctl llog_print", output)
	out := map[int]string{}
	for r.next() {
		found := printed.FindStringSubmatch(r.text)
		if found == nil {
			return nil, r.wrong("should be a record")
		}
		index, err := strconv.Atoi(found[1])
		if err != nil {
			return nil, r.wrong("has an index that is too large")
		}
		out[index] = r.text
	}
	return out, nil
}

// The flags of a marker (lustre_idl.h): the records between a start and an end belong together, and are in force unless the start says
// skip.
const (
	markerStart = 1 << iota
	markerEnd
	markerSkip
)

// ParseReadLog reads the output of llog_reader: the indices of the records that are in force. An error contains the line that llog_reader
// reports as wrong.
func ParseReadLog(output []byte) (map[int]bool, error) {
	r := read("llog_reader", output)
	out := map[int]bool{}
	said, count, inForce := -1, 0, false
	for r.next() {
		if found := counted.FindStringSubmatch(r.text); found != nil {
			said, _ = strconv.Atoi(found[1]) // an index with too many digits is none of the counted records
			continue
		}
		found := recorded.FindStringSubmatch(r.text)
		switch {
		case found == nil && beside.MatchString(r.text):
			continue
		case found == nil:
			return nil, r.wrong("is no record: the log is not whole, or of another form")
		}
		count++
		index, err := strconv.Atoi(found[1])
		if err != nil {
			return nil, r.wrong("has an index that is too large")
		}
		if marker := marked.FindStringSubmatch(found[2]); marker != nil {
			flags, err := strconv.ParseUint(marker[1], 16, 32)
			switch {
			case err != nil:
				return nil, r.wrong("has flags that are too large")
			case flags&markerStart != 0:
				inForce = flags&markerSkip == 0
			case flags&markerEnd != 0:
				inForce = false
			}
			continue
		}
		if inForce && found[2] != "padding" {
			out[index] = true
		}
	}
	if said != count {
		return nil, r.without(fmt.Sprintf("its %d records: it has %d", said, count))
	}
	return out, nil
}

// Differ returns the record that only one of the two has, empty when llog_reader and the MGS have the same records.
func (said Records) Differ(found map[int]bool) string {
	for _, index := range slices.Sorted(maps.Keys(said)) {
		if !found[index] {
			return fmt.Sprintf("the file lacks record %d (%s), which is in force", index, said[index])
		}
	}
	for _, index := range slices.Sorted(maps.Keys(found)) {
		if _, is := said[index]; !is {
			return fmt.Sprintf("the file has record %d, which is not in force", index)
		}
	}
	return ""
}
