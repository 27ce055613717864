package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// States of a connection, with Lustre's names.
const (
	full         = "FULL"
	connecting   = "CONNECTING"
	disconnected = "DISCONN"
	evicted      = "EVICTED"
	recovering   = "RECOVER"
)

// Change is a state change of a connection.
type Change struct {
	At    int64
	State string
}

// Connection is the connection of an MDT or a client to a target.
type Connection struct {
	// Device is its own name, Kind is osp, osc, mdc or lwp, and UUID is its identity for the target.
	Device, Kind, UUID, Target string
	Active                     bool
	// MaxCreate is the number of objects that an MDT precreates on an OST.
	MaxCreate int
	States    []Change
	Attempts  int
	// shutdown is true until a program was notified of the client's eviction.
	shutdown bool
}

func (c *Connection) state() string {
	if len(c.States) == 0 {
		return disconnected
	}
	return c.States[len(c.States)-1].State
}

func (c *Connection) become(states ...string) {
	for _, state := range states {
		if c.state() != state {
			c.States = append(c.States, Change{time.Now().Unix(), state})
		}
	}
}

func (c *Connection) works() bool { return c.Active && c.state() == full }

// follower reads a configuration log of the MGS from its last position.
type follower struct {
	owner       any
	fsName, log string
	// instance is the suffix of a client's device names, and server the MDT or OST that follows.
	instance, server string
	mgs              []string
	seen             int
	// read is true after the first read of the configuration. Before it, a missing connection means nothing.
	read        bool
	connections []*Connection
	pools       []pool
	nids        map[string][]string
	parameters  map[string]string
}

type pool struct {
	name string
	osts []string
}

// configuration is the MGS's response.
type configuration struct {
	Records    []Record
	NIDs       map[string][]string
	Parameters map[string]string
}

type configurationOf struct {
	FSName, Log string
	After       int
}

// follow reads new records of the log when they are old enough.
func (k *Kernel) follow(ctx context.Context, f *follower, settle time.Duration) error {
	k.mutex.Lock()
	question := configurationOf{f.fsName, f.log, f.seen}
	k.mutex.Unlock()
	if f.fsName == "" {
		return nil
	}
	var c configuration
	if err := k.ask(ctx, f.mgs, "config", question, &c); err != nil {
		return err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	f.nids, f.parameters = c.NIDs, c.Parameters
	// Records in quick succession are read together when the last one is old enough.
	if n := len(c.Records); n > 0 && time.Since(c.Records[n-1].At) < settle {
		return nil
	}
	for _, r := range c.Records {
		if r.Index <= f.seen {
			continue
		}
		f.seen = r.Index
		if r.Event != "" && !r.Cancelled {
			k.apply(f, r)
		}
	}
	f.read = true
	return nil
}

func (k *Kernel) apply(f *follower, r Record) {
	switch r.Event {
	case "add_osc", "add_mdc":
		k.know(f, strings.TrimSuffix(r.Value("ost")+r.Value("mdt"), "_UUID"))
	case "conf_param":
		of, _, _ := strings.Cut(r.Value("device"), "-osc")
		value, is := strings.CutPrefix(r.Value("parameter"), "osc.active=")
		for _, c := range f.connections {
			if is && c.Target == of {
				c.Active = value != "0"
			}
		}
	case "new_pool":
		f.pools = append(f.pools, pool{name: r.Value("pool")})
	case "del_pool":
		f.pools = slices.DeleteFunc(f.pools, func(p pool) bool { return p.name == r.Value("pool") })
	case "add_pool", "remove_pool":
		for i := range f.pools {
			if p, ost := &f.pools[i], strings.TrimSuffix(r.Value("ost"), "_UUID"); p.name == r.Value("pool") {
				p.osts = slices.DeleteFunc(p.osts, func(o string) bool { return o == ost })
				if r.Event == "add_pool" {
					p.osts = append(p.osts, ost)
				}
			}
		}
	}
}

// know creates the connection to a target. An OST has only one connection to each MDT, for itself.
func (k *Kernel) know(f *follower, target string) {
	isMDT := strings.Contains(target, "-MDT")
	c := &Connection{Target: target, Active: true, MaxCreate: 20000}
	suffix := f.server[strings.LastIndex(f.server, "-")+1:]
	switch {
	case f.instance != "" && isMDT:
		c.Kind, c.Device, c.UUID = "mdc", target+"-mdc-"+f.instance, f.owner.(*Client).UUID
	case f.instance != "":
		c.Kind, c.Device, c.UUID = "osc", target+"-osc-"+f.instance, f.owner.(*Client).UUID
	case strings.HasPrefix(suffix, "OST"):
		if !isMDT {
			return
		}
		c.Kind, c.Device = "lwp", target+"-lwp-"+suffix
		c.UUID = c.Device + "_UUID"
	case isMDT:
		c.Kind, c.Device, c.UUID = "osp", target+"-osp-"+suffix, f.server+"-mdtlov_UUID"
	default:
		c.Kind, c.Device, c.UUID = "osp", target+"-osc-"+suffix, f.server+"-mdtlov_UUID"
	}
	if slices.ContainsFunc(f.connections, func(o *Connection) bool { return o.Device == c.Device }) {
		return
	}
	f.connections = append(f.connections, c)
	k.addDevice(c.Kind, c.Device, c.UUID, f.owner)
}

// hello is a connection's message to a target.
type hello struct {
	Target, UUID string
	NIDs         []string
	// Again is true for a connection that existed before.
	Again, Bye bool
}

// connect connects what is disconnected, and detects lost connections.
func (k *Kernel) connect(ctx context.Context, f *follower) {
	k.mutex.Lock()
	connections, mine := slices.Clone(f.connections), k.nids()
	k.mutex.Unlock()
	for _, c := range connections {
		k.mutex.Lock()
		nids, question := f.nids[c.Target], hello{Target: c.Target, UUID: c.UUID, NIDs: mine, Again: c.state() == full}
		skip := !c.Active
		k.mutex.Unlock()
		if skip {
			continue
		}
		err := k.ask(ctx, nids, "connect", question, nil)
		k.mutex.Lock()
		switch {
		case err == nil:
			c.become(full)
		case wire.Errno(err) == syscall.ENOTCONN && c.state() == full:
			// The target has evicted it, which it notices by a request.
			c.become(disconnected, connecting, evicted, recovering)
			c.shutdown = true
		default:
			c.become(disconnected)
			c.Attempts++
		}
		k.mutex.Unlock()
	}
}

// bye notifies all targets of the end of the connections.
func (k *Kernel) bye(ctx context.Context, f *follower) {
	for _, c := range f.connections {
		if c.works() {
			_ = k.ask(ctx, f.nids[c.Target], "connect", hello{Target: c.Target, UUID: c.UUID, Bye: true}, nil)
		}
	}
}

// imported returns the parameter import of a connection.
func (f *follower) imported(c *Connection) string {
	nids := make([]string, 0, 1)
	for _, nid := range f.nids[c.Target] {
		nids = append(nids, fmt.Sprintf("%q", nid))
	}
	return fmt.Sprintf(`import:
    name: %s
    target: %s_UUID
    state: %s
    connection:
       failover_nids: [ %s ]
       connection_attempts: %d
`, c.Device, c.Target, c.state(), strings.Join(nids, ", "), c.Attempts)
}
