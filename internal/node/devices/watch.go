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

// Multicast groups of NETLINK_KOBJECT_UEVENT: the kernel's own messages, and udev's messages, which follow when the links in /dev/disk
// exist.
const (
	groupKernel = 1
	groupUdev   = 2
)

// Watch sends a value when a block device of the node is added, removed or changed: one for all events within the quiet period. The channel
// is closed when ctx ends or the messages can no longer be read. A missed message is harmless if the caller also scans periodically.
func (l Looker) Watch(ctx context.Context, quiet time.Duration) (<-chan struct{}, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("can't listen to the kernel's messages about devices: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groupKernel | groupUdev}); err != nil {
		_ = unix.Close(fd) // the other error is more useful
		return nil, fmt.Errorf("can't listen to the kernel's messages about devices: %w; it needs the network of the node (hostNetwork) and root", err)
	}
	// A file in non-blocking mode can be closed during a read.
	socket := os.NewFile(uintptr(fd), "uevents")
	events, about := make(chan struct{}, 1), l.loopsOfTheNode()
	go func() {
		defer close(events)
		buffer := make([]byte, 64<<10)
		for {
			n, err := socket.Read(buffer)
			switch {
			case errors.Is(err, unix.ENOBUFS): // Messages were lost, so something has changed.
			case err != nil:
				return
			case !about.node(buffer[:n]):
				continue
			}
			select {
			case events <- struct{}{}:
			default: // One value is already waiting.
			}
		}
	}()
	go func() {
		<-ctx.Done()
		_ = socket.Close() // it ends the read above
	}()
	return debounce(ctx, events, quiet), nil
}

// loopsOfTheNode returns the loop devices that have a device node in /dev, or had one until the last message about them. The kernel sends
// messages about all loop devices to every node that is a container.
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

// node is true for a message about a block device of the node. The format is "action@path" or udev's header followed by KEY=value pairs,
// each terminated by a zero byte (kernel lib/kobject_uevent.c).
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

// debounce sends one value, the time quiet after the first of several events.
func debounce(ctx context.Context, events <-chan struct{}, quiet time.Duration) <-chan struct{} {
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
			select { // Events in between are covered by this value.
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
