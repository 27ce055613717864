package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// AskCheck queries the master of a version at "host:port" for the result of its last scan of all files and chunks, and for the current
// state of the chunks and disks. The master scans all the time, and chunkservers read all chunks one after the other (HDD_TEST_FREQ), so
// nothing has to be started, and nothing is changed.
func AskCheck(version, address string) [][]string {
	host, port, _ := strings.Cut(address, ":")
	ask := func(form []string, questions ...string) []string {
		return slices.Concat([]string{"mfscli", "-n"}, form, []string{"-H", host, "-P", port}, questions)
	}
	if strings.HasPrefix(version, "3.") {
		table := []string{"-s", separator}
		return [][]string{ask(table, "-SIG", "-SIC", "-SCS", "-SHD"), ask(table, "-SIL")}
	}
	return [][]string{ask([]string{"-j"}, "-SIL", "-SIG", "-SIC", "-SCS", "-SHD")}
}

// round is the last scan of all files by a master (mfscli of 4.57.5; CLTOMA_FSTEST_INFO of 3.0.117).
type round struct {
	Start            int64 `json:"start_time"`
	End              int64 `json:"end_time"`
	Files            int64 `json:"files"`
	UndergoalFiles   int64 `json:"undergoal_files"`
	MissingFiles     int64 `json:"missing_files"`
	MissingTrash     int64 `json:"missing_trash_files"`
	MissingSustained int64 `json:"missing_sustained_files"`
	Chunks           int64 `json:"chunks"`
}

// ReadCheck reads the answers. Files and chunks without a usable copy are damaged. Chunks with fewer copies than they should have are
// repaired by the master itself, so only the message counts them.
func ReadCheck(version string, outputs [][]byte) (spec.CheckAnswer, error) {
	if want := len(AskCheck(version, "")); len(outputs) != want {
		return spec.CheckAnswer{}, fmt.Errorf("%d answers of mfscli to %d commands", len(outputs), want)
	}
	var state backend.State
	var last *round
	var failing []failure
	var err error
	if strings.HasPrefix(version, "3.") {
		if state, err = parseTables(outputs[0]); err == nil {
			failing = failuresInTable(outputs[0])
			last, err = roundInTable(outputs[1])
		}
	} else if state, err = parseJSON(outputs[0]); err == nil {
		if failing, err = failuresInJSON(outputs[0]); err == nil {
			last, err = roundInJSON(outputs[0])
		}
	}
	if err != nil {
		return spec.CheckAnswer{}, fmt.Errorf("mfscli: %w", err)
	}
	answer, err := judge(state, last, failing)
	if err == nil && !readsIdleCopies(version) {
		answer.Message += ". Chunkservers before 4.59.2 read copies that no program reads only with HDD_MIN_TEST_INTERVAL: \"0\" (spec.moosefs.config.storage)"
	}
	return answer, err
}

// readsIdleCopies reports whether the chunkservers of a version read all their chunks by themselves, as mfschunkserver.cfg(5) claims for
// all versions. Before 4.59.2, chunkservers treated each copy as just read (MooseFS's NEWS of 4.59.2, issue 746).
func readsIdleCopies(version string) bool {
	return backend.CompareVersions(version, "4.59.2") >= 0
}

