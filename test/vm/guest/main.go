// Command guest runs in the virtual machine of the tests: it runs the commands that it receives over a serial port, one after the other,
// and sends back their output.
//
// usage: guest [--stay] PORT   It ends when the other end is closed; with --stay, it waits for the next client.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Request is one command. It is sent as one JSON document.
type Request struct {
	// Argv is the command with its arguments, and Stdin its standard input.
	Argv  []string `json:"argv"`
	Stdin string   `json:"stdin"`
	// ID is returned with the reply, so that the next client does not mistake it for a reply to its own request.
	ID string `json:"id,omitempty"`
}

// Reply is the result of a Request.
type Reply struct {
	// Code is the exit code, 127 when the command could not be started; Stderr shows why.
	Code   int    `json:"code"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	ID     string `json:"id,omitempty"`
}

func main() {
	stay := len(os.Args) == 3 && os.Args[1] == "--stay"
	if err := open(os.Args[len(os.Args)-1], stay); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// open serves a port. It stays open between clients: a request that the next one has already sent would be lost.
func open(path string, stay bool) error {
	port, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer port.Close()
	for {
		if err := serve(port); !stay {
			return err
		}
		<-time.After(300 * time.Millisecond) // there is no event for the next client
	}
}

// serve answers until the other end is closed.
func serve(port io.ReadWriter) error {
	requests, replies := json.NewDecoder(port), json.NewEncoder(port)
	for {
		var request Request
		if err := requests.Decode(&request); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := replies.Encode(run(request)); err != nil {
			return err
		}
	}
}

func run(request Request) Reply {
	var stdout, stderr bytes.Buffer
	command := exec.Command(request.Argv[0], request.Argv[1:]...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(request.Stdin), &stdout, &stderr
	reply := Reply{ID: request.ID}
	var exit *exec.ExitError
	switch err := command.Run(); {
	case errors.As(err, &exit):
		reply.Code = exit.ExitCode()
	case err != nil:
		reply.Code = 127
		fmt.Fprintln(&stderr, err)
	}
	reply.Stdout, reply.Stderr = stdout.String(), stderr.String()
	return reply
}
