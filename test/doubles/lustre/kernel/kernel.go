// Package kernel is the double of Lustre's kernel part: one process for each node, which serves the targets and clients mounted there,
// implements LNet, and answers the tools. Nodes reach each other at the addresses in their NIDs. The data of a target is on its own ext4,
// so that it moves with the disk and is lost with it.
package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Environment variables, each with a default.
const (
	// directoryVariable sets the directory of the node's socket and log: several nodes on one machine have one each.
	directoryVariable = "LUSTRE_DOUBLE_DIRECTORY"
	// settleVariable sets how long a change of the configuration takes to reach servers and clients.
	settleVariable = "LUSTRE_DOUBLE_SETTLE"
	portVariable   = "LUSTRE_DOUBLE_PORT"
)

const (
	// beat is the interval at which connections are checked.
	beat = 200 * time.Millisecond
	// patience is how long one node waits for the response of another.
	patience = 2 * time.Second
	// registers is how long a target waits for the MGS.
	registers = time.Minute
	// window is how long a target waits for its clients.
	window = 300 * time.Second
)

func variable(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// Directory returns the node's directory.
func Directory() string { return variable(directoryVariable, "/run/lustre-double") }

// Socket returns the path of the socket for the node's tools.
func Socket() string { return filepath.Join(Directory(), "kernel") }

func port() string { return variable(portVariable, "988") }

// device is one line of lctl dl.
type device struct {
	kind, name, uuid string
	// owners holds the mounts that it belongs to.
	owners []any
}

// Kernel is Lustre's part of a node's kernel.
type Kernel struct {
	mutex  sync.Mutex
	settle time.Duration
	nets   []Net
	// devices may have empty slots.
	devices    []*device
	targets    []*target
	clients    []*Client
	waiting    map[int]any
	lastNumber int
	jobs       string
}

// Serve runs the kernel's part of this node. It returns when it can't continue.
func Serve(ctx context.Context) error {
	settle, err := time.ParseDuration(variable(settleVariable, "8s"))
	if err != nil {
		return fmt.Errorf("%s: %w", settleVariable, err)
	}
	k := &Kernel{settle: settle, waiting: map[int]any{}, jobs: "disable"}
	if err := os.MkdirAll(Directory(), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(Socket()+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("the node has one already: %w", err)
	}
	if _, err := fmt.Fprintln(lock, os.Getpid()); err != nil {
		return err
	}
	_ = os.Remove(Socket())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", Socket())
	if err != nil {
		return err
	}
	go k.beats(ctx)
	wire.Serve(ctx, listener, k.answer)
	return nil
}

// beats checks all connections periodically.
func (k *Kernel) beats(ctx context.Context) {
	for ticker := time.NewTicker(beat); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.beat(ctx)
		}
	}
}

func (k *Kernel) beat(ctx context.Context) {
	k.mutex.Lock()
	followers := k.followers()
	k.mutex.Unlock()
	for _, f := range followers {
		// A follower whose MGS is down continues with its last configuration.
		_ = k.follow(ctx, f, k.settle)
		k.connect(ctx, f)
	}
	k.mutex.Lock()
	targets, clients := slices.Clone(k.targets), slices.Clone(k.clients)
	for _, t := range targets {
		t.recover()
	}
	k.mutex.Unlock()
	for _, t := range targets {
		t.save()
	}
	for _, c := range clients {
		k.tellUsage(ctx, c)
	}
}

// followers returns all followers of the node, those of the last mounted target first, in which order the real kernel notifies them. The
// mutex is held.
func (k *Kernel) followers() []*follower {
	var all []*follower
	for _, t := range slices.Backward(k.targets) {
		all = append(all, t.followers()...)
	}
	for _, c := range k.clients {
		all = append(all, &c.follower)
	}
	return all
}

// answer handles a request of a tool or of another node.
func (k *Kernel) answer(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, error) {
	a := answers(op)
	if a == nil {
		return nil, wire.Refuse(syscall.ENOTTY, "the double does not know %s", op)
	}
	return a(ctx, k, body, files)
}

