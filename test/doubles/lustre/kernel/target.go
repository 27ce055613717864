package kernel

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// kept is the data of a target on its disk besides mountdata.
type kept struct {
	// Clients lists the connected clients, for which a restart waits.
	Clients []string
	// Objects holds the number of the last object, by OST.
	Objects map[string]int
	// UsedKilobytes and UsedObjects are the usage of files on an OST.
	UsedKilobytes, UsedObjects int64
	// Limits holds the limits of quotas, on MDT0000.
	Limits     map[string]Limits
	Management *management
}

// ahead is the number of object numbers that an MDT reserves at once, so that it need not save each.
const ahead = 1000

// export is a client of a target.
type export struct {
	uuid  string
	nids  []string
	local bool
}

// target is a mounted disk.
type target struct {
	kernel       *Kernel
	device, path string
	data         mountdata.Data
	name, label  string
	exclusive    *os.File
	kept         kept
	// saving is held by the writer to the disk.
	saving sync.Mutex
	saved  string
	// files holds the logs of an MGT that are on the disk.
	files          map[string][]byte
	size           size
	objectsGiven   map[string]int
	exports        []export
	lov, light     *follower
	next           int
	status         string
	started        time.Time
	duration       time.Duration
	expected, back []string
	stopped        chan struct{}
	force          bool
}

// size holds the sizes of the ext4.
type size struct{ kilobytes, free, reserved, inodes, freeInodes int64 }

// keeping is the file in CONFIGS with the double's data.
const keeping = "double"

func (t *target) isMDT() bool { return t.data.Flags&mountdata.MDT != 0 }
func (t *target) isMGS() bool { return t.data.Flags&mountdata.MGS != 0 }
func (t *target) serves() bool {
	return t.data.Flags&(mountdata.MDT|mountdata.OST) != 0
}

func (t *target) followers() []*follower {
	var all []*follower
	for _, f := range []*follower{t.lov, t.light} {
		if f != nil {
			all = append(all, f)
		}
	}
	return all
}

// StartTarget is a request to mount a target.
type StartTarget struct {
	Device, Path string
	// Free is true if the device is not in the mount table: a target on it is about to end.
	Free bool
}

// Started is a mount that has to be served.
type Started struct {
	Number  int
	Options string
}

func (k *Kernel) startTarget(ctx context.Context, question StartTarget) (Started, error) {
	if err := k.configure(ctx); err != nil {
		return Started{}, err
	}
	same := func() *target {
		for _, t := range k.targets {
			if t.device == question.Device {
				return t
			}
		}
		return nil
	}
	if question.Free {
		patient, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_ = k.until(patient, func() bool { return same() == nil })
	}
	k.mutex.Lock()
	running := same() != nil
	k.mutex.Unlock()
	if running {
		return Started{}, errno(syscall.EALREADY)
	}
	t := &target{
		kernel: k, device: question.Device, path: question.Path, stopped: make(chan struct{}), started: time.Now(), status: "INACTIVE", next: 1,
	}
	if err := t.open(); err != nil {
		return Started{}, err
	}
	if err := k.start(ctx, t); err != nil {
		_ = t.exclusive.Close()
		return Started{}, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return Started{k.number(t), t.options()}, nil
}

// open reads the disk and opens it exclusively.
func (t *target) open() error {
	data, label, found, err := mountdata.Of(t.device)
	if err != nil {
		return err
	}
	if !found {
		return wire.Refuse(syscall.ENODEV, "%s has not been formatted with mkfs.lustre or the backend filesystem type is not supported by this tool", t.device)
	}
	t.data, t.label, t.name = data, label, label
	if at := len(label) - 8; at > 0 {
		t.name = label[:at] + "-" + label[at+1:]
	}
	if t.data.Flags&mountdata.NeedsIndex != 0 && t.serves() {
		return wire.Refuse(syscall.EINVAL, "the double starts no target without an index")
	}
	content, err := mountdata.ReadFile(t.device, keeping)
	if err != nil {
		return err
	}
	if len(content) > 0 {
		if err := json.Unmarshal(content, &t.kept); err != nil {
			return err
		}
	}
	t.saved = string(content)
	t.objectsGiven = maps.Clone(t.kept.Objects)
	if t.kept.Objects == nil {
		t.kept.Objects, t.objectsGiven = map[string]int{}, map[string]int{}
	}
	if t.isMGS() && t.kept.Management == nil {
		if t.kept.Management, err = managementOf(t.device); err != nil {
			return err
		}
	}
	// The kernel does the same: no other program may open the disk exclusively.
	if t.exclusive, err = os.OpenFile(t.device, os.O_RDWR|syscall.O_EXCL, 0); err != nil {
		return wire.Refuse(syscall.EBUSY, "")
	}
	// An image in a file can't be opened in this way, so it is locked. A disk is not locked, because the kernel does not lock it, but udev and
	// the agent do.
	if info, err := t.exclusive.Stat(); err == nil && info.Mode().IsRegular() {
		if err := syscall.Flock(int(t.exclusive.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = t.exclusive.Close()
			return wire.Refuse(syscall.EBUSY, "")
		}
	}
	t.size, err = sizeOf(t.exclusive)
	return err
}

// sizeOf reads the superblock (kernel Documentation/filesystems/ext4/super.rst).
func sizeOf(file *os.File) (size, error) {
	super := make([]byte, 1024)
	if _, err := file.ReadAt(super, 1024); err != nil {
		return size{}, err
	}
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint32(super[at:])) }
	block := int64(1) << number(24)
	const used = 1528 // usage of a new target of the real Lustre
	free := number(12) * block
	return size{free + used, free, number(8) * block, number(0), number(16)}, nil
}

