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

// AskServer returns the command lines that query a node for its targets of the filesystem. lctl get_param reports a node without a target
// of a kind on its standard error and by its exit code; only its output counts.
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
		// This question is always asked: a changed probe would restart together with its server, which unmounts targets.
		askPartitions: {"lctl", "get_param", "-n", "cpu_partition_table"},
		askModules:    moduleQuestion,
	}
}

// moduleQuestion prints the parameters with which modules were loaded, as far as the node has files of them. No program of Lustre's own
// prints them.
var moduleQuestion = []string{
	"grep", "-sH", "",
	"/sys/module/mdt/parameters/mds_num_cpts", "/sys/module/mdt/parameters/mds_rdpg_num_cpts",
	"/sys/module/ofd/parameters/oss_cpts", "/sys/module/ofd/parameters/oss_io_cpts",
	"/sys/module/ost/parameters/oss_cpts", "/sys/module/ost/parameters/oss_io_cpts",
}

// MayLack is true for a question, by its place, to which a node without a target of a kind answers with an error.
func (Commands) MayLack(question int) bool { return question >= askRecovery }

// root is the device through which MDT0000 reaches the OSTs and their pools (lod of 2.15 to 2.17; Lustre's own tests read pools there).
func (c Commands) root() string { return Target{c.FSName, MDT, 0}.String() + "-mdtlov" }

// The last parts of the parameters that are queried.
const (
	recoveryStatus = "recovery_status"
	kbytesTotal    = "kbytestotal"
	kbytesFree     = "kbytesfree"
	filesTotal     = "filestotal"
	filesFree      = "filesfree"
	maxCreate      = "max_create_count"
	active         = "active"
)

// Server describes the targets of a node.
type Server struct {
	// Version of the kernel's part.
	Version string
	Health  Health
	// Targets has the mounted targets of the filesystem, and the MGT.
	Targets map[Target]Serving
	// Pools maps the pools to the indices of their OSTs, in order; nil on a node without MDT0000, and without pools.
	Pools map[string][]int32
	// Links has the links of its MDTs to OSTs that are not in the usual state, in which objects are made and used.
	Links map[Link]State
	// Partitions has the CPUs of each CPT, and Modules the parameters with which modules were loaded, such as mdt.mds_num_cpts; both may be
	// incomplete.
	Partitions [][]int
	Modules    map[string]string
}

// Link is the link from an MDT to an OST, by their indices.
type Link struct{ MDT, OST int32 }

// State is the state of a link that is not in the usual state.
type State struct {
	// NoObjects is true when no objects are made, and Closed when the OST is not used at all.
	NoObjects, Closed bool
}

// Serving is the kernel's state of a mounted target.
type Serving struct {
	// Up is false while it is being set up, or stopped.
	Up bool
	// Healthy is false when the kernel reports it as unhealthy.
	Healthy bool
	// Recovery is empty for an MGT, which has no recovery.
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
	// If the kernel does not name the unhealthy targets, all count as unhealthy.
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
	// Targets serve with any CPUs, so an unreadable answer only leaves the CPUs unknown.
	if partitions, err := ParsePartitions(string(outputs[askPartitions])); err == nil {
		s.Partitions = partitions
	}
	s.Modules = ParseModules(string(outputs[askModules]))
	return s, nil
}

var moduleLine = regexp.MustCompile(`(?m)^/sys/module/([a-z0-9_]+)/parameters/([a-z0-9_]+):(.*)$`)

// ParseModules reads the parameters with which modules were loaded, such as "mdt.mds_num_cpts": "[1]".
func ParseModules(output string) map[string]string {
	out := map[string]string{}
	for _, found := range moduleLine.FindAllStringSubmatch(output, -1) {
		out[found[1]+"."+found[2]] = strings.TrimSpace(found[3])
	}
	return out
}

var linkDevice = regexp.MustCompile(`^[A-Za-z0-9_-]{1,8}-OST([0-9a-f]{4})-osc-MDT([0-9a-f]{4})$`)

// links reads on which OSTs the MDTs make no objects, and which they do not use.
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
		ost, _ := strconv.ParseUint(found[1], 16, 16) // the pattern has four digits
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

// pools reads the OSTs of the pools.
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

// change changes the state of a mounted target; other targets are being mounted or unmounted during the query.
func (s *Server) change(name string, to func(t *Serving)) {
	target, _ := ParseTarget(name)
	if serving, there := s.Targets[target]; there {
		to(&serving)
		s.Targets[target] = serving
	}
}

// kernel reads the state of the kernel part.
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

// space reads the sizes of the disks and their usage.
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
