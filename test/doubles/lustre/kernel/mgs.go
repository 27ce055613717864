package kernel

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Filesystem is the MGS's state of a filesystem.
type Filesystem struct {
	Gen int
	// Names lists the targets in the order of their registration, and NIDs holds those of the nodes that serve them.
	Names []string
	NIDs  map[string][]string
	// Logs holds "<fsname>-client" and one log for each MDT.
	Logs map[string]*Log
	// Parameters holds those of conf_param that are in no log.
	Parameters map[string]string
}

// management is the content of an MGT.
type management struct {
	Filesystems map[string]*Filesystem
	// Permanent holds the parameters of set_param -P.
	Permanent map[string]string
}

// permanentLog is the log of set_param -P.
const permanentLog = "params"

// files returns the logs by file name.
func (m *management) files() map[string]*Log {
	out := map[string]*Log{}
	for _, fs := range m.Filesystems {
		maps.Copy(out, fs.Logs)
	}
	if len(m.Permanent) > 0 {
		log := &Log{}
		for _, name := range slices.Sorted(maps.Keys(m.Permanent)) {
			log.with(event("set_param", "device", "general", "parameter", name, "value", m.Permanent[name]))
		}
		out[permanentLog] = log
	}
	return out
}

// registration is a target's message to the MGS at each mount.
type registration struct {
	FSName, Name string
	Index        uint32
	First        bool
	NIDs         []string
}

func errno(e syscall.Errno) error { return &wire.Error{Errno: e} }

// register registers a target.
func (m *management) register(r registration) error {
	fs := m.Filesystems[r.FSName]
	isMDT := strings.Contains(r.Name, "-MDT")
	switch {
	case fs == nil && !r.First:
		return wire.Refuse(syscall.ENOENT, "the MGS knows no filesystem %s", r.FSName)
	case fs == nil && (!isMDT || r.Index != 0):
		return wire.Refuse(syscall.ENOENT, "the double wants MDT0000 of %s to be the first target", r.FSName)
	case fs == nil:
		fs = &Filesystem{NIDs: map[string][]string{}, Logs: map[string]*Log{}, Parameters: map[string]string{}}
		m.Filesystems[r.FSName] = fs
		fs.clientLog(r.FSName)
	}
	known := slices.Contains(fs.Names, r.Name)
	switch {
	case r.First && known:
		return errno(syscall.EADDRINUSE)
	case !r.First && !known:
		return wire.Refuse(syscall.ENOENT, "the MGS knows no target %s", r.Name)
	case r.First:
		fs.add(r)
	}
	fs.NIDs[r.Name] = r.NIDs
	fs.Gen++
	return nil
}

func (fs *Filesystem) clientLog(name string) {
	log := &Log{}
	log.with(event("attach", "device", name+"-clilov", "type", "lov", "UUID", name+"-clilov_UUID"),
		event("setup", "device", name+"-clilov", "UUID", ""))
	log.with(event("attach", "device", name+"-clilmv", "type", "lmv", "UUID", name+"-clilmv_UUID"),
		event("setup", "device", name+"-clilmv", "UUID", ""))
	log.with(event("new_profile", "name", name+"-client", "lov", name+"-clilov", "lmv", name+"-clilmv"))
	fs.Logs[name+"-client"] = log
}

// mdtLog starts the log of an MDT with the existing configuration.
func (fs *Filesystem) mdtLog(fsName, name string, nids []string) {
	log, lov := &Log{}, name+"-mdtlov"
	log.with(event("attach", "device", lov, "type", "lov", "UUID", lov+"_UUID"), event("setup", "device", lov, "UUID", ""))
	log.with(event("new_profile", "name", name, "lov", lov),
		event("attach", "device", name, "type", "mdt", "UUID", name+"_UUID"), event("setup", "device", name, "UUID", name+"_UUID"))
	for _, other := range fs.Names {
		fs.connect(log, fsName, name, other, fs.NIDs[other])
	}
	for _, other := range fs.Names {
		if strings.Contains(other, "-MDT") {
			fs.connect(fs.Logs[other], fsName, other, name, nids)
		}
	}
	fs.Logs[name] = log
}

