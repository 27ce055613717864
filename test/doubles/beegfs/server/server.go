// Package server is the double of beegfs-meta and beegfs-storage, 7 and 8: it refuses what they refuse, registers, and reports until it is
// asked to end.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/doubles/beegfs/disk"
	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/program"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// errShutdown means that a server was asked to end before it was up.
var errShutdown = errors.New("told to end")

// daemon is one server. The differences between a metadata and a storage server are in its functions.
type daemon struct {
	major       int
	kind        string // meta or storage
	values      option.Values
	log         *program.Log
	secret      uint64
	management  string // host:port
	directories []string
	node        wire.Node
	targets     []wire.Target
	space       map[int]string // directories by target
	namespace   *namespace
	open        openFiles
	resync      resyncs
}

// role is a kind of server.
type role struct {
	kind, title, file, port string
	number                  int
	table                   option.Table
	directories             func(option.Values) ([]string, error)
	prepare                 func(*daemon) error
	lockFailure             func(directory string) string
}

func (r role) run(ctx context.Context, arguments []string, output, errs io.Writer) int {
	_, major := program.Version()
	fail := func(err error) int { return program.Fail(errs, err, r.title, r.file) }
	d, err := r.configure(major, arguments)
	if err != nil {
		return fail(err)
	}
	locks, err := r.lock(d, errs)
	if err != nil {
		return fail(err)
	}
	defer func() {
		for _, lock := range locks {
			_ = lock.Close()
		}
	}()
	if d.log, err = program.NewLog(d.values, output); err != nil {
		return fail(err)
	}
	if err := r.identify(d); err != nil {
		return fail(err)
	}
	if err := r.prepare(d); err != nil {
		return fail(err)
	}
	if err := d.numbered(); err != nil {
		return fail(err)
	}
	ctx, stop := program.UntilSignal(ctx)
	defer stop()
	code, err := d.serve(ctx, errs)
	if err != nil {
		code = fail(err)
		d.log.Say(0, "App", "%s", err)
	}
	return code
}

// configure reads the options and binds to the NUMA zone, in the same order as the servers.
func (r role) configure(major int, arguments []string) (*daemon, error) {
	values, err := option.Daemon(r.table, arguments)
	if err != nil {
		return nil, err
	}
	if chooser := values.Get("tuneTargetChooser", "randomized"); !slices.Contains(option.Choosers(), chooser) {
		return nil, &option.Error{Text: "Invalid storage target chooser specified: " + chooser}
	}
	filters, err := option.Interfaces(values)
	if err != nil {
		return nil, err
	}
	d := &daemon{major: major, kind: r.kind, values: values, space: map[int]string{}}
	if d.secret, err = option.Secret(major, values); err != nil {
		return nil, err
	}
	if file := values["sysTargetAttachmentFile"]; file != "" {
		if _, err := os.Stat(file); err != nil {
			return nil, &option.Error{Text: "sysTargetAttachmentFile not found: " + file}
		}
	}
	if err := bind(values["tuneBindToNumaZone"]); err != nil {
		return nil, err
	}
	if err := program.Daemonize(values); err != nil {
		return nil, err
	}
	if d.directories, err = r.directories(values); err != nil {
		return nil, err
	}
	tcp, udp, err := option.Ports(major, values, r.port, r.number)
	if err != nil {
		return nil, err
	}
	management, _, err := option.Ports(major, values, "Mgmtd", 8008)
	if err != nil {
		return nil, err
	}
	d.management = net.JoinHostPort(values["sysMgmtdHost"], strconv.Itoa(management))
	d.node = wire.Node{Type: r.kind, TCP: tcp, UDP: udp, Interfaces: wire.Usable(major, filters)}
	return d, nil
}

