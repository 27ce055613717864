package kernel

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// answers returns the handler of a request to the kernel's part.
func answers(op string) answering {
	return map[string]answering{
		// From other nodes.
		"register": with((*Kernel).onRegister), "config": with((*Kernel).onConfig), "filesystem": with((*Kernel).onFilesystem),
		"connect": with((*Kernel).onConnect), "statfs": with((*Kernel).onStatfs), "create": with((*Kernel).onCreate),
		"used": with((*Kernel).onUsed), "limits": with((*Kernel).onLimits), "pong": with((*Kernel).onPong),
		// From the programs that mount.
		"start-target": with((*Kernel).startTarget), "start-client": with((*Kernel).startClient), "serve": serve,
		"abandon": with((*Kernel).abandon), "stopped": with((*Kernel).onStopped),
		// From the tools.
		"configure": with((*Kernel).onConfigure), "add-net": with((*Kernel).onAddNet), "nets": with((*Kernel).onNets),
		"ping": with((*Kernel).onPing), "devices": with((*Kernel).onDevices), "params": with((*Kernel).onParams), "set": with((*Kernel).set),
		"set-permanent": with((*Kernel).onSetPermanent), "conf_param": with((*Kernel).onConfParam), "pool": with((*Kernel).onPool),
		"pools": with((*Kernel).onPools), "del_ost": with((*Kernel).onDelOST), "llog": with((*Kernel).onLog), "llogs": with((*Kernel).onLogs),
		"clients": with((*Kernel).onClients), "check": with((*Kernel).onCheck), "df": with((*Kernel).onDF), "find": with((*Kernel).onFind),
		"layout": with((*Kernel).onLayout), "set-layout": with((*Kernel).onSetLayout), "quota": with((*Kernel).onQuota),
		"project": with((*Kernel).onProject),
	}[op]
}

// Nothing is a request or response without content.
type Nothing struct{}

// mgs returns the management of this node. The mutex is held.
func (k *Kernel) mgs() (*management, error) {
	for _, t := range k.targets {
		if t.isMGS() {
			return t.kept.Management, nil
		}
	}
	return nil, errno(syscall.ENODEV)
}

// keep saves the MGT's changes before they are published.
func (k *Kernel) keep() {
	k.mutex.Lock()
	at := slices.IndexFunc(k.targets, (*target).isMGS)
	var t *target
	if at >= 0 {
		t = k.targets[at]
	}
	k.mutex.Unlock()
	if t != nil {
		t.save()
	}
}

func (k *Kernel) manage(do func(m *management) error) error {
	k.mutex.Lock()
	m, err := k.mgs()
	if err == nil {
		err = do(m)
	}
	k.mutex.Unlock()
	if err == nil {
		k.keep()
	}
	return err
}

func (k *Kernel) onRegister(_ context.Context, r registration) (Nothing, error) {
	return Nothing{}, k.manage(func(m *management) error { return m.register(r) })
}

func (k *Kernel) onFilesystem(_ context.Context, name string) (Nothing, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m, err := k.mgs()
	if err == nil && m.Filesystems[name] == nil {
		err = errno(syscall.EINVAL)
	}
	return Nothing{}, err
}

func (k *Kernel) onConfig(_ context.Context, question configurationOf) (configuration, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m, err := k.mgs()
	if err != nil {
		return configuration{}, err
	}
	fs := m.Filesystems[question.FSName]
	if fs == nil {
		return configuration{}, errno(syscall.ENOENT)
	}
	c := configuration{NIDs: fs.NIDs, Parameters: fs.Parameters}
	if log := fs.Logs[question.Log]; log != nil {
		c.Records = log.Records[min(question.After, len(log.Records)):]
	}
	return copied(c)
}

// copied returns a deep copy.
func copied[T any](of T) (T, error) {
	var out T
	content, err := json.Marshal(of)
	if err == nil {
		err = json.Unmarshal(content, &out)
	}
	return out, err
}

// targetOf finds a target of this node. The mutex is held.
func (k *Kernel) targetOf(name string) (*target, error) {
	for _, t := range k.targets {
		if t.name == name {
			return t, nil
		}
	}
	return nil, errno(syscall.ENODEV)
}

func (k *Kernel) onConnect(_ context.Context, h hello) (Nothing, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	t, err := k.targetOf(h.Target)
	if err != nil {
		return Nothing{}, err
	}
	local := len(h.NIDs) > 0 && slices.Contains(k.nids(), h.NIDs[0])
	return Nothing{}, t.hear(h, local)
}

func (k *Kernel) onStatfs(_ context.Context, name string) (Space, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	t, err := k.targetOf(name)
	if err != nil {
		return Space{}, err
	}
	return t.space(), nil
}