// judge lists the damage. If the master's knowledge is incomplete, the damage that it has found still counts, and the rest does not count
// as clean.
func judge(state backend.State, last *round, failing []failure) (spec.CheckAnswer, error) {
	answer := spec.CheckAnswer{Done: true}
	find := func(what string, count int64) {
		if count > 0 {
			answer.Findings = append(answer.Findings, spec.CheckFinding{What: what, Count: count})
		}
	}
	if last != nil {
		find("files with missing chunks", last.MissingFiles)
		find("files in the trash with missing chunks", last.MissingTrash)
		find("removed files that are still open, with missing chunks", last.MissingSustained)
	}
	if state.Data.Known {
		find("chunks without a copy, now", state.Data.Missing)
	}
	ofData := len(answer.Findings) > 0
	disks := findFailing(failing, find)
	said, all := lookedAt(state, last)
	if !all && len(answer.Findings) == 0 {
		return spec.CheckAnswer{}, errors.New(said + "; ask again later")
	}
	answer.Message = said
	if ofData {
		answer.Message += ". Bring back the disks and servers that are away; mfscli -SMF names the files, and mfsfilerepair repairs what can't come back"
	}
	if len(disks) > 0 {
		answer.Message += ". Disks with errors: " + backend.List(disks) + ". Look at the kernel's log of their nodes; a disk that goes on failing is to be replaced"
	}
	return answer, nil
}

// lookedAt describes what the master has scanned; all is false while that is incomplete.
func lookedAt(state backend.State, last *round) (said string, all bool) {
	switch {
	case last == nil:
		return "the master has not gone through all files since it was started; it does so by itself", false
	case !state.Data.Known:
		return "the master is counting its chunks, as while chunkservers come and go", false
	}
	away := 0
	for _, t := range state.Targets {
		if !t.Online {
			away++
		}
	}
	return fmt.Sprintf("the master's last round through %d files with %d chunks ended at %s; %d files had chunks with too few copies then, and %d "+
		"chunks have now: it repairs these by itself; %d of %d disks are not in use now", last.Files, last.Chunks, time.Unix(last.End, 0).UTC().Format(time.RFC3339), last.UndergoalFiles,
		state.Data.Endangered+state.Data.Undergoal, away, len(state.Targets)), true
}

// findFailing makes a finding for each chunkserver that could not read or write its disks, those with the most errors first, and returns
// the disks.
func findFailing(failing []failure, find func(what string, count int64)) (disks []string) {
	others := int64(0)
	slices.SortStableFunc(failing, func(a, b failure) int { return cmp.Compare(b.count, a.count) })
	for i := range failing {
		if i < mostFailing {
			find(failing[i].what(), failing[i].count)
		} else {
			others++
		}
		disks = append(disks, failing[i].disks...)
	}
	find("other chunkservers with errors of disks", others)
	return disks
}

// mostFailing is how many chunkservers have findings of their own: a status has room for 32, and findings about data must not be crowded
// out.
const mostFailing = 16

// failure is a chunkserver that could not read or write its disks. Broken copies are replaced from others, so a failure shows nothing about
// the data.
type failure struct {
	ip   string
	port int32
	// count is the number of errors since the chunkserver connected to the master. mfscli of 3.x reports errors by disk only, so for 3.x it is
	// the number of disks with errors since the chunkserver started.
	count  int64
	ofDisk bool
	// disks lists its disks with an error, with the time of the last one.
	disks []string
}

func (f *failure) what() string {
	if f.ofDisk {
		return fmt.Sprintf("disks with errors, of the chunkserver at %s since its start", backend.Address(f.ip, f.port))
	}
	return fmt.Sprintf("errors of disks, of the chunkserver at %s since it has connected", backend.Address(f.ip, f.port))
}

// diskWithError names a disk and its last error.
func diskWithError(ip string, port int32, path string, at int64) string {
	return fmt.Sprintf("%s of %s (last at %s)", path, backend.Address(ip, port), time.Unix(at, 0).UTC().Format(time.RFC3339))
}

