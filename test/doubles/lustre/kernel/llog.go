package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
)

// Format of a configuration log's file on an MGT: struct llog_log_hdr, followed by records of struct lustre_cfg (lustre_idl.h and
// lustre_cfg.h of 2.17.57, on a little-endian machine).

const (
	typePadding = 0x10600000
	typeConfig  = 0x10620000
	typeHead    = 0x10645539
	// configVersion is the beginning of every struct lustre_cfg.
	configVersion = 0x1cf60001
	// isPlain is the flag of a log that is no catalog.
	isPlain = 0x4
	// bitmapAt is the offset of the bitmap of records that are in the file and not canceled.
	bitmapAt     = 88
	recordHead   = 16
	recordTail   = 8
	configHead   = 32
	description  = 128
	markerLength = 160
	nameLength   = 64
)

// Flags of a marker.
const (
	markerStart = 1
	markerEnd   = 2
)

const (
	commandAddUUID = 0xcf005
	commandMarker  = 0xcf010
)

// commands holds the numbers of the events, and the names of their fields after the device.
var commands = map[string]struct {
	number uint32
	fields []string
}{
	"attach":      {0xcf001, []string{"type", "UUID"}},
	"setup":       {0xcf003, []string{"UUID", "node"}},
	"add_uuid":    {commandAddUUID, []string{"node"}},
	"new_profile": {0xcf007, []string{"name", "lov", "lmv"}},
	"add_osc":     {0xcf00d, []string{"ost", "index", "gen"}},
	"conf_param":  {0xcf00f, []string{"parameter"}},
	"add_mdc":     {0xcf014, []string{"mdt", "index", "gen", "UUID"}},
	"new_pool":    {0xce020, []string{"fsname", "pool"}},
	"add_pool":    {0xce021, []string{"fsname", "pool", "ost"}},
	"remove_pool": {0xce022, []string{"fsname", "pool", "ost"}},
	"del_pool":    {0xce023, []string{"fsname", "pool"}},
	"set_param":   {0xce032, []string{"parameter"}},
}

func padded(n int) int { return (n + 7) / 8 * 8 }

// config encodes a struct lustre_cfg.
func config(command uint32, nid uint64, buffers ...[]byte) []byte {
	head := make([]byte, padded(configHead+4*len(buffers)))
	put := binary.LittleEndian.PutUint32
	put(head, configVersion)
	put(head[4:], command)
	binary.LittleEndian.PutUint64(head[16:], nid)
	put(head[28:], uint32(len(buffers)))
	for i, b := range buffers {
		put(head[configHead+4*i:], uint32(len(b)))
	}
	parts := [][]byte{head}
	for _, b := range buffers {
		parts = append(parts, b, make([]byte, padded(len(b))-len(b)))
	}
	return slices.Concat(parts...)
}

func cString(text string) []byte {
	if text == "" {
		return nil
	}
	return append([]byte(text), 0)
}

// content returns a record's bytes between its head and its tail. A start marker is followed by the records that belong to it.
func (r Record) content(step uint32, start bool) []byte {
	if r.Event == "" {
		marker := make([]byte, markerLength)
		put := binary.LittleEndian.PutUint32
		put(marker, step)
		put(marker[4:], map[bool]uint32{true: markerStart, false: markerEnd}[start])
		put(marker[8:], numericVersion())
		binary.LittleEndian.PutUint64(marker[16:], uint64(r.At.Unix()))
		copy(marker[32:32+nameLength-1], "double")
		return config(commandMarker, 0, nil, marker)
	}
	command := commands[r.Event]
	if r.Event == "add_uuid" {
		nid, _, _ := strings.Cut(strings.TrimSuffix(r.Value("nid"), ")"), "(")
		number, _ := strconv.ParseUint(strings.TrimPrefix(number(nid), "0x"), 16, 64) // it is 0 for a number that the double does not have
		return config(command.number, number, nil, cString(r.Value("node")))
	}
	buffers := [][]byte{cString(r.Value("device"))}
	for _, field := range command.fields {
		if !r.has(field) {
			continue
		}
		value := cString(r.Value(field))
		switch {
		case r.Event == "set_param":
			value = cString(r.Value(field) + "=" + r.Value("value"))
		case value == nil: // struct lov_desc
			value = make([]byte, description)
		}
		buffers = append(buffers, value)
	}
	return config(command.number, 0, buffers...)
}

func (r Record) has(field string) bool {
	return slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Name == field })
}

// numericVersion returns the version in the form of OBD_OCD_VERSION.
func numericVersion() uint32 {
	var out uint32
	for i, part := range strings.Split(Version+".0", ".") {
		n, _ := strconv.ParseUint(part, 10, 8) // it is a version of Lustre
		out |= uint32(n) << (24 - 8*i)
	}
	return out
}

