package cli

import (
	"regexp"
	"strconv"
	"strings"
)

// Device is one of the kernel's devices of Lustre (lctl dl).
type Device struct {
	// State is UP for one that serves; ST while it is stopped, AT or -- while it is set up, IN when it was deactivated.
	State string
	// Type is Lustre's own word, such as mdt, obdfilter (an OST), mgs, osp or osc.
	Type, Name string
}

// Serves returns the target that a device serves; it is false for all other devices.
func (d Device) Serves() (Target, bool) {
	if d.Type != "mgs" && d.Type != "mdt" && d.Type != "obdfilter" {
		return Target{}, false
	}
	return ParseTarget(d.Name)
}

var deviceLine = regexp.MustCompile(`^ *[0-9]+ ([A-Z]{2}|--) ([a-z0-9_-]+) (\S+) (\S+) -?[0-9]+$`)

// ParseDevices reads the output of lctl dl; empty output means that no module of Lustre has a device.
func ParseDevices(output []byte) ([]Device, error) {
	r := read("lctl dl", output)
	var out []Device
	for r.next() {
		found := deviceLine.FindStringSubmatch(r.text)
		if found == nil {
			return nil, r.wrong("should be a device")
		}
		out = append(out, Device{State: found[1], Type: found[2], Name: found[3]})
	}
	return out, nil
}

// ParseTargets reads the output of lfs osts and lfs mdts: the targets of a client, and whether it uses each.
func ParseTargets(output []byte) (map[Target]bool, error) {
	r := read("lfs osts, mdts", output)
	if !r.next() || r.text != "OBDS:" && r.text != "MDTS:" {
		return nil, r.wrong("should be the title of a list")
	}
	out := map[Target]bool{}
	for r.next() {
		words := strings.Fields(r.text)
		if len(words) != 3 {
			return nil, r.wrong("should be a target")
		}
		target, is := parseUUID(words[1])
		if !is || words[0] != strconv.Itoa(int(target.Index))+":" {
			return nil, r.wrong("should be a target with its index")
		}
		if words[2] != "ACTIVE" && words[2] != "INACTIVE" {
			return nil, r.wrong("is neither active nor inactive")
		}
		out[target] = words[2] == "ACTIVE"
	}
	return out, nil
}

// Check is the result of lfs check for one connection of a client.
type Check struct {
	// Device names the connection, such as pfs-OST0000-osc-ff219c2356d2b800.
	Device string
	// Problem is empty for a connection that works.
	Problem string
}

var (
	checkActive  = regexp.MustCompile(`^(\S+) active\.$`)
	checkProblem = regexp.MustCompile(`^lfs check: error: check '([^']+)': (.+)$`)
)

// ParseChecks reads the output of lfs check: working connections from its standard output, broken ones from its standard error.
func ParseChecks(output, errors []byte) ([]Check, error) {
	r := read("lfs check", append(append([]byte{}, output...), errors...))
	var out []Check
	for r.next() {
		if found := checkActive.FindStringSubmatch(r.text); found != nil {
			out = append(out, Check{Device: found[1]})
		} else if found := checkProblem.FindStringSubmatch(r.text); found != nil {
			out = append(out, Check{Device: found[1], Problem: found[2]})
		} else {
			return nil, r.wrong("should be a connection")
		}
	}
	return out, nil
}

// ParsePools reads the output of lctl pool_list for a filesystem: the names of its pools, in its order.
func ParsePools(output []byte, fsName string) ([]string, error) {
	r := read("lctl pool_list", output)
	if !r.next() || r.text != "Pools from "+fsName+":" {
		return nil, r.wrong("should be the title of the pools of %s", fsName)
	}
	var out []string
	for r.next() {
		name, is := strings.CutPrefix(r.text, fsName+".")
		if !is {
			return nil, r.wrong("should be a pool of %s", fsName)
		}
		out = append(out, name)
	}
	return out, nil
}

// ParsePool reads the output of lctl pool_list for a pool: its OSTs, in its order.
func ParsePool(output []byte, fsName, pool string) ([]Target, error) {
	r := read("lctl pool_list", output)
	if !r.next() || r.text != "Pool: "+fsName+"."+pool {
		return nil, r.wrong("should be the title of pool %s", pool)
	}
	var out []Target
	for r.next() {
		target, is := parseUUID(r.text)
		if !is || target.Kind != OST || target.FSName != fsName {
			return nil, r.wrong("should be an OST of %s", fsName)
		}
		out = append(out, target)
	}
	return out, nil
}

// Space is the usage of one target, from lfs df.
type Space struct {
	Target Target
	// Total, Used and Available are bytes, or inodes of lfs df -i.
	Total, Used, Available int64
	// Problem is why the target has not answered; the numbers are 0 then.
	Problem string
}

var (
	spaceLine = regexp.MustCompile(`^(\S+) +([0-9]+) +([0-9]+) +([0-9]+) +[0-9]+% +/\S*\[(?:MDT|OST):[0-9]+\]$`)
	// No target without an answer was recorded: lfs df hangs then. This line follows the source of lfs df (mntdf).
	spaceProblem = regexp.MustCompile(`^(\S+) *: (.+)$`)
)

// ParseSpace reads the output of lfs df, in bytes, or, with -i, in inodes.
func ParseSpace(output []byte) ([]Space, error) {
	r := read("lfs df", output)
	var unit int64
	switch r.next(); {
	case strings.HasPrefix(r.text, "UUID ") && strings.Contains(r.text, " 1K-blocks "):
		unit = 1024
	case strings.HasPrefix(r.text, "UUID ") && strings.Contains(r.text, " Inodes "):
		unit = 1
	default:
		return nil, r.wrong("should be the title of a table in KiB or of inodes")
	}
	var out []Space
	for r.next() {
		if strings.HasPrefix(r.text, "filesystem_summary:") {
			return out, nil
		}
		if s, err := r.space(unit); err == nil {
			out = append(out, s)
		} else {
			return nil, err
		}
	}
	return nil, r.without("a summary")
}

func (r *reader) space(unit int64) (Space, error) {
	var name, problem string
	var numbers []string
	if found := spaceLine.FindStringSubmatch(r.text); found != nil {
		name, numbers = found[1], found[2:5]
	} else if found := spaceProblem.FindStringSubmatch(r.text); found != nil {
		name, problem = found[1], found[2]
	} else {
		return Space{}, r.wrong("should be a target")
	}
	target, is := parseUUID(name)
	if !is {
		return Space{}, r.wrong("names no target")
	}
	s := Space{Target: target, Problem: problem}
	for i, to := range []*int64{&s.Total, &s.Used, &s.Available} {
		if numbers == nil {
			break
		}
		n, err := strconv.ParseInt(numbers[i], 10, 64)
		if err != nil || n > (1<<62)/unit {
			return Space{}, r.wrong("has a number that is too large")
		}
		*to = n * unit
	}
	return s, nil
}
