package cli

import (
	"regexp"
	"strconv"
	"strings"
)

// Param is one parameter that lctl get_param prints.
type Param struct {
	// Name with all of its parts, such as obdfilter.pfs-OST0000.recovery_status.
	Name string
	// Value has the lines of a value that has several, without blank ones.
	Value string
}

// Device is the part of the name with the device of the parameter, such as pfs-OST0000; empty if there is none.
func (p Param) Device() string {
	parts := strings.Split(p.Name, ".")
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

var paramLine = regexp.MustCompile(`^([a-z][a-z0-9_-]*(?:[.][A-Za-z0-9_@:*-]+)*)=(.*)$`)

// ParseParams reads the output of lctl get_param, in its order. Missing parameters are reported only on its standard error.
func ParseParams(output []byte) ([]Param, error) {
	r := read("lctl get_param", output)
	var out []Param
	for r.next() {
		found := paramLine.FindStringSubmatch(r.text)
		switch {
		case found != nil:
			out = append(out, Param{Name: found[1], Value: found[2]})
		case len(out) == 0:
			return nil, r.wrong("should be a parameter")
		default:
			last := &out[len(out)-1]
			last.Value = strings.TrimPrefix(last.Value+"\n"+r.text, "\n")
		}
	}
	return out, nil
}

// Health is the kernel's state of all its targets (health_check).
type Health struct {
	Healthy bool
	// Unhealthy lists the unhealthy devices that the kernel names.
	Unhealthy []string
	// Broken is true after an internal error of the kernel part (LBUG): then the node must restart.
	Broken bool
}

// ParseHealth reads the value of health_check. No unhealthy Lustre was recorded: these lines follow its source (health_check_show of
// obd_sysfs.c). If sysfs has room for only one line, the source shows the last one, so that no device is named.
func ParseHealth(value string) (Health, error) {
	r := read("health_check", []byte(value))
	var h Health
	said := false
	for r.next() {
		device, unhealthy := strings.CutPrefix(r.text, "device ")
		device, ends := strings.CutSuffix(device, " reported unhealthy")
		switch {
		case r.text == "healthy":
			h.Healthy, said = true, true
		case r.text == "NOT HEALTHY":
			said = true
		case r.text == "LBUG":
			h.Broken, said = true, true
		case unhealthy && ends:
			h.Unhealthy = append(h.Unhealthy, device)
		default:
			return Health{}, r.wrong("is not known")
		}
	}
	if !said {
		return Health{}, r.without("whether it is healthy")
	}
	h.Healthy = h.Healthy && len(h.Unhealthy) == 0 && !h.Broken
	return h, nil
}

// Recovery is the progress of a target that waits for the clients that it had before it was stopped (recovery_status).
type Recovery struct {
	// Status is Lustre's own word, such as COMPLETE.
	Status string
	// Clients is the number of clients that have reconnected, of Expected; both are 0 while unknown.
	Clients, Expected int
	// NotReady lists the MDTs for which it waits, in Lustre's own words.
	NotReady string
}

// Over is true when the target serves programs, and the next one may be stopped: nothing was to be recovered, or everything was.
func (r Recovery) Over() bool { return r.Status == "COMPLETE" || r.Status == "INACTIVE" }

// recoveries has Lustre's words for the status.
var recoveries = map[string]bool{"INACTIVE": true, "WAITING": true, "WAITING_FOR_CLIENTS": true, "RECOVERING": true, "COMPLETE": true}

// ParseRecovery reads the value of a recovery_status.
func ParseRecovery(value string) (Recovery, error) {
	r := read("recovery_status", []byte(value))
	var out Recovery
	for r.next() {
		name, text, found := strings.Cut(r.text, ":")
		text = strings.TrimSpace(text)
		if !found {
			return Recovery{}, r.wrong("should be a name and a value")
		}
		switch name {
		case "status":
			if !recoveries[text] {
				return Recovery{}, r.wrong("is no status that is known")
			}
			out.Status = text
		case "non-ready MDTs":
			out.NotReady = text
		case "completed_clients", "connected_clients":
			some, all, both := strings.Cut(text, "/")
			var err error
			if out.Clients, err = strconv.Atoi(some); err != nil || !both {
				return Recovery{}, r.wrong("has no number of clients")
			}
			if out.Expected, err = strconv.Atoi(all); err != nil {
				return Recovery{}, r.wrong("has no number of clients")
			}
		}
	}
	if out.Status == "" {
		return Recovery{}, r.without("a status")
	}
	return out, nil
}

// ParsePartitions reads the value of cpu_partition_table: the CPUs of each CPT, by its number.
func ParsePartitions(value string) ([][]int, error) {
	r := read("cpu_partition_table", []byte(value))
	var out [][]int
	for r.next() {
		number, list, _ := strings.Cut(r.text, ":")
		if strings.TrimSpace(number) != strconv.Itoa(len(out)) {
			return nil, r.wrong("should be CPT %d", len(out))
		}
		var cpus []int
		for text := range strings.FieldsSeq(list) {
			cpu, err := strconv.Atoi(text)
			if err != nil {
				return nil, r.wrong("has a CPU that is no number")
			}
			cpus = append(cpus, cpu)
		}
		out = append(out, cpus)
	}
	if len(out) == 0 {
		return nil, r.without("a CPT")
	}
	return out, nil
}
