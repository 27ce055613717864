package provision

import (
	"errors"
	"path/filepath"
	"sync"
	"time"
)

// Claims prevents conflicts inside this process. A look opens a device exclusively for a moment, which must not disturb other looks or the
// programs that the process runs on the device. The zero value is ready.
type Claims struct {
	mutex sync.Mutex
	// devices holds the claims by kernel name. A claim is created on first use.
	devices map[string]*claim
}

type claim struct {
	// probing is held during a look.
	probing sync.Mutex
	// working counts the operations on the device; Claims.mutex guards it.
	working int
}

func (c *Claims) of(name string) *claim {
	if c.devices == nil {
		c.devices = map[string]*claim{}
	}
	if c.devices[name] == nil {
		c.devices[name] = &claim{}
	}
	return c.devices[name]
}

// Ask wraps the check whether a device is free: one check at a time for each device, and "busy" while this process works on it.
func (c *Claims) Ask(claim func(path, number string) (busy string, err error)) func(path, number string) (busy string, err error) {
	return func(path, number string) (string, error) {
		c.mutex.Lock()
		device := c.of(filepath.Base(path))
		c.mutex.Unlock()
		device.probing.Lock()
		defer device.probing.Unlock()
		c.mutex.Lock()
		working := device.working > 0
		c.mutex.Unlock()
		if working {
			return "the agent itself works on it", nil
		}
		return claim(path, number)
	}
}

// errHung means that a look at the device does not end.
var errHung = errors.New("a look at the device has not ended: it does not answer; look into the kernel's log (dmesg)")

// hold begins an operation on devices. When it returns, no look is in progress, and no look opens the devices until release.
func (c *Claims) hold(names ...string) (release func(), err error) {
	var held []*claim
	c.mutex.Lock()
	for _, name := range names {
		device := c.of(name)
		device.working++
		held = append(held, device)
	}
	c.mutex.Unlock()
	release = func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		for _, device := range held {
			device.working--
		}
	}
	for _, device := range held {
		if !device.drain() {
			release()
			return nil, errHung
		}
	}
	return release, nil
}

const (
	drainLimit = time.Minute
	drainPause = 10 * time.Millisecond
)

// drain waits until the look in progress has ended.
func (d *claim) drain() bool {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	pause := time.NewTicker(drainPause)
	defer pause.Stop()
	for !d.probing.TryLock() {
		select {
		case <-limit.C:
			return false
		case <-pause.C:
		}
	}
	d.probing.Unlock()
	return true
}
