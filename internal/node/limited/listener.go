// Package limited limits the number of connections per address and in total. A new connection closes the oldest idle one of those who have
// most, so that a client that opens many connections does not keep others out.
package limited

import (
	"container/list"
	"context"
	"net"
	"sync"
)

const (
	// PerAddress limits the open connections of one address, which may belong to a manager and a few scrapers.
	PerAddress = 16
	// Total limits all open connections, and so the listener's file descriptors.
	Total = 256
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

// Accept returns a connection within the limits. Each connection over a limit closes the oldest one that is not held: of its own address,
// or of the address with most connections. If all are held, the new one is closed.
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
	own := l.from[address]
	if own == nil {
		own = list.New()
		l.from[address] = own
	}
	var closed []*connection
	allowed := true
	for _, limit := range []struct {
		of     *list.List
		most   int
		oldest func() *connection
	}{{own, PerAddress, func() *connection { return firstWaiting(own) }}, {l.all, Total, l.ofMost}} {
		if limit.of.Len() < limit.most {
			continue
		}
		oldest := limit.oldest()
		if oldest == nil {
			allowed = false
			break
		}
		l.forget(oldest)
		closed = append(closed, oldest)
	}
	var c *connection
	if allowed {
		c = &connection{Conn: accepted, listener: l, address: address}
		l.from[address] = own // the list was removed if its only connection was closed above
		c.inAll, c.inOwn = l.all.PushBack(c), own.PushBack(c)
	} else if own.Len() == 0 {
		delete(l.from, address)
	}
	l.mutex.Unlock()
	for _, old := range closed {
		_ = old.Conn.Close()
	}
	if c == nil {
		return nil
	}
	return c
}

func firstWaiting(connections *list.List) *connection {
	for e := connections.Front(); e != nil; e = e.Next() {
		if c, is := e.Value.(*connection); is && !c.held {
			return c
		}
	}
	return nil
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
}

// connection is a connection with a place.
type connection struct {
	net.Conn
	listener     *Listener
	address      string
	held         bool
	inAll, inOwn *list.Element
}

// Close frees the place.
func (c *connection) Close() error {
	c.listener.mutex.Lock()
	c.listener.forget(c)
	c.listener.mutex.Unlock()
	return c.Conn.Close()
}

type key struct{}

// Context is an http.Server's ConnContext, which Hold needs.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Hold protects the connection of a request from being closed until release is called. Call it for a request with an authenticated sender.
func Hold(ctx context.Context) (release func()) {
	c, is := ctx.Value(key{}).(*connection)
	if !is {
		return func() {}
	}
	set := func(held bool) {
		c.listener.mutex.Lock()
		defer c.listener.mutex.Unlock()
		c.held = held
	}
	set(true)
	return func() { set(false) }
}