func (k *Kernel) onCreate(_ context.Context, question create) ([]Object, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	t, err := k.targetOf(question.MDT)
	if err != nil {
		return nil, err
	}
	return t.objects(question.Stripe)
}

func (k *Kernel) onUsed(_ context.Context, said told) (Nothing, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	t, err := k.targetOf(said.Target)
	if err == nil {
		t.kept.UsedKilobytes, t.kept.UsedObjects = said.Usage.Kilobytes, said.Usage.Objects
	}
	return Nothing{}, err
}

// serve takes over the mount made for a started target or client: the file of the mount and, for a client, its store.
func serve(ctx context.Context, k *Kernel, body json.RawMessage, files []*os.File) (any, error) {
	var number int
	if err := json.Unmarshal(body, &number); err != nil || len(files) == 0 {
		return nil, errno(syscall.EINVAL)
	}
	k.mutex.Lock()
	mount := k.waiting[number]
	delete(k.waiting, number)
	k.mutex.Unlock()
	ctx = context.WithoutCancel(ctx)
	switch m := mount.(type) {
	case *target:
		return Nothing{}, k.serveTarget(ctx, m, files[0])
	case *Client:
		return Nothing{}, k.serveClient(ctx, m, files[0], files[len(files)-1])
	}
	return nil, errno(syscall.ENOENT)
}

// abandon stops a started target or client that could not be mounted.
func (k *Kernel) abandon(ctx context.Context, number int) (Nothing, error) {
	k.mutex.Lock()
	mount := k.waiting[number]
	delete(k.waiting, number)
	k.mutex.Unlock()
	switch m := mount.(type) {
	case *target:
		k.stop(ctx, m)
	case *Client:
		k.mutex.Lock()
		k.removeDevices(m)
		k.mutex.Unlock()
		k.bye(ctx, &m.follower)
	}
	return Nothing{}, nil
}

// Unmounted is a notice of an unmount: before or after it, forced or not.
type Unmounted struct {
	Source, Path string
	Before       bool
	Force        bool
}

func (k *Kernel) onStopped(ctx context.Context, u Unmounted) (Nothing, error) {
	k.mutex.Lock()
	var stopped []chan struct{}
	for _, t := range k.targets {
		if t.device == u.Source && t.path == u.Path {
			t.force = t.force || u.Force
			stopped = append(stopped, t.stopped)
		}
	}
	for _, c := range k.clients {
		if c.source == u.Source && c.path == u.Path {
			stopped = append(stopped, c.stopped)
		}
	}
	k.mutex.Unlock()
	if u.Before {
		return Nothing{}, nil
	}
	for _, s := range stopped {
		select {
		case <-s:
		case <-ctx.Done():
			return Nothing{}, ctx.Err()
		}
	}
	return Nothing{}, nil
}

func (k *Kernel) onConfigure(ctx context.Context, _ Nothing) (Nothing, error) {
	return Nothing{}, k.configure(ctx)
}

func (k *Kernel) onAddNet(ctx context.Context, n NewNet) (Nothing, error) {
	return Nothing{}, k.add(ctx, n)
}

func (k *Kernel) onNets(context.Context, Nothing) ([]Net, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Clone(k.nets), nil
}

func (k *Kernel) onDevices(context.Context, Nothing) (string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.list(0), nil
}

func (k *Kernel) onParams(context.Context, Nothing) ([]Parameter, error) { return k.parameters(), nil }

// PoolChange is one lctl pool_* of an OST, or of the pool itself.
type PoolChange struct{ What, FSName, Pool, OST string }

func (k *Kernel) onPool(ctx context.Context, p PoolChange) (Nothing, error) {
	if err := k.manage(func(m *management) error { return m.pool(p.What, p.FSName, p.Pool, p.OST) }); err != nil {
		return Nothing{}, err
	}
	// It returns when the servers and clients of this node have received the change.
	return Nothing{}, k.until(ctx, func() bool {
		m, err := k.mgs()
		if err != nil {
			return true
		}
		for _, f := range k.knowing(p.FSName) {
			if log := m.Filesystems[p.FSName].Logs[f.log]; log != nil && f.seen < len(log.Records) {
				return false
			}
		}
		return true
	})
}

// knowing returns the clients and MDTs of a filesystem on this node.
func (k *Kernel) knowing(fsName string) []*follower {
	var all []*follower
	for _, c := range k.clients {
		if c.fsName == fsName {
			all = append(all, &c.follower)
		}
	}
	for _, t := range k.targets {
		if t.lov != nil && t.isMDT() && t.lov.fsName == fsName {
			all = append(all, t.lov)
		}
	}
	return all
}

// Pool is a pool and its OSTs.
type Pool struct {
	Name string
	OSTs []string
}

