package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// tables reads the tables of mfscli 3.0.117. A line consists of the title of its table and its columns.
type tables struct{ state backend.State }

// table describes a table: its number of columns, and how to read a line.
type table struct {
	columns int
	read    func(t *tables, row row) error
}

// tableOf maps titles to tables. An answer with any other line is refused. mfscli always exits with code 0, and reports in its output that
// no master answered, or that it crashed.
var tableOf = map[string]table{
	"master info:":                {2, (*tables).masterInfo},
	"chunk servers:":              {14, (*tables).chunkserver},
	"Disconnected chunk servers:": {4, (*tables).lostChunkserver},
	"metadata backup loggers:":    {2, (*tables).metalogger},
	"disks:":                      {14, (*tables).disk},
	"storage classes:":            {22, (*tables).storageClass},
	masterTitle:                   {masterColumns, (*tables).master},
}

// countsTitle is the title of the only table with several forms of lines.
const countsTitle = "all chunks matrix:"

// parseTables reads the answer of 3.x about everything but mounts.
func parseTables(output []byte) (backend.State, error) {
	t := tables{state: backend.State{StorageClasses: map[string]string{}}}
	if report := breakdown(string(output)); report != "" {
		return backend.State{}, fmt.Errorf("mfscli broke down: %s", report)
	}
	for line := range bytes.Lines(output) {
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			continue
		}
		if err := t.line(text); err != nil {
			return backend.State{}, err
		}
	}
	if t.state.Version == "" {
		return backend.State{}, errors.New("it did not say the master's version, as when no master answers there")
	}
	return t.state, nil
}

// breakdown returns the last line of the first traceback in the output, empty if there is none. One chunkserver that does not answer can
// cause a traceback, and a list without any disk.
func breakdown(output string) string {
	_, traceback, found := strings.Cut(output, "\nTraceback (most recent call last):\n")
	if !found {
		return ""
	}
	traceback, _, _ = strings.Cut(traceback, "\n-----")
	traceback = strings.TrimSpace(traceback)
	return traceback[strings.LastIndex(traceback, "\n")+1:]
}

func (t *tables) line(text string) error {
	columns := strings.Split(text, separator)
	title, row := columns[0], row(columns[1:])
	if title == countsTitle {
		return t.count(text, row)
	}
	known, ok := tableOf[title]
	if !ok {
		return fmt.Errorf("it says %s", quote(text))
	}
	if len(row) != known.columns {
		return fmt.Errorf("a line of %q has %d columns and should have %d: %s", title, len(row), known.columns, quote(text))
	}
	if err := known.read(t, row); err != nil {
		return fmt.Errorf("%w, in the line %s", err, quote(text))
	}
	return nil
}

// maintained is the value for a chunkserver whose maintenance mode was switched on. If it lasts only until the chunkserver connects again,
// after an orderly stop, the value is "maintenance_temp_on" or "maintenance_tmp_on".
const maintained = "maintenance_on"

// row holds the columns of a line.
type row []string

// numbers parses columns as counts or bytes, either all of them or none.
func (r row) numbers(columns ...int) ([]int64, error) {
	out := make([]int64, len(columns))
	for i, column := range columns {
		n, err := strconv.ParseUint(r[column], 10, 63)
		if err != nil {
			return nil, fmt.Errorf("column %d is no number", column+1)
		}
		out[i] = int64(n)
	}
	return out, nil
}

func port(text string) (int32, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no port", text)
	}
	return int32(n), nil
}

func (t *tables) masterInfo(r row) error {
	if r[0] == "master version" {
		t.state.Version = r[1]
	}
	return nil
}

// count parses a line such as "chunkclass missing:", "0", or a line of the matrix that those are sums of: "goal/copies/chunks:", "2", "1",
// "19".
func (t *tables) count(text string, r row) error {
	if len(r) == 4 && r[0] == "goal/copies/chunks:" {
		n, err := r.numbers(1, 2, 3)
		if err != nil {
			return fmt.Errorf("%w, in the line %s", err, quote(text))
		}
		count(&t.state.Data, n[0], n[1], n[2])
		return nil
	}
	count := map[string]*int64{
		"chunkclass missing:": &t.state.Data.Missing, "chunkclass endangered:": &t.state.Data.Endangered,
		"chunkclass undergoal:": &t.state.Data.Undergoal, "chunkclass stable:": &t.state.Data.Stable,
	}
	if len(r) != 2 || count[r[0]] == nil {
		return nil
	}
	n, err := r.numbers(1)
	if err != nil {
		return fmt.Errorf("%w, in the line %s", err, quote(text))
	}
	*count[r[0]] = n[0]
	t.state.Data.Known = true
	return nil
}