type answering func(ctx context.Context, k *Kernel, body json.RawMessage, files []*os.File) (any, error)

// with decodes the request.
func with[Q, A any](do func(k *Kernel, ctx context.Context, question Q) (A, error)) answering {
	return func(ctx context.Context, k *Kernel, body json.RawMessage, _ []*os.File) (any, error) {
		var question Q
		if err := json.Unmarshal(body, &question); err != nil {
			return nil, err
		}
		return do(k, ctx, question)
	}
}

// ask sends a request to another node, or to this one.
func (k *Kernel) ask(ctx context.Context, nids []string, op string, question, result any) error {
	return k.askFor(ctx, patience, nids, op, question, result)
}

// askFor is ask with another time limit.
func (k *Kernel) askFor(ctx context.Context, limit time.Duration, nids []string, op string, question, result any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := error(syscall.EHOSTUNREACH)
	for _, nid := range nids {
		if k.local(nid) {
			body, wrong := json.Marshal(question)
			if wrong != nil {
				return wrong
			}
			answer, wrong := k.answer(ctx, op, body, nil)
			if wrong != nil {
				err = wrong
				continue
			}
			body, wrong = json.Marshal(answer)
			if wrong != nil || result == nil {
				return wrong
			}
			return json.Unmarshal(body, result)
		}
		address, _, _ := strings.Cut(nid, "@")
		if err = wire.Ask(ctx, "tcp", net.JoinHostPort(address, port()), op, question, result); err == nil {
			return nil
		}
	}
	return err
}

// addDevice adds a device to a free slot, or adds an owner. The mutex is held, as in all following functions.
func (k *Kernel) addDevice(kind, name, uuid string, owner any) {
	free := -1
	for i, d := range k.devices {
		switch {
		case d == nil && free < 0:
			free = i
		case d != nil && d.name == name && d.kind == kind:
			d.owners = append(d.owners, owner)
			return
		}
	}
	made := &device{kind, name, uuid, []any{owner}}
	if free < 0 {
		k.devices = append(k.devices, made)
	} else {
		k.devices[free] = made
	}
}

func (k *Kernel) removeDevices(owner any) {
	for i, d := range k.devices {
		if d == nil {
			continue
		}
		if d.owners = slices.DeleteFunc(d.owners, func(o any) bool { return o == owner }); len(d.owners) == 0 {
			k.devices[i] = nil
		}
	}
}

// references holds the approximate reference count of each kind of device.
var references = map[string]int{"mds": 3, "ost": 3, "lod": 4, "mdd": 4, "qmt": 4, "lov": 4, "osd-ldiskfs": 7, "mdt": 11, "obdfilter": 9}

// list returns the output of lctl dl; the parameter devices also counts its own reader.
func (k *Kernel) list(more int) string {
	var out strings.Builder
	for i, d := range k.devices {
		if d == nil {
			continue
		}
		count, known := references[d.kind]
		if !known {
			count = 5
		}
		fmt.Fprintf(&out, "%3d UP %s %s %s %d\n", i, d.kind, d.name, d.uuid, count+more)
	}
	return out.String()
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, how time.Duration) error {
	timer := time.NewTimer(how)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// until waits for a condition that is checked under the mutex.
func (k *Kernel) until(ctx context.Context, condition func() bool) error {
	for {
		k.mutex.Lock()
		met := condition()
		k.mutex.Unlock()
		if met {
			return nil
		}
		if err := wait(ctx, beat/4); err != nil {
			return err
		}
	}
}

func (k *Kernel) number(mount any) int {
	k.lastNumber++
	k.waiting[k.lastNumber] = mount
	return k.lastNumber
}

func uuid() string {
	content, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return strconv.FormatInt(time.Now().UnixNano(), 16)
	}
	return strings.TrimSpace(string(content))
}