func (k *Kernel) onPools(_ context.Context, fsName string) ([]Pool, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	all := k.knowing(fsName)
	if len(all) == 0 {
		return nil, errno(syscall.ENOENT)
	}
	var pools []Pool
	for _, p := range all[0].pools {
		pools = append(pools, Pool{p.name, slices.Clone(p.osts)})
	}
	return pools, nil
}

func (k *Kernel) onConfParam(_ context.Context, assignment string) (Nothing, error) {
	return Nothing{}, k.manage(func(m *management) error { return m.confParam(assignment) })
}

func (k *Kernel) onSetPermanent(_ context.Context, assignment string) (Nothing, error) {
	return Nothing{}, k.manage(func(m *management) error {
		name, value, has := strings.Cut(assignment, "=")
		if !has || name == "" {
			return errno(syscall.EINVAL)
		}
		m.Permanent[name] = value
		return nil
	})
}

// DeleteOST is lctl del_ost.
type DeleteOST struct {
	OST    string
	DryRun bool
}

func (k *Kernel) onDelOST(_ context.Context, question DeleteOST) (all []Deletion, err error) {
	err = k.manage(func(m *management) error {
		deletions, wrong := m.delOST(question.OST, question.DryRun)
		if wrong == nil {
			all, wrong = copied(deletions)
		}
		return wrong
	})
	return all, err
}

func (k *Kernel) onLog(_ context.Context, name string) ([]Record, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m, err := k.mgs()
	if err != nil {
		return nil, err
	}
	log := m.files()[name]
	if log == nil {
		return nil, errno(syscall.ENOENT)
	}
	return slices.DeleteFunc(slices.Clone(log.Records), func(r Record) bool { return r.Event == "" || r.Cancelled }), nil
}

// onLogs returns the names of the logs, without that of set_param -P.
func (k *Kernel) onLogs(context.Context, Nothing) ([]string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	m, err := k.mgs()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.files())), func(name string) bool { return name == permanentLog }), nil
}

// Seen is a target in a client's configuration.
type Seen struct {
	Target string
	Active bool
}

// Mounted is a client of this node.
type Mounted struct {
	FSName, Instance, Source, Path string
	MDTs, OSTs                     []Seen
	Pools                          []Pool
}

func (k *Kernel) onClients(context.Context, Nothing) ([]Mounted, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var all []Mounted
	for _, c := range k.clients {
		m := Mounted{FSName: c.fsName, Instance: c.Instance, Source: c.source, Path: c.path}
		for kind, into := range map[string]*[]Seen{"MDT": &m.MDTs, "OST": &m.OSTs} {
			for _, connection := range c.targets(kind) {
				*into = append(*into, Seen{connection.Target, connection.Active})
			}
		}
		for _, p := range c.pools {
			m.Pools = append(m.Pools, Pool{p.name, p.osts})
		}
		all = append(all, m)
	}
	return copied(all)
}

// Checked is a connection of this node.
type Checked struct {
	Device, Kind          string
	Client, Active, Works bool
}