// File encodes a log as a file.
func (l *Log) File() []byte {
	out := make([]byte, chunk)
	put := binary.LittleEndian.PutUint32
	set := func(index int) { out[bitmapAt+index/8] |= 1 << (index % 8) }
	put(out, chunk)
	put(out[8:], typeHead)
	if len(l.Records) > 0 {
		binary.LittleEndian.PutUint64(out[16:], uint64(l.Records[0].At.Unix()))
	}
	put(out[28:], bitmapAt)
	put(out[32:], bitmapAt)
	put(out[36:], isPlain)
	copy(out[44:], "config_uuid")
	put(out[chunk-recordTail:], chunk)
	put(out[chunk-4:], uint32(len(l.Records)))
	set(0)
	count, step, start := uint32(1), uint32(0), false
	for _, r := range l.Records {
		if r.Event == "" && !r.Padding {
			if start = !start; start {
				step++
			}
		}
		kind, content := uint32(typeConfig), r.content(step, start)
		if r.Padding {
			kind, content = typePadding, make([]byte, chunk-len(out)%chunk-recordHead-recordTail)
		} else if !r.Cancelled {
			set(r.Index)
			count++
		}
		size := recordHead + len(content) + recordTail
		head, tail := make([]byte, recordHead), make([]byte, recordTail)
		put(head, uint32(size))
		put(head[4:], uint32(r.Index))
		put(head[8:], kind)
		put(tail, uint32(size))
		put(tail[4:], uint32(r.Index))
		out = slices.Concat(out, head, content, tail)
	}
	put(out[24:], count)
	return out
}

// FileRecord is a record of a log's file.
type FileRecord struct {
	Index, Size, Offset int
	Type                uint32
	// Set is true for a record that was not canceled. Event is empty for a marker, which has Flags, Step, At and Target instead.
	Set         bool
	Event       string
	NID         uint64
	Buffers     []string
	Flags, Step uint32
	At          time.Time
	Target      string
}

// FileHead holds the fields in the head of a log's file.
type FileHead struct {
	At          time.Time
	Count, Last int
	Flags       uint32
	UUID        string
}

// ErrNoLog means that a file is not a log.
var ErrNoLog = errors.New("it is no log")

// ReadFile reads the file of a log. Faults are described in the words of llog_reader.
func ReadFile(content []byte) (head FileHead, records []FileRecord, wrong []string, err error) {
	number := func(b []byte) int { return int(binary.LittleEndian.Uint32(b)) }
	if len(content) < chunk || binary.LittleEndian.Uint32(content[8:]) != typeHead {
		return head, nil, nil, ErrNoLog
	}
	isSet := func(index int) bool { return index < 8*(chunk-96) && content[bitmapAt+index/8]&(1<<(index%8)) != 0 }
	head = FileHead{
		At:    time.Unix(int64(binary.LittleEndian.Uint64(content[16:])), 0),
		Count: number(content[24:]) - 1, Last: number(content[chunk-4:]), Flags: binary.LittleEndian.Uint32(content[36:]),
		UUID: text(content[44:84]),
	}
	complain := func(format string, arguments ...any) { wrong = append(wrong, fmt.Sprintf(format, arguments...)) }
	last, found := 0, 0
	for at := chunk; at < len(content); {
		if at+recordHead > len(content) {
			complain("error: rec header is trimmed by EOF, last idx #%d offset %d", last, at)
			break
		}
		r := FileRecord{
			Size: number(content[at:]), Index: number(content[at+4:]), Type: binary.LittleEndian.Uint32(content[at+8:]), Offset: at,
		}
		if r.Size < recordHead+recordTail || r.Size+at%chunk > chunk {
			complain("error: rec #%d type=%x has wrong len=%d @%d", r.Index, r.Type, r.Size, at)
			at += chunk - at%chunk
			continue
		}
		if at += r.Size; at > len(content) {
			complain("error: rec #%d is trimmed by EOF, offset %d", r.Index, r.Offset)
			break
		}
		if n := number(content[at-4:]); n != r.Index {
			complain("error: rec #%d len=%d has tail #%d len=%d", r.Index, r.Size, n, number(content[at-8:]))
		}
		for last++; last < r.Index; last++ {
			complain("error: -> rec #%d is lost, not set in bitmap", last)
		}
		if r.Set = isSet(r.Index); r.Set {
			found++
		}
		if r.Type == typeConfig {
			r.read(content[r.Offset+recordHead : at-recordTail])
		}
		records = append(records, r)
	}
	if found != head.Count {
		complain("error: header reports %d records but %d were found", head.Count, found)
	}
	return head, records, wrong, nil
}

