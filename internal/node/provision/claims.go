package provision

import (
	"errors"
	"path/filepath"
	"sync"
	"time"
)

// Claims keeps the looks of this process, which open a device exclusively for a moment, from getting in the way of each
// other and of the programs that it runs on the device. The zero value is ready.
type Claims struct {
	mutex sync.Mutex
	// devices by kernel name: one is made when it is asked for the first time.
	devices map[string]*claim
}

type claim struct {
	// probing is held for the moment of a look.
	probing sync.Mutex
	// working counts the works on the device; it belongs to Claims.mutex.
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

// Ask wraps the way in which a device is asked whether it is free: one at a time for each device, and not while this
// process works on it, which counts as busy.
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

// hold begins a work on devices. No look is under way when it returns, and none opens the devices until release.
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

// drain waits until the look that is under way has ended.
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