func (k *Kernel) onCheck(ctx context.Context, _ Nothing) ([]Checked, error) {
	k.mutex.Lock()
	followers := k.followers()
	k.mutex.Unlock()
	for _, f := range followers {
		k.connect(ctx, f)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var all []Checked
	add := func(f *follower) {
		for _, c := range f.connections {
			if kind := map[bool]string{true: "osc", false: c.Kind}[strings.Contains(c.Target, "-OST")]; kind == "osc" || kind == "mdc" {
				all = append(all, Checked{c.Device, kind, f.instance != "", c.Active, c.works()})
			}
		}
	}
	for _, t := range k.targets {
		if t.isMDT() {
			add(t.lov)
		}
	}
	for _, c := range k.clients {
		add(&c.follower)
	}
	slices.SortFunc(all, func(x, y Checked) int {
		if x.Kind != y.Kind {
			return strings.Compare(y.Kind, x.Kind)
		}
		return strings.Compare(x.Device, y.Device)
	})
	for _, d := range k.devices {
		if d != nil && d.kind == "mgc" && len(k.clients) > 0 {
			all = append(all, Checked{d.name, "mgc", false, true, true})
		}
	}
	return all, nil
}

// DF is a request for the space of a target from a client's view.
type DF struct{ Path, Target string }

// clientAt finds a client. The mutex is held.
func (k *Kernel) clientAt(path string) (*Client, error) {
	for _, c := range slices.Backward(k.clients) {
		if c.path == path {
			return c, nil
		}
	}
	return nil, errno(syscall.ENODEV)
}

func (k *Kernel) onDF(ctx context.Context, question DF) (Space, error) {
	k.mutex.Lock()
	c, err := k.clientAt(question.Path)
	k.mutex.Unlock()
	if err != nil {
		return Space{}, err
	}
	k.tell(ctx, c)
	for {
		k.mutex.Lock()
		connection := c.to(question.Target)
		var nids []string
		works, given := false, true
		if connection != nil {
			nids, works, given = c.nids[connection.Target], connection.works(), !connection.Active
		}
		k.mutex.Unlock()
		if given {
			return Space{}, errno(syscall.ENODEV)
		}
		var s Space
		if works && k.ask(ctx, nids, "statfs", question.Target, &s) == nil {
			return s, nil
		}
		if err := wait(ctx, beat); err != nil {
			return Space{}, err
		}
	}
}

// Place is a path below a mounted client.
type Place struct{ Mount, Path string }

// At is the layout at a path and at the root.
type At struct {
	Layout, Root Layout
	FSName       string
	Inode        uint64
	IsDirectory  bool
}

func (k *Kernel) place(p Place) (*Client, string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	c, err := k.clientAt(p.Mount)
	if err != nil {
		return nil, "", err
	}
	return c, filepath.Join(c.store, p.Path), nil
}

func (k *Kernel) onLayout(_ context.Context, p Place) (At, error) {
	c, path, err := k.place(p)
	if err != nil {
		return At{}, err
	}
	var stat syscall.Stat_t
	if err := syscall.Lstat(inside(path), &stat); err != nil {
		return At{}, err
	}
	return At{read(path), read(c.store), c.fsName, stat.Ino, stat.Mode&syscall.S_IFMT == syscall.S_IFDIR}, nil
}

// LayoutChange is a change by lfs at a path.
type LayoutChange struct {
	Place  Place
	Stripe *Stripe
	// New creates a file, Move gives a file other objects, and Directory creates a directory; Default is the default of its new
	// subdirectories.
	New, Move, Directory bool
	MDT                  *int
	Count                int
	Default              *Directories
}

func (k *Kernel) onSetLayout(ctx context.Context, change LayoutChange) (Nothing, error) {
	c, path, err := k.place(change.Place)
	if err != nil {
		return Nothing{}, err
	}
	if change.Stripe != nil && change.Stripe.Pool != "" {
		k.mutex.Lock()
		known := slices.ContainsFunc(c.pools, func(p pool) bool { return p.name == change.Stripe.Pool })
		k.mutex.Unlock()
		if !known {
			return Nothing{}, wire.Refuse(syscall.EINVAL, "no pool")
		}
	}
	if change.New || change.Move {
		return Nothing{}, k.objects(ctx, c, path, change)
	}
	if change.Directory {
		return Nothing{}, k.makeDirectory(c, path, change)
	}
	l := read(path)
	if change.Stripe != nil {
		l.Stripe = change.Stripe
	}
	if change.Default != nil {
		l.Default = change.Default
	}
	return Nothing{}, write(path, l)
}

// objects assigns objects to a new file, or to one that moves.
func (k *Kernel) objects(ctx context.Context, c *Client, path string, change LayoutChange) error {
	before := read(path)
	asked := change.Stripe
	if change.Move && asked == nil && before.Stripe != nil {
		same := *before.Stripe
		same.Offset = -1
		asked = &same
	}
	l, err := k.fileIn(ctx, c, filepath.Dir(path), asked)
	if err != nil {
		return err
	}
	if change.New {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		return errorOf(file.Close(), write(path, l))
	}
	l.MDT, l.Project, l.Gen = before.MDT, before.Project, before.Gen+2
	return write(path, l)
}

func errorOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) makeDirectory(c *Client, path string, change LayoutChange) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	l := c.directory(filepath.Dir(path), change.MDT)
	l.MDTs = nil
	if change.Count > 1 {
		l.MDTs = c.over(change.Count, l.MDT)
	}
	return write(path, l)
}

// Find is a request for the files with objects on some OSTs; no OSTs means all files.
type Find struct {
	Place Place
	OSTs  []int
	// Type is f, d, or empty for both.
	Type string
}

func (k *Kernel) onFind(_ context.Context, question Find) (found []string, err error) {
	_, top, err := k.place(question.Place)
	if err != nil {
		return nil, err
	}
	top = inside(top)
	err = filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return errorOf(map[bool]error{true: err}[path == top])
		}
		if question.Type == "f" && !entry.Type().IsRegular() || question.Type == "d" && !entry.IsDir() {
			return nil
		}
		has := func(o Object) bool { return slices.Contains(question.OSTs, o.OST) }
		on := len(question.OSTs) == 0 || slices.ContainsFunc(read(path).Objects, has)
		if rest, err := filepath.Rel(top, path); on && err == nil {
			found = append(found, rest)
		}
		return nil
	})
	return found, err
}

func (k *Kernel) onPing(ctx context.Context, nid string) (bool, error) {
	return true, k.ask(ctx, []string{nid}, "pong", Nothing{}, nil)
}

func (k *Kernel) onPong(context.Context, Nothing) (Nothing, error) { return Nothing{}, nil }
