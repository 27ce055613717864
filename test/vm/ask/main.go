// Command ask runs a command in a virtual machine of the tests, through the program guest in that machine, and ends with the same exit
// code.
//
// usage: ask SOCKET COMMAND [ARGUMENT]...   The command gets the standard input of ask.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: ask SOCKET COMMAND [ARGUMENT]...")
		os.Exit(2)
	}
	code, err := ask(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "ask: the machine at %s does not answer: %s\n", os.Args[1], err)
		os.Exit(125)
	}
	os.Exit(code)
}

// ask waits until the machine runs commands, however long it takes to start.
func ask(socket string, argv []string) (int, error) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 0, err
	}
	port, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer port.Close()
	request := struct {
		Argv  []string `json:"argv"`
		Stdin string   `json:"stdin"`
		ID    string   `json:"id"`
	}{argv, string(stdin), fmt.Sprint(os.Getpid(), time.Now().UnixNano())}
	reply := struct {
		Code               int
		Stdout, Stderr, ID string
	}{}
	if err := json.NewEncoder(port).Encode(request); err != nil {
		return 0, err
	}
	// A reply to an earlier request whose client did not wait may come first.
	for replies := json.NewDecoder(port); reply.ID != request.ID; {
		if err := replies.Decode(&reply); err != nil {
			return 0, err
		}
	}
	fmt.Fprint(os.Stdout, reply.Stdout)
	fmt.Fprint(os.Stderr, reply.Stderr)
	return reply.Code, nil
}