// chunkserver parses: address, port, id, labels, version, load, maintenance, chunks, used, total, state of removal, and chunks, used and
// total of the disks that are marked for removal.
func (t *tables) chunkserver(r row) error {
	p, err := port(r[1])
	if err != nil {
		return err
	}
	bytes, err := r.numbers(8, 9, 12, 13)
	if err != nil {
		return err
	}
	server := backend.Server{
		Role: v1alpha1.RoleStorage, IP: r[0], Port: p, Online: true, Version: r[4],
		UsedBytes: bytes[0] + bytes[2], CapacityBytes: bytes[1] + bytes[3], Maintained: r[6] == maintained,
	}
	if r[3] != "-" {
		server.Labels = strings.Split(r[3], ",")
	}
	t.state.Servers = append(t.state.Servers, server)
	return nil
}

// lostChunkserver parses: address, port, id, maintenance.
func (t *tables) lostChunkserver(r row) error {
	p, err := port(r[1])
	if err != nil {
		return err
	}
	t.state.Servers = append(t.state.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: r[0], Port: p, Maintained: r[3] == maintained})
	return nil
}

// metalogger parses: address, version.
func (t *tables) metalogger(r row) error {
	t.state.Servers = append(t.state.Servers, backend.Server{Role: v1alpha1.RoleMetadataBackup, IP: r[0], Online: true, Version: r[1]})
	return nil
}

// disk parses: "address:port:path", chunks, time of the last error, status, eight values of speed; then used and total, or "progress:" and
// the percentage of a scan.
func (t *tables) disk(r row) error {
	place := strings.SplitN(r[0], ":", 3)
	if len(place) != 3 {
		return fmt.Errorf("%q is not address:port:path", r[0])
	}
	p, err := port(place[1])
	if err != nil {
		return err
	}
	chunks, err := r.numbers(1)
	if err != nil {
		return err
	}
	status := strings.Split(r[3], ", ")
	target := backend.Target{IP: place[0], Port: p, Path: place[2], Online: online(status), Status: r[3], Chunks: chunks[0]}
	target.Removing, target.Removable = removal(status)
	if r[12] != "progress:" {
		bytes, err := r.numbers(12, 13)
		if err != nil {
			return err
		}
		target.UsedBytes, target.CapacityBytes = bytes[0], bytes[1]
	}
	t.state.Targets = append(t.state.Targets, target)
	return nil
}

// storageClass parses: id, name, for administrators only, mode, files, directories, three counts of chunks, three of archived ones; then
// for creation, keeping and archiving each: can it be fulfilled, number of copies, labels of the copies; and the delay of archiving.
func (t *tables) storageClass(r row) error {
	copies := func(text string) string { return expression(strings.Split(text, " , ")) }
	made := class{mode: r[3], keep: copies(r[17]), others: map[string]string{"create": copies(r[14])}}
	// Every class has copies for archiving from the moment it was created. Without a delay it never archives.
	if r[21] != "-" {
		made.others["arch"] = copies(r[20])
	}
	t.state.StorageClasses[r[1]] = made.String()
	if r[4] != "0" {
		t.state.ClassesInUse = append(t.state.ClassesInUse, r[1])
	}
	return nil
}

// master parses: address, version, state, local time, version of the metadata, and seven more.
func (t *tables) master(r row) error {
	t.state.MetadataVersion = grouped(r[ofMetadata])
	return nil
}

// parseMounts parses the answer of 3.x about mounts. It skips lines of another form, which can come only from the path of a client's mount.
func parseMounts(output []byte) []backend.Session {
	sessions := []backend.Session{}
	for line := range bytes.Lines(output) {
		columns := strings.Split(strings.TrimRight(string(line), "\r\n"), separator)
		title, r := columns[0], row(columns[1:])
		switch {
		// Session, address, path, open files, sockets, version, directory, ro or rw, restricted to its address, ignores
		// the group, administrator, and ten more.
		case title == "active mounts, parameters:" && len(r) == 21:
			sessions = append(sessions, backend.Session{IP: r[1], Path: r[2], Connected: true, Admin: r[10] == "yes", Version: r[5]})
		// Session, address, path, open files, seconds until it is forgotten.
		case title == "inactive mounts, parameters:" && len(r) == 5:
			sessions = append(sessions, backend.Session{IP: r[1], Path: r[2]})
		}
	}
	return sessions
}
