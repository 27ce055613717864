package kernel

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Version is the Lustre version of the doubles.
const Version = "2.17.57"

// Parameter is a parameter of lctl get_param, with the parts of its name.
type Parameter struct {
	Name  []string
	Value string
	// Errno is the error when it is read, and Hidden is true for one that can only be set.
	Errno  syscall.Errno
	Hidden bool
}

// parameters returns all parameters of the node, sorted by name.
func (k *Kernel) parameters() []Parameter {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var p params
	p.add(Version, "version")
	p.add("healthy", "health_check")
	p.add("\n"+k.list(1), "devices")
	p.add(k.jobs, "jobid_var")
	p.add("%e.%u", "jobid_name")
	if len(k.nets) > 0 {
		var table strings.Builder
		table.WriteString("0\t:")
		for cpu := range runtime.NumCPU() {
			fmt.Fprintf(&table, " %d", cpu)
		}
		p.add(table.String(), "cpu_partition_table")
		p.add("0\t: 0:10", "cpu_partition_distance")
	}
	for _, t := range k.targets {
		p.target(t)
		for _, f := range t.followers() {
			p.connections(f)
		}
	}
	for _, c := range k.clients {
		p.add(c.UUID, "llite", c.fsName+"-"+c.Instance, "uuid")
		p.connections(&c.follower)
	}
	slices.SortStableFunc(p, func(x, y Parameter) int { return slices.CompareFunc(x.Name, y.Name, cmp.Compare[string]) })
	return p
}

type params []Parameter

func (p *params) add(value string, name ...string) {
	*p = append(*p, Parameter{Name: name, Value: value})
}

func (p *params) number(value int64, name ...string) { p.add(strconv.FormatInt(value, 10), name...) }

func (p *params) target(t *target) {
	osd := func(name string) []string { return []string{"osd-ldiskfs", t.name, name} }
	s := t.space()
	for name, value := range map[string]int64{
		"filestotal": s.Inodes, "filesfree": s.Inodes - s.InodesUsed, "kbytestotal": s.Kilobytes, "kbytesfree": s.Kilobytes - s.Used,
		"kbytesavail": s.Available, "nonrotational": 0,
	} {
		p.number(value, osd(name)...)
		if !t.isMDT() && t.serves() && name != "nonrotational" {
			p.number(value, "obdfilter", t.name, name)
		}
	}
	p.add(t.device, osd("mntdev")...)
	p.add("ldiskfs", osd("fstype")...)
	if t.isMGS() {
		for name, fs := range t.kept.Management.Filesystems {
			p.add(live(name, fs), "mgs", "MGS", "live", name)
		}
	}
	if !t.serves() {
		return
	}
	kind := "obdfilter"
	if t.isMDT() {
		kind = "mdt"
	}
	p.add(strings.TrimSuffix(t.recovery(), "\n"), kind, t.name, "recovery_status")
	p.number(int64(len(t.exports)), kind, t.name, "num_exports")
	by := map[string][]string{}
	for _, e := range slices.Backward(t.exports) {
		nid := "0@lo"
		if !e.local && len(e.nids) > 0 {
			nid = e.nids[0]
		}
		by[nid] = append(by[nid], e.uuid)
	}
	for nid, uuids := range by {
		p.add(strings.Join(uuids, "\n"), kind, t.name, "exports", nid, "uuid")
	}
	*p = append(*p, Parameter{Name: []string{kind, t.name, "evict_client"}, Hidden: true})
	p.quota(t)
}

// quota adds the parameters about enforced quotas, once for each kind of account of the target.
func (p *params) quota(t *target) {
	slaves, key := []string{"quota_slave_dt"}, "quota.ost"
	if t.isMDT() {
		slaves, key = append(slaves, "quota_slave_md"), "quota.mdt"
	}
	enabled := "none"
	if value := t.lov.parameters[key]; value != "" {
		enabled = value
	}
	for _, slave := range append(slaves, "quota_slave") {
		p.add("target name:    "+t.name+"\nquota enabled:   "+enabled, "osd-ldiskfs", t.name, slave, "info")
	}
}

func live(name string, fs *Filesystem) string {
	return fmt.Sprintf("fsname: %s\nflags: 0x20     gen: %d\n%s\n\nSecure RPC Config Rules:\n\nimperative_recovery_state:\n    state: startup\n"+
		"    nonir_clients: 0\n    nidtbl_version: %d\n    notify_duration_total: 0.000000000\n    notify_duation_max: 0.000000000\n    notify_count: 0",
		name, fs.Gen, strings.Join(fs.Names, "\n"), len(fs.Names)+2)
}

func (p *params) connections(f *follower) {
	for _, c := range f.connections {
		active := strconv.Itoa(map[bool]int{true: 1}[c.Active])
		kinds := []string{c.Kind}
		isOST := strings.Contains(c.Target, "-OST")
		switch {
		case c.Kind == "lwp":
			continue
		case c.Kind == "osp" && isOST:
			kinds = append(kinds, "osc")
			p.number(int64(c.MaxCreate), "osp", c.Device, "max_create_count")
			p.add("0", "osp", c.Device, "prealloc_status")
		case c.Kind == "osp":
			*p = append(*p, Parameter{Name: []string{"osp", c.Device, "prealloc_status"}, Errno: syscall.EINVAL})
		}
		for _, kind := range kinds {
			p.add(active, kind, c.Device, "active")
			p.add(strings.TrimSuffix(f.imported(c), "\n"), kind, c.Device, "import")
			var text strings.Builder
			text.WriteString("current_state: " + c.state() + "\nstate_history:")
			for _, change := range c.States[max(len(c.States)-16, 0):] {
				fmt.Fprintf(&text, "\n - [ %d, %s ]", change.At, change.State)
			}
			p.add(text.String(), kind, c.Device, "state")
		}
	}
}

// Setting sets one parameter.
type Setting struct {
	Name  []string
	Value string
}

// set is lctl set_param for one existing parameter.
func (k *Kernel) set(_ context.Context, s Setting) (any, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	last := s.Name[len(s.Name)-1]
	if len(s.Name) == 1 && last == "jobid_var" {
		k.jobs = s.Value
		return nil, nil
	}
	if last == "evict_client" {
		k.evict(s.Name[1], s.Value)
		return nil, nil
	}
	value, err := strconv.Atoi(s.Value)
	if err != nil {
		return nil, errno(syscall.EINVAL)
	}
	for _, f := range k.followers() {
		for _, c := range f.connections {
			if len(s.Name) != 3 || c.Device != s.Name[1] {
				continue
			}
			switch last {
			case "max_create_count":
				if value < 0 || value > 20000 {
					return nil, errno(syscall.ERANGE)
				}
				c.MaxCreate = value
				return nil, nil
			case "active":
				c.Active = value != 0
				return nil, nil
			}
		}
	}
	return nil, wire.Refuse(syscall.EACCES, "")
}

// evict makes a target forget a client.
func (k *Kernel) evict(name, client string) {
	for _, t := range k.targets {
		if t.name == name {
			t.exports = slices.DeleteFunc(t.exports, func(e export) bool { return e.uuid == client })
		}
	}
}
