// Command load is a program that uses a filesystem while something is done to it. It writes files and syncs them, reads back its own and
// others', and reports at the end how long it was blocked and what was wrong. Each file contains what determines its content, so that a
// reader can verify every byte.
//
//	load --stop FILE DIRECTORY [DIRECTORY...]      writes into the first directory, and reads from all
package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// fileBytes is the size of a file, and files how many each program has: the oldest is overwritten.
	fileBytes, files = 64 << 10, 128
	// pause is the time between two operations, so that several programs leave time to the servers on the same machine.
	pause = 100 * time.Millisecond
	// headBytes is the length of the beginning of a file that identifies the file, its program, and its seed.
	headBytes = 24
	private   = 0o600
)

// Operations describes operations of one kind.
type Operations struct {
	Count int `json:"count"`
	// LongestMilliseconds is the duration of the longest of them, and At how long after the start it began.
	LongestMilliseconds int64 `json:"longestMilliseconds"`
	AtSeconds           int64 `json:"atSeconds"`
	// Errors is how many failed, and Error is the message of the first one.
	Errors int    `json:"errors"`
	Error  string `json:"error,omitempty"`
}

// Report is the output of a program at its end.
type Report struct {
	Seconds int64      `json:"seconds"`
	Writes  Operations `json:"writes"`
	Reads   Operations `json:"reads"`
	// DifferentBytes is how many bytes differ from what was written.
	DifferentBytes int64 `json:"differentBytes"`
}

func main() {
	stop := flag.String("stop", "", "`FILE` whose existence ends the program")
	flag.Parse()
	if *stop == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "load: --stop FILE DIRECTORY [DIRECTORY...]")
		os.Exit(2)
	}
	report, err := load(*stop, flag.Args())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// load uses the directories until the file that ends it exists.
func load(stop string, directories []string) (Report, error) {
	if err := os.MkdirAll(directories[0], 0o755); err != nil {
		return Report{}, fmt.Errorf("make a directory to write in: %w", err)
	}
	began := time.Now()
	ended := func() bool { _, err := os.Stat(stop); return err == nil }
	var report Report
	var both sync.WaitGroup
	both.Go(func() { report.Writes.repeat(began, ended, func(n uint64) error { return write(directories[0], n) }) })
	both.Go(func() {
		report.Reads.repeat(began, ended, func(uint64) error {
			different, err := read(directories[rand.IntN(len(directories))], rand.Uint64N(files))
			report.DifferentBytes += different
			return err
		})
	})
	both.Wait()
	report.Seconds = int64(time.Since(began).Seconds())
	return report, nil
}

// repeat repeats an operation until it is ended.
func (o *Operations) repeat(began time.Time, ended func() bool, do func(n uint64) error) {
	for n := uint64(0); !ended(); n++ {
		start := time.Now()
		err := do(n)
		if took := time.Since(start).Milliseconds(); took > o.LongestMilliseconds {
			o.LongestMilliseconds, o.AtSeconds = took, int64(start.Sub(began).Seconds())
		}
		switch {
		case errors.Is(err, errNothingThere):
		case err != nil:
			if o.Errors++; o.Error == "" {
				o.Error = err.Error()
			}
		default:
			o.Count++
		}
		<-time.After(pause)
	}
}

// content returns the content of the file with a number.
func content(seed, number uint64) []byte {
	out := make([]byte, fileBytes)
	binary.BigEndian.PutUint64(out, number)
	binary.BigEndian.PutUint64(out[8:], seed)
	binary.BigEndian.PutUint64(out[16:], fileBytes)
	var key [32]byte
	copy(key[:], out[:headBytes])
	_, _ = rand.NewChaCha8(key).Read(out[headBytes:]) // it never fails
	return out
}

func path(directory string, number uint64) string {
	return filepath.Join(directory, fmt.Sprintf("%03d", number%files))
}

// write writes the file with a number, and returns after it is on the servers. A reader sees either the former file or this one.
func write(directory string, number uint64) error {
	temporary := path(directory, number) + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, private)
	if err != nil {
		return err
	}
	_, err = file.Write(content(rand.Uint64(), number))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path(directory, number))
}

// errNothingThere is the error for a file that was not written yet.
var errNothingThere = errors.New("there is no such file yet")

// read reads a file, and counts the bytes that differ from what was written.
func read(directory string, number uint64) (different int64, err error) {
	have, err := os.ReadFile(path(directory, number))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, errNothingThere
	} else if err != nil {
		return 0, err
	}
	if len(have) != fileBytes {
		return fileBytes, nil
	}
	want := content(binary.BigEndian.Uint64(have[8:]), binary.BigEndian.Uint64(have))
	if bytes.Equal(have, want) {
		return 0, nil
	}
	for i := range want {
		if have[i] != want[i] {
			different++
		}
	}
	return different, nil
}
