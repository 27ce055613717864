// Package wire is the protocol between the doubles: one request and one response, each a line of JSON. Tools send requests to the kernel's
// part over a socket of their node, and nodes to each other over TCP at the addresses in their NIDs. It is not a Lustre protocol.
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
	"syscall"

	"golang.org/x/sys/unix"
)

// Question is a request. Op is the operation, and Body its argument.
type Question struct {
	Op   string          `json:"op"`
	Body json.RawMessage `json:"body,omitempty"`
}

type answer struct {
	Errno int             `json:"errno,omitempty"`
	Error string          `json:"error,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Error is a refusal: an errno, and a text if the errno is not specific enough.
type Error struct {
	Errno syscall.Errno
	Text  string
}

// Error returns the text, or the C library's text for the errno.
func (e *Error) Error() string {
	if e.Text != "" {
		return e.Text
	}
	return Words(e.Errno)
}

// Words returns the C library's text for an errno.
func Words(errno syscall.Errno) string {
	text := []byte(errno.Error())
	if len(text) > 0 {
		text[0] = bytes.ToUpper(text[:1])[0]
	}
	return string(text)
}

// Errno returns the number of an error, or 0 if it has none.
func Errno(err error) syscall.Errno {
	if refused, is := errors.AsType[*Error](err); is {
		return refused.Errno
	}
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return errno
	}
	return 0
}

// Refuse returns a refusal with an errno and a text.
func Refuse(errno syscall.Errno, format string, arguments ...any) error {
	return &Error{Errno: errno, Text: fmt.Sprintf(format, arguments...)}
}

// Ask sends a request and decodes the response into result, which may be nil. Files can be sent only over a socket of the node.
func Ask(ctx context.Context, network, address, op string, argument, result any, files ...*os.File) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer connection.Close()
	if deadline, set := ctx.Deadline(); set {
		_ = connection.SetDeadline(deadline)
	}
	body, err := json.Marshal(argument)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Question{Op: op, Body: body})
	if err != nil {
		return err
	}
	if err := send(connection, append(line, '\n'), files); err != nil {
		return err
	}
	var a answer
	if err := json.NewDecoder(connection).Decode(&a); err != nil {
		return fmt.Errorf("no answer from %s: %w", address, err)
	}
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

// Handler handles one request. files were sent with it; the handler closes them.
type Handler func(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, error)

// Serve handles requests until the listener is closed.
func Serve(ctx context.Context, listener net.Listener, handle Handler) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go serve(ctx, connection, handle)
	}
}

func serve(ctx context.Context, connection net.Conn, handle Handler) {
	defer connection.Close()
	line, files, err := receive(connection)
	var question Question
	if err != nil || json.Unmarshal(line, &question) != nil {
		return
	}
	// A disconnect cancels the request.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = connection.Read(make([]byte, 1))
		cancel()
	}()
	result, err := handle(ctx, question.Op, question.Body, files)
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
	// A client that has disconnected needs no response.
	if line, err := json.Marshal(a); err == nil {
		_, _ = connection.Write(append(line, '\n'))
	}
}

// receive reads a line and the files that were sent with it.
func receive(connection net.Conn) ([]byte, []*os.File, error) {
	socket, is := connection.(*net.UnixConn)
	if !is {
		line, err := bufio.NewReader(connection).ReadBytes('\n')
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