// bind pins the process to a NUMA zone's CPUs.
func bind(zone string) error {
	if zone == "" {
		return nil
	}
	failed := &option.Error{Text: "Unable to bind to this NUMA zone: " + zone}
	cpus, err := filepath.Glob(filepath.Join("/sys/devices/system/node", "node"+zone, "cpu[0-9]*"))
	if err != nil || len(cpus) == 0 {
		return failed
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		number := 0
		if _, err := fmt.Sscanf(filepath.Base(cpu), "cpu%d", &number); err == nil {
			set.Set(number)
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return failed
	}
	return nil
}

// lock locks every directory for this process.
func (r role) lock(d *daemon, errs io.Writer) ([]*os.File, error) {
	var locks []*os.File
	for _, directory := range d.directories {
		lock, err := disk.Lock(directory)
		if err != nil {
			disk.TellLocked(errs, directory)
			return locks, &option.Error{Text: r.lockFailure(directory)}
		}
		locks = append(locks, lock)
	}
	return locks, nil
}

// identify determines the server's identity, its management service and its network.
func (r role) identify(d *daemon) error {
	first := d.directories[0]
	alias, err := d.textID()
	if err != nil {
		return err
	}
	number, err := disk.Number(first, disk.NodeNumFile)
	if err != nil {
		return &option.Error{Text: "Unable to read " + filepath.Join(first, disk.NodeNumFile) + ": " + err.Error()}
	}
	d.node.ID, d.node.Alias = number, alias
	if d.values["sysMgmtdHost"] == "" {
		return &option.Error{Text: "Management host undefined"}
	}
	if len(d.node.Interfaces) == 0 {
		return &option.Error{Text: "Couldn't find any usable NIC"}
	}
	return nil
}

// textID returns the server's text id, which a directory keeps forever; servers of 8 have none.
func (d *daemon) textID() (string, error) {
	if d.major >= 8 {
		return "", nil
	}
	alias, err := disk.Alias(d.directories[0])
	if err != nil {
		return "", err
	}
	for _, directory := range d.directories {
		if err := disk.Origin(directory, alias); err != nil {
			return "", err
		}
	}
	return alias, nil
}

// numbered refuses directories without a number: BeeGFS would let the management service choose one, which the product must never rely on.
func (d *daemon) numbered() error {
	first := d.directories[0]
	if d.node.ID == 0 {
		return &option.Error{Text: "No numeric node ID in " + filepath.Join(first, disk.NodeNumFile) + ": this double gives out none"}
	}
	for _, directory := range d.directories[1:] {
		if other, err := disk.Number(directory, disk.NodeNumFile); err != nil || other != d.node.ID && other != 0 {
			return &option.Error{Text: fmt.Sprintf("Directory of another server: %s (numeric node ID %d instead of %d)", directory, other, d.node.ID)}
		}
	}
	return nil
}

// serve registers, listens and reports until the end.
func (d *daemon) serve(ctx context.Context, errs io.Writer) (int, error) {
	datagrams, err := wire.ListenUDP(ctx, d.node.UDP)
	if err != nil {
		d.log.Say(0, "RegDGramLis", "UDP socket: Unable to bind to port: %d. SysErr: %s", d.node.UDP, option.SysErr(err))
		d.log.Say(0, "App", "Unable to initialize the socket")
		fmt.Fprint(errs, "\nUnrecoverable error: Unable to initialize the socket\n\n")
		return program.Runtime, nil
	}
	defer datagrams.Close()
	d.log.Say(3, "RegDGramLis", "Listening for UDP datagrams: any Port %d", d.node.UDP)
	d.log.Say(1, "App", "Waiting for beegfs-mgmtd@%s...", d.management)
	if err := d.register(ctx); err != nil {
		if errors.Is(err, errShutdown) {
			d.log.Say(1, "App", "Downloading target states from management node failed. Shutting down...")
			return program.Initialization, nil
		}
		return 0, err
	}
	listener, err := wire.ListenTCP(ctx, d.node.TCP)
	if err != nil {
		return d.log.PortInUse(err), nil
	}
	d.log.Say(3, "ConnAccept", "Listening for TCP connections: Port %d", d.node.TCP)
	version, _ := program.Version()
	d.log.Say(1, "App", "Version: %s", version)
	d.log.Say(2, "App", "LocalNode: beegfs-%s %s [ID: %d]", d.kind, d.node.Alias, d.node.ID)
	d.log.Interfaces(d.node.Interfaces)
	go wire.Serve(listener, d.secret, func(peer string) {
		d.log.Say(2, "AuthenticateChannel incoming", "Peer sent wrong authentication: %s", peer)
	}, d.answer)
	d.sessions()
	d.report(ctx)
	_ = listener.Close()
	d.log.Say(1, "App::signalHandler", "Received a SIGTERM. Shutting down...")
	if err := d.storeSessions(); err != nil {
		return program.Runtime, nil
	}
	d.log.Say(1, "App", "All components stopped. Exiting now!")
	return 0, nil
}

// retry repeats try until it works, is refused permanently, or the server is asked to end.
func (d *daemon) retry(ctx context.Context, what string, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		if refused, is := errors.AsType[*wire.RefusedError](err); is {
			d.log.Say(1, "InternodeSyncer.cpp:577", "%s rejected. Will keep on trying. error: %s", what, refused.Text)
		} else {
			d.log.Say(0, "Messaging (RPC)", "Communication error: %s", err)
		}
		select {
		case <-ctx.Done():
			return errShutdown
		case <-time.After(time.Second):
		}
	}
}