func (t *target) mgsNIDs() []string {
	if t.isMGS() {
		return t.kernel.nids()
	}
	var all []string
	for parameter := range strings.FieldsSeq(t.data.Parameters) {
		if list, is := strings.CutPrefix(parameter, "mgsnode="); is {
			all = append(all, strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ':' })...)
		}
	}
	return all
}

// start registers a target with its MGS, and creates its devices.
func (k *Kernel) start(ctx context.Context, t *target) error {
	k.mutex.Lock()
	mgs, nids := t.mgsNIDs(), k.nids()
	t.begin(mgs)
	if slices.ContainsFunc(k.targets, func(o *target) bool { return o.name == t.name }) {
		k.mutex.Unlock()
		return wire.Refuse(syscall.EALREADY, "") // the kernel already has a device with this name; the MGS is not asked
	}
	if t.isMGS() {
		if slices.ContainsFunc(k.targets, func(o *target) bool { return o.isMGS() }) {
			k.mutex.Unlock()
			return wire.Refuse(syscall.EALREADY, "")
		}
		k.targets = append(k.targets, t)
	}
	k.mutex.Unlock()
	err := k.register(ctx, t, mgs, nids)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if err != nil {
		k.targets = slices.DeleteFunc(k.targets, func(o *target) bool { return o == t })
		return err
	}
	if !slices.Contains(k.targets, t) {
		k.targets = append(k.targets, t)
	}
	k.devicesOf(t, mgs)
	return nil
}

// begin records the awaited clients before the target becomes visible, because saving it later would lose them. It creates the followers of
// the configuration: an MDT has a log of its own, and an OST finds MDTs in the log of clients.
func (t *target) begin(mgs []string) {
	if len(t.kept.Clients) > 0 {
		t.status, t.expected = "WAITING_FOR_CLIENTS", slices.Clone(t.kept.Clients)
		if t.isMDT() {
			t.status = "WAITING"
		}
	}
	if !t.serves() {
		return
	}
	t.lov = &follower{owner: t, fsName: t.data.FSName, server: t.name, mgs: mgs, log: t.data.FSName + "-client"}
	if t.isMDT() {
		t.lov.log = t.name
		t.light = &follower{owner: t, server: t.name, mgs: mgs}
	}
}

// register registers the target with the MGS, and records this on the disk.
func (k *Kernel) register(ctx context.Context, t *target, mgs, nids []string) error {
	if strings.Contains(t.label, "=") {
		return wire.Refuse(syscall.EINVAL, "the double plays no writeconf")
	}
	if t.serves() {
		r := registration{t.data.FSName, t.name, t.data.Index, strings.Contains(t.label, ":"), nids}
		// The MGS writes a registration to its disk before it answers. A target that does not wait for that would find its own index in use.
		if err := k.askFor(ctx, registers, mgs, "register", r, nil); err != nil {
			var refused *wire.Error
			if !errors.As(err, &refused) || refused.Errno == syscall.ENODEV {
				return errno(syscall.EIO) // there is no MGS
			}
			return err
		}
	}
	if t.data.Flags&mountdata.Update == 0 && t.label == t.name {
		return nil
	}
	t.saving.Lock()
	defer t.saving.Unlock()
	t.data.Flags &^= mountdata.Update
	t.label = t.name
	return mountdata.Register(t.device, t.label, t.data)
}

