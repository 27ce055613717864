package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The questions to a node with targets, by place.
const (
	askDevices = iota
	askKernel
	askRecovery
	askSpace
	askPools
	askLinks
	askPartitions
	askModules
)

// AskServer are the command lines that ask a node what it serves of the filesystem. lctl get_param says on its standard error, and by its
// exit code, when a node has no target of a kind; what it prints is what counts.
func (c Commands) AskServer() [][]string {
	of := c.FSName + "-*."
	return [][]string{
		askDevices:  {"lctl", "dl"},
		askKernel:   {"lctl", "get_param", "version", "health_check"},
		askRecovery: {"lctl", "get_param", "mdt." + of + recoveryStatus, "obdfilter." + of + recoveryStatus},
		askSpace: {"lctl", "get_param", "osd-*." + of + kbytesTotal, "osd-*." + of + kbytesFree,
			"osd-*." + of + filesTotal, "osd-*." + of + filesFree},
		askPools: {"lctl", "get_param", "lod." + c.root() + ".pools.*"},
		askLinks: {"lctl", "get_param", "osp." + c.FSName + "-OST*-osc-MDT*." + maxCreate, "osp." + c.FSName + "-OST*-osc-MDT*." + active},
		// Always: a probe that is told to ask is started anew, and its server with it, which unmounts targets.
		askPartitions: {"lctl", "get_param", "-n", "cpu_partition_table"},
		askModules:    moduleQuestion,
	}
}

// moduleQuestion prints what modules were loaded with, those of which a node has a file. No program of Lustre's own says that.
var moduleQuestion = []string{
	"grep", "-sH", "",
	"/sys/module/mdt/parameters/mds_num_cpts", "/sys/module/mdt/parameters/mds_rdpg_num_cpts",
	"/sys/module/ofd/parameters/oss_cpts", "/sys/module/ofd/parameters/oss_io_cpts",
	"/sys/module/ost/parameters/oss_cpts", "/sys/module/ost/parameters/oss_io_cpts",
}

// MayLack is true for a question, by its place, that a node without a target of a kind answers with an error.
func (Commands) MayLack(question int) bool { return question >= askRecovery }

// root is the device by which MDT0000 knows the OSTs, and their pools (lod of 2.15 to 2.17; Lustre's own tests read pools there).
func (c Commands) root() string { return Target{c.FSName, MDT, 0}.String() + "-mdtlov" }

// The last parts of the parameters that are asked for.
const (
	recoveryStatus = "recovery_status"
	kbytesTotal    = "kbytestotal"
	kbytesFree     = "kbytesfree"
	filesTotal     = "filestotal"
	filesFree      = "filesfree"
	maxCreate      = "max_create_count"
	active         = "active"
)

// Server is what a node serves.
type Server struct {
	// Version of the kernel's part.
	Version string
	Health  Health
	// Targets are those of the filesystem that are mounted, and the MGT.
	Targets map[Target]Serving
	// Pools have the indices of their OSTs, in order; nil on a node without MDT0000, and where there are none.
	Pools map[string][]int32
	// Links are what its MDTs do with OSTs, where that is not to make objects and to use them.
	Links map[Link]State
	// Partitions have the CPUs of each CPT, and Modules what modules were loaded with, such as mdt.mds_num_cpts; both as far as it says.
	Partitions [][]int
	Modules    map[string]string
}

// Link is the way from an MDT to an OST, by their indices.
type Link struct{ MDT, OST int32 }

// State of a link that is not as usual.
type State struct {
	// NoObjects is true when no objects are made, and Closed when the OST is not used at all.
	NoObjects, Closed bool
}

// Serving is what the kernel says of a target that is mounted.
type Serving struct {
	// Up is false while it is being set up, or stopped.
	Up bool
	// Healthy is false when the kernel says that it is not.
	Healthy bool
	// Recovery is empty for an MGT, which has none.
	Recovery Recovery
	// CapacityBytes and UsedBytes are those of its disk; 0 while they are not known.
	CapacityBytes, UsedBytes int64
	// Inodes and UsedInodes are those of its disk; 0 while they are not known.
	Inodes, UsedInodes int64
}

// ParseServer reads the answers to AskServer, in the same order.
func (c Commands) ParseServer(outputs [][]byte) (Server, error) {
	devices, err := ParseDevices(outputs[askDevices])
	if err != nil {
		return Server{}, err
	}
	s := Server{Targets: map[Target]Serving{}}
	if err := s.kernel(outputs[askKernel]); err != nil {
		return Server{}, err
	}
	// Where it does not say which of them is not healthy, none is believed to be.
	healthy := s.Health.Healthy || len(s.Health.Unhealthy) > 0 && !s.Health.Broken
	for _, d := range devices {
		target, is := d.Serves()
		if is && (target.Kind == MGT || target.FSName == c.FSName) {
			s.Targets[target] = Serving{Up: d.State == "UP", Healthy: healthy}
		}
	}
	for _, name := range s.Health.Unhealthy {
		s.change(name, func(t *Serving) { t.Healthy = false })
	}
	recoveries, err := ParseParams(outputs[askRecovery])
	if err != nil {
		return Server{}, err
	}
	for _, p := range recoveries {
		recovery, err := ParseRecovery(p.Value)
		if err != nil {
			return Server{}, fmt.Errorf("%s: %w", p.Name, err)
		}
		s.change(p.Device(), func(t *Serving) { t.Recovery = recovery })
	}
	if err := s.space(outputs[askSpace]); err != nil {
		return Server{}, err
	}
	if err := s.pools(outputs[askPools], "lod."+c.root()+".pools."); err != nil {
		return Server{}, err
	}
	if err := s.links(outputs[askLinks]); err != nil {
		return Server{}, err
	}
	// Targets serve whatever is said of CPUs: what can't be read is not known.
	if partitions, err := ParsePartitions(string(outputs[askPartitions])); err == nil {
		s.Partitions = partitions
	}
	s.Modules = ParseModules(string(outputs[askModules]))
	return s, nil
}