func (fs *Filesystem) add(r registration) {
	if strings.Contains(r.Name, "-MDT") {
		fs.mdtLog(r.FSName, r.Name, r.NIDs)
	} else {
		for name, log := range fs.Logs {
			if name != r.FSName+"-client" {
				fs.connect(log, r.FSName, name, r.Name, r.NIDs)
			}
		}
	}
	fs.connect(fs.Logs[r.FSName+"-client"], r.FSName, "", r.Name, r.NIDs)
	fs.Names = append(fs.Names, r.Name)
}

// connect adds a target to the log of a client (of is empty) or of an MDT.
func (fs *Filesystem) connect(log *Log, fsName, of, target string, nids []string) {
	index := fmt.Sprint(indexOf(target))
	var events []Record
	for _, nid := range nids {
		events = append(events, event("add_uuid", "nid", nid+"("+number(nid)+")", "node", nids[0]))
	}
	kind, lov, add, suffix := "osc", fsName+"-clilov", "add_osc", "-osc"
	if of != "" {
		lov, suffix = of+"-mdtlov", "-osc-"+of[len(fsName)+1:]
	}
	last := []string{"ost", target + "_UUID", "index", index, "gen", "1"}
	if strings.Contains(target, "-MDT") {
		kind, add, suffix = "mdc", "add_mdc", "-mdc"
		if of == "" {
			lov = fsName + "-clilmv"
		} else {
			kind, suffix = "osp", "-osp-"+of[len(fsName)+1:]
		}
		last = []string{"mdt", target + "_UUID", "index", index, "gen", "1", "UUID", target + suffix + "_UUID"}
	}
	device := target + suffix
	log.with(append(events,
		event("attach", "device", device, "type", kind, "UUID", lov+"_UUID"),
		event("setup", "device", device, "UUID", target+"_UUID", "node", nids[0]),
		event(add, append([]string{"device", lov}, last...)...))...)
}

// number returns a NID as one number: network type and number, and the address.
func number(nid string) string {
	address, _, _ := strings.Cut(nid, "@")
	ip := net.ParseIP(address).To4()
	if ip == nil {
		return "0x0"
	}
	return "0x20000" + hex.EncodeToString(ip)
}

// logs returns the names of the logs in lctl's order.
func (fs *Filesystem) logs(fsName string) []string {
	var mdts []string
	for name := range fs.Logs {
		if name != fsName+"-client" {
			mdts = append(mdts, name)
		}
	}
	slices.Sort(mdts)
	return slices.Insert(mdts, min(1, len(mdts)), fsName+"-client")
}

// everywhere visits all logs with the name of the device for pools in each, and the suffix of connection names.
func (fs *Filesystem) everywhere(fsName string, do func(log *Log, name, lov, osc string)) {
	for _, name := range fs.logs(fsName) {
		lov, osc := fsName+"-clilov", "-osc"
		if name != fsName+"-client" {
			lov, osc = name+"-mdtlov", "-osc-"+name[len(fsName)+1:]
		}
		do(fs.Logs[name], name, lov, osc)
	}
	fs.Gen++
}

func (fs *Filesystem) poolExists(fsName, pool string) bool {
	return fs.Logs[fsName+"-client"].live(func(r Record) bool { return r.Event == "new_pool" && r.Value("pool") == pool })
}

func (fs *Filesystem) inPool(fsName, pool, ost string) bool {
	return fs.Logs[fsName+"-client"].live(func(r Record) bool {
		return r.Event == "add_pool" && r.Value("pool") == pool && (ost == "" || r.Value("ost") == ost+"_UUID")
	})
}