// failuresInJSON reads the errors that 4.x reports, by chunkserver.
func failuresInJSON(output []byte) ([]failure, error) {
	var a struct {
		Dataset struct {
			Chunkservers []struct {
				IP     string `json:"ip"`
				Port   int32  `json:"port"`
				Errors int64  `json:"errors"`
			} `json:"chunkservers"`
			Disks []struct {
				IP    string `json:"ip"`
				Port  int32  `json:"port"`
				Path  string `json:"path"`
				Error int64  `json:"last_error_time"`
			} `json:"disks"`
		} `json:"dataset"`
	}
	if err := json.Unmarshal(output, &a); err != nil {
		return nil, fmt.Errorf("can't read the errors of disks in its JSON: %w", err)
	}
	disks := map[string][]string{} // by the address of their chunkserver
	for _, d := range a.Dataset.Disks {
		if d.Error > 0 {
			at := backend.Address(d.IP, d.Port)
			disks[at] = append(disks[at], diskWithError(d.IP, d.Port, d.Path, d.Error))
		}
	}
	var out []failure
	for _, c := range a.Dataset.Chunkservers {
		f := failure{ip: c.IP, port: c.Port, count: c.Errors, disks: disks[backend.Address(c.IP, c.Port)]}
		if f.count == 0 && len(f.disks) > 0 { // it has reconnected since the last error
			f.count, f.ofDisk = int64(len(f.disks)), true
		}
		if f.count > 0 {
			out = append(out, f)
		}
	}
	return out, nil
}

// failuresInTable reads the errors that 3.x reports, by chunkserver. The table was parsed before, so each line of disks has its columns.
func failuresInTable(output []byte) []failure {
	var out []failure
	for line := range strings.Lines(string(output)) {
		row := strings.Split(strings.TrimRight(line, "\r\n"), separator)
		if row[0] != "disks:" || len(row) < 4 {
			continue
		}
		place := strings.SplitN(row[1], ":", 3)
		at, err := strconv.ParseInt(row[3], 10, 64)
		if err != nil || at <= 0 || len(place) != 3 {
			continue // "no errors"
		}
		p, err := port(place[1])
		if err != nil {
			continue
		}
		i := slices.IndexFunc(out, func(f failure) bool { return f.ip == place[0] && f.port == p })
		if i < 0 {
			i, out = len(out), append(out, failure{ip: place[0], port: p, ofDisk: true})
		}
		out[i].count++
		out[i].disks = append(out[i].disks, diskWithError(place[0], p, place[2], at))
	}
	return out
}

// roundInJSON returns the last scan, nil if there was none.
func roundInJSON(output []byte) (*round, error) {
	var a struct {
		Dataset struct {
			Info struct {
				Round json.RawMessage `json:"fs_loop"`
			} `json:"info"`
		} `json:"dataset"`
	}
	if err := json.Unmarshal(output, &a); err != nil {
		return nil, fmt.Errorf("can't read its JSON: %w", err)
	}
	raw := a.Dataset.Info.Round
	if len(raw) == 0 {
		return nil, errors.New("its JSON has no dataset.info.fs_loop")
	}
	var out *round
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("can't read dataset.info.fs_loop of its JSON: %w", err)
	}
	return out, nil
}

// roundInTable reads the rows of the check loop of 3.0.117, and returns nil if there was none.
func roundInTable(output []byte) (*round, error) {
	var out round
	rows := map[string]*int64{
		"start:": &out.Start, "end:": &out.End, "files:": &out.Files,
		"under-goal files:": &out.UndergoalFiles, "missing files:": &out.MissingFiles,
		"missing trash files:": &out.MissingTrash, "missing sustained files:": &out.MissingSustained, "chunks:": &out.Chunks,
	}
	seen := 0
	for line := range strings.Lines(string(output)) {
		row := strings.Split(strings.TrimRight(line, "\r\n"), separator)
		if row[0] == "check loop: no data" {
			return nil, nil //nolint:nilnil // there was no round, which is no error
		}
		if row[0] != "check loop" || len(row) != 3 || rows[row[1]] == nil {
			continue
		}
		number, err := strconv.ParseInt(row[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of its check loop", row[2])
		}
		*rows[row[1]] = number
		seen++
	}
	if seen != len(rows) {
		return nil, fmt.Errorf("it prints %d of %d rows of its check loop", seen, len(rows))
	}
	return &out, nil
}