var moduleLine = regexp.MustCompile(`(?m)^/sys/module/([a-z0-9_]+)/parameters/([a-z0-9_]+):(.*)$`)

// ParseModules reads what modules were loaded with, such as "mdt.mds_num_cpts": "[1]".
func ParseModules(output string) map[string]string {
	out := map[string]string{}
	for _, found := range moduleLine.FindAllStringSubmatch(output, -1) {
		out[found[1]+"."+found[2]] = strings.TrimSpace(found[3])
	}
	return out
}

var linkDevice = regexp.MustCompile(`^[A-Za-z0-9_-]{1,8}-OST([0-9a-f]{4})-osc-MDT([0-9a-f]{4})$`)

// links reads which OSTs the MDTs make no objects on, or do not use.
func (s *Server) links(output []byte) error {
	params, err := ParseParams(output)
	if err != nil {
		return err
	}
	s.Links = map[Link]State{}
	for _, p := range params {
		found := linkDevice.FindStringSubmatch(p.Device())
		if found == nil {
			return fmt.Errorf("lctl get_param: %s is no connection of an MDT to an OST", p.Name)
		}
		ost, _ := strconv.ParseUint(found[1], 16, 16) // these are four digits
		mdt, _ := strconv.ParseUint(found[2], 16, 16)
		link := Link{MDT: int32(mdt), OST: int32(ost)}
		state := s.Links[link]
		switch what := p.Name[strings.LastIndex(p.Name, ".")+1:]; {
		case what == maxCreate && p.Value == "0":
			state.NoObjects = true
		case what == active && p.Value == "0":
			state.Closed = true
		case what == active && p.Value != "1":
			return fmt.Errorf("lctl get_param: %s is neither 0 nor 1: %q", p.Name, p.Value)
		}
		if state != (State{}) {
			s.Links[link] = state
		}
	}
	return nil
}

// pools reads which OSTs the pools have.
func (s *Server) pools(output []byte, prefix string) error {
	params, err := ParseParams(output)
	if err != nil {
		return err
	}
	for _, p := range params {
		name, is := strings.CutPrefix(p.Name, prefix)
		if !is {
			return fmt.Errorf("lctl get_param: %s is no pool", p.Name)
		}
		if s.Pools == nil {
			s.Pools = map[string][]int32{}
		}
		s.Pools[name] = []int32{}
		for line := range strings.FieldsSeq(p.Value) {
			target, is := parseUUID(line)
			if !is || target.Kind != OST {
				return fmt.Errorf("lctl get_param: the pool %s has %q, which is no OST", name, line)
			}
			s.Pools[name] = append(s.Pools[name], target.Index)
		}
		slices.Sort(s.Pools[name])
	}
	return nil
}

// change changes what is known of a target that is mounted; others are being mounted, or unmounted, while they are asked for.
func (s *Server) change(name string, to func(t *Serving)) {
	target, _ := ParseTarget(name)
	if serving, there := s.Targets[target]; there {
		to(&serving)
		s.Targets[target] = serving
	}
}

// kernel reads what the kernel's part says of itself.
func (s *Server) kernel(output []byte) error {
	params, err := ParseParams(output)
	if err != nil {
		return err
	}
	said := false
	for _, p := range params {
		switch p.Name {
		case "version":
			s.Version = p.Value
		case "health_check":
			said = true
			if s.Health, err = ParseHealth(p.Value); err != nil {
				return err
			}
		}
	}
	if !said || s.Version == "" {
		return fmt.Errorf("lctl get_param: the modules do not say their version and health")
	}
	return nil
}

// space reads how large the disks are, and how full.
func (s *Server) space(output []byte) error {
	params, err := ParseParams(output)
	if err != nil {
		return err
	}
	free, freeFiles := map[string]int64{}, map[string]int64{}
	for _, p := range params {
		count, err := strconv.ParseInt(p.Value, 10, 52)
		if err != nil {
			return fmt.Errorf("lctl get_param: %s is no number of KiB or files: %q", p.Name, p.Value)
		}
		switch name := p.Name[strings.LastIndex(p.Name, ".")+1:]; name {
		case kbytesFree:
			free[p.Device()] = count << 10
		case kbytesTotal:
			s.change(p.Device(), func(t *Serving) { t.CapacityBytes = count << 10 })
		case filesFree:
			freeFiles[p.Device()] = count
		case filesTotal:
			s.change(p.Device(), func(t *Serving) { t.Inodes = count })
		}
	}
	for name, bytes := range free {
		s.change(name, func(t *Serving) { t.UsedBytes = max(t.CapacityBytes-bytes, 0) })
	}
	for name, files := range freeFiles {
		s.change(name, func(t *Serving) { t.UsedInodes = max(t.Inodes-files, 0) })
	}
	return nil
}