// devicesOf creates the devices of a target in Lustre's order.
func (k *Kernel) devicesOf(t *target, mgs []string) {
	add := func(kind, name, uuid string) { k.addDevice(kind, name, uuid, t) }
	add("osd-ldiskfs", t.name+"-osd", t.name+"-osd_UUID")
	if t.isMGS() {
		add("mgs", "MGS", "MGS")
	}
	if len(mgs) > 0 {
		add("mgc", "MGC"+mgs[0], uuid())
	}
	suffix := t.name[strings.LastIndex(t.name, "-")+1:]
	if t.isMDT() {
		add("mds", "MDS", "MDS_uuid")
		add("lod", t.name+"-mdtlov", t.name+"-mdtlov_UUID")
		add("mdt", t.name, t.name+"_UUID")
		mdd := t.data.FSName + "-MDD" + suffix[3:]
		add("mdd", mdd, mdd+"_UUID")
		if t.data.Index == 0 {
			qmt := t.data.FSName + "-QMT0000"
			add("qmt", qmt, qmt+"_UUID")
		}
	} else if t.serves() {
		add("ost", "OSS", "OSS_uuid")
		add("obdfilter", t.name, t.name+"_UUID")
	}
}

// firstLook reads the whole configuration at once, like a mount; later changes take their time.
func (k *Kernel) firstLook(ctx context.Context, t *target) {
	for _, f := range t.followers() {
		_ = k.follow(ctx, f, 0)
	}
	if t.light != nil {
		k.mutex.Lock()
		name := t.data.FSName + "-MDT0000"
		c := &Connection{Target: name, Active: true, Kind: "lwp", Device: name + "-lwp-" + t.name[strings.LastIndex(t.name, "-")+1:]}
		c.UUID = c.Device + "_UUID"
		t.light.connections, t.light.nids = []*Connection{c}, t.lov.nids
		k.addDevice(c.Kind, c.Device, c.UUID, t)
		k.mutex.Unlock()
	}
}

func (t *target) options() string {
	options := []string{"svname=" + t.name}
	if t.isMGS() {
		options = append(options, "mgs")
	}
	for parameter := range strings.FieldsSeq(t.data.Parameters) {
		if strings.HasPrefix(parameter, "mgsnode=") {
			options = append(options, parameter)
		}
	}
	return strings.Join(append(options, "osd=osd-ldiskfs", t.data.MountOptions), ",")
}

// recover continues the recovery after a restart.
func (t *target) recover() {
	if len(t.expected) == 0 || t.status == "COMPLETE" {
		return
	}
	if t.status == "WAITING" && t.lov.read && t.notReady() == "" {
		t.status = "WAITING_FOR_CLIENTS"
	}
	over := len(t.back) == len(t.expected) && t.status != "WAITING"
	if over || time.Since(t.started) > window {
		t.status, t.duration = "COMPLETE", time.Since(t.started)
	}
}

// notReady lists the other MDTs that are down.
func (t *target) notReady() string {
	var away []string
	for _, c := range t.lov.connections {
		if strings.Contains(c.Target, "-MDT") && !c.works() {
			away = append(away, c.Target[len(c.Target)-4:])
		}
	}
	return strings.Join(away, " ")
}

// recovery returns the parameter recovery_status.
func (t *target) recovery() string {
	switch t.status {
	case "WAITING":
		return fmt.Sprintf("status: WAITING\nnon-ready MDTs:  %s\nrecovery_start: %d\ntime_waited: %d\n",
			t.notReady(), t.started.Unix(), int(time.Since(t.started).Seconds()))
	case "COMPLETE":
		return fmt.Sprintf("status: COMPLETE\nrecovery_start: %d\nrecovery_duration: %d\ncompleted_clients: %d/%d\nreplayed_requests: 0\nlast_transno: %d\nVBR: DISABLED\nIR: DISABLED\n",
			t.started.Unix(), int(t.duration.Seconds()), len(t.back), len(t.expected), 1<<32)
	}
	return "status: " + t.status + "\n"
}

// hear handles a client's message that it is connected or leaves.
func (t *target) hear(h hello, local bool) error {
	at := slices.IndexFunc(t.exports, func(e export) bool { return e.uuid == h.UUID })
	if h.Bye {
		if at >= 0 {
			t.exports = slices.Delete(t.exports, at, at+1)
		}
		return nil
	}
	if at >= 0 {
		return nil
	}
	known := slices.Contains(t.expected, h.UUID)
	switch {
	case t.status != "COMPLETE" && known && !slices.Contains(t.back, h.UUID):
		t.back = append(t.back, h.UUID)
	case t.status != "COMPLETE" && t.status != "INACTIVE" && !known && !strings.Contains(h.UUID, "-lwp-"):
		return errno(syscall.EBUSY)
	case h.Again && !known:
		return errno(syscall.ENOTCONN)
	}
	t.exports = append(t.exports, export{h.UUID, h.NIDs, local})
	return nil
}

