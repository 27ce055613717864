package cli

import "regexp"

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
