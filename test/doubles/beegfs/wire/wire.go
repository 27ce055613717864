// Package wire is the protocol between the doubles: one request and one response as lines of JSON over a TCP connection. It is not a BeeGFS
// protocol, so a double and a real program can't communicate.
package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// ErrDisconnected means that a peer disconnected without an answer, as BeeGFS does if the secret differs.
var ErrDisconnected = errors.New("soft disconnect")

// Question is a request to a server. Op is the operation, and Body its argument.
type Question struct {
	Secret uint64          `json:"secret"`
	Op     string          `json:"op"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// Answer is a server's response; Error is its error text, or empty.
type Answer struct {
	Error string          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// RefusedError is a server's refusal of a request.
type RefusedError struct{ Text string }

// Error returns the server's text.
func (e *RefusedError) Error() string { return e.Text }

// Ask sends a request to a server and decodes its response into result, which may be nil.
func Ask(ctx context.Context, address string, secret uint64, op string, argument, result any) error {
	return AskBy(ctx, &net.Dialer{}, address, secret, op, argument, result)
}

// Dialer connects to a server, with TLS or without.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// AskBy is Ask over a connection of a dialer.
func AskBy(ctx context.Context, dialer Dialer, address string, secret uint64, op string, argument, result any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer connection.Close()
	if deadline, set := ctx.Deadline(); set {
		_ = connection.SetDeadline(deadline)
	}
	body, err := json.Marshal(argument)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(connection).Encode(Question{Secret: secret, Op: op, Body: body}); err != nil {
		return fmt.Errorf("%w from %s", ErrDisconnected, address)
	}
	var answer Answer
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return fmt.Errorf("%w from %s", ErrDisconnected, address)
	}
	if answer.Error != "" {
		return &RefusedError{Text: answer.Error}
	}
	if result == nil || len(answer.Body) == 0 {
		return nil
	}
	return json.Unmarshal(answer.Body, result)
}

// Handler handles one request.
type Handler func(op string, body json.RawMessage) (any, error)

// Serve handles requests until the listener is closed. A peer with another secret gets no answer; denied is called with its address.
func Serve(listener net.Listener, secret uint64, denied func(peer string), handle Handler) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(connection, secret, denied, handle)
	}
}

func serve(connection net.Conn, secret uint64, denied func(peer string), handle Handler) {
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	var question Question
	if err := json.NewDecoder(bufio.NewReader(connection)).Decode(&question); err != nil {
		return
	}
	if question.Secret != secret {
		denied(connection.RemoteAddr().String())
		return
	}
	result, err := handle(question.Op, question.Body)
	answer := Answer{}
	if err != nil {
		answer.Error = err.Error()
	} else {
		answer.Body, err = json.Marshal(result)
		if err != nil {
			answer.Error = err.Error()
		}
	}
	//nolint:errchkjson // a peer that has hung up needs no answer
	_ = json.NewEncoder(connection).Encode(answer)
}

// PortError means that a port could not be bound; Protocol is TCP or UDP.
type PortError struct {
	Protocol string
	Port     int
	Err      error
}

// Error names the port and the reason.
func (e *PortError) Error() string {
	return fmt.Sprintf("unable to bind %s port %d: %v", e.Protocol, e.Port, e.Err)
}

// Unwrap returns the system's error.
func (e *PortError) Unwrap() error { return e.Err }

// ListenTCP binds a TCP port on every address, as the daemons do.
func ListenTCP(ctx context.Context, port int) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, &PortError{Protocol: "TCP", Port: port, Err: err}
	}
	return listener, nil
}

// ListenUDP binds a UDP port on every address.
func ListenUDP(ctx context.Context, port int) (net.PacketConn, error) {
	connection, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, &PortError{Protocol: "UDP", Port: port, Err: err}
	}
	return connection, nil
}
