package devices

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The multicast groups of NETLINK_KOBJECT_UEVENT: the kernel's own messages, and udev's, which come when the links in
// /dev/disk are made.
const (
	groupKernel = 1
	groupUdev   = 2
)

// Watch sends when a block device of the node has come, gone or changed: once for all that happens within the time quiet. The channel is
// closed when ctx ends, or the messages can't be read any more. A missed message does no harm to a caller that looks now and
// then without one.
func (l Looker) Watch(ctx context.Context, quiet time.Duration) (<-chan struct{}, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("can't listen to the kernel's messages about devices: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groupKernel | groupUdev}); err != nil {
		_ = unix.Close(fd) // the other error says more
		return nil, fmt.Errorf("can't listen to the kernel's messages about devices: %w; it needs the network of the node (hostNetwork) and root", err)
	}
	// A file that is not in blocking mode can be closed while it is read.
	socket := os.NewFile(uintptr(fd), "uevents")
	events, about := make(chan struct{}, 1), l.loopsOfTheNode()
	go func() {
		defer close(events)
		buffer := make([]byte, 64<<10)
		for {
			n, err := socket.Read(buffer)
			switch {
			case errors.Is(err, unix.ENOBUFS): // Some were lost: something has changed.
			case err != nil:
				return
			case !about.node(buffer[:n]):
				continue
			}
			select {
			case events <- struct{}{}:
			default: // One is waiting already.
			}
		}
	}()
	go func() {
		<-ctx.Done()
		_ = socket.Close() // it ends the reading above
	}()
	return calm(ctx, events, quiet), nil
}

// loopsOfTheNode are the loop devices that have, or had until the last message about them, a file in /dev. The kernel tells every node
// that is a container about the loop devices of all.
func (l Looker) loopsOfTheNode() loops {
	out := loops{exists: func(name string) bool { return exists(l.node(name)) }, known: map[string]bool{}}
	for _, name := range entries(l.Dev) {
		if strings.HasPrefix(name, loopPrefix) {
			out.known[name] = true
		}
	}
	return out
}

const loopPrefix = "loop"

type loops struct {
	exists func(name string) bool
	known  map[string]bool
}

// node is true for a message about a block device of the node: "action@path" or udev's header, and then KEY=value, each with a zero
// behind it (kernel lib/kobject_uevent.c).
func (l loops) node(message []byte) bool {
	if !bytes.Contains(message, []byte("\x00SUBSYSTEM=block\x00")) {
		return false
	}
	_, device, _ := bytes.Cut(message, []byte("\x00DEVNAME="))
	device, _, _ = bytes.Cut(device, []byte{0})
	name := path.Base(string(device))
	if !strings.HasPrefix(name, loopPrefix) {
		return true
	}
	before, now := l.known[name], l.exists(name)
	l.known[name] = now
	return before || now
}

// calm sends once, the time quiet after the first of several events.
func calm(ctx context.Context, events <-chan struct{}, quiet time.Duration) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-events:
				if !open {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(quiet):
			}
			select { // What has come meanwhile is part of it.
			case <-events:
			default:
			}
			select {
			case <-ctx.Done():
				return
			case out <- struct{}{}:
			}
		}
	}()
	return out
}