// errRejected is the error for a target number that belongs to another directory: the server ends, as in 7.4.6.
var errRejected = &option.Error{Text: "Target pre-registration at management node failed"}

func (d *daemon) register(ctx context.Context) error {
	if d.major == 7 {
		for _, target := range d.targets {
			err := d.retry(ctx, "Target ID reservation", func() error {
				err := wire.Ask(ctx, d.management, d.secret, "reserve-target", target, nil)
				if _, refused := errors.AsType[*wire.RefusedError](err); refused {
					return nil // checked below: a retry would not help
				}
				return err
			})
			if err != nil {
				return err
			}
			if err := wire.Ask(ctx, d.management, d.secret, "reserve-target", target, nil); err != nil {
				d.log.Say(0, "App", "Target ID reservation request was rejected by this mgmt node: %s", d.management)
				return errRejected
			}
		}
	}
	err := d.retry(ctx, "Node registration", func() error {
		return wire.Ask(ctx, d.management, d.secret, "register-node", d.node, nil)
	})
	if err != nil {
		return err
	}
	d.log.Say(2, "Register node", "Node registration successful.")
	for _, target := range d.targets {
		err := d.retry(ctx, fmt.Sprintf("Storage target registration of target %d", target.ID), func() error {
			return wire.Ask(ctx, d.management, d.secret, "register-target", target, nil)
		})
		if err != nil {
			return err
		}
		// From now on the management service determines the pool.
		_ = os.Remove(filepath.Join(d.space[target.ID], disk.PoolFile))
	}
	d.log.Say(3, "App", "Registration and management info download complete.")
	return nil
}

// reportInterval returns the interval of a server's reports: a third of the offline timeout, or sysUpdateTargetStatesSecs.
func reportInterval(values option.Values) time.Duration {
	if seconds := values.Int("sysUpdateTargetStatesSecs", 0); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return time.Duration(values.Int("sysTargetOfflineTimeoutSecs", 180)) * time.Second / 3
}

// report reports the targets to the management service until the end.
func (d *daemon) report(ctx context.Context) {
	for {
		report := wire.Report{Type: d.kind, Node: d.node.ID, Targets: map[int]wire.Space{}, Unclean: d.resync.unclean}
		for id, directory := range d.space {
			if space, err := disk.Space(directory); err == nil {
				report.Targets[id] = space
			}
		}
		if err := wire.Ask(ctx, d.management, d.secret, "report", report, nil); err != nil && ctx.Err() == nil {
			d.log.Say(1, "InternodeSyncer", "Pushing target states to the management node failed: %s", err)
		} else if err == nil {
			d.resync.unclean = nil
			d.checkBuddies(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportInterval(d.values)):
		}
	}
}
