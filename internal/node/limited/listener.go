// Package limited limits the number of connections per address and in total. A new connection closes the oldest idle one of those who have
// most, so that a client that opens many connections does not keep others out. Each connection has some time for its request, so that many
// connections do not keep the others of their own address out.
package limited

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// PerAddress limits the open connections of one address that are older than patience. The address may be that of a manager and a few
	// scrapers, or of all pods of a node.
	PerAddress = 16
	// Total limits all open connections, and so the listener's file descriptors.
	Total = 256
	// patience is the time that each connection has for its request, however many its address has. A signed request is held from then on.
	patience = time.Second
)

// Listener limits the connections of another listener.
type Listener struct {
	net.Listener

	mutex sync.Mutex
	// all holds every open connection, and from those of each address, oldest first.
	all  *list.List
	from map[string]*list.List
}

// New limits a listener to PerAddress and Total connections.
func New(listener net.Listener) *Listener {
	return &Listener{Listener: listener, all: list.New(), from: map[string]*list.List{}}
}

// Accept returns a connection. One over the total limit closes the oldest one that is not held of the address with most connections. If all
// are held, the new one is closed.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.add(accepted); c != nil {
			return c, nil
		}
		_ = accepted.Close()
	}
}

// add returns the connection with its place, or nil if there is none.
func (l *Listener) add(accepted net.Conn) net.Conn {
	address := accepted.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	l.mutex.Lock()
	var closed *connection
	if l.all.Len() >= Total {
		if closed = l.ofMost(); closed == nil {
			l.mutex.Unlock()
			return nil
		}
		l.forget(closed)
	}
	own := l.from[address]
	if own == nil {
		own = list.New()
		l.from[address] = own
	}
	c := &connection{Conn: accepted, listener: l, address: address}
	c.inAll, c.inOwn = l.all.PushBack(c), own.PushBack(c)
	c.patience = time.AfterFunc(patience, func() { l.limitAddress(c) })
	l.mutex.Unlock()
	if closed != nil {
		_ = closed.Conn.Close()
	}
	return c
}

// limitAddress is called when c becomes older than patience. If the address then has more than PerAddress connections of that age,
// it closes the oldest of them that is not held.
func (l *Listener) limitAddress(c *connection) {
	l.mutex.Lock()
	var closed *connection
	if c.inAll != nil {
		c.isOld = true
		old := 0
		for e := l.from[c.address].Front(); e != nil; e = e.Next() {
			one, is := e.Value.(*connection)
			if !is || !one.isOld {
				continue
			}
			old++
			if closed == nil && !one.held {
				closed = one
			}
		}
		if old <= PerAddress {
			closed = nil
		}
	}
	if closed != nil {
		l.forget(closed)
	}
	l.mutex.Unlock()
	if closed != nil {
		_ = closed.Conn.Close()
	}
}

// ofMost returns the oldest connection that is not held of the address with most connections: many connections of some addresses do not
// close the only one of another.
func (l *Listener) ofMost() (found *connection) {
	most := 0
	for e := l.all.Front(); e != nil; e = e.Next() {
		c, is := e.Value.(*connection)
		if is && !c.held && l.from[c.address].Len() > most {
			found, most = c, l.from[c.address].Len()
		}
	}
	return found
}

// forget removes a connection from the lists. It may be called twice.
func (l *Listener) forget(c *connection) {
	if c.inAll == nil {
		return
	}
	l.all.Remove(c.inAll)
	own := l.from[c.address]
	own.Remove(c.inOwn)
	if own.Len() == 0 {
		delete(l.from, c.address)
	}
	c.inAll, c.inOwn = nil, nil
	c.patience.Stop()
}

// connection is a connection with a place.
type connection struct {
	net.Conn
	listener     *Listener
	address      string
	inAll, inOwn *list.Element
	// held is true while the sender of its request is authenticated, until the answer was sent. released is true from the end of the handler
	// on, which is before that. patience ends when the connection becomes old.
	held, released, isOld bool
	patience              *time.Timer
}

// Close frees the place.
func (c *connection) Close() error {
	c.listener.mutex.Lock()
	c.listener.forget(c)
	c.listener.mutex.Unlock()
	return c.Conn.Close()
}

type key struct{}

// State is the ConnState of an http.Server, which ends a hold: a connection is idle when the answer was sent.
func State(c net.Conn, state http.ConnState) {
	own, is := c.(*connection)
	if !is || state != http.StateIdle {
		return
	}
	own.listener.mutex.Lock()
	defer own.listener.mutex.Unlock()
	if own.released {
		own.held, own.released = false, false
	}
}

// Context is an http.Server's ConnContext, which Hold needs.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Hold protects the connection of a request from being closed until the answer was sent. Call it for a request with an authenticated
// sender, and release when the handler ends.
func Hold(ctx context.Context) (release func()) {
	c, is := ctx.Value(key{}).(*connection)
	if !is {
		return func() {}
	}
	set := func(held, released bool) {
		c.listener.mutex.Lock()
		defer c.listener.mutex.Unlock()
		c.held, c.released = held, released
	}
	set(true, false)
	return func() { set(true, true) }
}
