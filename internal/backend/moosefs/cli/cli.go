// Package cli queries a master of MooseFS for its state by mfscli(1) of 3.0.117, 4.57.5 and 4.59.2, and parses the output.
package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// prober queries a master by mfscli(1). 4.x answers in JSON; 3.x prints only tables, with a separator that the caller chooses.
type prober struct{ version, host, port string }

// New returns the queries for the state of the master of a version at "host:port" (IPv4 only, like MooseFS itself).
func New(version, address string) backend.Questions {
	host, port, _ := strings.Cut(address, ":")
	return prober{version: version, host: host, port: port}
}

// The requested parts of the answer: general information, counts of chunks, chunkservers, metaloggers, disks, storage classes and the
// version of the metadata; and the mounts.
var (
	askForServers = []string{"-SIG", "-SIC", "-SCS", "-SMB", "-SHD", "-SSC", "-SIM"}
	askForMounts  = []string{"-SMS"}
)

// separator is the column separator for 3.x. Unlike the blank and the bar, it occurs in no address, number or name of a class.
const separator = "\t"

// Commands returns one command for 4.x and two for 3.x. In 3.x, a client chooses the path of its mount, and the path can imitate a line of
// another table. A separate query for the mounts limits this to the mounts. Without -n, mfscli would query the DNS for every address and
// print names instead.
func (p prober) Commands() [][]string {
	if strings.HasPrefix(p.version, "3.") {
		command := []string{"mfscli", "-n", "-s", separator, "-H", p.host, "-P", p.port}
		return [][]string{slices.Concat(command, askForServers), slices.Concat(command, askForMounts)}
	}
	return [][]string{slices.Concat([]string{"mfscli", "-n", "-j", "-H", p.host, "-P", p.port}, askForServers, askForMounts)}
}

// Maintain switches the maintenance mode of a chunkserver on or off, at the master at "host:port". Its exit code does not show the result;
// the next answer of the probe does.
func Maintain(address, ip string, port int32, on bool) []string {
	host, at, _ := strings.Cut(address, ":")
	mode := "0"
	if on {
		mode = "1"
	}
	return []string{"mfscli", "-n", "-H", host, "-P", at, fmt.Sprintf("-CM%s/%s/%d", mode, ip, port)}
}

// Forget removes a chunkserver from the list of the master at "host:port". The master refuses that while the chunkserver is connected
// (ERROR_ACTIVE). The exit code does not show the refusal; the next answer of the probe does.
func Forget(address, ip string, port int32) []string {
	host, at, _ := strings.Cut(address, ":")
	return []string{"mfscli", "-n", "-H", host, "-P", at, fmt.Sprintf("-CRC/%s/%d", ip, port)}
}

// Limit returns the default.
func (prober) Limit(int) time.Duration { return 0 }

// Tolerates accepts the exit code of 4.59.2 when it reached no master, because the output then contains the reason. Up to 4.57.5 the code
// is 0 in that case, so the output decides. A crash of mfscli prints to standard error.
func (prober) Tolerates(_, code int, stderr string) bool { return code == 1 && stderr == "" }

// Parse parses the answers into a State.
func (p prober) Parse(outputs [][]byte) (backend.State, error) {
	if want := len(p.Commands()); len(outputs) != want {
		return backend.State{}, fmt.Errorf("%d answers of mfscli to %d commands", len(outputs), want)
	}
	var state backend.State
	var err error
	if strings.HasPrefix(p.version, "3.") {
		if state, err = parseTables(outputs[0]); err == nil {
			state.Sessions = parseMounts(outputs[1])
		}
	} else {
		state, err = parseJSON(outputs[0])
	}
	if err != nil {
		return backend.State{}, fmt.Errorf("mfscli -H %s -P %s: %w", p.host, p.port, err)
	}
	slices.Sort(state.ClassesInUse)
	// "Ready" describes all disks of one chunkserver, from its last scan of all chunks. The counts of the whole filesystem must agree before a
	// disk is reported as removable.
	for i := range state.Targets {
		state.Targets[i].Removable = state.Targets[i].Removable && state.Data.Whole()
	}
	return state, nil
}

// online reports whether a disk serves its data. MooseFS has words for each fault: "damaged", "invalid", "scanning", "server unreachable".
// A disk that is marked for removal accepts no new data, but serves what it has. A disk that had one error is "ok" up to 4.57.5, and "ok
// (errors)" later.
func online(status []string) bool {
	for _, word := range status {
		if word != "ok" && word != "ok (errors)" && !marked(word) {
			return false
		}
	}
	return len(status) > 0
}

// marked reports whether a word means that a disk is marked for removal ("*" in mfshdd.cfg(5)), in 3.0.117, in 4.57.5, or later.
func marked(word string) bool {
	return strings.HasPrefix(word, "marked for removal") || strings.HasPrefix(word, "MFR ") || strings.HasPrefix(word, "removal ")
}

// removal reports whether a disk is marked for removal, and whether MooseFS reports it as ready for that: everything on it has enough
// copies elsewhere. A disk that is being scanned has not reported everything on it.
func removal(status []string) (removing, ready bool) {
	scanned := true
	for _, word := range status {
		switch {
		case word == "marked for removal (ready)" || word == "MFR READY" || word == "removal ready":
			removing, ready = true, true
		case marked(word):
			removing = true
		case word == "scanning":
			scanned = false
		}
	}
	return removing, ready && scanned
}

// class is a storage class as mfscli shows it: an expression, such as "2A/[RACK]", for each time of a file's life.
type class struct {
	keep string
	// others holds the expressions for the times with copies of their own: "create", "arch" and "trash".
	others map[string]string
	// mode is LOOSE, STD or STRICT.
	mode string
}

// String returns the expression for keeping, such as "2A", followed by everything in which the class differs from those that the operator
// makes: strict, and with the same copies at all times. So "2A" alone describes the class completely.
func (c class) String() string {
	said := []string{c.keep}
	for _, time := range backend.SortedKeys(c.others) {
		if c.others[time] != c.keep {
			said = append(said, time+" "+c.others[time])
		}
	}
	if c.mode != "STRICT" {
		said = append(said, "mode "+c.mode)
	}
	return strings.Join(said, "; ")
}

// count adds chunks with this goal and this number of copies. The goal is 0 for chunks that no file uses. The last column, 10, means 10 or
// more.
func count(data *backend.DataHealth, goal, copies, chunks int64) {
	if goal > 0 && chunks > 0 && (data.Fewest == 0 || copies < data.Fewest) {
		data.Fewest = copies
	}
}

// expression formats copies as the commands for storage classes take them: "A", "A", "B" as "2A,1B".
func expression(copies []string) string {
	var parts []string
	for i := 0; i < len(copies); {
		next := i
		for next < len(copies) && copies[next] == copies[i] {
			next++
		}
		parts = append(parts, fmt.Sprintf("%d%s", next-i, copies[i]))
		i = next
	}
	return strings.Join(parts, ",")
}