// save writes changes.
func (t *target) save() {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.kernel.mutex.Lock()
	t.remember(false)
	// The usage of files is reported repeatedly, so it is saved only at the end.
	lasting := t.kept
	lasting.UsedKilobytes, lasting.UsedObjects = 0, 0
	content, err := json.Marshal(lasting)
	same := string(content) == t.saved
	ended := !slices.Contains(t.kernel.targets, t)
	t.kernel.mutex.Unlock()
	if err != nil || same || ended {
		return
	}
	logs := t.logs()
	changed := map[string][]byte{keeping: content}
	for name, log := range logs {
		if !bytes.Equal(t.files[name], log) {
			changed[name] = log
		}
	}
	if mountdata.WriteFiles(t.device, changed) == nil {
		t.saved, t.files = string(content), logs
	}
}

// logs returns the files of an MGT's logs in the real format.
func (t *target) logs() map[string][]byte {
	t.kernel.mutex.Lock()
	defer t.kernel.mutex.Unlock()
	out := map[string][]byte{}
	if t.kept.Management != nil {
		for name, log := range t.kept.Management.files() {
			out[name] = log.File()
		}
	}
	return out
}

// remember records the clients that a restart waits for. A clean stop waits only for the clients of other nodes, because those of its own
// node don't join the recovery. A forced stop waits for none.
func (t *target) remember(stopping bool) {
	if t.status != "COMPLETE" && len(t.expected) > 0 {
		return
	}
	t.kept.Clients = nil
	for _, e := range t.exports {
		isServer := strings.HasSuffix(e.uuid, "-mdtlov_UUID")
		if strings.Contains(e.uuid, "-lwp-") || e.local && (stopping || !isServer) || t.force {
			continue
		}
		t.kept.Clients = append(t.kept.Clients, e.uuid)
	}
	slices.Sort(t.kept.Clients)
}

// serveTarget serves the mount until it is unmounted.
func (k *Kernel) serveTarget(ctx context.Context, t *target, file *os.File) error {
	k.firstLook(ctx, t)
	server, err := serveFUSE(&root{target: t}, file, "lustre_tgt", t.device)
	if err != nil {
		return err
	}
	go func() {
		server.Wait()
		k.stop(context.WithoutCancel(ctx), t)
	}()
	return nil
}

// stop stops a target.
func (k *Kernel) stop(ctx context.Context, t *target) {
	for _, f := range t.followers() {
		k.bye(ctx, f)
	}
	t.saving.Lock()
	defer t.saving.Unlock()
	k.mutex.Lock()
	t.remember(true)
	content, err := json.Marshal(t.kept)
	k.targets = slices.DeleteFunc(k.targets, func(o *target) bool { return o == t })
	k.removeDevices(t)
	k.mutex.Unlock()
	if err == nil && string(content) != t.saved {
		_ = mountdata.WriteFiles(t.device, map[string][]byte{keeping: content})
	}
	_ = t.exclusive.Close()
	close(t.stopped)
}

// serveFUSE serves a mount that another process has made.
func serveFUSE(node fs.InodeEmbedder, file *os.File, name, source string) (*fuse.Server, error) {
	// The file belongs to the server from now on.
	number, err := syscall.Dup(int(file.Fd()))
	if err := errorOf(err, file.Close()); err != nil {
		return nil, err
	}
	server, err := fuse.NewServer(fs.NewNodeFS(node, &fs.Options{}), fmt.Sprintf("/dev/fd/%d", number), &fuse.MountOptions{
		AllowOther: true, Name: name, FsName: source,
	})
	if err != nil {
		return nil, err
	}
	go server.Serve()
	return server, nil
}

// root is the directory of a mounted target: it is empty, and reports the size of the target.
type root struct {
	fs.Inode
	target *target
}

var _ fs.NodeStatfser = &root{}

// Statfs is df of a target.
func (r *root) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	k := r.target.kernel
	k.mutex.Lock()
	defer k.mutex.Unlock()
	r.target.space().fill(out)
	return 0
}

// Space is the size and the usage of a target.
type Space struct{ Kilobytes, Used, Available, Inodes, InodesUsed int64 }

func (t *target) space() Space {
	used := t.size.kilobytes - t.size.free + t.kept.UsedKilobytes
	return Space{
		t.size.kilobytes, used, max(t.size.kilobytes-used-t.size.reserved, 0), t.size.inodes,
		t.size.inodes - t.size.freeInodes + t.kept.UsedObjects,
	}
}

func (s Space) fill(out *fuse.StatfsOut) {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail = uint64(s.Kilobytes/4), uint64((s.Kilobytes-s.Used)/4), uint64(s.Available/4)
	out.Files, out.Ffree = uint64(s.Inodes), uint64(s.Inodes-s.InodesUsed)
}
