// Package cli asks a master of MooseFS for its state by mfscli(1) of 3.0.117, 4.57.5 and 4.59.2, and reads what that prints.
package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/internal/backend"
)

// prober asks a master by mfscli(1). 4.x answers in JSON; 3.x has tables only, with a separator of our choice.
type prober struct{ version, host, port string }

// New returns how the master of a version at "host:port" (IPv4 only, as MooseFS itself) is asked for its state.
func New(version, address string) backend.Questions {
	host, port, _ := strings.Cut(address, ":")
	return prober{version: version, host: host, port: port}
}

// The answer that is asked for: general information, counts of chunks, chunkservers, metaloggers, disks and storage
// classes; and the mounts.
var (
	askForServers = []string{"-SIG", "-SIC", "-SCS", "-SMB", "-SHD", "-SSC"}
	askForMounts  = []string{"-SMS"}
)

// separator of 3.x stands in no address, number or name of a class, unlike the blank and the bar.
const separator = "\t"

// Commands are one of 4.x and two of 3.x: there, a client chooses the path of its mount and so can write what looks like
// a line of another table. Asked for apart, mounts can feign nothing but mounts. Without -n, mfscli would ask the DNS for
// every address and show names in the place of addresses.
func (p prober) Commands() [][]string {
	if strings.HasPrefix(p.version, "3.") {
		command := []string{"mfscli", "-n", "-s", separator, "-H", p.host, "-P", p.port}
		return [][]string{slices.Concat(command, askForServers), slices.Concat(command, askForMounts)}
	}
	return [][]string{slices.Concat([]string{"mfscli", "-n", "-j", "-H", p.host, "-P", p.port}, askForServers, askForMounts)}
}

// Maintain switches the maintenance mode of a chunkserver on or off, at the master at "host:port". Its exit code
// does not say what the master has; the next answer shows what has come of it.
func Maintain(address, ip string, port int32, on bool) []string {
	host, at, _ := strings.Cut(address, ":")
	mode := "0"
	if on {
		mode = "1"
	}
	return []string{"mfscli", "-n", "-H", host, "-P", at, fmt.Sprintf("-CM%s/%s/%d", mode, ip, port)}
}

// Forget takes a chunkserver out of the list of the master at "host:port". The master refuses that by itself while the chunkserver is
// connected (ERROR_ACTIVE); the exit code does not say so, and the next answer shows what has come of it.
func Forget(address, ip string, port int32) []string {
	host, at, _ := strings.Cut(address, ":")
	return []string{"mfscli", "-n", "-H", host, "-P", at, fmt.Sprintf("-CRC/%s/%d", ip, port)}
}

// Limit is the usual one.
func (prober) Limit(int) time.Duration { return 0 }

// Tolerates the exit code of 4.59.2 when it reached no master: it says why in what it prints. Up to 4.57.5 it is 0 then, too, so what
// mfscli says decides. One that breaks down says so in its standard error.
func (prober) Tolerates(_, code int, stderr string) bool { return code == 1 && stderr == "" }

// Parse makes a State of the answers.
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
	// "Ready" is about all disks of one chunkserver, from its last round through all chunks. What was counted of the whole
	// filesystem must say the same before a disk is called removable.
	for i := range state.Targets {
		state.Targets[i].Removable = state.Targets[i].Removable && state.Data.Whole()
	}
	return state, nil
}

// online is true for a disk that serves the data that it holds. MooseFS names all that ails it: "damaged", "invalid",
// "scanning", "server unreachable"; one that is marked for removal takes no new data, but serves what it has. One that had an error once
// is "ok" up to 4.57.5, and "ok (errors)" later.
func online(status []string) bool {
	for _, word := range status {
		if word != "ok" && word != "ok (errors)" && !marked(word) {
			return false
		}
	}
	return len(status) > 0
}

// marked is true for a word that says that a disk is marked for removal ("*" in mfshdd.cfg(5)): of 3.0.117, of 4.57.5, and of later ones.
func marked(word string) bool {
	return strings.HasPrefix(word, "marked for removal") || strings.HasPrefix(word, "MFR ") || strings.HasPrefix(word, "removal ")
}

// removal says whether a disk is marked for removal, and whether MooseFS calls it ready for that: all that is on it has enough copies
// elsewhere. A disk that is being scanned has not told all that is on it.
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
	// others are for the times for which the class has copies of their own: "create", "arch" and "trash".
	others map[string]string
	// mode is LOOSE, STD or STRICT.
	mode string
}

// String is the expression for keeping, such as "2A", and behind it all in which the class is not as the operator makes
// its own: strict, and with the same copies at all times. So "2A" means that there is nothing else to know.
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

// count notes how many copies a chunk should have and has, of which there are some. A goal of 0 is of chunks that no file has any more.
// The last column, 10, is for 10 and more.
func count(data *backend.DataHealth, goal, copies, chunks int64) {
	if goal > 0 && chunks > 0 && (data.Fewest == 0 || copies < data.Fewest) {
		data.Fewest = copies
	}
}

// expression writes copies as the commands for storage classes take them: "A", "A", "B" as "2A,1B".
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
