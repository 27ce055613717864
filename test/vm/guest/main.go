// Command guest runs in the virtual machine of the tests: it runs the commands that it is sent over a serial port, one
// after the other, and sends back what they wrote.
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
)

// Request is one command. It is sent as one JSON document.
type Request struct {
	// Argv is the command with its arguments, and Stdin what it can read.
	Argv  []string `json:"argv"`
	Stdin string   `json:"stdin"`
}

// Reply is what came of a Request.
type Reply struct {
	// Code is the exit code, 127 when the command could not be started; Stderr says why.
	Code   int    `json:"code"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

func main() {
	if err := serve(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

// serve answers until the other end is closed.
func serve(path string) error {
	port, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer port.Close()
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
	reply := Reply{}
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
