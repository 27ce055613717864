// Command daemon plays a filesystem's daemon in the virtual machine of the tests: it runs the given number of threads, each with memory of
// its own, writes that to a file, and waits until it is ended.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

// memory that each thread touches, in bytes.
const memory = 4 << 20

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: daemon THREADS FILE")
		os.Exit(2)
	}
	threads, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		os.Exit(2)
	}
	var ready sync.WaitGroup
	for range threads {
		ready.Add(1)
		go func() {
			// A locked goroutine keeps a thread of its own.
			runtime.LockOSThread()
			touched := make([]byte, memory)
			for i := range touched {
				touched[i] = 1
			}
			ready.Done()
			select {}
		}()
	}
	ready.Wait()
	if err := os.WriteFile(os.Args[2], []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		os.Exit(1)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
}
