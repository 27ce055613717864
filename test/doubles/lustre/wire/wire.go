// Package wire is what the doubles say to each other: one question and one answer, each a line of JSON. Tools ask the kernel's part of
// their node over a socket of that node, and nodes ask each other over TCP, at the addresses in their NIDs. It is no protocol of Lustre.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Question asks for something. Op names what, Body is its argument.
type Question struct {
	Op   string          `json:"op"`
	Body json.RawMessage `json:"body,omitempty"`
}

type answer struct {
	Errno int             `json:"errno,omitempty"`
	Error string          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Error is a refusal: an errno, and more words where the errno does not say enough.
type Error struct {
	Errno syscall.Errno
	Text  string
}

// Error is the text, or what the C library calls the errno.
func (e *Error) Error() string {
	if e.Text != "" {
		return e.Text
	}
	return Words(e.Errno)
}

// Words is what the C library calls an errno.
func Words(errno syscall.Errno) string {
	text := []byte(errno.Error())
	if len(text) > 0 {
		text[0] = bytes.ToUpper(text[:1])[0]
	}
	return string(text)
}

// Errno is the number of an error, and 0 for one without.
func Errno(err error) syscall.Errno {
	if refused, is := errors.AsType[*Error](err); is {
		return refused.Errno
	}
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return errno
	}
	return 0
}

// Refuse is a refusal with an errno and words.
func Refuse(errno syscall.Errno, format string, arguments ...any) error {
	return &Error{Errno: errno, Text: fmt.Sprintf(format, arguments...)}
}

// Ask sends a question and decodes the answer into result, which may be nil. Files are only for a socket of the node.
func Ask(ctx context.Context, network, address, op string, argument, result any, files ...*os.File) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer connection.Close()
	a, err := ask(ctx, connection, op, argument, files)
	if err != nil {
		return err
	}
	return a.into(result)
}

// Peers asks other nodes, over connections that stay open: the kernel's part of a node asks the same ones again and again.
type Peers struct {
	mutex sync.Mutex
	idle  map[string][]net.Conn
}

// Ask is Ask over TCP. A connection that the other side has closed meanwhile is replaced.
func (p *Peers) Ask(ctx context.Context, address, op string, argument, result any) error {
	for {
		connection := p.take(address)
		kept := connection != nil
		if !kept {
			var err error
			if connection, err = (&net.Dialer{}).DialContext(ctx, "tcp", address); err != nil {
				return err
			}
		}
		a, err := ask(ctx, connection, op, argument, nil)
		if err == nil {
			p.keep(address, connection)
			return a.into(result)
		}
		_ = connection.Close()
		if !kept || ctx.Err() != nil {
			return err
		}
	}
}

func (p *Peers) take(address string) net.Conn {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	all := p.idle[address]
	if len(all) == 0 {
		return nil
	}
	p.idle[address] = all[:len(all)-1]
	return all[len(all)-1]
}

func (p *Peers) keep(address string, connection net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.idle == nil {
		p.idle = map[string][]net.Conn{}
	}
	p.idle[address] = append(p.idle[address], connection)
}

// ask asks over a connection.
func ask(ctx context.Context, connection net.Conn, op string, argument any, files []*os.File) (answer, error) {
	deadline, _ := ctx.Deadline() // without one it is zero, and takes an earlier one away
	_ = connection.SetDeadline(deadline)
	body, err := json.Marshal(argument)
	if err != nil {
		return answer{}, err
	}
	line, err := json.Marshal(Question{Op: op, Body: body})
	if err != nil {
		return answer{}, err
	}
	if err := send(connection, append(line, '\n'), files); err != nil {
		return answer{}, err
	}
	var a answer
	if err := json.NewDecoder(connection).Decode(&a); err != nil {
		return answer{}, fmt.Errorf("no answer from %s: %w", connection.RemoteAddr(), err)
	}
	return a, nil
}

// into decodes what was answered.
func (a answer) into(result any) error {
	if a.Errno != 0 || a.Error != "" {
		return &Error{Errno: syscall.Errno(a.Errno), Text: a.Error}
	}
	if result == nil || len(a.Body) == 0 {
		return nil
	}
	return json.Unmarshal(a.Body, result)
}

func send(connection net.Conn, line []byte, files []*os.File) error {
	if len(files) == 0 {
		_, err := connection.Write(line)
		return err
	}
	socket, is := connection.(*net.UnixConn)
	if !is {
		return errors.New("files can be sent over a socket of the node only")
	}
	numbers := make([]int, len(files))
	for i, file := range files {
		numbers[i] = int(file.Fd())
	}
	_, _, err := socket.WriteMsgUnix(line, unix.UnixRights(numbers...), nil)
	return err
}

// Handler answers one question. Files are those that came with it; the handler closes them.
type Handler func(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, error)

// Serve answers questions until the listener is closed, and hangs up then.
func Serve(ctx context.Context, listener net.Listener, handle Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(ctx, connection, handle)
	}
}

// asked is a question that has arrived.
type asked struct {
	Question
	files []*os.File
}

// serve answers one question after the other.
func serve(ctx context.Context, connection net.Conn, handle Handler) {
	defer connection.Close()
	// Who hangs up does not want to know any more.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	questions := make(chan asked)
	go func() {
		defer close(questions)
		defer cancel()
		reader := bufio.NewReader(connection)
		for {
			line, files, err := receive(connection, reader)
			q := asked{files: files}
			if err != nil || json.Unmarshal(line, &q.Question) != nil {
				return
			}
			select {
			case questions <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	for q := range questions {
		reply(ctx, connection, q, handle)
	}
}

func reply(ctx context.Context, connection net.Conn, question asked, handle Handler) {
	result, err := handle(ctx, question.Op, question.Body, question.files)
	var a answer
	if err == nil {
		a.Body, err = json.Marshal(result)
	}
	if err != nil {
		a.Error = err.Error()
		if refused, is := errors.AsType[*Error](err); is {
			a.Error = refused.Text
		}
		a.Errno = int(Errno(err))
	}
	// Who has hung up needs no answer.
	if line, err := json.Marshal(a); err == nil {
		_, _ = connection.Write(append(line, '\n'))
	}
}

// receive reads a line, and the files that came with it.
func receive(connection net.Conn, reader *bufio.Reader) ([]byte, []*os.File, error) {
	socket, is := connection.(*net.UnixConn)
	if !is {
		line, err := reader.ReadBytes('\n')
		return line, nil, err
	}
	var line []byte
	var files []*os.File
	for !bytes.HasSuffix(line, []byte("\n")) {
		chunk, rights := make([]byte, 1<<16), make([]byte, 256)
		n, rightsLength, _, _, err := socket.ReadMsgUnix(chunk, rights)
		if err != nil || n == 0 {
			return nil, nil, errors.Join(err, errors.New("it hung up"))
		}
		line = append(line, chunk[:n]...)
		messages, err := unix.ParseSocketControlMessage(rights[:rightsLength])
		if err != nil {
			return nil, nil, err
		}
		for i := range messages {
			numbers, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return nil, nil, err
			}
			for _, number := range numbers {
				files = append(files, os.NewFile(uintptr(number), "received"))
			}
		}
	}
	return line, files, nil
}
