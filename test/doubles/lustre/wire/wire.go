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

// Handler answers one question. Files are those that came with it; the handler closes them.
type Handler func(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, error)

// Serve answers questions until the listener is closed.
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
	// Who hangs up does not want to know any more.
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
	// Who has hung up needs no answer.
	if line, err := json.Marshal(a); err == nil {
		_, _ = connection.Write(append(line, '\n'))
	}
}

// receive reads a line, and the files that came with it.
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