// read decodes a struct lustre_cfg.
func (r *FileRecord) read(content []byte) {
	command := binary.LittleEndian.Uint32(content[4:])
	for event, c := range commands {
		if c.number == command {
			r.Event = event
		}
	}
	r.NID = binary.LittleEndian.Uint64(content[16:])
	count := int(binary.LittleEndian.Uint32(content[28:]))
	at := padded(configHead + 4*count)
	for i := range count {
		size := int(binary.LittleEndian.Uint32(content[configHead+4*i:]))
		if at+size > len(content) {
			return
		}
		buffer := content[at : at+size]
		at += padded(size)
		if command == commandMarker && i == 1 {
			r.Step, r.Flags = binary.LittleEndian.Uint32(buffer), binary.LittleEndian.Uint32(buffer[4:])
			r.At = time.Unix(int64(binary.LittleEndian.Uint64(buffer[16:])), 0)
			r.Target = text(buffer[32 : 32+nameLength])
			continue
		}
		r.Buffers = append(r.Buffers, text(buffer))
	}
}

func text(field []byte) string {
	before, _, _ := bytes.Cut(field, []byte{0})
	return string(before)
}

// managementOf returns the state of a newly formatted MGT from the logs that were put on its disk.
func managementOf(device string) (*management, error) {
	m := &management{Filesystems: map[string]*Filesystem{}, Permanent: map[string]string{}}
	names, err := mountdata.Files(device)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		content, err := mountdata.ReadFile(device, name)
		if err != nil {
			return nil, err
		}
		_, records, wrong, err := ReadFile(content)
		if err != nil || len(wrong) > 0 {
			continue // it is not a log, or has no follower
		}
		log := logOf(records)
		if name == permanentLog {
			for _, r := range log.Records {
				if r.Event != "" && !r.Cancelled {
					m.Permanent[r.Value("parameter")] = r.Value("value")
				}
			}
			continue
		}
		fsName := name[:max(strings.LastIndex(name, "-"), 0)]
		fs := m.Filesystems[fsName]
		if fs == nil {
			fs = &Filesystem{NIDs: map[string][]string{}, Logs: map[string]*Log{}, Parameters: map[string]string{}}
			m.Filesystems[fsName] = fs
		}
		fs.Logs[name] = log
		if strings.HasSuffix(name, "-client") {
			fs.Names, fs.NIDs = log.targets(), log.nids()
		}
	}
	return m, nil
}

// targets returns the targets in the log of clients, in the order of their registration. Removed ones are left out.
func (l *Log) targets() []string {
	var out []string
	for _, r := range l.Records {
		if !r.Cancelled && (r.Event == "add_mdc" || r.Event == "add_osc") {
			out = append(out, strings.TrimSuffix(r.Value("mdt")+r.Value("ost"), "_UUID"))
		}
	}
	return out
}

// nids returns the NIDs by which clients reach the targets in the log: those of its node precede each target.
func (l *Log) nids() map[string][]string {
	out := map[string][]string{}
	var node []string
	for _, r := range l.Records {
		switch {
		case r.Cancelled:
		case r.Event == "add_uuid":
			nid, _, _ := strings.Cut(r.Value("nid"), "(")
			node = append(node, nid)
		case r.Event == "setup" && r.Value("node") != "":
			out[strings.TrimSuffix(r.Value("UUID"), "_UUID")], node = node, nil
		}
	}
	return out
}

// logOf returns the log with these records of its file.
func logOf(records []FileRecord) *Log {
	l := &Log{}
	for _, from := range records {
		r := Record{Index: from.Index, At: from.At, Event: from.Event, Padding: from.Type == typePadding}
		r.Cancelled = !from.Set && !r.Padding
		buffers := from.Buffers
		if from.Event == "add_uuid" && len(buffers) == 2 {
			r.Fields = append(r.Fields, Field{"nid", buffers[1] + fmt.Sprintf("(%#x)", from.NID)})
		}
		if len(buffers) > 0 && buffers[0] != "" {
			r.Fields = append(r.Fields, Field{"device", buffers[0]})
		}
		for i, name := range commands[from.Event].fields {
			if i+1 >= len(buffers) {
				break
			}
			value := buffers[i+1]
			if from.Event == "set_param" {
				parameter, set, _ := strings.Cut(value, "=")
				r.Fields = append(r.Fields, Field{"parameter", parameter}, Field{"value", set})
				continue
			}
			r.Fields = append(r.Fields, Field{name, value})
		}
		l.Records = append(l.Records, r)
		l.Bytes = from.Offset + from.Size - chunk
	}
	return l
}
