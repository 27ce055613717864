package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mounted is a filesystem that a node has mounted, according to its kernel.
type Mounted struct {
	FSName string
	// Disconnected lists the targets without a connection, with its state.
	Disconnected []string
	// Evicted has the times at which a server has evicted the client, by the name of the connection and the time.
	Evicted map[string]time.Time
}

// AllClientStates lists the connections of all filesystems that a node has mounted: their states with the history of each, and whether each
// OST is in use. It fails if nothing is mounted.
func AllClientStates() []string {
	return []string{"lctl", "get_param", "mdc.*.state", "osc.*.state", "osc.*.active"}
}

var (
	// connection is a parameter of a client's connection with a target: its name ends with the instance of the mount. A connection of an MDT
	// ends with the name of the MDT.
	connection = regexp.MustCompile(
		`^(?:mdc|osc)\.([A-Za-z0-9_-]{1,8})-((?:MDT|OST)[0-9a-f]{4})-(?:mdc|osc)-([0-9a-f]{8,16})\.(state|active)=(.*)$`)
	current = regexp.MustCompile(`^current_state: +(\w+)$`)
	evicted = regexp.MustCompile(`^ *- \[ *(\d{1,15}), EVICTED \]$`)
)

// works lists the states of a connection that is up, or comes up with the next request.
var works = []string{"FULL", "IDLE"}

// ParseClients reads the answer to AllClientStates, by the name of the filesystem. An OST that is no longer in use needs no connection.
func ParseClients(output string) []Mounted {
	var all []Mounted
	states, unused := map[string]string{}, map[string]bool{}
	var at *Mounted
	name, target := "", ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if found := connection.FindStringSubmatch(line); found != nil {
			at, target, name = mountedAs(&all, found[1]), found[1]+"-"+found[2], found[2]+"-"+found[3]
			if found[4] == "active" {
				unused[target] = found[5] == "0"
				at = nil
			}
			continue
		}
		if strings.Contains(line, "=") && !strings.HasPrefix(line, " ") {
			at = nil // another kind of parameter
		}
		if at == nil {
			continue
		}
		if found := current.FindStringSubmatch(line); found != nil {
			states[target] = found[1]
		}
		if found := evicted.FindStringSubmatch(line); found != nil {
			if seconds, err := strconv.ParseInt(found[1], 10, 64); err == nil {
				at.Evicted[name+"@"+found[1]] = time.Unix(seconds, 0)
			}
		}
	}
	for i := range all {
		for target, state := range states {
			if strings.HasPrefix(target, all[i].FSName+"-") && !unused[target] && !slices.Contains(works, state) {
				all[i].Disconnected = append(all[i].Disconnected, fmt.Sprintf("%s %s", target, state))
			}
		}
		slices.Sort(all[i].Disconnected)
	}
	slices.SortFunc(all, func(a, b Mounted) int { return strings.Compare(a.FSName, b.FSName) })
	return all
}

// mountedAs returns the filesystem with that name, and adds it if there is none.
func mountedAs(all *[]Mounted, fsName string) *Mounted {
	i := slices.IndexFunc(*all, func(m Mounted) bool { return m.FSName == fsName })
	if i < 0 {
		i = len(*all)
		*all = append(*all, Mounted{FSName: fsName, Evicted: map[string]time.Time{}})
	}
	return &(*all)[i]
}