// pool changes a pool by one OST, or as a whole.
func (m *management) pool(what, fsName, pool, ost string) error {
	fs := m.Filesystems[fsName]
	if fs == nil {
		return errno(syscall.ENOENT)
	}
	exists := fs.poolExists(fsName, pool)
	switch what {
	case "pool_new":
		if exists {
			return wire.Refuse(syscall.EEXIST, "pool %s.%s already exists", fsName, pool)
		}
	case "pool_destroy":
		if exists && fs.inPool(fsName, pool, "") {
			return wire.Refuse(syscall.ENOTEMPTY, "pool %s.%s not empty, please remove all members", fsName, pool)
		}
	}
	switch {
	case what != "pool_new" && !exists:
		return wire.Refuse(syscall.ENOENT, "pool %s.%s does not exist", fsName, pool)
	case what == "pool_add" && !slices.Contains(fs.Names, ost):
		return wire.Refuse(syscall.EINVAL, "OST %s_UUID is not part of the '%s' fs", ost, fsName)
	case what == "pool_add" && fs.inPool(fsName, pool, ost):
		return wire.Refuse(syscall.EEXIST, "OST %s_UUID already in pool %s.%s", ost, fsName, pool)
	case what == "pool_remove" && !fs.inPool(fsName, pool, ost):
		return wire.Refuse(syscall.ENOENT, "OST %s_UUID not found in pool %s.%s", ost, fsName, pool)
	}
	fs.everywhere(fsName, func(log *Log, _, lov, _ string) {
		// Records that this one reverts are canceled at once.
		undone := map[string]string{"pool_destroy": "new_pool", "pool_remove": "add_pool"}[what]
		log.cancel(func(r Record) bool {
			return r.Event == undone && r.Value("pool") == pool && (ost == "" || r.Value("ost") == ost+"_UUID")
		})
		fields := []string{"device", lov, "fsname", fsName, "pool", pool}
		if ost != "" {
			fields = append(fields, "ost", ost+"_UUID")
		}
		log.with(event(map[string]string{
			"pool_new": "new_pool", "pool_add": "add_pool", "pool_remove": "remove_pool", "pool_destroy": "del_pool",
		}[what], fields...))
	})
	return nil
}

// confParam is lctl conf_param.
func (m *management) confParam(assignment string) error {
	name, value, has := strings.Cut(assignment, "=")
	device, rest, dotted := strings.Cut(name, ".")
	if !has || !dotted {
		return errno(syscall.EINVAL)
	}
	fsName := device
	if at := strings.LastIndex(device, "-"); at > 0 {
		fsName = device[:at]
	}
	fs := m.Filesystems[fsName]
	switch {
	case fs == nil || device != fsName && !slices.Contains(fs.Names, device):
		return errno(syscall.ENOENT)
	case strings.HasPrefix(rest, "osc."):
		fs.everywhere(fsName, func(log *Log, _, _, osc string) {
			log.with(event("conf_param", "device", device+osc, "parameter", rest+"="+value))
		})
	case rest == "quota.ost" || rest == "quota.mdt":
		fs.Parameters[rest] = value
		fs.Gen++
	default:
		return wire.Refuse(syscall.EINVAL, "the double knows of conf_param only <ost>.osc.* and <fsname>.quota.*")
	}
	return nil
}

// Deletion is the output of del_ost for one log.
type Deletion struct {
	Log     string
	Records []Record
}

// delOST removes an OST from all logs.
func (m *management) delOST(ost string, dryRun bool) ([]Deletion, error) {
	fsName := ost[:max(strings.LastIndex(ost, "-"), 0)]
	fs := m.Filesystems[fsName]
	if fs == nil || !strings.Contains(ost, "-OST") {
		return nil, errno(syscall.EINVAL)
	}
	if !slices.Contains(fs.Names, ost) {
		return nil, errno(syscall.ENOENT)
	}
	var all []Deletion
	fs.everywhere(fsName, func(log *Log, name, _, osc string) {
		of := func(r Record) bool {
			return r.Value("device") == ost+osc || r.Value("ost") == ost+"_UUID"
		}
		d := Deletion{Log: name}
		for _, r := range slices.Backward(log.Records) {
			if r.Event != "" && !r.Cancelled && of(r) {
				d.Records = append(d.Records, r)
			}
		}
		if !dryRun {
			log.cancel(of)
		}
		all = append(all, d)
	})
	return all, nil
}

func indexOf(target string) int {
	var index int
	if len(target) >= 4 {
		_, _ = fmt.Sscanf(target[len(target)-4:], "%x", &index)
	}
	return index
}
